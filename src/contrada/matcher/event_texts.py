"""Events of a list as texts, for those that have to wait: every value comes back as what it was.

A text is JSON. What JSON lacks is an object of one member, whose name says of which kind it is.
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
from contrada.matching.event_objects import EventObjects
from contrada.model.event import Event, as_python
from contrada.model.nesting import NestedTooDeep, check_nesting

EVENT_TEXT = "contrada.event"  # the column of the texts
_MARK = "$"
_PLAIN = frozenset({float, str, bool, type(None)})


class OtherValue:
    """What stands for a value of a kind that no test can read: it is not null, and unknown."""


def check_keepable(event: Event) -> None:
    """Raise InvalidInput, with the attribute, where an event cannot be written."""
    for name in event.names():
        value = event.attributes[name]
        place = f"attribute {name!r}"
        try:
            check_nesting(value, COLUMN_DEPTH_MAX)
            if type(value) not in _PLAIN:
                json.dumps(_write(value))
        except NestedTooDeep as fault:
            raise InvalidInput(f"{fault} (COLUMN_DEPTH_MAX)", place=place) from None
        except (ValueError, OverflowError) as fault:  # shared without end, or too many digits
            raise InvalidInput(str(fault), place=place) from None


def write_events(events: EventObjects) -> pa.Array:
    """Write events, with those geometries that were mended; null what cannot be written."""
    texts: list[bytes | None] = []
    for row, event in enumerate(events.events):
        try:
            check_keepable(event)
        except InvalidInput:
            texts.append(None)
            continue
        values = {name: event.attributes[name] for name in event.names()} | dict(events.mended(row))
        written = {name: _write(value) for name, value in values.items()}
        texts.append(json.dumps(written).encode())
    return pa.array(texts, pa.large_binary())


def read_events(texts: pa.Array) -> list[Event]:
    """Return the events that `write_events` has written."""
    return [Event(_read_attributes(text)) for text in texts.to_pylist()]


def _read_attributes(text: bytes) -> dict[str, Any]:
    return {name: _read(value) for name, value in json.loads(text).items()}


def _write(value: Any) -> Any:
    value = as_python(value)
    if isinstance(value, np.ndarray):
        value = value.tolist()
    match value:
        case None | bool() | str():
            return value
        case int():
            return int(value)
        case float():
            return value if math.isfinite(value) else {f"{_MARK}float": repr(value)}
        case list() | tuple():
            return [_write(inner) for inner in value]
        case Mapping():
            pairs = [[key, _write(inner)] for key, inner in value.items() if isinstance(key, str)]
            is_plain = not any(key.startswith(_MARK) for key, _ in pairs)
            return dict(pairs) if is_plain else {f"{_MARK}map": pairs}
    for name, (kind, write, _) in _KINDS.items():
        if isinstance(value, kind):
            return {name: write(value)}
    return {f"{_MARK}other": None}


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
        case "other":
            return OtherValue()
    return _KINDS[name][2](inner)


_KINDS: dict[str, tuple[Any, Any, Any]] = {  # the class, and how it is written and read
    f"{_MARK}bytes": ((bytes, bytearray, memoryview), lambda v: bytes(v).hex(), bytes.fromhex),
    f"{_MARK}shape": (BaseGeometry, lambda v: shapely.to_wkb(v, hex=True), shapely.from_wkb),
    f"{_MARK}datetime": (datetime, datetime.isoformat, datetime.fromisoformat),
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
}
