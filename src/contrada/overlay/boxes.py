"""Boxes of any number of dimensions, and how large they are in a universe.

A box is a tuple: the lows of all dimensions, then the highs. A side may be unbounded. Sizes are
measured within the universe and in units of it, so that unbounded sides and dimensions of
different units can be compared; what is flat has no volume, and is compared by its margin.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache, reduce
from math import inf
from sys import float_info
from typing import Any

from contrada.errors import InvalidInput

Box = tuple[float, ...]
Size = tuple[float, float]  # volume and margin

DIMENSIONS_MAX = 8  # messages are bounded by it, and boxes of more would hardly tell apart
_EVENT_SIDE = 0.01  # of the universe's
_NUMBERS = (float, int)


def join(a: Box, b: Box) -> Box:
    """Return the smallest box around two."""
    k = len(a) // 2
    return (*map(min, a[:k], b[:k]), *map(max, a[k:], b[k:]))


def join_all(boxes: Iterable[Box]) -> Box:
    """Return the smallest box around some."""
    return reduce(join, boxes)


def meets(a: Box, b: Box) -> bool:
    """Whether two boxes have a point in common."""
    k = len(a) // 2
    for i in range(k):  # noqa: SIM110  a generator takes twice as long
        if a[i] > b[i + k] or b[i] > a[i + k]:
            return False
    return True


def covers(a: Box, b: Box) -> bool:
    """Whether no point of b lies outside a."""
    k = len(a) // 2
    return all(a[i] <= b[i] and b[i + k] <= a[i + k] for i in range(k))


def everything(dimensions: int) -> Box:
    """Return the box that is unbounded on all sides."""
    return (-inf,) * dimensions + (inf,) * dimensions


def nothing(dimensions: int) -> Box:
    """Return the box without a point: inverted on all sides, so that joining it changes nothing.

    A single inverted side stands for an attribute that an event lacks: it meets only sides that are
    unbounded at both ends.
    """
    return (inf,) * dimensions + (-inf,) * dimensions


def is_box(value: Any, dimensions: int) -> bool:
    """Whether a value is a box of so many dimensions; sides may be inverted."""
    if not isinstance(value, tuple) or len(value) != 2 * dimensions:
        return False
    for side in value:
        if not isinstance(side, _NUMBERS) or side != side:  # noqa: PLR0124  no number
            return False
    for i in range(dimensions):
        low, high = value[i], value[i + dimensions]
        if low > high and (low, high) != (inf, -inf):
            return False
    return True


@dataclass(frozen=True, slots=True)
class Space:
    """A universe: the bounded box in which sizes are measured."""

    universe: Box

    def __post_init__(self) -> None:
        """Refuse a universe in which nothing can be measured."""
        universe: Any = self.universe
        k = len(universe) // 2 if isinstance(universe, tuple) else 0
        if k == 0 or not is_box(universe, k) or not _is_measurable(universe):
            raise InvalidInput(
                f"the universe cannot be {universe!r:.100}: it must be a tuple of finite lows, "
                "then highs"
            )
        if not 2 <= k <= DIMENSIONS_MAX:
            raise InvalidInput(
                f"the universe must have from 2 to {DIMENSIONS_MAX} dimensions, of which the first "
                f"two are space, not {k}: {universe!r:.100}"
            )

    @property
    def dimensions(self) -> int:
        """Count the dimensions."""
        return len(self.universe) // 2

    def is_wide(self, box: Box) -> bool:
        """Whether a box covers the universe in its first two dimensions, which are space."""
        k, universe = self.dimensions, self.universe
        return all(box[i] <= universe[i] and universe[i + k] <= box[i + k] for i in range(2))

    def size(self, box: Box) -> Size:
        """Return the volume and the margin of the part of a box that lies in the universe."""
        return _measure(box, self.universe)

    def cost(self, box: Box) -> float:
        """Estimate the chance that a small event meets a box."""
        k = len(box) // 2
        universe = self.universe
        cost = 1.0
        for i in range(k):
            side = min(box[i + k], universe[i + k]) - max(box[i], universe[i])
            cost *= max(0.0, side) / (universe[i + k] - universe[i]) + _EVENT_SIDE
        return cost

    def growth(self, box: Box, other: Box) -> tuple[float, float, float]:
        """Return how much a box must grow to hold another, in volume and margin; and its volume."""
        volume, margin = self.size(box)
        joined_volume, joined_margin = self.size(join(box, other))
        return joined_volume - volume, joined_margin - margin, volume


def _is_measurable(universe: Box) -> bool:
    k, most = len(universe) // 2, float_info.max
    return all(abs(side) <= most for side in universe) and all(
        0 < universe[i + k] - universe[i] <= most for i in range(k)
    )


@lru_cache(maxsize=2**14)
def _measure(box: Box, universe: Box) -> Size:
    k = len(box) // 2
    volume, margin = 1.0, 0.0
    for i in range(k):
        width = min(box[i + k], universe[i + k]) - max(box[i], universe[i])
        side = max(0.0, width) / (universe[i + k] - universe[i])
        volume *= side
        margin += side
    return volume, margin
