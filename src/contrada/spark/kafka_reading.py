"""Messages of Kafka as attributes, before these have types: Features, CloudEvents, WKB.

A message is read or has a fault; there is no third. What was read is what every reader of GeoJSON
here would read; the id is the Feature's own, or a property `id`, or that of the CloudEvent.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from contrada.arrays import Mask
from contrada.errors import InvalidInput
from contrada.files.cloudevents import (
    CloudEvent,
    is_structured,
    read_binary,
    read_envelope,
)
from contrada.files.json_rows import to_json_row
from contrada.model.envelopes import CONTENT_TYPE, check_carried, is_envelope
from contrada.model.event import GEOMETRY
from contrada.model.geometry import UNDECODABLE, Fault
from contrada.model.json_message import decode_json
from contrada.showing import brief
from contrada.spark.kafka_headers import HeaderTable

FORMATS = ("auto", "geojson", "cloudevents", "wkb")
TOMBSTONE = "tombstone"
ID = "id"

_ATTRIBUTE = "ce_"
_CONTENT_TYPE = "content-type"
_PLACE = "the message"
_WKB_BEGINNINGS = (0, 1)  # the order of its bytes; no text begins so


@dataclass(slots=True)
class ReadMessages:
    """What messages hold, by row: values by attribute, geometries as JSON has them, or as WKB.

    `names` has of every CloudEvent what names it, so that doubles can be told.
    """

    attributes: dict[str, list[Any]]
    geometries: list[Any] | pa.Array
    ids: list[Any]
    names: dict[int, str] = field(default_factory=dict)
    faults: dict[int, Fault] = field(default_factory=dict)

    def take_over(self, other: "ReadMessages", rows: Mask) -> None:
        """Take some rows from another reading of the same messages."""
        at = np.flatnonzero(rows).tolist()
        for name, column in self.attributes.items():
            for row in at:
                column[row] = other.attributes[name][row]
        for row in at:
            self.geometries[row] = other.geometries[row].as_py()
            self.ids[row] = other.ids[row]
            if row in other.faults:
                self.faults[row] = other.faults[row]


def read_messages(
    values: pa.Array, headers: pa.ListArray, format: str, texts: Mapping[str, bool]
) -> ReadMessages:
    """Read messages; `texts` says of each attribute, the id among them, whether its type is text.

    A header is text: what it stands for it says in JSON where the attribute has another type.
    """
    table = HeaderTable(headers)
    if format == "wkb":
        return _read_wkb(values, table, texts)
    is_wkb = _find_wkb(values) if format == "auto" else np.zeros(len(values), bool)
    if len(is_wkb) and is_wkb.all():
        return _read_wkb(values, table, texts)
    read = _JsonMessages(values, table, format, [*texts]).read(~is_wkb)
    if is_wkb.any():
        read.take_over(_read_wkb(values, table, texts), is_wkb)
    return read


def _find_wkb(values: pa.Array) -> Mask:
    """Find values that are WKB, by how they begin."""
    _, offsets, data = values.buffers()
    if data is None or not data.size:
        return np.zeros(len(values), bool)
    kind = np.int64 if pa.types.is_large_binary(values.type) else np.int32
    ends = np.frombuffer(offsets, kind)[values.offset :][: len(values) + 1]
    is_filled = (np.diff(ends) > 0) & values.is_valid().to_numpy(zero_copy_only=False)
    first = np.frombuffer(data, np.uint8)[np.minimum(ends[:-1], data.size - 1)]
    return np.asarray(is_filled & np.isin(first, _WKB_BEGINNINGS), bool)


def _read_wkb(values: pa.Array, headers: HeaderTable, texts: Mapping[str, bool]) -> ReadMessages:
    faults: dict[int, Fault] = {}
    attributes = {
        name: _read_header(headers.find(name), name, is_text, faults)
        for name, is_text in texts.items()
    }
    ids = attributes.pop(ID)
    for row in np.flatnonzero(values.is_null()).tolist():
        faults.setdefault(row, _tombstone())
    return ReadMessages(attributes, values, ids, faults=faults)


def _read_header(
    values: Sequence[bytes | None], name: str, is_text: bool, faults: dict[int, Fault]
) -> list[Any]:
    """Read a header of each message as text or JSON."""
    read: list[Any] = [None] * len(values)
    if values.count(None) == len(values):
        return read
    for row, value in enumerate(values):
        if value is None:
            continue
        try:
            text = value.decode()
            read[row] = text if is_text else _scalar(text)
        except (ValueError, RecursionError):
            faults.setdefault(
                row, Fault(UNDECODABLE, f"{brief(value)} cannot be read", f"header {name!r}")
            )
    return read


def _scalar(text: str) -> Any:
    """Read JSON; what is not JSON may be a moment or a day, of which texts are read."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def _tombstone() -> Fault:
    return Fault(TOMBSTONE, "the message has no value (a tombstone)")


class _JsonMessages:
    """Messages that are looked at one by one."""

    def __init__(
        self, values: pa.Array, headers: HeaderTable, format: str, names: list[str]
    ) -> None:
        self._values, self._format, self._names = values, format, names
        reads_envelopes = format != "geojson"
        self._binary = headers.find_prefixed(_ATTRIBUTE) if reads_envelopes else {}
        self._types = headers.find(_CONTENT_TYPE) if reads_envelopes else [None] * len(values)

    def read(self, rows: Mask) -> ReadMessages:
        """Read some of them; the others stay empty."""
        count = len(self._values)
        attributes: dict[str, list[Any]] = {
            name: [None] * count for name in self._names if name != ID
        }
        read = ReadMessages(attributes, [None] * count, [None] * count)
        wanted = np.flatnonzero(rows)
        values = self._values.take(pa.array(wanted)).to_pylist()
        for row, value in zip(wanted.tolist(), values, strict=True):
            if value is None:
                read.faults[row] = _tombstone()
                continue
            try:
                self._put(read, row, value)
            except InvalidInput as fault:
                read.faults[row] = Fault(UNDECODABLE, fault.message)
        return read

    def _put(self, read: ReadMessages, row: int, value: bytes) -> None:
        content, event = self._open(row, value)
        if event is not None:
            read.names[row] = f"{len(event.source)}:{event.source}{event.id}"
            read.ids[row] = event.id
        if isinstance(content, Mapping) and content.get("type") == "FeatureCollection":
            raise InvalidInput(f"{_PLACE} is a FeatureCollection; send each Feature as a message")
        columns = to_json_row(content, _PLACE).columns
        for name, column in read.attributes.items():
            column[row] = columns.get(name)
        read.geometries[row] = columns.get(GEOMETRY)
        if columns.get(ID) is not None:
            read.ids[row] = columns[ID]

    def _open(self, row: int, value: bytes) -> tuple[Any, CloudEvent | None]:
        """Take the data out of its envelope, if it has one."""
        event = self._find_event(row, value)
        if not isinstance(event, CloudEvent):
            return event, None
        check_carried(event.data, event.others.get(CONTENT_TYPE))
        return event.data, event

    def _find_event(self, row: int, value: bytes) -> Any:
        """Return a CloudEvent, or the JSON value that is none."""
        content_type = (self._types[row] or b"").decode(errors="replace") or None
        if row in self._binary:
            attributes = {k: _decode(k, v) for k, v in self._binary[row].items()}
            return read_binary(attributes, content_type, value)
        content = decode_json(value)
        is_event = self._format == "cloudevents" or is_structured(content_type)
        if is_event or (self._format == "auto" and is_envelope(content)):
            return read_envelope(content)
        return content


def _decode(name: str, value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise InvalidInput(f"header '{_ATTRIBUTE}{name}' is not UTF-8: {brief(value)}") from None
