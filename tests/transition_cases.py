"""Tracks and fences for tests of transitions: matching is a plain function of small numbers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from contrada.transitions.deciding import Found, RowRanks, Step, finish
from contrada.transitions.followed import FollowedSubscriptions, StreamOptions, read_kinds
from contrada.transitions.position_columns import PositionColumns
from contrada.transitions.taking_in import Begun, begin
from contrada.transitions.track_state import TrackState
from transitions_oracle import KINDS, Fix, Row, Watch

Point = tuple[float, float]


@dataclass(frozen=True)
class Fence:
    """A box, or with a radius a circle around its middle; `speed_min` is a further constraint.

    `is_fence` is false where a subscription has no crossings and no hysteresis.
    """

    low: Point
    high: Point
    radius: int | None = None
    speed_min: int = 0
    is_fence: bool = True
    hysteresis: int = 0
    cooldown: int = 0
    dwell: int | None = None
    kinds: frozenset[str] = KINDS
    subscriber: str | None = None

    def matches(self, fix: Fix) -> bool:
        return self._is_within(fix, 0)

    def near(self, fix: Fix) -> bool:
        return self.hysteresis > 0 and self._is_within(fix, self.hysteresis)

    def _is_within(self, fix: Fix, more: int) -> bool:
        return fix.event[2] >= self.speed_min and self._reaches(fix.event[:2], more)

    def _reaches(self, place: Point, more: int) -> bool:
        if self.radius is not None:
            return bool(squared(place, self.low) <= (self.radius + more) ** 2)
        sides = zip(place, self.low, self.high, strict=True)
        nearest = [min(max(at, low), high) for at, low, high in sides]
        return bool(squared(place, nearest) <= more**2)

    def meets(self, before: Fix, fix: Fix) -> bool:
        assert before.point and fix.point
        return fix.event[2] >= self.speed_min and self._is_met(before.point, fix.point)

    def _is_met(self, a: Point, b: Point) -> bool:
        if self.radius is not None:
            return bool(squared(self.low, nearest_on(a, b, self.low)) <= self.radius**2)
        first, last = Fraction(0), Fraction(1)
        for start, end, low, high in zip(a, b, self.low, self.high, strict=True):
            if start == end:
                if not low <= start <= high:
                    return False
                continue
            one, other = (Fraction(side - start) / Fraction(end - start) for side in (low, high))
            first, last = max(first, min(one, other)), min(last, max(one, other))
        return first <= last

    @property
    def watch(self) -> Watch:
        return Watch(
            self.subscriber, self.matches, self.is_fence, self.near, self.meets,
            self.cooldown, self.dwell, self.kinds,
        )  # fmt: skip


def squared(a: Sequence[Any], b: Sequence[Any]) -> Any:
    return (a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2


def nearest_on(a: Point, b: Point, place: Point) -> list[Fraction]:
    """The point of a segment that is nearest to a place, exactly."""
    length = squared(a, b)
    along = (place[0] - a[0]) * (b[0] - a[0]) + (place[1] - a[1]) * (b[1] - a[1])
    share = min(max(Fraction(along) / Fraction(length), Fraction(0)), Fraction(1)) if length else 0
    return [
        Fraction(start) + share * Fraction(end - start) for start, end in zip(a, b, strict=True)
    ]


Fences = Mapping[Any, Fence]


@dataclass(frozen=True)
class Batch:
    """What comes in together, and the version of the fences that applies it."""

    fixes: tuple[Fix, ...]
    fences: Fences
    version: str | None = None
    clock: int | None = None

    @property
    def watches(self) -> dict[Any, Watch]:
        return {id_: fence.watch for id_, fence in self.fences.items()}


def make_fix(
    object_: Any, time: int, id_: Any, place: Point | None, speed: int = 5, is_point: bool = True
) -> Fix:
    """A position; without a place it has no geometry."""
    if place is None:
        return Fix(object_, time, id_, None, has_geometry=False, event=(0, 0, speed))
    key = bytes([int(place[0] + 100) % 256, int(place[1] + 100) % 256, speed, is_point])
    return Fix(object_, time, id_, place if is_point else None, key, event=(*place, speed))


def columns_of(fixes: Sequence[Fix]) -> PositionColumns:
    """The columns that the room takes of positions."""
    points = [fix.point or (np.nan, np.nan) for fix in fixes]
    rows = {
        name: pa.array([fix.event[at] for fix in fixes], pa.int64())
        for at, name in enumerate(("x", "y", "speed"))
    }
    rows["wkb"] = pa.array([fix.wkb for fix in fixes], pa.binary())
    table = pa.table(rows)
    return PositionColumns(
        id_array([fix.object for fix in fixes]),
        np.array([fix.time for fix in fixes], np.int64),
        id_array([fix.id for fix in fixes]),
        np.array([point[0] for point in points], np.float64),
        np.array([point[1] for point in points], np.float64),
        np.array([fix.has_geometry for fix in fixes], bool),
        lambda: table,
        lambda table: table["wkb"].combine_chunks(),
    )


def id_array(ids: Sequence[Any]) -> pa.Array:
    return pa.array(ids, pa.int64() if ids and isinstance(ids[0], int) else pa.large_string())


def followed(fences: Fences, version: str | None = None) -> FollowedSubscriptions:
    """The columns that the room takes of subscriptions."""
    ids = sorted(fences)
    mine = [fences[id_] for id_ in ids]
    return FollowedSubscriptions.alike(
        id_array(ids),
        pa.array([fence.subscriber for fence in mine], pa.large_string()),
        np.array([fence.is_fence for fence in mine], bool),
        hysteresis_m=[fence.hysteresis for fence in mine],
        cooldown_us=[fence.cooldown for fence in mine],
        dwell_us=[-1 if fence.dwell is None else fence.dwell for fence in mine],
        kinds=[read_kinds(sorted(fence.kinds)) for fence in mine],
        version=version,
    )


def find(begun: Begun, columns: PositionColumns | None, fences: Fences) -> Found:
    """Match the applied rows of a batch, from the tables that the room hands out."""
    tables = list(begun.released)
    if columns is not None:
        tables.append(columns.rows().take(pa.array(begun.incoming)))
    places = [tuple(row.values()) for table in tables for row in table.to_pylist()]
    assert len(places) == begun.applied_count
    fixes = [make_fix(0, 0, 0, place[:2], place[2]) for place in places]
    ways = begun.segments
    met = {
        row: (make_fix(0, 0, 0, (x0, y0)), make_fix(0, 0, 0, (x1, y1), fixes[row].event[2]))
        for row, x0, y0, x1, y1 in zip(*(column.tolist() for column in ways), strict=True)
    }
    ranked = [fences[id_] for id_ in sorted(fences)]
    return Found(
        pairs_of(len(fixes), ranked, lambda row, fence: fence.matches(fixes[row])),
        pairs_of(len(fixes), ranked, lambda r, fence: fence.is_fence and fence.near(fixes[r])),
        pairs_of(
            len(fixes),
            ranked,
            lambda row, fence: row in met and fence.is_fence and fence.meets(*met[row]),
        ),
    )


def pairs_of(
    count: int, fences: Sequence[Fence], is_pair: Callable[[int, Fence], bool]
) -> RowRanks:
    pairs = [
        (row, rank)
        for row in range(count)
        for rank, fence in enumerate(fences)
        if is_pair(row, fence)
    ]
    rows, ranks = np.array(pairs, np.int64).reshape(-1, 2).T
    return RowRanks(np.ascontiguousarray(rows), np.ascontiguousarray(ranks))


def rows_of(step: Step) -> list[Row]:
    """The rows of a step as the oracle writes them."""
    table = step.rows.table()
    times = table["time"].cast(pa.int64())
    columns = [times if name == "time" else table[name] for name in table.column_names]
    return [Row(*row) for row in zip(*(column.to_pylist() for column in columns), strict=True)]


@dataclass
class Follower:
    """Follows objects with the room, as its callers do."""

    options: StreamOptions
    state: TrackState = field(default_factory=TrackState.empty)
    steps: list[Step] = field(default_factory=list)

    def follow(self, batch: Batch, **how: Any) -> list[Row]:
        columns = columns_of(batch.fixes) if batch.fixes else None
        begun = begin(self.state, columns, self.options, clock_us=batch.clock, **how)
        found = find(begun, columns, batch.fences)
        step = finish(begun, followed(batch.fences, batch.version), found)
        self.state = step.state
        self.steps.append(step)
        return rows_of(step)


def count(steps: Sequence[Step], name: str) -> int:
    return sum(getattr(step.counts, name) for step in steps)


TIMES = st.integers(0, 24)
IDS = {
    "integers": st.integers(-2, 3),
    "strings": st.sampled_from(["", "a", "b", "é", "\U0001f6a2", "\ufffd"]),
}
OBJECTS = {"integers": st.integers(-1, 2), "strings": st.sampled_from(["", "z", "ü", "\U0001f6a2"])}
PLACES = st.tuples(st.integers(0, 9), st.integers(0, 3))


@st.composite
def fixes(draw: st.DrawFn, objects: str, ids: str, may_lack: bool = True) -> Fix:
    """A position of few objects at few times, so that much comes together."""
    place = draw(st.none() | PLACES if may_lack and draw(st.integers(0, 9)) == 0 else PLACES)
    return make_fix(
        draw(OBJECTS[objects]),
        draw(TIMES),
        draw(IDS[ids]),
        place,
        draw(st.integers(4, 6)),
        draw(st.integers(0, 9)) > 0,
    )


FENCE = st.builds(
    Fence,
    low=PLACES,
    high=PLACES,
    radius=st.none() | st.integers(0, 2),
    speed_min=st.sampled_from([0, 0, 5]),
    is_fence=st.sampled_from([True, True, True, False]),
    hysteresis=st.sampled_from([0, 0, 1, 2]),
    cooldown=st.sampled_from([0, 0, 3, 9]),
    dwell=st.sampled_from([None, 1, 4, 9]),
    kinds=st.just(KINDS) | st.frozensets(st.sampled_from(sorted(KINDS))),
    subscriber=st.sampled_from([None, "ops", "desk"]),
).map(
    lambda fence: replace(
        fence,
        low=(min(fence.low[0], fence.high[0]), min(fence.low[1], fence.high[1])),
        high=(max(fence.low[0], fence.high[0]), max(fence.low[1], fence.high[1])),
    )
)

KINDS_OF_IDS = st.sampled_from(["integers", "strings"])
SUBSCRIPTION_IDS = {"integers": st.integers(1, 3), "strings": st.sampled_from(["p", "q", "é"])}


@st.composite
def fence_sets(draw: st.DrawFn, ids: str) -> dict[Any, Fence]:
    return draw(st.dictionaries(SUBSCRIPTION_IDS[ids], FENCE, max_size=3))


@st.composite
def options(draw: st.DrawFn) -> StreamOptions:
    return StreamOptions(draw(st.sampled_from([0, 0, 3, 8])), draw(st.sampled_from([None, 3, 7])))


@st.composite
def streams(draw: st.DrawFn) -> list[Batch]:
    """Batches in which fences come, change and go, and clocks advance alone."""
    objects, ids, subscriptions = draw(st.tuples(KINDS_OF_IDS, KINDS_OF_IDS, KINDS_OF_IDS))
    fences = draw(fence_sets(subscriptions))
    batches = []
    for number in range(draw(st.integers(1, 5))):
        if draw(st.integers(0, 2)) == 0:
            fences = {**fences, **draw(fence_sets(subscriptions))}
            gone = draw(st.sets(st.sampled_from(sorted(fences)))) if fences else set()
            fences = {id_: fence for id_, fence in fences.items() if id_ not in gone}
        mine = tuple(draw(st.lists(fixes(objects, ids), max_size=8)))
        clock = draw(st.none() | st.integers(0, 50)) if draw(st.integers(0, 4)) == 0 else None
        batches.append(Batch(mine, fences, f"v{number}", clock))
    return batches
