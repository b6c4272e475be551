"""Boxes of any number of dimensions, and how large they are in a universe.

A box is a tuple: the lows of all dimensions, then the highs. A side may be unbounded. Sizes are
measured within the universe and in units of it, so that unbounded sides and dimensions of
different units can be compared; what is flat has no volume, and is told apart by its margin.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from math import inf, isnan, prod
from typing import Any

Box = tuple[float, ...]
Size = tuple[float, float]  # volume and margin


def join(a: Box, b: Box) -> Box:
    """Give the smallest box around two."""
    k = len(a) // 2
    return (*map(min, a[:k], b[:k]), *map(max, a[k:], b[k:]))


def join_all(boxes: Iterable[Box]) -> Box:
    """Give the smallest box around some."""
    return reduce(join, boxes)


def meets(a: Box, b: Box) -> bool:
    """Tell whether two boxes have a point in common."""
    k = len(a) // 2
    for i in range(k):  # noqa: SIM110  a generator takes twice as long
        if a[i] > b[i + k] or b[i] > a[i + k]:
            return False
    return True


def covers(a: Box, b: Box) -> bool:
    """Tell whether no point of b lies outside a."""
    k = len(a) // 2
    return all(a[i] <= b[i] and b[i + k] <= a[i + k] for i in range(k))


def everything(dimensions: int) -> Box:
    """Give the box that is unbounded on all sides."""
    return (-inf,) * dimensions + (inf,) * dimensions


def is_box(value: Any, dimensions: int) -> bool:
    """Tell whether a value is a box of so many dimensions."""
    if not isinstance(value, tuple) or len(value) != 2 * dimensions:
        return False
    if not all(isinstance(side, float | int) and not isnan(side) for side in value):
        return False
    return all(value[i] <= value[i + dimensions] for i in range(dimensions))


@dataclass(frozen=True, slots=True)
class Space:
    """A universe: the bounded box in which sizes are measured."""

    universe: Box

    @property
    def dimensions(self) -> int:
        """Count the dimensions."""
        return len(self.universe) // 2

    def size(self, box: Box) -> Size:
        """Give the volume and the margin of a box as far as it lies in the universe."""
        k = len(box) // 2
        universe = self.universe
        sides = [
            max(0.0, min(box[i + k], universe[i + k]) - max(box[i], universe[i]))
            / (universe[i + k] - universe[i])
            for i in range(k)
        ]
        return prod(sides), sum(sides)

    def growth(self, box: Box, other: Box) -> tuple[float, float, float]:
        """Say how much a box must grow to hold another: in volume and margin; and its volume."""
        volume, margin = self.size(box)
        joined_volume, joined_margin = self.size(join(box, other))
        return joined_volume - volume, joined_margin - margin, volume
