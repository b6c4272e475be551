"""Areas that lie clear of an event's boundary: placed by a grid over the event, many at a time.

What is in the event or outside it, and does not come near its boundary, has a relation to it that
needs no geometry; only the others are left to whoever decides relations.
"""

import numpy as np
import shapely
from numpy.typing import NDArray
from shapely.geometry.base import BaseGeometry

from contrada.arrays import Floats, Positions
from contrada.kernels.compiling import Patience
from contrada.kernels.rastering import AT_BOUNDARY, place_boxes
from contrada.limits import PAIR_CONTACTS_MAX
from contrada.matching.columns import GeometryColumn
from contrada.matching.meeting_trees import BoxTree
from contrada.model.geometry import are_areas
from contrada.model.relation import SpatialRelation

_AREAS = (2, 2)
_AREA_TYPES = (3, 6)
_EVENT_AROUND, _APART = "212FF1FF2", "FF2FF1212"  # areas whose boundaries do not meet
_LEAST = 64  # for fewer areas a grid does not pay
_SIDE_MAX = 256
_patience = Patience(60_000)  # pairs: to load kernels takes about as long as GEOS for so many

PlaceCodes = NDArray[np.uint8]


def holds_around(relation: SpatialRelation) -> bool:
    """Whether a relation holds of an event that has an area in it, clear of its boundary."""
    return relation.admits(_EVENT_AROUND, _AREAS)


def holds_apart(relation: SpatialRelation) -> bool:
    """Whether a relation holds of areas that have no point in common."""
    return relation.admits(_APART, _AREAS)


def place_areas(
    event: BaseGeometry, boxes: Floats, items: Positions, margin: float = 0.0
) -> PlaceCodes:
    """Place some areas, by their boxes, on a grid over an event.

    What comes within `margin` of the boundary is at it, and so is everything where a grid does not
    pay, or the event is not an area.
    """
    if len(items) < _LEAST or shapely.get_type_id(event) not in _AREA_TYPES:
        return np.full(len(items), AT_BOUNDARY, np.uint8)
    side = min(2 * int(np.sqrt(len(items))) + 1, _SIDE_MAX)
    rings = shapely.get_rings(shapely.get_parts(event))
    xy, ring_of = shapely.get_coordinates(rings, return_index=True)
    bounds = np.array(event.bounds)
    return place_boxes(xy, ring_of, bounds, boxes, items, side, margin)


def find_broad(
    column: GeometryColumn, rows: Positions, tree: BoxTree
) -> tuple[Positions, Positions, Positions]:
    """Find the pairs that it pays to place: of a row and an item of a tree whose boxes meet.

    Those are all pairs of events that are areas and have many. The other rows come back, too.
    """
    areas = np.flatnonzero(are_areas(column.shapes[rows]))
    places, items = tree.query(column.shapes[rows[areas]])
    counts = np.bincount(places, minlength=len(areas))
    if counts.max(initial=0) < _LEAST or not _patience.is_spent(len(items)):
        return rows[:0], rows[:0], rows
    chosen = counts[places] >= _LEAST
    is_broad = np.zeros(len(rows), bool)
    is_broad[areas[counts >= _LEAST]] = True
    return rows[areas[places[chosen]]], items[chosen], rows[~is_broad]


def place_pairs(
    column: GeometryColumn, rows: Positions, boxes: Floats, sizes: Positions, items: Positions
) -> PlaceCodes:
    """Place areas, of which boxes and numbers of vertices are given, each on the event of its row.

    Pairs of so many vertices that they might be too entangled to be decided are left at the
    boundary, wherever they lie.
    """
    places = np.full(len(rows), AT_BOUNDARY, np.uint8)
    if len(rows) < _LEAST or not _patience.is_spent(len(rows)):
        return places
    order = np.argsort(rows, kind="stable") if (np.diff(rows) < 0).any() else np.arange(len(rows))
    firsts = np.flatnonzero(np.diff(rows[order], prepend=-1))
    for first, last in zip(firsts, [*firsts[1:], len(rows)], strict=True):
        event = column.shapes[rows[order[first]]]
        if last - first >= _LEAST and event is not None:
            at = order[first:last]
            places[at] = _place_untangled(event, boxes, sizes, items[at])
    return places


def place_on(event: BaseGeometry, boxes: Floats, sizes: Positions, items: Positions) -> PlaceCodes:
    """Place areas on one event, as `place_pairs` does."""
    if len(items) < _LEAST or not _patience.is_spent(len(items)):
        return np.full(len(items), AT_BOUNDARY, np.uint8)
    return _place_untangled(event, boxes, sizes, items)


def _place_untangled(
    event: BaseGeometry, boxes: Floats, sizes: Positions, items: Positions
) -> PlaceCodes:
    """Place the areas that have few vertices, together with the event."""
    places = np.full(len(items), AT_BOUNDARY, np.uint8)
    vertices = int(shapely.get_num_coordinates(event))
    at = np.flatnonzero(sizes[items] * vertices <= PAIR_CONTACTS_MAX)
    places[at] = place_areas(event, boxes, items[at])
    return places
