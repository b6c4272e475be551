"""Where the lines of a graticule run and what is written at them."""

from __future__ import annotations

import math

import numpy as np

PARTS_MAX = 14


def choose_step(span: float, *, is_lonlat: bool) -> float:
    """Return the first round step that cuts `span` into `PARTS_MAX` parts or fewer.

    The series is 1, 2, 5, 10 …; of degrees, above ten it is 15, 30, 45, 90.
    """
    rough = span / PARTS_MAX
    if is_lonlat and 10 < rough <= 90:
        return next(float(step) for step in (15, 30, 45, 90) if step >= rough)
    power: float = 10.0 ** math.floor(math.log10(rough))
    return next((power * digit for digit in (1, 2, 5) if power * digit >= rough), 10 * power)


def line_places(low: float, high: float, step: float) -> list[float]:
    """List the multiples of `step` from `low` to `high`."""
    numbers = np.arange(math.ceil(low / step), math.floor(high / step) + 1)
    return [float(number * step) for number in numbers]


def write_place(place: float, step: float, *, is_lonlat: bool) -> str:
    """Write a coordinate with as many decimals as its step needs."""
    if abs(place) >= 1e9 or step < 1e-9:
        text = f"{place:.12g}"
    else:
        text = f"{place:,.{max(0, -math.floor(math.log10(step) + 1e-9))}f}"
    text = text.replace("-", "−") if float(text.replace(",", "")) else text.lstrip("-")
    return f"{text}°" if is_lonlat else text
