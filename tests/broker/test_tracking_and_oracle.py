"""What the broker follows, against the rules in plain Python, position by position.

Between any two steps there may be a restart from what is stored, and a step that is abandoned.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from contrada.broker import watched_fences
from contrada.broker.spelt_ids import read_spelt, spell_event_id, spell_given, spell_id
from contrada.broker.transition_bodies import FenceTerms, TrackingSettings
from contrada.language.distance import is_within
from contrada.transitions.followed import NO_DWELL, read_kinds
from tracking_desk import Seen, TrackingDesk, read_features
from transitions_oracle import KINDS, Fix, Oracle, Row, Watch

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
MINUTE = 60_000_000


@dataclass(frozen=True)
class Wanted:
    """A subscription: a relation to a geometry, perhaps a least speed, and its terms."""

    relation: str
    wkt: str
    speed: int | None
    hysteresis: int
    cooldown: int
    dwell: int | None
    kinds: frozenset[str]

    @property
    def predicate(self) -> str:
        rest = "" if self.speed is None else f" AND speed > {self.speed}"
        return f"{self.relation}(geometry, {self.wkt}){rest}"

    @property
    def terms(self) -> FenceTerms:
        dwell_us = NO_DWELL if self.dwell is None else self.dwell * MINUTE
        kinds = read_kinds(sorted(self.kinds))
        return FenceTerms(self.hysteresis, self.cooldown * MINUTE, dwell_us, kinds)

    @property
    def watch(self) -> Watch:
        shape = shapely.from_wkt(self.wkt)

        def satisfies_rest(fix: Fix) -> bool:
            known = fix.event["speed"]
            return self.speed is None or (known is not None and known > self.speed)

        def matches(fix: Fix) -> bool:
            return satisfies_rest(fix) and self._relates(fix.event["shape"], shape)

        def near(fix: Fix) -> bool:
            if self.hysteresis <= 0 or not satisfies_rest(fix):
                return False
            return is_within(fix.event["shape"], shape, self.hysteresis) is True

        def meets(before: Fix, fix: Fix) -> bool:
            if before.point == fix.point:
                return False
            assert before.point is not None and fix.point is not None
            line = shapely.LineString([before.point, fix.point])
            return satisfies_rest(fix) and self._meets(line, shape)

        return Watch(
            None, matches, self.relation != "S_TOUCHES", near, meets,
            self.cooldown * MINUTE, None if self.dwell is None else self.dwell * MINUTE, self.kinds,
        )  # fmt: skip

    def _relates(self, event: Any, shape: Any) -> bool:
        return bool(getattr(shapely, self.relation.removeprefix("S_").lower())(event, shape))

    def _meets(self, line: Any, shape: Any) -> bool:
        if self.relation == "S_WITHIN":
            return bool(shapely.relate_pattern(line, shape, "T********"))
        return bool(shapely.intersects(line, shape))


SHAPES = (
    "POLYGON((0 0, 2 0, 2 2, 0 2, 0 0))",
    "POLYGON((1 1, 4 1, 4 3, 1 3, 1 1))",
    "POLYGON((3 -1, 3.2 -1, 3.2 5, 3 5, 3 -1))",
    "LINESTRING(0 4, 4 4)",
)
wanted = st.builds(
    Wanted,
    st.sampled_from(["S_INTERSECTS", "S_INTERSECTS", "S_WITHIN", "S_TOUCHES"]),
    st.sampled_from(SHAPES),
    st.sampled_from([None, None, 3]),
    st.sampled_from([0, 0, 120_000]),
    st.sampled_from([0, 0, 2]),
    st.sampled_from([None, None, 2, 4]),
    st.sampled_from([KINDS, KINDS, frozenset({"enter", "exit"}), frozenset({"cross", "dwell"})]),
)
places = st.tuples(st.integers(0, 5), st.integers(-1, 4))
shapes = st.one_of(
    st.none(),
    *[places.map(shapely.Point)] * 9,
    places.map(lambda xy: shapely.box(*xy, xy[0] + 1, xy[1] + 1)),
)
positions: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "object": st.sampled_from(["a", "a", "a", 7, 7, "7", None]),
        "time": st.sampled_from([*range(6), *range(6), *range(6), None, "soon"]),
        "id": st.sampled_from(["p", "q", 1, 2, None]),
        "shape": shapes,
        "speed": st.sampled_from([None, 2, 5]),
    }
)
changes = st.tuples(
    st.just("change"), st.dictionaries(st.sampled_from("fgh"), st.none() | wanted, max_size=3)
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("follow"), st.lists(positions, max_size=7)),
        st.tuples(st.just("follow"), st.lists(positions, min_size=4, max_size=9)),
        changes,
        st.tuples(st.just("advance"), st.integers(0, 9)),
        st.tuples(st.just("restart"), st.none()),
        st.tuples(st.just("abandon"), st.lists(positions, min_size=1, max_size=3)),
    ),
    min_size=3,
    max_size=12,
)
tenants = st.builds(
    TrackingSettings,
    lateness_us=st.sampled_from([0, 0, 2, 5]).map(lambda count: count * MINUTE),
    silence_us=st.sampled_from([None, 3, 6]).map(lambda count: count and count * MINUTE),
    idle_us=st.sampled_from([1, 4]).map(lambda count: count * MINUTE),
)


class Comparison:
    """The desk and the oracle side by side."""

    def __init__(self, tenant: TrackingSettings) -> None:
        self.tenant = tenant
        self.desk = TrackingDesk(tenant)
        self.oracle = Oracle(tenant.lateness_us, tenant.silence_us)
        self.wanted: dict[str, Wanted] = {}
        self.given = 0
        self.labels: dict[tuple[Any, ...], int] = {}
        self.label = 0
        self.first = 0  # of the times of a batch, in minutes
        self.unmoved = 0  # minutes without a position
        self.is_idle = False

    def run(self, what: str, value: Any) -> None:
        getattr(self, what)(value)
        assert self.desk.tracks.clock_us == self.oracle.clock
        assert len(self.desk.tracks.table) == len(self.oracle.tracks)
        assert len(self.desk.tracks.table.held) == self.oracle.held
        for name in ("applied", "late", "repeated"):
            assert self.desk.counts[name] == self.oracle.counts[name]

    def change(self, changes: dict[str, Wanted | None]) -> None:
        for key, one in changes.items():
            rows, ended = [], None
            if one is not None:
                rows = self.desk.put(key, one.predicate, one.terms)
                self.wanted[key] = one
            elif key in self.wanted:
                ended = self.desk.living[key]
                rows = self.desk.remove(key)
                del self.wanted[key]
            self.compare(rows, self.oracle.follow([], self.watches()))
            for track in self.oracle.tracks.values():  # what has ended is forgotten
                track.pairs.pop(ended, None)
            self.compare(self.desk.advance(0), self.oracle.follow([], self.watches()))

    def follow(self, events: list[dict[str, Any]]) -> None:
        self.first += 2
        features = [self.as_feature(event) for event in events]
        fixes = list(self.fixes_of(features, events))
        if fixes:
            self.unmoved, self.is_idle = 0, False
        self.compare(self.desk.follow(features), self.oracle.follow(fixes, self.watches()))

    def abandon(self, events: list[dict[str, Any]]) -> None:
        label = self.label
        self.desk.follow([self.as_feature(event) for event in events], abandon=True)
        self.label = label

    def restart(self, _: None) -> None:
        """The broker's clock stands still while there is no broker."""
        self.desk.restart()
        self.unmoved, self.is_idle = 0, False

    def advance(self, passed: int) -> None:
        self.unmoved += passed
        self.is_idle |= self.unmoved * MINUTE >= self.tenant.idle_us
        clock = self.oracle.clock
        if self.is_idle:
            clock = None if clock is None else clock + self.unmoved * MINUTE
            self.unmoved = 0 if clock is not None else self.unmoved
        rows = self.desk.advance(passed * MINUTE)
        self.compare(rows, self.oracle.follow([], self.watches(), clock=clock))

    def watches(self) -> dict[str, Watch]:
        return {self.desk.living[key]: one.watch for key, one in self.wanted.items()}

    def as_feature(self, event: dict[str, Any]) -> dict[str, Any]:
        time, shape = event["time"], event["shape"]
        if isinstance(time, int):
            time = (EPOCH + dt.timedelta(minutes=self.first + time)).isoformat()
        self.label += 1
        properties = {"object_id": event["object"], "time": time, "speed": event["speed"]}
        return {
            "type": "Feature",
            **({} if event["id"] is None else {"id": event["id"]}),
            "geometry": None if shape is None else shapely.geometry.mapping(shape),
            "properties": properties | {"label": self.label},
        }

    def fixes_of(self, features: list[Any], events: list[dict[str, Any]]) -> Iterator[Fix]:
        texts = read_features(features).texts
        for feature, text, event in zip(features, texts, events, strict=True):
            if event["object"] is None or not isinstance(event["time"], int):
                continue
            spelt = spell_event_id(event["id"])
            if event["id"] is None:
                spelt = spell_given(self.given)
                self.given += 1
            shape, time = event["shape"], (self.first + event["time"]) * MINUTE
            is_point = shape is not None and shape.geom_type == "Point"
            yield Fix(
                spell_id(event["object"]),
                time,
                spelt,
                (shape.x, shape.y) if is_point else None,
                b"" if shape is None else shape.wkb + b"\0" + text,
                shape is not None,
                {**event, "label": feature["properties"]["label"]},
            )

    def compare(self, found: list[Seen], expected: list[Row]) -> None:
        for fix in self.oracle.applied:
            self.labels[fix.object, fix.time, fix.id] = fix.event["label"]
        self.oracle.applied.clear()
        rows = [
            Seen(
                read_spelt(row.object), row.subscription, row.transition, row.time,
                self.labels[row.object, row.time, row.event] if row.cause == "position" else None,
                row.cause,
            )
            for row in expected
            if row.transition != "late"
        ]  # fmt: skip
        assert sorted(found, key=repr) == sorted(rows, key=repr)


def check(tenant: TrackingSettings, first: dict[str, Any], given_steps: Any) -> None:
    comparison = Comparison(tenant)
    comparison.run("change", first)
    for what, value in given_steps:
        comparison.run(what, value)


@settings(max_examples=80, deadline=None)
@given(tenants, st.dictionaries(st.sampled_from("fgh"), wanted, min_size=1), steps)
def test_a_broker_follows_the_rules(tenant: Any, first: Any, given_steps: Any) -> None:
    check(tenant, first, given_steps)


@settings(max_examples=40, deadline=None)
@given(tenants, st.dictionaries(st.sampled_from("fgh"), wanted, min_size=1), steps)
def test_so_it_does_where_all_fences_are_made_anew_or_kept_apart(
    tenant: Any, first: Any, given_steps: Any
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(watched_fences, "_NEW_MIN", 0)
        patch.setattr(watched_fences, "_NEW_SHARE", 1)
        check(tenant, first, given_steps)
