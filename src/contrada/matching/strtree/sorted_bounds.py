"""Closed ranges by their sorted rims: those that hold a number are found without the others."""

import numpy as np
from numpy.typing import NDArray

from contrada.arrays import Floats, Integers, Positions


class SortedBounds:
    """Ranges of integers or of doubles, by number.

    They are open to one side, or hold one number, or none.
    """

    def __init__(self, ranges: Integers | Floats, least: float, most: float) -> None:
        """Sort ranges (low, high), rims included; values lie between `least` and `most`."""
        low, high = ranges[:, 0], ranges[:, 1]
        is_low_open = low <= least
        is_high_open = ~is_low_open & (high >= most)
        self._below, self._highs = _in_order(np.flatnonzero(is_low_open), high)
        self._above, self._lows = _in_order(np.flatnonzero(is_high_open), low)
        self._closed, self._starts = _in_order(np.flatnonzero(~(is_low_open | is_high_open)), low)
        self._ends = high[self._closed]

    def find(self, value: int | float) -> Positions:
        """List the ranges that hold a value."""
        below = self._below[np.searchsorted(self._highs, value, "left") :]
        above = self._above[: np.searchsorted(self._lows, value, "right")]
        if not len(self._closed):
            return np.concatenate([below, above])
        first, last = (np.searchsorted(self._starts, value, side) for side in ("left", "right"))
        closed = self._closed[first:last]
        return np.concatenate([below, above, closed[self._ends[first:last] >= value]])


def _in_order(which: Positions, rims: NDArray[np.number]) -> tuple[Positions, NDArray[np.number]]:
    """Return some ranges in the order of their rims, and these."""
    ordered = which[np.argsort(rims[which], kind="stable")]
    return ordered, rims[ordered]
