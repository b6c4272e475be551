"""Invalid geometries made valid, where that is not too much work.

GEOS cuts a geometry where its edges cross and puts the faces together again. The time grows with
the square of the crossings, and with that of the rings that lie in each other: a ring of a few
hundred random vertices takes a minute. So both are counted first, and a geometry with more of
them than the limits allow has a fault that says so.
"""

from collections.abc import Iterator

import numpy as np
import shapely
from numpy.typing import NDArray
from shapely.geometry.base import BaseGeometry

from contrada.limits import MEND_CROSSINGS_MAX, MEND_NESTINGS_MAX, MEND_PAIRS_MAX
from contrada.model.geometry import Fault, as_array, find_faults, tidy

_PAIRS_AT_ONCE = 2**18

Edges = NDArray[np.float64]  # n × 4: x and y of both ends


def mend(geometry: BaseGeometry) -> BaseGeometry | Fault:
    """Make an invalid geometry valid and tidy; give its fault where that cannot be done."""
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
    rings = _rings(geometry)
    if _count_nestings(rings) > MEND_NESTINGS_MAX:
        what = f"{MEND_NESTINGS_MAX:,} pairs of rings that may lie in each other"
        return _excess(geometry, what, "MEND_NESTINGS_MAX")
    crossings = pairs = 0
    for left, right in _near_pairs(_edges(rings)):
        crossings += int(_do_cross(left, right).sum())
        pairs += len(left)
        if crossings > MEND_CROSSINGS_MAX:
            what = f"{MEND_CROSSINGS_MAX:,} crossings of its edges"
            return _excess(geometry, what, "MEND_CROSSINGS_MAX")
        if pairs > MEND_PAIRS_MAX:
            what = f"{MEND_PAIRS_MAX:,} pairs of edges that may cross"
            return _excess(geometry, what, "MEND_PAIRS_MAX")
    return None


def _excess(geometry: BaseGeometry, what: str, limit: str) -> Fault:
    message = f"invalid {geometry.geom_type}, and not mended: it has more than {what} ({limit})"
    return Fault("unmendable", message)


def _rings(geometry: BaseGeometry) -> NDArray[np.object_]:
    """List the rings and lines of a geometry, which has been tidied and so is nested once."""
    parts = shapely.get_parts(shapely.get_parts(geometry))
    is_polygon = shapely.get_type_id(parts) == 3
    return np.concatenate([shapely.get_rings(parts[is_polygon]), parts[~is_polygon]])


def _count_nestings(rings: NDArray[np.object_]) -> int:
    """Count the pairs of rings of which the box of one lies in that of the other, up to a limit."""
    boxes = np.asarray(shapely.box(*shapely.bounds(rings).T), object)
    tree = shapely.STRtree(boxes)
    step = max(1, _PAIRS_AT_ONCE // len(rings))
    count = 0
    for start in range(0, len(rings), step):
        inner, outer = tree.query(boxes[start : start + step], predicate="covered_by")
        count += int((inner + start != outer).sum())
        if count > MEND_NESTINGS_MAX:
            break
    return count


def _edges(rings: NDArray[np.object_]) -> Edges:
    xy, owners = shapely.get_coordinates(rings, return_index=True)
    is_one_line = owners[:-1] == owners[1:]
    return np.asarray(np.hstack([xy[:-1], xy[1:]])[is_one_line], float)


def _near_pairs(edges: Edges) -> Iterator[tuple[Edges, Edges]]:
    """Give the pairs of edges whose boxes meet, each pair once, so many at a time as fit."""
    if not len(edges):
        return
    lines = np.asarray(shapely.linestrings(edges.reshape(-1, 2, 2)), object)
    tree = shapely.STRtree(lines)
    step = max(1, _PAIRS_AT_ONCE // len(edges))
    for start in range(0, len(edges), step):
        first, second = tree.query(lines[start : start + step])
        each_once = first + start < second
        yield edges[first[each_once] + start], edges[second[each_once]]


def _do_cross(left: Edges, right: Edges) -> NDArray[np.bool_]:
    """Tell which pairs of edges cross in the inside of both, as far as doubles tell."""
    with np.errstate(all="ignore"):  # products of huge coordinates are no numbers
        return (_sides(left, right) < 0) & (_sides(right, left) < 0)


def _sides(edges: Edges, others: Edges) -> NDArray[np.float64]:
    """Multiply the sides of an edge on which the ends of another lie: negative if they differ."""
    start, along = edges[:, :2], edges[:, 2:] - edges[:, :2]
    first, last = others[:, :2] - start, others[:, 2:] - start
    return np.sign(_cross(along, first)) * np.sign(_cross(along, last))


def _cross(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0], float)
