"""The bodies of requests to publish: which values are events in them, and the text of each.

A value stands as it came, since to write it again takes longer than to read it; its text is cut out
without white space. Errors are of the body as a whole, or of a line of it.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import numpy as np

from contrada.errors import InvalidInput
from contrada.files.cloudevents import CloudEvent, is_structured, read_binary
from contrada.kernels.squeezing import (
    NOT_PLAIN,
    as_bytes,
    count_members,
    find_elements,
    find_members,
    squeeze,
)
from contrada.limits import JSON_DEPTH_MAX, MESSAGE_BYTES_MAX, REQUEST_EVENTS_MAX
from contrada.model.envelopes import DATA, is_envelope
from contrada.model.json_message import decode_json
from contrada.showing import brief

EXPECTED = (
    "a GeoJSON Feature, a FeatureCollection, one Feature on each line (application/x-ndjson), "
    "or CloudEvents that carry Features"
)

_LINES = frozenset(
    "application/x-ndjson application/ndjson application/jsonl application/x-jsonlines "
    "application/geo+json-seq application/json-seq".split()
)
_BATCH = "application/cloudevents-batch+json"
_JSON_WHITE = " \t\r\n"
_RECORD = "\x1e"
_BINARY_PREFIX = "ce-"
_BINARY_SIGNS = frozenset({"ce-specversion", "ce-id", "ce-source", "ce-type"})
_CUT_MIN = 8  # events: of fewer each is written again
_CUT_BYTES_MIN = 2**14
_BODY = "the body"
_COLLECTION, _FEATURES = "FeatureCollection", "features"
_MARK = b"\xef\xbb\xbf"  # of the order of bytes


@dataclass(slots=True)
class EventTexts:
    """The text of each event, without white space, and how many members all its objects have.

    A text is empty where the event has to be written again.
    """

    texts: list[bytes]
    members: list[int]

    @classmethod
    def missing(cls, count: int) -> "EventTexts":
        """Return the texts of events of which none is known."""
        return cls([b""] * count, [NOT_PLAIN] * count)


@dataclass(slots=True)
class EventBody:
    """The values that are events, or are meant so; `faults` has those that are not JSON.

    `are_clouds` says that all of them must be CloudEvents. The texts are those of Features, which
    of CloudEvents are the data.
    """

    values: list[Any]
    cut: EventTexts
    faults: dict[int, InvalidInput] = field(default_factory=dict)
    are_clouds: bool = False


def read_event_body(
    body: bytes, content_type: str | None, headers: Mapping[str, str]
) -> EventBody | CloudEvent:
    """Read a body of any type; a CloudEvent where the headers have its attributes."""
    if len(body) > MESSAGE_BYTES_MAX:
        raise InvalidInput(
            f"{len(body):,} bytes are more than {MESSAGE_BYTES_MAX:,} (MESSAGE_BYTES_MAX)",
            place=_BODY,
        )
    stated = (content_type or "").partition(";")[0].strip().lower()
    if not stated.startswith("application/cloudevents"):
        attributes = _read_headers(headers)
        if attributes is not None:
            return read_binary(attributes, content_type, body)
    if not body.strip(b" \t\r\n\x1e"):
        raise InvalidInput(f"it is empty; expected {EXPECTED}", place=_BODY)
    if stated in _LINES:
        return _read_lines(body, _RECORD if stated.endswith("-seq") else "\n")
    if stated and not stated.endswith(("/json", "+json")):
        raise InvalidInput(
            f"events do not come in the content type {brief(stated)}; expected {EXPECTED}",
            place=_BODY,
        )
    return _read_json(body, stated == _BATCH, is_structured(content_type))


def _read_headers(headers: Mapping[str, str]) -> dict[str, str] | None:
    """Read the attributes of a CloudEvent in binary mode; None without any."""
    named = {name.lower(): value for name, value in headers.items()}
    if _BINARY_SIGNS.isdisjoint(named):
        return None
    return {
        name.removeprefix(_BINARY_PREFIX): _read_header(name, value)
        for name, value in named.items()
        if name.startswith(_BINARY_PREFIX)
    }


def _read_header(name: str, value: str) -> str:
    if len(value) > 1 and value[0] == value[-1] == '"':
        value = value[1:-1].replace('\\"', '"').replace("\\\\", "\\")
    try:
        return unquote(value, errors="strict")
    except UnicodeDecodeError:
        raise InvalidInput(f"it is not UTF-8: {brief(value)}", place=f"header {name}") from None


def _read_json(body: bytes, is_batch: bool, is_cloud: bool) -> EventBody:
    try:
        value = json.loads(body.decode())
    except (ValueError, RecursionError):  # slower, and says what is wrong and where
        try:
            value = decode_json(body)
        except InvalidInput as error:
            raise error.within(_BODY) from None
    if isinstance(value, list):
        _check_count(len(value))
        return EventBody(value, _cut_elements(body, value), are_clouds=is_batch)
    if is_batch:
        raise InvalidInput(f"a batch of CloudEvents is an array, not {brief(value)}", place=_BODY)
    is_cloud = is_cloud or is_envelope(value)
    if not is_cloud and isinstance(value, dict) and _is_collection(value):
        features = value[_FEATURES]
        if not isinstance(features, list):
            raise InvalidInput(
                f'"{_FEATURES}" must be an array, not {brief(features)}', place=_BODY
            )
        _check_count(len(features))
        return EventBody(features, _cut_elements(body, features, _FEATURES))
    cut = EventTexts.missing(1)
    if len(body) >= _CUT_BYTES_MIN:
        cut = _cut_elements(b"[%b]" % body.removeprefix(_MARK), [value])
    return EventBody([value], cut, are_clouds=is_cloud)


def _is_collection(value: Mapping[str, Any]) -> bool:
    kind = value.get("type")
    return isinstance(kind, str) and kind == _COLLECTION and _FEATURES in value


def _check_count(count: int) -> None:
    if count > REQUEST_EVENTS_MAX:
        raise InvalidInput(
            f"{count:,} events are more than {REQUEST_EVENTS_MAX:,} (REQUEST_EVENTS_MAX): send "
            "them in several requests",
            place=_BODY,
        )


def _read_lines(body: bytes, separator: str) -> EventBody:
    """Read one value of each line, or of each record; blank ones do not count."""
    pieces = body.removeprefix(_MARK).split(separator.encode())
    lines = [line for line in (piece.strip(b" \t\r\n\x1e") for piece in pieces) if line]
    _check_count(len(lines))
    values: list[Any] = []
    faults = {}
    for index, line in enumerate(lines):
        try:
            values.append(json.loads(line.decode()))
        except (ValueError, RecursionError):
            try:
                values.append(decode_json(line))
            except InvalidInput as error:
                faults[index] = error
                values.append(None)
                lines[index] = b"null"
    return EventBody(values, _cut_elements(b"[%b]" % b",".join(lines), values), faults)


def _cut_elements(body: bytes, values: Sequence[Any], name: str | None = None) -> EventTexts:
    """Cut the texts of events out of an array, or of the one that a member of an object is."""
    count = len(values)
    missing = EventTexts.missing(count)
    if count < _CUT_MIN and len(body) < _CUT_BYTES_MIN:
        return missing
    squeezed = np.empty(len(body), np.uint8)
    text = squeezed[: squeeze(as_bytes(body.removeprefix(_MARK)), squeezed)]
    starts, ends = np.zeros(1, np.int64), np.full(1, len(text))
    if name is not None:
        find_members(text, as_bytes(name.encode()), starts, ends)
        if starts[0] < 0:
            return missing
    first = int(starts[0])
    starts, ends = np.zeros((2, count), np.int64)
    if find_elements(text, first, starts, ends) != count:
        return missing
    clouds = [index for index, value in enumerate(values) if is_envelope(value)]
    if clouds:
        data = starts[clouds], ends[clouds]
        find_members(text, as_bytes(DATA.encode()), *data)
        starts[clouds], ends[clouds] = data
    members = np.zeros(count, np.int64)
    count_members(text, starts, ends, JSON_DEPTH_MAX, members)
    written = text.tobytes()
    places = zip(starts.tolist(), ends.tolist(), strict=True)
    return EventTexts([written[start:end] for start, end in places], members.tolist())
