"""A tracker over a real matcher against the rules in plain Python, position by position."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

import contrada
from contrada.language.distance import is_within
from contrada.transitions import resting_tracks
from real_layers import needs_layers, path_of
from transitions_oracle import Fix, Oracle, Row, Watch

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
MINUTE = 60_000_000


@dataclass(frozen=True)
class Asked:
    """A subscription: a relation to a geometry, and perhaps a least speed."""

    relation: str
    wkt: str
    radius_m: float = 0
    speed: int | None = None

    @property
    def text(self) -> str:
        radius = f", {self.radius_m}" if self.relation == "dwithin" else ""
        rest = "" if self.speed is None else f" AND speed > {self.speed}"
        return f"{self.relation}(geometry, {self.wkt}{radius}){rest}"

    def as_watch(self, **terms: Any) -> Watch:
        """The same as the oracle takes it, by Shapely and plain Python."""
        shape = shapely.from_wkt(self.wkt)
        hysteresis_m = terms.pop("hysteresis_m")

        def satisfies_rest(fix: Fix) -> bool:
            known = fix.event["speed"]
            return self.speed is None or (known is not None and known > self.speed)

        def matches(fix: Fix) -> bool:
            return satisfies_rest(fix) and self._relates(fix.event["shape"], shape)

        def near(fix: Fix) -> bool:
            reach_m = self.radius_m + hysteresis_m
            is_near = hysteresis_m > 0 and is_within(fix.event["shape"], shape, reach_m) is True
            return is_near and satisfies_rest(fix)

        def meets(before: Fix, fix: Fix) -> bool:
            if before.point == fix.point:
                return False
            assert before.point is not None and fix.point is not None
            line = shapely.LineString([before.point, fix.point])
            return satisfies_rest(fix) and self._meets(line, shape)

        is_fence = self.relation != "S_TOUCHES"
        return Watch(self.text, matches, is_fence, near, meets, **terms)

    def _relates(self, event: Any, shape: Any) -> bool:
        match self.relation:
            case "dwithin":
                return is_within(event, shape, self.radius_m) is True
            case "coveredBy":
                return bool(shapely.covered_by(event, shape))
        return bool(getattr(shapely, self.relation.removeprefix("S_").lower())(event, shape))

    def _meets(self, line: Any, shape: Any) -> bool:
        if self.relation == "dwithin":
            return is_within(line, shape, self.radius_m) is True
        if self.relation == "S_WITHIN":
            return bool(shapely.relate_pattern(line, shape, "T********"))
        return bool(shapely.intersects(line, shape))


SHAPES = (
    "POLYGON((0 0, 2 0, 2 2, 0 2, 0 0))",
    "POLYGON((1 1, 4 1, 4 3, 1 3, 1 1))",
    "POLYGON((3 -1, 3.2 -1, 3.2 5, 3 5, 3 -1))",
    "LINESTRING(0 4, 4 4)",
    "POINT(4 0)",
)
RELATIONS = ("S_INTERSECTS", "S_WITHIN", "coveredBy", "dwithin", "S_TOUCHES")
asked = st.builds(
    Asked,
    st.sampled_from(RELATIONS),
    st.sampled_from(SHAPES),
    st.sampled_from([0, 60_000.5]),
    st.sampled_from([None, None, 3]),
)
places = st.tuples(st.integers(-1, 5), st.integers(-1, 5))
shapes = st.one_of(
    st.none(),
    *[places.map(shapely.Point)] * 6,
    places.map(lambda xy: shapely.box(*xy, xy[0] + 1, xy[1] + 1)),
)
fixes: st.SearchStrategy[dict[str, Any]] = st.builds(
    dict,
    object_id=st.sampled_from("abc"),
    time=st.integers(0, 12),
    id=st.sampled_from("pqrs"),
    geometry=shapes,
    speed=st.sampled_from([None, 2, 5]),
)
ids = st.sampled_from(["f0", "f1", "f2", "f3"])
versions = st.dictionaries(ids, asked, max_size=4)
batches = st.lists(
    st.tuples(st.none() | versions, st.lists(fixes, max_size=8), st.booleans()),
    min_size=1,
    max_size=5,
)
terms = st.fixed_dictionaries(
    {
        "lateness": st.sampled_from([0, 0, 2, 5]),
        "silence": st.sampled_from([None, 3, 6]),
        "hysteresis": st.sampled_from([0, 0, 120_000]),
        "cooldown": st.sampled_from([0, 0, 2]),
        "dwell": st.sampled_from([None, 2]),
        "kinds": st.sampled_from([None, None, ("enter", "exit"), ("cross",)]),
    }
)


def minutes(count: int | None) -> str | None:
    return None if count is None else f"{count} min"


@settings(max_examples=60, deadline=None)
@given(terms, batches)
@pytest.mark.filterwarnings("ignore:.*not fences")
def test_a_tracker_follows_the_rules(options: dict[str, Any], given_batches: Any) -> None:
    check_rules(options, given_batches)


@settings(max_examples=60, deadline=None)
@given(terms, batches, st.sampled_from([0, 1, 8]))
@pytest.mark.filterwarnings("ignore:.*not fences")
def test_so_it_does_where_objects_rest_as_if_they_were_many(
    options: dict[str, Any], given_batches: Any, factor: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(resting_tracks, "_RESTING_MIN", 1)
        patch.setattr(resting_tracks, "_SHARE_MIN", 0)
        patch.setattr(resting_tracks, "_OUT_FACTOR", factor)
        check_rules(options, given_batches)


def check_rules(options: dict[str, Any], given_batches: Any) -> None:
    """Compare a tracker with the oracle, batch by batch, and what both know in the end."""
    matcher = contrada.Matcher()
    lengths = ("lateness", "silence", "cooldown", "dwell")
    given_options: dict[str, Any] = {name: minutes(options[name]) for name in lengths}
    given_options |= {name: options[name] for name in ("hysteresis", "kinds")}
    tracker = contrada.Tracker(matcher, **given_options)
    silence = options["silence"]
    oracle = Oracle(options["lateness"] * MINUTE, None if silence is None else silence * MINUTE)
    version: dict[str, Asked] = {}
    came = 0
    for changed, events, is_table in given_batches:
        if changed is not None:
            for id_ in version.keys() - changed.keys():
                matcher.remove(id_)
            for id_, one in changed.items():
                matcher.add(id_, one.text, subscriber=one.text, replace=True)
            version = changed
        watches = {id_: one.as_watch(**as_terms(options)) for id_, one in version.items()}
        expected = oracle.follow(map(as_fix, events), watches)
        rows = tracker.follow(as_table(events) if is_table else list(map(as_event, events)))
        assert list(map(as_row, rows.to_pylist())) == expected
        came += len(events)
    stats = tracker.stats()
    counts = oracle.counts
    found = [stats[n] for n in ("applied", "late", "repeated", "without_geometry", "held")]
    names = ("applied", "late", "repeated", "without geometry")
    assert found == [*(counts[name] for name in names), oracle.held]
    assert sum(found) == came == stats["positions"]
    state = tracker._tracks.whole()
    assert stats["objects"] == state.object_count == len(oracle.tracks)
    assert stats["visits"] == state.visit_count
    assert stats["held"] == state.held_count


def as_terms(options: dict[str, Any]) -> dict[str, Any]:
    dwell, kinds = options["dwell"], options["kinds"]
    chosen = {} if kinds is None else {"kinds": frozenset(kinds)}
    return {
        "hysteresis_m": options["hysteresis"],
        "cooldown": options["cooldown"] * MINUTE,
        "dwell": None if dwell is None else dwell * MINUTE,
        **chosen,
    }


def as_fix(event: dict[str, Any]) -> Fix:
    shape = event["geometry"]
    is_point = shape is not None and shape.geom_type == "Point"
    rest = repr((event["id"], event["object_id"], event["speed"]))
    return Fix(
        event["object_id"],
        event["time"] * MINUTE,
        event["id"],
        (shape.x, shape.y) if is_point else None,
        b"" if shape is None else shape.wkb + rest.encode(),
        shape is not None,
        {"shape": shape, "speed": event["speed"]},
    )


def as_event(event: dict[str, Any]) -> dict[str, Any]:
    return {**event, "time": EPOCH + dt.timedelta(minutes=event["time"])}


def as_table(events: list[dict[str, Any]]) -> pa.Table:
    columns = {name: [event[name] for event in map(as_event, events)] for name in NAMES}
    columns["geometry"] = [shape and shape.wkb for shape in columns["geometry"]]
    return pa.table({name: pa.array(columns[name], NAMES[name]) for name in NAMES})


NAMES = {
    "object_id": pa.string(),
    "time": pa.timestamp("s", "UTC"),
    "id": pa.string(),
    "geometry": pa.binary(),
    "speed": pa.int64(),
}


def as_row(row: dict[str, Any]) -> Row:
    return Row(**{**row, "time": (row["time"] - EPOCH) // dt.timedelta(microseconds=1)})


def follow_real(
    positions: pa.Table, fences: pa.Table, id_: str, options: dict[str, Any], terms: dict[str, Any]
) -> tuple[list[Row], list[Row]]:
    """Follow real tracks by a tracker and by the oracle, which sees an object at a time.

    What a track never comes to cannot make a row, so the oracle is not asked about it.
    """
    matcher = contrada.Matcher()
    matcher.add_many(fences, id=id_)
    rows = contrada.Tracker(matcher, **options).follow(positions)
    silence = terms.pop("silence", None)
    time_us = positions["time"].cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_numpy()
    expected: list[Row] = []
    names = positions["object_id"].to_numpy()
    shapes = shapely.from_wkb(positions["geometry"].to_numpy())
    areas, labels = shapely.from_wkb(fences["geometry"].to_numpy()), fences[id_].to_pylist()
    tree = shapely.STRtree(areas)
    for object_ in np.unique(names):
        at = np.flatnonzero(names == object_)
        at = at[np.argsort(time_us[at], kind="stable")]
        watches = watch_track(at, shapes, tree, labels, terms)
        track = [
            Fix(str(object_), int(time_us[row]), int(row), (shapes[row].x, shapes[row].y))
            for row in at.tolist()
        ]
        expected += Oracle(0, silence).follow(track, watches, clock=int(time_us.max()))
    return list(map(as_row, rows.to_pylist())), expected


def watch_track(
    at: Any, shapes: Any, tree: shapely.STRtree, labels: list[Any], terms: dict[str, Any]
) -> dict[Any, Watch]:
    """Watch what a track comes to: which positions lie in it, and which ways meet it."""
    inside = pairs_of(tree.query(shapes[at], predicate="intersects"), at)
    ends = shapely.get_coordinates(shapes[at])
    ways: Any = shapely.linestrings(np.stack([ends[:-1], ends[1:]], axis=1)) if len(at) > 1 else []
    met = pairs_of(tree.query(ways, predicate="intersects"), at[1:]) if len(at) > 1 else {}

    def watch(rows: set[int], ended: set[int]) -> Watch:
        return Watch(
            None, lambda fix: fix.id in rows, True, meets=lambda _, fix: fix.id in ended, **terms
        )

    return {
        labels[fence]: watch(inside.get(fence, set()), met.get(fence, set()))
        for fence in sorted(inside.keys() | met.keys())
    }


def pairs_of(found: Any, rows: Any) -> dict[int, set[int]]:
    pairs: dict[int, set[int]] = {}
    for place, fence in zip(*found.tolist(), strict=True):
        pairs.setdefault(fence, set()).add(int(rows[place]))
    return pairs


def in_order(rows: Iterable[Row]) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, rows), key=repr)


Choose = Callable[[pa.Table], pa.Table]


def some_objects(step: int) -> Choose:
    def choose(positions: pa.Table) -> pa.Table:
        names = sorted(set(positions["object_id"].to_pylist()))[::step]
        return positions.filter(pa.compute.is_in(positions["object_id"], pa.array(names)))

    return choose


def check_aircraft(step: int, options: dict[str, Any], terms: dict[str, Any]) -> None:
    fences = pq.read_table(path_of("fr_communes_paris_basin"), columns=["code", "geometry"])
    positions = pq.read_table(path_of("adsb_paris_2021"), columns=["object_id", "time", "geometry"])
    found, expected = follow_real(some_objects(step)(positions), fences, "code", options, terms)
    assert in_order(found) == in_order(expected)
    assert {"enter", "inside", "exit", "cross"} <= {row.transition for row in found}


@needs_layers
def test_some_aircraft_over_communes_follow_the_rules() -> None:
    check_aircraft(24, {"silence": "10 min", "dwell": "2 min"},
                   {"silence": 10 * MINUTE, "dwell": 2 * MINUTE})  # fmt: skip


@needs_layers
@pytest.mark.soak
@pytest.mark.parametrize("cooldown", [0, 1])
def test_all_aircraft_over_communes_follow_the_rules(cooldown: int) -> None:
    check_aircraft(1, {"silence": "5 min", "cooldown": f"{cooldown} min"},
                   {"silence": 5 * MINUTE, "cooldown": cooldown * MINUTE})  # fmt: skip


@needs_layers
def test_storms_over_counties_follow_the_rules() -> None:
    counties = pq.read_table(path_of("nws_counties"), columns=["geometry"])
    shapes = shapely.from_wkb(counties["geometry"].to_numpy())
    counties = counties.append_column("row", pa.array(range(len(counties))))
    counties = counties.filter(pa.array(~shapely.is_empty(shapes)))
    storms = pq.read_table(
        path_of("ibtracs_storm_fixes"), columns=["object_id", "time", "geometry"]
    )
    found, expected = follow_real(
        some_objects(6)(storms), counties, "row", {"dwell": "6 h"}, {"dwell": 360 * MINUTE}
    )
    assert in_order(found) == in_order(expected)
    assert {"enter", "exit", "cross"} <= {row.transition for row in found}
