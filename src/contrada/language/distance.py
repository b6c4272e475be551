"""Geodesic distance on WGS 84 between geometries in longitude and latitude.

The shapes are the planar ones that every other relation sees (an edge is straight in longitude
and latitude); the distance between two of their points is that of the geodesic. Points and
vertices are decided to the last digit of the geodesic solution, edges to a millimetre, by
halving the pieces of edges that could still lie within the distance. Everything wraps at 180°.
"""

from functools import lru_cache
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray
from pyproj import Geod
from shapely.affinity import translate
from shapely.geometry.base import BaseGeometry

from contrada.language.values import is_number

_DEGREE_M_MAX = 111_700.0  # no degree of latitude or longitude is longer than this …
_DEGREE_M_MIN = 110_570.0  # … and no degree of latitude shorter than this
_APART_M_MAX = 20_100_000.0  # no two places are farther apart than this
_PIECE_M_MIN = 0.001
_PAIRS_MAX = 2_000_000

Pieces = NDArray[np.float64]  # n × 4: longitude and latitude of both ends


@lru_cache(maxsize=1)
def _wgs84() -> Geod:
    return Geod(ellps="WGS84")


def is_within(a: BaseGeometry | None, b: BaseGeometry | None, radius_m: Any) -> bool | None:
    """Tell whether two geometries lie within a distance of each other; None where unknown."""
    if a is None or b is None or not is_number(radius_m) or not 0 <= radius_m < np.inf:
        return None
    if not (is_on_globe(a) and is_on_globe(b)):
        return None
    metres = float(min(radius_m, _APART_M_MAX))
    return _meet(a, b) or _are_pieces_within(_pieces(a), _pieces(b), metres)


def is_on_globe(geometry: BaseGeometry) -> bool:
    """Tell whether all coordinates are longitudes and latitudes."""
    west, south, east, north = geometry.bounds
    return bool(west >= -180 and east <= 180 and south >= -90 and north <= 90)


def point_distances_m(
    x: NDArray[np.float64], y: NDArray[np.float64], x2: NDArray[np.float64], y2: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Give the geodesic distances of pairs of points."""
    return np.asarray(_wgs84().inv(x, y, x2, y2)[2], float)


def reach(geometry: BaseGeometry, radius_m: float) -> BaseGeometry:
    """Give a box, or the two halves of one that wraps, with all that may lie within a distance."""
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


def _meet(a: BaseGeometry, b: BaseGeometry) -> bool:
    return any(
        shapely.intersects(a, b if turn == 0 else translate(b, turn)) for turn in (0, 360, -360)
    )


def _pieces(geometry: BaseGeometry) -> Pieces:
    """List the edges of a geometry; a point is an edge without length."""
    rows: list[Pieces] = []
    for part in shapely.get_parts(shapely.get_parts(geometry)):
        lines = shapely.get_rings(part) if part.geom_type == "Polygon" else [part]
        for line in lines:
            xy = shapely.get_coordinates(line)
            rows.append(np.hstack([xy, xy] if len(xy) == 1 else [xy[:-1], xy[1:]]))
    return np.vstack(rows)


def _are_pieces_within(a: Pieces, b: Pieces, radius_m: float) -> bool:
    """Halve pairs of pieces until one is proved near enough, or all are proved too far."""
    left, right = np.repeat(a, len(b), axis=0), np.tile(b, (len(a), 1))
    ends = (slice(0, 2), slice(2, 4))
    if any((_distances(left[:, i], right[:, j]) <= radius_m).any() for i in ends for j in ends):
        return True
    while len(left):
        half = _half_lengths(left) + _half_lengths(right)
        middle = _distances(_middles(left), _middles(right))
        if (middle <= radius_m).any():
            return True
        open_pairs = (middle - half <= radius_m) & (half > _PIECE_M_MIN)
        if open_pairs.sum() > _PAIRS_MAX:
            nearest = np.argpartition(middle - half, _PAIRS_MAX)[:_PAIRS_MAX]
            open_pairs &= np.isin(np.arange(len(left)), nearest)
        left, right = _split_longer(left[open_pairs], right[open_pairs])
    return False


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
