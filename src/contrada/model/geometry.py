"""Geometries as values: reading them from what users send, and telling what is wrong with one.

A geometry here is planar: z and m are dropped, a ring is a closed line, and a collection has the
meaning of the union of its members that are not empty. Everything works on arrays, since a
geometry rarely comes alone.
"""

import json
import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

import numpy as np
import shapely
from numpy.typing import NDArray
from shapely import GeometryCollection, Point
from shapely.geometry.base import BaseGeometry

from contrada.arrays import Geometries
from contrada.errors import InvalidInput, Remedy
from contrada.limits import (
    LINE_CONTACTS_MAX,
    MEND_PAIRS_MAX,
    OWN_CONTACTS_MAX,
    OWN_CROSSINGS_MAX,
    VERTEX_PAIRS_MAX,
)
from contrada.model.crossings import Meetings, count_meetings, rings_of
from contrada.model.crowding import find_crowds, have_crowded_ends
from contrada.model.encodings import read_geojson, read_interface, read_wkb, read_wkt

UNDECODABLE = "undecodable"
BAD_CELL = "bad_cell"  # the code of a fault that names its column

_WKT = re.compile(
    r"\s*(?:SRID=\d+;\s*)?(?:POINT|LINESTRING|LINEARRING|POLYGON|MULTIPOINT|MULTILINESTRING|"
    r"MULTIPOLYGON|GEOMETRYCOLLECTION|CIRCULARSTRING|COMPOUNDCURVE|CURVEPOLYGON|MULTICURVE|"
    r"MULTISURFACE)\s*(?:(?:ZM|Z|M)\s*)?(?:\(|EMPTY)",
    re.IGNORECASE,
)
_HEX_WKB = re.compile(r"0[01][0-9A-Fa-f]{16,}")
_SRID = re.compile(r"\A\s*SRID=\d+;", re.IGNORECASE)
_GEOJSON_TYPES = frozenset(
    "Point LineString Polygon MultiPoint MultiLineString MultiPolygon GeometryCollection".split()
)
_READING_ERRORS = (ValueError, TypeError, KeyError, IndexError, AttributeError)
_LINEAR_RING, _MULTI_MIN, _COLLECTION = 2, 4, 7
_MULTI: Mapping[str, Callable[[Sequence[Any]], BaseGeometry]] = {
    "MultiPoint": shapely.MultiPoint,
    "MultiLineString": shapely.MultiLineString,
    "MultiPolygon": shapely.MultiPolygon,
}
_LOOSE_TYPES = (1, 5, _COLLECTION)  # lines may cross themselves, members of a collection each other
_TANGLED_MIN = 200  # fewer coordinates cannot meet too often
_TOLD = b"\xffcontrada: "  # no WKB begins so
_AREA_TYPES = np.isin(np.arange(-1, 8), (3, 6))


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a value: a stable code, a message, and where it stands."""

    code: str
    message: str
    place: str = ""

    def __str__(self) -> str:
        return f"{self.place}: {self.message}" if self.place else self.message

    def as_error(self, remedies: Sequence[Remedy] = (), row: int | None = None) -> InvalidInput:
        """Return the error that refuses the value, of a row if that is all that names it."""
        place, code = self.place, self.code
        return InvalidInput(self.message, remedies=remedies, place=place, code=code, row=row)


def tell_fault(column: str, message: str) -> bytes:
    """Encode, in place of WKB, why there is no geometry; a reader of a file knows the bad cell."""
    return _TOLD + f"column {column!r}\0{message}".encode()


def _read_told(value: Any) -> Fault | None:
    if not (isinstance(value, bytes) and value.startswith(_TOLD)):
        return None
    place, _, message = value.removeprefix(_TOLD).decode(errors="replace").partition("\0")
    return Fault(BAD_CELL, message, place)


def looks_like_wkt(text: str) -> bool:
    """Whether a text is meant as WKT, right or wrong."""
    return _WKT.match(text) is not None


def read_geometry(value: Any) -> BaseGeometry | Fault | None:
    """Read one geometry: Shapely's, WKB, WKT or GeoJSON; None where the value is none of them.

    WKB may be in hexadecimal digits, GeoJSON a mapping or its text.
    """
    return _tidy_read(decode(value))


def read_meant(value: Any) -> BaseGeometry | Fault | None:
    """Read what stands where a geometry is meant: text that is none is a fault, unless blank."""
    return _tidy_read(decode_meant(value))


def decode(value: Any) -> BaseGeometry | Fault | None:
    """Decode what `read_geometry` reads, and leave it as it is; many are faster tidied together."""
    if isinstance(value, BaseGeometry):
        return value
    told = _read_told(value)
    if told is not None:
        return told
    try:
        with np.errstate(all="ignore"):
            return _read(value)
    except NotImplementedError:
        return Fault("curve", "curves are not supported")
    except (*_READING_ERRORS, shapely.errors.ShapelyError) as error:
        what = "GeoJSON geometry" if _may_be_geojson(value) else "geometry"
        return Fault(UNDECODABLE, f"cannot read the {what}: {_first_line(error)}")


def decode_meant(value: Any) -> BaseGeometry | Fault | None:
    """Decode what `read_meant` reads."""
    read = decode(value)
    if read is None and isinstance(value, str) and not is_blank(value):
        return Fault(UNDECODABLE, "cannot read the geometry: it is not WKT, hex WKB or GeoJSON")
    return read


def is_blank(value: Any) -> bool:
    """Whether a value is a text that is empty or all white space."""
    return isinstance(value, str) and (not value or value.isspace())


def is_plain_point(value: Any) -> TypeGuard[Point]:
    """Whether a value is a point of two finite coordinates, decided quickly."""
    return (
        isinstance(value, Point)
        and not value.is_empty
        and shapely.get_coordinate_dimension(value) == 2
        and math.isfinite(shapely.get_x(value))
        and math.isfinite(shapely.get_y(value))
    )


def _tidy_read(read: BaseGeometry | Fault | None) -> BaseGeometry | Fault | None:
    if not isinstance(read, BaseGeometry):
        return read
    tidied: BaseGeometry = tidy(as_array([read]))[0]
    return tidied


def _read(value: Any) -> BaseGeometry | None:
    if isinstance(value, bytes | bytearray | memoryview):
        return read_wkb(bytes(value))
    if isinstance(value, str):
        return _read_text(value)
    if isinstance(value, Mapping):
        return read_geojson(value) if _is_geojson(value) else None
    interface = getattr(value, "__geo_interface__", None)
    return read_interface(interface) if isinstance(interface, Mapping) else None


def _read_text(text: str) -> BaseGeometry | None:
    if len(text) % 2 == 0 and _HEX_WKB.fullmatch(text):
        return read_wkb(bytes.fromhex(text))
    if looks_like_wkt(text):
        return read_wkt(_SRID.sub("", text, 1).strip())
    if not _may_be_geojson(text):
        return None
    try:
        members = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return read_geojson(members) if _is_geojson(members) else None


def _may_be_geojson(value: Any) -> bool:
    """Whether a value is a JSON object, or a text that begins like one."""
    return isinstance(value, Mapping) or (isinstance(value, str) and value.lstrip()[:1] == "{")


def _is_geojson(members: Mapping[str, Any]) -> bool:
    kind = members.get("type")
    return isinstance(kind, str) and kind in _GEOJSON_TYPES


def _first_line(error: BaseException) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


def copied(geometry: BaseGeometry) -> BaseGeometry:
    """Return a copy that may be prepared: a caller's geometry may be in the hands of others."""
    copy: BaseGeometry = shapely.force_2d(geometry)
    return copy


def tidy(geometries: Geometries) -> Geometries:
    """Drop z, m, empty members and empty rings; write rings as lines. Missing ones stay None."""
    tidied = geometries
    flat = ~(shapely.has_z(tidied) | shapely.has_m(tidied))
    if not flat.all():
        tidied = np.where(flat, tidied, shapely.force_2d(tidied))
    kinds = shapely.get_type_id(tidied)
    odd = (kinds == _LINEAR_RING) | (kinds == _COLLECTION)
    odd |= _has_empty_hole(tidied) & ~shapely.is_empty(tidied)
    with_parts = np.flatnonzero(kinds >= _MULTI_MIN)
    if with_parts.size:
        odd[with_parts] |= _has_empty_part(tidied[with_parts])
    if odd.any():
        tidied = tidied.copy()
        for i in np.flatnonzero(odd):
            tidied[i] = _tidy_one(tidied[i])
    return tidied


def _has_empty_part(geometries: Geometries) -> NDArray[np.bool_]:
    """Which of geometries with parts have a part, or a hole of one, without a point."""
    parts, owners = shapely.get_parts(geometries, return_index=True)
    found = np.zeros(len(geometries), bool)
    found[owners[shapely.is_empty(parts) | _has_empty_hole(parts)]] = True
    return found & ~shapely.is_empty(geometries)


def _has_empty_hole(polygons: Geometries) -> NDArray[np.bool_]:
    """Which polygons have a hole without a point: GEOS does not survive `relate` of one."""
    found = np.zeros(len(polygons), bool)
    with_holes = np.flatnonzero(shapely.get_num_interior_rings(polygons) > 0)
    if not with_holes.size:
        return found
    rings, owners = shapely.get_rings(polygons[with_holes], return_index=True)
    found[with_holes[owners[shapely.is_empty(rings)]]] = True
    return found


def _tidy_one(geometry: BaseGeometry) -> BaseGeometry:
    if geometry.geom_type == "LinearRing":
        return shapely.LineString(geometry.coords)
    if geometry.geom_type == "Polygon":
        exterior, *holes = shapely.get_rings(geometry)
        return shapely.Polygon(exterior, [hole for hole in holes if not hole.is_empty])
    if geometry.geom_type != "GeometryCollection":
        parts = tidy(shapely.get_parts(geometry))
        return _MULTI[geometry.geom_type]([part for part in parts if not part.is_empty])
    members = _without_equal_areas(_members(geometry))
    return members[0] if len(members) == 1 else GeometryCollection(members)


def _members(collection: BaseGeometry) -> list[BaseGeometry]:
    """List the members that are not empty, those of collections within it too."""
    members: list[BaseGeometry] = []
    pending = [collection]
    while pending:
        part = pending.pop()
        if part.geom_type == "GeometryCollection":
            pending += reversed(shapely.get_parts(part))
        elif not part.is_empty:
            members.append(_without_repeats(part))
    return list(tidy(as_array(members)))


def _without_equal_areas(members: list[BaseGeometry]) -> list[BaseGeometry]:
    """Keep one of equal areas: GEOS takes minutes for a few hundred of them on one heap."""
    seen: dict[object, BaseGeometry] = {}
    for member in members:
        is_area = member.geom_type in {"Polygon", "MultiPolygon"}
        seen.setdefault(shapely.to_wkb(member) if is_area else id(member), member)
    return list(seen.values())


def _without_repeats(part: BaseGeometry) -> BaseGeometry:
    """Drop repeated vertices of an area: GEOS fails on touching areas of a collection with them."""
    is_area = part.geom_type in {"Polygon", "MultiPolygon"}
    if not is_area or not np.isfinite(shapely.get_coordinates(part)).all():
        return part
    try:
        with np.errstate(all="ignore"):  # squares of huge coordinates are no numbers
            return shapely.remove_repeated_points(part, 0.0)
    except shapely.GEOSException:  # squares of tiny ones are zero, and nothing would be left
        return part


def find_faults(geometries: Geometries) -> dict[int, Fault]:
    """Find the geometries that are not finite, not valid or too much to judge, by position."""
    coordinates, owners = shapely.get_coordinates(geometries, return_index=True)
    is_finite = np.isfinite(coordinates)
    infinite = [] if is_finite.all() else np.unique(owners[~is_finite.all(axis=1)]).tolist()
    with np.errstate(all="ignore"):
        crowds = find_crowds(_without(geometries, infinite))
        judged = _without(geometries, crowds)
        invalid = np.flatnonzero(~_are_valid(judged) & ~shapely.is_missing(judged))
        faults = {int(i): Fault("invalid", _reason(geometries[i])) for i in invalid}
    for i in infinite:
        faults[int(i)] = Fault("non_finite", _non_finite(coordinates[owners == i]))
    crowded = {
        i: Fault("crowded", f"too complex to validate: {what}") for i, what in crowds.items()
    }
    return {**_find_tangles(judged), **crowded, **faults}


def _without(geometries: Geometries, positions: Collection[int]) -> Geometries:
    if not len(positions):
        return geometries
    others = geometries.copy()
    others[list(positions)] = None
    return others


def _find_tangles(geometries: Geometries) -> dict[int, Fault]:
    """Find lines that cross themselves, and collections whose members meet, beyond the limits."""
    is_large = shapely.get_num_coordinates(geometries) > _TANGLED_MIN
    if not is_large.any():
        return {}
    is_loose = np.isin(shapely.get_type_id(geometries), _LOOSE_TYPES)
    found = {int(i): _find_tangle(geometries[i]) for i in np.flatnonzero(is_large & is_loose)}
    return {i: Fault("tangled", what) for i, what in found.items() if what is not None}


def _find_tangle(geometry: BaseGeometry) -> str | None:
    rings = rings_of(geometry)
    is_collection = shapely.get_type_id(geometry) == _COLLECTION
    if is_collection:
        contacts_max, limit = OWN_CONTACTS_MAX, "OWN_CONTACTS_MAX"
    else:
        contacts_max = max(LINE_CONTACTS_MAX, 10 * int(shapely.get_num_coordinates(geometry)))
        limit = "LINE_CONTACTS_MAX"
        if have_crowded_ends(rings):
            return f"more than {VERTEX_PAIRS_MAX:,} pairs of edges share an end (VERTEX_PAIRS_MAX)"
    found = count_meetings(rings, Meetings(OWN_CROSSINGS_MAX, contacts_max, MEND_PAIRS_MAX))
    if found.crossings > OWN_CROSSINGS_MAX:
        what = f"{OWN_CROSSINGS_MAX:,} times (OWN_CROSSINGS_MAX)"
        return f"its edges cross each other more than {what}"
    if found.contacts > contacts_max:
        who = "members" if is_collection else "edges"
        return f"its {who} touch each other more than {contacts_max:,} times ({limit})"
    return None


def _are_valid(geometries: Geometries) -> NDArray[np.bool_]:
    """Which geometries are valid; those on which GEOS gives up are not."""
    try:
        return np.asarray(shapely.is_valid(geometries), bool)
    except shapely.errors.GEOSException:
        if len(geometries) == 1:
            return np.zeros(1, bool)
    return np.concatenate([_are_valid(geometries[i : i + 1]) for i in range(len(geometries))])


def _reason(geometry: BaseGeometry) -> str:
    try:
        reason = shapely.is_valid_reason(geometry)
    except shapely.errors.GEOSException as error:
        said = _first_line(error).partition(": ")[2].lower()
        return f"invalid {geometry.geom_type}: GEOS cannot judge it ({said})"
    fault, _, place = str(reason).partition("[")
    where = f" at ({place.rstrip(']').replace(' ', ', ')})" if place else ""
    return f"invalid {geometry.geom_type}: {fault.lower()}{where}"


def _non_finite(coordinates: NDArray[np.float64]) -> str:
    vertex = int(np.flatnonzero(~np.isfinite(coordinates).all(axis=1))[0])
    x, y = coordinates[vertex]
    return f"non-finite coordinate ({x}, {y}) at vertex {vertex}"


def are_areas(geometries: Geometries) -> NDArray[np.bool_]:
    """Which geometries are regions: polygons, multipolygons and collections of nothing else."""
    kinds = shapely.get_type_id(geometries)
    areas = _AREA_TYPES[kinds + 1] & ~shapely.is_empty(geometries)
    for i in np.flatnonzero((kinds == _COLLECTION) & ~shapely.is_empty(geometries)):
        areas[i] = all(
            part.geom_type in ("Polygon", "MultiPolygon")
            for part in shapely.get_parts(geometries[i])
        )
    return areas


def is_area(geometry: BaseGeometry) -> bool:
    """Whether one geometry is a region."""
    kind = shapely.get_type_id(geometry)
    if kind != _COLLECTION:
        return bool(_AREA_TYPES[kind + 1]) and not shapely.is_empty(geometry)
    return bool(are_areas(as_array([geometry]))[0])


def as_array(geometries: Sequence[BaseGeometry | None]) -> Geometries:
    """Put geometries into an object array, one to a cell."""
    array = np.empty(len(geometries), object)
    array[:] = geometries
    return array
