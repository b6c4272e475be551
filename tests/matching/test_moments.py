"""Columns of times against one value at a time."""

import datetime as dt

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada.matching.moments import read_moments
from contrada.model.instant import read_instant

moments = st.datetimes(dt.datetime(1, 1, 2), dt.datetime(9999, 12, 30))  # noqa: DTZ001


@given(st.lists(st.one_of(st.none(), moments)), st.sampled_from(["us", "ns", "ms", "s"]),
       st.sampled_from([None, "UTC", "Europe/Rome"]))  # fmt: skip
def test_timestamps_are_read_in_utc(values: list[dt.datetime | None], unit: str, zone: str) -> None:
    if unit == "ns":
        values = [value and value.replace(year=1800 + value.year % 400, day=1) for value in values]
    cut = {"ms": 1_000, "s": 1_000_000}.get(unit, 1)
    values = [v and v.replace(microsecond=v.microsecond // cut * cut) for v in values]
    column = pa.array(values, pa.timestamp("us")).cast(pa.timestamp(unit)).cast(pa.int64())
    read, faults = read_moments(column.cast(pa.timestamp(unit, zone)), "time")
    expected = [None if v is None else read_instant(v) for v in values]
    assert read.tolist() == [0 if e is None else e.ns // 1_000 for e in expected]
    assert sorted(faults) == [row for row, value in enumerate(values) if value is None]


TEXTS = (
    "2021-10-07T12:00:01Z",
    "2021-10-07 12:00:01.123456Z",
    "2021-10-07T12:00:01.123456789Z",
    "2021-10-07T12:00:01",
    "2021-10-07T12:00",
    "2021-10-07T12",
    "2021-10-07",
    "2016-12-31T23:59:60Z",
    "2021-02-30T00:00:00Z",
    "0000-01-01T00:00:00Z",
    "2021-10-07T12:00:01+02:00",
    "noon",
    "",
    None,
)


@given(st.lists(st.sampled_from(TEXTS), max_size=5))
def test_texts_are_read_as_each_alone(texts: list[str | None]) -> None:
    read, faults = read_moments(pa.array(texts, pa.string()), "time")
    for row, text in enumerate(texts):
        expected = None if text is None else read_instant(text)
        assert (row in faults) is (expected is None)
        assert read[row] == (0 if expected is None else expected.ns // 1_000)


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        (pa.array([None], pa.string()), "column 'seen': the time is missing"),
        (pa.array([5]), "column 'seen': the time 5 is not a timestamp, a date or ISO 8601 text"),
        (pa.array(["noon"]), "column 'seen': the time 'noon' is not a timestamp"),
        (pa.array([2**60], pa.timestamp("s")), "is not in the years 1 to 9999"),
        (pa.array([-(2**62)], pa.timestamp("us")), "is not in the years 1 to 9999"),
    ],
)
def test_what_is_no_moment_is_a_fault_of_its_row(column: pa.Array, reason: str) -> None:
    assert reason in str(read_moments(column, "seen")[1][0])


def test_dates_begin_the_day_and_finer_parts_are_cut_off() -> None:
    assert read_moments(pa.array([dt.date(1970, 1, 2)]), "time")[0].tolist() == [86_400_000_000]
    column = pa.array([-1, 1_999], pa.timestamp("ns"))
    assert read_moments(column, "time")[0].tolist() == [-1, 1]
