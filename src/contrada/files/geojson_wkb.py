"""GeoJSON geometries to WKB, without judging them.

They are written as they stand, also what GEOS would not build, such as a ring that is not
closed: whoever decodes it learns the reason and decides. In place of what has no WKB at all stands
the reason, in bytes that no one takes for WKB.
"""

import contextlib
import itertools
import math
import struct
from typing import Any

import shapely
from shapely.geometry.base import BaseGeometry

from contrada.model.geometry import read_meant, tell_fault
from contrada.showing import brief

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


class _BadPosition(ValueError):
    """What stands in the place of a position is none."""


def is_geometry(value: object) -> bool:
    """Whether a JSON value is a GeoJSON geometry, judged by its outermost members."""
    if not isinstance(value, dict) or value.get("type") not in [*WKB_CODES]:
        return False
    inside = "geometries" if value["type"] == "GeometryCollection" else "coordinates"
    return isinstance(value.get(inside), list)


def encode_geojson(value: Any, column: str = "geometry") -> bytes | None:
    """Encode a JSON value that stands where a geometry should: a GeoJSON geometry, or a text.

    A curve is encoded as an empty one, any other value as what is wrong with it: both fail where
    they are decoded, so that one bad row does not end the file. A blank text is not a geometry.
    """
    if isinstance(value, str):
        return _encode_text(value, column)
    try:
        if isinstance(value, dict) and value.get("type") in [*CURVE_CODES]:
            return struct.pack("<BII", 1, CURVE_CODES[value["type"]], 0)
        return write_wkb(value)
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError, struct.error) as error:
        return _tell(f"cannot read the GeoJSON geometry: {_reason(value, error)}", value, column)


def _encode_text(text: str, column: str) -> bytes | None:
    read = read_meant(text)
    if isinstance(read, BaseGeometry):
        return bytes(shapely.to_wkb(read))
    return None if read is None else _tell(read.message, text, column)


def _tell(message: str, value: Any, column: str) -> bytes:
    return tell_fault(column, f"{message} (value {brief(value)})")


def _reason(value: Any, error: Exception) -> str:
    """Explain why a JSON value has no WKB."""
    if not isinstance(value, dict):
        return "it is not an object"
    kind = value.get("type")
    if not isinstance(kind, str) or kind not in WKB_CODES:
        return f"its type is {brief(kind)}"
    inside = "geometries" if kind == "GeometryCollection" else "coordinates"
    if value.get(inside) is None:
        return f'it has no "{inside}"'
    if not isinstance(value[inside], list):
        return f'its "{inside}" are {brief(value[inside])}, not a list'
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return str(error) if isinstance(error, _BadPosition) else "its members are not valid GeoJSON"


def write_wkb(geometry: dict[str, Any]) -> bytes:
    """Write a geometry with the members that GeoJSON has as ISO WKB."""
    kind = geometry["type"]
    if kind == "GeometryCollection":
        parts = [write_wkb(part) for part in geometry["geometries"]]
        return struct.pack("<BI", 1, WKB_CODES[kind]) + _list(parts)
    return _encode_kind(kind, geometry["coordinates"], _dimension(geometry["coordinates"]))


def _encode_kind(kind: str, inside: list[Any], dimension: int) -> bytes:
    """Encode a geometry that is not a collection, each position with `dimension` coordinates."""
    header = struct.pack("<BI", 1, WKB_CODES[kind] + (Z_CODES if dimension == 3 else 0))
    if kind == "Point":
        return header + _position(inside or [None] * dimension, dimension)
    if kind == "LineString":
        return header + _positions(inside, dimension)
    if kind == "Polygon":
        return header + _list([_positions(ring, dimension) for ring in inside])
    return header + _list([_encode_kind(PARTS[kind], part, dimension) for part in inside])


def _dimension(inside: Any) -> int:
    """Return 3 where the first position has a z, otherwise 2."""
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
    """Encode one position; a missing z, or null in place of a number, is NaN."""
    if not isinstance(position, list) or len(position) < 2:
        raise _BadPosition(f"a position needs at least two numbers, not {brief(position)}")
    padded = [*position, None][:dimension]
    try:
        return struct.pack(f"<{dimension}d", *(math.nan if x is None else x for x in padded))
    except (struct.error, OverflowError):
        raise _BadPosition(f"a position must consist of numbers, not {brief(position)}") from None
