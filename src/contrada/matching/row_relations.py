"""Spatial tests on pairs of an event's row and a subscription's geometry, by Shapely.

Points against areas need three cases only (inside, on the boundary, outside), so that one or two
calls on prepared areas decide every relation, or a kernel does where areas have few vertices and
hardly any of them is asked twice; all other pairs go to Shapely's predicates, and pairs whose boxes
lie apart to nobody.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from contrada.arrays import Geometries, Mask, Positions
from contrada.kernels.compiling import is_numba_loaded
from contrada.kernels.locating import AreaRings, locate_points
from contrada.kernels.rastering import AT_BOUNDARY, IN, OUT
from contrada.language.spatial import related
from contrada.matching.columns import GeometryColumn
from contrada.matching.meeting_trees import copy_some, meet
from contrada.matching.placing import holds_apart, holds_around, place_pairs
from contrada.model.packed_geometries import PackedGeometries
from contrada.model.relation import Family, SpatialRelation
from contrada.threads import make_lock_held_at_forks

_PAIRS_AT_ONCE = 2_048  # for fewer, a kernel does not pay
_POINTS_FEW = 8  # of one area: for more, GEOS has what it prepared in the processor's cache
_VERTICES_FEW = 256  # of one area: for more, GEOS with its index of edges is faster
_POINT_INSIDE, _POINT_ON_BOUNDARY, _POINT_OUTSIDE = "0FFFFF212", "F0FFFF212", "FF0FFF212"


@dataclass(frozen=True, slots=True)
class Shapes:
    """Geometries of subscriptions: boxes and numbers of vertices are at hand."""

    geometries: Geometries
    is_area: Mask
    boxes: NDArray[np.float64]
    sizes: Positions
    is_ready: Mask  # whether points can be asked about; lines and the like never are
    outlines: AreaRings | None = None  # what a kernel needs to place points

    def ready(self, ids: Positions) -> Geometries:
        """Return geometries that are prepared, if they are areas, for any thread to ask points."""
        if np.count_nonzero(self.is_ready[ids]) < len(ids):
            cold = np.unique(ids[~self.is_ready[ids]])
            for first in range(0, len(cold), _READIED_AT_ONCE):
                self._prepare(cold[first : first + _READIED_AT_ONCE])
        return self.geometries[ids]

    def _prepare(self, ids: Positions) -> None:
        """Let GEOS build now what it would for the second point, in two threads at once perhaps.

        It takes more memory than the geometry itself, so that what no event comes near has none.
        """
        with _preparing:
            ids = ids[~self.is_ready[ids]]
            areas = self.geometries[ids]
            shapely.prepare(areas)
            west, south, east, north = self.boxes[ids].T
            for _ in range(2):
                shapely.intersects_xy(areas, (west + east) / 2, (south + north) / 2)
            self.is_ready[ids] = True


_READIED_AT_ONCE = 1_000  # so that nobody waits for long
_preparing = make_lock_held_at_forks()


def make_shapes(geometries: Geometries, *, are_fresh: bool = False) -> Shapes:
    """Take geometries, or copies of them where others have them, too: preparing changes them."""
    is_area = np.isin(shapely.get_type_id(geometries), (3, 6))
    if not are_fresh:
        areas = copy_some(geometries, np.flatnonzero(is_area))
        geometries = geometries.copy()
        geometries[is_area] = areas
    sizes = shapely.get_num_coordinates(geometries).astype(np.int64)
    return Shapes(geometries, is_area, shapely.bounds(geometries), sizes, ~is_area)


def unpack_shapes(packed: PackedGeometries, numbers: Positions) -> Shapes:
    """Make some of the packed geometries; of areas, kernels may read the columns instead."""
    shapes = make_shapes(packed.shapes(numbers), are_fresh=True)
    first_rings, end_rings = (packed.rings[packed.parts[n]] for n in (numbers, numbers + 1))
    columns = (first_rings, end_rings, packed.vertices, packed.coordinates)
    return replace(shapes, outlines=AreaRings(*(_for_kernels(column) for column in columns)))


def _for_kernels(column: NDArray[Any]) -> NDArray[Any]:
    """View a column as those of files are: a kernel is compiled for each kind of array."""
    view = column.view()
    view.flags.writeable = False
    return view


def pairs_related(
    relation: SpatialRelation,
    column: GeometryColumn,
    rows: Positions,
    shapes: Shapes,
    ids: Positions,
) -> tuple[Mask, Mask]:
    """Decide for each pair whether it satisfies the relation, and whether that is known."""
    known = column.is_known[rows]
    holds = np.zeros(len(rows), bool)
    by_location = column.is_point[rows] & shapes.is_area[ids]
    if relation.family is Family.EGENHOFER:
        known = known & ~by_location
    else:
        at = np.flatnonzero(by_location)
        holds[at] = _locate(relation, column, rows[at], shapes, ids[at])
    rest = np.flatnonzero(known & ~by_location)
    if rest.size:
        _relate_rest(relation, column, rows, shapes, ids, rest, holds, known)
    return holds, known


def _locate(
    relation: SpatialRelation,
    column: GeometryColumn,
    rows: Positions,
    shapes: Shapes,
    ids: Positions,
) -> Mask:
    """Decide points against areas by where the point lies; pairs come best sorted by area."""
    x, y = column.x[rows], column.y[rows]
    if shapes.outlines is None or not _are_scattered(ids):
        return locate(relation, shapes.ready(ids), x, y)
    places = locate_points(shapes.outlines, ids, x, y, _VERTICES_FEW)
    inside, _, outside = _admitted(relation)
    holds = np.where(places == IN, inside, outside)
    left = np.flatnonzero(places == AT_BOUNDARY)
    holds[left] = locate(relation, shapes.ready(ids[left]), x[left], y[left])
    return holds


def _are_scattered(ids: Positions) -> bool:
    """Whether there are many pairs, but few of each area."""
    if len(ids) < _PAIRS_AT_ONCE or not is_numba_loaded():
        return False
    return bool(np.count_nonzero(np.diff(ids)) * _POINTS_FEW > len(ids))


@lru_cache(maxsize=1024)
def _admitted(relation: SpatialRelation) -> tuple[bool, bool, bool]:
    """Whether a relation holds of a point inside, on the boundary of and outside an area."""
    return (
        relation.admits(_POINT_INSIDE, (0, 2)),
        relation.admits(_POINT_ON_BOUNDARY, (0, 2)),
        relation.admits(_POINT_OUTSIDE, (0, 2)),
    )


def locate(relation: SpatialRelation, areas: Geometries, x: Any, y: Any) -> Mask:
    """Decide a relation of points to prepared areas, other than an Egenhofer one."""
    inside, boundary, outside = _admitted(relation)
    if inside == boundary == outside:
        return np.full(len(areas), inside)
    meets = shapely.intersects_xy(areas, x, y) if boundary != outside else None
    if meets is not None and inside == boundary:
        return np.asarray(meets if inside else ~meets, bool)
    is_inside = shapely.contains_xy(areas, x, y)
    if meets is None:
        return np.where(is_inside, inside, outside)
    return np.where(is_inside, inside, np.where(meets, boundary, outside))


def _relate_rest(
    relation: SpatialRelation,
    column: GeometryColumn,
    rows: Positions,
    shapes: Shapes,
    ids: Positions,
    rest: Positions,
    holds: Mask,
    known: Mask,
) -> None:
    asked, items = rows[rest], ids[rest]
    is_known = column.are_known(relation)[asked]
    known[rest] = is_known
    if relation.family is Family.PATTERN:
        near = is_known
    else:
        boxes = column.boxes()
        one_or_all = boxes if len(boxes) == 1 else boxes[asked]
        near = is_known & _boxes_meet(one_or_all, shapes.boxes[items])
        holds[rest] = is_known & ~near & relation.holds_when_apart()
    at = np.flatnonzero(near)
    at = at[~_decide_placed(relation, column, asked[at], shapes, items[at], holds, rest[at])]
    events, geometries = column.prepared(asked[at]), shapes.geometries[items[at]]
    if relation.meeting is not None:
        meets, known[rest[at]] = meet(events, geometries, items[at])
        holds[rest[at]] = known[rest[at]] & (meets == relation.meeting)
    else:
        holds[rest[at]], known[rest[at]] = related(relation, events, geometries)


def _decide_placed(
    relation: SpatialRelation,
    column: GeometryColumn,
    rows: Positions,
    shapes: Shapes,
    ids: Positions,
    holds: Mask,
    at: Positions,
) -> Mask:
    """Decide the pairs of areas that lie clear of each other's boundary; tell which those are."""
    places = np.full(len(ids), AT_BOUNDARY, np.uint8)
    areas = np.flatnonzero(shapes.is_area[ids])
    places[areas] = place_pairs(column, rows[areas], shapes.boxes, shapes.sizes, ids[areas])
    holds[at[places == IN]] = holds_around(relation)
    holds[at[places == OUT]] = holds_apart(relation)
    return np.asarray(places != AT_BOUNDARY)


def _boxes_meet(a: NDArray[np.float64], b: NDArray[np.float64]) -> Mask:
    return np.asarray(
        (a[:, 0] <= b[:, 2]) & (a[:, 2] >= b[:, 0]) & (a[:, 1] <= b[:, 3]) & (a[:, 3] >= b[:, 1])
    )
