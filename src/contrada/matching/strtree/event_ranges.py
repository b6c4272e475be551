"""Comparisons with numbers, of all attributes together, asked of one event at a time.

A batch is asked attribute by attribute (see `checks`), which for a single event would cost more
than the comparisons themselves.
"""

from collections.abc import Sequence

import numpy as np

from contrada.arrays import Floats, Mask, Positions
from contrada.language import is_satisfied
from contrada.matching.checks import is_range, range_of
from contrada.matching.columns import OneEvent
from contrada.model.event import Event, Names
from contrada.model.subscription import Constraint


class EventRanges:
    """The ranges among some constraints: closed ranges of int64 and of doubles."""

    def __init__(self, constraints: Sequence[Constraint]) -> None:
        """Write down the bounds of each comparison, and which attribute it reads."""
        self._constraints = constraints
        numbers = [number for number, c in enumerate(constraints) if is_range(c)]
        self._row_of = np.full(len(constraints), -1, np.int64)
        self._row_of[numbers] = np.arange(len(numbers))
        code_of: dict[str, int] = {}
        names = (constraints[number].attributes()[0] for number in numbers)
        codes = [code_of.setdefault(name, len(code_of)) for name in names]
        self._code_of, self._names = code_of, Names(code_of)
        self._codes = np.array(codes, np.int64)
        bounds = [range_of(constraints[number]) for number in numbers]
        self._is_outside = np.array([outside for outside, _, _ in bounds], bool)
        self._whole = np.array([whole for _, whole, _ in bounds], np.int64).reshape(-1, 2)
        self._real = np.array([real for _, _, real in bounds], np.float64).reshape(-1, 2)

    def admit(self, event: Event, numbers: Positions) -> Mask:
        """Decide which of some constraints the event satisfies; all that are no ranges pass."""
        rows = self._row_of[numbers]
        at = np.flatnonzero(rows >= 0)
        rows = rows[at]
        codes = self._codes[rows]
        whole, real, is_whole, is_number, odd = self._read(event)
        low, high = self._whole[rows].T
        in_whole = (whole[codes] >= low) & (whole[codes] <= high)
        low_real, high_real = self._real[rows].T
        in_real = (real[codes] >= low_real) & (real[codes] <= high_real)
        within = np.where(is_whole[codes], in_whole, in_real)
        holds = (within ^ self._is_outside[rows]) & is_number[codes]
        for i in np.flatnonzero(np.isin(codes, odd)).tolist() if odd else ():
            holds[i] = is_satisfied(self._constraints[numbers[at[i]]], event)
        admitted = np.ones(len(numbers), bool)
        admitted[at] = holds
        return admitted

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
