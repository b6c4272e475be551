"""What `Tracker` takes and gives, besides the rules of transitions themselves."""

from __future__ import annotations

import datetime as dt
import random
import threading
from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

import contrada
from contrada.errors import InvalidInput, Unavailable

SQUARE = "POLYGON((0 0, 4 0, 4 4, 0 4, 0 0))"
START = dt.datetime(2026, 3, 2, 8, tzinfo=dt.UTC)
PLACES = ((-1, 2), (1, 2), (3, 2), (5, 2), (5, 9), (2, 2))
EXPECTED = ["enter", "inside", "exit", "enter"]


def make_fence(**options: Any) -> contrada.Matcher:
    matcher = contrada.Matcher(**options)
    matcher.add("square", geometry=SQUARE, subscriber="gate")
    return matcher


def make_events(places: Any = PLACES, object_: Any = "van") -> list[dict[str, Any]]:
    return [
        {
            "object_id": object_,
            "time": START + dt.timedelta(minutes=number),
            "geometry": shapely.Point(place),
        }
        for number, place in enumerate(places)
    ]


def as_table(events: list[dict[str, Any]]) -> pa.Table:
    return pa.table(
        {
            "object_id": [event["object_id"] for event in events],
            "time": [event["time"] for event in events],
            "geometry": [shapely.to_wkb(event["geometry"]) for event in events],
        }
    )


def kinds_of(rows: pa.Table) -> list[str]:
    kinds: list[str] = rows["transition"].to_pylist()
    return kinds


def test_rows_have_the_columns_of_spark() -> None:
    rows = contrada.Tracker(make_fence()).follow(make_events()[:2])
    assert rows.to_pylist() == [
        {
            "object": "van",
            "subscription": "square",
            "subscriber": "gate",
            "transition": "enter",
            "time": START + dt.timedelta(minutes=1),
            "event": 1,
            "version": None,
            "cause": "position",
        }
    ]
    assert rows.schema.field("time").type == pa.timestamp("us", "UTC")


def test_every_kind_of_source_gives_the_same_rows(tmp_path: Path) -> None:
    events = make_events()
    table = as_table(events)
    pq.write_table(table, tmp_path / "track.parquet")
    frame = geopandas.GeoDataFrame(
        {"object_id": table["object_id"].to_pylist(), "time": table["time"].to_pylist()},
        geometry=[event["geometry"] for event in events],
    )
    features = [
        {
            "type": "Feature",
            "geometry": shapely.geometry.mapping(event["geometry"]),
            "properties": {"object_id": "van", "time": event["time"].isoformat()},
        }
        for event in events
    ]
    texts = [{**event, "geometry": event["geometry"].wkt} for event in events]
    sheet = "object_id,time,wkt\n" + "\n".join(
        f"van,{event['time'].isoformat()},{event['geometry'].wkt}" for event in events
    )
    (tmp_path / "track.csv").write_text(sheet)
    expected = contrada.Tracker(make_fence()).follow(events)
    assert kinds_of(expected) == EXPECTED
    for source in (
        table,
        tuple(events),
        frame,
        features,
        texts,
        tmp_path / "track.parquet",
        str(tmp_path / "track.csv"),
    ):
        assert contrada.Tracker(make_fence()).follow(source).equals(expected)


def test_one_event_at_a_time_gives_the_rows_of_all_at_once() -> None:
    tracker = contrada.Tracker(make_fence())
    rows = pa.concat_tables([tracker.follow(event) for event in make_events()])
    assert rows.equals(contrada.Tracker(make_fence()).follow(make_events()))


def test_the_order_of_rows_in_a_call_changes_nothing() -> None:
    events = [{**event, "id": number} for number, event in enumerate(make_events())]
    expected = contrada.Tracker(make_fence()).follow(events)
    random.Random(1).shuffle(events)
    assert contrada.Tracker(make_fence()).follow(events).equals(expected)


def test_attributes_of_several_types_and_dotted_names_are_read_in_a_list() -> None:
    matcher = contrada.Matcher()
    matcher.add("fast", f"S_WITHIN(geometry, {SQUARE}) AND engine.load > 3")
    matcher.add("named", f"S_WITHIN(geometry, {SQUARE}) AND note = 'x'")
    events = make_events([(1, 1), (1, 2), (1, 3)])
    events[0] |= {"engine": {"load": 5}, "note": 7, "made of": {1, 2}}
    events[1] |= {"engine": {"load": "much"}, "note": "x"}
    events[2] |= {"engine": None, "note": [1, "two"], "2": 2**80}
    rows = contrada.Tracker(matcher).follow(events)
    found = [(r["subscription"], r["transition"], r["event"]) for r in rows.to_pylist()]
    assert found == [
        ("fast", "enter", 0),
        ("fast", "exit", 1),
        ("named", "enter", 1),
        ("named", "exit", 2),
    ]


def test_other_names_of_columns_are_taken() -> None:
    table = as_table(make_events()).rename_columns(["ship", "seen", "geometry"])
    table = table.append_column("key", pa.array([f"k{n}" for n in range(len(table))]))
    tracker = contrada.Tracker(make_fence(), object="ship", time="seen", event_id="key")
    assert tracker.follow(table)["event"].to_pylist() == ["k1", "k2", "k3", "k5"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"object": "ship"}, "there is no column 'ship' for the object; it has"),
        ({"time": "seen"}, "there is no column 'seen' for the time; it has"),
        ({"event_id": "key"}, "there is no column 'key' for the id; it has"),
    ],
)
def test_a_column_that_is_not_there_is_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        contrada.Tracker(make_fence(), **options).follow(as_table(make_events()))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lateness": "soon"}, "lateness must be a duration such as"),
        ({"silence": 5}, "silence must be a duration such as"),
        ({"silence": "0 s"}, "silence must be longer than zero"),
        ({"kinds": [["enter"]]}, r"unknown kind of transition \['enter'\]"),
        ({"dwell": "-1 s"}, "dwell must be a duration"),
        ({"cooldown": None}, "cooldown must be a duration"),
        ({"hysteresis": -1}, "hysteresis must be a number of metres, 0 or more, not -1"),
        ({"hysteresis": "5 m"}, "hysteresis must be a number of metres, 0 or more"),
        ({"hysteresis": 10**400}, "hysteresis must be a number of metres, 0 or more, not 1000"),
        ({"kinds": 5}, "kinds must be names of transitions, not 5"),
        ({"kinds": ["entry"]}, "unknown kind of transition 'entry'"),
        ({"object": 7}, "object must be the name of a column, not 7"),
    ],
)
def test_options_that_cannot_be_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        contrada.Tracker(contrada.Matcher(), **options)


def test_only_a_matcher_is_followed() -> None:
    with pytest.raises(InvalidInput, match="a tracker takes a Matcher, not 'fences"):
        contrada.Tracker("fences.parquet")  # type: ignore[arg-type]


BAD: tuple[tuple[dict[str, Any], str], ...] = (
    ({"object_id": None}, "the object is missing"),
    ({"time": None}, "the time is missing"),
    ({"time": "noon"}, "the time 'noon' is not a timestamp, a date or ISO 8601 text"),
    ({"geometry": "POLYGON((0 0, 4 4, 4 0, 0 4, 0 0))"}, "self-intersection"),
    ({"object_id": 2**70}, "does not fit in 64 bits"),
)


@pytest.mark.parametrize(("wrong", "reason"), BAD)
def test_a_bad_event_is_refused_with_its_row_and_changes_nothing(
    wrong: dict[str, Any], reason: str
) -> None:
    tracker = contrada.Tracker(make_fence())
    events = make_events()
    tracker.follow(events[:2])
    before = tracker.stats()
    with pytest.raises(InvalidInput, match=f"row 1.*{reason}"):
        tracker.follow([events[2], events[3] | wrong, events[4]])
    assert tracker.stats() == before
    assert kinds_of(tracker.follow(events[2:])) == EXPECTED[1:]


@pytest.mark.parametrize("is_table", [True, False])
def test_bad_rows_come_back_once_each_in_quarantine(is_table: bool) -> None:
    heard: list[tuple[int, Any, str]] = []
    events: list[dict[str, Any]] = [
        {**event, "id": f"e{n}"} for n, event in enumerate(make_events())
    ]
    events[2]["object_id"] = None
    source: Any = events
    if is_table:
        source = as_table(events).append_column("id", pa.array([e["id"] for e in events]))
    tracker = contrada.Tracker(make_fence(), quarantine=True)
    rows = tracker.follow(source, on_bad=lambda *row: heard.append(row))
    assert rows.column_names[-1] == "error"
    *good, bad = rows.to_pylist()
    assert [row["transition"] for row in good] == ["enter", "exit", "enter"]
    assert {row["error"] is None for row in good} == {True}
    assert bad["event"] == "e2" and bad["transition"] is None and bad["object"] is None
    assert bad["error"]["code"] == "null_object"
    assert bad["error"]["message"] == "the object is missing"
    assert heard == [(2, "e2", heard[0][2])] and "the object is missing" in heard[0][2]
    stats = tracker.stats()
    assert (stats["positions"], stats["applied"], stats["left_out"]) == (6, 5, 1)


def test_repair_mends_geometries_or_leaves_them_out() -> None:
    events = make_events([(1, 1), (1, 1), (1, 1)])
    events[1]["geometry"] = "POLYGON((0 0, 4 4, 4 0, 0 4, 0 0))"
    events[2]["geometry"] = "POINT(1 inf)"
    tracker = contrada.Tracker(make_fence())
    heard: list[str] = []
    rows = tracker.follow(events, repair=True, on_bad=lambda _, __, reason: heard.append(reason))
    assert kinds_of(rows) == ["enter", "inside"]
    assert heard[0].startswith("mended: ") and "non-finite" in heard[1]
    assert tracker.stats()["mended"] == 1 and tracker.stats()["left_out"] == 1


def test_a_mended_geometry_that_waits_is_applied_as_it_was_mended() -> None:
    events = make_events([(1, 1), (1, 1), (9, 9)])
    events[1]["geometry"] = "POLYGON((0 0, 4 4, 4 0, 0 4, 0 0))"
    tracker = contrada.Tracker(make_fence(), lateness="1 min")
    assert kinds_of(tracker.follow(events[:2], repair=True)) == ["enter"]
    assert kinds_of(tracker.follow(events[2:])) == ["inside"]


def test_rows_without_a_geometry_are_counted_and_change_nothing() -> None:
    events = make_events()
    events.insert(2, {**events[1], "time": START + dt.timedelta(seconds=70), "geometry": None})
    tracker = contrada.Tracker(make_fence())
    assert kinds_of(tracker.follow(events)) == EXPECTED
    assert tracker.stats()["without_geometry"] == 1


def test_events_without_ids_are_numbered_from_the_first_call_on(tmp_path: Path) -> None:
    tracker, events = contrada.Tracker(make_fence()), make_events()
    assert tracker.follow(events[:2])["event"].to_pylist() == [1]
    assert tracker.follow(events[2:4])["event"].to_pylist() == [2, 3]
    tracker.save(tmp_path / "vans.tracks")
    again = contrada.Tracker.open(tmp_path / "vans.tracks", make_fence())
    assert again.follow(events[4:])["event"].to_pylist() == [5]


def test_ids_of_another_kind_than_before_are_refused() -> None:
    tracker, events = contrada.Tracker(make_fence()), make_events()
    tracker.follow(events[:2])
    with pytest.raises(InvalidInput, match="strings here, but were integers before"):
        tracker.follow([{**event, "id": "x"} for event in events[2:]])
    with pytest.raises(InvalidInput, match="integers here, but were strings before"):
        tracker.follow(make_events(object_=7)[2:])
    assert kinds_of(tracker.follow(events[2:])) == EXPECTED[1:]


def test_subscriptions_may_change_between_calls() -> None:
    matcher, events = make_fence(), make_events()
    tracker = contrada.Tracker(matcher)
    tracker.follow(events[:2])
    matcher.add("wide", geometry="POLYGON((-9 -9, 9 -9, 9 9, -9 9, -9 -9))")
    matcher.remove("square")
    rows = tracker.follow(events[2]).to_pylist()
    found = [(row["subscription"], row["transition"], row["cause"]) for row in rows]
    assert found == [("square", "exit", "version"), ("wide", "enter", "position")]
    assert rows[0]["subscriber"] == "gate" and rows[0]["time"] == events[1]["time"]


def test_subscribers_may_become_texts_after_integers() -> None:
    matcher, events = contrada.Matcher(), make_events()
    matcher.add("square", geometry=SQUARE, subscriber=7)
    tracker = contrada.Tracker(matcher)
    assert tracker.follow(events[:2])["subscriber"].to_pylist() == [7]
    matcher.add("other", geometry="POLYGON((70 0, 74 0, 74 4, 70 0))", subscriber="gate")
    assert tracker.follow(events[2])["subscriber"].to_pylist() == ["7"]


def test_a_saved_tracker_goes_on_as_if_nothing_had_happened(tmp_path: Path) -> None:
    options: dict[str, Any] = {"silence": "5 min", "lateness": "90 s", "dwell": "2 min"}
    events = [{**event, "note": "n"} for event in make_events()]
    one = contrada.Tracker(make_fence(), **options)
    expected = [one.follow(event) for event in events]
    path, rows = tmp_path / "vans.tracks", []
    tracker = contrada.Tracker(make_fence(), **options)
    for event in events:
        rows.append(tracker.follow(event))
        tracker.save(path)
        tracker = contrada.Tracker.open(path, make_fence(), **options)
    assert [table.to_pylist() for table in rows] == [table.to_pylist() for table in expected]
    assert tracker.clock == one.clock == events[-1]["time"]


def test_damage_and_newer_formats_are_refused_by_name(tmp_path: Path) -> None:
    tracker, path = contrada.Tracker(make_fence()), tmp_path / "vans.tracks"
    tracker.follow(make_events())
    tracker.save(path)
    whole = path.read_bytes()
    pick = random.Random(2)
    spoilt = [whole[: pick.randrange(len(whole))] for _ in range(20)]
    for _ in range(60):
        place = pick.randrange(len(whole))
        spoilt.append(
            whole[:place] + bytes([whole[place] ^ 1 << pick.randrange(8)]) + whole[place + 1 :]
        )
    for data in spoilt:
        path.write_bytes(data)
        with pytest.raises(
            InvalidInput, match=r"vans\.tracks: is (damaged|not the state|of format)"
        ):
            contrada.Tracker.open(path, make_fence())
    path.write_bytes(whole[:16] + (2).to_bytes(4, "little") + whole[20:])
    with pytest.raises(
        InvalidInput, match="is of format 2; this version of Contrada reads format 1"
    ):
        contrada.Tracker.open(path, make_fence())
    make_fence().save(path)
    with pytest.raises(InvalidInput, match="is not the state of a tracker"):
        contrada.Tracker.open(path, make_fence())
    with pytest.raises(InvalidInput, match=r"gone\.tracks"):
        contrada.Tracker.open(tmp_path / "gone.tracks", make_fence())
    with pytest.raises((InvalidInput, Unavailable), match="nowhere"):
        tracker.save(tmp_path / "nowhere" / "vans.tracks")


def test_what_is_no_fence_is_said_at_the_start() -> None:
    matcher = make_fence()
    matcher.add("fast", "speed > 3")
    with pytest.warns(UserWarning, match="1 of 2 subscriptions are not fences"):
        contrada.Tracker(matcher)
    contrada.Tracker(matcher, kinds=["enter", "exit"])


def test_positions_in_another_system_are_refused() -> None:
    matcher = make_fence(crs="EPSG:4326")
    frame = geopandas.GeoDataFrame(
        {"object_id": ["van"], "time": [START]}, geometry=[shapely.Point(1, 1)], crs="EPSG:3857"
    )
    with pytest.raises(InvalidInput, match="EPSG:3857"):
        contrada.Tracker(matcher).follow(frame)


def test_hysteresis_in_a_projected_system_is_warned_of() -> None:
    frame = geopandas.GeoDataFrame(
        {"object_id": ["van"], "time": [START]}, geometry=[shapely.Point(1, 1)], crs="EPSG:3857"
    )
    with pytest.warns(UserWarning, match="hysteresis reads coordinates as longitude and latitude"):
        contrada.Tracker(make_fence(), hysteresis=5).follow(frame)


def test_a_way_around_the_world_is_one_only_in_a_projected_system() -> None:
    for crs, kinds in (("EPSG:4326", []), (None, []), ("EPSG:3857", ["cross"])):
        frame = geopandas.GeoDataFrame(
            {"object_id": ["van"] * 2, "time": [START, START + dt.timedelta(minutes=1)]},
            geometry=[shapely.Point(-170, 2), shapely.Point(170, 2)],
            crs=crs,
        )
        assert kinds_of(contrada.Tracker(make_fence()).follow(frame)) == kinds


def test_calls_from_many_threads_come_one_after_another() -> None:
    tracker = contrada.Tracker(make_fence())
    counts: list[int] = []

    def run(number: int) -> None:
        for event in make_events(object_=f"van {number}"):
            counts.append(
                tracker.follow({**event, "time": START, "id": f"{number}-{len(counts)}"}).num_rows
            )

    threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert tracker.stats()["positions"] == 24 and tracker.stats()["objects"] == 4


def test_an_approximate_engine_is_followed_too() -> None:
    matcher = contrada.Matcher("ahs", universe=(-20, -20, 20, 20))
    matcher.add("square", geometry=SQUARE)
    events = make_events([(-1, -1), (5, 5)])
    assert kinds_of(contrada.Tracker(matcher).follow(events)) == ["cross"]


def test_nothing_in_gives_nothing_out() -> None:
    tracker = contrada.Tracker(make_fence())
    assert tracker.follow([]).num_rows == 0
    assert tracker.follow(as_table(make_events())[:0]).num_rows == 0
    assert tracker.clock is None
    assert repr(tracker) == "<Tracker objects=0 visits=0 held=0>"


def test_ways_over_one_fence_are_found_on_threads() -> None:
    rng = np.random.default_rng(7)
    angles = np.linspace(0, 2 * np.pi, 2_000, endpoint=False)
    radii = rng.uniform(0.5, 1, (4, 2_000))
    stars = shapely.polygons(np.stack([radii * np.cos(angles), radii * np.sin(angles)], axis=2))
    matcher = contrada.Matcher()
    matcher.add_many(pa.table({"geometry": shapely.to_wkb(stars)}))
    at = np.arange(40_000)
    places = shapely.points(rng.uniform(-1, 1, (len(at), 2)))
    positions = pa.table(
        {
            "object_id": at % 200,
            "time": pa.array(at // 200, pa.timestamp("s")),
            "geometry": shapely.to_wkb(places),
        }
    )
    one, two = (
        contrada.Tracker(matcher, kinds=["cross"]).follow(positions, threads=threads)
        for threads in (1, 4)
    )
    assert len(one) > 0
    assert one.equals(two)


def test_on_bad_cannot_follow_with_the_tracker_that_calls_it() -> None:
    matcher = contrada.Matcher()
    matcher.add("everywhere", "true")
    tracker = contrada.Tracker(matcher, quarantine=True, kinds=["enter"])
    good = {"object_id": "van", "time": "2026-03-01", "geometry": "POINT(1 1)"}
    with pytest.raises(InvalidInput, match="follow was called by its own on_bad"):
        tracker.follow([good, good | {"time": "soon"}], on_bad=lambda *_: tracker.follow(good))
    assert tracker.stats()["positions"] == 0
    assert len(tracker.follow(good)) == 1
