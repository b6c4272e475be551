"""Ids of any kind as texts of one column, in their order: integers by value, then strings.

JSON has both, and one tenant may send both: 7 and "7" are two objects. After all others come the
numbers that positions without an id are given.
"""

import json
from typing import Any

from contrada.model.subscription import Id
from contrada.model.unicode import is_unicode

_WHOLE, _TEXT, _GIVEN = "0", "1", "2"
_HALF = 2**63
_DIGITS = 20


def spell_id(value: Any) -> str | None:
    """Spell an id; None where a value cannot be one. A decimal that is whole is an integer."""
    if isinstance(value, str):
        return f"{_TEXT}{value}" if is_unicode(value) else None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not -_HALF <= value < _HALF:
        return None
    return f"{_WHOLE}{value + _HALF:0{_DIGITS}d}"


def spell_event_id(value: Any) -> str:
    """Spell what a Feature has for an id, whatever it is."""
    return spell_id(value) or f"{_TEXT}{json.dumps(value)}"


def is_given(text: str) -> bool:
    """Whether a position had no id."""
    return text.startswith(_GIVEN)


def spell_given(number: int) -> str:
    """Spell the number that a position without an id is given."""
    return f"{_GIVEN}{number:0{_DIGITS}d}"


def read_spelt(text: str) -> Id:
    """Return the id that was spelt."""
    return text[1:] if text[0] == _TEXT else int(text[1:]) - (_HALF if text[0] == _WHOLE else 0)
