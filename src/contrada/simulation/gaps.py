"""Do parents know enough of what lies below to send events there?

Of each child a parent remembers cells, in which an event must lie to be sent there, and the peers
below that hang outside the boxes. Like the checker, this shares no code with the protocol: every
filter is compared with what is remembered on each link between its peer and the root.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from contrada.overlay.messages import PeerId
from contrada.simulation.checker import Bounds, OverlayFault, is_wide

CellWindow = tuple[int, int, int, tuple[int, ...]]  # level, x, y and rows of bits


@dataclass(frozen=True, slots=True)
class Link:
    """The parent of a peer, and what it remembers of it besides its box.

    Without cells all of the box counts; where `wide` is None every event is sent.
    """

    parent: PeerId
    cells: CellWindow | None
    wide: tuple[tuple[PeerId, Bounds], ...] | None


def find_gaps(
    links: Mapping[PeerId, Link], filters: Mapping[PeerId, Sequence[Bounds]], universe: Bounds
) -> list[OverlayFault]:
    """List the filters that a link above does not know of; the root has no link."""
    return [
        OverlayFault(f"knows {id_} below {at}, but not its filter {tuple(box)}", link.parent)
        for id_, boxes in filters.items()
        for at, link in _climb(id_, links)
        for box in boxes
        if not _knows(link, id_, box, universe)
    ]


def _climb(id_: PeerId, links: Mapping[PeerId, Link]) -> Iterator[tuple[PeerId, Link]]:
    while id_ in links:
        yield id_, links[id_]
        id_ = links[id_].parent


def _knows(link: Link, id_: PeerId, box: Bounds, universe: Bounds) -> bool:
    if link.wide is None:
        return True
    if is_wide(box, universe):
        return any(named == id_ and _covers(other, box) for named, other in link.wide)
    return link.cells is None or _has_cells(link.cells, box, universe)


def _covers(outer: Bounds, inner: Bounds) -> bool:
    k = len(inner) // 2
    return all(outer[i] <= inner[i] and inner[i + k] <= outer[i + k] for i in range(k))


def _has_cells(window: CellWindow, box: Bounds, universe: Bounds) -> bool:
    """Whether all cells that a box touches are there."""
    level, x, y, rows = window
    k = len(box) // 2
    left, right = (_place(box[side], 0, level, universe) - x for side in (0, k))
    bottom, top = (_place(box[side], 1, level, universe) - y for side in (1, k + 1))
    if left < 0 or bottom < 0 or top >= len(rows):
        return False
    bits = (1 << right + 1) - (1 << left)
    return all(row & bits == bits for row in rows[bottom : top + 1])


def _place(value: float, axis: int, level: int, universe: Bounds) -> int:
    """Number the columns or rows of a grid; what lies outside belongs to the first or the last."""
    low, high = universe[axis], universe[axis + len(universe) // 2]
    share = min(max((value - low) / (high - low), 0.0), 1.0)
    count = 1 << level
    return min(int(share * count), count - 1)
