"""What a number is found by in sets and tables.

Python hashes a number by its remainder modulo 2**61 - 1, so that of numbers of any size as many
as one likes have the same hash, and a table of them takes the square of their number. Of integers
of 64 bits and of doubles only a few dozen have; every other number gets a key that begins with
a digest: its remainder modulo one number, times another, both different in each process, as the
hashes of texts are.
"""

from decimal import Decimal
from typing import Any

_INT_MIN, _INT_MAX = -(2**63), 2**63 - 1
_DOUBLE_BITS_MAX = 1_024
_DIGEST_BITS = 60
_DIGITS_AT_ONCE = 500  # of a decimal number: to make an integer of them takes their square


def _secret(name: str) -> int:
    """Make a number of nearly all the bits of the modulus that a stranger cannot guess."""
    high, low = (hash(f"{name} {part}") & 2**62 - 1 for part in ("high", "low"))
    return 2**124 | high << 62 | low


_MODULUS = 10 * _secret("modulus") + 1  # prime to ten, of which there are negative powers, too
_FACTOR = _secret("factor")
_SHIFT = _MODULUS.bit_length() - _DIGEST_BITS


def number_key(number: int | float | Decimal) -> Any:
    """Return the key of a number that is not NaN: keys are equal exactly where numbers are."""
    if isinstance(number, float) or _is_common(number):
        return number
    return _remainder(number) * _FACTOR % _MODULUS >> _SHIFT, number


def _is_common(number: int | Decimal) -> bool:
    """Whether a 64-bit integer or a double is exactly equal to a number."""
    if _INT_MIN <= number <= _INT_MAX and (isinstance(number, int) or number == int(number)):
        return True
    if isinstance(number, int) and number.bit_length() > _DOUBLE_BITS_MAX:
        return False
    try:
        return float(number) == number
    except OverflowError:
        return False


def _remainder(number: int | Decimal) -> int:
    if isinstance(number, int):
        return number % _MODULUS
    sign, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    remainder = 0
    for start in range(0, len(digits), _DIGITS_AT_ONCE):
        some = digits[start : start + _DIGITS_AT_ONCE]
        remainder = (remainder * 10 ** len(some) + int(Decimal((0, some, 0)))) % _MODULUS
    return (-remainder if sign else remainder) * pow(10, exponent, _MODULUS) % _MODULUS
