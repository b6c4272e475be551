"""GeoJSON geometries to WKB, without judging them.

They are written as they stand, also what GEOS would not build, such as a ring that is not
closed: whoever decodes it learns the reason and decides.
"""

import contextlib
import itertools
import math
import struct
from typing import Any

from contrada.errors import InvalidInput

WKB_CODES = {
    "Point": 1,
    "LineString": 2,
    "Polygon": 3,
    "MultiPoint": 4,
    "MultiLineString": 5,
    "MultiPolygon": 6,
    "GeometryCollection": 7,
}
PARTS = {"MultiPoint": "Point", "MultiLineString": "LineString", "MultiPolygon": "Polygon"}
Z_CODES = 1000  # what ISO WKB adds to the code of a geometry with z


def is_geometry(value: object) -> bool:
    """Whether a JSON value is a GeoJSON geometry, as far as its outermost members tell."""
    if not isinstance(value, dict) or value.get("type") not in [*WKB_CODES]:
        return False
    inside = "geometries" if value["type"] == "GeometryCollection" else "coordinates"
    return isinstance(value.get(inside), list)


def encode_geojson(geometry: Any, row: int, name: str) -> bytes:
    """ISO WKB of the GeoJSON geometry in a row of the source `name`."""
    try:
        return write_wkb(geometry)
    except (ValueError, TypeError, KeyError, OverflowError, struct.error) as fault:
        shown = str(geometry)[:80]
        raise InvalidInput(
            f"{name}: row {row} has no readable geometry: {fault}: {shown}"
        ) from fault


def write_wkb(geometry: dict[str, Any]) -> bytes:
    """ISO WKB of a geometry with the members that GeoJSON has."""
    kind = geometry["type"]
    if kind == "GeometryCollection":
        parts = [write_wkb(part) for part in geometry["geometries"]]
        return struct.pack("<BI", 1, WKB_CODES[kind]) + _list(parts)
    return _encode_kind(kind, geometry["coordinates"], _dimension(geometry["coordinates"]))


def _encode_kind(kind: str, inside: list[Any], dimension: int) -> bytes:
    """One geometry that is no collection, all of its positions with `dimension` coordinates."""
    header = struct.pack("<BI", 1, WKB_CODES[kind] + (Z_CODES if dimension == 3 else 0))
    if kind == "Point":
        return header + _position(inside or [None] * dimension, dimension)
    if kind == "LineString":
        return header + _positions(inside, dimension)
    if kind == "Polygon":
        return header + _list([_positions(ring, dimension) for ring in inside])
    return header + _list([_encode_kind(PARTS[kind], part, dimension) for part in inside])


def _dimension(inside: Any) -> int:
    """3 where the first position has a z, otherwise 2."""
    while isinstance(inside, list) and inside and isinstance(inside[0], list):
        inside = inside[0]
    return 3 if len(inside) > 2 else 2


def _list(parts: list[bytes]) -> bytes:
    return struct.pack("<I", len(parts)) + b"".join(parts)


def _positions(positions: list[Any], dimension: int) -> bytes:
    """Positions of one line or ring; a long one is packed at once if all of it is regular."""
    with contextlib.suppress(TypeError, struct.error):
        if set(map(len, positions)) == {dimension}:
            flat = itertools.chain.from_iterable(positions)
            count = len(positions)
            return struct.pack(f"<I{count * dimension}d", count, *flat)
    return _list([_position(position, dimension) for position in positions])


def _position(position: Any, dimension: int) -> bytes:
    """The coordinates of one position; a missing z, or null for what is no number, is NaN."""
    if not isinstance(position, list) or len(position) < 2:
        raise ValueError(f"a position is a list of two or three numbers, not {position}")
    padded = [*position, None][:dimension]
    return struct.pack(f"<{dimension}d", *(math.nan if x is None else x for x in padded))
