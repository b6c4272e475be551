"""Deliveries that the receiver of a webhook has refused: listed, and sent again when asked for.

A dead letter is a position: the delivery itself is read from the log, and is kept for as long as
that keeps it. `redrive` makes letters due; they are sent in their order before what waits at the
cursor, and go when they are accepted.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from contrada.broker.commit_tasks import CommitTask, CursorTask
from contrada.broker.deliveries import Delivery, DeliveryPage, write_time
from contrada.broker.log_reading import LogReader
from contrada.broker.log_writing import LogWriter
from contrada.errors import Conflict, NotFound
from contrada.showing import brief

_PAGE_BYTES_MAX = 4 * 2**20  # of the deliveries of one page; one may have more


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A delivery that was refused: why, when, and whether it is due to be sent again."""

    delivery: Delivery
    error: str
    time: str
    is_due: bool


class DeadLetters:
    """The dead letters of one broker; what has no connection of its own is for any thread."""

    def __init__(
        self,
        writer: LogWriter,
        reader: LogReader,
        submit: Callable[[CommitTask], object],
        read_deliveries: Callable[..., DeliveryPage],
    ) -> None:
        """Take what writes, what reads, what commits, and what reads deliveries."""
        self._writer, self._reader = writer, reader
        self._submit, self._read_deliveries = submit, read_deliveries

    # In the thread that commits

    def add(self, subscriber: int, position: int, now_us: int, error: str) -> None:
        """Keep a delivery that was refused, and forget those that the log no longer keeps."""
        execute = self._writer.connection.execute
        gone = (subscriber, self._writer.floor)
        execute("DELETE FROM dead_letters WHERE subscriber = ? AND position <= ?", gone)
        letter = (subscriber, position, now_us, error)
        execute("REPLACE INTO dead_letters VALUES (?, ?, ?, ?, 0)", letter)

    def remove(self, subscriber: int, position: int) -> None:
        """Forget a letter that was accepted."""
        own = (subscriber, position)
        sql = "DELETE FROM dead_letters WHERE subscriber = ? AND position = ?"
        self._writer.connection.execute(sql, own)

    def remove_all(self, subscriber: int) -> None:
        """Forget the letters of a subscriber that ends."""
        sql = "DELETE FROM dead_letters WHERE subscriber = ?"
        self._writer.connection.execute(sql, (subscriber,))

    # Reads

    def count(self, subscriber: int) -> tuple[int, int]:
        """Count the letters of a subscriber that are still kept, and those of them that are due."""
        with self._reader.reading() as connection:
            count, due = connection.execute(
                "SELECT count(*), coalesce(sum(is_due), 0) FROM dead_letters "
                "WHERE subscriber = ? AND position > ?",
                (subscriber, self._writer.floor),
            ).fetchone()
        return count, due

    def find_due(self, name: str) -> Delivery | None:
        """Return the first letter that is due to be sent again."""
        letters = self._read(name, 0, 1, only_due=True)
        return letters[0].delivery if letters else None

    def list(
        self, name: str, *, after: str | None = None, limit: int = 100
    ) -> tuple[Sequence[DeadLetter], str | None]:
        """List letters by position, and where to go on, if there are more."""
        letters = self._read(name, 0 if after is None else self._number(after, "after"), limit + 1)
        nbytes = 0
        for count, letter in enumerate(letters):
            nbytes += len(letter.delivery.json)
            if count == limit or (count and nbytes > _PAGE_BYTES_MAX):
                return letters[:count], letters[count - 1].delivery.position
        return letters, None

    def _read(
        self, name: str, after: int, limit: int, *, only_due: bool = False
    ) -> "Sequence[DeadLetter]":
        found = self._reader.find_subscriber(name)
        if found is None:
            raise NotFound(f"there is no subscriber {brief(name)}")
        with self._reader.reading() as connection:
            rows = connection.execute(
                "SELECT position, error, time_us, is_due FROM dead_letters WHERE subscriber = ? "
                "AND position > ? AND is_due >= ? ORDER BY position LIMIT ?",
                (found.number, max(after, self._writer.floor), int(only_due), limit),
            ).fetchall()
        letters = []
        nbytes = 0
        for position, error, time_us, is_due in rows:
            delivery = self._read_delivery(name, position)
            if delivery is not None:
                letters.append(DeadLetter(delivery, error, write_time(time_us), bool(is_due)))
                nbytes += len(delivery.json)
            if nbytes > _PAGE_BYTES_MAX and len(letters) > 1:
                break
        return letters

    def _read_delivery(self, name: str, position: int) -> Delivery | None:
        """Read the delivery of a position; none if it is no longer kept."""
        write = self._writer.epochs.write
        page = self._read_deliveries(name, after=write(position - 1), limit=1)
        found = page.deliveries[0] if page.deliveries else None
        return found if found is not None and found.position == write(position) else None

    def _number(self, position: str, place: str) -> int:
        return self._writer.epochs.read(position, place, self._writer.head)

    # Redrive

    def redrive(
        self, name: str, positions: Sequence[str] | None, then: Callable[[], object]
    ) -> "Future[int]":
        """Let letters, all or those of some positions, be sent again; return how many.

        `then` is done in the same transaction if there are any.
        """
        numbers = None
        if positions is not None:
            numbers = [self._number(position, "positions") for position in positions]

        def apply(_: int) -> int:
            count = self._make_due(name, numbers)
            if count:
                then()
            return count

        task = CursorTask(apply)
        self._submit(task)
        return task.future

    def _make_due(self, name: str, numbers: Sequence[int] | None) -> int:
        execute = self._writer.connection.execute
        row = execute(
            "SELECT s.number, w.revision FROM subscribers s LEFT JOIN webhooks w "
            "ON w.subscriber = s.number WHERE s.name = ?",
            (name,),
        ).fetchone()
        if row is None:
            raise NotFound(f"there is no subscriber {brief(name)}")
        if row[1] is None:
            raise Conflict(f"the subscriber {brief(name)} has no webhook that letters could go to")
        sql = "UPDATE dead_letters SET is_due = 1 WHERE subscriber = ? AND position BETWEEN ? AND ?"
        first, last = self._writer.floor + 1, self._writer.head
        spans = [(first, last)] if numbers is None else [(n, n) for n in numbers if n >= first]
        return sum(execute(sql, (row[0], *span)).rowcount for span in spans)
