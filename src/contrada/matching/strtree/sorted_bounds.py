"""Closed ranges by their sorted rims: those that hold a number are found without the others."""

import numpy as np
from numpy.typing import NDArray

from contrada.arrays import Floats, Integers, Mask, Positions


class SortedBounds:
    """Ranges of integers or of doubles, each with a number.

    They are open to one side, or hold one value, or none.
    """

    def __init__(
        self, ranges: Integers | Floats, numbers: Positions, least: float, most: float
    ) -> None:
        """Sort ranges (low, high), rims included; values lie between `least` and `most`."""
        low, high = ranges[:, 0], ranges[:, 1]
        is_low_open = low <= least
        is_high_open = ~is_low_open & (high >= most)
        is_single = ~(is_low_open | is_high_open) & (low <= high)
        assert (low == high)[is_single].all()
        self._below, self._highs = _in_order(is_low_open, numbers, high)
        self._above, self._lows = _in_order(is_high_open, numbers, low)
        self._single, self._values = _in_order(is_single, numbers, low)

    def find(self, value: int | float) -> list[Positions]:
        """List the numbers of the ranges that hold a value, in pieces."""
        found = []
        if len(self._below):
            found.append(self._below[self._highs.searchsorted(value, "left") :])
        if len(self._above):
            found.append(self._above[: self._lows.searchsorted(value, "right")])
        if len(self._single):
            first = self._values.searchsorted(value, "left")
            last = self._values.searchsorted(value, "right")
            found.append(self._single[first:last])
        return found


def _in_order(
    wanted: Mask, numbers: Positions, rims: NDArray[np.number]
) -> tuple[Positions, NDArray[np.number]]:
    """Return the numbers of some ranges in the order of their rims, and these."""
    which = np.flatnonzero(wanted)
    ordered = which[np.argsort(rims[which], kind="stable")]
    return numbers[ordered], rims[ordered]
