"""Features as others send them: what is taken for one, and how it is written to be kept.

What is an event is the library's rule (`model.event`). What comes in is delivered, and so it has to
be GeoJSON that anybody can read: a geometry in text becomes an object, and attributes without a
Feature around them, which only a CloudEvent may carry, get one.
"""

import json
from typing import Any

from contrada.broker.event_bodies import EXPECTED
from contrada.broker.event_geometries import read_text_geometry
from contrada.errors import InvalidInput
from contrada.limits import (
    COLUMNS_MAX,
    EVENT_BYTES_MAX,
    EVENT_VERTICES_MAX,
    JSON_DEPTH_MAX,
)
from contrada.model.event import GEOMETRY, is_feature
from contrada.model.geometry import Fault, looks_like_wkt
from contrada.model.nesting import NestedTooDeep, check_nesting
from contrada.showing import brief

Feature = dict[str, Any]

FEATURE_ID, PROPERTIES = "id", "properties"

_COLLECTION = "FeatureCollection"
_VERTEX_BYTES_MIN = 4  # of WKT
_TOO_DEEP = f"it is nested deeper than {JSON_DEPTH_MAX} levels (JSON_DEPTH_MAX)"
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def is_ordinary(value: Any, members: int) -> bool:
    """Whether a value is a Feature that may stay as it came.

    Its text has so many members: one that is named twice, or is deeper, is looked at more closely.
    """
    if type(value) is not dict or value.get("type") != "Feature" or "specversion" in value:
        return False
    properties, geometry = value.get(PROPERTIES), value.get(GEOMETRY)
    if type(properties) is not dict or type(geometry) is not dict:
        return False
    count = len(value) + len(properties) + len(geometry)
    if count < members:
        count += sum(map(_count_members, properties.values()))
    return count == members and len(properties) <= COLUMNS_MAX


def _count_members(value: Any) -> int:
    """Count the members of all objects in a value that is not too deep."""
    if type(value) is dict:
        return len(value) + sum(map(_count_members, value.values()))
    return sum(map(_count_members, value)) if type(value) is list else 0


def as_feature(value: Any) -> Feature:
    """Return a Feature, its geometry as GeoJSON; anything else is refused."""
    if not isinstance(value, dict) or not is_feature(value):
        shown = "a FeatureCollection" if _is_collection(value) else brief(value)
        raise InvalidInput(f"it is not a Feature but {shown}; expected {EXPECTED}")
    properties = value.get(PROPERTIES)
    if not isinstance(properties, dict | None):
        raise InvalidInput(f"{PROPERTIES} must be an object, not {brief(properties)}")
    if properties and len(properties) > COLUMNS_MAX:
        raise InvalidInput(
            f"{len(properties):,} properties are more than {COLUMNS_MAX:,} (COLUMNS_MAX)"
        )
    geometry = value.get(GEOMETRY)
    if not isinstance(geometry, str):
        return value
    read = read_text_geometry(geometry)
    if isinstance(read, Fault):
        raise InvalidInput(read.message, place=GEOMETRY)
    return {**value, GEOMETRY: read}


def as_carried(data: Any) -> Any:
    """Return the Feature that a CloudEvent carries; one is made of attributes without any."""
    if not isinstance(data, dict) or _is_collection(data):
        shown = "a FeatureCollection" if _is_collection(data) else brief(data)
        raise InvalidInput(f"the CloudEvent must carry a Feature or attributes, not {shown}")
    if is_feature(data):
        return data
    properties = {name: value for name, value in data.items() if name != GEOMETRY}
    return {"type": "Feature", GEOMETRY: data.get(GEOMETRY), PROPERTIES: properties}


def _is_collection(value: Any) -> bool:
    return isinstance(value, dict) and value.get("type") == _COLLECTION and "features" in value


def write_feature(feature: Feature) -> bytes:
    """Write a Feature as JSON that anybody can read, or say why that cannot be."""
    text = write_json(feature)
    if text.count(b"[") + text.count(b"{") > JSON_DEPTH_MAX:  # with fewer it cannot be deep
        try:
            check_nesting({**feature, GEOMETRY: None}, JSON_DEPTH_MAX)
        except NestedTooDeep:
            raise InvalidInput(_TOO_DEEP) from None
    return text


def write_json(value: Any) -> bytes:
    """Write a value as JSON, or say why that cannot be."""
    try:
        return _ENCODER.encode(value).encode()
    except RecursionError:
        raise InvalidInput(_TOO_DEEP) from None
    except UnicodeEncodeError:
        raise InvalidInput("a text has half of a surrogate pair, which is not Unicode") from None
    except ValueError:
        raise InvalidInput("a number is not finite, or is beyond the largest double") from None


def check_size(text: bytes, properties: Feature) -> None:
    """Refuse an event that is too large as a whole, or has a long geometry in a property."""
    if len(text) > EVENT_BYTES_MAX:
        raise InvalidInput(
            f"its {len(text):,} bytes are more than {EVENT_BYTES_MAX:,} (EVENT_BYTES_MAX)"
        )
    if len(text) <= _VERTEX_BYTES_MIN * EVENT_VERTICES_MAX:
        return
    for name, value in properties.items():
        if isinstance(value, str) and looks_like_wkt(value):
            count = value.count(",") + 1
            if count > EVENT_VERTICES_MAX:
                raise InvalidInput(
                    f"{count:,} vertices are more than {EVENT_VERTICES_MAX:,} (EVENT_VERTICES_MAX)",
                    place=f"property {brief(name)}",
                )
