"""The window in which a repeated event is known: by what names it, for a while and up to a number.

Pure: times are arguments. The window is rebuilt from the log when a broker starts.
"""

from collections import OrderedDict
from collections.abc import Iterable
from typing import NamedTuple


class StoredEvent(NamedTuple):
    """An event that was stored: its position in the log, and how many subscriptions it matched."""

    position: int
    matches: int


class RepeatWindow:
    """Events by what names them, the oldest first."""

    def __init__(self, age_us: int, events_max: int) -> None:
        """Know nothing yet."""
        self._age_us, self._events_max = age_us, events_max
        self._known: OrderedDict[bytes, tuple[StoredEvent, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    def find(self, key: bytes, now_us: int) -> StoredEvent | None:
        """Return the event of that name, if it was stored within the window."""
        found = self._known.get(key)
        if found is None or found[1] < now_us - self._age_us:
            return None
        return found[0]

    def add(self, events: Iterable[tuple[bytes, StoredEvent]], now_us: int) -> None:
        """Take events in that were stored at one moment, and forget what is too old."""
        for key, known in events:
            self._known[key] = known, now_us
            self._known.move_to_end(key)  # a name that comes again is the youngest
        horizon_us = now_us - self._age_us
        while self._known:
            key, (_, time_us) = next(iter(self._known.items()))
            if len(self._known) <= self._events_max and time_us >= horizon_us:
                break
            del self._known[key]
