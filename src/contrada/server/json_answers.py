"""Answers in JSON: what a stranger has sent can always be written back."""

import json
import math
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

JSON_TYPE = "application/json"


def write_json(value: Any) -> bytes:
    """Write a value as JSON in UTF-8.

    Half a surrogate pair is escaped, and a number that is not finite is null: JSON has neither.
    """
    try:
        return _dump(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return _dump(value, ensure_ascii=True).encode()


def answer_json(
    value: Any, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Answer a request with a value as JSON."""
    return Response(write_json(value), status, dict(headers or {}), JSON_TYPE)


def _dump(value: Any, *, ensure_ascii: bool) -> str:
    separators = (",", ":")
    try:
        return json.dumps(value, ensure_ascii=ensure_ascii, allow_nan=False, separators=separators)
    except ValueError:
        finite = _finite(value)
        return json.dumps(finite, ensure_ascii=ensure_ascii, allow_nan=False, separators=separators)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {name: _finite(member) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(member) for member in value]
    return value
