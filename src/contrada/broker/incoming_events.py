"""The events of a request: read from its body, judged, and told apart from those that are bad.

Nothing here knows subscriptions: a geometry is judged whether or not one reads it.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from contrada.broker.event_bodies import EventTexts, read_event_body
from contrada.broker.event_geometries import write_geometries_of
from contrada.broker.feature_columns import make_rows
from contrada.broker.sent_features import (
    FEATURE_ID,
    PROPERTIES,
    Feature,
    as_carried,
    as_feature,
    check_size,
    is_ordinary,
    write_feature,
    write_json,
)
from contrada.errors import InvalidInput
from contrada.files.cloudevents import CloudEvent, read_envelope
from contrada.model.envelopes import CONTENT_TYPE, check_carried, is_envelope
from contrada.model.event import GEOMETRY
from contrada.model.geometry import Fault

_KEY_BYTES = 16
_OF_CLOUD, _OF_REQUEST = b"cloudevent", b"idempotency"


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

    The id of a CloudEvent is in the Feature and its text where that has none, and, as in the
    library, is no attribute: it is not in `rows`.
    """

    features: list[dict[str, Any]]
    texts: list[bytes]
    keys: list[bytes | None]
    indexes: list[int]
    errors: list[BadEvent]
    rows: pa.RecordBatch


@dataclass(slots=True)
class _Taken:
    """The events that have been taken in so far, geometries not yet judged.

    `ids` are those that are attributes.
    """

    idempotency_key: str | None
    features: list[Feature] = field(default_factory=list)
    texts: list[bytes] = field(default_factory=list)
    keys: list[bytes | None] = field(default_factory=list)
    indexes: list[int] = field(default_factory=list)
    ids: list[Any] = field(default_factory=list)
    properties: list[Feature] = field(default_factory=list)
    errors: list[BadEvent] = field(default_factory=list)

    def take(self, index: int, value: Any, cut: EventTexts, is_cloud: bool) -> None:
        """Take one event in, or raise what is wrong with it."""
        text, members = cut.texts[index], cut.members[index]
        if is_cloud or is_envelope(value):
            self.take_cloud(index, read_envelope(value), text, members)
        elif text and is_ordinary(value, members):
            self.add(index, value, text)
        else:
            feature = as_feature(value)
            self.add(index, feature, write_feature(feature))

    def take_cloud(self, index: int, cloud: CloudEvent, text: bytes, members: int) -> None:
        """Take in what a CloudEvent carries; its id is that of a Feature without one."""
        check_carried(cloud.data, cloud.others.get(CONTENT_TYPE))
        feature = cloud.data
        if not text or not is_ordinary(feature, members):
            feature = as_feature(as_carried(feature))
            text = write_feature(feature)
        properties = feature.get(PROPERTIES) or {}
        is_named = feature.get(FEATURE_ID) is None and properties.get(FEATURE_ID) is None
        if is_named and FEATURE_ID in feature:
            feature = {**feature, FEATURE_ID: cloud.id}
            text = write_json(feature)
        elif is_named:
            feature = {FEATURE_ID: cloud.id, **feature}
            text = b'{"id":%b,%b' % (write_json(cloud.id), text[1:])
        self.add(index, feature, text, _make_key(_OF_CLOUD, cloud.source, cloud.id))
        if is_named:
            self.ids[-1] = None

    def add(self, index: int, feature: Feature, text: bytes, key: bytes | None = None) -> None:
        """Add an event that is right, but for its geometry."""
        properties = feature.get(PROPERTIES) or {}
        check_size(text, properties)
        if key is None and self.idempotency_key is not None:
            key = _make_key(_OF_REQUEST, self.idempotency_key, str(index))
        self.features.append(feature)
        self.texts.append(text)
        self.keys.append(key)
        self.indexes.append(index)
        self.ids.append(feature.get(FEATURE_ID))
        self.properties.append(properties)

    def refuse(self, index: int, detail: str) -> None:
        """Add an event that is bad."""
        self.errors.append(BadEvent(index, detail))

    def finish(self) -> IncomingEvents:
        """Judge the geometries, and make columns of the events that are good."""
        wkb, faults = write_geometries_of([feature.get(GEOMETRY) for feature in self.features])
        if faults:
            wkb = self._drop(faults, wkb)
        rows = make_rows(wkb, self.ids, self.properties)
        errors = sorted(self.errors, key=lambda error: error.index)
        return IncomingEvents(self.features, self.texts, self.keys, self.indexes, errors, rows)

    def _drop(self, faults: Mapping[int, Fault], wkb: pa.Array) -> pa.Array:
        """Count events with a bad geometry among the bad ones."""
        for row, fault in faults.items():
            self.refuse(self.indexes[row], f"{GEOMETRY}: {fault.message}")
        good = np.delete(np.arange(len(wkb)), list(faults))
        lists: tuple[list[Any], ...] = (self.features, self.texts, self.keys, self.indexes)
        for kept in (*lists, self.ids, self.properties):
            kept[:] = [kept[row] for row in good.tolist()]
        return wkb.take(pa.array(good))


def read_body(
    body: bytes,
    content_type: str | None,
    headers: Mapping[str, str],
    idempotency_key: str | None,
) -> IncomingEvents:
    """Read the events of a request; `InvalidInput` if the body as a whole cannot be read.

    GeoJSON comes as a Feature, a FeatureCollection or a Feature on each line; CloudEvents carry a
    Feature, or attributes, and come in structured, batched or binary mode.
    """
    read = read_event_body(body, content_type, headers)
    taken = _Taken(idempotency_key)
    if isinstance(read, CloudEvent):
        try:
            taken.take_cloud(0, read, b"", 0)
        except InvalidInput as error:
            taken.refuse(0, error.message)
        return taken.finish()
    for index, value in enumerate(read.values):
        try:
            if index in read.faults:
                raise read.faults[index]
            taken.take(index, value, read.cut, read.are_clouds)
        except InvalidInput as error:
            taken.refuse(index, error.message)
    return taken.finish()


def _make_key(kind: bytes, *parts: str) -> bytes:
    """Make what tells a repeat; the lengths keep the parts apart."""
    digest = hashlib.blake2b(digest_size=_KEY_BYTES, person=kind)
    for part in parts:
        encoded = part.encode()
        digest.update(len(encoded).to_bytes(8, "big") + encoded)
    return digest.digest()
