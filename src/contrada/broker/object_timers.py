"""When something happens to each of very many objects, though nothing comes in.

Moments lie in blocks, each with a bound below which nothing in it is due: whoever asks looks at
bounds, and at the blocks in which something may be. Bounds sink at once, and rise when looked at.
"""

import numpy as np

from contrada.arrays import Integers, Positions
from contrada.kernels.track_walk import ALWAYS_LATER

_BLOCK = 256


class ObjectTimers:
    """A moment for each place; ALWAYS_LATER where there is none."""

    def __init__(self) -> None:
        """Begin without places."""
        self._moments: Integers = np.full(_BLOCK, ALWAYS_LATER, np.int64)
        self._bounds: Integers = np.full(1, ALWAYS_LATER, np.int64)

    def put(self, places: Positions, moments_us: Integers) -> None:
        """Set the moments of some places."""
        if not len(places):
            return
        self._reserve(int(places.max()) + 1)
        self._moments[places] = moments_us
        np.minimum.at(self._bounds, places // _BLOCK, moments_us)

    def _reserve(self, count: int) -> None:
        if count <= len(self._moments):
            return
        blocks = -(-max(count, 2 * len(self._moments)) // _BLOCK)
        moments = np.full(blocks * _BLOCK, ALWAYS_LATER, np.int64)
        bounds = np.full(blocks, ALWAYS_LATER, np.int64)
        moments[: len(self._moments)], bounds[: len(self._bounds)] = self._moments, self._bounds
        self._moments, self._bounds = moments, bounds

    def find_due(self, clock_us: int) -> Positions:
        """Find the places whose moment has come, the earliest first."""
        blocks = np.flatnonzero(self._bounds <= clock_us)
        if not len(blocks):
            return blocks
        moments = self._moments.reshape(-1, _BLOCK)[blocks]
        self._bounds[blocks] = moments.min(axis=1)
        rows, columns = np.nonzero(moments <= clock_us)
        order = np.argsort(moments[rows, columns], kind="stable")
        return (blocks[rows] * _BLOCK + columns)[order]

    def find_next(self) -> int:
        """Return the earliest of all moments."""
        while True:
            block = int(np.argmin(self._bounds))
            bound = int(self._bounds[block])
            found = int(self._moments[block * _BLOCK : (block + 1) * _BLOCK].min())
            if found == bound:
                return found
            self._bounds[block] = found
