"""The fifteen T_ operators, with moments and intervals in every form that an event may bring."""

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pandas
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from contrada.language import read, truth
from contrada.model.event import Event
from contrada.model.expression import Literal, Temporal
from contrada.model.instant import Instant, Interval

ABSENT = object()
CONVERSES = {
    "T_AFTER": "T_BEFORE",
    "T_BEFORE": "T_AFTER",
    "T_CONTAINS": "T_DURING",
    "T_DISJOINT": "T_DISJOINT",
    "T_DURING": "T_CONTAINS",
    "T_EQUALS": "T_EQUALS",
    "T_FINISHEDBY": "T_FINISHES",
    "T_FINISHES": "T_FINISHEDBY",
    "T_INTERSECTS": "T_INTERSECTS",
    "T_MEETS": "T_METBY",
    "T_METBY": "T_MEETS",
    "T_OVERLAPPEDBY": "T_OVERLAPS",
    "T_OVERLAPS": "T_OVERLAPPEDBY",
    "T_STARTEDBY": "T_STARTS",
    "T_STARTS": "T_STARTEDBY",
}


def truth_of(text: str, **attributes: Any) -> bool | None:
    present = {name: value for name, value in attributes.items() if value is not ABSENT}
    return truth(read(text), Event(present))


def at(hour: int) -> str:
    return f"2022-04-16T{hour:02}:00:00Z"


def ends(start: int | None, end: int | None) -> list[str]:
    return [".." if hour is None else at(hour) for hour in (start, end)]


def interval(start: int | None, end: int | None) -> str:
    return "INTERVAL({!r}, {!r})".format(*ends(start, end))


# All positions of a span against the interval from 4 to 8 o'clock

POSITIONS = [
    ((1, 2), "BEFORE DISJOINT"),
    ((1, 4), "MEETS INTERSECTS"),
    ((2, 6), "OVERLAPS INTERSECTS"),
    ((4, 6), "STARTS INTERSECTS"),
    ((5, 7), "DURING INTERSECTS"),
    ((6, 8), "FINISHES INTERSECTS"),
    ((4, 8), "EQUALS INTERSECTS"),
    ((2, 8), "FINISHEDBY INTERSECTS"),
    ((2, 9), "CONTAINS INTERSECTS"),
    ((4, 9), "STARTEDBY INTERSECTS"),
    ((6, 9), "OVERLAPPEDBY INTERSECTS"),
    ((8, 9), "METBY INTERSECTS"),
    ((9, 10), "AFTER DISJOINT"),
    ((None, 2), "BEFORE DISJOINT"),
    ((None, 4), "MEETS INTERSECTS"),
    ((None, 6), "OVERLAPS INTERSECTS"),
    ((None, 8), "FINISHEDBY INTERSECTS"),
    ((None, 9), "CONTAINS INTERSECTS"),
    ((None, None), "CONTAINS INTERSECTS"),
    ((4, None), "STARTEDBY INTERSECTS"),
    ((6, None), "OVERLAPPEDBY INTERSECTS"),
    ((8, None), "METBY INTERSECTS"),
    ((9, None), "AFTER DISJOINT"),
    ((3, 3), "BEFORE DISJOINT"),
    ((4, 4), "MEETS STARTS INTERSECTS"),
    ((6, 6), "DURING INTERSECTS"),
    ((8, 8), "METBY FINISHES INTERSECTS"),
    ((9, 9), "AFTER DISJOINT"),
]


@pytest.mark.parametrize(("span", "holding"), POSITIONS)
def test_every_operator_on_every_position_of_two_spans(
    span: tuple[int | None, int | None], holding: str
) -> None:
    start, end = ends(*span)
    literal = interval(4, 8)
    for operator, converse in CONVERSES.items():
        expected = operator.removeprefix("T_") in holding.split()
        assert truth_of(f"{operator}(t, {literal})", t=[start, end]) is expected
        assert truth_of(f"{operator}(INTERVAL(a, b), {literal})", a=start, b=end) is expected
        assert truth_of(f"{operator}({interval(*span)}, {literal})") is expected
        assert truth_of(f"NOT {operator}(t, {literal})", t=(start, end)) is not expected
        assert truth_of(f"{converse}({literal}, t)", t=(start, end)) is expected
        if span[0] == span[1] is not None:
            assert truth_of(f"{operator}(t, {literal})", t=start) is expected
            assert truth_of(f"{operator}(TIMESTAMP('{start}'), {literal})") is expected


@pytest.mark.parametrize(
    "value",
    [
        *(ABSENT, None, 5, 1650096000, 1.5, float("nan"), True, "", "soon", "2022", b"2022-04-16"),
        *(shapely.Point(), object(), {"start": at(4)}, pandas.NaT, pandas.NA, np.datetime64("NaT")),
        *(
            [],
            [at(4)],
            [at(4), at(5), at(6)],
            [at(5), at(4)],
            [at(4), None],
            [None, at(4)],
            "..",
            0,
        ),
        *([pandas.NA, pandas.NA], [np.array([1, 2]), at(4)], [float("nan"), at(4)], ["", ""]),
    ],
)
def test_what_is_no_span_of_time_is_unknown(value: Any) -> None:
    for operator in CONVERSES:
        assert truth_of(f"{operator}(t, {interval(4, 8)})", t=value) is None
        assert truth_of(f"NOT {operator}(t, {interval(4, 8)})", t=value) is None
        assert truth_of(f"{operator}(t, u)", t=at(4), u=value) is None


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"a": at(4)},
        {"b": at(4)},
        {"a": at(4), "b": None},
        {"a": at(5), "b": at(4)},
        {"a": 1, "b": 2},
    ],
)
def test_an_interval_of_attributes_needs_both_in_order(attributes: dict[str, Any]) -> None:
    assert truth_of(f"T_INTERSECTS(INTERVAL(a, b), {interval(None, None)})", **attributes) is None


def test_an_interval_may_end_openly_at_an_attribute() -> None:
    assert truth_of("T_AFTER(t, INTERVAL('..', b))", t=at(5), b=at(4)) is True
    assert truth_of("T_AFTER(t, INTERVAL('..', b))", t=at(4), b=at(4)) is False
    assert truth_of("T_BEFORE(t, INTERVAL(b, '..'))", t=at(3), b=at(4)) is True
    assert truth_of("T_BEFORE(t, INTERVAL(b, '..'))", t=at(3)) is None
    assert truth_of("T_DURING(t, INTERVAL(b, '2022-04-17'))", t=at(5), b=at(4)) is True
    assert truth_of("T_DURING(t, INTERVAL(DATE('2022-04-15'), b))", t=at(3), b=at(4)) is True


def test_an_empty_text_is_an_open_end_of_a_literal() -> None:
    assert read("T_AFTER(t, INTERVAL('', '2022-04-16'))") == read(
        "T_AFTER(t, INTERVAL('..', '2022-04-16'))"
    )


# Moments in every form

MOMENTS = [
    datetime(2022, 4, 16, 10, 13, 19, 500000, UTC),
    datetime(2022, 4, 16, 10, 13, 19, 500000),  # noqa: DTZ001  (without a zone it is UTC)
    datetime(2022, 4, 16, 12, 13, 19, 500000, timezone(timedelta(hours=2))),
    "2022-04-16T10:13:19.5Z",
    "2022-04-16T10:13:19.5",
    "2022-04-16 10:13:19,500",
    "2022-04-16T12:13:19.5+02:00",
    "2022-04-16T12:13:19.5+0200",
    "2022-04-16T12:13:19.5+02",
    "2022-04-16T04:43:19.500000000-05:30",
    np.datetime64("2022-04-16T10:13:19.5"),
    np.datetime64("2022-04-16T10:13:19.500000000"),
    pandas.Timestamp("2022-04-16T10:13:19.5"),
    pandas.Timestamp("2022-04-16T12:13:19.5", tz="Europe/Rome"),
]


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_moment_may_come_in_many_forms(moment: Any) -> None:
    assert truth_of("t = TIMESTAMP('2022-04-16T10:13:19.5Z')", t=moment) is True
    assert truth_of("T_EQUALS(t, TIMESTAMP('2022-04-16T10:13:19.5Z'))", t=moment) is True
    assert truth_of("t < TIMESTAMP('2022-04-16T10:13:19.500000001Z')", t=moment) is True
    assert truth_of("T_AFTER(t, TIMESTAMP('2022-04-16T10:13:19.499999999Z'))", t=moment) is True
    assert truth_of("T_BEFORE(INTERVAL(t, t), t)", t=moment) is False


@pytest.mark.parametrize(
    "moment",
    [
        np.datetime64("2022-04-16T10:13:19.000000001"),
        pandas.Timestamp("2022-04-16T10:13:19.000000001"),
        "2022-04-16T10:13:19.000000001Z",
    ],
)
def test_moments_are_exact_to_the_nanosecond(moment: Any) -> None:
    assert truth_of("t > TIMESTAMP('2022-04-16T10:13:19Z')", t=moment) is True
    assert truth_of("t = TIMESTAMP('2022-04-16T10:13:19.000000001Z')", t=moment) is True
    assert truth_of("t < TIMESTAMP('2022-04-16T10:13:19.000000002Z')", t=moment) is True


@pytest.mark.parametrize(
    "day",
    [date(2022, 4, 16), "2022-04-16", np.datetime64("2022-04-16"), datetime(2022, 4, 16)],  # noqa: DTZ001
)
def test_a_date_is_its_midnight_in_utc(day: Any) -> None:
    for literal in ("DATE('2022-04-16')", "TIMESTAMP('2022-04-16T00:00:00Z')"):
        assert truth_of(f"T_EQUALS(t, {literal})", t=day) is True
        assert truth_of(f"t = {literal}", t=day) is True
    assert truth_of("T_BEFORE(t, TIMESTAMP('2022-04-16T00:00:00.000000001Z'))", t=day) is True
    assert truth_of("T_DURING(t, INTERVAL('2022-04-15', '2022-04-17'))", t=day) is True


def test_dates_and_moments_are_one_kind_of_literal() -> None:
    assert read("t = DATE('2022-04-16')") == read("t = TIMESTAMP('2022-04-16T02:00:00+02:00')")
    test = read("T_AFTER(t, INTERVAL('2022-04-16', '..'))")
    assert isinstance(test, Temporal)
    assert test.right == Literal(Interval(Instant(1650067200 * 10**9), None))


@given(st.datetimes(), st.datetimes())
def test_moments_are_ordered_as_python_orders_them(a: datetime, b: datetime) -> None:
    assert truth_of("a < b", a=a, b=b) is (a < b)
    assert truth_of("T_BEFORE(a, b)", a=a.isoformat(), b=b) is (a < b)
    assert truth_of("T_EQUALS(a, b)", a=np.datetime64(a, "us"), b=b.replace(tzinfo=UTC)) is (a == b)
    assert truth_of(f"a <= TIMESTAMP('{b.isoformat()}Z')", a=pandas.Timestamp(a)) is (a <= b)


# The abstract test suite of the standard

ROWS = [
    ("2021-04-16T10:15:59Z", "2022-04-16T10:16:06Z"),
    ("2022-04-16T10:13:19Z", "2100-01-01T00:00:00Z"),
    ("2022-04-16T10:15:10Z", "2022-04-16T10:16:06Z"),
]


@pytest.mark.parametrize(
    ("operator", "start", "end", "count"),
    [
        ("t_after", "..", "2022-04-16T10:13:19Z", 1),
        ("t_before", "2023-01-01T00:00:00Z", "..", 2),
        ("t_disjoint", "2022-04-16T10:13:19Z", "2022-04-16T10:15:09Z", 1),
        ("t_equals", "2021-04-16T10:15:59Z", "2022-04-16T10:16:06Z", 1),
        ("t_intersects", "2022-04-16T10:13:19Z", "2022-04-16T10:15:09Z", 2),
        ("T_CONTAINS", "2022-04-16T10:13:19Z", "2022-04-16T10:15:10Z", 1),
        ("T_DURING", "2022-01-01T00:00:00Z", "2022-12-31T23:59:59Z", 1),
        ("T_FINISHES", "2022-04-16T10:13:19Z", "2022-04-16T10:16:06Z", 1),
        ("T_FINISHEDBY", "2022-04-16T10:13:19Z", "2022-04-16T10:16:06Z", 1),
        ("T_MEETS", "2022-04-16T10:13:19Z", "2022-04-16T10:15:10Z", 0),
        ("T_METBY", "2022-04-16T10:13:19Z", "2022-04-16T10:15:10Z", 1),
        ("T_OVERLAPPEDBY", "2020-04-16T10:13:19Z", "2022-04-16T10:15:10Z", 2),
        ("T_OVERLAPS", "2022-04-16T10:13:19Z", "2023-04-16T10:15:10Z", 1),
        ("T_STARTEDBY", "2022-04-16T10:13:19Z", "2022-04-16T10:15:10Z", 1),
        ("T_STARTS", "2022-04-16T10:13:19Z", "2022-04-16T10:15:10Z", 0),
    ],
)
def test_the_standard_counts_the_same_rows(operator: str, start: str, end: str, count: int) -> None:
    test = read(f"{operator}(interval(start,end),interval('{start}','{end}'))")
    found = [truth(test, Event({"start": first, "end": last})) for first, last in ROWS]
    assert found.count(True) == count
    assert None not in found
