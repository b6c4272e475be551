"""What the thread that commits does besides: expiry, retention, checkpoints, room on the disk.

Each chore takes little at a time, since whoever publishes waits for it meanwhile.
"""

import logging
import os
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

from contrada.broker.broker_options import BrokerOptions
from contrada.broker.changing import Changing
from contrada.broker.commit_tasks import ChangeOutcome
from contrada.broker.log_writing import LogWriter, is_sync_failure
from contrada.broker.restoring import ROWS_FOLDER, Saver
from contrada.broker.retention import count_droppable
from contrada.broker.standing_set import StandingSet
from contrada.broker.steady_clock import SteadyClock
from contrada.broker.track_keeping import TrackKeeping

_log = logging.getLogger(__name__)
_US = 1_000_000
_PAUSE_MAX_S, _SOON_S = 1.0, 0.02
_SPACE_AGE_S = 0.2
_EXPIRING_AT_ONCE = 200  # subscriptions: whoever publishes waits for them


class Chores:
    """The chores of one broker; all but `has_space` run in the thread that commits."""

    def __init__(
        self,
        writer: LogWriter,
        standing: StandingSet,
        clock: SteadyClock,
        tracks: TrackKeeping,
        changing: Changing,
        options: BrokerOptions,
        folder: Path,
    ) -> None:
        """Take what the chores are about."""
        self._writer, self._clock, self._options = writer, clock, options
        self._tracks, self._changing = tracks, changing
        self._folder = folder
        self._space: tuple[float, bool] = (0.0, True)
        self._next_retention = 0.0
        self._saver = Saver(writer, standing, folder, options.snapshot_interval_s)
        self._is_idle = False
        self._idle_head = -1

    def end(self) -> None:
        """Wait for what runs in threads of its own."""
        self._saver.end()
        self._store("the clock", self._write_clock)

    def _write_clock(self) -> None:
        self._writer.write_meta("lived_us", self._clock.lived_us())

    def _store(self, what: str, write: Callable[[], object]) -> bool:
        """Write in a transaction; what a full disk does not take is left for another time."""
        try:
            self._writer.begin()
            write()
            self._writer.commit(self._clock.lived_us())
        except sqlite3.OperationalError as fault:
            if is_sync_failure(fault):
                raise
            _log.error("%s: nothing was stored: %s", what, fault)
            self._writer.rollback()
            return False
        return True

    def has_space(self) -> bool:
        """Whether the disk has room for more than cursors and deletions."""
        asked, found = self._space
        now = time.monotonic()
        if now - asked > _SPACE_AGE_S:
            disk = os.statvfs(self._folder)
            found = disk.f_bavail * disk.f_frsize >= self._options.space_bytes_min
            self._space = now, found
        return found

    def run(self) -> float:
        """Do what is due; return in how many seconds to come again."""
        now_us = self._clock.now_us()
        is_stuck = not self._expire(now_us)
        timer_s = self._run_timers(now_us)
        is_behind = False
        if time.monotonic() >= self._next_retention:
            is_behind = self._drop_oldest()
            if not is_behind:
                self._next_retention = time.monotonic() + self._options.retention_interval_s
        self._checkpoint()
        self._saver.look()
        if is_behind:
            return _SOON_S
        if is_stuck:
            return _PAUSE_MAX_S
        return min(max(min(self._find_expiry_s(now_us), timer_s), _SOON_S), _PAUSE_MAX_S)

    def expire_due(self) -> None:
        """End all that has expired, unless that cannot be stored."""
        while self._find_expiry_s(now_us := self._clock.now_us()) <= 0 and self._expire(now_us):
            pass

    def _run_timers(self, now_us: int) -> float:
        """Write what is due of objects by the clock; return in how many seconds to come again."""
        wait_s = self._tracks.wait_s(now_us)
        if wait_s is None or wait_s > 0:
            return _PAUSE_MAX_S if wait_s is None else wait_s
        is_stored = self._store("timers", lambda: self._tracks.advance(now_us))
        return 0.0 if is_stored else _PAUSE_MAX_S

    def _expire(self, now_us: int) -> bool:
        """End some of what has expired; return whether that could be stored."""
        due = self._writer.connection.execute(
            "SELECT id, number FROM subscriptions WHERE ended IS NULL AND expires_us <= ? "
            "ORDER BY expires_us LIMIT ?",
            (now_us, _EXPIRING_AT_ONCE),
        ).fetchall()
        outcomes: list[ChangeOutcome] = []

        def write() -> None:
            for id_, number in due:
                outcomes.append(
                    self._changing.delete_subscription(id_, None, now_us, number=number)
                )

        if due and not self._store("what has expired", write):
            return False
        for outcome in outcomes:
            if outcome.then is not None:
                outcome.then()
        return True

    def _find_expiry_s(self, now_us: int) -> float:
        """Find in how many seconds the next subscription expires."""
        (next_us,) = self._writer.connection.execute(
            "SELECT min(expires_us) FROM subscriptions "
            "WHERE ended IS NULL AND expires_us IS NOT NULL"
        ).fetchone()
        return _PAUSE_MAX_S if next_us is None else (next_us - now_us) / _US

    def _drop_oldest(self) -> bool:
        """Drop the oldest block if it is due; return whether more are."""
        blocks = self._writer.list_blocks()
        age_us = self._options.retention_age_s * _US
        count = count_droppable(
            blocks, self._clock.lived_us(), age_us, self._options.retention_bytes
        )
        files: list[str] = []
        is_whole = True

        def write() -> None:
            nonlocal is_whole
            self._write_clock()
            if count:
                is_whole = self._writer.drop_some(blocks[0])
            if count and is_whole:
                files.extend(self._writer.take_ended_ranges())

        if not self._store("retention", write):
            return False
        for file in files:
            (self._folder / ROWS_FOLDER / file).unlink(missing_ok=True)
        return count > 1 or not is_whole

    def _checkpoint(self) -> None:
        """Move the write-ahead log to the file where it is long, or nothing else is to be done."""
        is_idle = self._idle_head == self._writer.head
        self._idle_head = self._writer.head
        if self._writer.is_wal_long() or (is_idle and not self._is_idle):
            try:
                self._writer.checkpoint(is_idle=is_idle)
            except sqlite3.OperationalError as fault:
                if is_sync_failure(fault):
                    raise
                _log.warning("the write-ahead log stays as it is: %s", fault)
        self._is_idle = is_idle
