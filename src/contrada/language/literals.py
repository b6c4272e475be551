"""Literals of the language, read exactly: numbers, texts, times and geometries."""

import math
from collections.abc import Mapping
from typing import Any

import shapely
from shapely.geometry.base import BaseGeometry

from contrada.errors import InvalidInput
from contrada.language.places import Place
from contrada.language.tokens import Atom
from contrada.model.expression import Literal, Value
from contrada.model.geometry import Fault, as_array, find_faults, read_geometry
from contrada.model.instant import parse_instant
from contrada.model.unicode import is_unicode
from contrada.showing import brief

OPEN_END = ".."


def is_literal_node(node: Any) -> bool:
    """Whether a node of the raw tree is a literal."""
    if isinstance(node, Mapping):
        return bool({"date", "timestamp", "bbox", "type"} & node.keys())
    return node is None or isinstance(node, bool | int | float | str | Atom)


def read_literal(place: Place) -> Literal:
    """Read a literal of either encoding."""
    node = place.node
    if isinstance(node, Atom):
        return _read_atom(node, place)
    if isinstance(node, Mapping):
        return _read_object(place)
    if isinstance(node, str):
        return Literal(_text(node, place))
    return Literal(_finite(node, place) if isinstance(node, int | float) else node)


def read_end(place: Place) -> Value:
    """Read a text as the end of an interval: a moment, or `..` where it is open."""
    text = place.node.text if isinstance(place.node, Atom) else place.node
    return OPEN_END if text in {OPEN_END, ""} else _instant(text, place)


def check_geometry(geometry: BaseGeometry | Fault | None, place: Place) -> BaseGeometry:
    """Refuse a literal geometry that could not be evaluated."""
    if geometry is None:
        place.refuse("not a geometry")
    if isinstance(geometry, Fault):
        place.refuse(geometry.message)
    if geometry.is_empty:
        place.refuse(f"empty geometry {geometry.geom_type.upper()}")
    fault = find_faults(as_array([geometry])).get(0)
    if fault is not None:
        place.refuse(fault.message)
    return geometry


def _read_atom(atom: Atom, place: Place) -> Literal:
    if atom.kind == "string":
        return Literal(_text(atom.text, place))
    if atom.kind == "number":
        return Literal(_number(atom, place))
    return Literal(check_geometry(read_geometry(atom.text), place))


def _text(text: str, place: Place) -> str:
    """Refuse half a surrogate pair, which no column of text can hold."""
    if not is_unicode(text):
        place.refuse(f"the text {brief(text)} is not valid Unicode")
    return text


def _number(atom: Atom, place: Place) -> int | float:
    sign = -1 if atom.is_negative else 1
    number = _finite(float(atom.text), place)
    return sign * (int(atom.text.lstrip("0") or "0") if atom.text.isdigit() else number)


def _finite(number: int | float, place: Place) -> int | float:
    """Refuse NaN, and what is beyond all doubles: nobody else could read it."""
    try:
        is_finite = math.isfinite(number)
    except OverflowError:
        is_finite = False
    return number if is_finite else place.refuse("the number is out of range")


def _read_object(place: Place) -> Literal:
    node = place.node
    for key in ("date", "timestamp"):
        if key in node:
            inner = place.step(key)
            text = inner.node.text if isinstance(inner.node, Atom) else inner.node
            if not isinstance(text, str):
                inner.refuse(f"a {key} must be text,")
            return Literal(_instant(text, inner))
    if "bbox" in node and "type" not in node:
        return Literal(_box(place.step("bbox")))
    return Literal(check_geometry(read_geometry(node), place))


def _instant(text: str, place: Place) -> Value:
    try:
        return parse_instant(text)
    except InvalidInput as error:
        return place.refuse(str(error))


def _box(place: Place) -> BaseGeometry:
    """Read a bounding box; one whose west is greater than its east crosses the 180° meridian."""
    if not isinstance(place.node, list) or len(place.node) not in (4, 6):
        place.refuse("a BBOX must have four or six numbers,")
    numbers = [_edge(place.step(i)) for i in range(len(place.node))]
    half = len(numbers) // 2
    (west, south), (east, north) = numbers[:2], numbers[half : half + 2]
    if south > north:
        place.refuse(f"the south of the BBOX ({south}) is greater than its north ({north})")
    if west <= east:
        return _rectangle(west, south, east, north)
    if west > 180 or east < -180:
        place.refuse(f"a BBOX from {west} to {east} does not cross the 180° meridian")
    return shapely.unary_union(
        [_rectangle(west, south, 180, north), _rectangle(-180, south, east, north)]
    )


def _edge(place: Place) -> int | float:
    value = read_literal(place).value if is_literal_node(place.node) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        place.refuse("a BBOX must have four or six numbers,")
    return value


def _rectangle(west: float, south: float, east: float, north: float) -> BaseGeometry:
    if west < east and south < north:
        return shapely.box(west, south, east, north)
    if west == east and south == north:
        return shapely.Point(west, south)
    return shapely.LineString([(west, south), (east, north)])
