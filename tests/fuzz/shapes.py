"""Geometries by exact rational arithmetic, and which of them GEOS is known to misjudge.

Shapely reads encodings; every decision is the oracle's. `geos_errs` alone asks GEOS: a difference
on a pair that GEOS gets wrong by itself says nothing about the engines (see known_differences).
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyproj
import shapely
from shapely.geometry import MultiPoint, Point
from shapely.geometry.base import BaseGeometry, BaseMultipartGeometry

import oracle

if TYPE_CHECKING:
    from collections.abc import Iterable

GEOD = pyproj.Geod(ellps="WGS84")
MARGIN = 1e-6  # of a distance: nearer to it than this nothing is decided
OGC = {
    "s_intersects": (),
    "s_disjoint": ("FF*FF****",),
    "s_touches": ("FT*******", "F**T*****", "F***T****"),
    "s_within": ("T*F**F***",),
    "s_contains": ("T*****FF*",),
    "s_equals": ("T*F**FFF*",),
    "s_crosses": (),
    "s_overlaps": (),
    "covers": ("T*****FF*", "*T****FF*", "***T**FF*", "****T*FF*"),
    "coveredBy": ("T*F**F***", "*TF**F***", "**FT*F***", "**F*TF***"),
}
EGENHOFER = {
    "ehDisjoint": "disjoint",
    "ehMeet": "meets",
    "ehOverlap": "overlaps",
    "ehEquals": "equals",
    "ehInside": "inside",
    "ehCoveredBy": "coveredBy",
    "ehContains": "contains",
    "ehCovers": "covers",
}
NAMED = "intersects disjoint touches within contains equals crosses overlaps covers covered_by"


class Undecided(Exception):
    """The evaluator does not know: too near to a boundary, or beyond what it can reckon."""


def read_shape(value: Any) -> BaseGeometry | None:
    """The geometry that a value is, without empty members, or None where it is none or empty."""
    shape = decode(value)
    if shape is None or shape.is_empty:
        return None
    return drop_empty(shape)


def decode(value: Any) -> BaseGeometry | None:
    """A geometry out of each encoding of an event."""
    if isinstance(value, BaseGeometry):
        return value
    if isinstance(value, str):
        return decode_text(value)
    if isinstance(value, bytes):
        return shapely.from_wkb(value)
    if isinstance(value, dict) and ("coordinates" in value or "geometries" in value):
        return shapely.from_geojson(json.dumps(value))
    if isinstance(value, dict) and "bbox" in value:
        bounds = value["bbox"]  # of four numbers, or of six with heights
        half = len(bounds) // 2
        return box(*bounds[:2], *bounds[half : half + 2])
    return None


def decode_text(text: str) -> BaseGeometry | None:
    """A geometry out of WKT, of WKB in hexadecimal digits, or of GeoJSON."""
    for read in (shapely.from_wkt, shapely.from_wkb, shapely.from_geojson):
        with np.errstate(all="ignore"):  # digits of WKB are an endless number to who reads WKT
            shape: BaseGeometry | None = read(text, on_invalid="ignore")
        if shape is not None:
            return shape
    return None


def drop_empty(shape: BaseGeometry) -> BaseGeometry:
    """The same geometry, flat in coordinates, with nothing empty in it."""
    shape = shapely.force_2d(shape)
    if not isinstance(shape, BaseMultipartGeometry):
        return shape
    kind: Any = type(shape)
    flat: BaseGeometry = kind([drop_empty(part) for part in shape.geoms if not part.is_empty])
    return flat


def box(west: float, south: float, east: float, north: float) -> BaseGeometry:
    """The rectangle of these bounds, or both parts of one across 180°; flat, a line or a point."""
    if west > east:
        return shapely.union_all([box(west, south, 180, north), box(-180, south, east, north)])
    if west < east and south < north:
        return shapely.box(west, south, east, north)
    if (west, south) == (east, north):
        return shapely.Point(west, south)
    return shapely.LineString([(west, south), (east, north)])


def dimension(shape: BaseGeometry) -> int:
    """The greatest dimension of a member."""
    return max(int(shapely.get_dimensions(member)) for member in oracle.members(shape))


def is_area(shape: BaseGeometry) -> bool:
    """Whether all members are polygons."""
    return all(shapely.get_dimensions(member) == 2 for member in oracle.members(shape))


@lru_cache(maxsize=100_000)
def matrix_of(a: bytes, b: bytes) -> str:
    """The true DE-9IM matrix of two geometries in WKB."""
    return oracle.relate(shapely.from_wkb(a), shapely.from_wkb(b))


def relation_holds(name: str, a: BaseGeometry, b: BaseGeometry) -> bool | None:
    """Whether a relation of the OGC or of Egenhofer holds; the latter only for areas."""
    if name in EGENHOFER:
        if not is_area(a) or not is_area(b):
            return None
        return egenhofer_of(matrix_of(a.wkb, b.wkb)) == EGENHOFER[name]
    matrix = matrix_of(a.wkb, b.wkb)
    if name == "s_intersects":
        return not oracle.matches(matrix, "FF*FF****")
    return any(oracle.matches(matrix, pattern) for pattern in patterns(name, a, b))


def egenhofer_of(matrix: str) -> str:
    """The one base relation that a matrix of two regions shows."""
    inside, outside, boundaries = matrix[2] == "F", matrix[6] == "F", matrix[4] != "F"
    if matrix[0] == "F":
        return "meets" if boundaries else "disjoint"
    if inside and outside:
        return "equals"
    if inside:
        return "coveredBy" if boundaries else "inside"
    if outside:
        return "covers" if boundaries else "contains"
    return "overlaps"


def patterns(name: str, a: BaseGeometry, b: BaseGeometry) -> Iterable[str]:
    """The patterns of which one must fit, by the dimensions of both."""
    of_a, of_b = dimension(a), dimension(b)
    if name == "s_crosses":
        if of_a == of_b:
            return ("0********",) if of_a == 1 else ()
        return ("T*T******",) if of_a < of_b else ("T*****T**",)
    if name == "s_overlaps":
        if of_a != of_b:
            return ()
        return ("1*T***T**",) if of_a == 1 else ("T*T***T**",)
    return OGC[name]


def pattern_fits(pattern: str, a: BaseGeometry, b: BaseGeometry) -> bool:
    """Whether two geometries relate as a pattern says."""
    return oracle.matches(matrix_of(a.wkb, b.wkb), pattern)


def is_near(a: BaseGeometry, b: BaseGeometry, metres: float) -> bool:
    """Whether points come within a distance of each other; nothing else is decided here."""
    if not all(isinstance(shape, Point | MultiPoint) for shape in (a, b)):
        raise Undecided
    starts, ends = shapely.get_coordinates(a).tolist(), shapely.get_coordinates(b).tolist()
    shortest = min(GEOD.inv(*start, *end)[2] for start in starts for end in ends)
    if metres > 0 and abs(shortest - metres) <= MARGIN * max(1.0, metres):
        raise Undecided
    return bool(shortest <= metres)


@lru_cache(maxsize=10_000)
def geos_errs(a: bytes, b: bytes) -> bool:
    """Whether GEOS misjudges a pair in any of the ways in which an engine could ask it."""
    first, second = shapely.from_wkb(a), shapely.from_wkb(b)
    return wrong_about(first, second) or wrong_about(second, first)


def wrong_about(a: BaseGeometry, b: BaseGeometry) -> bool:
    """Whether the matrix or a named predicate of GEOS is not what the oracle says."""
    try:
        if shapely.relate(a, b) != matrix_of(a.wkb, b.wkb):
            return True
        prepared = shapely.from_wkb(a.wkb)
        shapely.prepare(prepared)
        for name in NAMED.split():
            ours = {"covered_by": "coveredBy", "covers": "covers"}.get(name, f"s_{name}")
            truth = relation_holds(ours, a, b)
            ask = getattr(shapely, name)
            if bool(ask(a, b)) != truth or bool(ask(prepared, b)) != truth:
                return True
    except shapely.GEOSException:
        return True
    return False
