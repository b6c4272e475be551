"""Events of a list as texts, for those that have to wait: what a test reads comes back as it was.

A text is JSON. What JSON lacks is an object of one member, whose name says of which kind it is.
Equal events have equal texts, whatever the order of their members.
"""

import json
import math
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import shapely
from shapely.geometry.base import BaseGeometry

from contrada.errors import InvalidInput
from contrada.limits import COLUMN_DEPTH_MAX
from contrada.model.event import GEOMETRY, Event, as_python
from contrada.model.nesting import NestedTooDeep, check_nesting

EVENT_TEXT, EVENT_OBJECT = "contrada.event", "contrada.object"
TEXT_COLUMNS = [EVENT_TEXT, GEOMETRY, EVENT_OBJECT]  # a table of positions has its times, too
_MARK = "$"
_PLAIN = frozenset({str, bool, type(None)})


class OtherValue:
    """What stands for a value that no test can read: it is not null, and unknown."""


class ShapedValue(OtherValue):
    """The same for a value of somebody's own that says which geometry it is."""

    def __init__(self, interface: Mapping[str, Any]) -> None:
        self.__geo_interface__ = interface


def are_texts(rows: pa.Table) -> bool:
    """Whether rows are events as texts, with the geometry and the object of each beside it."""
    return bool(rows.schema.names == TEXT_COLUMNS)


def write_event(event: Event, others: Mapping[str, Any] | None = None) -> bytes:
    """Write an event, with other values in place of some.

    Raises InvalidInput, with the attribute, where that cannot be.
    """
    values = {name: event.attributes[name] for name in event.names()} | dict(others or {})
    written = {}
    for name, value in values.items():
        if type(value) in _PLAIN:
            written[name] = value
            continue
        try:
            check_nesting(value, COLUMN_DEPTH_MAX)
            written[name] = _write(value)
        except NestedTooDeep as fault:
            raise InvalidInput(f"{fault} (COLUMN_DEPTH_MAX)", place=f"attribute {name!r}") from None
        except (ValueError, OverflowError) as fault:  # shared without end, or too many digits
            raise InvalidInput(str(fault), place=f"attribute {name!r}") from None
    return json.dumps(written, sort_keys=True).encode()


def read_events(texts: pa.Array) -> list[Event]:
    """Return the events that `write_event` has written."""
    return [Event(_read_attributes(text)) for text in texts.to_pylist()]


def _read_attributes(text: bytes) -> dict[str, Any]:
    return {name: _read(value) for name, value in json.loads(text).items()}


def _write(value: Any) -> Any:
    for name, (kind, write, _) in _KINDS.items():
        if isinstance(value, kind):
            return {name: write(value)}
    if isinstance(value, np.void):
        return {f"{_MARK}other": None}
    value = as_python(value)
    match value:
        case None | bool() | str():
            return value
        case int():
            str(int(value))  # raises where there are more digits than Python writes
            return int(value)
        case float():
            return float(value) if math.isfinite(value) else {f"{_MARK}float": repr(float(value))}
        case list() | tuple():
            return [_write(inner) for inner in value]
        case Mapping():
            pairs = [[str(key), _write(inner)] for key, inner in value.items() if _is_name(key)]
            is_plain = not any(key.startswith(_MARK) for key, _ in pairs)
            return dict(pairs) if is_plain else {f"{_MARK}map": sorted(pairs)}
    interface = getattr(value, "__geo_interface__", None)
    if isinstance(interface, Mapping):
        check_nesting(interface, COLUMN_DEPTH_MAX)
        return {f"{_MARK}shaped": _write(interface)}
    return {f"{_MARK}other": None}


def _is_name(key: Any) -> bool:
    return isinstance(key, str)


def _read(written: Any) -> Any:
    if isinstance(written, list):
        return [_read(inner) for inner in written]
    if not isinstance(written, dict):
        return written
    name = next(iter(written), "")
    if not name.startswith(_MARK):
        return {key: _read(inner) for key, inner in written.items()}
    inner = written[name]
    match name.removeprefix(_MARK):
        case "float":
            return float(inner)
        case "map":
            return {key: _read(value) for key, value in inner}
        case "shaped":
            return ShapedValue(_read(inner))
        case "other":
            return OtherValue()
    return _KINDS[name][2](inner)


def _write_array(array: np.ndarray[Any, Any]) -> list[Any]:
    if array.dtype.kind in "mM":
        return [array.dtype.str, list(array.shape), array.astype(np.int64).ravel().tolist()]
    if array.dtype.kind == "V":
        return ["O", list(array.shape), [{f"{_MARK}other": None}] * array.size]
    values = [_write(value) for value in array.ravel().tolist()]
    return [array.dtype.str, list(array.shape), values]


def _read_array(written: list[Any]) -> Any:
    kind, shape, values = written
    if np.dtype(kind).kind in "mM":
        return np.array(values, np.int64).view(kind).reshape(shape)
    array = np.empty(len(values), kind)
    for at, value in enumerate(values):
        array[at] = _read(value)
    return array.reshape(shape)


def _write_moment(moment: datetime) -> str | int:
    """Write a moment; one of pandas that is finer than Python's as its nanoseconds."""
    is_finer = bool(getattr(moment, "nanosecond", 0))
    return int(moment.value) if is_finer else moment.isoformat()  # type: ignore[attr-defined]


def _read_moment(written: str | int) -> datetime | np.datetime64:
    if isinstance(written, int):
        return np.datetime64(written, "ns")
    return datetime.fromisoformat(written)


_KINDS: dict[str, tuple[Any, Any, Any]] = {  # the class, and how it is written and read
    f"{_MARK}bytes": ((bytes, bytearray, memoryview), lambda v: bytes(v).hex(), bytes.fromhex),
    f"{_MARK}shape": (BaseGeometry, lambda v: shapely.to_wkb(v, hex=True), shapely.from_wkb),
    f"{_MARK}datetime": (datetime, _write_moment, _read_moment),
    f"{_MARK}date": (date, date.isoformat, date.fromisoformat),
    f"{_MARK}decimal": (Decimal, str, Decimal),
    f"{_MARK}timedelta": (
        timedelta,
        lambda v: [v.days, v.seconds, v.microseconds],
        lambda parts: timedelta(parts[0], parts[1], parts[2]),
    ),
    f"{_MARK}numpy": (
        np.datetime64 | np.timedelta64,
        lambda v: [v.dtype.str, int(v.view(np.int64))],
        lambda parts: np.array([parts[1]], np.int64).view(parts[0])[0],
    ),
    f"{_MARK}array": (np.ndarray, _write_array, _read_array),
}
