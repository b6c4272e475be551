"""What counts as a CloudEvent, and what it carries: one rule for mappings and for messages.

Whoever reads whole messages also checks the other attributes of the envelope.
"""

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any

from contrada.errors import InvalidInput
from contrada.model.json_message import decode_json
from contrada.showing import brief

SPEC_VERSION = "1.0"
CONTENT_TYPE, DATA, ENCODED = "datacontenttype", "data", "data_base64"
_JSON_TYPE = re.compile(r"[^/;\s]+/(?:[^/;\s]+\+)?json\s*(?:;.*)?", re.IGNORECASE | re.DOTALL)


def is_envelope(value: Any) -> bool:
    """Whether a value is meant as a CloudEvent in structured mode, right or wrong.

    It has a `specversion`, and either an object as `data`, or a `source` and a `type` that are
    texts. An object that has an attribute `specversion` and not these is an event of its own.
    """
    if not isinstance(value, Mapping) or "specversion" not in value:
        return False
    is_named = isinstance(value.get("source"), str) and isinstance(value.get("type"), str)
    return is_named or isinstance(value.get(DATA), Mapping)


def check_version(envelope: Mapping[str, Any]) -> None:
    """Refuse another version of the specification: its data may be elsewhere."""
    version = envelope.get("specversion")
    if not isinstance(version, str) or version != SPEC_VERSION:
        raise InvalidInput(f'"specversion" is {brief(version)}: only "{SPEC_VERSION}" is read')


def read_data(envelope: Mapping[str, Any]) -> Any:
    """Read what an envelope carries: a JSON value, bytes if that is not its type, or None."""
    data, encoded = envelope.get(DATA), envelope.get(ENCODED)
    if encoded is None:
        return data
    if data is not None:
        raise InvalidInput(f'"{DATA}" and "{ENCODED}" are both there: only one can be the data')
    return read_body(_decode_base64(encoded), envelope.get(CONTENT_TYPE))


def read_body(body: bytes, content_type: Any) -> Any:
    """Decode data that came as bytes, if it is JSON, which it is unless something else is said."""
    is_json = content_type is None or _JSON_TYPE.fullmatch(str(content_type).strip()) is not None
    return decode_json(body) if is_json else body


def check_carried(data: Any, content_type: Any) -> None:
    """Refuse data that cannot be an event because it is missing, not JSON, or an envelope."""
    if data is None:
        raise InvalidInput("the CloudEvent carries no data")
    if is_envelope(data):
        raise InvalidInput("the CloudEvent carries another one: send the inner one")
    if isinstance(data, bytes):
        shown = brief(content_type)
        raise InvalidInput(f"the CloudEvent carries data that is not JSON but {shown}")


def _decode_base64(text: Any) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (TypeError, ValueError, binascii.Error):
        raise InvalidInput(f'"{ENCODED}" is not base64: {brief(text)}') from None
