"""Transitions in a broker: what is followed, in the commit of the event or change that it is of.

Subscriptions with transitions have a matcher of their own. What a step finds is written with what
it came of: its state is stored in the same transaction, and counts once that is on disk.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from contrada.arrays import Positions
from contrada.broker.fence_book import FenceBook, RowFences
from contrada.broker.log_writing import DeliveryRow, EntryKind, LogWriter
from contrada.broker.match_lists import MatchEntry, pack_entries
from contrada.broker.retention import block_of
from contrada.broker.standing_set import StandingSet
from contrada.broker.track_entries import TrackEntry, TrackMatch, TrackStep
from contrada.broker.track_positions import find_ahead, read_positions
from contrada.broker.track_store import (
    create_track_tables,
    load_tracks,
    store_changes,
    store_settings,
)
from contrada.broker.tracking import FenceChange, FenceVersion, ObjectTracks, TrackTransaction
from contrada.broker.transition_bodies import TrackingSettings
from contrada.limits import HELD_PER_OBJECT_MAX, HELD_POSITIONS_MAX, OBJECTS_BYTES_MAX

_TOO_MANY = (
    "there is no room for more objects, or for more positions that wait until `lateness` is over "
    "(OBJECTS_BYTES_MAX, HELD_POSITIONS_MAX)"
)
_TOO_MANY_OF_ONE = (
    f"{HELD_PER_OBJECT_MAX:,} positions of the object wait until `lateness` is over, and no more "
    "can (HELD_PER_OBJECT_MAX)"
)

Tell = Callable[[Positions, int], object]  # subscribers that have deliveries up to a position


@dataclass(frozen=True, slots=True)
class EndedFences:
    """What a change ends of what is followed: fences with their successors, and rows."""

    fences: Sequence[FenceChange] = ()
    rows: Sequence[tuple[RowFences, RowFences | None]] = ()


@dataclass(slots=True)
class _Written:
    """What was written of a transaction that is not on disk yet."""

    subscribers: set[int] = field(default_factory=set)
    count: int = 0


class TrackKeeping:
    """What is known of objects that move, and the fences that they are followed through."""

    def __init__(self, writer: LogWriter, now_us: int, tell: Tell) -> None:
        """Read what is known; `tell` hears of deliveries that no event brought."""
        self._writer, self._tell = writer, tell
        create_track_tables(writer.connection)
        self.tracks: ObjectTracks = load_tracks(writer.connection, now_us)
        self.standing = StandingSet()
        self.book = FenceBook()
        self._work: TrackTransaction | None = None
        self._written = _Written()
        self.deliveries = 0
        writer.partners.append(self)

    @property
    def settings(self) -> TrackingSettings:
        """What tells positions from other events, and how late they may come."""
        return self.tracks.settings

    @property
    def is_needed(self) -> bool:
        """Whether there is anything to follow, or to follow to its end."""
        return bool(len(self.book) or len(self.tracks.table))

    # In the thread that commits, in a transaction

    def find_refused(self, rows: pa.RecordBatch, now_us: int) -> dict[int, str]:
        """Find positions that are refused, and why: from the future, or too many to wait."""
        if not self.is_needed:
            return {}
        refused = find_ahead(rows, self.settings, now_us)
        table = self.tracks.table
        is_full = len(table.held) >= HELD_POSITIONS_MAX or table.nbytes >= OBJECTS_BYTES_MAX
        if not is_full and not table.held:
            return refused
        timed = read_positions(rows, self.settings, 0)
        if is_full:
            return dict.fromkeys(timed.rows.tolist(), _TOO_MANY) | refused
        names = timed.objects.to_pylist()
        full = {n for n in set(names) if len(table.find_held(n)) >= HELD_PER_OBJECT_MAX}
        waiting = {
            row: _TOO_MANY_OF_ONE
            for row, name in zip(timed.rows.tolist(), names, strict=True)
            if name in full
        }
        return waiting | refused

    def step(self, rows: pa.RecordBatch, texts: Sequence[bytes], now_us: int) -> TrackStep:
        """Follow the positions among events that come in together."""
        if not self.is_needed:
            return TrackStep.nothing()
        return self._begun().step(rows, texts, self._version(), now_us)

    def take_up(self, ended: EndedFences, now_us: int) -> None:
        """End what a change ends, and write the exits."""
        if not ended.fences and not ended.rows:
            return
        work = self._begun()
        if ended.fences:
            self.write(work.take_up(ended.fences, self.book).entries, now_us)
        for before, after in ended.rows:
            self.write(work.take_up_rows(before, after, self.book).entries, now_us)

    def change_settings(self, settings: TrackingSettings) -> None:
        """Follow by other settings from now on."""
        self._begun().change_settings(settings)
        store_settings(self._writer.connection, settings)

    def advance(self, now_us: int) -> bool:
        """Write what is due by the clock; return whether anything was."""
        work = self._begun()
        self.write(work.advance(now_us, self._version()).entries, now_us)
        return bool(self._written.count or work.has_changed)

    def write(self, entries: Sequence[TrackEntry], now_us: int) -> None:
        """Write entries of their own, with their deliveries."""
        for entry in entries:
            position = self._writer.add_entry(EntryKind.DERIVED, now_us, entry.feature)
            rows = self.pack(position, entry.matches)
            self._writer.add_deliveries(rows)
            self._written.subscribers.update(row[1] for row in rows)
            self._written.count += len(rows)

    def pack(self, position: int, matches: Sequence[TrackMatch]) -> list[DeliveryRow]:
        """Make a delivery for each subscriber of some transitions."""
        grouped = self.group(matches)
        block = block_of(position)
        return [
            (block, subscriber, position, pack_entries(own))
            for subscriber, own in sorted(grouped.items())
        ]

    def group(self, matches: Sequence[TrackMatch]) -> dict[int, list[MatchEntry]]:
        """Group transitions by subscriber."""
        grouped: dict[int, list[MatchEntry]] = {}
        for match in matches:
            subscriber = self.standing.subscribers.get(match.number)
            grouped.setdefault(subscriber, []).append(MatchEntry(match.number, match.facts()))
        return grouped

    def _begun(self) -> TrackTransaction:
        if self._work is None:
            self._work = self.tracks.begin()
        return self._work

    def _version(self) -> FenceVersion:
        return FenceVersion(self.standing.freeze(), self.book)

    # As a partner of the writer

    def store(self) -> None:
        """Write the state before a commit."""
        if self._work is not None:
            store_changes(self._writer.connection, self._work.changes())

    def keep(self) -> None:
        """Let what was found count, since it is on disk."""
        if self._work is not None:
            self._work.commit()
            self._work = None
        written, self._written = self._written, _Written()
        if written.count:
            self.deliveries += written.count
            self._tell(np.array(sorted(written.subscribers), np.int64), self._writer.head)

    def drop(self) -> None:
        """Forget what was found, since it is not on disk."""
        self._work, self._written = None, _Written()

    # After a commit

    def wait_s(self, now_us: int) -> float | None:
        """Return in how many seconds something may be due; None where nothing is."""
        if not self.is_needed:
            return None
        wait_us = self.tracks.wait_us(now_us)
        return None if wait_us is None else wait_us / 1e6
