"""Positions that come as objects: each value counts as it does in `match`, also after it waited."""

import enum
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar
from uuid import UUID

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import shapely

from contrada import InvalidInput, Matcher, Tracker

AT = "POINT(1 1)"


class Shaped:
    """What says of itself which geometry it is, as those of other libraries do."""

    __geo_interface__: ClassVar[dict[str, Any]] = {"type": "Point", "coordinates": (3, 3)}


LATENESS = [None, "5 s"]
VALUES: list[Any] = [
    2**63,
    2**64,
    -(2**63),
    np.uint64(2**64 - 1),
    Decimal("1E400"),
    Decimal("NaN"),
    5,
    5.5,
    float("nan"),
    float("inf"),
    True,
    None,
    "5",
    "a",
    shapely.to_wkb(shapely.Point(3, 3)),
    [1, "a"],
    [True, 1],
    (1, 2),
    np.array([1, 2]),
    {"y": 7, "$y": 8},
    {"$float": "1"},
    {1: 2},
    date(2021, 1, 1),
    np.datetime64("2021-01-01"),
    np.datetime64("20210-01-01"),
    np.timedelta64(5, "s"),
    timedelta(seconds=5),
    UUID(int=5),
    shapely.Point(3, 3),
    {"type": "Point", "coordinates": [3, 3]},
    object(),
    "\ud800",
    Shaped(),
    {"inner": Shaped()},
    np.array(5.0),
    np.ma.masked,
    np.array(["2021-01-01", "2022-01-01"], "M8[ns]"),
    np.array(["2021-01-01", "2022-01-01"]),
    np.array([[1, 2], [3, 4]], object),
    np.void(shapely.to_wkb(shapely.Point(3, 3))),
    pd.Timestamp("2021-01-01T00:00:00.000000001"),
    pd.Timestamp("2021-01-01T01:00:00.000000001", tz="Europe/Paris"),
    datetime(2021, 1, 1, tzinfo=UTC),
    pd.NaT,
]
TESTS = [
    "x > 3",
    "x = 5",
    "x IS NULL",
    "x IS NOT NULL",
    "x = 'a' OR x = '5'",
    "A_CONTAINS(x, (1))",
    "x > DATE('2020-12-31')",
    '"x.y" = 7',
    "S_INTERSECTS(x, POINT(3 3))",
    "NOT S_INTERSECTS(x, POINT(4 4))",
    "x = TIMESTAMP('2021-01-01T00:00:00Z')",
    "x > TIMESTAMP('2021-01-01T00:00:00Z')",
    "T_INTERSECTS(x, INTERVAL('2020-01-01', '2021-06-01'))",
    "A_CONTAINS(x, (TIMESTAMP('2021-01-01T00:00:00Z')))",
    "A_CONTAINS(x, ('2021-01-01'))",
]


def positions(values: list[Any]) -> list[dict[str, Any]]:
    return [
        {"object_id": f"o{row:02}", "time": "2020-01-01", "geometry": AT, "x": value}
        for row, value in enumerate(values)
    ]


def matcher_of(*filters: str) -> Matcher:
    matcher = Matcher()
    for number, text in enumerate(filters):
        matcher.add(f"f{number}", f"S_INTERSECTS(geometry, {AT}) AND ({text})")
    return matcher


def release(tracker: Tracker, events: Any, lateness: str | None) -> list[tuple[str, str]]:
    """Follow events until none of them waits any more; return the enters."""
    rows = [tracker.follow(events)]
    if lateness is not None:
        later = {"object_id": "z", "time": "2020-01-02", "geometry": None, "id": 10_000}
        rows.append(tracker.follow(later | {"geometry": "POINT(9 9)"}))
    found = pa.concat_tables([table.select(["object", "subscription"]) for table in rows])
    return sorted(zip(*(column.to_pylist() for column in found.columns), strict=True))


@pytest.mark.parametrize("lateness", LATENESS)
@pytest.mark.parametrize("many", [True, False])
def test_every_value_counts_as_in_match(lateness: str | None, many: bool) -> None:
    matcher = matcher_of(*TESTS)
    events = positions(VALUES)
    expected = sorted((e["object_id"], found) for e in events for found in matcher.match(e))
    for batch in [events] if many else [[event] for event in events]:
        tracker = Tracker(matcher, lateness=lateness or "0 s")
        found = release(tracker, batch, lateness)
        objects = {event["object_id"] for event in batch}
        assert found == [pair for pair in expected if pair[0] in objects]


def test_values_that_wait_are_kept_with_the_state(tmp_path: Path) -> None:
    matcher = matcher_of(*TESTS)
    events = positions(VALUES)
    expected = sorted((e["object_id"], found) for e in events for found in matcher.match(e))
    tracker = Tracker(matcher, lateness="5 s")
    assert tracker.follow(events).num_rows == 0
    tracker.save(tmp_path / "state.tracks")
    opened = Tracker.open(tmp_path / "state.tracks", matcher, lateness="5 s")
    assert release(opened, [], "5 s") == expected


@pytest.mark.parametrize("lateness", LATENESS)
def test_a_column_that_one_reads_as_a_geometry_stays_text_for_others(lateness: str | None) -> None:
    matcher = matcher_of("S_INTERSECTS(zone, POINT(3 3))", "zone = 'harbour'")
    table = pa.table(
        {
            "object_id": ["a", "b"],
            "time": ["2020-01-01"] * 2,
            "geometry": [AT] * 2,
            "zone": ["harbour", "POINT(3 3)"],
            "id": [1, 2],
        }
    )
    tracker = Tracker(matcher, lateness=lateness or "0 s")
    assert release(tracker, table, lateness) == [("a", "f1"), ("b", "f0")]


@pytest.mark.parametrize("lateness", LATENESS)
@pytest.mark.parametrize("as_table", [True, False])
def test_what_was_mended_stays_so_while_it_waits(lateness: str | None, as_table: bool) -> None:
    crossed = "POLYGON((0 0, 4 4, 4 0, 0 4, 0 0))"
    matcher = matcher_of("S_INTERSECTS(x, POINT(3.5 2))")
    events: Any = [{**positions([crossed])[0], "id": 1}]
    if as_table:
        events = pa.Table.from_pylist(events)
    tracker = Tracker(matcher, lateness=lateness or "0 s")
    rows = [tracker.follow(events, repair=True)]
    rows.append(tracker.follow({**positions([None])[0], "id": 2, "time": "2020-01-02"}))
    assert (
        pa.concat_tables(rows)["transition"].to_pylist() == ["enter", "exit"][: 2 - bool(lateness)]
    )


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def shared(levels: int) -> Any:
    value: Any = [1]
    for _ in range(levels):
        value = [value, value]
    return value


def cyclic() -> Any:
    value: list[Any] = []
    value.append(value)
    return value


BOTTOMLESS = [nested(65), nested(5_000), shared(60), cyclic()]


@pytest.mark.parametrize("value", BOTTOMLESS, ids=["65", "5000", "shared", "cyclic"])
def test_what_is_nested_without_end_does_no_harm_where_nothing_waits(value: Any) -> None:
    matcher = Matcher()
    matcher.add("here", geometry=AT)
    assert Tracker(matcher).follow(positions([value]))["transition"].to_pylist() == ["enter"]


@pytest.mark.parametrize("value", BOTTOMLESS, ids=["65", "5000", "shared", "cyclic"])
def test_what_cannot_be_kept_is_refused_where_it_would_have_to_wait(
    value: Any, tmp_path: Path
) -> None:
    matcher = Matcher()
    matcher.add("here", geometry=AT, where="x IS NOT NULL")
    with pytest.raises(InvalidInput, match=r"row 1.*'x'"):
        Tracker(matcher, lateness="5 s").follow(positions([1, value]))
    tracker = Tracker(matcher, lateness="5 s", quarantine=True)
    bad = tracker.follow(positions([1, value]))
    assert [error["place"] for error in bad["error"].to_pylist()] == ["attribute 'x'"]
    tracker.save(tmp_path / "state.tracks")
    assert release(tracker, [], "5 s") == [("o00", "here")]


class Ship(enum.IntEnum):
    ANNA = 7


def test_an_id_may_be_of_a_class_of_integers() -> None:
    matcher = Matcher()
    matcher.add("here", geometry=AT)
    event = {"object_id": Ship.ANNA, "id": Ship.ANNA, "time": "2020-01-01", "geometry": AT}
    (row,) = Tracker(matcher).follow([event]).to_pylist()
    assert (row["object"], row["event"]) == (7, 7)


@pytest.mark.parametrize("lateness", LATENESS)
def test_doubles_of_objects_are_told_apart_by_their_place(lateness: str | None) -> None:
    matcher = Matcher()
    matcher.add("here", geometry=AT)
    event = {"object_id": "a", "id": 1, "time": "2020-01-01"}
    doubles = [{**event, "geometry": place} for place in (AT, "POINT(0 0)", AT)]
    tracker = Tracker(matcher, lateness=lateness or "0 s")
    assert release(tracker, doubles, lateness) == []  # that with the smaller WKB stays


@pytest.mark.parametrize("lateness", LATENESS)
def test_which_double_stays_does_not_depend_on_the_order_of_members(lateness: str | None) -> None:
    matcher = Matcher()
    matcher.add("here", geometry=AT, where="x = 1")
    events = [
        {"object_id": "a", "id": 1, "time": "2020-01-01", "geometry": AT, "x": x, "y": y}
        for x, y in ((1, 2), (2, 1))
    ]
    found = []
    for first in (events[0], dict(reversed(events[0].items()))):
        tracker = Tracker(matcher, lateness=lateness or "0 s")
        found.append(release(tracker, [first, events[1]], lateness))
    assert found[0] == found[1]


def test_a_geometry_of_another_library_waits_as_any_other() -> None:
    matcher = Matcher()
    matcher.add("there", geometry="POINT(3 3)")
    event = {"object_id": "a", "id": 1, "time": "2020-01-01", "geometry": Shaped()}
    assert release(Tracker(matcher, lateness="5 s"), event, "5 s") == [("a", "there")]


@pytest.mark.parametrize("text", ["hello", '{"geometry": "POINT(7 7)"}'])
def test_a_column_may_have_any_name(text: str) -> None:
    matcher = Matcher()
    matcher.add("here", geometry=AT)
    table = pa.table(
        {
            "contrada.event": pa.array([text.encode()], pa.large_binary()),
            "geometry": [AT],
            "contrada.object": ["b"],
            "object_id": ["a"],
            "time": ["2020-01-01"],
        }
    )
    assert release(Tracker(matcher, lateness="5 s"), table, "5 s") == [("a", "here")]
