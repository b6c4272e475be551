"""Filters and events of three kinds, in the unit square.

- `uniform`: sides of 0.02 to 0.1, anywhere; events anywhere.
- `clustered`: the same sides around twenty places; events around the same places.
- `containment`: each filter lies in an earlier one and has 0.3 to 0.9 of its sides, until they are
  as small as 0.02; one in twenty starts a new nest with sides of 0.2 to 0.5; events anywhere.
"""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from contrada.errors import InvalidInput
from contrada.overlay.boxes import Box, Space

Array = NDArray[np.float64]

UNIT = Space((0.0, 0.0, 1.0, 1.0))

_SIDE_MIN, _SIDE_MAX = 0.02, 0.1
_PLACES = 20
_SPREAD = 0.03
_NEST_SHARE = 0.05
_NEST_SIDES = 0.2, 0.5
_INNER_SIDES = 0.3, 0.9


class Workload:
    """A kind of filters and events, drawn with one generator."""

    def __init__(self, name: str, rng: Generator) -> None:
        """Start a workload of a kind."""
        if name not in WORKLOADS:
            raise InvalidInput(f"unknown workload {name!r}; choose one of {', '.join(WORKLOADS)}")
        self._rng = rng
        self._places = rng.random((_PLACES, 2)) * 0.9 + 0.05
        self._nests: list[Box] = []
        self._draw_filter, self._draw_point = WORKLOADS[name]

    def draw_filter(self) -> Box:
        """Draw the filter of a peer."""
        return self._draw_filter(self)

    def draw_point(self) -> tuple[float, float]:
        """Draw the place of an event."""
        x, y = self._draw_point(self)
        return x, y

    def _anywhere(self) -> list[float]:
        return [float(value) for value in self._rng.random(2)]

    def _near_a_place(self) -> list[float]:
        place = self._places[int(self._rng.integers(_PLACES))]
        moved = np.clip(place + self._rng.normal(size=2) * _SPREAD, 0.0, 1.0)
        return [float(value) for value in moved]

    def _uniform(self) -> Box:
        return self._around(self._anywhere(), _SIDE_MIN, _SIDE_MAX)

    def _clustered(self) -> Box:
        return self._around(self._near_a_place(), _SIDE_MIN, _SIDE_MAX)

    def _contained(self) -> Box:
        rng = self._rng
        if not self._nests or rng.random() < _NEST_SHARE:
            box = self._around(self._anywhere(), *_NEST_SIDES)
        else:
            box = self._within(self._nests[int(rng.integers(len(self._nests)))])
        self._nests.append(box)
        return box

    def _around(self, middle: list[float], side_min: float, side_max: float) -> Box:
        halves = self._rng.uniform(side_min, side_max, 2) / 2
        lows, highs = np.array(middle) - halves, np.array(middle) + halves
        return _as_box(np.clip(lows, 0.0, 1.0), np.clip(highs, 0.0, 1.0))

    def _within(self, outer: Box) -> Box:
        rng = self._rng
        lows, highs = np.array(outer[:2]), np.array(outer[2:])
        widths = highs - lows
        sides = np.minimum(np.maximum(widths * rng.uniform(*_INNER_SIDES, 2), _SIDE_MIN), widths)
        starts = lows + rng.random(2) * (widths - sides)
        return _as_box(starts, np.minimum(starts + sides, highs))


def _as_box(lows: Array, highs: Array) -> Box:
    return tuple(float(value) for value in (*lows, *highs))


Draw = tuple[Callable[[Workload], Box], Callable[[Workload], list[float]]]

WORKLOADS: Mapping[str, Draw] = {
    "uniform": (Workload._uniform, Workload._anywhere),
    "clustered": (Workload._clustered, Workload._near_a_place),
    "containment": (Workload._contained, Workload._anywhere),
}
