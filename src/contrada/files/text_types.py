"""Which type the cells of a text column have: one that holds all of them exactly, or text.

A type is tried on every cell of the file before any cell is delivered, by the same conversion,
so a later row can never fail. A column with more than nine numbers in ten cells that are not empty
is one of numbers, and its other cells are bad; numbers that are written as names are (`007`, `+5`)
leave it text.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from contrada.deferred import compute as pc

Convert = Callable[[pa.Array], pa.Array]

INTEGER = r"^-?(0|[1-9][0-9]*)$"
FLOAT = r"^-?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$|^(NaN|nan|-?inf|-?Infinity)$"
LIKE_A_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
BOOLEAN = r"^(true|True|TRUE|false|False|FALSE)$"
DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
TIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?"
ZONE = r"(Z|[+-][0-9]{2}(:?[0-9]{2})?)"


@dataclass(slots=True)
class NumberShare:
    """How many cells of a column are no numbers, and which types hold the numbers.

    No type is left where too many cells are no numbers.
    """

    kinds: list[pa.DataType]
    filled: int
    others: int = 0
    first_other: str = ""

    def see(self, cells: pa.Array, rows_max: float) -> None:
        """Take in cells of a column that has at most `rows_max`."""
        trimmed = pc.utf8_trim_whitespace(cells)
        is_number = pc.match_substring_regex(trimmed, FLOAT)
        others = trimmed.filter(pc.invert(is_number))
        self.filled += len(cells) - cells.null_count
        self.others += len(others)
        if len(others) and not self.first_other:
            self.first_other = others[0].as_py()
        is_odd = pc.any(pc.match_substring_regex(others, LIKE_A_NUMBER), min_count=0).as_py()
        if is_odd or 10 * self.others >= rows_max:
            self.kinds = []
        numbers = trimmed.filter(is_number)
        self.kinds = [kind for kind in self.kinds if _try_convert(numbers, kind) is not None]

    @property
    def is_most(self) -> bool:
        """Tell whether more than nine in ten cells are numbers that a type holds."""
        return len(self.kinds) > 0 and 10 * self.others < self.filled


class ColumnTypes:
    """The types that all cells of a column seen so far can have; at first, every one.

    A column whose meaning fixes its type has fewer to choose from: an id that looks like a date
    is still an id, and the pattern `212101212` is no number.
    """

    def __init__(self, column: str = "", rows_max: float = math.inf) -> None:
        """Take the name of the column, and how many cells there will be at the most."""
        self._left = list(_FIXED.get(column, _CONVERSIONS))
        self._rows_max = rows_max
        self._is_free = column not in _FIXED
        self._filled = 0
        self._share: NumberShare | None = None  # from the first cell on that is no number
        self.has_null = False

    def see(self, cells: pa.Array) -> None:
        """Take in some cells, which are text or null."""
        self.has_null |= cells.null_count > 0
        if cells.null_count == len(cells):
            return
        numeric = [kind for kind in self._left if kind in _NUMERIC]
        self._left = [kind for kind in self._left if _try_convert(cells, kind) is not None]
        if self._is_free and self._share is None and not _NUMERIC.intersection(self._left):
            self._share = NumberShare(numeric, self._filled)
        if self._share is not None and self._share.kinds:
            self._share.see(cells, self._rows_max)
        self._filled += len(cells) - cells.null_count

    def best(self) -> pa.DataType:
        """Give the narrowest type left, or that of most cells if they are numbers, or text."""
        if self._filled and self._left:
            return self._left[0]
        return pa.string() if self.misfits is None else self.misfits.kinds[0]

    @property
    def misfits(self) -> NumberShare | None:
        """Tell of the cells that are no numbers, in a column of numbers; None where there are none.

        It holds when all cells have been seen.
        """
        return self._share if self._share is not None and self._share.is_most else None

    @property
    def is_blank(self) -> bool:
        """Tell whether no cell seen so far was filled."""
        return not self._filled

    @property
    def is_text(self) -> bool:
        """Tell whether nothing but text holds the cells."""
        return bool(pa.types.is_string(self.best()))

    def fits(self, cells: pa.Array) -> bool:
        """Tell whether more cells would leave the type as it is."""
        return self.is_text or _try_convert(cells, self.best()) is not None


def convert(cells: pa.Array, kind: pa.DataType) -> pa.Array:
    """Convert cells to a type that all of them were found to have."""
    if pa.types.is_string(kind):
        return cells
    converted = _try_convert(cells, kind)
    if converted is None:
        raise pa.ArrowInvalid(f"a cell is no {kind}: the file has changed")
    return converted


def to_numbers(cells: pa.Array, kind: pa.DataType) -> pa.Array:
    """Convert cells to a type that all numbers were found to have; null where one is no number."""
    return convert(_only_numbers(cells), kind)


def to_coordinates(cells: pa.Array) -> pa.Array:
    """Convert cells to floats; null where a cell is empty or no number."""
    return _only_numbers(cells).cast(pa.float64())


def _only_numbers(cells: pa.Array) -> pa.Array:
    trimmed = pc.utf8_trim_whitespace(cells)
    is_number = pc.match_substring_regex(trimmed, FLOAT)
    return pc.if_else(is_number, trimmed, pa.scalar(None, trimmed.type))


def _try_convert(cells: pa.Array, kind: pa.DataType) -> pa.Array | None:
    pattern, to_values = _CONVERSIONS[kind]
    trimmed = pc.utf8_trim_whitespace(cells)
    # pc.all leaves nulls out: a missing cell fits any type.
    if not pc.all(pc.match_substring_regex(trimmed, pattern), min_count=0).as_py():
        return None
    try:
        return to_values(trimmed)
    except pa.ArrowInvalid:
        return None


def _to_floats(cells: pa.Array) -> pa.Array:
    """Convert to floats; an integer that no float keeps, or a number beyond all, is refused."""
    integers = cells.filter(pc.match_substring_regex(cells, INTEGER)).cast(pa.int64())
    kept = integers.cast(pa.float64(), safe=False).cast(pa.int64(), safe=False)
    floats = cells.cast(pa.float64())
    is_meant = pc.match_substring(cells, "inf", ignore_case=True)
    is_lost = pc.and_not(pc.is_inf(floats), is_meant)
    if not kept.equals(integers) or pc.any(is_lost).as_py():
        raise pa.ArrowInvalid("a number that no float keeps")
    return floats


def _cast_to(kind: pa.DataType) -> Convert:
    return lambda cells: cells.cast(kind)


_CONVERSIONS: dict[pa.DataType, tuple[str, Convert]] = {
    pa.int64(): (INTEGER, _cast_to(pa.int64())),
    pa.float64(): (FLOAT, _to_floats),
    pa.bool_(): (BOOLEAN, lambda cells: pc.equal(pc.utf8_lower(cells), "true")),
    pa.date32(): (DATE, _cast_to(pa.date32())),
    pa.timestamp("us"): (f"{TIME}$", _cast_to(pa.timestamp("us"))),
    pa.timestamp("us", "UTC"): (f"{TIME}{ZONE}$", _cast_to(pa.timestamp("us", "UTC"))),
}
_NUMERIC = frozenset({pa.int64(), pa.float64()})
_FIXED: dict[str, tuple[pa.DataType, ...]] = {
    "id": (pa.int64(),),
    "subscriber": (pa.int64(),),
    **dict.fromkeys(("relation", "filter", "where", "attribute"), ()),
}
