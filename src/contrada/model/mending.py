"""Invalid geometries made valid, where that is not too much work.

GEOS cuts a geometry where its edges meet and puts the faces together again. The time grows with
the square of the crossings, and with that of the rings that lie in each other: a ring of a few
hundred random vertices takes a minute. So all are counted first, and a geometry with more of them
than the limits allow has a fault that says so.
"""

import numpy as np
import shapely
from numpy.typing import NDArray
from shapely.geometry.base import BaseGeometry

from contrada.limits import (
    MEND_CONTACTS_MAX,
    MEND_CROSSINGS_MAX,
    MEND_NESTINGS_MAX,
    MEND_PAIRS_MAX,
    MEND_RINGS_MAX,
    MEND_STRAYS_MAX,
    MEND_TOUCHES_MAX,
)
from contrada.model.crossings import Meetings, count_meetings, rings_of
from contrada.model.geometry import Fault, as_array, find_faults, tidy

_QUERIES_AT_ONCE = 256
_POLYGON = 3
_VERTICES_MIN = 2_000  # a polygon of fewer has too few faces to matter
_MOST = Meetings(MEND_CROSSINGS_MAX, MEND_CONTACTS_MAX, MEND_PAIRS_MAX)


def mend(geometry: BaseGeometry) -> BaseGeometry | Fault:
    """Make an invalid geometry valid and tidy; return its fault where that cannot be done."""
    fault = _find_excess(geometry)
    if fault is not None:
        return fault
    array = as_array([geometry])
    with np.errstate(all="ignore"):
        try:
            mended = tidy(shapely.make_valid(array))
        except shapely.errors.GEOSException:
            return find_faults(array)[0]
    fault = find_faults(mended).get(0)
    return mended[0] if fault is None else fault


def _find_excess(geometry: BaseGeometry) -> Fault | None:
    """Find what would make mending take too long."""
    rings = rings_of(geometry)
    if _count_nestings(rings) > MEND_NESTINGS_MAX:
        what = f"{MEND_NESTINGS_MAX:,} pairs of rings that may lie inside each other"
        return _excess(geometry, what, "MEND_NESTINGS_MAX")
    found = count_meetings(rings, _MOST)
    if found.crossings > MEND_CROSSINGS_MAX:
        what = f"{MEND_CROSSINGS_MAX:,} crossings of its edges"
        return _excess(geometry, what, "MEND_CROSSINGS_MAX")
    if found.contacts > MEND_CONTACTS_MAX:
        what = f"{MEND_CONTACTS_MAX:,} contacts of its edges"
        return _excess(geometry, what, "MEND_CONTACTS_MAX")
    if found.pairs > MEND_PAIRS_MAX:
        what = f"{MEND_PAIRS_MAX:,} pairs of edges that may cross"
        return _excess(geometry, what, "MEND_PAIRS_MAX")
    for polygon in _large_polygons(geometry):
        fault = _find_excess_of_faces(polygon)
        if fault is not None:
            return fault
    return None


def _large_polygons(geometry: BaseGeometry) -> NDArray[np.object_]:
    parts = shapely.get_parts(shapely.get_parts(geometry))
    is_polygon = shapely.get_type_id(parts) == _POLYGON
    is_large = shapely.get_num_coordinates(parts) > _VERTICES_MIN
    return np.asarray(parts[is_polygon & is_large], object)


def _find_excess_of_faces(polygon: BaseGeometry) -> Fault | None:
    """Find what would cut a polygon into too many faces, each of which is compared with all."""
    rings = rings_of(polygon)
    if len(rings) > MEND_RINGS_MAX:
        what = f"{MEND_RINGS_MAX:,} rings in one polygon"
        return _excess(polygon, what, "MEND_RINGS_MAX")
    boxes = np.asarray(shapely.box(*shapely.bounds(rings).T), object)
    if int((~shapely.covers(boxes[0], boxes)).sum()) > MEND_STRAYS_MAX:
        what = f"{MEND_STRAYS_MAX:,} holes beyond the shell of their polygon"
        return _excess(polygon, what, "MEND_STRAYS_MAX")
    if count_meetings(rings, _MOST).contacts > MEND_TOUCHES_MAX:
        what = f"{MEND_TOUCHES_MAX:,} contacts of the edges of one polygon"
        return _excess(polygon, what, "MEND_TOUCHES_MAX")
    return None


def _excess(geometry: BaseGeometry, what: str, limit: str) -> Fault:
    kind = f"invalid {geometry.geom_type}"
    message = f"{kind}, and too complex to repair: it has more than {what} ({limit})"
    return Fault("unmendable", message)


def _count_nestings(rings: NDArray[np.object_]) -> int:
    """Count the pairs of rings where the box of one lies in that of the other, up to a limit."""
    boxes = np.asarray(shapely.box(*shapely.bounds(rings).T), object)
    tree = shapely.STRtree(boxes)
    count = 0
    for start in range(0, len(rings), _QUERIES_AT_ONCE):
        near = boxes[start : start + _QUERIES_AT_ONCE]
        inner, outer = tree.query(near, predicate="covered_by")
        count += int((inner + start != outer).sum())
        if count > MEND_NESTINGS_MAX:
            break
    return count
