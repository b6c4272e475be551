"""GeoJSON geometries to WKB, without judging them.

They are written as they stand, also what GEOS would not build, such as a ring that is not
closed: whoever decodes it learns the reason and decides. What has no WKB at all is handed on as
its text, in bytes that no one takes for WKB.
"""

import contextlib
import itertools
import json
import math
import struct
from typing import Any

import shapely
from shapely.geometry.base import BaseGeometry

from contrada.model.geometry import read_geometry

WKB_CODES = {
    "Point": 1,
    "LineString": 2,
    "Polygon": 3,
    "MultiPoint": 4,
    "MultiLineString": 5,
    "MultiPolygon": 6,
    "GeometryCollection": 7,
}
CURVE_CODES = {
    "CircularString": 8,
    "CompoundCurve": 9,
    "CurvePolygon": 10,
    "MultiCurve": 11,
    "MultiSurface": 12,
}
PARTS = {"MultiPoint": "Point", "MultiLineString": "LineString", "MultiPolygon": "Polygon"}
Z_CODES = 1000  # what ISO WKB adds to the code of a geometry with z
NO_WKB = b"GeoJSON "  # WKB begins with 0 or 1, and the letters after the first are no code of it
TEXT_LENGTH_MAX = 1000


def is_geometry(value: object) -> bool:
    """Tell whether a JSON value is a GeoJSON geometry, as far as its outermost members tell."""
    if not isinstance(value, dict) or value.get("type") not in [*WKB_CODES]:
        return False
    inside = "geometries" if value["type"] == "GeometryCollection" else "coordinates"
    return isinstance(value.get(inside), list)


def encode_geojson(value: Any) -> bytes:
    """Encode a JSON value that stands where a geometry should: a GeoJSON geometry or WKT.

    A curve is encoded as an empty one, any other value as its text after `NO_WKB`: both fail
    where they are decoded, so that one bad row does not end the file.
    """
    if isinstance(value, str):
        geometry = read_geometry(value)
        if isinstance(geometry, BaseGeometry):
            return bytes(shapely.to_wkb(geometry))
    try:
        if isinstance(value, dict) and value.get("type") in [*CURVE_CODES]:
            return struct.pack("<BII", 1, CURVE_CODES[value["type"]], 0)
        return write_wkb(value)
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError, struct.error):
        return NO_WKB + _show(value).encode(errors="replace")


def _show(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)[:TEXT_LENGTH_MAX]
    except RecursionError:
        return "nested too deep"


def write_wkb(geometry: dict[str, Any]) -> bytes:
    """Write a geometry with the members that GeoJSON has as ISO WKB."""
    kind = geometry["type"]
    if kind == "GeometryCollection":
        parts = [write_wkb(part) for part in geometry["geometries"]]
        return struct.pack("<BI", 1, WKB_CODES[kind]) + _list(parts)
    return _encode_kind(kind, geometry["coordinates"], _dimension(geometry["coordinates"]))


def _encode_kind(kind: str, inside: list[Any], dimension: int) -> bytes:
    """Encode a geometry that is no collection, each position with `dimension` coordinates."""
    header = struct.pack("<BI", 1, WKB_CODES[kind] + (Z_CODES if dimension == 3 else 0))
    if kind == "Point":
        return header + _position(inside or [None] * dimension, dimension)
    if kind == "LineString":
        return header + _positions(inside, dimension)
    if kind == "Polygon":
        return header + _list([_positions(ring, dimension) for ring in inside])
    return header + _list([_encode_kind(PARTS[kind], part, dimension) for part in inside])


def _dimension(inside: Any) -> int:
    """Give 3 where the first position has a z, otherwise 2."""
    while isinstance(inside, list) and inside and isinstance(inside[0], list):
        inside = inside[0]
    return 3 if len(inside) > 2 else 2


def _list(parts: list[bytes]) -> bytes:
    return struct.pack("<I", len(parts)) + b"".join(parts)


def _positions(positions: list[Any], dimension: int) -> bytes:
    """Encode the positions of a line or ring; a long one is packed at once if it is regular."""
    with contextlib.suppress(TypeError, struct.error):
        if set(map(len, positions)) == {dimension}:
            flat = itertools.chain.from_iterable(positions)
            count = len(positions)
            return struct.pack(f"<I{count * dimension}d", count, *flat)
    return _list([_position(position, dimension) for position in positions])


def _position(position: Any, dimension: int) -> bytes:
    """Encode one position; a missing z, or null for what is no number, is NaN."""
    if not isinstance(position, list) or len(position) < 2:
        raise ValueError(f"a position is a list of two or three numbers, not {position}")
    padded = [*position, None][:dimension]
    return struct.pack(f"<{dimension}d", *(math.nan if x is None else x for x in padded))
