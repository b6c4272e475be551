"""`Tracker`: when objects enter, leave, cross and stay in what matches, in one process."""

import os
import threading
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Self

import pyarrow as pa

from contrada.errors import InvalidInput, blaming_memory
from contrada.files import read_rows
from contrada.files.crs import is_longitude_latitude, is_same_crs
from contrada.flags import check_flags
from contrada.matcher.facade import Matcher
from contrada.matcher.finding import FollowedSet, SubscriptionOptions
from contrada.matcher.following import follow_batch
from contrada.matcher.inside import (
    describe_mismatches,
    describe_projected,
    find_stating,
    freeze,
)
from contrada.matcher.match_run import count_threads
from contrada.matcher.position_intake import (
    Intake,
    OnRead,
    PositionNames,
    take_in_list,
    take_in_rows,
)
from contrada.matcher.shown import Stats
from contrada.matcher.track_files import open_tracks, save_tracks
from contrada.matching.receiving import find_remedies
from contrada.matching.segments import SubscriptionSet
from contrada.matching.subscribing import HearBad, OnBad, hear_with
from contrada.showing import brief
from contrada.threads import ProcessLock
from contrada.transitions.deciding import Step
from contrada.transitions.durations import Duration, read_duration
from contrada.transitions.followed import StreamOptions, read_kinds, read_metres
from contrada.transitions.resting_tracks import LentTracks, RestingTracks
from contrada.transitions.track_state import TrackState

ERROR_TYPE = pa.struct([(name, pa.string()) for name in ("code", "message", "place")])
_CRS = "crs"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TOTALS = ("positions", "applied", "late", "repeated", "without_geometry", "left_out", "mended")


class Tracker:
    """Follows objects through the subscriptions of a matcher: who enters, leaves, crosses, stays.

    A `Matcher` says of each position which subscriptions it satisfies. A tracker remembers what
    each object did before, and says what changed: one row for each enter, exit, crossing or dwell.
    `contrada.spark.transitions` does the same over DataFrames; docs/transitions.md has the rules,
    with examples of every option.

    A position is an event with an object, a time and a `geometry`. The matcher may change between
    calls of `follow`: a subscription that is removed ends the visits to it, one that is added or
    replaced counts from the next position of each object on. Every method may be called from any
    thread; calls of `follow` come one after another, and one that fails changes nothing.

    >>> matcher = contrada.Matcher()
    >>> matcher.add("depot", geometry="POLYGON((0 0, 9 0, 9 9, 0 9, 0 0))")
    >>> tracker = contrada.Tracker(matcher)
    >>> van = {"object_id": "van 7", "time": "2026-03-01T08:00:00Z", "geometry": "POINT(5 5)"}
    >>> tracker.follow(van).select(["object", "subscription", "transition"]).to_pylist()
    [{'object': 'van 7', 'subscription': 'depot', 'transition': 'enter'}]
    >>> van = {"object_id": "van 7", "time": "2026-03-01T08:05:00Z", "geometry": "POINT(20 5)"}
    >>> tracker.follow(van)["transition"].to_pylist()
    ['exit']
    """

    def __init__(
        self,
        matcher: Matcher,
        *,
        object: str = "object_id",
        time: str = "time",
        lateness: Duration = "0 s",
        silence: Duration | None = None,
        hysteresis: float = 0,
        cooldown: Duration = "0 s",
        dwell: Duration | None = None,
        kinds: Iterable[str] | None = None,
        quarantine: bool = False,
        event_id: str = "id",
    ) -> None:
        """Follow objects from now on; nothing is known of any.

        `object`, `time` and `event_id` name the columns of positions; events without ids are
        numbered from the first call on. A position is applied when the clock, the greatest time so
        far, is `lateness` past it; one that comes later than that is reported as late. An object
        of which nothing was applied for `silence` leaves all that it was in.

        An object leaves a fence only when it is `hysteresis` metres away from it, and what it has
        just entered or left does not change again within `cooldown`, in which a crossing is not
        followed by another, either. `dwell` reports a visit that has lasted so long. `kinds` are
        the transitions to compute: some of "enter", "inside", "exit", "cross", "dwell" (None: all);
        rows of late positions always come. Durations are texts such as "30 s" or "10 min", or
        `datetime.timedelta`. With `quarantine` bad rows do not fail a call, but come back once each
        with a reason in a column `error`.

        Warns if some subscriptions are not fences: these have neither crossings nor hysteresis.
        Raises `InvalidInput` for an option that cannot be.

        >>> contrada.Tracker(contrada.Matcher(), silence="10 min", kinds=["enter", "exit"])
        <Tracker objects=0 visits=0 held=0>
        """
        if not isinstance(matcher, Matcher):
            raise InvalidInput(f"a tracker takes a Matcher, not {brief(matcher)}")
        for name, value in (("object", object), ("time", time), ("event_id", event_id)):
            if not isinstance(value, str):
                raise InvalidInput(f"{name} must be the name of a column, not {brief(value)}")
        check_flags(quarantine=quarantine)
        self._matcher = matcher
        self._names = PositionNames(object, time, event_id)
        self._lateness_us = read_duration(lateness, "lateness")
        self._silence_us = _read_optional(silence, "silence")
        self._asked = SubscriptionOptions(
            read_metres(hysteresis),
            read_duration(cooldown, "cooldown"),
            _read_optional(dwell, "dwell"),
            read_kinds(kinds),
        )
        self._quarantine = quarantine
        self._tracks = RestingTracks.of(TrackState.empty())
        self._followed: FollowedSet | None = None
        self._decided: FollowedSet | None = None  # what the last batch met
        self._totals = dict.fromkeys(_TOTALS, 0)
        self._lock = ProcessLock()
        self._following: int | None = None  # the thread that does
        self._tell_others()

    def __repr__(self) -> str:
        known = self._tracks
        counts = (known.object_count, known.visit_count, known.moving.held_count)
        return "<Tracker objects={} visits={} held={}>".format(*counts)

    @property
    def clock(self) -> datetime | None:
        """The greatest time of a position so far, of all objects; None before the first."""
        clock_us = self._tracks.moving.clock_us
        return None if clock_us is None else _EPOCH + timedelta(microseconds=clock_us)

    def follow(
        self,
        events: Any,
        *,
        repair: bool = False,
        on_bad: OnBad | None = None,
        threads: int | None = None,
    ) -> pa.Table:
        """Take positions in, and return what became of their objects, as a table.

        The events are an Arrow table, a GeoDataFrame, a path, a list of what `Matcher.match` takes,
        or one such event. A call is one batch: its rows may come in any order. The table has the
        columns `object, subscription, subscriber, transition, time, event, version, cause` and,
        with `quarantine`, `error`; `version` is null, as a matcher has none. Rows come in the order
        of time, object, event and subscription. Unlike `match_many` it has no row for a position
        that was outside and stayed there.

        `repair` mends invalid geometries and leaves out what it cannot mend; `on_bad` is called
        with row, id and reason for each row that was mended or left out. `threads` is the number
        of threads that match (None: one for each core).

        Raises `InvalidInput` for the first bad row: one that `Matcher.match_many` would refuse, or
        without an object or a time; for a source that is missing, damaged or in another coordinate
        system, and for a column that does not exist. `Unavailable` if the machine cannot read it.

        >>> matcher = contrada.Matcher()
        >>> matcher.add("bridge", geometry="POLYGON((4 0, 5 0, 5 9, 4 9, 4 0))", subscriber="toll")
        >>> import pyarrow as pa
        >>> track = pa.table({
        ...     "object_id": ["bus", "bus"],
        ...     "time": ["2026-03-01T08:00:00Z", "2026-03-01T08:01:00Z"],
        ...     "geometry": ["POINT(3 1)", "POINT(6 1)"],
        ... })
        >>> rows = contrada.Tracker(matcher).follow(track)
        >>> rows.select(["object", "subscriber", "transition", "event"]).to_pylist()
        [{'object': 'bus', 'subscriber': 'toll', 'transition': 'cross', 'event': 1}]
        """
        check_flags(repair=repair)
        return self._with_errors(
            *self._follow(
                events,
                repair,
                self._quarantine or repair,
                hear_with(on_bad),
                count_threads(threads),
            )
        )

    def _follow(
        self,
        events: Any,
        repair: bool,
        is_lenient: bool,
        hear: HearBad | None,
        threads: int,
        on_read: OnRead | None = None,
    ) -> tuple[pa.Table, Intake]:
        """Take positions in, decide, and keep the state; return rows, and what was bad."""
        if self._following == threading.get_ident():
            raise InvalidInput("follow was called by its own on_bad: wait until it has returned")
        with self._locked(), blaming_memory():
            held = self._matcher._held.now()
            followed = self._take_up(held.subscriptions)
            if isinstance(events, list | tuple | Mapping):
                listed = [events] if isinstance(events, Mapping) else events
                intake, stated = self._take_in_list(listed, followed, repair), None
            else:
                intake, stated = self._take_in_rows(events, followed, repair, threads, on_read)
            system = self._check_system(stated or held.crs)
            _report(intake, hear, is_lenient)
            is_geographic = system is None or is_longitude_latitude(system)
            positions = intake.positions()
            lent = self._tracks.lend(positions, is_same_version=followed is self._decided)
            step = follow_batch(
                intake,
                positions,
                followed,
                lent.state,
                StreamOptions(self._lateness_us, self._silence_us, is_geographic),
                object_column=self._names.object,
                threads=threads,
            )
            rows = step.rows.table()
            self._keep(lent, step, intake, system)
            self._decided = followed
        return rows, intake

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Let one call follow after the other."""
        with self._lock:
            self._following = threading.get_ident()
            try:
                yield
            finally:
                self._following = None

    def _take_up(self, subscriptions: SubscriptionSet) -> FollowedSet:
        """Return what is made of a version, once for all calls that see it."""
        if self._followed is None or self._followed.subscriptions is not subscriptions:
            self._followed = FollowedSet(subscriptions, self._asked)
        return self._followed

    def _take_in_list(self, events: Any, followed: FollowedSet, repair: bool) -> Intake:
        return take_in_list(
            events,
            followed.subscriptions,
            self._names,
            repair=repair,
            numbered=self._tracks.moving.numbered,
            are_kept=self._lateness_us > 0,
        )

    def _take_in_rows(
        self,
        events: Any,
        followed: FollowedSet,
        repair: bool,
        threads: int,
        on_read: OnRead | None,
    ) -> tuple[Intake, str | None]:
        rows = read_rows(events)
        self._matcher._held.check_crs(rows.crs, rows.name)
        for mismatch in describe_mismatches(followed.subscriptions, rows, self._matcher.crs):
            warnings.warn(mismatch, stacklevel=4)
        if self._asked.hysteresis_m and (system := rows.crs or self._matcher.crs) is not None:
            for projected in describe_projected(rows.name, system, "hysteresis"):
                warnings.warn(projected, stacklevel=4)
        intake = take_in_rows(
            rows,
            followed.subscriptions,
            self._names,
            repair=repair,
            numbered=self._tracks.moving.numbered,
            are_kept=self._lateness_us > 0,
            threads=threads,
            on_read=on_read,
        )
        self._matcher._held.adopt_crs(rows.crs, rows.name)
        return intake, rows.crs

    def _check_system(self, crs: str | None) -> str | None:
        """Return the coordinate system of all positions; another than before is refused."""
        known = self._tracks.moving.notes.get(_CRS)
        if crs is None or known is None:
            return crs or known
        if not is_same_crs(crs, known):
            who = find_stating(self._matcher)
            raise InvalidInput(
                f"{who} is in {crs:.60}, the positions so far were in {known:.60}; "
                "reproject one of them"
            )
        return known

    def _with_errors(self, rows: pa.Table, intake: Intake) -> pa.Table:
        """Add the bad rows and why they are bad, if that is asked for."""
        if not self._quarantine:
            return rows
        places = sorted(intake.bad)
        errors = [
            {"code": fault.code, "message": fault.message, "place": fault.place}
            for fault in (intake.bad[row] for row in places)
        ]
        known = rows["event"]
        kind = intake.id_type if known.null_count == len(known) else known.type
        rows = rows.set_column(rows.schema.get_field_index("event"), "event", known.cast(kind))
        events = pa.array([intake.ids[row] for row in places], intake.id_type).cast(kind)
        bad = pa.table(
            {
                name: events if name == "event" else pa.nulls(len(places), field.type)
                for name, field in zip(rows.schema.names, rows.schema, strict=True)
            }
        )
        whole = pa.concat_tables([rows, bad.cast(rows.schema)])
        column = pa.concat_arrays([pa.nulls(len(rows), ERROR_TYPE), pa.array(errors, ERROR_TYPE)])
        return whole.append_column("error", column)

    def _keep(self, lent: LentTracks, step: Step, intake: Intake, system: str | None) -> None:
        """Make what was decided the state, and count."""
        notes = dict(step.state.notes) | ({} if system is None else {_CRS: system})
        numbered = self._tracks.moving.numbered + (intake.count if intake.is_numbered else 0)
        state = replace(step.state, notes=notes, numbered=numbered)
        self._tracks = self._tracks.take_back(lent, state, step.next_timer_us)
        counts = step.counts
        found = {
            "positions": intake.count,
            "applied": counts.applied,
            "late": counts.late,
            "repeated": counts.repeated,
            "without_geometry": counts.without_geometry,
            "left_out": len(intake.bad),
            "mended": len(intake.mended),
        }
        for name, count in found.items():
            self._totals[name] += count

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write what is known of objects to a file, so that `Tracker.open` can go on with it.

        Unlike `Matcher.save` it keeps the state alone: neither subscriptions nor options. The file
        appears whole or not at all; what was there before stays until then.

        Raises `InvalidInput` for a path at which no file can be, and `Unavailable` if the file
        cannot be written.

        >>> tracker = contrada.Tracker(contrada.Matcher())
        >>> tracker.save("vans.tracks")
        """
        save_tracks(path, self._tracks.whole())

    @classmethod
    def open(cls, path: str | os.PathLike[str], matcher: Matcher, **options: Any) -> Self:
        """Go on with the objects of a tracker that `save` wrote, over a matcher.

        The options are those of `Tracker`; they are not in the file, and may be other ones than
        before. Visits to subscriptions that the matcher lacks end at the next call of `follow`.

        Raises `InvalidInput` for a file that is missing, damaged, truncated, of a newer format or
        not the state of a tracker, and for an option that cannot be; `Unavailable` for a file that
        may not be read.

        >>> matcher = contrada.Matcher()
        >>> contrada.Tracker(matcher).save("vans.tracks")
        >>> contrada.Tracker.open("vans.tracks", matcher, silence="1 h")
        <Tracker objects=0 visits=0 held=0>
        """
        tracker = cls(matcher, **options)
        tracker._tracks = RestingTracks.of(open_tracks(path))
        return tracker

    def stats(self) -> Stats:
        """Return counts: of objects, visits and held positions now, and of rows since the start.

        They are a dictionary, which a notebook shows as a table. `bytes` are those of the state.
        Rows are counted since this tracker was made or opened: `positions` came in, of which some
        were `applied`, `late`, `repeated`, `without_geometry` or `left_out` as bad; the others are
        `held`, like some that came before it was opened. It raises nothing.

        >>> contrada.Tracker(contrada.Matcher()).stats()["objects"]
        0
        """
        known = self._tracks
        return Stats(
            {
                "objects": known.object_count,
                "visits": known.visit_count,
                "held": known.moving.held_count,
                "bytes": known.nbytes,
                **self._totals,
            }
        )

    def _tell_others(self) -> None:
        """Warn of subscriptions that have neither crossings nor hysteresis."""
        if not self._asked.has_ways and not self._asked.hysteresis_m:
            return
        followed = self._take_up(freeze(self._matcher))
        others = followed.count_others()
        if others:
            every = f"{others:,} of {len(self._matcher):,} subscriptions"
            warnings.warn(
                f"{every} are not fences: they have neither crossings nor hysteresis", stacklevel=3
            )


def _report(intake: Intake, hear: HearBad | None, is_lenient: bool) -> None:
    """Refuse the first bad row, or let somebody hear of all that are bad or mended."""
    if intake.bad and not is_lenient:
        row = min(intake.bad)
        fault = intake.bad[row]
        raise fault.as_error(find_remedies(fault)).within(intake.place(row))
    if hear is not None:
        for row in sorted({*intake.bad, *intake.mended}):
            is_mended = row not in intake.bad
            reason = intake.mended[row].message if is_mended else str(intake.bad[row])
            hear(row, intake.ids[row], reason, is_mended)


def _read_optional(value: Any, name: str) -> int | None:
    return None if value is None else read_duration(value, name, may_be_zero=False)
