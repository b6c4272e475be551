"""Whether two geometries have a point in common, where GEOS could take the square of their sizes.

GEOS looks for each part of one geometry at all parts of the other, for each point of one at all
edges of a line, and at all pairs of edges in one direction whose boxes meet. Where both are large,
they are taken apart here: points are sorted, edges and parts are found by trees, and the pairs that
are left are decided by GEOS one by one, up to a limit.
"""

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import shake_128

import numpy as np
import shapely
from numpy.typing import NDArray
from shapely.geometry.base import BaseGeometry

from contrada.arrays import Floats, Geometries, Mask, Positions
from contrada.limits import CONTACT_EDGES_MAX, CONTACT_PAIRS_MAX
from contrada.model.crossings import edges_of, query_in_steps, rings_of
from contrada.model.crowding import runs_of

PLAIN_VERTICES_MAX = 2**23  # of one geometry times those of another: GEOS takes less than 0.1 s
_COMPONENTS_MIN = 16  # for fewer the cost is in proportion to the size
_PAIRS_PER_VERTEX, _EDGES_PER_VERTEX = 100, 1_000  # are no trouble
_SAMPLES, _OTHERS = 64, 1_024
_POINTS_OR_ALL, _LINES, _AREAS_OR_ALL = (0, 4, 7), (1, 2, 5), (3, 6, 7)
_MULTIPOLYGON, _COLLECTION = 6, 7


def find_meetings(a: Geometries, b: Geometries) -> tuple[Mask, Mask]:
    """Whether each pair has a point in common, and whether that is decided.

    Geometries may be prepared; missing ones have no point.
    """
    sizes = [shapely.get_num_coordinates(side).astype(np.int64) for side in (a, b)]
    is_large = sizes[0] * sizes[1] > PLAIN_VERTICES_MAX
    if not is_large.any():
        return np.asarray(shapely.intersects(a, b), bool), np.ones(len(a), bool)
    meets, known = np.zeros(len(a), bool), np.ones(len(a), bool)
    meets[~is_large] = shapely.intersects(a[~is_large], b[~is_large])
    traits: dict[int, _Traits] = {}
    for i in np.flatnonzero(is_large & _have_boxes_that_meet(a, b)).tolist():
        left, right = (traits.setdefault(id(g), _Traits(g)) for g in (a[i], b[i]))
        is_dense = _are_dense(left, right)
        if is_dense or _are_scattered(left, right) or _are_scattered(right, left):
            found = _meet_in_pieces(a[i], b[i], is_dense)
            meets[i], known[i] = found is True, found is not None
        else:
            meets[i] = shapely.intersects(a[i], b[i])
    return meets, known


def meet(a: BaseGeometry, b: BaseGeometry) -> bool | None:
    """Whether two geometries have a point in common; None where that is not decided."""
    pair = np.empty((2, 1), object)
    pair[:, 0] = a, b
    meets, known = find_meetings(*pair)
    return bool(meets[0]) if known[0] else None


def _have_boxes_that_meet(a: Geometries, b: Geometries) -> Mask:
    ours, theirs = shapely.bounds(a), shapely.bounds(b)
    is_before, is_after = ours[:, 2:] < theirs[:, :2], ours[:, :2] > theirs[:, 2:]
    return np.asarray(~(is_before | is_after).any(axis=1))


class _Traits:
    """What tells whether a geometry may be dear, found out when it is asked for."""

    def __init__(self, geometry: BaseGeometry) -> None:
        self._geometry = geometry
        self.kind = int(shapely.get_type_id(geometry))
        self.vertices = int(shapely.get_num_coordinates(geometry))
        self._components: int | None = None
        self._runs: Floats | None = None

    def has_components(self, least: float) -> bool:
        """Whether there are so many rings, lines and points."""
        if self.vertices < least * (4 if self.kind in (3, 6) else 1):
            return False
        if self._components is None:
            parts = shapely.get_parts(shapely.get_parts(self._geometry))
            self._components = len(parts) + int(shapely.get_num_interior_rings(parts).sum())
        return self._components >= least

    def runs(self) -> Floats:
        """The first and last point of each run of edges in one direction."""
        if self._runs is None:
            rings = rings_of(self._geometry)
            self._runs = runs_of(*shapely.get_coordinates(rings, return_index=True))
        return self._runs


def _are_scattered(one: _Traits, other: _Traits) -> bool:
    """Whether GEOS might look for each component of one geometry at all vertices of the other."""
    if other.kind in _LINES and one.kind not in _POINTS_OR_ALL:
        return False
    return one.has_components(max(_COMPONENTS_MIN, PLAIN_VERTICES_MAX / other.vertices))


def _are_dense(one: _Traits, other: _Traits) -> bool:
    """Whether very many pairs of runs, one of each geometry, have boxes that meet."""
    small, large = sorted((one, other), key=lambda traits: traits.vertices)
    most = max(CONTACT_PAIRS_MAX, _PAIRS_PER_VERTEX * (small.vertices + large.vertices))
    if min(small.vertices, len(small.runs())) * large.vertices <= most:
        return False
    runs = small.runs(), large.runs()
    if len(runs[0]) * len(runs[1]) <= most:
        return False
    ours, theirs = (
        _boxes_of(_choose(r, n)) for r, n in zip(runs, (_SAMPLES, _OTHERS), strict=True)
    )
    share = float(_overlap(ours[:, None], theirs).mean())
    return share * len(runs[0]) * len(runs[1]) > most


def _choose(rows: Floats, count: int) -> Floats:
    """Choose some rows, such that nobody can foresee which."""
    content = np.ascontiguousarray(rows).view(np.uint64).sum(axis=0, dtype=np.uint64)
    numbers = shake_128(content.tobytes()).digest(8 * count)
    return np.asarray(rows[np.frombuffer(numbers, np.uint64) % np.uint64(len(rows))], float)


def _boxes_of(edges: Floats) -> Floats:
    ends = edges[:, :2], edges[:, 2:]
    return np.hstack([np.minimum(*ends), np.maximum(*ends)])


def _overlap(a: Floats, b: Floats) -> Mask:
    is_low, is_high = a[..., :2] <= b[..., 2:], a[..., 2:] >= b[..., :2]
    return np.asarray((is_low & is_high).all(axis=-1))


class _NearParts:
    """The points, lines, rings and polygons of a geometry that come near another one."""

    def __init__(self, geometry: BaseGeometry, other: BaseGeometry) -> None:
        parts = shapely.get_parts(shapely.get_parts(geometry))
        parts = parts[_overlap(shapely.bounds(parts), np.array(shapely.bounds(other)))]
        kinds = shapely.get_type_id(parts)
        self.points = shapely.get_coordinates(parts[kinds == 0])
        self.lines = parts[(kinds == 1) | (kinds == 2)]
        self.polygons = parts[kinds == 3]
        self.rings = np.concatenate([self.lines, shapely.get_rings(self.polygons)])

    def ends(self) -> Floats:
        """A point of each part."""
        lines = np.concatenate([self.lines, shapely.get_exterior_ring(self.polygons)])
        return np.vstack([self.points, shapely.get_coordinates(shapely.get_point(lines, 0))])


def _meet_in_pieces(a: BaseGeometry, b: BaseGeometry, is_dense: bool) -> bool | None:
    """Whether two geometries meet: in points, in edges, or where a part is inside an area."""
    ours, theirs = _NearParts(a, b), _NearParts(b, a)
    if np.intersect1d(_as_keys(ours.points), _as_keys(theirs.points)).size:
        return True
    budget = _Budget(CONTACT_PAIRS_MAX)
    steps: tuple[Callable[[], bool | None], ...] = (
        lambda: _are_on_lines(ours.points, theirs.lines, budget),
        lambda: _are_on_lines(theirs.points, ours.lines, budget),
        lambda: _do_lines_meet(ours.rings, theirs.rings, budget, is_dense),
        lambda: _are_in_areas(ours.ends(), theirs.polygons, budget),
        lambda: _are_in_areas(theirs.ends(), ours.polygons, budget),
    )
    is_decided = True
    for step in steps:
        found = step()
        if found:
            return True
        is_decided &= found is not None
    return False if is_decided else None


def _as_keys(points: Floats) -> NDArray[np.complex128]:
    return np.ascontiguousarray(points).view(np.complex128)[:, 0]


@dataclass(slots=True)
class _Budget:
    """How many pairs may still be looked at."""

    left: int

    def can_pay(self, count: int) -> bool:
        """Take pairs off; False where they are too many."""
        self.left = max(self.left - count, -1)
        return self.left >= 0


def _are_on_lines(points: Floats, lines: Geometries, budget: _Budget) -> bool | None:
    """Whether a point lies on a line, edge by edge, as GEOS would look at it."""
    if not len(points) or not len(lines):
        return False
    edges, _ = edges_of(lines)
    return _do_edges_meet(np.asarray(shapely.points(points), object), edges, budget)


def _do_lines_meet(
    ours: Geometries, theirs: Geometries, budget: _Budget, is_dense: bool
) -> bool | None:
    if not len(ours) or not len(theirs):
        return False
    if is_dense:
        edges, _ = edges_of(ours)
        lines = np.asarray(shapely.linestrings(edges.reshape(-1, 2, 2)), object)
        return _do_edges_meet(lines, edges_of(theirs)[0], budget)
    one, other = (shapely.multilinestrings(side) for side in (ours, theirs))
    shapely.prepare(one)
    return bool(shapely.intersects(one, other))


def _do_edges_meet(things: Geometries, edges: Floats, budget: _Budget) -> bool | None:
    """Whether a point or an edge has a point in common with one of the edges."""
    lines = np.asarray(shapely.linestrings(edges.reshape(-1, 2, 2)), object)
    for first, second in query_in_steps(shapely.STRtree(lines), things, len(lines)):
        if not budget.can_pay(len(first)):
            return None
        if shapely.intersects(things[first], lines[second]).any():
            return True
    return False


def _are_in_areas(points: Floats, polygons: Geometries, budget: _Budget) -> bool | None:
    """Whether a point lies in a polygon."""
    if not len(points) or not len(polygons):
        return False
    tree, places = shapely.STRtree(polygons), np.asarray(shapely.points(points), object)
    found = [(np.zeros(0, np.int64), np.zeros(0, np.int64))]
    for pairs in query_in_steps(tree, places, len(polygons)):
        if not budget.can_pay(len(pairs[0])):
            return None
        found.append(pairs)
    first, second = (np.concatenate(side) for side in zip(*found, strict=True))
    order = np.argsort(second, kind="stable")
    return _are_inside(points[first[order]], polygons, second[order])


def _are_inside(points: Floats, polygons: Geometries, which: Positions) -> bool | None:
    """Whether a point lies in its polygon; GEOS looks at all edges that are as high as it is.

    So a polygon is turned where that is the better way.
    """
    numbers, counts = np.unique(which, return_counts=True)
    sizes = shapely.get_num_coordinates(polygons[numbers]).astype(np.int64)
    most = max(CONTACT_EDGES_MAX, _EDGES_PER_VERTEX * (len(points) + int(sizes.sum())))
    turned = np.zeros(len(polygons), bool)
    for number, last, count in zip(numbers, np.cumsum(counts), counts, strict=True):
        if (work := int(count * sizes[np.searchsorted(numbers, number)])) > PLAIN_VERTICES_MAX:
            own = points[last - count : last]
            across, along = (_count_at(own[:, i], polygons[number], i) for i in (1, 0))
            turned[number] = along < across
            work = min(along, across)
        most -= work
    if most < 0:
        return None
    polygons = polygons.copy()
    polygons[turned] = shapely.transform(polygons[turned], lambda xy: xy[:, ::-1])
    shapely.prepare(polygons[numbers])
    x, y = np.where(turned[which], points.T[::-1], points.T)
    return bool(shapely.intersects_xy(polygons[which], x, y).any())


def _count_at(places: Floats, polygon: BaseGeometry, axis: int) -> int:
    """Count the pairs of a place on an axis and an edge that spans it."""
    edges, _ = edges_of(rings_of(polygon))
    ends = edges[:, axis], edges[:, axis + 2]
    begun = np.searchsorted(np.sort(np.minimum(*ends)), places, side="right")
    over = np.searchsorted(np.sort(np.maximum(*ends)), places, side="left")
    return int((begun - over).sum())
