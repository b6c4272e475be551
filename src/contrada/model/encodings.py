"""WKB, WKT and GeoJSON as GEOS reads them, checked before it sees a byte.

GEOS goes down into members without a limit of its own, whatever their type, and makes room for as
many as a count says. So the structure is followed here first, without recursion: no deeper than
`GEOMETRY_DEPTH_MAX`, and no further than there are bytes. Nor does it look at what follows the
geometry, or a null character of a text: both are refused. The coordinates themselves are not
examined. All functions raise `ValueError` with what is wrong, and `NotImplementedError` for curves.
"""

import json
import struct
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import numpy as np
import shapely
from numpy.typing import NDArray
from shapely.geometry.base import BaseGeometry

from contrada.limits import GEOMETRY_DEPTH_MAX
from contrada.model.nesting import NestedTooDeep, check_nesting

WKT_DECIMALS = 30  # more than any double needs where WKT writes it without an exponent

_UNSIGNED = (struct.Struct(">I"), struct.Struct("<I"))  # by the byte that states the order
_HAS_SRID, _HAS_Z, _HAS_M = 0x20000000, 0x80000000, 0x40000000
_POINT, _LINE, _POLYGON, _COLLECTION = 1, 2, 3, 7
_WITHOUT_MEMBERS = frozenset({_POINT, _LINE, _POLYGON})
_WITH_MEMBERS = frozenset({4, 5, 6, 7})
_CURVED = frozenset({8, 9, 10, 11, 12})
_MEMBER_BYTES_MIN = 9  # a header, and a count of nothing
_SHALLOW_BYTES_MAX = _MEMBER_BYTES_MIN * GEOMETRY_DEPTH_MAX  # too few to be nested too deep
_LEVELS_MAX = 2 * GEOMETRY_DEPTH_MAX + 8  # of a mapping: two for each collection, and of a member
_OPENING, _CLOSING = ord("("), ord(")")


def read_wkb(wkb: bytes) -> BaseGeometry:
    """Read one geometry from WKB, ISO's or PostGIS' extended one."""
    _check_wkb(wkb)
    geometry = shapely.from_wkb(wkb)
    if shapely.get_type_id(geometry) <= _POLYGON:
        _refuse_surplus(wkb, _follow(wkb))
    return geometry


def read_wkbs(values: NDArray[np.object_]) -> NDArray[np.object_]:
    """Read geometries from WKB; None stays None."""
    for wkb in values:
        if wkb is not None and (len(wkb) > _SHALLOW_BYTES_MAX or wkb[:1] > b"\x01"):
            _check_wkb(wkb)  # GEOS takes any byte for the order of the others
    geometries: NDArray[np.object_] = shapely.from_wkb(values)
    lengths = np.array([0 if wkb is None else len(wkb) for wkb in values], np.int64)
    has_members = shapely.get_type_id(geometries) > _POLYGON
    for wkb in values[has_members & (lengths <= _SHALLOW_BYTES_MAX)]:
        _check_wkb(wkb)  # Shapely takes curves in a collection, and cannot take it apart then
    for wkb in values[~has_members & (lengths > _count_bytes(geometries))]:
        _refuse_surplus(wkb, _follow(wkb))
    return geometries


def _count_bytes(geometries: NDArray[np.object_]) -> NDArray[np.int64]:
    """Count the bytes that a point, a line or a polygon takes at least; nothing takes none.

    It takes more where its header names a reference system, or a dimension is without values.
    """
    kinds = shapely.get_type_id(geometries)
    width = 8 * shapely.get_coordinate_dimension(geometries)
    count = width * shapely.get_num_coordinates(geometries) + np.where(kinds == 0, 5, 9)
    rings = ~shapely.is_empty(geometries) + shapely.get_num_interior_rings(geometries)
    count += np.where(kinds == _POLYGON, 4 * rings, 0)
    return np.where(shapely.is_missing(geometries), 0, count).astype(np.int64)


def read_wkt(text: str) -> BaseGeometry:
    """Read one geometry from WKT."""
    _check_wkt(text)
    return shapely.from_wkt(text)


def read_wkts(
    values: NDArray[np.object_], *, on_invalid: Literal["raise", "ignore"] = "raise"
) -> NDArray[np.object_]:
    """Read geometries from WKT; None stays None, and so does a bad one if it is to be ignored."""
    shallow = values.copy()
    for i, text in enumerate(values):
        try:
            _check_wkt(text or "")
        except ValueError:
            if on_invalid == "raise":
                raise
            shallow[i] = None
    geometries: NDArray[np.object_] = shapely.from_wkt(shallow, on_invalid=on_invalid)
    return geometries


def read_geojson(geometry: Mapping[str, Any]) -> BaseGeometry:
    """Read one geometry from a mapping with the members of GeoJSON."""
    _check_members(geometry)
    return shapely.from_geojson(json.dumps(geometry))


def read_interface(geometry: Mapping[str, Any]) -> BaseGeometry:
    """Read one geometry from another library's `__geo_interface__`."""
    _check_members(geometry)
    return shapely.geometry.shape(dict(geometry))


def _check_wkb(wkb: bytes) -> None:
    """Follow the members of a geometry; of those that cannot have any GEOS checks the length."""
    if not wkb:
        raise ValueError("there are no bytes where WKB is expected")
    if wkb[:1] not in (b"\x00", b"\x01"):
        raise ValueError("it is not WKB")
    if len(wkb) < _MEMBER_BYTES_MIN or _read_header(wkb[:5], 0)[0] in _WITHOUT_MEMBERS:
        return
    try:
        end = _follow(wkb)
    except struct.error:
        end = len(wkb) + 1
    if end > len(wkb):
        raise ValueError(f"its {len(wkb):,} bytes end before all the members it declares")
    _refuse_surplus(wkb, end)


def _refuse_surplus(wkb: bytes, end: int) -> None:
    """Refuse what follows a geometry: GEOS would not look at it."""
    if end < len(wkb):
        raise ValueError(f"it ends at byte {end:,}, but there are {len(wkb):,} bytes")


def _follow(wkb: bytes) -> int:
    """Find where a geometry ends; it may be beyond the end of the bytes."""
    headers: dict[bytes, tuple[int, int, int, struct.Struct]] = {}  # members share a few
    missing = [1]  # members that are still to come, of each geometry around
    at = 0
    while missing:
        if not missing[-1]:
            missing.pop()
            continue
        missing[-1] -= 1
        header = wkb[at : at + 5]
        if header not in headers:
            headers[header] = _read_header(header, at)
        code, size, width, unsigned = headers[header]
        at += size
        if code == _POINT:
            at += width
            continue
        (count,) = unsigned.unpack_from(wkb, at)
        at += 4
        if code == _LINE:
            at += count * width
        elif code == _POLYGON:
            for _ in range(count):
                at += 4 + width * unsigned.unpack_from(wkb, at)[0]
        else:
            missing.append(count)
            if len(missing) > GEOMETRY_DEPTH_MAX + 1:
                raise ValueError(_too_deep(f"byte {at}"))
    return at


def _read_header(header: bytes, at: int) -> tuple[int, int, int, struct.Struct]:
    """Return a member's code, the sizes of its header and a point, and how counts are written."""
    if header[:1] > b"\x01":
        raise ValueError(f"byte {at} gives the byte order and must be 0 or 1, not {header[0]}")
    unsigned = _UNSIGNED[header[:1] == b"\x01"]
    (kind,) = unsigned.unpack_from(header, 1)
    dimensions, code = divmod(kind & 0xFFFF, 1000)
    if code in _CURVED:
        raise NotImplementedError("curves are not supported")
    if code not in _WITHOUT_MEMBERS | _WITH_MEMBERS:
        raise ValueError(f"byte {at} begins a geometry of the unknown type {kind}")
    has_z = bool(kind & _HAS_Z) or dimensions in (1, 3)
    has_m = bool(kind & _HAS_M) or dimensions in (2, 3)
    return code, 9 if kind & _HAS_SRID else 5, 16 + 8 * has_z + 8 * has_m, unsigned


def _too_deep(place: str) -> str:
    return (
        f"it is nested more than {GEOMETRY_DEPTH_MAX} levels deep at {place} (GEOMETRY_DEPTH_MAX)"
    )


def _check_wkt(text: str) -> None:
    """Refuse what GEOS would not look at, and parentheses nested too deep: every level has one."""
    if "\0" in text:
        raise ValueError(f"it has a null character at character {text.index(chr(0))}")
    if text.count("(") <= GEOMETRY_DEPTH_MAX:
        return
    letters = np.frombuffer(text.encode("latin-1", "replace"), np.uint8)
    steps = (letters == _OPENING).astype(np.int8) - (letters == _CLOSING)
    too_deep = np.cumsum(steps, dtype=np.int32) > GEOMETRY_DEPTH_MAX
    if too_deep.any():
        raise ValueError(_too_deep(f"character {int(too_deep.argmax())}"))


def _check_members(geometry: Mapping[str, Any]) -> None:
    """Refuse what is nested too deep, in collections or else, or shared too often to write out."""
    _check_collections(geometry)
    try:
        check_nesting(geometry, _LEVELS_MAX)
    except NestedTooDeep:
        raise ValueError(
            f"its members are nested more than {GEOMETRY_DEPTH_MAX} levels deep "
            "(GEOMETRY_DEPTH_MAX)"
        ) from None


def _check_collections(geometry: Mapping[str, Any]) -> None:
    """Refuse collections nested too deep; one that stands in many places is looked at once."""
    level: Iterable[Any] = [geometry]
    for _ in range(GEOMETRY_DEPTH_MAX + 1):
        members = {
            id(member): member
            for outer in level
            if isinstance(outer, Mapping) and outer.get("type") == "GeometryCollection"
            for member in _members(outer)
        }
        if not members:
            return
        level = members.values()
    raise ValueError(_too_deep('"geometries"'))


def _members(collection: Mapping[str, Any]) -> Iterable[Any]:
    members = collection.get("geometries")
    return members if isinstance(members, list | tuple) else ()
