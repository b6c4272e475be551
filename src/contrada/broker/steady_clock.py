"""The broker's clock: the time of day, but a jump of the machine's clock is not believed.

Between two readings the clock follows the machine's monotonic one. A difference of a few seconds,
as when a clock is corrected, is taken over; a larger one is not while the broker runs. What must
not depend on any clock of day, such as retention, counts the time *lived*: how long the broker has
run, over all its starts.
"""

import time
from collections.abc import Callable

_SLEW_MAX_US = 60_000_000
_US = 1_000_000


class SteadyClock:
    """Microseconds since 1970, and microseconds lived."""

    def __init__(
        self,
        lived_us: int = 0,
        wall: Callable[[], int] = time.time_ns,
        ticks: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        """Begin with the time of day, and with what was lived before."""
        self._wall, self._ticks = wall, ticks
        self._now_us, self._last = wall() // 1_000, ticks()
        self._lived_us = lived_us
        self.has_jumped = False

    def now_us(self) -> int:
        """Return the time of day."""
        tick = self._ticks()
        passed_us = (tick - self._last) // 1_000
        self._last += passed_us * 1_000
        self._now_us += passed_us
        self._lived_us += passed_us
        wall_us = self._wall() // 1_000
        self.has_jumped = abs(wall_us - self._now_us) > _SLEW_MAX_US
        if not self.has_jumped and wall_us > self._now_us:
            self._now_us = wall_us
        return self._now_us

    def lived_us(self) -> int:
        """Return how long the broker has run, over all its starts."""
        self.now_us()
        return self._lived_us
