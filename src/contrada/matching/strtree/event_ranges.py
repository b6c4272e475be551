"""Comparisons with numbers, of all attributes together, asked of one event at a time.

A batch is asked attribute by attribute (see `checks`), which for a single event would cost more
than the comparisons themselves.
"""

from dataclasses import dataclass
from math import isnan

import numpy as np
from numpy.typing import NDArray

from contrada.arrays import Floats, Mask, Positions
from contrada.kernels.admitting import A_DOUBLE, AN_INTEGER, NO_NUMBER, keep_admitted
from contrada.kernels.compiling import Patience, is_numba_loaded
from contrada.language import is_satisfied
from contrada.matching.checks import is_range
from contrada.matching.constraint_columns import ConstraintColumns
from contrada.matching.grouping import expand
from contrada.matching.number_ranges import NO_RANGES, join_ranges, ranges_of
from contrada.matching.table import FilterTable
from contrada.model.event import Event, Names
from contrada.model.expression_parts import INT_MAX, INT_MIN

_patience = Patience(10_000)  # events: to load kernels takes about as long as so many without them


class EventRanges:
    """The ranges among some constraints: closed ranges of int64 and of doubles."""

    def __init__(self, constraints: ConstraintColumns) -> None:
        """Write down the bounds of each comparison, and which attribute it reads."""
        self._constraints = constraints
        heads = [head for head in constraints.heads() if is_range(head.constraint)]
        numbers = np.concatenate([np.zeros(0, np.int64), *(head.numbers for head in heads)])
        self._row_of = np.full(len(constraints), -1, np.int64)
        self._row_of[numbers] = np.arange(len(numbers))
        names = [head.constraint.attributes()[0] for head in heads]
        self._code_of = {name: code for code, name in enumerate(dict.fromkeys(names))}
        self._name_list, self._names = list(self._code_of), Names(self._code_of)
        codes = np.array([self._code_of[name] for name in names], np.int64)
        self._codes = np.repeat(codes, [len(head.numbers) for head in heads])
        self._ranges = join_ranges(
            [ranges_of(head, constraints.pools) for head in heads] or [NO_RANGES]
        )

    def keep(self, event: Event, filters: Positions, table: FilterTable) -> Positions:
        """Keep the filters of which the event satisfies all ranges, whatever else they ask."""
        values = self._read(event)
        if values.odd or not (is_numba_loaded() or _patience.is_spent(1)):
            which, places = expand(table.starts, filters)
            fails = ~self._admit(event, values, table.members[places])
            return np.asarray(filters[np.bincount(which[fails], minlength=len(filters)) == 0])
        return keep_admitted(
            filters,
            table.starts,
            table.members,
            self._row_of,
            self._codes,
            self._ranges.whole,
            self._ranges.real,
            self._ranges.is_outside,
            values.whole,
            values.real,
            values.kinds,
        )

    def _admit(self, event: Event, values: "_EventNumbers", numbers: Positions) -> Mask:
        """Decide which of some constraints the event satisfies; all that are no ranges pass."""
        rows = self._row_of[numbers]
        at = np.flatnonzero(rows >= 0)
        rows = rows[at]
        codes = self._codes[rows]
        low, high = self._ranges.whole[rows].T
        whole = values.whole[codes]
        in_whole = (whole >= low) & (whole <= high)
        low_real, high_real = self._ranges.real[rows].T
        real = values.real[codes]
        in_real = (real >= low_real) & (real <= high_real)
        kinds = values.kinds[codes]
        within = np.where(kinds == AN_INTEGER, in_whole, in_real)
        holds = (within ^ self._ranges.is_outside[rows]) & (kinds != NO_NUMBER)
        for i in np.flatnonzero(np.isin(codes, values.odd)).tolist() if values.odd else ():
            holds[i] = is_satisfied(self._constraints[numbers[at[i]]], event)
        admitted = np.ones(len(numbers), bool)
        admitted[at] = holds
        return admitted

    def decide(self, event: Event, number: int) -> bool | None:
        """Decide one constraint; None where it is not a range, or the value is of an odd kind."""
        row = self._row_of[number]
        if row < 0:
            return None
        value = event.value(self._name_list[self._codes[row]])
        kind = type(value)
        if kind is float:
            low, high = self._ranges.real[row]
        elif kind is int and INT_MIN <= value <= INT_MAX:
            low, high = self._ranges.whole[row]
        else:
            return False if value is None or kind is str else None
        is_within = low <= value <= high
        return bool(is_within != self._ranges.is_outside[row]) and not isnan(value)

    def _read(self, event: Event) -> "_EventNumbers":
        """Read the value of each attribute that the event has."""
        size = len(self._code_of)
        values = _EventNumbers(
            np.zeros(size, np.int64), np.zeros(size), np.full(size, NO_NUMBER, np.uint8), []
        )
        for name in event.find_names(self._names):
            value = event.value(name)
            kind = type(value)
            if value is None or kind is str:
                continue
            code = self._code_of[name]
            if kind is float:
                values.real[code] = value
                values.kinds[code] = NO_NUMBER if isnan(value) else A_DOUBLE
            elif kind is int and INT_MIN <= value <= INT_MAX:
                values.whole[code] = value
                values.kinds[code] = AN_INTEGER
            else:
                values.odd.append(code)
        return values


@dataclass(frozen=True, slots=True)
class _EventNumbers:
    """The value of each attribute: as an integer, as a double, and which of these it is.

    Those in `odd` are numbers of neither kind, or may be.
    """

    whole: Positions
    real: Floats
    kinds: NDArray[np.uint8]
    odd: list[int]
