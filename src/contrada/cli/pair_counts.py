"""How many partners every event and every subscription of a run has, by row and by rank."""

import numpy as np
from numpy.typing import NDArray


class PairCounts:
    """Counts over all pairs of a run: four bytes for an event, eight for a subscription.

    Events go by their row in the file, never by their id: ids may repeat. Subscriptions go by their
    rank in the order of ids.
    """

    def __init__(self, subscriptions_count: int) -> None:
        """Start without pairs."""
        self._events = np.zeros(0, np.uint32)
        self.subscriptions = np.zeros(subscriptions_count, np.int64)

    def add(self, rows: NDArray[np.int64], ranks: NDArray[np.int64]) -> None:
        """Count pairs: event row `rows[i]` and the subscription of rank `ranks[i]`."""
        if not len(rows):
            return
        matched, counts = np.unique(rows, return_counts=True)
        self._make_room(int(matched[-1]) + 1)
        self._events[matched] += counts.astype(np.uint32)
        self.subscriptions += np.bincount(ranks, minlength=len(self.subscriptions))

    def _make_room(self, length: int) -> None:
        if length > len(self._events):
            longer = np.zeros(max(length, 2 * len(self._events)), np.uint32)
            longer[: len(self._events)] = self._events
            self._events = longer

    def of_events(self, first_row: int, length: int) -> NDArray[np.int64]:
        """Return the counts of consecutive rows; rows without a pair have none."""
        known = self._events[first_row : first_row + length]
        counts = np.zeros(length, np.int64)
        counts[: len(known)] = known
        return counts

    @property
    def events_matched(self) -> int:
        """How many events have a partner."""
        return int(np.count_nonzero(self._events))

    @property
    def subscriptions_matched(self) -> int:
        """How many subscriptions have a partner."""
        return int(np.count_nonzero(self.subscriptions))
