"""Coarse summaries of what lies in a box: which cells of a grid the filters touch.

The grid of level l divides the first two dimensions of the universe into 2^l by 2^l cells. A
summary covers a window of at most 32 by 32 cells, a row of bits for each row of cells, at the
finest level at which that is enough. What lies outside the universe belongs to the cells at its
edge, so that boxes which meet always have a cell in common.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from contrada.errors import InvalidInput
from contrada.overlay.boxes import Box, Space

SIDE = 32
_LEVEL_MAX = 20
_KEPT_MAX = 32  # summaries of which the union is kept: strangers may send ever new ones


@dataclass(frozen=True, slots=True)
class Cells:
    """The touched cells of one window: bit i of row j is the cell (x + i, y + j)."""

    level: int
    x: int
    y: int
    rows: tuple[int, ...]

    def __post_init__(self) -> None:
        """Refuse what is not a window of the grid."""
        last = 1 << self.level if 0 <= self.level <= _LEVEL_MAX else 0
        is_inside = 0 <= self.x < last and 0 <= self.y < last
        if not is_inside or not 0 < len(self.rows) <= min(SIDE, last - self.y):
            raise InvalidInput(f"not a window of cells: {self!r:.100}")
        if not all(0 <= row < 1 << min(SIDE, last - self.x) for row in self.rows):
            raise InvalidInput(f"not rows of cells: {self!r:.100}")

    def meets(self, box: Box, space: Space) -> bool:
        """Whether a box touches one of the cells."""
        x0, y0, x1, y1 = _locate(box, space, self.level)
        low, high = max(x0 - self.x, 0), x1 - self.x
        if high < 0:
            return False
        mask = (1 << high + 1) - (1 << low) if high >= low else 0
        rows = self.rows[max(y0 - self.y, 0) : max(y1 - self.y + 1, 0)]
        return any(row & mask for row in rows)


@lru_cache(maxsize=2**13)
def cover(box: Box, space: Space) -> Cells | None:
    """Return the cells of a box; None for an empty one."""
    k = len(box) // 2
    if box[0] > box[k] or box[1] > box[k + 1]:
        return None
    x0, y0, x1, y1 = _locate(box, space, _LEVEL_MAX)
    shift = _shift_for(x0, y0, x1, y1)
    x0, y0, x1, y1 = x0 >> shift, y0 >> shift, x1 >> shift, y1 >> shift
    return Cells(_LEVEL_MAX - shift, x0, y0, ((1 << x1 - x0 + 1) - 1,) * (y1 - y0 + 1))


def unite(summaries: Iterable[Cells | None]) -> Cells | None:
    """Return the summary of several summaries."""
    distinct = tuple(dict.fromkeys(s for s in summaries if s is not None))
    return _unite_few(distinct) if len(distinct) <= _KEPT_MAX else _unite(distinct)


@lru_cache(maxsize=2**10)
def _unite_few(summaries: tuple[Cells, ...]) -> Cells | None:
    return _unite(summaries)


def _unite(summaries: tuple[Cells, ...]) -> Cells | None:
    if len(summaries) < 2:
        return summaries[0] if summaries else None
    level = min(s.level for s in summaries)
    x0, y0, x1, y1 = _bounds(summaries, level)
    level -= _shift_for(x0, y0, x1, y1)
    coarse = [_coarsen(s, level) for s in summaries]
    x0, y0, _, y1 = _bounds(coarse, level)
    rows = [0] * (y1 - y0 + 1)
    for s in coarse:
        for j, row in enumerate(s.rows):
            rows[s.y - y0 + j] |= row << s.x - x0
    return Cells(level, x0, y0, tuple(rows))


def _locate(box: Box, space: Space, level: int) -> tuple[int, int, int, int]:
    k = len(box) // 2
    return (
        _place(box[0], 0, space, level),
        _place(box[1], 1, space, level),
        _place(box[k], 0, space, level),
        _place(box[k + 1], 1, space, level),
    )


def _place(value: float, axis: int, space: Space, level: int) -> int:
    """Return the cell of a coordinate; greater coordinates never have lesser cells."""
    universe, count = space.universe, 1 << level
    low, high = universe[axis], universe[axis + len(universe) // 2]
    if value <= low:
        return 0
    if value >= high:
        return count - 1
    return min(int((value - low) / (high - low) * count), count - 1)


def _shift_for(x0: int, y0: int, x1: int, y1: int) -> int:
    """Return by how many levels a window must be coarser to be small enough."""
    shift = 0
    while max((x1 >> shift) - (x0 >> shift), (y1 >> shift) - (y0 >> shift)) >= SIDE:
        shift += 1
    return shift


def _bounds(summaries: Sequence[Cells], level: int) -> tuple[int, int, int, int]:
    """Return the smallest window at a level around the windows of some summaries."""
    corners = [
        (
            s.x >> s.level - level,
            s.y >> s.level - level,
            s.x + max(s.rows).bit_length() - 1 >> s.level - level,
            s.y + len(s.rows) - 1 >> s.level - level,
        )
        for s in summaries
    ]
    x0s, y0s, x1s, y1s = zip(*corners, strict=True)
    return min(x0s), min(y0s), max(x1s), max(y1s)


def _coarsen(cells: Cells, level: int) -> Cells:
    x, y, rows = cells.x, cells.y, list(cells.rows)
    for _ in range(cells.level - level):
        if y % 2:
            rows.insert(0, 0)
        if len(rows) % 2:
            rows.append(0)
        rows = [_halve((a | b) << x % 2) for a, b in zip(rows[::2], rows[1::2], strict=True)]
        x, y = x // 2, y // 2
    return Cells(level, x, y, tuple(rows))


def _halve(row: int) -> int:
    """Make one bit of every two, set if either is."""
    row = (row | row >> 1) & 0x5555555555555555
    row = (row | row >> 1) & 0x3333333333333333
    row = (row | row >> 2) & 0x0F0F0F0F0F0F0F0F
    row = (row | row >> 4) & 0x00FF00FF00FF00FF
    row = (row | row >> 8) & 0x0000FFFF0000FFFF
    return (row | row >> 16) & 0x00000000FFFFFFFF
