"""CloudEvents 1.0: the envelope of an event, read and written, whatever carries it.

In *structured* mode the whole event is one JSON object. In *binary* mode the body of a message is
the data, and the attributes are headers, which each carrier spells in its own way (`ce_id` in
Kafka, `ce-id` in HTTP): it hands them over by their own names, as text.

Attributes and extensions are texts, integers and truth values; names that the specification does
not allow are read, and not written. Errors name the attribute; the carrier puts before it where
the message came from (`InvalidInput.within`).
"""

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from contrada.errors import InvalidInput
from contrada.model.envelopes import (
    CONTENT_TYPE,
    DATA,
    ENCODED,
    SPEC_VERSION,
    check_version,
    read_body,
    read_data,
)
from contrada.model.json_message import decode_json
from contrada.model.unicode import is_unicode
from contrada.showing import brief

STRUCTURED = "application/cloudevents+json"
JSON_CONTENT = "application/json"

_REQUIRED = ("id", "source", "type")
_OWN = frozenset({"specversion", *_REQUIRED, DATA, ENCODED})
_NAME = re.compile(r"[a-z0-9]+")


@dataclass(frozen=True, slots=True)
class CloudEvent:
    """An event: what names it, what it carries, and its other attributes and extensions.

    `source` and `id` together name it. `data` is a JSON value, bytes where its type is not JSON,
    or None.
    """

    id: str
    source: str
    type: str
    data: Any = None
    others: Mapping[str, str | int | bool] = field(default_factory=dict)


def is_structured(content_type: str | None) -> bool:
    """Whether a message of this type is a whole CloudEvent in JSON."""
    stated = (content_type or "").partition(";")[0].strip().lower()
    return stated == STRUCTURED


def read_structured(text: bytes) -> CloudEvent:
    """Read a message that is a whole CloudEvent."""
    return read_envelope(decode_json(text))


def read_envelope(value: Any) -> CloudEvent:
    """Read the JSON object of a CloudEvent."""
    if not isinstance(value, Mapping):
        raise InvalidInput(f"a CloudEvent is a JSON object, not {brief(value)}")
    others = {name: member for name, member in value.items() if name not in _OWN}
    names = _read_names(value)
    return CloudEvent(*names, read_data(value), _read_others(others))


def read_binary(
    attributes: Mapping[str, str], content_type: str | None, body: bytes | None
) -> CloudEvent:
    """Read a message whose body is the data: JSON, unless its type is another."""
    names = _read_names(attributes)
    others = {name: text for name, text in attributes.items() if name not in _OWN}
    if content_type is not None:
        others[CONTENT_TYPE] = content_type
    data = None if body is None else read_body(body, content_type)
    return CloudEvent(*names, data, _read_others(others))


def write_structured(event: CloudEvent) -> bytes:
    """Write a whole CloudEvent as JSON; numbers that are not finite are refused."""
    for name in event.others:
        if name in _OWN or not _NAME.fullmatch(name):
            raise InvalidInput(f"a CloudEvent cannot have an attribute {name!r}: a-z and 0-9 only")
    members: dict[str, Any] = {"specversion": SPEC_VERSION}
    members |= {name: getattr(event, name) for name in _REQUIRED} | dict(event.others)
    _read_names(members)
    if isinstance(event.data, bytes):
        members[ENCODED] = base64.b64encode(event.data).decode()
    elif event.data is not None:
        members[DATA] = event.data
    try:
        return _dump(members).encode()
    except (ValueError, TypeError, RecursionError) as fault:
        raise InvalidInput(f"the data of a CloudEvent cannot be written as JSON: {fault}") from None


def frame_texts(source: str, type: str) -> tuple[str, str, str]:
    """Return what stands before the id, between id and data, and after the data.

    With an id and data that are JSON texts they make the same event as `write_structured` does,
    for those who write very many.
    """
    head = _dump({"specversion": SPEC_VERSION})[:-1]
    rest = _dump({"source": source, "type": type, CONTENT_TYPE: JSON_CONTENT})[1:-1]
    return f'{head},"id":', f',{rest},"{DATA}":', "}"


def _dump(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _read_names(members: Mapping[str, Any]) -> tuple[str, str, str]:
    """Read what every CloudEvent has."""
    check_version(members)
    texts = []
    for name in _REQUIRED:
        text = members.get(name)
        if not isinstance(text, str) or not text or not is_unicode(text):
            raise InvalidInput(
                f'"{name}" of a CloudEvent is a text that is not empty: {brief(text)}'
            )
        texts.append(text)
    return texts[0], texts[1], texts[2]


def _read_others(members: Mapping[str, Any]) -> dict[str, str | int | bool]:
    """Read optional attributes and extensions; null is as good as absent."""
    for name, value in members.items():
        if not isinstance(value, str | int | None) or not is_unicode(str(value)):
            raise InvalidInput(
                f"attribute {brief(name)} of a CloudEvent is a text, an integer or a truth value, "
                f"not {brief(value)}"
            )
    return {name: value for name, value in members.items() if value is not None}
