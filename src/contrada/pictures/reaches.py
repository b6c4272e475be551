"""The area within a distance of a geometry, to be drawn: about as true as a line is thin.

Distances are geodesic on WGS 84, as those of `dwithin` are; the matching itself does not look here.
"""

from __future__ import annotations

import numpy as np
import shapely
from numpy.typing import NDArray
from shapely.affinity import translate
from shapely.geometry.base import BaseGeometry

from contrada.language.distance import wgs84

_CORNERS = 72
_DEGREE_M = 111_320.0
_HALF_ROUND_M = 20_003_900.0  # from pole to pole
_VERTICES_MAX = 1_000
_WORLD = (-180.0, -90.0, 180.0, 90.0)


def area_within(geometry: BaseGeometry, radius_m: float) -> BaseGeometry:
    """Return all places at most `radius_m` from a geometry in longitude and latitude.

    What crosses the 180° meridian goes on at the other side.
    """
    if geometry.is_empty or not radius_m > 0:
        return geometry
    if radius_m >= _HALF_ROUND_M:
        return shapely.box(*_WORLD)
    pieces = [geometry]
    for path in _paths(geometry, radius_m / _DEGREE_M):
        discs = [_disc(x, y, radius_m) for x, y in path.tolist()]
        pieces += discs if len(discs) == 1 else map(_hull, discs[:-1], discs[1:])
    return _wrapped(shapely.union_all(pieces))


def _paths(geometry: BaseGeometry, radius_degrees: float) -> list[NDArray[np.float64]]:
    """Return points, lines and rings as places, no more of them than their areas would show."""
    tolerance = radius_degrees / 50
    while True:
        simple = shapely.simplify(geometry, tolerance)
        if shapely.get_num_coordinates(simple) <= _VERTICES_MAX:
            break
        tolerance *= 2
    paths = []
    for part in shapely.get_parts(shapely.get_parts(simple)):
        lines = shapely.get_rings(part) if part.geom_type == "Polygon" else [part]
        paths += [shapely.get_coordinates(shapely.segmentize(line, 1.0)) for line in lines]
    return paths


def _disc(x: float, y: float, radius_m: float) -> BaseGeometry:
    """Return the disc around a place; longitudes run on beyond 180° where it crosses that."""
    to_poles = [_distance_to_pole(y, pole) for pole in (-90.0, 90.0)]
    if max(to_poles) <= radius_m:
        rest = _disc(x - 180 if x > 0 else x + 180, -y, _HALF_ROUND_M - radius_m)
        return shapely.box(*_WORLD).difference(_wrapped(rest))
    azimuths = np.linspace(0, 360, _CORNERS, endpoint=False)
    ends = wgs84().fwd(np.full(_CORNERS, x), np.full(_CORNERS, y), azimuths, [radius_m] * _CORNERS)
    longitudes = x + (np.asarray(ends[0]) - x + 180) % 360 - 180
    ring = np.column_stack([longitudes, np.asarray(ends[1])])
    if min(to_poles) > radius_m:
        return shapely.Polygon(ring)
    pole = 90.0 if y > 0 else -90.0
    ring = ring[np.argsort(ring[:, 0])]
    edges = [(x - 180, ring[0, 1]), *ring.tolist(), (x + 180, ring[0, 1])]
    return shapely.Polygon([*edges, (x + 180, pole), (x - 180, pole)])


def _distance_to_pole(y: float, pole: float) -> float:
    return float(wgs84().inv(0, y, 0, pole)[2])


def _hull(one: BaseGeometry, other: BaseGeometry) -> BaseGeometry:
    return shapely.convex_hull(shapely.union(one, other))


def _wrapped(shape: BaseGeometry) -> BaseGeometry:
    """Bring what lies beyond 180° back to the other side."""
    west, _, east, _ = shape.bounds
    if west >= -180 and east <= 180:
        return shape
    turns = [turn for turn in (-360, 0, 360) if west + turn < 180 and east + turn > -180]
    return shapely.union_all([shapely.clip_by_rect(translate(shape, t), *_WORLD) for t in turns])
