"""Moments and spans of time, exact to the nanosecond."""

from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from typing import Any

import numpy as np
import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada.errors import InvalidInput
from contrada.model.instant import Instant, Interval, parse_instant, read_instant

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY_NS = 86_400 * 10**9
YEARS_1_TO_9999_NS = st.integers(-719_162 * DAY_NS, 2_932_897 * DAY_NS - 1)


class Nowhere(tzinfo):
    """A zone that does not know its offset, so that a moment in it is without a zone."""

    def utcoffset(self, moment: datetime | None) -> timedelta | None:
        return None

    def dst(self, moment: datetime | None) -> timedelta | None:
        return None

    def tzname(self, moment: datetime | None) -> str | None:
        return None


def ns_since_1970(year: int, *rest: int) -> int:
    since = datetime(year, *rest, tzinfo=UTC) - EPOCH  # type: ignore[misc, arg-type]
    return (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1_000


@pytest.mark.parametrize(
    ("value", "ns"),
    [
        (datetime(1970, 1, 1, tzinfo=UTC), 0),
        (datetime(1970, 1, 1), 0),  # noqa: DTZ001  (without a zone it is UTC)
        (datetime(1970, 1, 1, tzinfo=Nowhere()), 0),
        (datetime(1970, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))), 0),
        (datetime(1969, 12, 31, 23, 59, 59, 999999, UTC), -1_000),
        (datetime.min, ns_since_1970(1, 1, 1)),  # noqa: DTZ901
        (datetime.max, ns_since_1970(9999, 12, 31, 23, 59, 59, 999999)),  # noqa: DTZ901
        (
            datetime.max.replace(tzinfo=timezone(timedelta(hours=-9))),
            ns_since_1970(9999, 12, 31, 23, 59, 59, 999999) + 9 * 3_600 * 10**9,
        ),
        (date(1970, 1, 2), DAY_NS),
        (date.min, ns_since_1970(1, 1, 1)),
        (np.datetime64("1970-01-02"), DAY_NS),
        (np.datetime64("2021"), ns_since_1970(2021, 1, 1)),
        (np.datetime64("2021-03"), ns_since_1970(2021, 3, 1)),
        (np.datetime64(1, "W"), 7 * DAY_NS),
        (np.datetime64("2021-03-04T05", "h"), ns_since_1970(2021, 3, 4, 5)),
        (np.datetime64("2021-03-04T05:06", "m"), ns_since_1970(2021, 3, 4, 5, 6)),
        (np.datetime64(7, ("s", 25)), 175 * 10**9),
        (np.datetime64(7, "ms"), 7_000_000),
        (np.datetime64(7, "us"), 7_000),
        (np.datetime64(7, "ns"), 7),
        (np.datetime64(7_999, "ps"), 7),
        (np.datetime64(-1, "fs"), -1),
        (np.datetime64(10**9, "as"), 1),
        (np.datetime64("3000-01-01", "us"), ns_since_1970(3000, 1, 1)),
        (np.datetime64("0001-01-01", "ms"), ns_since_1970(1, 1, 1)),
        (pandas.Timestamp(7), 7),
        (pandas.Timestamp("1970-01-01T02:00:00.000000007+02:00"), 7),
        (pandas.Timestamp("2021-07-01T02:00", tz="Europe/Rome"), ns_since_1970(2021, 7, 1)),
        (pandas.Timestamp(np.datetime64("9999-12-31", "s")), ns_since_1970(9999, 12, 31)),
        (Instant(7), 7),
    ],
)
def test_a_moment_is_read_exactly(value: Any, ns: int) -> None:
    assert read_instant(value) == Instant(ns)


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("2021-03-04", ns_since_1970(2021, 3, 4)),
        ("2021-03-04T05:06:07Z", ns_since_1970(2021, 3, 4, 5, 6, 7)),
        ("2021-03-04T05:06:07z", ns_since_1970(2021, 3, 4, 5, 6, 7)),
        ("2021-03-04T05:06:07", ns_since_1970(2021, 3, 4, 5, 6, 7)),
        ("2021-03-04 05:06:07", ns_since_1970(2021, 3, 4, 5, 6, 7)),
        ("2021-03-04 05:06:07 Z", ns_since_1970(2021, 3, 4, 5, 6, 7)),
        ("  2021-03-04T05:06Z ", ns_since_1970(2021, 3, 4, 5, 6)),
        ("2021-03-04T05:06", ns_since_1970(2021, 3, 4, 5, 6)),
        ("2021-03-04T05:06+01:00", ns_since_1970(2021, 3, 4, 4, 6)),
        ("2021-03-04T00:30:00+01:00", ns_since_1970(2021, 3, 3, 23, 30)),
        ("2021-03-04T05:06:07-0130", ns_since_1970(2021, 3, 4, 6, 36, 7)),
        ("2021-03-04T05:06:07+02", ns_since_1970(2021, 3, 4, 3, 6, 7)),
        ("2021-03-04T05:06:07-00:00", ns_since_1970(2021, 3, 4, 5, 6, 7)),
        ("2021-03-04T05:06:07.1Z", ns_since_1970(2021, 3, 4, 5, 6, 7, 100_000)),
        ("2021-03-04T05:06:07,25", ns_since_1970(2021, 3, 4, 5, 6, 7, 250_000)),
        ("2021-03-04T05:06:07.000000001Z", ns_since_1970(2021, 3, 4, 5, 6, 7) + 1),
        ("1969-12-31T23:59:59.999999999Z", -1),
        ("2016-12-31T23:59:60Z", ns_since_1970(2017, 1, 1)),
        ("2016-12-31T23:59:60.5Z", ns_since_1970(2017, 1, 1, 0, 0, 0, 500_000)),
        ("0001-01-01", ns_since_1970(1, 1, 1)),
        ("9999-12-31T23:59:59.999999999Z", ns_since_1970(9999, 12, 31, 23, 59, 59) + 999_999_999),
    ],
)
def test_a_text_is_read_as_iso_8601(text: str, ns: int) -> None:
    assert read_instant(text) == Instant(ns)
    assert parse_instant(text) == Instant(ns)


@pytest.mark.parametrize(
    "text",
    [
        *("", "..", "now", "2021", "2021-03", "20210304", "2021-W09-4", "2021-3-4", "21-03-04"),
        *("2021-02-29", "2021-13-01", "2021-03-04T", "2021-03-04T5:06", "2021-03-04T05"),
        *(
            "2021-03-04T24:00:00",
            "2021-03-04T05:60",
            "2021-03-04T05:06:61",
            "2021-03-04T05:06:07+25",
        ),
        *("2021-03-04T05:06:07.", "2021-03-04T05:06:07.1234567891", "2021-03-04T05:06.5"),
        *("2021-03-04T05:06:07 UTC", "2021-03-04Z", "２０２１-03-04", "2021-03-04T05:06:07Z\0"),
        *("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:60Z", "9999-12-31T23:00:00-02:00"),
    ],
)
def test_other_texts_are_no_moments(text: str) -> None:
    assert read_instant(text) is None
    with pytest.raises(InvalidInput, match=r" is not an ISO 8601 date or timestamp$"):
        parse_instant(text)


@pytest.mark.parametrize(
    "value",
    [
        *(None, 5, 1.5, True, b"2021-03-04", [], time(1), timedelta(1), np.timedelta64(1, "s")),
        *(pandas.NaT, pandas.NA, np.datetime64("NaT"), np.datetime64("NaT", "ns"), object()),
    ],
)
def test_other_values_are_no_moments(value: Any) -> None:
    assert read_instant(value) is None


@given(YEARS_1_TO_9999_NS)
def test_a_moment_survives_its_text(ns: int) -> None:
    assert parse_instant(str(Instant(ns))) == Instant(ns)


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (1, "1970-01-01T00:00:00.000000001Z"),
        (-1, "1969-12-31T23:59:59.999999999Z"),
        (500_000_000, "1970-01-01T00:00:00.5Z"),
        (ns_since_1970(1, 1, 1), "0001-01-01T00:00:00Z"),
        (ns_since_1970(987, 6, 5), "0987-06-05T00:00:00Z"),
    ],
)
def test_a_moment_is_written_as_short_as_can_be(ns: int, text: str) -> None:
    assert str(Instant(ns)) == text


@given(st.integers(), st.integers())
def test_moments_are_ordered(a: int, b: int) -> None:
    assert (Instant(a) < Instant(b)) is (a < b)


@given(st.datetimes(), st.integers(-14 * 60, 14 * 60), st.integers(0, 999))
def test_all_forms_of_a_moment_agree(moment: datetime, offset_min: int, rest_ns: int) -> None:
    zone = timezone(timedelta(minutes=offset_min))
    since = moment - datetime(1970, 1, 1)  # noqa: DTZ001  (both without a zone)
    here_ns = (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1_000
    expected = Instant(here_ns - offset_min * 60 * 10**9)
    assert read_instant(moment.replace(tzinfo=zone)) == expected
    if YEARS_MIN_NS <= expected.ns <= YEARS_MAX_NS:
        assert read_instant(moment.replace(tzinfo=zone).isoformat()) == expected
    text = f"{moment.isoformat(timespec='microseconds')}{rest_ns:03}Z"
    assert read_instant(text) == Instant(here_ns + rest_ns)
    assert read_instant(np.datetime64(moment, "us")) == Instant(here_ns)


YEARS_MIN_NS, YEARS_MAX_NS = -719_162 * DAY_NS, 2_932_897 * DAY_NS - 1


def test_an_open_end_lies_infinitely_far_away() -> None:
    assert Interval(Instant(1), Instant(2)).bounds() == (1, 2)
    assert Interval(None, Instant(2)).bounds() == (-np.inf, 2)
    assert Interval(Instant(1), None).bounds() == (1, np.inf)


def test_blanks_around_a_moment_are_dropped_and_control_characters_are_not() -> None:
    assert parse_instant(" 2020-01-01\t\r\n") == parse_instant("2020-01-01")
    with pytest.raises(InvalidInput, match="not an ISO 8601"):
        parse_instant("2020-01-01\x1e")
    with pytest.raises(InvalidInput, match="not an ISO 8601"):
        parse_instant("2020-01-01T00:00:00.٣Z")
