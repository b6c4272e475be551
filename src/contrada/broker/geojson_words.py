"""What is wrong with a geometry of GeoJSON, in words for whoever wrote it: no library's own."""

from collections.abc import Mapping
from typing import Any

from contrada.showing import brief

_DEPTHS = {  # arrays around positions
    "Point": 0,
    "MultiPoint": 1,
    "LineString": 1,
    "MultiLineString": 2,
    "Polygon": 2,
    "MultiPolygon": 3,
}
_COLLECTION = "GeometryCollection"


_FOREIGN = "Exception: "  # what names of errors of the library that reads geometries end with


def reword(message: str, geometry: Any) -> str | None:
    """Return what is wrong with a geometry where a message has a library's words; else None."""
    is_foreign = _FOREIGN in message and isinstance(geometry, Mapping)
    return find_geojson_fault(geometry) if is_foreign else None


def find_geojson_fault(value: Any, place: str = "") -> str | None:
    """Find what is wrong with the form of a geometry, and where; None where nothing is seen."""
    if not isinstance(value, Mapping):
        return f"{_at(place)}a geometry is a JSON object, not {brief(value)}"
    kind = value.get("type")
    is_known = isinstance(kind, str) and kind in {*_DEPTHS, _COLLECTION}
    if not isinstance(kind, str) or not is_known:
        return f"{_at(place)}there is no geometry of the type {brief(kind)}"
    name = "geometries" if kind == _COLLECTION else "coordinates"
    inner = f"{place}.{name}".lstrip(".")
    members = value.get(name)
    if not isinstance(members, list):
        what = "nothing" if members is None else brief(members)
        return f"{_at(place)}a {kind} has an array {name!r}, not {what}"
    if kind != _COLLECTION:
        return _find_fault_in(members, _DEPTHS[kind], kind, inner)
    faults = (find_geojson_fault(each, f"{inner}[{i}]") for i, each in enumerate(members))
    return next((fault for fault in faults if fault is not None), None)


def _find_fault_in(value: Any, depth: int, kind: str, place: str) -> str | None:
    if not isinstance(value, list):
        return f"{_at(place)}an array is wanted, not {brief(value)}"
    if depth == 0:
        return _find_fault_of_position(value, place)
    inner = (_find_fault_in(each, depth - 1, kind, f"{place}[{i}]") for i, each in enumerate(value))
    fault = next((fault for fault in inner if fault is not None), None)
    if fault is not None or depth > 1 or not value:
        return fault
    if kind.endswith("Polygon") and (len(value) < 4 or value[0] != value[-1]):
        return f"{_at(place)}a ring has four positions or more, and the last is the first again"
    if kind.endswith("LineString") and len(value) < 2:
        return f"{_at(place)}a line has two positions or more"
    return None


def _find_fault_of_position(value: list[Any], place: str) -> str | None:
    for i, number in enumerate(value):
        if not isinstance(number, int | float) or isinstance(number, bool):
            return f"{place}[{i}]: a number is wanted, not {brief(number)}"
    return f"{_at(place)}a position has two numbers, not one" if len(value) == 1 else None


def _at(place: str) -> str:
    return f"{place}: " if place else ""
