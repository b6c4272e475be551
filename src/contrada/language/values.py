"""Values in three-valued logic: comparison, arithmetic, text and time.

Every function takes what an event may bring and never raises for its type: where a value is
missing, is NaN or is of another type than the operator takes, the answer is None, unknown.
"""

import math
import operator
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from datetime import date
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import chain, groupby
from typing import Any

import numpy as np

from contrada.language.literals import OPEN_END
from contrada.limits import COMPARED_BITS_MAX, INTEGER_BITS_MAX, LIKE_PATTERN_LENGTH_MAX
from contrada.model.instant import Instant, Interval, read_instant

_ORDER: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_DECIMAL_DIGITS_MAX = 400
_COMPARED_DIGITS_MAX = math.floor(COMPARED_BITS_MAX * math.log10(2))
_DIGITS_APART_MIN = 3  # by which one of two numbers is surely the larger


def every(truths: Iterable[bool | None]) -> bool | None:
    """AND of three-valued truths."""
    result: bool | None = True
    for truth in truths:
        if truth is False:
            return False
        if truth is None:
            result = None
    return result


def some(truths: Iterable[bool | None]) -> bool | None:
    """OR of three-valued truths."""
    result: bool | None = False
    for truth in truths:
        if truth is True:
            return True
        if truth is None:
            result = None
    return result


def opposite(truth: bool | None) -> bool | None:
    """NOT of a three-valued truth."""
    return None if truth is None else not truth


def is_number(value: Any) -> bool:
    """Whether a value is a number that can be compared: not a truth value, not NaN."""
    if isinstance(value, bool):
        return False
    if isinstance(value, float):
        return not math.isnan(value)
    return isinstance(value, int) or (isinstance(value, Decimal) and not value.is_nan())


def is_unknown(value: Any) -> bool:
    """Whether a value is missing: null or NaN."""
    if isinstance(value, Decimal):
        return value.is_nan()
    return value is None or (isinstance(value, float) and math.isnan(value))


def compare(name: str, a: Any, b: Any) -> bool | None:
    """Compare two values of one type; numbers exactly, texts by code point, moments in UTC."""
    if a is None or b is None:
        return None
    if is_number(a) and is_number(b):
        return _compare_numbers(name, a, b)
    if isinstance(a, str) and isinstance(b, str):
        return _ORDER[name](a, b)
    if isinstance(a, bool) and isinstance(b, bool):
        return _ORDER[name](a, b) if name in {"=", "<>"} else None
    if is_moment(a) or is_moment(b):
        left, right = read_instant(a), read_instant(b)
        return None if left is None or right is None else _ORDER[name](left, right)
    return None


def _compare_numbers(name: str, a: Any, b: Any) -> bool | None:
    """Compare two numbers exactly, or a huge integer and a decimal number by their sizes.

    Python writes an integer as a decimal number first, and takes the square of its digits for it.
    """
    if isinstance(b, Decimal) and _is_long(a):
        order = _compare_sizes(a, b)
        return None if order is None else _ORDER[name](order, 0)
    if isinstance(a, Decimal) and _is_long(b):
        order = _compare_sizes(b, a)
        return None if order is None else _ORDER[name](0, order)
    return _ORDER[name](a, b)


def _is_long(number: Any) -> bool:
    return isinstance(number, int) and number.bit_length() > COMPARED_BITS_MAX


def is_long_decimal(number: Any) -> bool:
    """Whether a number is decimal, and so large that it is not compared with integers as large."""
    is_finite = isinstance(number, Decimal) and number.is_finite()
    return is_finite and number.adjusted() >= _COMPARED_DIGITS_MAX


def _compare_sizes(number: int, decimal: Decimal) -> int | None:
    """Return 1 or -1 where a huge integer is greater or less; None where it is about as large."""
    sign = 1 if number > 0 else -1
    if decimal.is_infinite():
        return -1 if decimal > 0 else 1
    if not decimal or decimal.is_signed() == (sign > 0):
        return sign
    surplus = number.bit_length() * math.log10(2) - decimal.adjusted()
    return None if abs(surplus) < _DIGITS_APART_MIN else sign if surplus > 0 else -sign


def is_moment(value: Any) -> bool:
    """Whether a value is a moment by its type; a text may be one, too."""
    return isinstance(value, Instant | date | np.datetime64)


def compute(name: str, a: Any, b: Any) -> int | float | None:
    """Do arithmetic; integers stay exact, and what has no result is unknown."""
    if not (is_number(a) and is_number(b)):
        return None
    try:
        a, b = _plain(a), _plain(b)
        if _is_huge(a) or _is_huge(b):
            return None
        result = _ARITHMETIC[name](a, b)
    except (ArithmeticError, ValueError):
        return None
    if _is_huge(result):
        return None
    overflows = _is_infinite(result) and not (_is_infinite(a) or _is_infinite(b))
    return result if is_number(result) and not overflows else None


def _is_huge(number: Any) -> bool:
    return isinstance(number, int) and number.bit_length() > INTEGER_BITS_MAX


def _is_infinite(number: Any) -> bool:
    return isinstance(number, float) and math.isinf(number)


def _plain(number: int | float | Decimal) -> int | float:
    """Return a number as an integer or a double; one that is too large for both is an error."""
    if not isinstance(number, Decimal):
        return number
    is_moderate = number.is_finite() and number.adjusted() <= _DECIMAL_DIGITS_MAX
    if is_moderate and number == number.to_integral_value():
        return int(number)
    real = float(number)
    if _is_infinite(real) and number.is_finite():
        raise OverflowError
    return real


def _divide(a: int | float, b: int | float) -> int | float:
    if isinstance(a, int) and isinstance(b, int) and a % b == 0:
        return a // b
    return a / b


def _divide_whole(a: int | float, b: int | float) -> int:
    """Divide exactly and drop the fraction, towards zero."""
    if isinstance(a, int) and isinstance(b, int):
        return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    if _is_infinite(b):
        return math.trunc(a / b)
    return math.trunc(Fraction(a) / Fraction(b))


def _remainder(a: int | float, b: int | float) -> int | float:
    """Return the remainder of `div`, with the sign of the dividend."""
    if isinstance(a, int) and isinstance(b, int):
        return a - b * _divide_whole(a, b)
    if _is_infinite(b) or (float(a) == a and float(b) == b):
        return math.fmod(a, b)
    return float(Fraction(a) - Fraction(b) * _divide_whole(a, b))


def _power(a: int | float, b: int | float) -> Any:
    if a == 0 and b < 0:
        raise ZeroDivisionError  # Python takes 0 to the power of -inf for inf
    if isinstance(a, int) and isinstance(b, int):
        is_small = b >= 0 and (a.bit_length() - 1) * b <= INTEGER_BITS_MAX
        return a**b if is_small else float(a) ** b
    return a**b


_ARITHMETIC: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _divide,
    "div": _divide_whole,
    "%": _remainder,
    "^": _power,
}


def fold_case(text: Any) -> str | None:
    """Remove the case of a text, by Unicode's full case folding."""
    return text.casefold() if isinstance(text, str) else None


def strip_accents(text: Any) -> str | None:
    """Remove the accents of a text: it is decomposed, and combining marks are dropped.

    Marks are dropped before the text is decomposed, too: to put a run of them in order takes
    `unicodedata` the square of its length.
    """
    if not isinstance(text, str):
        return None
    if text.isascii():
        return text
    decomposed = unicodedata.normalize("NFD", _in_order(_without_marks(text)))
    return unicodedata.normalize("NFC", _without_marks(decomposed))


def _without_marks(text: str) -> str:
    return "".join(letter for letter in text if unicodedata.category(letter) != "Mn")


def _in_order(text: str) -> str:
    """Put each run of combining letters in the order that Unicode asks for."""
    if not any(map(unicodedata.combining, text)):
        return text
    runs = groupby(text, key=lambda letter: unicodedata.combining(letter) > 0)
    return "".join(chain.from_iterable(sorted(run, key=unicodedata.combining) for _, run in runs))


def like(text: Any, pattern: Any) -> bool | None:
    """Match a text against a pattern with `%`, `_` and the escape `\\`; too long a one is none."""
    if not (isinstance(text, str) and isinstance(pattern, str)):
        return None
    if len(pattern) > LIKE_PATTERN_LENGTH_MAX:
        return None
    return _compiled(pattern).fullmatch(text) is not None


@lru_cache(maxsize=4096)
def _compiled(pattern: str) -> re.Pattern[str]:
    """Translate a pattern; what stands between two `%` is found where it first fits, for good."""
    pieces = [""]
    for part in re.findall(r"\\.|.", pattern, re.DOTALL):
        if part == "%":
            pieces.append("")
        else:
            pieces[-1] += "." if part == "_" else re.escape(part[-1])
    first, *middle = pieces
    end = f".*{middle.pop()}" if middle else ""
    return re.compile(first + "".join(f"(?>.*?{p})" for p in middle) + end, re.DOTALL)


def read_span(value: Any) -> tuple[float | int, float | int] | None:
    """Read a span of time: a moment, an interval, or a pair of ends of which one may be open."""
    if isinstance(value, Interval):
        return value.bounds()
    if isinstance(value, list | tuple) and len(value) == 2:
        return _read_ends(*value)
    instant = read_instant(value)
    return None if instant is None else (instant.ns, instant.ns)


def _read_ends(start: Any, end: Any) -> tuple[float | int, float | int] | None:
    is_open = [isinstance(side, str) and side == OPEN_END for side in (start, end)]
    first, last = read_instant(start), read_instant(end)
    if (first is None and not is_open[0]) or (last is None and not is_open[1]):
        return None
    low, high = Interval(first, last).bounds()
    return (low, high) if low <= high else None


def compare_times(name: str, a: Any, b: Any) -> bool | None:
    """Decide one of the fifteen relations of two closed spans of time."""
    left, right = read_span(a), read_span(b)
    if left is None or right is None:
        return None
    return _TEMPORAL[name](left, right)


_TEMPORAL: Mapping[str, Callable[[Any, Any], bool]] = {
    "t_after": lambda a, b: a[0] > b[1],
    "t_before": lambda a, b: a[1] < b[0],
    "t_contains": lambda a, b: a[0] < b[0] and a[1] > b[1],
    "t_disjoint": lambda a, b: a[1] < b[0] or a[0] > b[1],
    "t_during": lambda a, b: a[0] > b[0] and a[1] < b[1],
    "t_equals": lambda a, b: a == b,
    "t_finishedBy": lambda a, b: a[0] < b[0] and a[1] == b[1],
    "t_finishes": lambda a, b: a[0] > b[0] and a[1] == b[1],
    "t_intersects": lambda a, b: a[1] >= b[0] and a[0] <= b[1],
    "t_meets": lambda a, b: a[1] == b[0],
    "t_metBy": lambda a, b: a[0] == b[1],
    "t_overlappedBy": lambda a, b: b[0] < a[0] < b[1] < a[1],
    "t_overlaps": lambda a, b: a[0] < b[0] < a[1] < b[1],
    "t_startedBy": lambda a, b: a[0] == b[0] and a[1] > b[1],
    "t_starts": lambda a, b: a[0] == b[0] and a[1] < b[1],
}
