"""Is the overlay in a legal state? Definition 3.1 of the DR-tree paper, completed by what it omits.

Looks at dumped states from the outside and shares no code with the protocol: boxes, ranks and
unions are computed again, the slow and obvious way.

Some of the definition holds by construction, as a peer stores nothing that could contradict it: a
leaf has no children, a peer is its own parent below its top, and its own child above its leaf.
These are checked all the same: views may come from elsewhere.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf

from contrada.overlay.messages import PeerId

Bounds = Sequence[float]


@dataclass(frozen=True, slots=True)
class OverlayFault:
    """Something illegal, in words, and the peer and level at which it is, if it is at one."""

    message: str
    peer: PeerId | None = None
    level: int | None = None

    def __str__(self) -> str:
        if self.peer is None:
            return self.message
        level = "" if self.level is None else f" at level {self.level}"
        return f"{self.peer}{level}: {self.message}"


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
) -> list[OverlayFault]:
    """List what is illegal; an empty list means a legal state.

    Where leaders are not chosen `by_cover`, a child may cover more than its parent.
    """
    faults: list[OverlayFault] = []
    roots = [p for p in peers.values() if p.levels[-1].parent == p.id]
    if len(roots) != 1:
        faults.append(OverlayFault(f"{len(roots)} roots: {[p.id for p in roots][:9]}"))
    check = _Check(peers, least, most, universe, by_cover)
    for peer in peers.values():
        faults += check.find_faults_of(peer)
    if len(roots) == 1:
        reached = _reach(roots[0], peers)
        if len(reached) != len(peers):
            missing = len(peers) - len(reached)
            faults.append(OverlayFault(f"{missing} peers are not in the tree"))
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


@dataclass(frozen=True, slots=True)
class _Check:
    """The rules by which all peers are looked at."""

    peers: Mapping[PeerId, PeerView]
    least: int
    most: int
    universe: Bounds
    by_cover: bool

    def find_faults_of(self, peer: PeerView) -> Iterator[OverlayFault]:
        leaf = peer.levels[0]
        if leaf.children:
            yield OverlayFault("a leaf has children", peer.id)
        if tuple(leaf.box) != tuple(peer.filter):
            yield OverlayFault("the box of the leaf is not the filter", peer.id)
        top = len(peer.levels) - 1
        for level, node in enumerate(peer.levels):
            is_root = level == top and node.parent == peer.id
            words = list(self._say_above(peer, level, node, level == top))
            if level > 0:
                least = 2 if is_root else self.least
                words += self._say_below(peer, level, node, least)
            yield from (OverlayFault(message, peer.id, level) for message in words)

    def _say_above(
        self, peer: PeerView, level: int, node: LevelView, is_top: bool
    ) -> Iterator[str]:
        if node.parent == peer.id:
            return
        if not is_top:
            yield f"below the top its parent is {node.parent}"
            return
        above = self.peers.get(node.parent)
        if above is None or len(above.levels) <= level + 1:
            yield f"the parent {node.parent} has no level {level + 1}"
        elif peer.id not in above.levels[level + 1].children:
            yield f"the parent {node.parent} does not know it"

    def _say_below(self, peer: PeerView, level: int, node: LevelView, least: int) -> Iterator[str]:
        if not least <= len(node.children) <= self.most:
            yield f"{len(node.children)} children"
        if peer.id not in node.children:
            yield "is not its own child"
        boxes: dict[PeerId, tuple[float, ...]] = {}
        for id_ in node.children:
            child = self.peers.get(id_)
            if child is None:
                yield f"the child {id_} is not there"
            elif id_ != peer.id and (
                len(child.levels) != level or child.levels[-1].parent != peer.id
            ):
                yield f"the child {id_} is not of this parent or level"
            else:
                boxes[id_] = child.levels[level - 1].box
        for id_, box in node.links:
            if id_ in boxes and tuple(box) != tuple(boxes[id_]):
                yield f"the child {id_} is remembered with another box"
        if boxes and tuple(node.box) != _union(list(boxes.values())):
            yield "the box is not the union of the children's"
        if self.by_cover and peer.id in boxes:
            ranks = {id_: (*_measure(box, self.universe), id_) for id_, box in boxes.items()}
            best = max(ranks, key=lambda id_: ranks[id_])
            if best != peer.id:
                yield f"the child {best} covers more"


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
