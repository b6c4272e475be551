"""Geodesic distance on WGS 84 between geometries in longitude and latitude.

The shapes are the planar ones that every other relation sees (an edge is straight in longitude
and latitude); the distance between two of their points is that of the geodesic. Points and
vertices are decided to the last digit of the geodesic solution, edges to a millimetre, by
halving the pieces of edges that could still lie within the distance. Everything wraps at 180°.
"""

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import shapely
from numpy.typing import NDArray
from shapely.affinity import translate
from shapely.geometry.base import BaseGeometry

from contrada.language.piece_pairs import find_pairs
from contrada.language.values import is_number
from contrada.limits import DISTANCE_PIECES_MAX
from contrada.model.contact import meet
from contrada.model.crossings import edges_of, rings_of

if TYPE_CHECKING:
    from pyproj import Geod

_DEGREE_M_MAX = 111_700.0  # no degree of latitude or longitude is longer than this …
_DEGREE_M_MIN = 110_570.0  # … and no degree of latitude shorter than this
_APART_M_MAX = 20_100_000.0  # no two places are farther apart than this
_PIECE_M_MIN = 0.001
_ROUNDING_M = 1e-6  # more than places in space are inexact, in doubles
_CHUNK_PAIRS = 1_024
_RADIUS_M_MIN = 6_335_000.0  # no curvature of the ellipsoid has a smaller radius …
_RADIUS_M_MAX = 6_400_000.0  # … and none a larger one
# Up to how far two places are apart, and how much the distance bends, over the radius.
_BENDS_M = np.array([15_000_000.0, 19_000_000.0, 19_700_000.0])
_BENDS = np.array([3.0, 16.0, 100.0, np.inf])
_EQUATOR_M, _ECCENTRICITY_2 = 6_378_137.0, 0.00669437999014  # WGS 84: radius; square
_GEODESIC_TO_CHORD_MAX = 1.58  # from pole to pole it is 1.573
_QUARTER_M = 9_900_000.0  # less than a quarter of the smallest circle

Pieces = NDArray[np.float64]  # n × 4: longitude and latitude of both ends


@lru_cache(maxsize=1)
def wgs84() -> "Geod":
    """The ellipsoid on which all distances are measured."""
    from pyproj import Geod  # slow to load, and few predicates need it

    return Geod(ellps="WGS84")


def is_within(a: BaseGeometry | None, b: BaseGeometry | None, radius_m: Any) -> bool | None:
    """Whether two geometries lie within a distance of each other; None where unknown."""
    if a is None or b is None or not can_be_within(a, b, radius_m):
        return None
    metres = float(min(radius_m, _APART_M_MAX))
    meets = _meet(a, b)
    is_near = True if meets else _are_pieces_within(_pieces(a), _pieces(b), metres)
    return None if meets is None and not is_near else is_near


def can_be_within(a: BaseGeometry | None, b: BaseGeometry | None, radius_m: Any) -> bool:
    """Whether the distance of two geometries can be asked for."""
    if a is None or b is None or not is_number(radius_m) or not 0 <= radius_m < np.inf:
        return False
    return is_on_globe(a) and is_on_globe(b)


def is_on_globe(geometry: BaseGeometry) -> bool:
    """Whether all coordinates are longitudes and latitudes."""
    west, south, east, north = geometry.bounds
    return bool(west >= -180 and east <= 180 and south >= -90 and north <= 90)


def point_distances_m(
    x: NDArray[np.float64], y: NDArray[np.float64], x2: NDArray[np.float64], y2: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the geodesic distances of pairs of points."""
    return np.asarray(wgs84().inv(x, y, x2, y2)[2], float)


def reach(geometry: BaseGeometry, radius_m: float) -> BaseGeometry:
    """Return a box, or two halves of one that wraps, around all that may lie within a distance."""
    west, south, east, north = geometry.bounds
    rise = radius_m / _DEGREE_M_MIN + 1e-9
    south, north = south - rise, north + rise
    if south <= -90 or north >= 90:
        return shapely.box(-180, max(south, -90), 180, min(north, 90))
    cosine = min(np.cos(np.radians(south)), np.cos(np.radians(north)))
    spread = radius_m / (_DEGREE_M_MIN * cosine) * 1.01 + 1e-9
    west, east = west - spread, east + spread
    if east - west >= 360:
        return shapely.box(-180, south, 180, north)
    parts = [shapely.box(max(west, -180), south, min(east, 180), north)]
    if west < -180:
        parts.append(shapely.box(west + 360, south, 180, north))
    if east > 180:
        parts.append(shapely.box(-180, south, east - 360, north))
    return shapely.MultiPolygon(parts) if len(parts) > 1 else parts[0]


def _meet(a: BaseGeometry, b: BaseGeometry) -> bool | None:
    """Whether two geometries have a point in common, perhaps beyond 180°; None where unknown."""
    turned = (meet(a, b if turn == 0 else translate(b, turn)) for turn in (0, 360, -360))
    is_known = True
    for meets in turned:
        if meets:
            return True
        is_known &= meets is not None
    return False if is_known else None


def _pieces(geometry: BaseGeometry) -> Pieces:
    """List the edges of a geometry; a point is an edge without length."""
    parts = shapely.get_parts(shapely.get_parts(geometry))
    points = shapely.get_coordinates(parts[shapely.get_type_id(parts) == 0])
    edges, _ = edges_of(rings_of(geometry))
    return np.vstack([np.hstack([points, points]), edges])


def _are_pieces_within(a: Pieces, b: Pieces, radius_m: float) -> bool | None:
    """Compare the pieces of two geometries, those pairs that may be within the distance.

    The straight line through the earth is shorter than the geodesic, but not by much: it decides
    most pairs for a fraction of the price. Where an edge runs round a place at nearly the distance
    there is no end to the rest: after `DISTANCE_PIECES_MAX` pairs only what is clear is decided.
    """
    places = _places_in_space(_middles(a)), _places_in_space(_middles(b))
    near_m, far_m = _chords_of(radius_m)
    left_over = DISTANCE_PIECES_MAX
    is_decided = True
    for pairs in find_pairs(places, (_half_lengths(a), _half_lengths(b)), near_m, far_m):
        if pairs.is_within:
            return True
        is_decided &= pairs.is_all
        left, right = pairs.left, pairs.right
        if left_over > len(left):
            left_over -= len(left)
            is_open = _gaps_m(a[left], b[right]) <= far_m
            left, right = left[is_open], right[is_open]
            found, left_over = _are_pairs_within(a[left], b[right], radius_m, left_over)
            if found:
                return True
            is_decided &= found is not None
        elif len(left):
            is_decided, left_over = False, 0
    return False if is_decided else None


def _chords_of(radius_m: float) -> tuple[float, float]:
    """Straight lines whose ends lie within a distance of each other for sure, and for sure not.

    A geodesic bends nowhere more than the smallest circle, and nowhere less than the largest.
    """
    if radius_m > _QUARTER_M:
        return radius_m / _GEODESIC_TO_CHORD_MAX - _ROUNDING_M, radius_m + _PIECE_M_MIN
    near, far = (
        float(2 * radius * np.sin(radius_m / (2 * radius)))
        for radius in (_RADIUS_M_MIN, _RADIUS_M_MAX)
    )
    return near - _ROUNDING_M, far + _PIECE_M_MIN


def _gaps_m(left: Pieces, right: Pieces) -> NDArray[np.float64]:
    """Lengths that no straight line from one piece to the other falls short of.

    A piece keeps near the straight line between its ends, as its curvature is bounded.
    """
    (p, q), (r, s) = (map(_places_in_space, (x[:, :2], x[:, 2:])) for x in (left, right))
    bows = [(1 + _bends(x)) * _half_lengths(x) ** 2 / (2 * _RADIUS_M_MIN) for x in (left, right)]
    return _segment_distances(p, q - p, r, s - r) - bows[0] - bows[1]


def _segment_distances(
    p: NDArray[np.float64], u: NDArray[np.float64], q: NDArray[np.float64], v: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Distances of straight pieces in space, each a beginning and the way from there to its end."""

    def dot(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray((a * b).sum(axis=1))

    def place(number: Any, length: Any) -> NDArray[np.float64]:
        """Where on a piece the nearest point is, from 0 to 1; a point has one place only."""
        share = np.divide(number, length, out=np.zeros_like(number), where=length > 0)
        return np.asarray(np.clip(share, 0, 1))

    w = p - q
    uu, uv, vv, uw, vw = dot(u, u), dot(u, v), dot(v, v), dot(u, w), dot(v, w)
    s = place(uv * vw - uw * vv, uu * vv - uv * uv)
    t = place(uv * s + vw, vv)
    s = place(uv * t - uw, uu)
    gap = w + s[:, None] * u - t[:, None] * v
    return np.sqrt(dot(gap, gap))


def _places_in_space(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return points on the ellipsoid as x, y, z from the centre of the earth, in metres."""
    longitude, latitude = np.radians(points).T
    normal = _EQUATOR_M / np.sqrt(1 - _ECCENTRICITY_2 * np.sin(latitude) ** 2)
    across = normal * np.cos(latitude)
    z = normal * (1 - _ECCENTRICITY_2) * np.sin(latitude)
    return np.stack([across * np.cos(longitude), across * np.sin(longitude), z], axis=1)


def _are_pairs_within(
    left: Pieces, right: Pieces, radius_m: float, pairs_max: int
) -> tuple[bool | None, int]:
    """Halve pairs of pieces until one is proved near enough, or all are proved too far.

    Those that may be nearest come first. Gives how many of the pairs that may be looked at are
    left, too: none, where it is unknown.
    """
    ends = (slice(0, 2), slice(2, 4))
    if any((_distances(left[:, i], right[:, j]) <= radius_m).any() for i in ends for j in ends):
        return True, pairs_max
    order = np.argsort(-_bounds(left, right)[1])  # the nearest last, where they are taken from
    starts = range(0, len(order), _CHUNK_PAIRS)
    chunks = (order[start : start + _CHUNK_PAIRS] for start in starts)
    pending = [(left[chunk], right[chunk]) for chunk in chunks]
    while pending and pairs_max > 0:
        left, right = pending.pop()
        pairs_max -= len(left)
        middle, least = _bounds(left, right)
        if (middle <= radius_m).any():
            return True, pairs_max
        is_open = (least <= radius_m) & (middle - least > _PIECE_M_MIN)
        if is_open.any():
            pending.append(_split_longer(left[is_open], right[is_open]))
    return None if pending else False, pairs_max


def _bounds(left: Pieces, right: Pieces) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the distances of the middles, and lower bounds for any two points of the pieces.

    Moving both ends of a geodesic changes its length by the cosines of the angles that it makes
    with the movements, and, to the second order, by no more than the curvatures of the ellipsoid
    (on a sphere below 2/sin(distance/R)/R, from which _BENDS follow, with some to spare) and of the
    edges themselves, which are straight in longitude and latitude (below 2 tan(latitude)/R).
    """
    p, q = _middles(left), _middles(right)
    forth, back, middle = map(np.asarray, wgs84().inv(p[:, 0], p[:, 1], q[:, 0], q[:, 1]))
    half_left, half_right = _half_lengths(left), _half_lengths(right)
    half = half_left + half_right
    slope = half_left * abs(np.cos(np.radians(forth) - _headings(left)))
    slope += half_right * abs(np.cos(np.radians(back) - _headings(right)))
    with np.errstate(invalid="ignore"):  # a point bends nothing, however far away
        bend = _BENDS[np.searchsorted(_BENDS_M, middle + half)] * half**2
    bend += _bends(left) * half_left**2 + _bends(right) * half_right**2
    return middle, middle - np.fmin(half, slope + bend / (2 * _RADIUS_M_MIN))


def _bends(pieces: Pieces) -> NDArray[np.float64]:
    """Bound the curvatures of pieces, over the radius; at a pole all but without end."""
    latitude = np.max(abs(pieces[:, 1::2]), axis=1)
    return np.asarray(2 * np.tan(np.radians(latitude)), float)


def _headings(pieces: Pieces) -> NDArray[np.float64]:
    """Return the azimuths of the pieces at their middles, in radians."""
    latitude = np.radians((pieces[:, 1] + pieces[:, 3]) / 2)
    stretch = np.cos(latitude) * (1 - _ECCENTRICITY_2 * np.sin(latitude) ** 2)
    east = (pieces[:, 2] - pieces[:, 0]) * stretch / (1 - _ECCENTRICITY_2)
    return np.asarray(np.arctan2(east, pieces[:, 3] - pieces[:, 1]), float)


def _distances(p: NDArray[np.float64], q: NDArray[np.float64]) -> NDArray[np.float64]:
    return point_distances_m(p[:, 0], p[:, 1], q[:, 0], q[:, 1])


def _middles(pieces: Pieces) -> NDArray[np.float64]:
    return np.asarray((pieces[:, :2] + pieces[:, 2:]) / 2)


def _half_lengths(pieces: Pieces) -> NDArray[np.float64]:
    """Bound half the length of each piece from above, in metres."""
    south, north = np.minimum(pieces[:, 1], pieces[:, 3]), np.maximum(pieces[:, 1], pieces[:, 3])
    nearest_equator = np.where((south <= 0) & (north >= 0), 0, np.minimum(abs(south), abs(north)))
    width = abs(pieces[:, 2] - pieces[:, 0]) * np.cos(np.radians(nearest_equator))
    return np.asarray(np.hypot(width, north - south) * (_DEGREE_M_MAX / 2), float)


def _split_longer(left: Pieces, right: Pieces) -> tuple[Pieces, Pieces]:
    swap = _half_lengths(left) < _half_lengths(right)
    longer = np.where(swap[:, None], right, left)
    other = np.where(swap[:, None], left, right)
    middle = _middles(longer)
    halves = np.vstack([np.hstack([longer[:, :2], middle]), np.hstack([middle, longer[:, 2:]])])
    return halves, np.vstack([other, other])
