"""Edges of many geometries, cut into short runs, and which of them ways and points come near to.

A run is a few edges in a row, given by its first and its last vertex; a point is an edge from one
vertex to itself. All here is cautious: what it leaves out is certainly apart, and what it calls
crossed certainly is.
"""

import numpy as np

from contrada.arrays import Floats, Positions
from contrada.kernels.compiling import kernel
from contrada.kernels.packed_tree import NODE, PackedTree, order_points

RUN_EDGES = 8
_PILE = 512
_TURN_ERROR = 4e-16  # more than any rounding of a turn, over its two products (Shewchuk 1997)
_TURN_MIN = 1e-300  # far more than what a product may lose by underflow
APART, UNSURE, CUT = range(3)
_TOGETHER, _NEAR_MAX = 16, 64  # ways that ask the tree at once, and how much may be near to them
_NOTHING, _ROOM_NEAR, _ROOM_FOUND = range(3)
_EQUATOR_M, _ECCENTRICITY_2 = 6_378_137.0, 0.00669437999014


@kernel
def cut_runs(
    coordinates: Floats, vertices: Positions
) -> tuple[Positions, Positions, Positions, Floats]:
    """Cut rings into runs: the ring of each, its first and last vertex, and its box."""
    count = 0
    for ring in range(len(vertices) - 1):
        edges = max(vertices[ring + 1] - vertices[ring] - 1, 1)
        count += (edges + RUN_EDGES - 1) // RUN_EDGES
    rings = np.empty(count, np.int64)
    firsts = np.empty(count, np.int64)
    lasts = np.empty(count, np.int64)
    boxes = np.empty((count, 4))
    run = 0
    for ring in range(len(vertices) - 1):
        first, end = vertices[ring], vertices[ring + 1] - 1
        while True:
            last = min(first + RUN_EDGES, end)
            rings[run], firsts[run], lasts[run] = ring, first, last
            boxes[run, 0] = boxes[run, 2] = coordinates[first, 0]
            boxes[run, 1] = boxes[run, 3] = coordinates[first, 1]
            for at in range(first + 1, last + 1):
                boxes[run, 0] = min(boxes[run, 0], coordinates[at, 0])
                boxes[run, 1] = min(boxes[run, 1], coordinates[at, 1])
                boxes[run, 2] = max(boxes[run, 2], coordinates[at, 0])
                boxes[run, 3] = max(boxes[run, 3], coordinates[at, 1])
            run += 1
            first = last
            if last >= end:
                break
    return rings, firsts, lasts, boxes


@kernel
def find_boxes(tree: PackedTree, boxes: Floats) -> tuple[Positions, Positions]:
    """Find all pairs of an asked box and a box of the tree that meet; boxes of NaN meet none."""
    order = _in_order(boxes)
    places = np.empty(2 * len(boxes) + NODE, np.int64)
    found = np.empty(2 * len(boxes) + NODE, np.int64)
    asked, written = 0, 0
    while True:
        asked, written = _walk_boxes(tree, boxes, order, places, found, asked, written)
        if asked == len(order):
            return places[:written], found[:written]
        places = np.concatenate((places, np.empty_like(places)))
        found = np.concatenate((found, np.empty_like(found)))


@kernel
def _in_order(boxes: Floats) -> Positions:
    """Order boxes by their first corner, ways by their start: neighbours walk the same nodes."""
    count = 0
    for i in range(len(boxes)):
        count += not np.isnan(boxes[i, 0])
    known = np.empty(count, np.int64)
    x, y = np.empty(count), np.empty(count)
    at = 0
    for i in range(len(boxes)):
        if not np.isnan(boxes[i, 0]):
            known[at], x[at], y[at] = i, boxes[i, 0], boxes[i, 1]
            at += 1
    return known[order_points(x, y)]


@kernel
def _walk_boxes(
    tree: PackedTree,
    boxes: Floats,
    order: Positions,
    places: Positions,
    found: Positions,
    asked: int,
    written: int,
) -> tuple[int, int]:
    """Write the pairs of boxes from one on, until there is no room for all pairs of a box."""
    nodes = np.empty(_PILE, np.int64)
    levels = np.empty(_PILE, np.int64)
    while asked < len(order):
        w, s, e, n = boxes[order[asked]]
        count = _gather(tree, w, s, e, n, nodes, levels, found[written:])
        if count < 0:
            return asked, written
        for at in range(written, written + count):
            places[at], found[at] = order[asked], tree.items[found[at]]
        written += count
        asked += 1
    return asked, written


@kernel
def find_passed(
    tree: PackedTree, ways: Floats, firsts: Positions, lasts: Positions, coordinates: Floats
) -> tuple[Positions, Positions, Positions]:
    """Find the pairs of a way and a box of the tree that may meet: both, and UNSURE or CUT.

    A box whose first vertex is -1 stands for itself. In any other is a run, and pairs are left out
    where the way and its edges are APART. CUT are those where the way and an edge have a point
    in common that is an end of neither. Ways of NaN meet nothing.
    """
    order = _in_order(ways)
    found = np.empty((2 * len(ways) + _TOGETHER * _NEAR_MAX, 3), np.int64)
    near = np.empty(_NEAR_MAX, np.int64)
    asked, alone, written, wanted = 0, 0, 0, _NOTHING
    while True:
        asked, alone, written, wanted = _pass_ways(
            tree, ways, firsts, lasts, coordinates, order, near, found, asked, alone, written
        )
        if wanted == _NOTHING:
            return found[:written, 0].copy(), found[:written, 1].copy(), found[:written, 2].copy()
        if wanted == _ROOM_NEAR:
            near = np.empty(2 * len(near), np.int64)
        else:
            found = np.concatenate((found, np.empty_like(found)))


@kernel
def _pass_ways(
    tree: PackedTree,
    ways: Floats,
    firsts: Positions,
    lasts: Positions,
    coordinates: Floats,
    order: Positions,
    near: Positions,
    found: Positions,
    asked: int,
    alone: int,
    written: int,
) -> tuple[int, int, int, int]:
    """Write the pairs of the ways from `asked` on; stop where an array is full, and say which.

    Ways that follow each other in the order are near to each other, so the tree is asked once for
    some together. Where too much is near to these, each of them, up to `alone`, asks for itself.
    """
    west, south, east, north, _, items = tree
    nodes = np.empty(_PILE, np.int64)
    levels = np.empty(_PILE, np.int64)
    while asked < len(order):
        end = asked + 1 if asked < alone else min(asked + _TOGETHER, len(order))
        w, s, e, n = np.inf, np.inf, -np.inf, -np.inf
        for place in range(asked, end):
            ax, ay, bx, by = ways[order[place]]
            w, s, e, n = min(w, ax, bx), min(s, ay, by), max(e, ax, bx), max(n, ay, by)
        room = len(near) if asked < alone else _NEAR_MAX
        count = _gather(tree, w, s, e, n, nodes, levels, near[:room])
        if count < 0:
            if asked < alone:
                return asked, alone, written, _ROOM_NEAR
            alone = end
            continue
        if written + (end - asked) * count > len(found):
            return asked, alone, written, _ROOM_FOUND
        for place in range(asked, end):
            way = order[place]
            ax, ay, bx, by = ways[way]
            w, s, e, n = min(ax, bx), min(ay, by), max(ax, bx), max(ay, by)
            for at in near[:count]:
                if (west[at] <= e) & (w <= east[at]) & (south[at] <= n) & (s <= north[at]):
                    item, met = items[at], UNSURE
                    if firsts[item] >= 0:
                        met = meet_run(ax, ay, bx, by, firsts[item], lasts[item], coordinates)
                    if met != APART:
                        found[written, 0], found[written, 1], found[written, 2] = way, item, met
                        written += 1
        asked = end
    return asked, alone, written, _NOTHING


@kernel
def _gather(
    tree: PackedTree,
    w: float,
    s: float,
    e: float,
    n: float,
    nodes: Positions,
    levels: Positions,
    near: Positions,
) -> int:
    """Write the places of the boxes that a box meets; return how many, -1 if there is no room."""
    west, south, east, north, starts, _ = tree
    count = 0
    nodes[0], levels[0] = 0, len(starts) - 2
    top = 1
    while top > 0:
        top -= 1
        level = levels[top]
        below = starts[level - 1]
        first = below + NODE * nodes[top]
        for at in range(first, min(first + NODE, starts[level])):
            if (west[at] <= e) & (w <= east[at]) & (south[at] <= n) & (s <= north[at]):
                if level > 1:
                    nodes[top], levels[top] = at - below, level - 1
                    top += 1
                elif count == len(near):
                    return -1
                else:
                    near[count] = at
                    count += 1
    return count


@kernel
def meet_run(
    ax: float, ay: float, bx: float, by: float, first: int, last: int, coordinates: Floats
) -> int:
    """How the way from a to b meets the edges of a run: APART, UNSURE or CUT."""
    result = APART
    west, east = min(ax, bx), max(ax, bx)
    south, north = min(ay, by), max(ay, by)
    for at in range(first, max(last, first + 1)):
        cx, cy = coordinates[at, 0], coordinates[at, 1]
        after = min(at + 1, last)
        dx, dy = coordinates[after, 0], coordinates[after, 1]
        if max(cx, dx) < west or min(cx, dx) > east:
            continue
        if max(cy, dy) < south or min(cy, dy) > north:
            continue
        of_edge = _turn(ax, ay, bx, by, cx, cy) * _turn(ax, ay, bx, by, dx, dy)
        if of_edge > 0:
            continue
        of_way = _turn(cx, cy, dx, dy, ax, ay) * _turn(cx, cy, dx, dy, bx, by)
        if of_way > 0:
            continue
        if of_edge < 0 and of_way < 0:
            return CUT
        result = UNSURE
    return result


@kernel
def _turn(ax: float, ay: float, bx: float, by: float, cx: float, cy: float) -> int:
    """On which side of the line from a to b the point c lies; 0 where that is not certain."""
    left, right = (bx - ax) * (cy - ay), (by - ay) * (cx - ax)
    if not abs(left - right) > _TURN_ERROR * (abs(left) + abs(right)) + _TURN_MIN:
        return 0  # also where a product overflows
    return 1 if left > right else -1


@kernel
def measure_gaps(
    x: Floats,
    y: Floats,
    firsts: Positions,
    lasts: Positions,
    coordinates: Floats,
) -> Floats:
    """Measure from points to runs, in metres, as on a flat map that is true to scale at the point.

    Pairs come side by side; latitudes are short of the poles.
    """
    gaps = np.empty(len(x))
    for i in range(len(x)):
        latitude = np.radians(y[i])
        shape = 1 - _ECCENTRICITY_2 * np.sin(latitude) ** 2
        per_x = np.radians(_EQUATOR_M / np.sqrt(shape) * np.cos(latitude))
        per_y = np.radians(_EQUATOR_M * (1 - _ECCENTRICITY_2) / shape**1.5)
        least = np.inf
        first, last = firsts[i], lasts[i]
        for at in range(first, max(last, first + 1)):
            ax, ay = (coordinates[at, 0] - x[i]) * per_x, (coordinates[at, 1] - y[i]) * per_y
            after = min(at + 1, last)
            ux = (coordinates[after, 0] - x[i]) * per_x - ax
            uy = (coordinates[after, 1] - y[i]) * per_y - ay
            length = ux * ux + uy * uy
            share = 0.0
            if length > 0:
                share = min(max(-(ax * ux + ay * uy) / length, 0.0), 1.0)
            gap_x, gap_y = ax + share * ux, ay + share * uy
            least = min(least, gap_x * gap_x + gap_y * gap_y)
        gaps[i] = np.sqrt(least)
    return gaps
