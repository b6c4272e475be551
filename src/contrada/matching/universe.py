"""The universe: the box of all space, as an option of an engine."""

from numbers import Real
from typing import Any

from contrada.arrays import Box
from contrada.errors import InvalidInput
from contrada.showing import brief

SIDE_MIN, SIDE_MAX = 1e-100, 1e100  # beyond these, products of lengths are no numbers


def read_universe(universe: Any) -> Box:
    """Read west, south, east, north; what is not a box of a workable size is refused."""
    west, south, east, north = sides = _read_sides(universe)
    if not (west < east and south < north):
        raise InvalidInput(
            f"the universe {sides} must be west, south, east, north, "
            "with west < east and south < north"
        )
    if not all(SIDE_MIN <= side <= SIDE_MAX for side in (east - west, north - south)):
        raise InvalidInput(
            f"the universe {sides} must be between {SIDE_MIN} and {SIDE_MAX} wide and high"
        )
    return sides


def _read_sides(universe: Any) -> Box:
    try:
        west, south, east, north = (read_real(side) for side in universe)
    except (TypeError, ValueError, OverflowError, NotImplementedError):
        raise InvalidInput(
            f"the universe must be west, south, east, north, not {brief(universe)}"
        ) from None
    return west, south, east, north


def read_real(value: Any) -> float:
    """Read a number; what is none, also NumPy's times, raises TypeError."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError
    return float(value)  # a time in NumPy counts as an integer, until here
