"""Transitions in the broker: objects are followed in the transaction of what moves them.

`ObjectTracks` is all that is known; a `TrackTransaction` follows events, the clock and changes of
the set, one after another, and keeps what comes of it to itself until `commit`. Nothing here knows
SQL: `track_store` stores what `changes` returns, in the same commit as the events.

The clock is that of the positions. When none has come for the settings' `idle`, it moves on as far
as the broker's clock has moved since.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from contrada.broker.fence_book import Fence, FenceBook, RowFences
from contrada.broker.fence_search import FoundFences, describe, search_fences
from contrada.broker.object_records import ObjectRecord, read_record, write_record
from contrada.broker.object_table import (
    HeldPosition,
    ObjectChange,
    ObjectTable,
    StateChanges,
    keys_of,
    timer_of,
)
from contrada.broker.position_rows import PositionBatch, decode_applied
from contrada.broker.step_states import StepObject, make_state, read_state
from contrada.broker.track_entries import TrackStep, write_step
from contrada.broker.transition_bodies import TrackingSettings
from contrada.broker.watched_fences import WatchedFences
from contrada.matching.segments import SubscriptionSet
from contrada.transitions.deciding import Found, Step, finish
from contrada.transitions.followed import StreamOptions
from contrada.transitions.taking_in import Begun, StepCounts, begin

OBJECTS_DUE_MAX = 2_000  # whose timers run in one step; those of others run in the next


@dataclass(frozen=True, slots=True)
class FenceChange:
    """A subscription, or a row, that holds no longer, and what holds by its key from now on."""

    ended: Fence
    successor: Fence | None = None


@dataclass(frozen=True, slots=True)
class FenceVersion:
    """What holds while events are followed: the matcher's set, and what each number in it is."""

    subscriptions: SubscriptionSet
    book: FenceBook


class ObjectTracks:
    """What is known of all objects of a tenant; asked and changed by one thread."""

    def __init__(
        self,
        settings: TrackingSettings,
        now_us: int,
        *,
        clock_us: int | None = None,
        given: int = 0,
    ) -> None:
        """Begin without objects; `load` of the table takes in those that were stored.

        `now_us` is the broker's clock; what is stored besides objects is that of positions, and how
        many of these were numbered for want of an id.
        """
        self.settings, self.clock_us, self.given = settings, clock_us, given
        self.table = ObjectTable()
        self.watched = WatchedFences()
        self.moved_us = now_us  # the broker's clock when that of positions moved
        self.is_idle = False  # whether it was the broker's that moved it last
        self.counts = dict.fromkeys(
            ("positions", "applied", "late", "repeated", "without_geometry", "without_time"), 0
        )

    def begin(self) -> "TrackTransaction":
        """Begin what is kept together, or not at all."""
        return TrackTransaction(self)

    def wait_us(self, now_us: int) -> int | None:
        """Return how long nothing will be due unless something comes in; None: for ever.

        It is measured by the broker's clock; 0 means that `advance` has something to do.
        """
        timer_us = self.table.find_next()
        if timer_us is None or self.clock_us is None:
            return None
        left_us = timer_us - (self.clock_us - self.settings.lateness_us)
        if left_us <= 0:
            return 0
        least_us = 0 if self.is_idle else self.settings.idle_us
        return max(0, max(left_us, least_us) - (now_us - self.moved_us))

    def stats(self) -> dict[str, int]:
        """Return counts: of objects and held positions now, and of positions since the start."""
        table = self.table
        sizes = {"objects": len(table), "held": len(table.held), "bytes": table.nbytes}
        return sizes | self.counts


class TrackTransaction:
    """Steps that see each other, and that nobody else sees before `commit`."""

    def __init__(self, tracks: ObjectTracks) -> None:
        """Begin with what is known."""
        self._tracks, self._table = tracks, tracks.table
        self._settings = tracks.settings
        self._clock_us, self._given = tracks.clock_us, tracks.given
        self._moved_us, self._is_idle = tracks.moved_us, tracks.is_idle
        self._successors: dict[str, Fence | None] = {}  # which the book may not have yet
        self._objects: dict[str, ObjectChange] = {}
        self._held: dict[int, HeldPosition] = {}
        self._released: set[int] = set()
        self._next_number = tracks.table.next_number
        self._counts: list[StepCounts] = []
        self._timeless = 0

    # Steps

    def step(
        self,
        rows: pa.RecordBatch,
        features: Sequence[bytes],
        version: FenceVersion,
        now_us: int,
    ) -> TrackStep:
        """Follow the positions among events that come in together, and run what is due by them.

        `rows` are the events as columns, `features` the same as JSON; `now_us` is the broker's
        clock. Events that are refused, as `find_ahead` would have it, are left out before.
        """
        batch = PositionBatch.read(
            rows, features, self._settings, version.subscriptions, self._given, self._next_number
        )
        self._given += batch.given
        self._timeless += batch.timed.timeless
        if not len(batch):
            return self._follow((), None, version)
        self._next_number += len(batch)
        self._moved_us, self._is_idle = now_us, False
        return self._follow(batch.names(), batch, version)

    def advance(self, now_us: int, version: FenceVersion) -> TrackStep:
        """Move the clock on if no position has come for long enough; run what is due."""
        passed_us = now_us - self._moved_us
        self._is_idle |= passed_us >= self._settings.idle_us
        if self._is_idle and self._clock_us is not None and passed_us > 0:
            self._clock_us += passed_us
            self._moved_us = now_us
        return self._follow((), None, version)

    def take_up(self, changes: Iterable[FenceChange], book: FenceBook) -> TrackStep:
        """End the visits to what holds no longer; see which timers another body has.

        `book` is what holds besides, with these changes or without. A visit to what has a
        successor goes on; that decides at the next position of each object.
        """
        by_key = {change.ended.key: change for change in changes}
        self._successors |= {key: change.successor for key, change in by_key.items()}
        others = [  # the state has no numbers: under the same terms nothing of it changes
            key
            for key, change in by_key.items()
            if change.successor is None or change.successor.terms != change.ended.terms
        ]
        names = {name for key in others for name in self._find_visitors(key)}
        if not names:
            return TrackStep.nothing()
        objects = self._open(names)
        visited = {pair.key for one in objects if one.record for pair in one.record.pairs}
        fences, terms = {}, {}
        for key in visited:
            change, fence = by_key.get(key), self._find_fence(key, book)
            if fence is not None:
                fences[key] = fence
            if change is not None:
                terms[key] = change.ended
            elif fence is not None:
                terms[key] = fence
        state = make_state(objects, {}, terms, self._clock_us)
        begun = begin(state, None, self._stream_options())
        step = finish(begun, describe(fences), Found.nothing())
        self._keep(objects, step, fences, None, are_held_here=False)
        return write_step(begun, step, terms | fences, None, {})

    def take_up_rows(
        self, before: RowFences, after: RowFences | None, book: FenceBook
    ) -> TrackStep:
        """End the visits to the rows of a collection that its new rows, if any, lack."""
        keys = set(self._table.find_keys(before.subscription))
        for change in self._objects.values():
            keys |= change.keys
        changes = []
        for key in sorted(keys):
            ended = before.by_key(key)
            if ended is not None:
                changes.append(FenceChange(ended, None if after is None else after.by_key(key)))
        return self.take_up(changes, book)

    def change_settings(self, settings: TrackingSettings) -> None:
        """Follow by other settings from now on."""
        self._settings = settings

    # What comes of them

    def changes(self) -> StateChanges:
        """Return what is to be stored."""
        known = self._table.held
        return StateChanges(
            self._clock_us,
            self._given,
            {name: change.record for name, change in self._objects.items()},
            {n: one for n, one in self._held.items() if n not in self._released},
            sorted(number for number in self._released if number in known),
        )

    @property
    def has_changed(self) -> bool:
        """Whether anything is to be stored that cannot be left to the next transaction."""
        return bool(self._objects or self._held or self._released)

    def commit(self) -> None:
        """Let everybody see it; called when it is on disk."""
        tracks, table = self._tracks, self._table
        tracks.clock_us, tracks.given = self._clock_us, self._given
        tracks.moved_us, tracks.is_idle = self._moved_us, self._is_idle
        table.next_number = self._next_number
        table.hold(self._held)
        table.release(self._released)
        table.apply(self._objects)
        if tracks.settings != self._settings:
            tracks.settings = self._settings
            table.set_timers(self._settings.silence_us)
        tracks.counts["without_time"] += self._timeless
        for counts in self._counts:
            tracks.counts["positions"] += counts.came
            for name in ("applied", "late", "repeated", "without_geometry"):
                tracks.counts[name] += getattr(counts, name)

    # How

    def _stream_options(self) -> StreamOptions:
        return StreamOptions(self._settings.lateness_us, self._settings.silence_us)

    def _follow(
        self, names: Iterable[str], batch: PositionBatch | None, version: FenceVersion
    ) -> TrackStep:
        """Follow some objects, and those to which something happens by the clock."""
        before_us = clock_us = self._clock_us
        if batch is not None:
            clock_us = max(batch.clock_us, batch.clock_us if before_us is None else before_us)
        self._clock_us = clock_us
        names = set(names)
        if clock_us is not None:
            names |= self._find_due(clock_us - self._settings.lateness_us)
        if not names:
            return TrackStep.nothing()
        objects = self._open(names)
        held = {number: self._find_position(number) for n in names for number in self._numbers(n)}
        visited = {pair.key for one in objects if one.record for pair in one.record.pairs}
        found_by_key = {key: self._find_fence(key, version.book) for key in visited}
        fences = {key: fence for key, fence in found_by_key.items() if fence is not None}
        state = make_state(objects, held, fences, before_us)
        columns = None if batch is None else batch.columns(held)
        begun = begin(state, columns, self._stream_options(), clock_us=clock_us)
        found = self._search(begun, batch, held, fences, version)
        step = finish(begun, found.followed, found.found)
        self._keep(objects, step, found.fences, batch, are_held_here=True)
        self._counts.append(step.counts)
        return write_step(begun, step, found.fences, batch, held)

    def _search(
        self,
        begun: Begun,
        batch: PositionBatch | None,
        held: Mapping[int, HeldPosition],
        fences: Mapping[str, Fence],
        version: FenceVersion,
    ) -> FoundFences:
        """Match what is applied."""
        pieces = decode_applied(begun, batch, held, version.subscriptions)
        if not pieces:
            return FoundFences(describe(fences), Found.nothing(), fences)
        return search_fences(
            pieces, begun.segments, fences, version.subscriptions, version.book,
            self._tracks.watched,
        )  # fmt: skip

    def _keep(
        self,
        objects: Sequence[StepObject],
        step: Step,
        fences: Mapping[str, Fence],
        batch: PositionBatch | None,
        *,
        are_held_here: bool,
    ) -> None:
        """Note which objects have become others, and which positions wait or do no longer."""
        after = read_state(step.state, fences)
        for one in objects:
            record, numbers = after.get(one.name, (None, []))
            before = self._numbers(one.name)
            own = tuple(numbers) if are_held_here else before
            for number in set(own) - set(before):
                assert batch is not None
                self._held[number] = batch.position(number)
            self._released |= set(before) - set(own)
            if record == one.record and own == before and one.name not in self._objects:
                continue
            held_us = [self._find_position(number).time_us for number in own]
            self._objects[one.name] = ObjectChange(
                None if record is None else write_record(record),
                frozenset() if record is None else keys_of(record),
                own,
                timer_of(record, held_us, self._settings.silence_us),
            )

    def _open(self, names: Iterable[str]) -> list[StepObject]:
        """Return objects with their records, sorted."""
        return [StepObject(name, self._find_record(name)) for name in sorted(names)]

    def _find_fence(self, key: str, book: FenceBook) -> Fence | None:
        """Return what holds by a key."""
        return self._successors[key] if key in self._successors else book.by_key(key)

    def _find_record(self, name: str) -> ObjectRecord | None:
        change = self._objects.get(name)
        data = self._table.find(name) if change is None else change.record
        return None if data is None else read_record(data)

    def _numbers(self, name: str) -> tuple[int, ...]:
        change = self._objects.get(name)
        return self._table.find_held(name) if change is None else change.held

    def _find_position(self, number: int) -> HeldPosition:
        return self._held.get(number) or self._table.held[number]

    def _find_due(self, due_us: int) -> set[str]:
        """Find the objects to which something happens by a time, those first whose time it is."""
        names = {name for name, one in self._objects.items() if one.timer_us <= due_us}
        work = len(names)
        for name in self._table.find_due(due_us):
            if work >= OBJECTS_DUE_MAX:
                break
            if name not in self._objects:
                names.add(name)
                work += 1 + len(self._table.find_held(name))
        return names

    def _find_visitors(self, key: str) -> set[str]:
        names = {name for name in self._table.find_visitors(key) if name not in self._objects}
        return names | {name for name, one in self._objects.items() if key in one.keys}
