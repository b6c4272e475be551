"""Universes in which nothing can be measured are refused, and said."""

from math import inf, nan
from typing import Any

import pytest

from contrada.errors import InvalidInput
from contrada.overlay.boxes import DIMENSIONS_MAX, Space


@pytest.mark.parametrize(
    "universe",
    [
        (),
        [0.0, 0.0, 1.0, 1.0],
        (0.0, 0.0, 1.0),
        (0.0, 0.0, 1.0, nan),
        (0.0, 0.0, 1.0, inf),
        (0.0, 0.0, 1.0, 0.0),
        (0.0, 2.0, 1.0, 1.0),
        (0, 0, 10**400, 1),
        (10**400, 0, 10**400 + 1, 1),
        (-1e308, 0.0, 1e308, 1.0),
    ],
)
def test_a_universe_that_cannot_be_measured_is_refused(universe: Any) -> None:
    with pytest.raises(InvalidInput, match="a tuple of finite lows, then highs"):
        Space(universe)


@pytest.mark.parametrize("dimensions", [1, DIMENSIONS_MAX + 1])
def test_a_universe_of_too_few_or_too_many_dimensions_is_refused(dimensions: int) -> None:
    with pytest.raises(InvalidInput, match=f"first two are space, not {dimensions}"):
        Space((0.0,) * dimensions + (1.0,) * dimensions)


@pytest.mark.parametrize("dimensions", [2, DIMENSIONS_MAX])
def test_a_universe_of_few_dimensions_is_one(dimensions: int) -> None:
    assert Space((0.0,) * dimensions + (1.0,) * dimensions).dimensions == dimensions
