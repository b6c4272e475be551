"""Comparisons with numbers, of all attributes together, asked of one event at a time.

A batch is asked attribute by attribute (see `checks`), which for a single event would cost more
than the comparisons themselves.
"""

from math import isnan

import numpy as np

from contrada.arrays import Floats, Mask, Positions
from contrada.language import is_satisfied
from contrada.matching.checks import is_range
from contrada.matching.columns import OneEvent
from contrada.matching.constraint_columns import ConstraintColumns
from contrada.matching.number_ranges import NO_RANGES, join_ranges, ranges_of
from contrada.model.event import Event, Names
from contrada.model.expression_parts import INT_MAX, INT_MIN


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

    def admit(self, event: Event, numbers: Positions) -> Mask:
        """Decide which of some constraints the event satisfies; all that are no ranges pass."""
        rows = self._row_of[numbers]
        at = np.flatnonzero(rows >= 0)
        rows = rows[at]
        codes = self._codes[rows]
        whole, real, is_whole, is_number, odd = self._read(event)
        low, high = self._ranges.whole[rows].T
        in_whole = (whole[codes] >= low) & (whole[codes] <= high)
        low_real, high_real = self._ranges.real[rows].T
        in_real = (real[codes] >= low_real) & (real[codes] <= high_real)
        within = np.where(is_whole[codes], in_whole, in_real)
        holds = (within ^ self._ranges.is_outside[rows]) & is_number[codes]
        for i in np.flatnonzero(np.isin(codes, odd)).tolist() if odd else ():
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

    def _read(self, event: Event) -> tuple[Positions, Floats, Mask, Mask, list[int]]:
        """Read the value of each attribute: as an integer, a double, and which of these it is.

        Last come the attributes whose values are numbers of neither kind, or may be.
        """
        size = len(self._code_of)
        whole, real = np.zeros(size, np.int64), np.zeros(size)
        is_whole, is_number = np.zeros((2, size), bool)
        odd = []
        one = OneEvent(event)
        for name in event.find_names(self._names):
            code = self._code_of[name]
            found = one.numbers(name)
            if found is None:
                odd.append(code)
                continue
            values, is_valid = found
            is_number[code], is_whole[code] = is_valid[0], values.dtype == np.int64
            (whole if is_whole[code] else real)[code] = values[0]
        return whole, real, is_whole, is_number, odd
