"""Algorithm 1 of the CR-tree paper: the relation of two regions from points on their boundaries.

A region is a closed ring, an n × 2 array whose last vertex repeats the first. Relations are
numbers in the order disjoint, meets, overlaps, equals, inside, contains, covers, coveredBy, that
of the columns of the paper's Table 1.
"""

import math

import numpy as np
from numpy.typing import NDArray

from contrada.kernels.compiling import kernel

DISJOINT, MEETS, OVERLAPS, EQUALS, INSIDE, CONTAINS, COVERS, COVERED_BY = range(8)
_IN, _OUT, _MEET = 0, 1, 2

Ring = NDArray[np.float64]


@kernel
def check_point(x: float, y: float, ring: Ring, radius: float) -> int:
    """Decide whether a point with a halo lies in, outside or on the boundary of a region."""
    is_inside = False
    for i in range(len(ring) - 1):
        x1, y1, x2, y2 = ring[i, 0], ring[i, 1], ring[i + 1, 0], ring[i + 1, 1]
        if distance_squared(x, y, x1, y1, x2, y2) <= radius * radius:
            return _MEET
        if (y1 > y) != (y2 > y) and x < (x2 - x1) * (y - y1) / (y2 - y1) + x1:
            is_inside = not is_inside
    return _IN if is_inside else _OUT


@kernel
def distance_squared(x: float, y: float, x1: float, y1: float, x2: float, y2: float) -> float:
    """Return the square of the distance from a point to a segment."""
    dx, dy = x2 - x1, y2 - y1
    length = dx * dx + dy * dy
    share = 0.0
    if length > 0:
        share = min(1.0, max(0.0, ((x - x1) * dx + (y - y1) * dy) / length))
    return (x - x1 - share * dx) ** 2 + (y - y1 - share * dy) ** 2


@kernel
def ring_length(ring: Ring) -> float:
    """Return the length of a boundary."""
    length = 0.0
    for i in range(len(ring) - 1):
        length += math.hypot(ring[i + 1, 0] - ring[i, 0], ring[i + 1, 1] - ring[i, 1])
    return length


@kernel
def find_relation(a: Ring, b: Ring, density: float, has_halo: bool) -> int:
    """Find the relation of a to b; the shorter boundary goes first, and back (section 3.3)."""
    if ring_length(a) <= ring_length(b):
        return _find(a, b, density, has_halo)
    relation = _find(b, a, density, has_halo)
    if relation == INSIDE:
        return CONTAINS
    if relation == CONTAINS:
        return INSIDE
    if relation == COVERS:
        return COVERED_BY
    if relation == COVERED_BY:
        return COVERS
    return relation


@kernel
def _find(a: Ring, b: Ring, density: float, has_halo: bool) -> int:
    """FINDRELATION, lines 2 to 43."""
    meets = has_inner = has_outer = False
    for i in range(len(a) - 1):
        dx, dy = a[i + 1, 0] - a[i, 0], a[i + 1, 1] - a[i, 1]
        length = math.hypot(dx, dy)
        steps = int(length * density) + 1
        radius = length / steps / 2 if has_halo else 0.0
        for k in range(steps):
            place = check_point(a[i, 0] + dx * k / steps, a[i, 1] + dy * k / steps, b, radius)
            meets |= place == _MEET
            has_inner |= place == _IN
            has_outer |= place == _OUT
            if has_inner and has_outer:
                return OVERLAPS
    if not has_outer:
        if not has_inner:
            return EQUALS
        return COVERED_BY if meets else INSIDE
    is_around = _is_around(a, b, density, has_halo)
    if is_around:
        return COVERS if meets else CONTAINS
    return MEETS if meets else DISJOINT


@kernel
def _is_around(a: Ring, b: Ring, density: float, has_halo: bool) -> bool:
    """Lines 26 to 34: the first point of b's boundary that is not on a's tells."""
    for i in range(len(b) - 1):
        dx, dy = b[i + 1, 0] - b[i, 0], b[i + 1, 1] - b[i, 1]
        length = math.hypot(dx, dy)
        steps = int(length * density) + 1
        radius = length / steps / 2 if has_halo else 0.0
        for k in range(steps):
            place = check_point(b[i, 0] + dx * k / steps, b[i, 1] + dy * k / steps, a, radius)
            if place != _MEET:
                return place == _IN
    return False


@kernel
def find_relations(
    event: Ring,
    rings: Ring,
    starts: NDArray[np.int64],
    items: NDArray[np.int64],
    density: float,
    has_halo: bool,
) -> NDArray[np.int64]:
    """Find the relation of an event to each of some rings, which lie one after another."""
    found = np.empty(len(items), np.int64)
    for i in range(len(items)):
        ring = rings[starts[items[i]] : starts[items[i] + 1]]
        found[i] = find_relation(event, ring, density, has_halo)
    return found
