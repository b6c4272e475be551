"""What `Tracker` makes of columns of any type: objects, ids, subscribers, and rows that are bad."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
import shapely

import contrada

if TYPE_CHECKING:
    from pathlib import Path

SQUARE = "POLYGON((0 0, 4 0, 4 4, 0 4, 0 0))"
START = dt.datetime(2026, 3, 2, 8, tzinfo=dt.UTC)
INSIDE, NEAR, AWAY = (1, 1), (4.0001, 1), (5, 5)  # NEAR is 11 m from the square
Places = list[tuple[float, float]]


def make_fence(subscriber: Any = None) -> contrada.Matcher:
    matcher = contrada.Matcher()
    matcher.add("square", geometry=SQUARE, subscriber=subscriber)
    return matcher


def make_events(places: Places, object_: Any = "van") -> list[dict[str, Any]]:
    """A position a minute."""
    return [
        {
            "object_id": object_,
            "time": START + dt.timedelta(minutes=minute),
            "geometry": shapely.Point(place),
        }
        for minute, place in enumerate(places)
    ]


def as_table(events: list[dict[str, Any]]) -> pa.Table:
    columns = {name: [event[name] for event in events] for name in events[0]}
    return pa.table(columns | {"geometry": shapely.to_wkb(columns["geometry"])})


def kinds_of(rows: pa.Table) -> list[str]:
    kinds: list[str] = rows["transition"].to_pylist()
    return kinds


@pytest.mark.parametrize("is_table", [True, False])
def test_a_bad_row_in_quarantine_changes_nothing_for_hysteresis(is_table: bool) -> None:
    events = make_events([INSIDE, NEAR, AWAY, AWAY])
    events[2]["object_id"] = None
    tracker = contrada.Tracker(make_fence(), hysteresis=25, quarantine=True)
    *good, bad = tracker.follow(as_table(events) if is_table else events).to_pylist()
    assert [row["transition"] for row in good] == ["enter", "inside", "exit"]
    assert (bad["event"], bad["error"]["code"]) == (2, "null_object")


@pytest.mark.parametrize(
    ("kind", "object_"),
    [
        (pa.int16(), 7),
        (pa.uint64(), 7),
        (pa.large_string(), "van"),
        (pa.dictionary(pa.int8(), pa.string()), "van"),
    ],
)
def test_hysteresis_holds_for_positions_that_waited_whatever_type_objects_have(
    kind: pa.DataType, object_: Any
) -> None:
    table = as_table(make_events([INSIDE, NEAR, NEAR, AWAY], object_))
    table = table.set_column(0, "object_id", table["object_id"].cast(kind))
    tracker = contrada.Tracker(make_fence(), hysteresis=25, lateness="1 min")
    assert kinds_of(tracker.follow(table[:2])) == ["enter"]
    assert kinds_of(tracker.follow(table[2:])) == ["inside", "inside"]


def test_integer_ids_of_bad_rows_stay_integers_where_nothing_was_good() -> None:
    (event,) = make_events([INSIDE])
    tracker = contrada.Tracker(make_fence(), quarantine=True)
    (bad,) = tracker.follow({**event, "id": 7, "time": None}).to_pylist()
    assert (bad["event"], bad["error"]["code"]) == (7, "bad_time")


def test_integer_subscribers_stay_integers_when_no_subscription_is_left() -> None:
    matcher = make_fence(subscriber=7)
    tracker = contrada.Tracker(matcher, cooldown="1 h")
    events = make_events([INSIDE, AWAY, INSIDE, INSIDE])
    assert tracker.follow(events[:1])["subscriber"].to_pylist() == [7]
    matcher.remove("square")
    (gone,) = tracker.follow(events[1:2]).to_pylist()
    assert (gone["cause"], gone["subscriber"]) == ("version", 7)
    matcher.add("other", geometry=SQUARE, subscriber=8)
    assert tracker.follow(events[2:3])["subscriber"].to_pylist() == [8]
    matcher.add("named", geometry=SQUARE, subscriber="ops")
    assert tracker.follow(events[3:])["subscriber"].to_pylist() == ["ops", "8"]


def test_a_late_double_does_not_take_the_place_of_the_position_that_waited(
    tmp_path: Path,
) -> None:
    events, path = make_events([INSIDE, *[AWAY] * 9]), tmp_path / "van.tracks"
    for number, event in enumerate(events):
        event["id"] = number
    matcher = make_fence()
    tracker = contrada.Tracker(matcher, lateness="1 h", silence="1 min")
    tracker.follow(events)
    tracker.save(path)
    tracker = contrada.Tracker.open(path, matcher, silence="1 min")
    double = {**events[0], "geometry": shapely.Point(0, -9)}
    rows = tracker.follow(double)
    assert kinds_of(rows) == ["enter", "exit"]
    assert (tracker.stats()["repeated"], tracker.stats()["late"]) == (1, 0)
