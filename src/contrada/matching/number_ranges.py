"""Comparisons with numbers as closed ranges, one of int64 and one of doubles for each.

A value is compared exactly: an integer with the range of integers, a double with that of doubles,
whatever the bound is.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from contrada.arrays import Floats, Integers, Mask
from contrada.matching.constraint_columns import Head
from contrada.matching.operand_pools import OperandPools
from contrada.model.expression import Comparison, Literal

_INT_MIN, _INT_MAX = -(2**63), 2**63 - 1
_EXACT_MAX = 2**53  # integers up to it are doubles, too


@dataclass(frozen=True, slots=True)
class NumberRanges:
    """Ranges (low, high), rims included; an empty one has its low above its high.

    Where a range is outside, the value must not lie in it.
    """

    whole: NDArray[np.int64]
    real: Floats
    is_outside: Mask


NO_RANGES = NumberRanges(np.zeros((0, 2), np.int64), np.zeros((0, 2)), np.zeros(0, bool))


def join_ranges(parts: list[NumberRanges]) -> NumberRanges:
    """Put ranges one after another."""
    return NumberRanges(
        np.concatenate([part.whole for part in parts]),
        np.concatenate([part.real for part in parts]),
        np.concatenate([part.is_outside for part in parts]),
    )


def ranges_of(head: Head, pools: OperandPools) -> NumberRanges:
    """Write comparisons `attribute op number` that share a head as ranges."""
    test = head.constraint.test
    assert isinstance(test, Comparison) and isinstance(test.right, Literal)
    assert not head.constraint.is_negated
    operator = "=" if test.operator == "<>" else test.operator
    count = len(head.numbers)
    is_outside = np.full(count, test.operator == "<>")
    if not head.operands.shape[1]:  # an integer beyond 64 bits, which is part of the head
        bound = test.right.value
        assert isinstance(bound, int | float)
        one = np.array(_whole_range(operator, bound)), np.array(_real_range(operator, bound))
        return NumberRanges(np.tile(one[0], (count, 1)), np.tile(one[1], (count, 1)), is_outside)
    bits, is_whole = pools.bits[head.operands[:, 0]], pools.is_whole[head.operands[:, 0]]
    values = np.where(is_whole, bits.astype(np.float64), bits.view(np.float64))
    is_exact = np.abs(values) < _EXACT_MAX  # rounded or not, no larger one comes below it
    whole, real = np.empty((count, 2), np.int64), np.empty((count, 2))
    whole[is_exact] = _whole_ranges(operator, values[is_exact])
    is_double = is_exact | ~is_whole
    real[is_double] = _real_ranges(operator, values[is_double])
    for i in np.flatnonzero(~is_exact).tolist():
        bound = int(bits[i]) if is_whole[i] else float(values[i])
        whole[i], real[i] = _whole_range(operator, bound), _real_range(operator, bound)
    return NumberRanges(whole, real, is_outside)


def _whole_ranges(operator: str, bounds: Floats) -> Integers:
    """Write comparisons with numbers between -2^53 and 2^53 as ranges of integers."""
    floor, ceiling = np.floor(bounds).astype(np.int64), np.ceil(bounds).astype(np.int64)
    low, high = np.full_like(floor, _INT_MIN), np.full_like(floor, _INT_MAX)
    if operator in {">", ">=", "="}:
        low = floor + 1 if operator == ">" else ceiling
    if operator in {"<", "<=", "="}:
        high = ceiling - 1 if operator == "<" else floor
    return np.stack([low, high], axis=1)


@np.errstate(over="ignore")  # what lies beyond the greatest double is infinite
def _real_ranges(operator: str, bounds: Floats) -> Floats:
    low, high = np.full_like(bounds, -np.inf), np.full_like(bounds, np.inf)
    if operator in {">", ">=", "="}:
        low = np.nextafter(bounds, np.inf) if operator == ">" else bounds
    if operator in {"<", "<=", "="}:
        high = np.nextafter(bounds, -np.inf) if operator == "<" else bounds
    return np.stack([low, high], axis=1)


def _whole_range(operator: str, bound: int | float) -> tuple[int, int]:
    floor, ceiling = math.floor(bound), math.ceil(bound)
    low, high = {
        "<": (_INT_MIN, ceiling - 1),
        "<=": (_INT_MIN, floor),
        ">": (floor + 1, _INT_MAX),
        ">=": (ceiling, _INT_MAX),
        "=": (ceiling, floor),
    }[operator]
    if low > high or low > _INT_MAX or high < _INT_MIN:
        return 1, 0
    return max(low, _INT_MIN), min(high, _INT_MAX)


def _real_range(operator: str, bound: int | float) -> tuple[float, float]:
    below, above = _nearest_doubles(bound)
    is_exact = below == above
    return {
        "<": (-math.inf, math.nextafter(below, -math.inf) if is_exact else below),
        "<=": (-math.inf, below),
        ">": (math.nextafter(above, math.inf) if is_exact else above, math.inf),
        ">=": (above, math.inf),
        "=": (above, below),
    }[operator]


def _nearest_doubles(bound: int | float) -> tuple[float, float]:
    """Return the greatest double that is not above a number, and the least not below it."""
    try:
        near = float(bound)
    except OverflowError:
        huge = 1.7976931348623157e308
        return (huge, math.inf) if bound > 0 else (-math.inf, -huge)
    if near == bound:
        return near, near
    if near < bound:
        return near, math.nextafter(near, math.inf)
    return math.nextafter(near, -math.inf), near
