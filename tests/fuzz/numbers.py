"""Numbers as docs/language.md defines them: integers of any size, doubles and decimals, exactly."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

Number: TypeAlias = int | float


def is_number(value: Any) -> bool:
    """Whether a value is a number that can be reckoned with: truth values and NaN are not."""
    if isinstance(value, bool | np.bool_):
        return False
    if isinstance(value, Decimal):
        return not value.is_nan()
    if isinstance(value, np.integer):
        return not isinstance(value, np.timedelta64)
    if isinstance(value, float | np.floating):
        return not math.isnan(value)
    return isinstance(value, int)


def exact(value: Any) -> Fraction | float:
    """The number itself, or an infinity."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Decimal) and value.is_infinite():
        return math.inf if value > 0 else -math.inf
    if isinstance(value, float) and math.isinf(value):
        return value
    return Fraction(value)


def reckoned(value: Any) -> Number:
    """An integer as it is, everything else as a double; a whole decimal is an integer."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Decimal):
        whole = value.is_finite() and value == value.to_integral_value()
        return int(value) if whole else float(value)
    assert isinstance(value, int | float)
    return value


def calculate(operator: str, left: Any, right: Any) -> Number | None:
    """The result of an operation, if it has one."""
    if not is_number(left) or not is_number(right):
        return None
    a, b = reckoned(left), reckoned(right)
    if is_huge(a) or is_huge(b):
        return None
    try:
        result = calculate_numbers(operator, a, b)
    except (ZeroDivisionError, OverflowError, ValueError):
        return None
    if (
        is_huge(result)
        or isinstance(result, complex)
        or (isinstance(result, float) and math.isnan(result))
    ):
        return None
    was_finite = not any(isinstance(n, float) and math.isinf(n) for n in (a, b))
    return None if isinstance(result, float) and math.isinf(result) and was_finite else result


def is_huge(number: Any) -> bool:
    """Integers beyond all doubles take no part in arithmetic."""
    return isinstance(number, int) and abs(number) >= 2**1024


def calculate_numbers(operator: str, a: Number, b: Number) -> Any:
    """The result in Python's own arithmetic, rounded towards zero where the language says so."""
    match operator:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "/":
            whole = isinstance(a, int) and isinstance(b, int) and a % b == 0
            return a // b if whole else a / b
        case "div":
            return math.trunc(Fraction(a) / Fraction(b))
        case "%":
            if isinstance(a, int) and isinstance(b, int):
                return a - b * math.trunc(Fraction(a, b))
            if math.isinf(a) or math.isinf(b):
                return math.fmod(a, b)
            return float(Fraction(a) - Fraction(b) * math.trunc(Fraction(a) / Fraction(b)))
        case "^":
            if isinstance(a, int) and isinstance(b, int) and abs(a) > 1 and b > 1024:
                raise OverflowError("beyond all doubles")  # which Python would reckon out
            return a**b
    raise AssertionError(operator)
