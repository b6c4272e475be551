"""Events of any kind as texts that a broker takes: GeoJSON Features, or CloudEvents that came so.

JSON has no numbers that are not finite: NaN, which is unknown to every predicate but `IS NULL`, is
written as null, and an infinite number is refused.
"""

import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import numpy as np
import shapely
from shapely.geometry.base import BaseGeometry

from contrada.client.outgoing_rows import write_features
from contrada.errors import InvalidInput
from contrada.files import Rows, read_rows
from contrada.files.geojson_wkb import is_geometry
from contrada.files.json_rows import BARE_GEOMETRY
from contrada.model.envelopes import is_envelope
from contrada.model.event import GEOMETRY, as_python, is_feature
from contrada.model.geometry import Fault, read_geometry, read_meant
from contrada.showing import brief

_INTERFACE = "__geo_interface__"


@dataclass(frozen=True, slots=True)
class OutgoingEvent:
    """The JSON of one event; `is_envelope` where it is a CloudEvent with an id of its own."""

    text: str
    is_envelope: bool = False


def read_outgoing(events: Any) -> Iterator[OutgoingEvent]:
    """Read events: one or many mappings, Features, CloudEvents or geometries, a table or a path.

    What cannot be written as JSON is refused, with its place.
    """
    if _is_table(events):
        rows = events if isinstance(events, Rows) else read_rows(events)
        yield from map(OutgoingEvent, write_features(rows))
    elif isinstance(events, Mapping) or hasattr(events, _INTERFACE):
        yield from _read_one(events, "the event")
    elif isinstance(events, Iterable) and not isinstance(events, bytes | bytearray):
        for index, event in enumerate(events):
            if isinstance(event, OutgoingEvent):
                yield event
            else:
                yield from _read_one(event, f"event {index}")
    else:
        raise InvalidInput(
            "expected an event, a list of events, an Arrow table, a GeoDataFrame or a path, not "
            f"{type(events).__name__}"
        )


def _is_table(events: Any) -> bool:
    if isinstance(events, str | os.PathLike | Rows):
        return True
    names = ("__arrow_c_stream__", "__arrow_c_array__", "active_geometry_name")
    return any(hasattr(events, name) for name in names)


def _read_one(event: Any, place: str) -> Iterator[OutgoingEvent]:
    if not isinstance(event, Mapping) and hasattr(event, _INTERFACE):
        event = event if isinstance(event, BaseGeometry) else event.__geo_interface__
    if isinstance(event, BaseGeometry):
        event = {"type": "Feature", GEOMETRY: event, "properties": {}}
    if not isinstance(event, Mapping):
        raise InvalidInput(f"{place} is a {type(event).__name__}, not an event: {brief(event)}")
    if is_envelope(event):
        yield OutgoingEvent(write_json_text(event, place), is_envelope=True)
    elif event.get("type") == "FeatureCollection" and "features" in event:
        for index, feature in enumerate(event["features"] or ()):
            yield from _read_one(feature, f"{place}, feature {index}")
    else:
        yield OutgoingEvent(write_json_text(_as_feature(event, place), place))


def _as_feature(event: Mapping[Any, Any], place: str) -> Mapping[Any, Any]:
    if is_feature(event):
        if isinstance(event.get(GEOMETRY), Mapping | None):
            return event
        return {**event, GEOMETRY: spell_geometry(event[GEOMETRY], place)}
    if is_geometry(event) and event.keys() <= BARE_GEOMETRY:
        return {"type": "Feature", GEOMETRY: event, "properties": {}}
    rest = {name: value for name, value in event.items() if name != GEOMETRY}
    feature: dict[str, Any] = {"type": "Feature"}
    id_ = as_python(rest.get("id"))
    if isinstance(id_, str | int) and not isinstance(id_, bool):
        feature["id"] = id_
        del rest["id"]
    feature[GEOMETRY] = spell_geometry(event.get(GEOMETRY), place)
    return {**feature, "properties": rest}


def spell_geometry(value: Any, place: str) -> Any:
    """Write a geometry as a GeoJSON mapping: of Shapely, WKB, WKT or what is one already."""
    if value is None or isinstance(value, Mapping):
        return value
    if isinstance(value, BaseGeometry):
        return _map_shape(value)
    if hasattr(value, _INTERFACE):
        return value.__geo_interface__
    read = read_meant(as_python(value))
    if isinstance(read, Fault):
        raise read.as_error().within(place)
    if read is None and not isinstance(value, str):
        raise InvalidInput(f"{place}: {brief(value)} is not a geometry")
    return None if read is None else _map_shape(read)


def write_json_text(value: Any, place: str) -> str:
    """Write a value as JSON: times as ISO 8601, geometries as GeoJSON, NumPy's values as Python's.

    Raises `InvalidInput`, with the place, for what JSON cannot hold.
    """
    try:
        try:
            text = _dump(value)
        except ValueError:
            text = _dump(_finite(value))
        text.encode()
    except InvalidInput as error:
        raise error.within(place) from None
    except UnicodeEncodeError:
        raise InvalidInput("a text has half a surrogate pair", place=place) from None
    except (ValueError, TypeError, RecursionError) as fault:
        raise InvalidInput(f"cannot be written as JSON: {fault}", place=place) from None
    return text


def _dump(value: Any) -> str:
    return json.dumps(
        value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain
    )


def _finite(value: Any) -> Any:
    """Return a value with null for NaN, which JSON does not have."""
    value = as_python(value)
    if isinstance(value, float):
        if math.isinf(value):
            raise InvalidInput("an infinite number cannot be written as JSON")
        return None if math.isnan(value) else value
    if isinstance(value, Mapping):
        return {name: _finite(member) for name, member in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_finite(member) for member in value]
    return value


def _plain(value: Any) -> Any:
    """Return what JSON has for a value that it does not know."""
    plain = as_python(value)
    if plain is not value:
        return plain
    if isinstance(value, BaseGeometry):
        return _map_shape(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return _map_wkb(bytes(value))
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, np.datetime64):
        return str(value)
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if hasattr(value, _INTERFACE):
        return value.__geo_interface__
    raise InvalidInput(f"a value of type {type(value).__name__} cannot be written: {brief(value)}")


def _map_shape(shape: BaseGeometry) -> Any:
    text = shapely.to_geojson(shape)
    return None if text is None else json.loads(text)


def _map_wkb(raw: bytes) -> Any:
    read = read_geometry(raw)
    if isinstance(read, Fault):
        raise read.as_error()
    return None if read is None else _map_shape(read)
