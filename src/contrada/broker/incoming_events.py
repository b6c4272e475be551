"""The events of a request: read from its body, judged, and told apart from those that are bad.

Nothing here knows subscriptions. What counts as an event is the library's rule (`read_event`);
beyond it a body has to be GeoJSON, alone or in CloudEvents, since what comes in is delivered.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import shapely

from contrada.broker.feature_columns import make_rows
from contrada.errors import InvalidInput
from contrada.files.cloudevents import is_structured, read_binary, read_envelope
from contrada.limits import (
    EVENT_BYTES_MAX,
    EVENT_VERTICES_MAX,
    JSON_DEPTH_MAX,
    REQUEST_EVENTS_MAX,
)
from contrada.matching.columns import read_geometry_values
from contrada.model.envelopes import check_carried, is_envelope
from contrada.model.event import GEOMETRY, is_feature
from contrada.model.json_message import decode_json
from contrada.model.nesting import NestedTooDeep, check_nesting
from contrada.showing import brief

_LINES = frozenset(
    "application/x-ndjson application/ndjson application/jsonl application/x-jsonlines "
    "application/geo+json-seq application/json-seq".split()
)
_SEPARATOR = b"\x1e"
_PREFIX = "ce-"
_EXPECTED = (
    "a GeoJSON Feature, a FeatureCollection, newline-delimited Features "
    "(application/x-ndjson), or CloudEvents that carry Features"
)


@dataclass(frozen=True, slots=True)
class BadEvent:
    """An event of a request that cannot be taken: its place among all that came, and why."""

    index: int
    detail: str


@dataclass(frozen=True, slots=True)
class IncomingEvents:
    """Events of a request, judged as far as can be without subscriptions.

    All lists but `errors` have an entry for each good event, in the order in which they came:
    the Feature as parsed, its JSON text, the 16 bytes that make a repeat if there are any, and its
    index among all that came. `rows` has the same events as columns.
    """

    features: list[dict[str, Any]]
    texts: list[bytes]
    keys: list[bytes | None]
    indexes: list[int]
    errors: list[BadEvent]
    rows: pa.RecordBatch


@dataclass(slots=True)
class _Reading:
    """What has been read so far."""

    idempotency_key: str | None
    features: list[dict[str, Any]] = field(default_factory=list)
    attributes: list[dict[str, Any]] = field(default_factory=list)
    texts: list[bytes] = field(default_factory=list)
    keys: list[bytes | None] = field(default_factory=list)
    indexes: list[int] = field(default_factory=list)
    errors: list[BadEvent] = field(default_factory=list)

    def take(self, index: int, value: Any) -> None:
        """Take the next event in, good or bad."""
        try:
            key = self._repeat_key(index)
            if is_envelope(value):
                cloud = read_envelope(value)
                content_type = cloud.others.get("datacontenttype")
                check_carried(cloud.data, content_type)
                key = _make_key(b"cloudevent", cloud.source, cloud.id)
                value = _as_feature(cloud.data, cloud.id)
            feature, attributes = _read_feature(value)
            text = _write(feature)
        except InvalidInput as error:
            self.errors.append(BadEvent(index, error.message))
            return
        self.features.append(feature)
        self.attributes.append(attributes)
        self.texts.append(text)
        self.keys.append(key)
        self.indexes.append(index)

    def _repeat_key(self, index: int) -> bytes | None:
        if self.idempotency_key is None:
            return None
        return _make_key(b"idempotency", self.idempotency_key, str(index))

    def finish(self) -> IncomingEvents:
        """Judge the geometries."""
        values = [feature.get(GEOMETRY) for feature in self.features]
        column = read_geometry_values(values, is_meant=True)
        geometries = column.take(np.arange(len(values)))
        bad = {row: str(fault) for row, fault in column.faults.items()}
        counts = shapely.get_num_coordinates(geometries)
        for row in (counts > EVENT_VERTICES_MAX).nonzero()[0].tolist():
            bad[row] = f"its geometry has {counts[row]:,} vertices, more than EVENT_VERTICES_MAX"
        self.errors += [BadEvent(self.indexes[row], f"geometry: {bad[row]}") for row in bad]
        good = [row for row in range(len(values)) if row not in bad]
        return IncomingEvents(
            [self.features[row] for row in good],
            [self.texts[row] for row in good],
            [self.keys[row] for row in good],
            [self.indexes[row] for row in good],
            sorted(self.errors, key=lambda bad: bad.index),
            make_rows([self.attributes[row] for row in good], geometries[good]),
        )


def read_body(
    body: bytes,
    content_type: str | None,
    headers: Mapping[str, str],
    idempotency_key: str | None,
) -> IncomingEvents:
    """Read the events of a request; `InvalidInput` if the body as a whole cannot be read."""
    reading = _Reading(idempotency_key)
    for index, value in enumerate(_list_events(body, content_type, headers)):
        if index >= REQUEST_EVENTS_MAX:
            raise InvalidInput(
                f"a request has more than {REQUEST_EVENTS_MAX:,} events (REQUEST_EVENTS_MAX)"
            )
        reading.take(index, value)
    return reading.finish()


def _list_events(
    body: bytes, content_type: str | None, headers: Mapping[str, str]
) -> Iterator[Any]:
    stated = (content_type or "").partition(";")[0].strip().lower()
    attributes = {
        name.lower().removeprefix(_PREFIX): unquote(value)
        for name, value in headers.items()
        if name.lower().startswith(_PREFIX)
    }
    if attributes and not is_structured(content_type):
        cloud = read_binary(attributes, content_type, body)
        yield {
            "specversion": "1.0",
            "id": cloud.id,
            "source": cloud.source,
            "type": cloud.type,
            "data": cloud.data,
        }
    elif stated in _LINES:
        parts = body.split(_SEPARATOR if stated.endswith("-seq") else b"\n")
        for line in parts:
            if line.strip(b"\x1e \t\r\n"):
                yield decode_json(line.strip(b"\x1e \t\r\n"))
    else:
        value = decode_json(body)
        if isinstance(value, list):
            yield from value
        elif isinstance(value, dict) and value.get("type") == "FeatureCollection":
            yield from value.get("features") or []
        else:
            yield value


def _as_feature(data: Any, id: str) -> Any:
    """Make a Feature of what a CloudEvent carries."""
    if not isinstance(data, dict):
        raise InvalidInput(f"the data of the CloudEvent is not an object: {brief(data)}")
    if is_feature(data):
        return data
    rest = {name: value for name, value in data.items() if name != GEOMETRY}
    return {"type": "Feature", "id": id, "geometry": data.get(GEOMETRY), "properties": rest}


def _read_feature(value: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    if not isinstance(value, dict) or not is_feature(value):
        raise InvalidInput(f"not an event: {brief(value)}; expected is {_EXPECTED}")
    properties = value.get("properties")
    if properties is None:
        properties = {}
    if not isinstance(properties, dict):
        raise InvalidInput(f"properties must be an object, not {brief(properties)}")
    attributes = {name: each for name, each in properties.items() if name != GEOMETRY}
    if value.get("id") is not None:
        attributes["id"] = value["id"]
    return value, attributes


def _write(feature: dict[str, Any]) -> bytes:
    """Write a Feature as JSON within limits."""
    try:
        check_nesting({**feature, GEOMETRY: None}, JSON_DEPTH_MAX)
        text = json.dumps(feature, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        written = text.encode()
    except NestedTooDeep:
        raise InvalidInput(
            f"it is nested deeper than {JSON_DEPTH_MAX} levels (JSON_DEPTH_MAX)"
        ) from None
    except UnicodeEncodeError:
        raise InvalidInput("a text has half a surrogate pair") from None
    except ValueError:
        raise InvalidInput("a number is not finite") from None
    if len(written) > EVENT_BYTES_MAX:
        raise InvalidInput(f"it has {len(written):,} bytes, more than EVENT_BYTES_MAX")
    return written


def _make_key(kind: bytes, *parts: str) -> bytes:
    digest = hashlib.blake2b(digest_size=16, person=kind)
    for part in parts:
        encoded = part.encode()
        digest.update(len(encoded).to_bytes(8, "big") + encoded)
    return digest.digest()
