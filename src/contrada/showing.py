"""Values of a stranger's in messages: short, whatever they are."""

import reprlib
from collections.abc import Iterable
from itertools import islice
from typing import Any

_REPR = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = 1_000
_REPR.maxlist = _REPR.maxtuple = _REPR.maxset = _REPR.maxdict = 20
_DIGITS_BITS_MAX = 4_096  # Python refuses to write an integer of many more
_NAMES_MAX = 50


def brief(value: Any, length: int = 80) -> str:
    """Show a value as Python would write it, cut to a length, however large, deep or hostile."""
    if isinstance(value, int) and value.bit_length() > _DIGITS_BITS_MAX:
        return f"an integer of {value.bit_length():,} bits"
    try:
        return cut(_REPR.repr(value), length)
    except Exception:
        return f"a value of type {type(value).__name__}"


def brief_text(value: object, length: int = 40) -> str:
    """Show the text of a value, cut to a length; one that is nested too deep for it has none.

    Half a surrogate pair is escaped: no terminal could show it.
    """
    try:
        return cut(str(value).encode(errors="backslashreplace").decode(), length)
    except Exception:
        return brief(value, length)


def listed(names: Iterable[str]) -> str:
    """Show names as a list; of very many the first."""
    names = list(names)
    shown = ", ".join(brief_text(name, 100) for name in islice(names, _NAMES_MAX))
    return shown if len(names) <= _NAMES_MAX else f"{shown} and {len(names) - _NAMES_MAX:,} more"


def cut(text: str, length: int) -> str:
    """Shorten a text to a length; an ellipsis stands for what is cut off."""
    return text if len(text) <= length else f"{text[: length - 1]}…"
