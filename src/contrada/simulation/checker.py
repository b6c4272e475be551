"""Is the overlay in a legal state? Definition 3.1 of the DR-tree paper, completed by what it omits.

Looks at dumped states from the outside and shares no code with the protocol: boxes, ranks and
unions are computed again, the slow and obvious way.

Some of the definition holds by construction, as a peer stores nothing that could contradict it: a
leaf has no children, a peer is its own parent below its top, and its own child above its leaf.
These are checked all the same: views may come from elsewhere.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

from contrada.overlay.messages import PeerId

Bounds = Sequence[float]

_COVERS = "covers more"


@dataclass(frozen=True, slots=True)
class PeerView:
    """What can be seen of a living peer: a row for each level from 0 on.

    `filter` is the box around the filters that it was given, as `bound` makes it.
    """

    id: PeerId
    filter: tuple[float, ...]
    levels: tuple["LevelView", ...]


@dataclass(frozen=True, slots=True)
class LevelView:
    """A node: its parent, its children with the peer itself among them, and its box.

    `links` are the other children's boxes as the node remembers them; a dump does not say.
    """

    parent: PeerId
    children: tuple[PeerId, ...]
    box: tuple[float, ...]
    links: tuple[tuple[PeerId, tuple[float, ...]], ...] = ()


def find_faults(
    peers: Mapping[PeerId, PeerView],
    least: int,
    most: int,
    universe: Bounds,
    *,
    by_cover: bool = True,
) -> list[str]:
    """List what is illegal, in words; an empty list means a legal state.

    Where leaders are not chosen `by_cover`, a child may cover more than its parent.
    """
    faults: list[str] = []
    roots = [p for p in peers.values() if p.levels[-1].parent == p.id]
    if len(roots) != 1:
        faults.append(f"{len(roots)} roots: {[p.id for p in roots][:9]}")
    for peer in peers.values():
        found = _find_faults_of(peer, peers, least, most, universe)
        faults += found if by_cover else [fault for fault in found if _COVERS not in fault]
    if len(roots) == 1:
        reached = _reach(roots[0], peers)
        if len(reached) != len(peers):
            faults.append(f"{len(peers) - len(reached)} peers are not in the tree")
    return faults


def bound(filters: Sequence[Bounds], universe: Bounds) -> tuple[float, ...]:
    """Return the box around filters; wide ones hang outside the boxes."""
    k = len(universe) // 2
    bounded = [tuple(box) for box in filters if not is_wide(box, universe)]
    return _union(bounded) if bounded else (inf,) * k + (-inf,) * k


def is_wide(box: Bounds, universe: Bounds) -> bool:
    """Whether a filter leaves out nothing of the universe in its first two dimensions."""
    k = len(universe) // 2
    return all(box[i] <= universe[i] and box[i + k] >= universe[i + k] for i in range(min(k, 2)))


def _find_faults_of(
    peer: PeerView,
    peers: Mapping[PeerId, PeerView],
    least: int,
    most: int,
    universe: Bounds,
) -> list[str]:
    faults = []
    if peer.levels[0].children:
        faults.append(f"{peer.id}: a leaf has children")
    if tuple(peer.levels[0].box) != tuple(peer.filter):
        faults.append(f"{peer.id}: the box of the leaf is not the filter")
    top = len(peer.levels) - 1
    for level, node in enumerate(peer.levels):
        place = f"{peer.id} at level {level}"
        if level < top and node.parent != peer.id:
            faults.append(f"{place}: below the top its parent is {node.parent}")
        if level == top and node.parent != peer.id:
            above = peers.get(node.parent)
            if above is None or len(above.levels) <= level + 1:
                faults.append(f"{place}: the parent {node.parent} has no level {level + 1}")
            elif peer.id not in above.levels[level + 1].children:
                faults.append(f"{place}: the parent {node.parent} does not know it")
        if level > 0:
            is_root = level == top and node.parent == peer.id
            faults += _find_faults_below(
                peer, level, node, peers, 2 if is_root else least, most, universe
            )
    return faults


def _find_faults_below(
    peer: PeerView,
    level: int,
    node: LevelView,
    peers: Mapping[PeerId, PeerView],
    least: int,
    most: int,
    universe: Bounds,
) -> list[str]:
    faults = []
    place = f"{peer.id} at level {level}"
    if not least <= len(node.children) <= most:
        faults.append(f"{place}: {len(node.children)} children")
    if peer.id not in node.children:
        faults.append(f"{place}: is not its own child")
    boxes: dict[PeerId, tuple[float, ...]] = {}
    for id_ in node.children:
        child = peers.get(id_)
        if child is None:
            faults.append(f"{place}: the child {id_} is not there")
        elif id_ != peer.id and (len(child.levels) != level or child.levels[-1].parent != peer.id):
            faults.append(f"{place}: the child {id_} is not of this parent or level")
        else:
            boxes[id_] = child.levels[level - 1].box
    for id_, box in node.links:
        if id_ in boxes and tuple(box) != tuple(boxes[id_]):
            faults.append(f"{place}: the child {id_} is remembered with another box")
    if boxes and tuple(node.box) != _union(list(boxes.values())):
        faults.append(f"{place}: the box is not the union of the children's")
    if peer.id in boxes:
        ranks = {id_: (*_measure(box, universe), id_) for id_, box in boxes.items()}
        best = max(ranks, key=lambda id_: ranks[id_])
        if best != peer.id:
            faults.append(f"{place}: the child {best} {_COVERS}")
    return faults


def _reach(root: PeerView, peers: Mapping[PeerId, PeerView]) -> set[PeerId]:
    found, pending = {root.id}, [root.id]
    while pending:
        peer = peers[pending.pop()]
        for node in peer.levels:
            for id_ in node.children:
                if id_ in peers and id_ not in found:
                    found.add(id_)
                    pending.append(id_)
    return found


def _union(boxes: list[tuple[float, ...]]) -> tuple[float, ...]:
    k = len(boxes[0]) // 2
    lows = [min(box[i] for box in boxes) for i in range(k)]
    highs = [max(box[i + k] for box in boxes) for i in range(k)]
    return (*lows, *highs)


def _measure(box: Bounds, universe: Bounds) -> tuple[float, float]:
    k = len(universe) // 2
    volume, margin = 1.0, 0.0
    for i in range(k):
        low, high = max(box[i], universe[i]), min(box[i + k], universe[i + k])
        side = max(0.0, high - low) / (universe[i + k] - universe[i])
        volume *= side
        margin += side
    return volume, margin
