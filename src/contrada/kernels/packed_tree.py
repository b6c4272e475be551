"""Boxes in a tree that is built once and asked about many points (packed by sort and tile).

The boxes of the tree lie one after another, a level at a time, the items first. Node k of a level
covers the boxes `NODE * k` to `NODE * k + NODE - 1` of the level below (Leutenegger et al. 1997).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from contrada.arrays import Floats, Positions
from contrada.kernels.compiling import kernel

NODE = 8
_PILE = 512  # more than a walk can have open: NODE for each of at most 64 levels
_SIDE = 256  # points are asked about in the order of so many rows and columns of cells
_SMALL = 1e-300


class PackedTree(NamedTuple):
    """The sides of all boxes, where each level starts, and the items in the order of level 0."""

    west: Floats
    south: Floats
    east: Floats
    north: Floats
    starts: Positions
    items: Positions


def pack_boxes(boxes: NDArray[np.float64]) -> PackedTree:
    """Make a tree of boxes (west, south, east, north); a box of NaN is never found."""
    items = _sort_tiles(boxes)
    levels = [boxes[items]]
    while len(levels) == 1 or len(levels[-1]) > 1:
        firsts = np.arange(0, len(levels[-1]), NODE)
        low = np.fmin.reduceat(levels[-1][:, :2], firsts)
        high = np.fmax.reduceat(levels[-1][:, 2:], firsts)
        levels.append(np.hstack([low, high]))
    starts = np.cumsum([0, *(len(level) for level in levels)]).astype(np.int64)
    sides = np.ascontiguousarray(np.concatenate(levels).T)
    return PackedTree(sides[0], sides[1], sides[2], sides[3], starts, items)


def _sort_tiles(boxes: NDArray[np.float64]) -> Positions:
    """Order boxes by vertical slices, and from south to north in each."""
    middle = boxes[:, :2] / 2 + boxes[:, 2:] / 2
    slices = max(1, int(np.sqrt(len(boxes) / NODE)))
    number = np.empty(len(boxes), np.int64)
    number[np.argsort(middle[:, 0], kind="stable")] = np.arange(len(boxes)) * slices // len(boxes)
    return np.lexsort((middle[:, 1], number)).astype(np.int64)


@kernel
def find_points(tree: PackedTree, x: Floats, y: Floats) -> tuple[Positions, Positions]:
    """Find all pairs of a finite point and a box around it, rims included, ordered by box."""
    order = order_points(x, y)
    places = np.empty(2 * len(x) + NODE, np.int64)
    found = np.empty(2 * len(x) + NODE, np.int64)
    asked, written = 0, 0
    while True:
        asked, written = _walk(tree, x, y, order, places, found, asked, written)
        if asked == len(x):
            return _by_item(places[:written], found[:written], len(tree.items))
        places, found = _grown(places), _grown(found)


@kernel
def _walk(
    tree: PackedTree,
    x: Floats,
    y: Floats,
    order: Positions,
    places: Positions,
    found: Positions,
    asked: int,
    written: int,
) -> tuple[int, int]:
    """Write the pairs of points from one on, until there is no room for all pairs of a point.

    The arrays are never changed for larger ones here: that would take ten times as long.
    """
    west, south, east, north, starts, items = tree
    room = len(found)
    nodes = np.empty(_PILE, np.int64)
    levels = np.empty(_PILE, np.int64)
    while asked < len(order):
        i = order[asked]
        px, py = x[i], y[i]
        at_end = written
        nodes[0], levels[0] = 0, len(starts) - 2
        top = 1
        while top > 0:
            top -= 1
            level = levels[top]
            below = starts[level - 1]
            first = below + NODE * nodes[top]
            for at in range(first, min(first + NODE, starts[level])):
                # One test without branches: which of the four fails cannot be foreseen.
                if (west[at] <= px) & (px <= east[at]) & (south[at] <= py) & (py <= north[at]):
                    if level > 1:
                        nodes[top], levels[top] = at - below, level - 1
                        top += 1
                    else:
                        if at_end == room:
                            return asked, written
                        places[at_end], found[at_end] = i, items[at]
                        at_end += 1
        written = at_end
        asked += 1
    return asked, written


@kernel
def order_points(x: Floats, y: Floats) -> Positions:
    """Order points along Hilbert's curve, so that neighbours walk the same nodes."""
    order = np.empty(len(x), np.int64)
    if len(x) == 0:
        return order
    # Halves, since the difference of two large numbers may be infinite.
    left, low = x.min() / 2, y.min() / 2
    per_x = (_SIDE - 1) / max(x.max() / 2 - left, _SMALL)
    per_y = (_SIDE - 1) / max(y.max() / 2 - low, _SMALL)
    cells = np.empty(len(x), np.int64)
    counts = np.zeros(_SIDE * _SIDE + 1, np.int64)
    for i in range(len(x)):
        column = min(int((x[i] / 2 - left) * per_x), _SIDE - 1)
        row = min(int((y[i] / 2 - low) * per_y), _SIDE - 1)
        cells[i] = _hilbert(column, row)
        counts[cells[i] + 1] += 1
    for cell in range(1, len(counts)):
        counts[cell] += counts[cell - 1]
    for i in range(len(x)):
        order[counts[cells[i]]] = i
        counts[cells[i]] += 1
    return order


@kernel
def _hilbert(x: int, y: int) -> int:
    """Number the cell of a column and a row along the curve."""
    number, side = 0, _SIDE // 2
    while side > 0:
        right, up = x & side > 0, y & side > 0
        number += side * side * ((3 * right) ^ up)
        if not up:
            if right:
                x, y = _SIDE - 1 - x, _SIDE - 1 - y
            x, y = y, x
        side //= 2
    return number


@kernel
def _grown(array: Positions) -> Positions:
    bigger = np.empty(2 * len(array), np.int64)
    bigger[: len(array)] = array
    return bigger


@kernel
def _by_item(places: Positions, found: Positions, items: int) -> tuple[Positions, Positions]:
    """Sort pairs by item; those of one item stay in their order."""
    ends = np.zeros(items + 1, np.int64)
    for item in found:
        ends[item + 1] += 1
    for item in range(items):
        ends[item + 1] += ends[item]
    sorted_places = np.empty(len(found), np.int64)
    sorted_items = np.empty(len(found), np.int64)
    for i in range(len(found)):
        at = ends[found[i]]
        ends[found[i]] += 1
        sorted_places[at], sorted_items[at] = places[i], found[i]
    return sorted_places, sorted_items
