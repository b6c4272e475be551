"""The connection that writes: entries, deliveries and cursors, a commit at a time.

Knows tables, not what matches. Whoever writes calls `begin`, then `commit` or `rollback`; positions
that were given out in between are given out again after a rollback.
"""

import json
import sqlite3
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from enum import IntEnum
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Any, Protocol

from contrada.broker.log_positions import Epochs, make_epoch
from contrada.broker.log_schema import BUSY_MS, LOG_FILE, open_writing
from contrada.broker.match_lists import Packed
from contrada.broker.retention import (
    BLOCK_BITS,
    BLOCK_POSITIONS,
    Block,
    block_of,
    last_before,
)

_ROW_BYTES = 32  # of an entry or a delivery, besides what it holds
_WAL_PAGES_MAX = 4_096
_DROPPED_AT_ONCE = 50_000  # deliveries: more would keep publishers waiting


class EntryKind(IntEnum):
    """What an entry of the log is."""

    EVENT = 0
    CHANGE = 1
    DERIVED = 2  # by time or by a change, of positions that came before


DeliveryRow = tuple[int, int, int, Packed]  # block, subscriber, position, matches


class CommitPartner(Protocol):
    """Whoever has a state of its own that is stored with what it came of."""

    def store(self) -> None:
        """Write the state before a commit."""

    def keep(self) -> None:
        """Let what was found count, since it is on disk."""

    def drop(self) -> None:
        """Forget what was found, since it is not on disk."""


class LogWriter:
    """All that is ever written to a log goes through here, in one thread."""

    def __init__(self, folder: Path, *, is_durable: bool = True) -> None:
        """Open the log of a folder, or make one."""
        self.path = folder / LOG_FILE
        self.partners: list[CommitPartner] = []
        self.connection = open_writing(self.path, is_durable=is_durable)
        try:
            self._learn()
        except BaseException:
            self.connection.close()
            raise

    def _learn(self) -> None:
        """Learn from the log where it ends and what it keeps."""
        self._begin_epoch()
        self.epochs = self._read_epochs()
        self.floor = int(self.read_meta("floor", 0))  # the last position that is not kept
        (last,) = self._one("SELECT max(position) FROM entries") or (None,)
        self.head = max(self.floor, last or 0)
        self._committed = self.head
        rows = self.connection.execute("SELECT block, bytes, lived_us FROM blocks ORDER BY block")
        self._blocks = {number: Block(number, *rest) for number, *rest in rows}
        self._changed_blocks: dict[int, Block | None] = {}
        self._count_deliveries()

    def _count_deliveries(self) -> None:
        """Count the deliveries of the block that is written to."""
        block = block_of(self.head)
        (count,) = self._one("SELECT count(*) FROM deliveries WHERE block = ?", (block,))
        self._deliveries: tuple[int, int] = (block, count)

    def close(self) -> None:
        """Write the log file whole if there is room for it, and close it."""
        with suppress(sqlite3.OperationalError):  # the write-ahead log has it all
            self._truncate()
        self.connection.close()

    def _one(self, sql: str, values: Sequence[Any] = ()) -> Any:
        return self.connection.execute(sql, values).fetchone()

    # Facts about the log as a whole

    def read_meta(self, name: str, default: Any = None) -> Any:
        """Return a fact by its name."""
        found = self._one("SELECT value FROM meta WHERE name = ?", (name,))
        return default if found is None else found[0]

    def write_meta(self, name: str, value: Any) -> None:
        """Keep a fact by its name; None forgets it."""
        if value is None:
            self.connection.execute("DELETE FROM meta WHERE name = ?", (name,))
        else:
            self.connection.execute("REPLACE INTO meta VALUES (?, ?)", (name, value))

    def _begin_epoch(self) -> None:
        """Begin an epoch in a new log, and in one that is started from a backup."""
        is_backup = bool(self.read_meta("is_backup", 0))
        (last,) = self._one("SELECT max(position) FROM entries")
        first = max(int(self.read_meta("floor", 0)), last or 0) + 1
        if self._one("SELECT 1 FROM epochs") is not None and not is_backup:
            return
        self.connection.execute("BEGIN IMMEDIATE")
        self.connection.execute("REPLACE INTO epochs VALUES (?, ?)", (first, make_epoch()))
        self.write_meta("is_backup", None)
        self.connection.execute("COMMIT")

    def _read_epochs(self) -> Epochs:
        rows = self.connection.execute("SELECT first, name FROM epochs ORDER BY first").fetchall()
        return Epochs([name for _, name in rows], [first for first, _ in rows])

    # Commits

    def begin(self) -> None:
        """Begin what is to be on disk together, or not at all."""
        self.connection.execute("BEGIN IMMEDIATE")

    def commit(self, lived_us: int) -> None:
        """Put all since `begin` on disk."""
        for partner in self.partners:
            partner.store()
        for number, block in self._changed_blocks.items():
            if block is None:
                self.connection.execute("DELETE FROM blocks WHERE block = ?", (number,))
            else:
                self.connection.execute(
                    "REPLACE INTO blocks VALUES (?, ?, ?)", (number, block.nbytes, lived_us)
                )
        self.connection.execute("COMMIT")
        for number, block in self._changed_blocks.items():
            if block is None:
                self._blocks.pop(number, None)
            else:
                self._blocks[number] = Block(number, block.nbytes, lived_us)
        self._changed_blocks.clear()
        self._committed = self.head
        for partner in self.partners:
            partner.keep()

    def rollback(self) -> None:
        """Undo all since `begin`."""
        if self.connection.in_transaction:
            self.connection.execute("ROLLBACK")
        self.head = self._committed
        self.floor = int(self.read_meta("floor", 0))
        self._changed_blocks.clear()
        self._count_deliveries()
        for partner in self.partners:
            partner.drop()

    def checkpoint(self, *, is_idle: bool) -> None:
        """Move what was committed from the write-ahead log to the file."""
        if is_idle:
            self._truncate()
        else:
            self.connection.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def _truncate(self) -> None:
        """Move all, and shorten the write-ahead log, unless somebody reads for long."""
        self.connection.execute("PRAGMA busy_timeout = 0")  # who publishes waits for no backup
        try:
            self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        finally:
            self.connection.execute(f"PRAGMA busy_timeout = {BUSY_MS}")

    def is_wal_long(self) -> bool:
        """Whether the write-ahead log has so much that it should be moved to the file."""
        wal = self.path.with_name(f"{self.path.name}-wal")
        return wal.exists() and wal.stat().st_size > _WAL_PAGES_MAX * 4_096

    # Entries and deliveries

    def _last(self) -> int:
        """Return after which position the next entry goes."""
        block, deliveries = self._deliveries
        return last_before(self.head, deliveries) if block == block_of(self.head) else self.head

    def add_entry(self, kind: EntryKind, time_us: int, body: bytes | None) -> int:
        """Append an entry, and return its position."""
        self.head = self._last() + 1
        self.connection.execute(
            "INSERT INTO entries VALUES (?, ?, ?, ?, NULL, NULL)",
            (self.head, int(kind), time_us, body),
        )
        self.weigh(self.head, _ROW_BYTES + len(body or b""))
        return self.head

    def add_change(self, time_us: int, facts: Mapping[str, Any]) -> int:
        """Append an entry that tells of a change, and return its position."""
        text = json.dumps(facts, ensure_ascii=False, separators=(",", ":"))
        return self.add_entry(EntryKind.CHANGE, time_us, text.encode())

    def add_events(
        self,
        time_us: int,
        texts: Sequence[bytes],
        keys: Sequence[bytes | None],
        matches: Sequence[int],
    ) -> int:
        """Append events, and return the position of the first."""
        first = self._last() + 1
        positions = range(first, first + len(texts))
        kind = int(EntryKind.EVENT)
        self.connection.executemany(
            "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?)",
            (
                (position, kind, time_us, text, key, None if key is None else count)
                for position, text, key, count in zip(positions, texts, keys, matches, strict=True)
            ),
        )
        self.head = first + len(texts) - 1
        start = 0
        while start < len(texts):
            end = min(len(texts), start + BLOCK_POSITIONS - (first + start) % BLOCK_POSITIONS)
            nbytes = sum(map(len, texts[start:end])) + _ROW_BYTES * (end - start)
            self.weigh(first + start, nbytes)
            start = end
        return first

    def list_named(self, events_max: int, since_us: int) -> Iterable[tuple[bytes, int, int, int]]:
        """List what names the newest events: key, position, number of matches and time."""
        before = self._one(
            "SELECT position FROM entries ORDER BY position DESC LIMIT 1 OFFSET ?", (events_max,)
        )
        return self.connection.execute(
            "SELECT key, position, matches, time_us FROM entries "
            "WHERE key IS NOT NULL AND position > ? AND time_us >= ? ORDER BY position",
            (0 if before is None else before[0], since_us),
        )

    def add_deliveries(self, rows: Sequence[DeliveryRow]) -> None:
        """Add deliveries, sorted by their keys."""
        self.connection.executemany("INSERT INTO deliveries VALUES (?, ?, ?, ?)", rows)
        weights: dict[int, int] = {}
        for row in rows:
            own = len(row[3]) if not isinstance(row[3], int) else 0
            weights[row[0]] = weights.get(row[0], 0) + _ROW_BYTES + own
        for block, nbytes in weights.items():
            self.weigh(block << BLOCK_BITS, nbytes)
        if rows:
            last, (block, count) = rows[-1][0], self._deliveries
            own = len(rows) - bisect_left(rows, last, key=itemgetter(0))
            self._deliveries = last, own + (count if block == last else 0)

    def weigh(self, position: int, nbytes: int) -> None:
        """Count bytes that go with the block of a position, or soon after it."""
        number = block_of(position)
        known = self._changed_blocks.get(number) or self._blocks.get(number)
        own = nbytes + (known.nbytes if known is not None else 0)
        self._changed_blocks[number] = Block(number, own, 0)

    # Retention

    def list_blocks(self) -> list[Block]:
        """List the blocks that are kept, the oldest first."""
        return sorted(self._blocks.values(), key=attrgetter("number"))  # any thread may ask

    def drop_some(self, block: Block) -> bool:
        """Drop a part of the oldest block that is not too much at once; whether that was all.

        First nobody reads it any more, and who has not had all of it is known.
        """
        number = block.number
        end = ((number + 1) << BLOCK_BITS) - 1
        if self.floor < end:
            self._count_lost(number, end)
            self.floor = end
            self.write_meta("floor", end)
        if not self._drop_deliveries(number):
            return False
        self.connection.execute(
            "DELETE FROM entries WHERE position BETWEEN ? AND ?", (number << BLOCK_BITS, end)
        )
        gone = end - BLOCK_POSITIONS  # what was derived from a change comes after it
        self.connection.execute("DELETE FROM subscriptions WHERE ended <= ?", (gone,))
        self._changed_blocks[number] = None
        return True

    def _count_lost(self, number: int, end: int) -> None:
        lost = self.connection.execute(
            "SELECT d.subscriber, count(*) FROM deliveries d JOIN subscribers s "
            "ON s.number = d.subscriber WHERE d.block = ? AND s.cursor < ? "
            "AND d.position > s.cursor GROUP BY d.subscriber",
            (number, end),
        ).fetchall()
        self.connection.executemany(
            "UPDATE subscribers SET lost = lost + ? WHERE number = ?",
            [(count, subscriber) for subscriber, count in lost],
        )

    def _drop_deliveries(self, number: int) -> bool:
        """Drop the first deliveries of a block; whether none is left."""
        execute = self.connection.execute
        last = execute(
            "SELECT subscriber, position FROM deliveries WHERE block = ? "
            "ORDER BY subscriber, position LIMIT 1 OFFSET ?",
            (number, _DROPPED_AT_ONCE),
        ).fetchone()
        if last is None:
            execute("DELETE FROM deliveries WHERE block = ?", (number,))
            return True
        execute(
            "DELETE FROM deliveries WHERE block = ? AND (subscriber, position) < (?, ?)",
            (number, *last),
        )
        return False

    def take_ended_ranges(self) -> list[str]:
        """Forget the rows of collections that no entry which is kept names; return their files."""
        rows = self.connection.execute(
            "DELETE FROM row_ranges WHERE ended <= ? RETURNING file",
            (self.floor - BLOCK_POSITIONS,),
        )
        return [file for (file,) in rows]

    # Cursors

    def move_cursors(self, cursors: Iterable[tuple[int, int]]) -> None:
        """Set cursors: subscriber and position; what was lost before them no longer counts.

        After one that is itself no longer kept no more is lost than there were positions.
        """
        self.connection.executemany(
            "UPDATE subscribers SET cursor = ?2, lost = max(0, min(lost, ?3 - ?2)) "
            "WHERE number = ?1",
            [(number, position, self.floor) for number, position in cursors],
        )


def is_disk_full(fault: BaseException) -> bool:
    """Whether the disk had no room, be it for the log or for the index of what is new in it."""
    return getattr(fault, "sqlite_errorname", "") in {"SQLITE_FULL", "SQLITE_IOERR_SHMSIZE"}


def is_sync_failure(fault: BaseException) -> bool:
    """Whether nobody knows what is on disk."""
    name = getattr(fault, "sqlite_errorname", "")
    is_broken = name.startswith("SQLITE_IOERR") or name == "SQLITE_CORRUPT"
    return is_broken and not is_disk_full(fault)
