"""Who is still connected with whom: by the links of a tree, and while it changes."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from contrada.overlay.messages import PeerId
from contrada.overlay.state import State
from contrada.simulation.simulator import Simulator

Links = Mapping[PeerId, set[PeerId]]


def list_links(simulator: Simulator) -> Links:
    """List whom each peer knows, or is known by: parents, children, and what deputies copy."""
    links: dict[PeerId, set[PeerId]] = {id_: set() for id_ in simulator.peers}
    for id_, peer in simulator.peers.items():
        for other in _list_known(peer.state):
            if other != id_ and other in links:
                links[id_].add(other)
                links[other].add(id_)
    return links


def _list_known(state: State) -> Iterable[PeerId]:
    yield state.parent
    for children in state.levels:
        yield from children
    if state.settings.deputies and state.copy is not None:
        yield state.copy.above
        for entries in state.copy.lists:
            yield from (entry.id for entry in entries)


def count_departures(links: Links, order: Sequence[PeerId]) -> int:
    """Count the departures, in an order, until the living are disconnected, or one is left."""
    gone: set[PeerId] = set()
    for number, id_ in enumerate(order, 1):
        gone.add(id_)
        if len(links) - len(gone) <= 1 or not _are_connected(links, gone, id_):
            return number
    return len(order)


def _are_connected(links: Links, gone: set[PeerId], last: PeerId) -> bool:
    """Whether the neighbours of the last one that has gone still reach each other."""
    wanted = links[last] - gone
    if len(wanted) < 2:
        return bool(wanted) or len(links) == len(gone)
    found = {next(iter(wanted))}
    pending = list(found)
    while pending:
        for other in links[pending.pop()] - gone - found:
            found.add(other)
            pending.append(other)
    return wanted <= found


def share_in_largest(simulator: Simulator) -> float:
    """Return the share of the living that are in the largest tree."""
    roots = Counter(_find_root(simulator, id_) for id_ in simulator.peers)
    return max(roots.values()) / len(simulator.peers)


def _find_root(simulator: Simulator, id_: PeerId) -> PeerId:
    """Climb while the parent lives and knows its child."""
    seen = {id_}
    while True:
        state = simulator.peers[id_].state
        above = simulator.peers.get(state.parent)
        if above is None or state.parent in seen:
            return id_
        if not any(id_ in children for children in above.state.levels):
            return id_
        id_ = state.parent
        seen.add(id_)
