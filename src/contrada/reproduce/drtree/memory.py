"""How much a peer remembers: its entries, one for each peer that it knows about, and bytes."""

import sys
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from contrada.overlay.messages import Entry
from contrada.overlay.peer import Peer
from contrada.overlay.repeating import Kept
from contrada.overlay.spreading import Seen
from contrada.overlay.state import Child, Settings


@dataclass(frozen=True, slots=True)
class Memory:
    """Entries and bytes of one peer, without what all peers of a process share.

    `bytes_of_events` are what it remembers of events: which it has seen, and those that it keeps to
    repeat them. They grow with the events and are not among `bytes`.
    """

    entries: int
    bytes: int
    bytes_of_events: int


def measure_memory(peer: Peer) -> Memory:
    """Walk through all that a peer refers to, each thing once."""
    entries = size = of_events = 0
    for thing, is_of_events in _walk(peer):
        if is_of_events:
            of_events += sys.getsizeof(thing)
            continue
        size += sys.getsizeof(thing)
        entries += isinstance(thing, Child)
        entries += isinstance(thing, Entry) and thing.id != peer.state.id
    return Memory(entries, size, of_events)


def _walk(peer: Peer) -> Iterator[tuple[Any, bool]]:
    """Yield all things, and whether they are remembered for the sake of events only."""
    seen: set[int] = set()
    events: list[Any] = []
    for is_of_events, pending in ((False, [peer]), (True, events)):
        while pending:
            thing = pending.pop()
            if id(thing) in seen or isinstance(thing, Settings | type) or callable(thing):
                continue
            if not is_of_events and isinstance(thing, Seen | Kept):
                events.append(thing)
                continue
            seen.add(id(thing))
            yield thing, is_of_events
            pending.extend(_parts(thing))


def _parts(thing: Any) -> Iterable[Any]:
    if isinstance(thing, dict):
        return [*thing.keys(), *thing.values()]
    if isinstance(thing, list | tuple | set | frozenset | deque):
        return thing
    names = [name for kind in type(thing).__mro__ for name in getattr(kind, "__slots__", ())]
    own = [getattr(thing, name) for name in names if hasattr(thing, name)]
    return [*own, *vars(thing).values()] if hasattr(thing, "__dict__") else own
