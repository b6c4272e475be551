"""Where points lie to areas of few vertices: inside or outside, as far as doubles are certain.

A point is inside where a ray from it to the east crosses the boundary an odd number of times. On
which side of an edge it lies is a determinant whose rounding is bounded (Shewchuk 1997); a point in
doubt, and one at the boundary always is, counts as one at the boundary.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from contrada.arrays import Floats, Positions
from contrada.kernels.compiling import kernel
from contrada.kernels.rastering import AT_BOUNDARY, IN, OUT

_ROUNDING = 4e-16  # of a determinant, to the sum of its two products: (3 + 16 eps) eps and more
_TINY = 1e-290  # products below it may have lost digits


class AreaRings(NamedTuple):
    """The rings of areas: those of an area lie together, and are closed, as are all rings."""

    first_rings: Positions  # of each area
    end_rings: Positions  # of each area, the ring after its last
    vertices: Positions  # where the vertices of each ring begin, and at last where they end
    coordinates: Floats  # x and y of each vertex


@kernel
def locate_points(
    outlines: AreaRings, areas: Positions, x: Floats, y: Floats, vertices_max: int
) -> NDArray[np.uint8]:
    """Place each point to the area of its pair, which is given by number.

    A point that is asked of an area with more than `vertices_max` vertices is left in doubt.
    """
    first_rings, end_rings, vertices, _ = outlines
    places = np.full(len(areas), AT_BOUNDARY, np.uint8)
    for i in range(len(areas)):
        area = areas[i]
        if vertices[end_rings[area]] - vertices[first_rings[area]] <= vertices_max:
            places[i] = _locate_point(outlines, area, x[i], y[i])
    return places


@kernel
def _locate_point(outlines: AreaRings, area: int, x: float, y: float) -> int:
    first_rings, end_rings, vertices, coordinates = outlines
    is_inside = False
    for ring in range(first_rings[area], end_rings[area]):
        first, end = vertices[ring], vertices[ring + 1]
        ax, ay = coordinates[first, 0], coordinates[first, 1]
        for at in range(first + 1, end):
            bx, by = coordinates[at, 0], coordinates[at, 1]
            if not ((ay < y) & (by < y) | (ay > y) & (by > y)):
                if ay == by:
                    if not ((ax < x) & (bx < x) | (ax > x) & (bx > x)):
                        return AT_BOUNDARY
                elif (ax == x) & (ay == y) | (bx == x) & (by == y):
                    return AT_BOUNDARY
                elif ((ay > y) != (by > y)) & ((ax >= x) | (bx >= x)):
                    if (ax > x) & (bx > x):
                        is_inside = not is_inside
                    else:
                        rising, falling = (ax - x) * (by - y), (ay - y) * (bx - x)
                        side, sum_of_both = rising - falling, abs(rising) + abs(falling)
                        # Written so that NaN, of products beyond doubles, is in doubt.
                        if not (abs(side) > _ROUNDING * sum_of_both and sum_of_both > _TINY):
                            return AT_BOUNDARY
                        is_inside ^= (side > 0) == (by > ay)
            ax, ay = bx, by
    return IN if is_inside else OUT
