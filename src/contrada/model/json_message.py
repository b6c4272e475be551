"""One JSON text that came as a message: decoded within limits, and its place in errors.

Where the message came from is for the carrier to say, with `InvalidInput.within`.
"""

import json
from typing import Any

from contrada.errors import InvalidInput
from contrada.limits import DIGITS_MAX, MESSAGE_BYTES_MAX, MESSAGE_DEPTH_MAX
from contrada.model.nesting import NestedTooDeep, check_nesting

_NEAR_LENGTH = 20


def decode_json(text: bytes) -> Any:
    """Decode a message in UTF-8; refuse one that is too long, too deep or not JSON."""
    if len(text) > MESSAGE_BYTES_MAX:
        raise InvalidInput(
            f"a message of {len(text):,} bytes is longer than {MESSAGE_BYTES_MAX:,} "
            "(MESSAGE_BYTES_MAX)"
        )
    try:
        value = json.loads(text.decode("utf-8-sig"))
    except json.JSONDecodeError as fault:
        near = fault.doc[fault.pos : fault.pos + _NEAR_LENGTH]
        place = f"line {fault.lineno}, column {fault.colno}"
        shown = f", near {near!r}" if near else ""
        raise InvalidInput(f"not JSON at {place}: {fault.msg}{shown}") from None
    except UnicodeDecodeError as fault:
        raise InvalidInput(f"not UTF-8 at byte {fault.start}: {fault.reason}") from None
    except RecursionError:
        raise InvalidInput(_too_deep()) from None
    except ValueError:
        raise InvalidInput(f"a number has more than {DIGITS_MAX:,} digits (DIGITS_MAX)") from None
    _refuse_depth(text, value)
    return value


def _refuse_depth(text: bytes, value: Any) -> None:
    """Refuse a deep value; one with few brackets cannot be deep."""
    if text.count(b"[") + text.count(b"{") <= MESSAGE_DEPTH_MAX:
        return
    try:
        check_nesting(value, MESSAGE_DEPTH_MAX)
    except NestedTooDeep:
        raise InvalidInput(_too_deep()) from None


def _too_deep() -> str:
    return f"a value is nested deeper than {MESSAGE_DEPTH_MAX} (MESSAGE_DEPTH_MAX)"
