"""Values of a stranger's in messages: short, whatever they are."""

from collections import deque
from collections.abc import Iterable, Mapping, Set, ValuesView
from itertools import islice
from typing import Any, TypeGuard

import numpy as np

_NESTED = (Mapping, list, tuple, Set, deque, ValuesView, np.ndarray)
_DIGITS_BITS_MAX = 4_096  # Python refuses to write an integer of many more
_LETTERS_MAX = 1_000  # of a text or of bytes
_PARTS_MAX = 200  # of a value: one list may stand in many places of another
_DEPTH_MAX = 6
_NAMES_MAX = 50
_GAP = "…"


def brief(value: Any, length: int = 80) -> str:
    """Show a value as Python would write it, cut to a length, however large, deep or hostile."""
    return cut(_Parts().write(value), length)


def brief_text(value: object, length: int = 40) -> str:
    """Show the text of a value, cut to a length, however large or deep.

    Half a surrogate pair is escaped: no terminal could show it.
    """
    if isinstance(value, _NESTED) or _is_huge(value):
        return brief(value, length)
    try:
        return cut(str(value).encode(errors="backslashreplace").decode(), length)
    except Exception:
        return brief(value, length)


class _Parts:
    """The parts of one value, as many as are written."""

    def __init__(self) -> None:
        self._left = _PARTS_MAX

    def write(self, value: Any, depth: int = 0) -> str:
        """Write a value as Python would; a part that will not be written is named by its type."""
        self._left -= 1
        if self._left < 0 or depth > _DEPTH_MAX:
            return _GAP
        try:
            return self._write(value, depth + 1)
        except Exception:
            return f"a value of type {type(value).__name__}"

    def _write(self, value: Any, depth: int) -> str:
        if _is_huge(value):
            return f"an integer of {value.bit_length():,} bits"
        if isinstance(value, str | bytes):
            return repr(value[:_LETTERS_MAX])
        if isinstance(value, Mapping):
            items = (f"{self.write(k, depth)}: {self.write(v, depth)}" for k, v in value.items())
            return f"{{{self._join(items)}}}"
        if not isinstance(value, _NESTED) or not len(value):
            return repr(value)
        if isinstance(value, np.ndarray) and value.dtype != object:
            return repr(value)
        members = self._join(self.write(member, depth) for member in value)
        if isinstance(value, tuple):
            return f"({members},)" if len(value) == 1 else f"({members})"
        return f"{{{members}}}" if isinstance(value, Set) else f"[{members}]"

    def _join(self, parts: Iterable[str]) -> str:
        """Join parts until there may be no more."""
        written = []
        for part in parts:
            written.append(part)
            if self._left < 0:
                break
        return ", ".join(written)


def _is_huge(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and value.bit_length() > _DIGITS_BITS_MAX


def listed(names: Iterable[str]) -> str:
    """Show names as a list; of very many the first."""
    names = list(names)
    shown = ", ".join(brief_text(name, 100) for name in islice(names, _NAMES_MAX))
    return shown if len(names) <= _NAMES_MAX else f"{shown} and {len(names) - _NAMES_MAX:,} more"


def cut(text: str, length: int) -> str:
    """Shorten a text to a length; an ellipsis stands for what is cut off."""
    return text if len(text) <= length else f"{text[: length - 1]}…"
