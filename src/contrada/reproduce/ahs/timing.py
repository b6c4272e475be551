"""Times of single steps, in microseconds of this thread's processor time.

What else the machine does is not in them. What is timed must have been compiled before.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

Timed = TypeVar("Timed")


@dataclass(slots=True)
class Watch:
    """Adds up the times of steps."""

    us: float = 0.0

    def run(self, step: Callable[[], Timed]) -> Timed:
        """Run a step, and add its time."""
        started = time.thread_time_ns()
        result = step()
        self.us += (time.thread_time_ns() - started) / 1e3
        return result


def least_us(step: Callable[[], Timed], repeats: int) -> tuple[Timed, float]:
    """Return the result of a step, and its shortest time: the one that nothing disturbed."""
    times = []
    for _ in range(repeats):
        watch = Watch()
        result = watch.run(step)
        times.append(watch.us)
    return result, min(times)


def median_us(step: Callable[[], object], repeats: int) -> float:
    """Return the median time of a step, after one that does not count."""
    step()
    times = sorted(least_us(step, 1)[1] for _ in range(repeats))
    return times[len(times) // 2]


def write_us(us: float) -> str:
    """Write a time with two or three digits that mean something."""
    return f"{us:,.0f}" if us >= 100 else f"{us:.1f}" if us >= 10 else f"{us:.2f}"
