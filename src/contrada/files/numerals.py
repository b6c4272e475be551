"""Numbers as a text column spells them: which type holds most of its cells, and which it does not.

Integers are exact. Floats hold the nearest of a fraction and of an integer beyond 64 bits, but no
other integer that they would round.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from contrada.deferred import compute as pc
from contrada.showing import brief, brief_text

INTEGERS, FLOATS = pa.int64(), pa.float64()

_INTEGER = r"^-?(0|[1-9][0-9]*)$"
_NUMBER = (
    r"^-?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$|^(NaN|nan|-?inf|-?Infinity)$"
)
_LIKE_A_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_INTEGER_MAX, _INTEGER_MIN_DIGITS = "9223372036854775807", "9223372036854775808"


class Numerals:
    """Cells of a text column, read as numbers; null where a cell is empty or not such a number.

    `floats` has all that are not beyond floats, rounded where need be, `integers` those of 64 bits;
    `is_number` marks those spelled as a number, whatever its size.
    """

    def __init__(self, cells: pa.Array) -> None:
        """Take cells, which are text or null."""
        self._texts = pc.utf8_trim_whitespace(cells)
        self._is_integer = pc.match_substring_regex(self._texts, _INTEGER)
        self.is_number = pc.match_substring_regex(self._texts, _NUMBER)
        self.integers = _only(self._texts, self._is_short_integer()).cast(INTEGERS)
        floats = _only(self._texts, self.is_number).cast(FLOATS)
        if pc.any(pc.is_inf(floats)).as_py():
            is_meant = pc.match_substring(self._texts, "inf", ignore_case=True)
            floats = _only(floats, pc.or_(pc.is_finite(floats), is_meant))
        self.floats = floats

    def values(self, kind: pa.DataType) -> pa.Array:
        """Return the cells as numbers of a type; null where one is empty or the type has none."""
        if kind == INTEGERS:
            return self.integers
        # What is rounded up to 2^63 is no integer of 64 bits any more.
        rounded = _only(self.floats, pc.less(self.floats, 2.0**63)).cast(INTEGERS, safe=False)
        is_kept = pc.fill_null(pc.equal(self.integers, rounded), False)
        return _only(self.floats, pc.or_(self.integers.is_null(), is_kept))

    def are_misfits(self, kind: pa.DataType) -> NDArray[np.bool_]:
        """Which cells are filled, but not with a number that a type has."""
        is_misfit = pc.and_(self._texts.is_valid(), self.values(kind).is_null())
        return np.asarray(is_misfit, bool)

    def has_names(self) -> bool:
        """Whether a number is written as names are: `007`, `+5`."""
        others = self._texts.filter(pc.invert(self.is_number))
        return bool(pc.any(pc.match_substring_regex(others, _LIKE_A_NUMBER), min_count=0).as_py())

    def count_rounded(self) -> int:
        """Count the integers beyond 64 bits that floats hold only approximately."""
        is_large = pc.and_(
            pc.and_(self._is_integer, self.integers.is_null()), self.floats.is_valid()
        )
        pairs = zip(self._texts.filter(is_large), self.floats.filter(is_large), strict=True)
        return sum(int(text.as_py()) != int(number.as_py()) for text, number in pairs)

    def _is_short_integer(self) -> pa.Array:
        """Which cells are integers of 64 bits."""
        digits = pc.utf8_ltrim(self._texts, "-")
        length = pc.binary_length(digits)
        is_within = pc.less(length, len(_INTEGER_MAX))
        if not pc.all(is_within, min_count=0).as_py():
            most = pc.if_else(pc.starts_with(self._texts, "-"), _INTEGER_MIN_DIGITS, _INTEGER_MAX)
            is_as_long = pc.equal(length, len(_INTEGER_MAX))
            is_within = pc.or_(is_within, pc.and_(is_as_long, pc.less_equal(digits, most)))
        return pc.and_(self._is_integer, is_within)


class NumeralCount:
    """How many cells of a column the types of numbers do not hold, and the first of these."""

    def __init__(self, kinds: Sequence[pa.DataType], rows_max: float, is_strict: bool) -> None:
        """Try some types on at most `rows_max` cells; a strict column has no bad cells."""
        self._kinds, self._rows_max, self._is_strict = list(kinds), rows_max, is_strict
        self._misfits = dict.fromkeys(kinds, 0)
        self._firsts: dict[pa.DataType, str] = {}
        self._rounded = 0
        self.filled = 0

    def see(self, cells: pa.Array) -> None:
        """Take in some cells, which are text or null."""
        self.filled += len(cells) - cells.null_count
        if not self._kinds:
            return
        numerals = Numerals(cells)
        for kind in self._kinds:
            rows = np.flatnonzero(numerals.are_misfits(kind))
            self._misfits[kind] += len(rows)
            if len(rows):
                self._firsts.setdefault(kind, cells[int(rows[0])].as_py())
        self._rounded += numerals.count_rounded()
        if numerals.has_names() or not any(map(self._may_have, self._kinds)):
            self._kinds = []

    def _may_have(self, kind: pa.DataType) -> bool:
        return self._has_few_misfits(kind, max(self._rows_max, self.filled))

    def _has_few_misfits(self, kind: pa.DataType, filled: float) -> bool:
        """Whether a type holds more than nine in ten cells as they are, or must hold all."""
        if self._is_strict:
            return not self._misfits[kind]
        changed = self._rounded if kind == FLOATS else 0
        return 10 * (self._misfits[kind] + changed) < filled

    def best(self) -> pa.DataType | None:
        """Return the type that holds most of the cells seen; None where they are not numbers."""
        if not self._kinds:
            return None
        kind = min(self._kinds, key=lambda kind: self._misfits[kind])
        return kind if self._has_few_misfits(kind, self.filled) else None

    def describe_misfits(self) -> str | None:
        """Describe what is wrong with some cells of a column of numbers; None where nothing is."""
        kind = self.best()
        if kind is None or not self._misfits[kind]:
            return None
        (reason,) = explain_misfits(pa.array([self._firsts[kind]], pa.string()), kind)
        if self._misfits[kind] == 1:
            return f"holds numbers, but {reason} and is read as empty"
        some = f"{self._misfits[kind]:,} of {self.filled:,} values"
        return f"holds numbers, but {some} are read as empty (the first: {reason})"


def explain_misfits(texts: pa.Array, kind: pa.DataType) -> list[str]:
    """Explain of each of some cells why a type of numbers does not hold it."""
    numerals = Numerals(texts)
    are_floats = numerals.floats.is_valid()
    known = zip(
        *(each.to_pylist() for each in (texts, numerals.is_number, are_floats)), strict=True
    )
    return [_explain_misfit(text, kind, is_number, is_float) for text, is_number, is_float in known]


def _explain_misfit(text: str, kind: pa.DataType, is_number: bool, is_float: bool) -> str:
    if not is_number:
        return f"{brief(text)} is not a number"
    shown = brief_text(text.strip())
    if kind == INTEGERS:
        return f"{shown} is not a 64-bit integer like the other cells"
    if not is_float:
        return f"{shown} is too large for a 64-bit number"
    return f"{shown} is an integer above 2^53 in a column with fractions, which would round it"


def _only(values: pa.Array, condition: pa.Array) -> pa.Array:
    return pc.if_else(condition, values, pa.scalar(None, values.type))
