"""Quadtree cells, and edges in their coordinates.

A cell is an interval on the Morton curve of the finest level L. Its *key* is one integer that
holds where it starts, its level and its kind, so that sorting keys sorts cells along the curve,
a cell before the cells in it. Coordinates here are in cells of level L: u eastwards, v northwards,
from 0 to 2**L.
"""

import numpy as np

from contrada.arrays import Floats
from contrada.kernels.boxtree import BoxRow, Ints
from contrada.kernels.compiling import kernel

INTERIOR, BOUNDARY = 0, 1
LEVEL_MAX = 26


_SLACK = 2.0**-48  # of the universe: some dozen roundings
_FAR = 2.0**20  # universes away: whoever lies farther is brought as near


@kernel
def make_key(start: int, level: int, kind: int) -> int:
    """Write a cell as one integer: the start, then five bits of level and one of kind."""
    return (start << 6) | (level << 1) | kind


@kernel
def start_of(key: int) -> int:
    """Return where a cell starts on the curve."""
    return key >> 6


@kernel
def level_of(key: int) -> int:
    """Return the level of a cell."""
    return (key >> 1) & 31


@kernel
def size_of(key: int, level: int) -> int:
    """Return how many cells of the finest level a cell has: its area."""
    return 1 << (2 * (level - level_of(key)))


@kernel
def interleave(x: int, y: int) -> int:
    """Return the place on the Morton curve of a column and a row: x in the even bits."""
    return _spread(x) | (_spread(y) << 1)


@kernel
def _spread(bits: int) -> int:
    """Put a zero before each of 32 bits."""
    bits = (bits | (bits << 16)) & 0x0000FFFF0000FFFF
    bits = (bits | (bits << 8)) & 0x00FF00FF00FF00FF
    bits = (bits | (bits << 4)) & 0x0F0F0F0F0F0F0F0F
    bits = (bits | (bits << 2)) & 0x3333333333333333
    return (bits | (bits << 1)) & 0x5555555555555555


@kernel
def code_of(u: float, v: float, level: int) -> int:
    """Return the cell of the finest level in which a point lies, or the nearest."""
    last = (1 << level) - 1.0
    return interleave(int(min(max(u, 0.0), last)), int(min(max(v, 0.0), last)))


@kernel
def scale(place: float, origin: float, factor: float, level: int) -> float:
    """Bring one coordinate to cells; what lies absurdly far is brought nearer."""
    far = _FAR * (1 << level)
    return min(max((place - origin) * factor, -far), far)


@kernel
def make_edges(xy: Floats, path_starts: Ints, grid: BoxRow, level: int) -> tuple[Floats, float]:
    """Make the edges of paths, in cells and within the universe; return them and their slack.

    `grid` holds west, south, and cells per unit of x and of y. What lies outside the universe is
    drawn to its rim: an edge that crosses the rim is cut there, so that its part inside stays.
    """
    side = float(1 << level)
    edges = np.empty((5 * (path_starts[-1] - path_starts[0]), 4))  # cut in five at most
    count, farthest = 0, side
    for path in range(len(path_starts) - 1):
        for i in range(path_starts[path] + 1, path_starts[path + 1]):
            u1 = scale(xy[i - 1, 0], grid[0], grid[2], level)
            v1 = scale(xy[i - 1, 1], grid[1], grid[3], level)
            u2 = scale(xy[i, 0], grid[0], grid[2], level)
            v2 = scale(xy[i, 1], grid[1], grid[3], level)
            low, high = min(u1, v1, u2, v2), max(u1, v1, u2, v2)
            if low >= 0 and high <= side:
                edges[count, 0], edges[count, 1], edges[count, 2], edges[count, 3] = u1, v1, u2, v2
                count += 1
            else:
                farthest = max(farthest, -low, high)
                count = _draw_in(u1, v1, u2, v2, side, edges, count)
    return edges[:count], farthest * _SLACK


@kernel
def _draw_in(
    u1: float, v1: float, u2: float, v2: float, side: float, edges: Floats, count: int
) -> int:
    """Cut an edge where it crosses a side of the universe, and draw the pieces to the rim."""
    cuts = np.ones(5)
    cut_count = 0
    for first, last in ((u1, u2), (v1, v2)):
        for rim in (0.0, side):
            if (first < rim) != (last < rim):
                cuts[cut_count] = (rim - first) / (last - first)
                cut_count += 1
    cuts.sort()
    u, v = min(max(u1, 0.0), side), min(max(v1, 0.0), side)
    for k in range(cut_count + 1):
        is_last = k == cut_count
        next_u = u2 if is_last else u1 + cuts[k] * (u2 - u1)
        next_v = v2 if is_last else v1 + cuts[k] * (v2 - v1)
        next_u, next_v = min(max(next_u, 0.0), side), min(max(next_v, 0.0), side)
        edges[count, 0], edges[count, 1], edges[count, 2], edges[count, 3] = u, v, next_u, next_v
        count += 1
        u, v = next_u, next_v
    return count


@kernel
def grown(keys: Ints) -> Ints:
    """Return a copy with twice the room."""
    larger = np.empty(2 * len(keys), np.int64)
    larger[: len(keys)] = keys
    return larger
