"""Events of any kind as texts that a broker takes: GeoJSON Features, or CloudEvents that came so.

JSON has no numbers that are not finite: NaN, which is unknown to every predicate but `IS NULL`, is
written as null, and an infinite number is refused. An event that cannot be written keeps no other
from being sent: it goes on with its fault.
"""

import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import numpy as np
from shapely.geometry.base import BaseGeometry

from contrada.client.outgoing_events import OutgoingEvent
from contrada.client.outgoing_rows import write_features
from contrada.client.outgoing_shapes import INTERFACE, map_shape, map_wkb, spell_geometry
from contrada.errors import InvalidInput
from contrada.files import Rows, read_rows
from contrada.files.geojson_wkb import is_geometry
from contrada.files.json_rows import BARE_GEOMETRY
from contrada.limits import MESSAGE_DEPTH_MAX
from contrada.model.envelopes import is_envelope
from contrada.model.event import GEOMETRY, as_python, is_feature
from contrada.model.nesting import NestedTooDeep, check_nesting
from contrada.showing import brief


def read_outgoing(events: Any) -> Iterator[OutgoingEvent]:
    """Read events: one or many mappings, Features, CloudEvents or geometries, a table or a path.

    What cannot be written as JSON comes with its fault; only what cannot be events is refused.
    """
    if _is_table(events):
        yield from write_features(events if isinstance(events, Rows) else read_rows(events))
    elif isinstance(events, Mapping) or hasattr(events, INTERFACE):
        yield from _read_one(events)
    elif isinstance(events, Iterable) and not isinstance(events, bytes | bytearray):
        for event in events:
            if isinstance(event, OutgoingEvent):
                yield event
            else:
                yield from _read_one(event)
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


def _read_one(event: Any) -> Iterator[OutgoingEvent]:
    if not isinstance(event, Mapping) and hasattr(event, INTERFACE):
        event = event if isinstance(event, BaseGeometry) else event.__geo_interface__
    features = _list_features(event)
    if features is None:
        yield _write_one(event)
    else:
        for feature in features:
            yield from _read_one(feature)


def _list_features(event: Any) -> Iterable[Any] | None:
    """List the Features of a collection; None where an event is none."""
    if not isinstance(event, Mapping) or is_envelope(event) or "features" not in event:
        return None
    kind, features = event.get("type"), event["features"]
    if not isinstance(kind, str) or kind != "FeatureCollection":
        return None
    is_list = isinstance(features, Iterable) and not isinstance(features, str | bytes | Mapping)
    return features if is_list else [] if features is None else [features]


def _write_one(event: Any) -> OutgoingEvent:
    try:
        if isinstance(event, BaseGeometry):
            event = {"type": "Feature", GEOMETRY: event, "properties": {}}
        if not isinstance(event, Mapping):
            raise InvalidInput(f"it is a {type(event).__name__}, not an event: {brief(event)}")
        is_cloud = is_envelope(event)
        text = write_json_text(event if is_cloud else _as_feature(event))
        return OutgoingEvent(text, is_cloud)
    except InvalidInput as error:
        return OutgoingEvent.bad(error)


def _as_feature(event: Mapping[Any, Any]) -> Mapping[Any, Any]:
    if is_feature(event):
        if isinstance(event.get(GEOMETRY), Mapping | None):
            return event
        return {**event, GEOMETRY: spell_geometry(event[GEOMETRY])}
    if is_geometry(event) and event.keys() <= BARE_GEOMETRY:
        return {"type": "Feature", GEOMETRY: event, "properties": {}}
    rest = {name: value for name, value in event.items() if name != GEOMETRY}
    feature: dict[str, Any] = {"type": "Feature"}
    id_ = as_python(rest.get("id"))
    if isinstance(id_, str | int) and not isinstance(id_, bool):
        feature["id"] = id_
        del rest["id"]
    feature[GEOMETRY] = spell_geometry(event.get(GEOMETRY))
    return {**feature, "properties": rest}


def write_json_text(value: Any) -> str:
    """Write a value as JSON: times as ISO 8601, geometries as GeoJSON, NumPy's values as Python's.

    Raises `InvalidInput` for what JSON cannot hold.
    """
    try:
        try:
            text = _dump(value)
        except ValueError:
            text = _dump(_finite(value))
        text.encode()
    except InvalidInput:
        raise
    except UnicodeEncodeError:
        raise InvalidInput("a text has half a surrogate pair") from None
    except (ValueError, TypeError, ArithmeticError, RecursionError) as fault:
        raise InvalidInput(f"cannot be written as JSON: {fault}") from None
    _refuse_depth(text)
    return text


def _refuse_depth(text: str) -> None:
    """Refuse what a broker cannot read; a text with few brackets is not deep."""
    if text.count("[") + text.count("{") <= MESSAGE_DEPTH_MAX:
        return
    try:
        check_nesting(json.loads(text), MESSAGE_DEPTH_MAX)
    except (NestedTooDeep, RecursionError):
        most = f"{MESSAGE_DEPTH_MAX} (MESSAGE_DEPTH_MAX)"
        raise InvalidInput(f"a value is nested deeper than {most}") from None


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
        return map_shape(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return map_wkb(bytes(value))
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, np.datetime64):
        return str(value)
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, Decimal):
        if not value.is_finite():
            return _finite(math.nan if value.is_nan() else math.inf)
        return int(value) if value == value.to_integral_value() else float(value)
    if hasattr(value, INTERFACE):
        return value.__geo_interface__
    raise InvalidInput(f"a value of type {type(value).__name__} cannot be written: {brief(value)}")
