"""Connections that only read: pages of deliveries, and lists of what there is.

Every call reads one page and ends its transaction, so that no reader keeps the write-ahead log
from being moved to the file. Each thread has a connection of its own.
"""

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from contrada.broker.log_schema import LOG_FILE, open_reading
from contrada.broker.match_lists import Packed
from contrada.broker.retention import block_of

_LIST_BYTES_MAX = 2**22  # of the bodies of one page, of which one may be more
DELIVERIES_BYTES_MAX = 2**18  # of a page, which a stalled reader holds; one may be more
_BLOCKS_AT_ONCE = 512
_MATCH_TIMES = 16  # four bytes of a packed number are written as some sixty of JSON


class StoredDelivery(NamedTuple):
    """A delivery as it lies in the log."""

    position: int
    time_us: int
    body: bytes | None
    matches: Packed


class StoredSubscriber(NamedTuple):
    """A subscriber as it lies in the log, and up to where the log is no longer kept.

    `lost` counts the deliveries that went before its cursor had come to them.
    """

    number: int
    name: str
    cursor: int
    created: int
    lost: int
    floor: int


class StoredSubscription(NamedTuple):
    """A subscription as it lies in the log, in the version of its body that counts."""

    number: int
    id: str
    subscriber: str
    body: str
    created: int


class StoredRows(NamedTuple):
    """The rows that a collection has: their numbers, their file, and since which position."""

    first: int
    length: int
    file: str
    created: int


_FLOOR = "SELECT coalesce((SELECT value FROM meta WHERE name = 'floor'), 0)"
_SUBSCRIBER = f"SELECT number, name, cursor, created, lost, ({_FLOOR}) FROM subscribers"
_SUBSCRIPTION = (
    "SELECT v.number, v.id, s.name, v.body, v.created FROM subscriptions v "
    "JOIN subscribers s ON s.number = v.subscriber WHERE v.ended IS NULL"
)


class LogReader:
    """All that is read from a log beside its writer, from any thread."""

    def __init__(self, folder: Path) -> None:
        """Read the log of a folder, which is there."""
        self._path = folder / LOG_FILE
        self._local = threading.local()
        self._open: list[sqlite3.Connection] = []
        self._opening = threading.Lock()

    def close(self) -> None:
        """Close all connections; threads that are still reading fail."""
        with self._opening:
            for connection in self._open:
                with suppress(sqlite3.Error):
                    connection.close()
            self._open.clear()

    def _connection(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = open_reading(self._path)
            with self._opening:
                self._open.append(connection)
            self._local.connection = connection
        return connection

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """See the log as it is at one moment, for as long as a page takes."""
        connection = self._connection()
        connection.execute("BEGIN")
        try:
            yield connection
        finally:
            connection.execute("ROLLBACK")

    def find_subscriber(self, name: str) -> StoredSubscriber | None:
        """Return the subscriber of a name."""
        row = self._connection().execute(f"{_SUBSCRIBER} WHERE name = ?", (name,)).fetchone()
        return None if row is None else StoredSubscriber(*row)

    def list_subscribers(self, after: str, limit: int) -> list[StoredSubscriber]:
        """List subscribers by name."""
        rows = self._connection().execute(
            f"{_SUBSCRIBER} WHERE name > ? ORDER BY name LIMIT ?", (after, limit)
        )
        return [StoredSubscriber(*row) for row in rows]

    def find_subscription(self, id_: str) -> StoredSubscription | None:
        """Return the subscription of an id."""
        row = self._connection().execute(f"{_SUBSCRIPTION} AND v.id = ?", (id_,)).fetchone()
        return None if row is None else StoredSubscription(*row)

    def list_subscriptions(
        self, after: str, limit: int, subscriber: int | None
    ) -> tuple[list[StoredSubscription], bool]:
        """List subscriptions by id, those of a subscriber or all; whether there are more.

        Fewer come where they are large.
        """
        own, values = ("", []) if subscriber is None else (" AND v.subscriber = ?", [subscriber])
        found: list[StoredSubscription] = []
        nbytes = 0
        with self.reading() as connection:
            rows = connection.execute(
                f"{_SUBSCRIPTION}{own} AND v.id > ? ORDER BY v.id LIMIT ?",
                [*values, after, limit + 1],
            )
            for row in rows:
                each = StoredSubscription(*row)
                nbytes += len(each.body)
                if len(found) == limit or (found and nbytes > _LIST_BYTES_MAX):
                    return found, True
                found.append(each)
        return found, False

    def find_time(self, time_us: int, floor: int, head: int) -> int:
        """Return the last position before the first entry that was stored at a time or later."""
        low, high = floor, head
        connection = self._connection()
        while low < high:  # times hardly ever go back: the clock is steady
            middle = (low + high) // 2
            row = connection.execute(
                "SELECT time_us FROM entries WHERE position > ? LIMIT 1", (middle,)
            ).fetchone()
            if row is not None and row[0] < time_us:
                low = middle + 1
            else:
                high = middle
        return low

    def read_page(
        self, subscriber: int, after: int, head: int, limit: int
    ) -> tuple[list[StoredDelivery], int, int]:
        """Return the next deliveries of a subscriber, and up to which position that is all.

        The third is the last position that is not kept: a page that begins before it lacks some.
        """
        with self.reading() as connection:
            (floor,) = connection.execute(_FLOOR).fetchone()
            places = self._find_places(connection, subscriber, after, head, limit)
            found: list[StoredDelivery] = []
            nbytes = 0
            for position, matches in places:
                row = connection.execute(
                    "SELECT time_us, body FROM entries WHERE position = ?", (position,)
                ).fetchone()
                nbytes += len(row[1] or b"") + _weigh(matches)
                if found and nbytes > DELIVERIES_BYTES_MAX:
                    return found, found[-1].position, floor
                found.append(StoredDelivery(position, row[0], row[1], matches))
        return found, places[-1][0] if len(places) == limit else head, floor

    def _find_places(
        self, connection: sqlite3.Connection, subscriber: int, after: int, head: int, limit: int
    ) -> list[tuple[int, Packed]]:
        """Find where the next deliveries are: block by block, each a seek."""
        places: list[tuple[int, Packed]] = []
        (first,) = connection.execute("SELECT min(block) FROM deliveries").fetchone()
        if first is None:
            return places
        block, last = max(first, block_of(after + 1)), block_of(head)
        while block <= last and len(places) < limit:
            end = min(block + _BLOCKS_AT_ONCE, last + 1)
            numbers = ",".join(map(str, range(block, end)))
            places += connection.execute(
                f"SELECT position, matches FROM deliveries WHERE block IN ({numbers}) "
                "AND subscriber = ? AND position BETWEEN ? AND ? ORDER BY block, position LIMIT ?",
                (subscriber, after + 1, head, limit - len(places)),
            ).fetchall()
            block = end
        return places

    def count_waiting(
        self, subscriber: int, after: int, head: int, count_max: int
    ) -> tuple[int, int | None]:
        """Count the deliveries that wait for a subscriber, up to a number, and date the first."""
        with self.reading() as connection:
            places = self._find_places(connection, subscriber, after, head, count_max)
            if not places:
                return 0, None
            (time_us,) = connection.execute(
                "SELECT time_us FROM entries WHERE position = ?", places[0][:1]
            ).fetchone()
            return len(places), time_us

    def find_names(self, numbers: Sequence[int]) -> dict[int, tuple[str, str]]:
        """Return the id and the body of versions of subscriptions by their numbers."""
        connection = self._connection()
        found: dict[int, tuple[str, str]] = {}
        for number in numbers:
            row = connection.execute(
                "SELECT id, body FROM subscriptions WHERE number = ?", (number,)
            ).fetchone()
            if row is not None:
                found[number] = row
        return found

    def find_range(self, number: int) -> tuple[int, int, int, str] | None:
        """Return the range of rows that a number lies in: first, count, subscription and file."""
        row: tuple[int, int, int, str] | None = (
            self._connection()
            .execute(
                "SELECT first, count, subscription, file FROM row_ranges WHERE first <= ? "
                "ORDER BY first DESC LIMIT 1",
                (number,),
            )
            .fetchone()
        )
        return row if row is not None and number < row[0] + row[1] else None

    def find_rows(self, subscription: int) -> StoredRows | None:
        """Return the rows that a version of a collection has; None where none were put."""
        row = (
            self._connection()
            .execute(
                "SELECT first, count, file, created FROM row_ranges "
                "WHERE subscription = ? AND ended IS NULL",
                (subscription,),
            )
            .fetchone()
        )
        return None if row is None else StoredRows(*row)

    def sum_facts(self) -> dict[str, Any]:
        """Count what there is, and up to where nothing is kept, for whoever watches the broker."""
        connection = self._connection()
        (floor,) = connection.execute(_FLOOR).fetchone()
        (subscriptions,) = connection.execute(
            "SELECT count(*) FROM subscriptions WHERE ended IS NULL"
        ).fetchone()
        (subscribers,) = connection.execute("SELECT count(*) FROM subscribers").fetchone()
        return {"floor": floor, "subscriptions": subscriptions, "subscribers": subscribers}


def _weigh(matches: Packed) -> int:
    """Return about how many bytes matches have in a delivery."""
    if isinstance(matches, int):
        return 0
    return len(matches) if isinstance(matches, str) else _MATCH_TIMES * len(matches)
