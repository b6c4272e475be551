"""Where boxes lie to an area: in it, outside, or at its boundary, from a grid laid over the area.

The grid decides a box only if no cell that the box touches is touched by the boundary; a box in
doubt counts as one at the boundary. So `IN` and `OUT` are certain, whatever the size of the cells,
and whatever the doubles: where no grid can be laid, every box is in doubt.
"""

import numpy as np
from numpy.typing import NDArray

from contrada.arrays import Floats
from contrada.kernels.boxtree import BoxRow, Ints
from contrada.kernels.compiling import kernel

AT_BOUNDARY, IN, OUT = 0, 1, 2

Raster = NDArray[np.uint8]


@kernel
def place_boxes(
    xy: Floats, rings: Ints, bounds: BoxRow, boxes: Floats, items: Ints, side: int, margin: float
) -> Raster:
    """Place the chosen boxes; a box within `margin` of the boundary counts as one at it.

    `xy` are the vertices of the area's closed rings, one after another, and `rings` numbers the
    ring of each. The grid has `side` × `side` cells over `bounds`, the box of the area.
    """
    width, height = bounds[2] - bounds[0], bounds[3] - bounds[1]
    places = np.full(len(items), AT_BOUNDARY, np.uint8)
    if not (width > 0 and height > 0):
        return places
    scale_x, scale_y = side / width, side / height
    if not (0 < scale_x < np.inf and 0 < scale_y < np.inf):
        return places
    ulp = 4 * np.finfo(np.float64).eps * np.abs(bounds).max()
    slack_x, slack_y = 1e-6 + (margin + ulp) * scale_x, 1e-6 + (margin + ulp) * scale_y
    u, v = (xy[:, 0] - bounds[0]) * scale_x, (xy[:, 1] - bounds[1]) * scale_y
    is_edge = _mark_boundary(u, v, rings, side, slack_x, slack_y)
    is_inside = _fill(u, v, rings, side)
    sums = _sum_areas(is_edge)
    for i in range(len(items)):
        west, south, east, north = boxes[items[i]]
        left, right = _span((west - bounds[0]) * scale_x, (east - bounds[0]) * scale_x, side)
        low, high = _span((south - bounds[1]) * scale_y, (north - bounds[1]) * scale_y, side)
        edges = (
            sums[high + 1, right + 1]
            - sums[low, right + 1]
            - sums[high + 1, left]
            + sums[low, left]
        )
        if edges == 0:
            places[i] = IN if is_inside[low, left] else OUT
    return places


@kernel
def _span(first: float, last: float, side: int) -> tuple[int, int]:
    """Return the first and last cell of a stretch of the grid; an end that is NaN is open."""
    low = min(first, side - 1.0) if first > 0.0 else 0.0
    high = max(last, 0.0) if last < side - 1.0 else side - 1.0
    return int(low), int(high)


@kernel
def _mark_boundary(
    u: Floats, v: Floats, rings: Ints, side: int, slack_x: float, slack_y: float
) -> NDArray[np.bool_]:
    """Mark each cell that an edge touches or nearly touches."""
    marks = np.zeros((side, side), np.bool_)
    for i in range(len(u) - 1):
        if rings[i] != rings[i + 1]:
            continue
        low, high = _span(min(v[i], v[i + 1]) - slack_y, max(v[i], v[i + 1]) + slack_y, side)
        rise = v[i + 1] - v[i]
        for row in range(low, high + 1):
            start, end = 0.0, 1.0  # the part of the edge in this row
            if rise != 0:
                at_bottom, at_top = (row - slack_y - v[i]) / rise, (row + 1 + slack_y - v[i]) / rise
                start = min(max(min(at_bottom, at_top), 0.0), 1.0)
                end = min(max(at_bottom, at_top, 0.0), 1.0)
            a = u[i] + start * (u[i + 1] - u[i])
            b = u[i] + end * (u[i + 1] - u[i])
            left, right = _span(min(a, b) - slack_x, max(a, b) + slack_x, side)
            for column in range(left, right + 1):
                marks[row, column] = True
    return marks


@kernel
def _fill(u: Floats, v: Floats, rings: Ints, side: int) -> NDArray[np.bool_]:
    """Which cells have their middle inside, by the parity of the edges left of it."""
    flips = np.zeros((side, side + 1), np.bool_)
    for i in range(len(u) - 1):
        if rings[i] != rings[i + 1] or v[i] == v[i + 1]:
            continue
        low, high = _span(min(v[i], v[i + 1]) - 1, max(v[i], v[i + 1]) + 1, side)
        for row in range(low, high + 1):
            middle = row + 0.5
            if (v[i] > middle) != (v[i + 1] > middle):
                share = (middle - v[i]) / (v[i + 1] - v[i])
                crossing = u[i] + share * (u[i + 1] - u[i]) + 0.5
                column = int(min(crossing, float(side))) if crossing > 0.0 else 0
                flips[row, column] = not flips[row, column]
    for row in range(side):
        for column in range(1, side):
            flips[row, column] ^= flips[row, column - 1]
    return flips


@kernel
def _sum_areas(marks: NDArray[np.bool_]) -> Ints:
    """Count the marks in each rectangle from the corner, so that any rectangle takes four reads."""
    side = len(marks)
    sums = np.zeros((side + 1, side + 1), np.int64)
    for row in range(side):
        total = 0
        for column in range(side):
            total += marks[row, column]
            sums[row + 1, column + 1] = sums[row, column + 1] + total
    return sums
