"""Durations as people write them: "30 s", "10 min", "2 h", "1 day", or a timedelta."""

import re
from datetime import timedelta
from fractions import Fraction
from typing import Any

from contrada.errors import InvalidInput
from contrada.limits import DURATION_DAYS_MAX
from contrada.showing import brief

Duration = str | timedelta

_UNITS_US = {
    ("us", "µs", "microsecond", "microseconds"): 1,
    ("ms", "millisecond", "milliseconds"): 1_000,
    ("s", "sec", "second", "seconds"): 1_000_000,
    ("min", "minute", "minutes"): 60_000_000,
    ("h", "hour", "hours"): 3_600_000_000,
    ("d", "day", "days"): 86_400_000_000,
    ("week", "weeks"): 7 * 86_400_000_000,
}
_BY_NAME = {name: us for names, us in _UNITS_US.items() for name in names}
_TEXT = re.compile(r"\s*(\d{1,20}(?:\.\d{1,20})?)\s*([a-zµ]+)\s*", re.ASCII | re.IGNORECASE)
_US_MAX = DURATION_DAYS_MAX * 86_400_000_000


def read_duration(
    value: Any, name: str, *, may_be_zero: bool = True, is_only_text: bool = False
) -> int:
    """Read a duration as whole microseconds; `name` is the option that an error names.

    With `is_only_text`, and where it is an option of a command line, an error names no objects of
    Python.
    """
    us = _read(value)
    is_text = is_only_text or name.startswith("--")
    if us is None or us < 0:
        other = "" if is_text else ", or a datetime.timedelta"
        raise InvalidInput(
            f'{name} must be a duration such as "30 s", "10 min", "2 h" or "1 day"{other}, '
            f"not {brief(value)}"
        )
    if us.denominator != 1:
        raise InvalidInput(f"{name} must be whole microseconds, not {brief(value)}")
    if us == 0 and not may_be_zero:
        without = "leave it out" if is_text else "None is"
        raise InvalidInput(f'{name} must be longer than zero, such as "10 min"; {without} for none')
    if us > _US_MAX:
        raise InvalidInput(f"{name} is {brief(value)}, more than {DURATION_DAYS_MAX:,} days")
    return int(us)


def _read(value: Any) -> Fraction | None:
    if isinstance(value, timedelta):
        return Fraction(value // timedelta(microseconds=1))
    found = _TEXT.fullmatch(value) if isinstance(value, str) else None
    unit = _BY_NAME.get(found[2].lower()) if found else None
    return Fraction(found[1]) * unit if found and unit else None
