"""The set of a broker after a start: from the last snapshot, or from the log without one.

A snapshot is a cache: the matcher's own file, named by the position up to which it has all changes.
What changed since is in the log.
"""

import json
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

from contrada.broker.fence_book import Fence, RowFences
from contrada.broker.log_writing import LogWriter
from contrada.broker.packing_process import clear_drafts
from contrada.broker.retention import BLOCK_POSITIONS
from contrada.broker.standing_set import StandingRow, StandingSet
from contrada.broker.track_keeping import TrackKeeping
from contrada.broker.transition_bodies import read_transitions
from contrada.errors import ContradaError, Unavailable
from contrada.machine import try_lock
from contrada.matcher.facade import Matcher
from contrada.matcher.inside import freeze_for_saving
from contrada.matcher.packed_rows import RowIds

_log = logging.getLogger(__name__)
LOCK_FILE, ROWS_FOLDER = "lock", "rows"
_PREFIX, _SUFFIX = "set-", ".contrada"
_CHANGES_MIN = 10_000


def lock_folder(folder: Path) -> IO[str]:
    """Make the folder of a broker if need be, and let nobody else have it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / ROWS_FOLDER).mkdir(exist_ok=True)
        return try_lock(folder / LOCK_FILE)
    except BlockingIOError:
        raise Unavailable(f"{folder}: another broker is running on this folder") from None
    except OSError as fault:
        raise Unavailable(f"{folder}: cannot be used: {fault.strerror or fault}") from fault


def remove_strays(writer: LogWriter, folder: Path) -> None:
    """Remove the files of rows that no change names: their broker ended before it was written."""
    clear_drafts(folder)
    named = {file for (file,) in writer.connection.execute("SELECT file FROM row_ranges")}
    for path in (folder / ROWS_FOLDER).iterdir():
        if path.name not in named:
            path.unlink()


def restore_standing(writer: LogWriter, folder: Path) -> StandingSet:
    """Return the set that holds at the head of the log."""
    for path, position in _list_snapshots(writer, folder):
        try:
            standing = StandingSet(Matcher.open(path))
        except ContradaError as fault:
            _log.warning("a snapshot of the set is not used: %s", fault)
            continue
        _catch_up(writer, standing, folder, position)
        return standing
    standing = StandingSet()
    _catch_up(writer, standing, folder, 0)
    return standing


def _list_snapshots(writer: LogWriter, folder: Path) -> list[tuple[Path, int]]:
    """List the snapshots of this log's history, the newest first."""
    found = []
    for path in folder.glob(f"{_PREFIX}*{_SUFFIX}"):
        text = path.name.removeprefix(_PREFIX).removesuffix(_SUFFIX)
        try:
            position = writer.epochs.read(text, "", writer.head)
        except ContradaError:
            path.unlink(missing_ok=True)
            continue
        if position > writer.floor - BLOCK_POSITIONS:  # what ended since is still known
            found.append((path, position))
    return sorted(found, key=lambda pair: -pair[1])


def _catch_up(writer: LogWriter, standing: StandingSet, folder: Path, position: int) -> None:
    """Take in what changed after a position, but for what objects are followed through."""
    execute = writer.connection.execute
    ended = execute("SELECT number FROM subscriptions WHERE ended > ?", (position,)).fetchall()
    standing.remove([number for (number,) in ended])
    for first, count in execute(
        "SELECT first, count FROM row_ranges WHERE ended > ? AND created <= ?", (position, position)
    ).fetchall():
        standing.remove_rows(range(first, first + count))
    standing.load(
        row for row in _list_rows(writer, position) if row.has_predicate and not row.has_transitions
    )
    for rows in _list_ranges(writer):
        if "transitions" in rows.body:
            continue
        standing.subscribers.put(rows.first, rows.length, rows.subscriber)
        if rows.created > position:
            ready = standing.make_ready(folder / ROWS_FOLDER / rows.file, rows.first, range(0))
            standing.put_rows(ready, rows.subscriber, range(0))


def count_rows_bytes(folder: Path) -> int:
    """Count the bytes of the files of rows of collections, replaced ones that are kept included."""
    count = 0
    with suppress(FileNotFoundError), os.scandir(folder / ROWS_FOLDER) as files:
        for file in files:
            with suppress(FileNotFoundError):
                count += file.stat().st_size
    return count


def restore_fences(writer: LogWriter, tracks: TrackKeeping, folder: Path) -> None:
    """Let all hold that objects are followed through."""
    living = [row for row in _list_rows(writer, 0) if row.has_transitions and row.has_predicate]
    tracks.standing.load(living)
    for row in living:
        terms = read_transitions(row.body["transitions"], "transitions")
        if terms is not None:
            tracks.book.put(Fence(row.number, row.id, terms))
    for rows in _list_ranges(writer):
        terms = read_transitions(rows.body.get("transitions"), "transitions")
        if terms is None:
            continue
        path = folder / ROWS_FOLDER / rows.file
        ready = tracks.standing.make_ready(path, rows.first, range(0))
        tracks.standing.put_rows(ready, rows.subscriber, range(0))
        tracks.book.put_rows(RowFences(rows.id, rows.first, RowIds.open(path).array, terms))


class _KeptRows(NamedTuple):
    """The rows that a collection has."""

    first: int
    length: int
    file: str
    subscriber: int
    created: int
    id: str
    body: Mapping[str, Any]


def _list_ranges(writer: LogWriter) -> list[_KeptRows]:
    rows = writer.connection.execute(
        "SELECT r.first, r.count, r.file, v.subscriber, r.created, v.id, v.body FROM row_ranges r "
        "JOIN subscriptions v ON v.number = r.subscription WHERE r.ended IS NULL AND r.count > 0"
    )
    return [_KeptRows._make([*row[:-1], json.loads(row[-1])]) for row in rows]


def _list_rows(writer: LogWriter, position: int) -> Iterator[StandingRow]:
    rows = writer.connection.execute(
        "SELECT number, id, subscriber, body FROM subscriptions "
        "WHERE ended IS NULL AND created > ? ORDER BY number",
        (position,),
    )
    for number, id_, subscriber, body in rows:
        yield StandingRow(number, id_, subscriber, json.loads(body))


def save_standing(writer: LogWriter, standing: StandingSet, folder: Path, changes_min: int) -> None:
    """Save the set as of the head of the log, unless little has changed since the last time."""
    head = writer.head
    kept = _list_snapshots(writer, folder)
    since = kept[0][1] if kept else 0
    (changes,) = writer.connection.execute(
        "SELECT (SELECT count(*) FROM subscriptions WHERE created > ?1) + "
        "(SELECT count(*) FROM subscriptions WHERE ended > ?1) + "
        "(SELECT count(*) FROM row_ranges WHERE created > ?1)",
        (since,),
    ).fetchone()
    if changes >= changes_min:
        _save(writer.epochs.write(head), freeze_for_saving(standing.matcher), folder)


def _save(position: str, save: Callable[[Path], object], folder: Path) -> None:
    path = folder / f"{_PREFIX}{position}{_SUFFIX}"
    try:
        save(path)
    except ContradaError as fault:
        _log.warning("the set was not saved, so the next start takes longer: %s", fault)
        return
    for other in folder.glob(f"{_PREFIX}*{_SUFFIX}"):
        if other != path:
            other.unlink(missing_ok=True)


class Saver:
    """Saves the set now and then while the broker runs, in a thread of its own."""

    def __init__(
        self, writer: LogWriter, standing: StandingSet, folder: Path, interval_s: float
    ) -> None:
        """Look every `interval_s` whether there is something to save."""
        self._writer, self._standing, self._folder = writer, standing, folder
        self._interval_s = interval_s
        self._next = time.monotonic() + interval_s
        self._changes = writer.connection.total_changes
        self._thread: threading.Thread | None = None

    def look(self) -> None:
        """Save the set as it is now, if it is time and much has changed."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + self._interval_s
        if self._thread is not None and self._thread.is_alive():
            return
        (last,) = self._writer.connection.execute(
            "SELECT max(created) FROM subscriptions"
        ).fetchone()
        kept = _list_snapshots(self._writer, self._folder)
        since = kept[0][1] if kept else 0
        if last is None or last <= since:
            return
        (changes,) = self._writer.connection.execute(
            "SELECT count(*) FROM subscriptions WHERE created > ?", (since,)
        ).fetchone()
        if changes < _CHANGES_MIN:
            return
        save = freeze_for_saving(self._standing.matcher)
        position = self._writer.epochs.write(self._writer.head)
        self._thread = threading.Thread(
            target=_save, args=(position, save, self._folder), name="contrada-save"
        )
        self._thread.start()

    def end(self) -> None:
        """Wait for what is being saved."""
        if self._thread is not None:
            self._thread.join()
