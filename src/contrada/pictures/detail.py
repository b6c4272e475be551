"""How much detail outlines keep: all of it, or what a file has room for.

What matched keeps its detail longer than what did not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contrada.pictures.outlines import GRID_UNITS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from contrada.pictures.outlines import DrawnPaths

# Of what did not match, detail finer than this share of the opening view is the first to go.
_FADED_UNITS = GRID_UNITS / 4_000
_COARSEST_UNITS = GRID_UNITS / 250


@dataclass(frozen=True, slots=True)
class Tolerances:
    """How far, in grid units, outlines may lie from the truth; zero where they are whole."""

    unmatched: float
    matched: float

    def of(self, matched: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return the tolerance of each shape."""
        return np.where(matched, self.matched, self.unmatched)


def fit_detail(
    columns: Sequence[DrawnPaths],
    matched: Sequence[NDArray[np.bool_]],
    unit: float,
    *,
    finest: float,
    vertices_max: int,
) -> tuple[list[DrawnPaths], Tolerances]:
    """Simplify the layers of a map to `finest` grid units, and further until they are few enough.

    It ends where the opening view would begin to look poor, though more may be left than wanted.
    """
    paths = list(columns)
    reached = Tolerances(0.0, 0.0)
    for step in _steps(finest):
        if reached.unmatched and _count_bends(paths) <= vertices_max:
            break
        # Errors add up; with steps that at least double, half of each keeps the sum within one.
        paths = [
            column.simplified(step.of(flags) * unit / 2)
            for column, flags in zip(paths, matched, strict=True)
        ]
        reached = step
    return paths, reached


def _steps(finest: float) -> Iterator[Tolerances]:
    unmatched = matched = finest
    yield Tolerances(unmatched, matched)
    while unmatched < _FADED_UNITS:
        unmatched = min(16 * unmatched, max(2 * unmatched, _FADED_UNITS))
        yield Tolerances(unmatched, matched)
    while matched < _COARSEST_UNITS:
        matched *= 2
        unmatched = max(unmatched, matched)
        yield Tolerances(unmatched, matched)


def _count_bends(columns: Sequence[DrawnPaths]) -> int:
    return sum(int(column.count_bends().sum()) for column in columns)
