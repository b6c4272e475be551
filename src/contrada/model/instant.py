"""Moments and spans of time, exact to the nanosecond, in UTC.

A date is the moment at which it begins; a moment without a zone is UTC. An interval is closed;
an open end lies infinitely far away.
"""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np

from contrada.errors import InvalidInput
from contrada.showing import brief

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_BLANKS = " \t\r\n"
_ISO = re.compile(
    r"(\d{4}-\d{2}-\d{2})"
    r"(?:[T ](\d{2}:\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?\s*(Z|z|[+-]\d{2}(?::?\d{2})?)?)?",
    re.ASCII,
)
SECOND_NS = 1_000_000_000
_UNITS_NS = {
    "W": 604_800 * SECOND_NS,
    "D": 86_400 * SECOND_NS,
    "h": 3_600 * SECOND_NS,
    "m": 60 * SECOND_NS,
    "s": SECOND_NS,
    "ms": 1_000_000,
    "us": 1_000,
    "ns": 1,
}
_PARTS_OF_NS = {"ps": 1_000, "fs": 1_000_000, "as": 1_000_000_000}


@dataclass(frozen=True, slots=True, order=True)
class Instant:
    """A moment: nanoseconds since 1970-01-01T00:00:00Z."""

    ns: int

    def __str__(self) -> str:
        seconds, ns = divmod(self.ns, SECOND_NS)
        moment = _EPOCH + timedelta(seconds=seconds)
        fraction = f".{ns:09d}".rstrip("0") if ns else ""
        return f"{moment:%Y-%m-%dT%H:%M:%S}".rjust(19, "0") + f"{fraction}Z"


@dataclass(frozen=True, slots=True)
class Interval:
    """A closed span of time; an end that is None is open."""

    start: Instant | None
    end: Instant | None

    def bounds(self) -> tuple[float | int, float | int]:
        """Return both ends as comparable numbers."""
        start = -np.inf if self.start is None else self.start.ns
        end = np.inf if self.end is None else self.end.ns
        return start, end


def read_instant(value: Any) -> Instant | None:
    """Read a moment from an event's value; None where the value is not a moment.

    Takes `datetime` (pandas' too), `date`, `numpy.datetime64` and ISO 8601 text.
    """
    if isinstance(value, Instant):
        return value
    if isinstance(value, datetime):
        return _from_datetime(value)
    if isinstance(value, date):
        return Instant((value - _EPOCH.date()).days * 86_400 * SECOND_NS)
    if isinstance(value, np.datetime64):
        return None if np.isnat(value) else Instant(_nanoseconds(value))
    if isinstance(value, str):
        return _from_text(value)
    return None


def parse_instant(text: str) -> Instant:
    """Read a moment from the text of a literal."""
    instant = _from_text(text)
    if instant is None:
        raise InvalidInput(f"{brief(text)} is not an ISO 8601 date or timestamp")
    return instant


def _from_datetime(value: datetime) -> Instant | None:
    if value != value:  # noqa: PLR0124  (pandas' NaT is a datetime that equals nothing)
        return None
    aware = value if value.utcoffset() is not None else value.replace(tzinfo=UTC)
    since = aware - _EPOCH
    ns = (since.days * 86_400 + since.seconds) * SECOND_NS + since.microseconds * 1_000
    return Instant(ns + int(getattr(value, "nanosecond", 0)))


def _nanoseconds(value: np.datetime64) -> int:
    unit, step = np.datetime_data(value.dtype)
    if unit in {"Y", "M"}:
        value, unit, step = value.astype("datetime64[D]"), "D", 1
    count = int(value.astype(np.int64)) * step
    return count * _UNITS_NS[unit] if unit in _UNITS_NS else count // _PARTS_OF_NS[unit]


def _from_text(text: str) -> Instant | None:
    found = _ISO.fullmatch(text.strip(_BLANKS))
    if found is None:
        return None
    day, clock, second, fraction, zone = found.groups()
    leap = second == "60"
    offset = "+00:00" if zone in {None, "Z", "z"} else zone
    try:
        moment = datetime.fromisoformat(
            f"{day}T{clock or '00:00'}:{'59' if leap else second or '00'}{offset}"
        ).astimezone(UTC) + timedelta(seconds=leap)
    except (ValueError, OverflowError):  # no such day, or none of the years 1 to 9999 in UTC
        return None
    whole = _from_datetime(moment)
    assert whole is not None
    return Instant(whole.ns + int((fraction or "").ljust(9, "0")))
