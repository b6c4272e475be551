"""The rules of transitions in plain Python, position by position: slow, obvious, and independent.

Written from the rules alone; nothing of `contrada.transitions` is used here. Times are numbers,
ids integers or strings. What matches is asked of the subscriptions, which are callables.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

KINDS = frozenset({"enter", "inside", "exit", "cross", "dwell"})
DWELL, SILENCE, VERSION, POSITION = range(4)  # what comes first at one time
ORDER = ("exit", "enter", "inside", "cross", "dwell", "late")


@dataclass(frozen=True)
class Fix:
    """A position: `point` is None unless the geometry is a point, `event` whatever matching reads.

    Without a geometry `has_geometry` is false.
    """

    object: Any
    time: int
    id: Any
    point: tuple[float, float] | None
    wkb: bytes = b""
    has_geometry: bool = True
    event: Any = None


def never(*_: Fix) -> bool:
    return False


@dataclass(frozen=True)
class Watch:
    """A subscription: what matches, what is near, and which ways meet it, other constraints too."""

    subscriber: Any
    matches: Callable[[Fix], bool]
    is_fence: bool = False
    near: Callable[[Fix], bool] = never
    meets: Callable[[Fix, Fix], bool] = never
    cooldown: int = 0
    dwell: int | None = None
    kinds: frozenset[str] = KINDS


class Row(NamedTuple):
    """A transition."""

    object: Any
    subscription: Any
    subscriber: Any
    transition: str
    time: int
    event: Any
    version: str | None
    cause: str


@dataclass
class Pair:
    """An object and a subscription: the visit, and what happened before."""

    entered: tuple[int, Any] | None = None  # time and event
    has_dwelt: bool = False
    change: int | None = None
    cross: int | None = None


@dataclass
class Track:
    """What is known of one object."""

    last: Fix | None = None
    timer: int | None = None  # the moment of the last timer
    is_silent: bool = False
    pairs: dict[Any, Pair] = field(default_factory=dict)
    held: dict[tuple[int, Any], Fix] = field(default_factory=dict)

    @property
    def horizon(self) -> int | None:
        moments = [self.timer] if self.timer is not None else []
        moments += [self.last.time] if self.last else []
        return max(moments, default=None)


class Oracle:
    """Follows objects batch by batch; `counts` says what became of all positions so far."""

    def __init__(
        self, lateness: int = 0, silence: int | None = None, is_geographic: bool = True
    ) -> None:
        self.lateness, self.silence, self.is_geographic = lateness, silence, is_geographic
        self.clock: int | None = None
        self.tracks: dict[Any, Track] = {}
        self.known: dict[Any, Watch] = {}  # as the last version had them
        self.counts: Counter[str] = Counter()
        self.applied: list[Fix] = []
        self._rows: list[tuple[Any, Row]] = []
        self._version: str | None = None
        self._set: Mapping[Any, Watch] = {}

    @property
    def due(self) -> int | None:
        return None if self.clock is None else self.clock - self.lateness

    @property
    def held(self) -> int:
        return sum(len(track.held) for track in self.tracks.values())

    def follow(
        self,
        fixes: Iterable[Fix],
        watches: Mapping[Any, Watch],
        version: str | None = None,
        clock: int | None = None,
    ) -> list[Row]:
        """Take one batch; return its rows in order."""
        fixes = list(fixes)
        self._rows, self._set, self._version = [], watches, version
        self.known.update(watches)
        self._end_gone()
        self._take_in(fixes)
        times = [fix.time for fix in fixes] + [t for t in (clock, self.clock) if t is not None]
        self.clock = max(times, default=None)
        if self.due is not None:
            for object_, track in self.tracks.items():
                self._apply(object_, track, self.due)
            self._forget(self.due)
        return [row for _, row in sorted(self._rows, key=lambda pair: pair[0])]

    def _end_gone(self) -> None:
        for object_, track in self.tracks.items():
            for id_, pair in track.pairs.items():
                if pair.entered and id_ not in self._set:
                    assert track.horizon is not None
                    self._leave(pair, track.horizon)
                    self._emit(VERSION, object_, id_, "exit", track.horizon, None, "version")

    def _take_in(self, fixes: list[Fix]) -> None:
        seen: dict[tuple[Any, int, Any], Fix] = {}
        for fix in fixes:
            if not fix.has_geometry:
                self.counts["without geometry"] += 1
                continue
            name = (fix.object, fix.time, fix.id)
            if name in seen:
                self.counts["repeated"] += 1
            seen[name] = min(fix, seen.get(name, fix), key=lambda one: one.wkb)
        for fix in seen.values():
            track = self.tracks.setdefault(fix.object, Track())
            if track.last and (fix.time, fix.id) == (track.last.time, track.last.id):
                self.counts["repeated"] += 1
            elif self._is_late(fix, track):
                self.counts["late"] += 1
                self._emit(POSITION, fix.object, None, "late", fix.time, fix.id, "position")
            else:
                other = track.held.get((fix.time, fix.id))
                self.counts["repeated"] += other is not None
                track.held[fix.time, fix.id] = min(fix, other or fix, key=lambda one: one.wkb)

    def _is_late(self, fix: Fix, track: Track) -> bool:
        if track.last and (fix.time, fix.id) <= (track.last.time, track.last.id):
            return True
        if track.timer is not None and fix.time < track.timer:
            return True
        is_dated = self.silence is not None and self.due is not None
        return is_dated and fix.time < self.due - self.silence  # type: ignore[operator]

    def _apply(self, object_: Any, track: Track, due: int) -> None:
        """Apply timers and positions up to due, the next one first."""
        while True:
            steps: list[tuple[Any, ...]] = []
            for id_, pair in track.pairs.items():
                moment = self._dwell_moment(id_, pair)
                if moment is not None:
                    steps.append((moment, DWELL, id_))
            if self.silence is not None and track.last and not track.is_silent:
                steps.append((track.last.time + self.silence, SILENCE, object_))
            steps += [(time, POSITION, id_) for time, id_ in track.held]
            steps = [step for step in steps if step[0] <= due]
            if not steps:
                return
            time, what, id_ = min(steps)
            if what == DWELL:
                self._dwell(object_, track, id_, time)
            elif what == SILENCE:
                self._fall_silent(object_, track, time)
            else:
                self._move(object_, track, track.held.pop((time, id_)))

    def _dwell_moment(self, id_: Any, pair: Pair) -> int | None:
        watch = self._set.get(id_)
        if watch is None or watch.dwell is None or "dwell" not in watch.kinds:
            return None
        return pair.entered[0] + watch.dwell if pair.entered and not pair.has_dwelt else None

    def _dwell(self, object_: Any, track: Track, id_: Any, time: int) -> None:
        pair = track.pairs[id_]
        assert pair.entered
        self._emit(DWELL, object_, id_, "dwell", time, pair.entered[1], "clock")
        pair.has_dwelt = True
        track.timer = max(time, time if track.timer is None else track.timer)

    def _fall_silent(self, object_: Any, track: Track, time: int) -> None:
        for id_, pair in track.pairs.items():
            if pair.entered:
                self._leave(pair, time)
                self._emit(SILENCE, object_, id_, "exit", time, None, "clock")
        track.is_silent = True
        track.timer = max(time, time if track.timer is None else track.timer)

    def _leave(self, pair: Pair, time: int) -> None:
        pair.entered, pair.change = None, time

    def _move(self, object_: Any, track: Track, fix: Fix) -> None:
        before = None if track.is_silent else track.last
        for id_, watch in self._set.items():
            pair = track.pairs.setdefault(id_, Pair())
            self._decide(id_, watch, pair, before, fix)
        track.last, track.is_silent = fix, False
        self.counts["applied"] += 1
        self.applied.append(fix)

    def _decide(self, id_: Any, watch: Watch, pair: Pair, before: Fix | None, fix: Fix) -> None:
        was = pair.entered is not None
        now = watch.matches(fix) or (was and watch.is_fence and watch.near(fix))
        if pair.change is not None and fix.time < pair.change + watch.cooldown:
            now = was
        if now and not was:
            pair.entered, pair.has_dwelt, pair.change = (fix.time, fix.id), False, fix.time
        elif was and not now:
            self._leave(pair, fix.time)
        elif not was and not now and not self._crosses(watch, pair, before, fix):
            return
        elif not was and not now:
            pair.cross = fix.time
        transition = {(False, True): "enter", (True, True): "inside", (True, False): "exit"}
        name = transition.get((was, now), "cross")
        self._emit(POSITION, fix.object, id_, name, fix.time, fix.id, "position")

    def _crosses(self, watch: Watch, pair: Pair, before: Fix | None, fix: Fix) -> bool:
        if not watch.is_fence or "cross" not in watch.kinds or before is None:
            return False
        if before.point is None or fix.point is None:
            return False
        if self.is_geographic and abs(fix.point[0] - before.point[0]) > 180:
            return False
        for moment in (pair.change, pair.cross):
            if moment is not None and fix.time < moment + watch.cooldown:
                return False
        return watch.meets(before, fix)

    def _forget(self, due: int) -> None:
        """Forget what cannot matter any more, and objects after another silence."""
        for object_, track in list(self.tracks.items()):
            floor = track.horizon
            if floor is not None and self.silence is not None:
                floor = max(floor, due - self.silence)
            for id_, pair in list(track.pairs.items()):
                moments = [m for m in (pair.change, pair.cross) if m is not None]
                is_past = not moments or max(moments) + self.known[id_].cooldown <= (floor or 0)
                if not pair.entered and (floor is None or is_past):
                    del track.pairs[id_]
            is_old = track.last and self.silence and due >= track.last.time + 2 * self.silence
            if is_old and not track.pairs:
                track.last, track.timer, track.is_silent = None, None, False
            if not (track.last or track.pairs or track.held):
                del self.tracks[object_]

    def _emit(
        self, phase: int, object_: Any, id_: Any, name: str, time: int, event: Any, cause: str
    ) -> None:
        """Write a row, unless its subscription does not ask for such."""
        watch = self._set.get(id_, self.known.get(id_))
        if watch is not None and name not in watch.kinds:
            return
        subscriber = watch.subscriber if watch else None
        row = Row(object_, id_, subscriber, name, time, event, self._version, cause)
        of_event = (event,) if phase == POSITION else ()
        of_id = () if id_ is None else (id_,)
        self._rows.append(((time, object_, phase, of_event, of_id, ORDER.index(name)), row))


def follow_all(
    fixes: Iterable[Fix],
    watches: Mapping[Any, Watch],
    silence: int | None = None,
    version: str | None = None,
    clock: int | None = None,
) -> list[Row]:
    """Batch mode: everything is sorted, nothing is late, timers run to the clock."""
    return Oracle(0, silence).follow(fixes, watches, version, clock)
