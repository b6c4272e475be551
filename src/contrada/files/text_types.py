"""Which type the cells of a text column have: one that holds all of them, or text.

A type is tried on every cell of the file before any cell is delivered, by the same conversion,
so a later row can never fail. A type of numbers that holds more than nine in ten cells that are not
empty is that of the column, and its other cells are bad; numbers that are written as names are
(`007`, `+5`) leave it text.
"""

import math
from collections.abc import Callable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from contrada.deferred import compute as pc
from contrada.files.numerals import FLOATS, INTEGERS, NumeralCount, Numerals
from contrada.model.row_columns import Holds, columns_that_hold

Convert = Callable[[pa.Array], pa.Array]

BOOLEAN = r"^(true|True|TRUE|false|False|FALSE)$"
DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
TIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?"
ZONE = r"(Z|[+-][0-9]{2}(:?[0-9]{2})?)"


class ColumnTypes:
    """The types that all cells of a column seen so far can have; at first, every one.

    A column whose meaning fixes its type has fewer to choose from: an id that looks like a date
    is still an id, and the pattern `212101212` is not a number.
    """

    def __init__(self, column: str = "", rows_max: float = math.inf) -> None:
        """Take the name of the column, and how many cells there will be at the most."""
        is_free = column not in _FIXED
        self._left = list(_CONVERSIONS) if is_free else []
        self._numbers = NumeralCount(
            _FIXED.get(column, (INTEGERS, FLOATS)), rows_max, is_strict=not is_free
        )
        self.has_null = False

    def see(self, cells: pa.Array) -> None:
        """Take in some cells, which are text or null."""
        self.has_null |= cells.null_count > 0
        if cells.null_count == len(cells):
            return
        self._left = [kind for kind in self._left if _try_convert(cells, kind) is not None]
        self._numbers.see(cells)

    def best(self) -> pa.DataType:
        """Return the type of all cells, or of most if they are numbers, or text."""
        if self.is_blank:
            return pa.string()
        return next(iter(self._left), None) or self._numbers.best() or pa.string()

    @property
    def misfits(self) -> str | None:
        """Which cells of a column of numbers are bad, in words; None where none is.

        It holds when all cells have been seen.
        """
        return self._numbers.describe_misfits()

    @property
    def is_blank(self) -> bool:
        """Whether no cell seen so far was filled."""
        return not self._numbers.filled

    @property
    def is_text(self) -> bool:
        """Whether nothing but text holds the cells."""
        return bool(pa.types.is_string(self.best()))

    def look_alike(self, cells: pa.Array) -> NDArray[np.bool_]:
        """Which of some cells are spelled as those of the column, or missing where some of it are.

        A cell without text is missing too, except in a column of text.
        """
        kind = self.best()
        if pa.types.is_string(kind):
            is_alike, is_filled = cells.is_valid(), cells.is_valid()
        elif kind in (INTEGERS, FLOATS):
            is_alike, is_filled = Numerals(cells).values(kind).is_valid(), pc.not_equal(cells, "")
        else:
            pattern, _ = _CONVERSIONS[kind]
            is_alike = pc.match_substring_regex(pc.utf8_trim_whitespace(cells), pattern)
            is_filled = pc.not_equal(cells, "")
        is_filled = pc.fill_null(is_filled, False)
        return np.asarray(pc.if_else(is_filled, is_alike, self.has_null), bool)


def convert(cells: pa.Array, kind: pa.DataType) -> pa.Array:
    """Convert cells to a type that all of them were found to have."""
    if pa.types.is_string(kind):
        return cells
    converted = _try_convert(cells, kind)
    if converted is None:
        raise pa.ArrowInvalid(f"a cell is not of type {kind}: the file has changed")
    return converted


def to_numbers(cells: pa.Array, kind: pa.DataType) -> pa.Array:
    """Convert cells to a type of numbers; null where a cell is empty or bad."""
    return Numerals(cells).values(kind)


def to_coordinates(cells: pa.Array) -> pa.Array:
    """Convert cells to floats, the nearest ones; null where a cell is empty or no number."""
    return Numerals(cells).floats


def _try_convert(cells: pa.Array, kind: pa.DataType) -> pa.Array | None:
    if kind in (INTEGERS, FLOATS):
        numbers = Numerals(cells).values(kind)
        return numbers if numbers.null_count == cells.null_count else None
    pattern, to_values = _CONVERSIONS[kind]
    trimmed = pc.utf8_trim_whitespace(cells)
    # pc.all leaves nulls out: a missing cell fits any type.
    if not pc.all(pc.match_substring_regex(trimmed, pattern), min_count=0).as_py():
        return None
    try:
        return to_values(trimmed)
    except pa.ArrowInvalid:
        return None


def _cast_to(kind: pa.DataType) -> Convert:
    return lambda cells: cells.cast(kind)


_CONVERSIONS: dict[pa.DataType, tuple[str, Convert]] = {
    pa.bool_(): (BOOLEAN, lambda cells: pc.equal(pc.utf8_lower(cells), "true")),
    pa.date32(): (DATE, _cast_to(pa.date32())),
    pa.timestamp("us"): (f"{TIME}$", _cast_to(pa.timestamp("us"))),
    pa.timestamp("us", "UTC"): (f"{TIME}{ZONE}$", _cast_to(pa.timestamp("us", "UTC"))),
}
_FIXED: dict[str, tuple[pa.DataType, ...]] = {
    **dict.fromkeys(columns_that_hold(Holds.ID), (INTEGERS,)),
    **dict.fromkeys(columns_that_hold(Holds.PREDICATE, Holds.RELATION, Holds.NAME), ()),
}
