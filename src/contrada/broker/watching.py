"""Who waits for the deliveries of a subscriber, and up to where each subscriber has any."""

import threading
from collections.abc import Callable

import numpy as np

from contrada.arrays import Positions
from contrada.broker.standing_set import NumberTable

WakeUp = Callable[[], object]


class Watchers:
    """Functions to call when a subscriber has new deliveries; any thread may add and remove some.

    A reader that sees a position must find what was noted up to it: else it takes it for read. So
    the thread that commits notes first, then lets readers see the position, then wakes them.
    `begun` is the head of the log when the broker started: before it nobody knows what there was.
    """

    def __init__(self, begun: int) -> None:
        """Begin without anybody who waits."""
        self._latest = NumberTable(begun)
        self._noted: list[Positions] = []
        self._waiting: dict[int, dict[object, WakeUp]] = {}
        self._lock = threading.Lock()

    def watch(self, subscriber: int, wake: WakeUp) -> Callable[[], None]:
        """Call a function after each commit with deliveries for a subscriber, until stopped."""
        token = object()
        with self._lock:
            self._waiting.setdefault(subscriber, {})[token] = wake

        def stop() -> None:
            with self._lock:
                own = self._waiting.get(subscriber, {})
                own.pop(token, None)
                if not own:
                    self._waiting.pop(subscriber, None)

        return stop

    def note(self, subscribers: Positions, head: int) -> None:
        """Note that subscribers have deliveries up to a position, before any reader sees it."""
        self._latest.put_many(subscribers, head)
        self._noted.append(subscribers)

    def wake_noted(self) -> None:
        """Wake who waits for what was noted since the last time, once readers see it."""
        noted, self._noted = self._noted, []
        with self._lock:
            if not (noted and self._waiting):
                return
            waiting = np.fromiter(self._waiting, np.int64, len(self._waiting))
            found = waiting[np.isin(waiting, np.concatenate(noted))].tolist()
            wakes = [wake for number in found for wake in self._waiting[number].values()]
        for wake in wakes:
            wake()

    def wake_all(self) -> None:
        """Wake everybody, as when the broker closes."""
        with self._lock:
            wakes = [wake for own in self._waiting.values() for wake in own.values()]
        for wake in wakes:
            wake()

    def has_after(self, subscriber: int, position: int) -> bool:
        """Whether there may be deliveries of a subscriber after a position."""
        return self._latest.get(subscriber) > position

    def count(self) -> int:
        """Count who waits."""
        with self._lock:
            return sum(map(len, self._waiting.values()))
