"""Moments and spans of time as docs/language.md and the Time Ontology define them.

A moment is a whole number of nanoseconds since 1970 in UTC. A span is a pair of positions on the
line of time, of which an open end is infinite. Nothing here is taken from the library.
"""

from __future__ import annotations

import datetime as dt
import re
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

NANOSECONDS = 1_000_000_000
OPEN = ".."
EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001  (all of this module is UTC)
DAY = re.compile(r"(\d{4})-(\d\d)-(\d\d)", re.ASCII)
MOMENT = re.compile(
    r"(\d{4}-\d\d-\d\d)[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?"
    r"\s*(Z|z|[+-]\d\d(?::?\d\d)?)?",
    re.ASCII,
)


class Moment(NamedTuple):
    """A position on the line of time; a class of its own, so that it is not a number."""

    nanoseconds: int


class Span(NamedTuple):
    """A closed stretch of time."""

    start: float
    end: float


Test: TypeAlias = "Callable[[float, float, float, float], bool]"


def read_text(text: str) -> Moment | None:
    """The moment that a text of ISO 8601 names, if it does."""
    text = text.strip(" \t\r\n")
    if DAY.fullmatch(text):
        return read_day(text)
    found = MOMENT.fullmatch(text)
    if not found:
        return None
    day, hours, minutes, seconds, fraction, zone = found.groups()
    midnight = read_day(day)
    seconds = seconds or "00"
    if midnight is None or int(hours) > 23 or int(minutes) > 59 or int(seconds) > 60:
        return None
    since = (int(hours) * 60 + int(minutes)) * 60 + int(seconds) - offset_s(zone)
    return Moment(
        midnight.nanoseconds + since * NANOSECONDS + int((fraction or "").ljust(9, "0") or 0)
    )


def read_day(text: str) -> Moment | None:
    """The beginning of a day."""
    year, month, day = (int(part) for part in text.split("-"))
    try:
        days = (dt.date(year, month, day) - EPOCH.date()).days
    except ValueError:
        return None
    return Moment(days * 86_400 * NANOSECONDS)


def offset_s(zone: str | None) -> int:
    """How far a zone is ahead of UTC."""
    if zone in {None, "Z", "z"}:
        return 0
    digits = zone[1:].replace(":", "").ljust(4, "0")
    seconds = (int(digits[:2]) * 60 + int(digits[2:])) * 60
    return -seconds if zone[0] == "-" else seconds


def own_moment(value: Any) -> Moment | None:
    """The moment that a value is by its type: a text is not one."""
    if isinstance(value, Moment):
        return value
    if isinstance(value, np.datetime64):
        return None if np.isnat(value) else Moment(int(value.astype("datetime64[ns]").astype(int)))
    if isinstance(value, dt.datetime):
        naive = value.astimezone(dt.UTC).replace(tzinfo=None) if value.tzinfo else value
        return Moment((naive - EPOCH) // dt.timedelta(microseconds=1) * 1_000)
    if isinstance(value, dt.date):
        return Moment((value - EPOCH.date()).days * 86_400 * NANOSECONDS)
    return None


def as_moment(value: Any) -> Moment | None:
    """The moment that a value is or says."""
    return read_text(value) if isinstance(value, str) else own_moment(value)


def as_span(value: Any) -> Span | None:
    """The span that a value is: of a moment, or of a pair of which one or both may be open."""
    if isinstance(value, Span):
        return value
    if isinstance(value, list | tuple) and not isinstance(value, Moment):
        return span_between(*value) if len(value) == 2 else None
    moment = as_moment(value)
    return None if moment is None else Span(moment.nanoseconds, moment.nanoseconds)


def span_between(start: Any, end: Any) -> Span | None:
    """The span from one end to the other, if both are known and in order."""
    first = -inf if start == OPEN else position(start)
    last = inf if end == OPEN else position(end)
    return None if first is None or last is None or first > last else Span(first, last)


def position(value: Any) -> float | None:
    """Where a moment lies."""
    moment = as_moment(value)
    return None if moment is None else moment.nanoseconds


# The start and the end of the first span, then those of the second.
RELATIONS: dict[str, Test] = {
    "t_after": lambda a, b, c, d: a > d,
    "t_before": lambda a, b, c, d: b < c,
    "t_contains": lambda a, b, c, d: a < c and b > d,
    "t_disjoint": lambda a, b, c, d: b < c or a > d,
    "t_during": lambda a, b, c, d: a > c and b < d,
    "t_equals": lambda a, b, c, d: a == c and b == d,
    "t_finishedBy": lambda a, b, c, d: a < c and b == d,
    "t_finishes": lambda a, b, c, d: a > c and b == d,
    "t_intersects": lambda a, b, c, d: a <= d and c <= b,
    "t_meets": lambda a, b, c, d: b == c,
    "t_metBy": lambda a, b, c, d: a == d,
    "t_overlappedBy": lambda a, b, c, d: c < a < d < b,
    "t_overlaps": lambda a, b, c, d: a < c < b < d,
    "t_startedBy": lambda a, b, c, d: a == c and b > d,
    "t_starts": lambda a, b, c, d: a == c and b < d,
}
