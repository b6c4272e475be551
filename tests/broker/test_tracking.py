"""What the broker makes of positions, the clock and changes, told as conversations."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from contrada.broker import tracking
from contrada.broker.object_records import PairRecord, read_record, write_record
from contrada.broker.object_table import ObjectChange
from contrada.broker.object_timers import ObjectTimers
from contrada.broker.step_states import StepObject, make_state
from contrada.broker.track_positions import find_ahead
from contrada.broker.track_store import load_tracks, store_changes, store_settings
from contrada.broker.transition_bodies import FenceTerms, TrackingSettings
from contrada.errors import InvalidInput
from contrada.kernels.track_walk import ALWAYS_LATER, VISITING
from tracking_desk import TrackingDesk, read_features

MINUTE = 60_000_000
INSIDE, OUTSIDE = [1, 1], [20, 20]
DEPOT = "S_INTERSECTS(geometry, POLYGON((0 0, 3 0, 3 3, 0 3, 0 0)))"


def position(minute: int, place: Any, name: Any = "van", **more: Any) -> dict[str, Any]:
    time = f"1970-01-01T{minute // 60:02}:{minute % 60:02}:00Z"
    properties = {"object_id": name, "time": time, "label": f"{name} {minute}"}
    return {
        "type": "Feature",
        "geometry": {"type": "Point", "coordinates": place},
        "properties": {**properties, **more},
    }


def desk_of(**settings: Any) -> TrackingDesk:
    desk = TrackingDesk(TrackingSettings(**settings))
    desk.put("depot", DEPOT, FenceTerms())
    return desk


def told(rows: Any) -> list[tuple[Any, ...]]:
    return [(row.transition, row.time // MINUTE, row.cause, row.event) for row in rows]


def test_a_held_position_survives_a_restart_with_its_whole_feature() -> None:
    desk = desk_of(lateness_us=5 * MINUTE)
    assert desk.follow([position(1, INSIDE, load={"kind": "coal"})]) == []
    desk.restart()
    events = read_features([position(9, OUTSIDE)])
    work = desk.tracks.begin()
    step = work.step(events.rows, events.texts, desk.version, 0)
    (entry,) = step.entries
    assert entry.feature is not None
    assert json.loads(entry.feature) == position(1, INSIDE, load={"kind": "coal"})
    assert [match.facts() for match in entry.matches] == [
        {
            "transition": "enter",
            "object": "van",
            "time": "1970-01-01T00:01:00Z",
            "cause": "position",
        }
    ]


def test_what_is_not_committed_has_not_been() -> None:
    desk = desk_of()
    for _ in range(2):
        desk.follow([position(1, INSIDE)], abandon=True)
    assert told(desk.follow([position(1, INSIDE)])) == [("enter", 1, "position", "van 1")]


def test_steps_of_one_transaction_see_each_other() -> None:
    desk = desk_of()
    work = desk.tracks.begin()
    for minute, transition in ((1, "enter"), (2, "inside")):
        events = read_features([position(minute, INSIDE)])
        step = work.step(events.rows, events.texts, desk.version, 0)
        assert [match.transition for match in step.matches[0]] == [transition]
    assert list(work.changes().objects) == ["1van"]


def test_seven_and_its_digits_are_two_objects() -> None:
    desk = desk_of()
    rows = desk.follow([position(1, INSIDE, 7), position(2, INSIDE, "7"), position(3, INSIDE, 7.0)])
    assert [(row.object, row.transition) for row in rows] == [
        (7, "enter"),
        ("7", "enter"),
        (7, "inside"),
    ]


def test_a_visit_goes_on_when_the_body_is_replaced() -> None:
    desk = desk_of()
    desk.follow([position(1, INSIDE)])
    assert desk.put("depot", DEPOT.replace("3 3", "4 4"), FenceTerms()) == []
    assert told(desk.follow([position(2, [1, 2])])) == [("inside", 2, "position", "van 2")]


def test_a_visit_ends_when_its_subscription_does_and_another_of_the_name_begins_anew() -> None:
    desk = desk_of()
    desk.follow([position(1, INSIDE)])
    assert told(desk.remove("depot")) == [("exit", 1, "version", None)]
    desk.put("depot", DEPOT, FenceTerms(cooldown_us=60 * MINUTE))
    assert told(desk.follow([position(2, INSIDE)])) == [("enter", 2, "position", "van 2")]


def test_a_dwell_that_a_new_body_asks_for_comes_at_once_if_it_is_due() -> None:
    desk = desk_of()
    desk.follow([position(1, INSIDE), position(30, OUTSIDE, "bus")])
    rows = desk.put("depot", DEPOT, FenceTerms(dwell_us=10 * MINUTE))
    assert told(rows) == [("dwell", 11, "clock", None)]


def test_rows_of_a_collection_keep_their_visits_by_their_ids() -> None:
    desk = TrackingDesk(TrackingSettings())
    left, right = DEPOT, DEPOT.replace("0", "10").replace("3", "13")
    desk.put_rows("zones", {5: left, 7: right}, FenceTerms())
    desk.follow([position(1, [1, 1]), position(1, [11, 11], "bus")])
    rows = desk.put_rows("zones", {9: right, 5: left}, FenceTerms())
    assert [(row.object, row.subscription, *told([row])) for row in rows] == [
        ("bus", "zones 7", ("exit", 1, "version", None))
    ]
    rows = desk.follow([position(2, [1, 2]), position(2, [11, 11], "bus")])
    assert [(row.object, row.subscription, row.transition) for row in rows] == [
        ("bus", "zones 9", "enter"),
        ("van", "zones 5", "inside"),
    ]


def test_the_clock_moves_on_when_no_position_comes_for_long_enough() -> None:
    desk = desk_of(silence_us=10 * MINUTE, idle_us=2 * MINUTE)
    desk.follow([position(1, INSIDE)])
    assert desk.tracks.wait_us(desk.now_us) == 10 * MINUTE
    assert desk.advance(MINUTE) == []
    assert desk.tracks.clock_us == MINUTE
    assert desk.advance(MINUTE) == []
    assert desk.tracks.clock_us == 3 * MINUTE
    assert desk.tracks.wait_us(desk.now_us) == 8 * MINUTE
    assert told(desk.advance(8 * MINUTE)) == [("exit", 11, "clock", None)]


def test_timers_of_very_many_run_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracking, "OBJECTS_DUE_MAX", 2)
    desk = desk_of(silence_us=10 * MINUTE)
    desk.follow([position(minute, INSIDE, f"van {minute}") for minute in range(1, 6)])
    found = [len(desk.follow([position(40, OUTSIDE, "bus")]))]
    while desk.tracks.wait_us(desk.now_us) == 0:
        found.append(len(desk.advance(0)))
    assert [count for count in found if count] == [2, 2, 1]


def test_an_entry_stands_after_the_rows_that_it_follows_from() -> None:
    desk = desk_of(silence_us=10 * MINUTE)
    moves = [(1, OUTSIDE, "bus"), (2, INSIDE, "van"), (30, INSIDE, "van"), (30, INSIDE, "x")]
    events = read_features([position(*move) for move in moves])
    step = desk.tracks.begin().step(events.rows, events.texts, desk.version, 0)
    assert {row: [m.transition for m in found] for row, found in step.matches.items()} == {
        1: ["enter"],
        2: ["enter"],
        3: ["enter"],
    }
    assert [(entry.place, entry.matches[0].transition) for entry in step.entries] == [(2, "exit")]


def test_settings_may_change_and_timers_with_them() -> None:
    desk = desk_of()
    desk.follow([position(1, INSIDE)])
    assert desk.tracks.wait_us(0) is None
    work = desk.tracks.begin()
    settings = TrackingSettings(silence_us=10 * MINUTE)
    work.change_settings(settings)
    store_settings(desk.connection, settings)
    desk.keep(work)
    assert desk.tracks.wait_us(0) == 10 * MINUTE
    desk.restart()
    assert desk.tracks.settings == settings
    assert told(desk.advance(20 * MINUTE)) == [("exit", 11, "clock", None)]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("object_id", None),
        ("object_id", True),
        ("object_id", 2.5),
        ("time", None),
        ("time", "soon"),
    ],
)
def test_an_event_without_object_or_time_is_no_position(name: str, value: Any) -> None:
    desk = desk_of()
    assert desk.follow([position(1, INSIDE, **{name: value})]) == []
    stats = desk.tracks.stats()
    assert (stats["positions"], stats["without_time"]) == (0, int(name == "time"))


def test_settings_name_the_attributes_and_one_may_lie_in_an_object() -> None:
    desk = desk_of(object="id", time="seen.at")
    feature = position(1, INSIDE, seen={"at": "1970-01-01T00:05:00Z"}) | {"id": "ship"}
    assert [(row.object, row.time) for row in desk.follow([feature])] == [("ship", 5 * MINUTE)]


def test_a_position_too_far_ahead_is_told() -> None:
    settings = TrackingSettings(ahead_us=5 * MINUTE)
    rows = read_features(
        [position(5, INSIDE), position(6, INSIDE), position(9, INSIDE, None), position(90, INSIDE)]
    ).rows
    found = find_ahead(rows, settings, 0)
    assert list(found) == [1, 3]
    assert found[1] == "time: the time is 360 s ahead of the broker's clock; 5 min are allowed"


def test_only_what_a_step_touches_is_opened_of_very_many(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = desk_of(silence_us=10**6 * MINUTE)
    work = desk.tracks.begin()
    record = desk_record(desk)
    for number in range(3_000):
        name = f"1rests {number}"
        work._objects[name] = ObjectChange(
            write_record(record), frozenset({"depot"}), (), record.timer_us(10**6 * MINUTE)
        )
    desk.keep(work)
    desk.restart()
    opened: list[str] = []

    def counting(objects: list[StepObject], *rest: Any) -> Any:
        opened.extend(one.name for one in objects)
        return make_state(objects, *rest)

    monkeypatch.setattr(tracking, "make_state", counting)
    desk.follow([position(2, INSIDE), position(2, INSIDE, "rests 7")])
    desk.put("other", DEPOT, FenceTerms())
    desk.follow([position(3, INSIDE)])
    assert opened == ["1rests 7", "1van", "1van"]
    assert len(desk.remove("depot")) == 3_001


def desk_record(desk: TrackingDesk) -> Any:
    """What is known of an object that has entered the depot."""
    desk.follow([position(1, INSIDE)])
    data = desk.tracks.table.find("1van")
    assert data is not None
    return read_record(data)


def test_a_record_reads_as_it_was_written() -> None:
    record = desk_record(desk_of())
    assert record.pairs[0] == PairRecord("depot", VISITING, MINUTE, record.pairs[0].cross_us)
    assert read_record(write_record(record)) == record


@pytest.mark.parametrize("damage", [lambda d: d[:-1], lambda d: d + b"x", lambda d: d[:20]])
def test_a_damaged_record_is_refused(damage: Any) -> None:
    data = write_record(desk_record(desk_of()))
    with pytest.raises(InvalidInput, match="is damaged"):
        read_record(damage(data))


def test_a_record_of_a_newer_format_is_refused() -> None:
    with pytest.raises(InvalidInput, match="is of format 07"):
        read_record(b"\x07" + write_record(desk_record(desk_of()))[1:])


def test_timers_find_what_is_due_and_what_comes_next() -> None:
    timers, moments = ObjectTimers(), np.full(2_000, ALWAYS_LATER)
    random = np.random.default_rng(3)
    for _ in range(40):
        places = np.unique(random.integers(0, 2_000, 30))
        times = random.integers(0, 500, len(places))
        times[times > 400] = ALWAYS_LATER
        timers.put(places, times)
        moments[places] = times
        clock = int(random.integers(0, 300))
        found = timers.find_due(clock)
        assert set(found.tolist()) == set(np.flatnonzero(moments <= clock).tolist())
        assert (np.diff(moments[found]) >= 0).all()
        assert timers.find_next() == moments.min()


def test_a_load_of_nothing_has_the_defaults() -> None:
    desk = desk_of()
    desk.connection.execute("DELETE FROM tracking")
    assert load_tracks(desk.connection, 5).settings == TrackingSettings()
    store_changes(desk.connection, desk.tracks.begin().changes())
    assert load_tracks(desk.connection, 5).clock_us is None


def test_stats_count_what_is_known_as_it_comes_and_goes() -> None:
    desk = desk_of(lateness_us=5 * MINUTE, silence_us=10 * MINUTE)
    desk.follow([position(1, INSIDE), position(2, OUTSIDE, "bus")])
    stats = desk.tracks.stats()
    assert (stats["objects"], stats["held"], stats["applied"]) == (2, 2, 0)
    desk.follow([position(8, INSIDE)])
    desk.restart()
    known = desk.tracks.table
    records = [known.find(name) for name in ("1van", "1bus")]
    features = [one.feature for one in known.held.values()]
    assert known.nbytes == sum(len(data) for data in [*records, *features] if data is not None)
    desk.advance(100 * MINUTE)
    assert (len(known), known.nbytes, desk.tracks.wait_us(desk.now_us)) == (0, 0, None)
