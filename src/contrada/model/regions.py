"""The Egenhofer relations among regions, as far as they are certain.

GEOS is wrong about a few pairs whose boundaries nearly touch, and whoever reasons from relations
needs the true ones. So a relation counts only where a second witness agrees: boxes are compared
by their exact bounds, equal regions by their coordinates, and all others only if their boundaries
keep a distance from each other that no rounding can bridge.
"""

from dataclasses import dataclass

import numpy as np
import shapely
from numpy.typing import NDArray

from contrada.arrays import Geometries, Integers
from contrada.model.relation import Relation, egenhofer

BASES = tuple(Relation)
UNCERTAIN = len(BASES)  # what stands in place of the number of a relation
_MARGIN = 1e-9  # of the largest coordinate
_COORDINATE_MAX = 1e100  # squares of larger ones are no numbers
_PAIRS_MAX = 100_000  # beyond so many pairs whose boxes meet, regions are not looked at
_NUMBER_OF = {relation: number for number, relation in enumerate(BASES)}


@dataclass(slots=True)
class Allowance:
    """How many vertices of pairs of regions may still be looked at."""

    vertices_left: int

    def spend(self, vertices: Integers) -> int:
        """Return how many pairs, the first ones, may be examined, and count their vertices."""
        sums = np.cumsum(vertices)
        count = int(np.searchsorted(sums, self.vertices_left, side="right"))
        self.vertices_left -= int(sums[count - 1]) if count else 0
        return count


def relate_regions(regions: Geometries, allowance: Allowance) -> Integers:
    """Return the relation of each region to each other, as numbers in `BASES` or UNCERTAIN.

    Pairs that the allowance leaves out are uncertain.
    """
    count = len(regions)
    pairs = _pairs_that_meet(regions)
    if pairs is None:
        return np.full((count, count), UNCERTAIN, np.int64)
    codes = np.full((count, count), _NUMBER_OF[Relation.DISJOINT], np.int64)
    first, second = pairs
    found = _relate_pairs(regions, first, second, allowance)
    turned = np.array([*(_NUMBER_OF[_converse(base)] for base in BASES), UNCERTAIN])
    codes[first, second] = found
    codes[second, first] = turned[found]
    return codes


def _converse(base: Relation) -> Relation:
    converses = {
        Relation.INSIDE: Relation.CONTAINS,
        Relation.CONTAINS: Relation.INSIDE,
        Relation.COVERED_BY: Relation.COVERS,
        Relation.COVERS: Relation.COVERED_BY,
    }
    return converses.get(base, base)


def _pairs_that_meet(regions: Geometries) -> tuple[Integers, Integers] | None:
    """List the pairs whose boxes meet, each once and with itself; None if they are too many."""
    tree = shapely.STRtree(regions)
    step = max(1, _PAIRS_MAX // len(regions))
    found: list[tuple[Integers, Integers]] = []
    total = 0
    for start in range(0, len(regions), step):
        first, second = tree.query(regions[start : start + step])
        each_once = first + start <= second
        found.append((first[each_once] + start, second[each_once]))
        total += len(found[-1][0])
        if total > _PAIRS_MAX:
            return None
    return np.concatenate([f for f, _ in found]), np.concatenate([s for _, s in found])


def _relate_pairs(
    regions: Geometries, first: Integers, second: Integers, allowance: Allowance
) -> Integers:
    codes = np.full(len(first), UNCERTAIN, np.int64)
    bounds, are_boxes = shapely.bounds(regions), _are_boxes(regions)
    both = are_boxes[first] & are_boxes[second]
    codes[both] = _relate_boxes(bounds[first[both]], bounds[second[both]])
    rest = np.flatnonzero(~both)
    vertices = shapely.get_num_coordinates(regions).astype(np.int64)
    rest = rest[: allowance.spend(vertices[first[rest]] + vertices[second[rest]])]
    is_same = shapely.equals_identical(regions[first[rest]], regions[second[rest]])
    codes[rest[is_same]] = _NUMBER_OF[Relation.EQUALS]
    rest = rest[~is_same]
    apart = rest[~_are_near(regions, bounds, first[rest], second[rest])]
    codes[apart] = _relate_by_matrix(regions[first[apart]], regions[second[apart]])
    return codes


def _are_near(
    regions: Geometries, bounds: NDArray[np.float64], first: Integers, second: Integers
) -> NDArray[np.bool_]:
    """Which pairs have boundaries so close that rounding might bridge the distance."""
    margins = _MARGIN * np.abs(np.hstack([bounds[first], bounds[second]])).max(axis=1, initial=0)
    edges = shapely.boundary(regions)
    shapely.prepare(edges[np.unique(first)])  # else the distance takes the square of the vertices
    with np.errstate(all="ignore"):
        is_near = shapely.dwithin(edges[first], edges[second], margins)
    return np.asarray(is_near | (margins > _MARGIN * _COORDINATE_MAX), bool)


def _relate_by_matrix(a: Geometries, b: Geometries) -> Integers:
    matrices, inverse = np.unique(
        np.asarray(shapely.relate(a, b), object).astype("U9"), return_inverse=True
    )
    numbers = np.array([_NUMBER_OF[egenhofer(str(matrix))] for matrix in matrices], np.int64)
    return np.asarray(numbers[inverse], np.int64)


def _are_boxes(regions: Geometries) -> NDArray[np.bool_]:
    """Which regions are rectangles along the axes, without further vertices."""
    is_candidate = (shapely.get_type_id(regions) == 3) & (shapely.get_num_coordinates(regions) == 5)
    numbers = np.flatnonzero(is_candidate & (shapely.get_num_interior_rings(regions) == 0))
    xy = shapely.get_coordinates(regions[numbers]).reshape(-1, 5, 2)
    low, high = xy.min(axis=1, keepdims=True), xy.max(axis=1, keepdims=True)
    are_boxes = np.zeros(len(regions), bool)
    are_boxes[numbers] = ((xy == low) | (xy == high)).all(axis=(1, 2))
    return are_boxes


def _relate_boxes(a: NDArray[np.float64], b: NDArray[np.float64]) -> Integers:
    """Compare boxes that meet: whether one lies in the other, and on whose sides."""
    is_in, is_around = _lie_in(a, b), _lie_in(b, a)
    shares_side = (a == b).any(axis=1)
    has_common_inside = ((a[:, :2] < b[:, 2:]) & (b[:, :2] < a[:, 2:])).all(axis=1)
    chosen = np.select(
        [
            ~has_common_inside,
            is_in & is_around,
            is_in & shares_side,
            is_in,
            is_around & shares_side,
            is_around,
        ],
        [
            _NUMBER_OF[relation]
            for relation in (
                Relation.MEETS,
                Relation.EQUALS,
                Relation.COVERED_BY,
                Relation.INSIDE,
                Relation.COVERS,
                Relation.CONTAINS,
            )
        ],
        _NUMBER_OF[Relation.OVERLAPS],
    )
    return np.asarray(chosen, np.int64)


def _lie_in(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.bool_]:
    is_in = (a[:, :2] >= b[:, :2]) & (a[:, 2:] <= b[:, 2:])
    return np.asarray(is_in.all(axis=1), bool)
