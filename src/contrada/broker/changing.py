"""Changes of what is wanted and of who wants it, written in the transaction of a writer.

Each function refuses before it writes, and returns what is to be done once the change is on disk:
the set that events are matched against changes only then.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contrada.broker.broker_options import BrokerOptions
from contrada.broker.commit_tasks import Changed, ChangeOutcome
from contrada.broker.fence_book import Fence, RowFences
from contrada.broker.log_writing import LogWriter
from contrada.broker.restoring import ROWS_FOLDER
from contrada.broker.row_terms import terms_of
from contrada.broker.standing_set import StandingSet
from contrada.broker.subscription_bodies import SubscriptionBody, write_canonical
from contrada.broker.track_keeping import EndedFences, TrackKeeping
from contrada.broker.tracking import FenceChange
from contrada.broker.transition_bodies import read_transitions
from contrada.errors import Conflict, NotFound
from contrada.matcher.packed_rows import SharedTerms
from contrada.matcher.ready_rows import ReadyRows
from contrada.model.event import GEOMETRY
from contrada.model.row_columns import ROW_COLUMNS, Holds
from contrada.showing import brief


@dataclass(frozen=True, slots=True)
class _Version:
    """The version of a body that counts, as it lies in the log."""

    number: int
    subscriber: int
    body: str
    created: int
    expires_us: int | None

    @property
    def members(self) -> dict[str, Any]:
        """The body itself."""
        found: dict[str, Any] = json.loads(self.body)
        return found


@dataclass(frozen=True, slots=True)
class PackedPart:
    """The rows of a collection, which another process packed: where, with what, and indexed.

    `fences` are the rows as objects are followed through them, if the collection has transitions.
    """

    path: Path
    terms: SharedTerms
    ready: ReadyRows
    fences: RowFences | None = None

    @property
    def first(self) -> int:
        """The number of the first row."""
        return self.ready.range.start

    @property
    def count(self) -> int:
        """The number of rows."""
        return len(self.ready.range)


class Changing:
    """Writes changes; numbers that it gives out are never given out again."""

    def __init__(
        self,
        writer: LogWriter,
        standing: StandingSet,
        tracks: TrackKeeping,
        options: BrokerOptions,
    ) -> None:
        """Take where changes go."""
        self._writer, self._standing, self._tracks = writer, standing, tracks
        self._options = options
        self._next_number = self._find_next_number()

    def _find_next_number(self) -> int:
        execute = self._writer.connection.execute
        (last,) = execute("SELECT max(number) FROM subscriptions").fetchone()
        (end,) = execute("SELECT max(first + count) FROM row_ranges").fetchone()
        return max((last or 0) + 1, end or 1, int(self._writer.read_meta("next_number", 1)))

    def take_numbers(self, count: int) -> int:
        """Take numbers in a row that nobody has, and return the first."""
        first = self._next_number
        self._next_number += count
        return first

    def reserve(self, count: int, _: int) -> int:
        """Take numbers that outlive a crash before they are used."""
        first = self.take_numbers(count)
        self._writer.write_meta("next_number", self._next_number)
        return first

    # Subscriptions

    def put_subscription(
        self, id_: str, body: SubscriptionBody, by: str | None, now_us: int
    ) -> ChangeOutcome:
        """Let a subscription be as its body says; an equal body changes nothing."""
        known = self._find(id_)
        details = _details(body)
        if known is not None and known.body == body.text:
            same = Changed(self._write(known.created), is_changed=False, details=details)
            return ChangeOutcome(same)
        if known is None:
            self._refuse_too_many()
        elif (rows := self._find_rows(known.number)) is not None:
            return self._put_beside_rows(id_, body, known, rows, by, now_us)
        position = self._writer.add_change(now_us, _facts("put", id_, by))
        subscriber = self.ensure_subscriber(body.subscriber, position)
        old = [] if known is None else [known.number]
        number = self._replace(id_, subscriber, body.text, position, known, body.expires_us)
        predicate = body.predicate
        terms = read_transitions(body.members.get("transitions"), "transitions")
        is_fence = terms is not None and predicate is not None
        fence = Fence(number, id_, terms) if is_fence and terms is not None else None
        if fence is not None:  # who hears of a dwell that is due under the new terms
            self._tracks.standing.subscribers.put(number, 1, subscriber)
        self._tracks.take_up(self._find_ended([id_], fence), now_us)

        def then() -> None:
            self._remove(old)
            self._tracks.book.remove(id_)
            if fence is not None and predicate is not None:
                self._tracks.standing.put(number, subscriber, predicate)
                self._tracks.book.put(fence)
            elif predicate is not None:
                self._standing.put(number, subscriber, predicate)

        changed = Changed(self._write(position), known is None, details=details)
        return ChangeOutcome(changed, then)

    def _put_beside_rows(
        self,
        id_: str,
        body: SubscriptionBody,
        known: _Version,
        rows: range,
        by: str | None,
        now_us: int,
    ) -> ChangeOutcome:
        """Change what the rows of a collection were not packed with; they stay as they are."""
        _refuse_packed(id_, known.members, body.members)
        position = self._writer.add_change(now_us, _facts("put", id_, by))
        subscriber = self.ensure_subscriber(body.subscriber, position)
        number = self._replace(id_, subscriber, body.text, position, known, body.expires_us)
        self._writer.connection.execute(
            "UPDATE row_ranges SET subscription = ? WHERE subscription = ? AND ended IS NULL",
            (number, known.number),
        )
        side = self._tracks.standing if body.has_transitions else self._standing

        def then() -> None:
            side.subscribers.put(rows.start, len(rows), subscriber)

        return ChangeOutcome(Changed(self._write(position), details=_details(body)), then)

    def _find_ended(
        self, ids: Sequence[str], successor: Fence | None = None, rows: RowFences | None = None
    ) -> EndedFences:
        """Find what of the subscriptions that change objects are followed through."""
        book = self._tracks.book
        fences = [fence for id_ in ids if (fence := book.by_key(id_)) is not None]
        ended = [book.rows[id_] for id_ in ids if id_ in book.rows]
        return EndedFences(
            [FenceChange(fence, successor) for fence in fences], [(old, rows) for old in ended]
        )

    def _refuse_too_many(self) -> None:
        """Refuse one more subscription than there may be; they are hardly ever counted."""
        if self._next_number <= self._options.subscriptions_max:
            return
        (count,) = self._writer.connection.execute(
            "SELECT count(*) FROM subscriptions WHERE ended IS NULL"
        ).fetchone()
        if count >= self._options.subscriptions_max:
            raise Conflict(
                f"there are {count:,} subscriptions, and there can be no more (subscriptions_max)"
            )

    def _replace(
        self,
        id_: str,
        subscriber: int,
        text: str,
        position: int,
        known: _Version | None,
        expires_us: int | None,
    ) -> int:
        if known is not None:
            self._end(known.number, position)
        number = self.take_numbers(1)
        self._writer.connection.execute(
            "INSERT INTO subscriptions VALUES (?, ?, ?, ?, ?, NULL, ?)",
            (number, id_, subscriber, text, position, expires_us),
        )
        return number

    def delete_subscription(
        self, id_: str, by: str | None, now_us: int, *, number: int | None = None
    ) -> ChangeOutcome:
        """End a subscription; with `number` only that version of it, as when it expires."""
        known = self._find(id_)
        if known is None or number not in {None, known.number}:
            raise NotFound(f"there is no subscription {brief(id_)}")
        what = "delete" if number is None else "expire"
        position = self._writer.add_change(now_us, _facts(what, id_, by))
        self._end(known.number, position)
        ranges = self._end_ranges(known.number, position)
        self._tracks.take_up(self._find_ended([id_]), now_us)

        def then() -> None:
            self._remove_all([id_], [known.number], ranges)

        return ChangeOutcome(Changed(self._write(position)), then)

    def _remove_all(self, ids: list[str], numbers: list[int], ranges: list[range]) -> None:
        """Let subscriptions hold no longer, after their end is on disk."""
        self._remove(numbers)
        for old in ranges:
            self._side_of(old).remove_rows(old)
        self._tracks.book.remove_all(ids)

    def _remove(self, numbers: Sequence[int]) -> None:
        for side in (self._standing, self._tracks.standing):
            side.remove(numbers)

    def _side_of(self, numbers: range) -> StandingSet:
        """Find out whether rows are matched, or objects are followed through them."""
        is_followed = len(numbers) and numbers[0] in self._tracks.standing.matcher
        return self._tracks.standing if is_followed else self._standing

    def _find(self, id_: str) -> _Version | None:
        row = self._writer.connection.execute(
            "SELECT number, subscriber, body, created, expires_us FROM subscriptions "
            "WHERE id = ? AND ended IS NULL",
            (id_,),
        ).fetchone()
        return None if row is None else _Version(*row)

    def _end(self, number: int, position: int) -> None:
        (nbytes,) = self._writer.connection.execute(
            "UPDATE subscriptions SET ended = ? WHERE number = ? "
            "RETURNING length(CAST(body AS BLOB))",
            (position, number),
        ).fetchone()
        self._writer.weigh(position, nbytes)  # kept while deliveries may name it

    # Rows of collections

    def plan_rows(self, id_: str, count: int, now: int) -> tuple[int, range]:
        """Take numbers for rows; return the first, and which numbers they are to replace."""
        known = self._find(id_)
        old = None if known is None else self._find_rows(known.number)
        return self.reserve(max(count, 1), now), old or range(0)

    def put_rows(self, id_: str, part: PackedPart, by: str | None, now_us: int) -> ChangeOutcome:
        """Let packed rows be those of a collection, in place of all it had."""
        known = self._find(id_)
        is_new = known is None
        body = {} if known is None else known.members
        asked = read_transitions(body.get("transitions"), "transitions")
        packed = None if part.fences is None else part.fences.terms
        if terms_of(id_, body) != part.terms or asked != packed:
            raise Conflict(
                f"the subscription {brief(id_)} has changed while its rows were being packed: "
                "put them again"
            )
        facts = _facts("put_rows", id_, by) | {"rows": part.count}
        position = self._writer.add_change(now_us, facts)
        if known is None:
            subscriber = self.ensure_subscriber(id_, position)
            text = write_canonical({"subscriber": id_})
            number = self._replace(id_, subscriber, text, position, None, None)
        elif GEOMETRY in body:
            del body[GEOMETRY]
            subscriber = known.subscriber
            text = write_canonical(body)
            number = self._replace(id_, subscriber, text, position, known, known.expires_us)
        else:
            number, subscriber = known.number, known.subscriber
        old = self._end_ranges(number if known is None else known.number, position)
        self._writer.connection.execute(
            "INSERT INTO row_ranges VALUES (?, ?, ?, ?, ?, NULL)",
            (part.first, part.count, number, part.path.name, position),
        )
        if part.fences is not None:
            self._tracks.standing.subscribers.put(part.first, part.count, subscriber)
        self._tracks.take_up(self._find_ended([id_], None, part.fences), now_us)

        def then() -> None:
            self._remove([] if known is None else [known.number])
            side = self._standing if part.fences is None else self._tracks.standing
            side.put_rows(part.ready, subscriber, old[0] if old else range(0))
            self._tracks.book.remove(id_)
            if part.fences is not None:
                self._tracks.book.put_rows(part.fences)

        changed = Changed(self._write(position), is_new, details={"rows": part.count})
        return ChangeOutcome(changed, then)

    def _find_rows(self, number: int) -> range | None:
        """Find the numbers of the rows that a version of a collection has, if they were put."""
        row = self._writer.connection.execute(
            "SELECT first, count FROM row_ranges WHERE subscription = ? AND ended IS NULL",
            (number,),
        ).fetchone()
        return None if row is None else range(row[0], row[0] + row[1])

    def _end_ranges(self, number: int, position: int) -> list[range]:
        rows = self._writer.connection.execute(
            "UPDATE row_ranges SET ended = ? WHERE subscription = ? AND ended IS NULL "
            "RETURNING first, count, file",
            (position, number),
        ).fetchall()
        for *_, file in rows:
            path = self._writer.path.parent / ROWS_FOLDER / file
            self._writer.weigh(position, path.stat().st_size if path.exists() else 0)
        return [range(first, first + count) for first, count, _ in rows]

    # Subscribers

    def ensure_subscriber(self, name: str, position: int) -> int:
        """Return the number of a subscriber, who begins here if there is none of the name."""
        execute = self._writer.connection.execute
        row = execute("SELECT number FROM subscribers WHERE name = ?", (name,)).fetchone()
        if row is None:
            row = execute(
                "INSERT INTO subscribers (name, cursor, created) VALUES (?, ?, ?) RETURNING number",
                (name, position, position),
            ).fetchone()
        return int(row[0])

    def put_subscriber(self, name: str, by: str | None, now_us: int) -> ChangeOutcome:
        """Let a subscriber begin, unless it is there."""
        row = self._writer.connection.execute(
            "SELECT created FROM subscribers WHERE name = ?", (name,)
        ).fetchone()
        if row is not None:
            return ChangeOutcome(Changed(self._write(row[0]), is_changed=False))
        position = self._writer.add_change(now_us, _facts("put_subscriber", name, by))
        self.ensure_subscriber(name, position)
        return ChangeOutcome(Changed(self._write(position), is_new=True))

    def delete_subscriber(self, name: str, by: str | None, now_us: int) -> ChangeOutcome:
        """End a subscriber, with its subscriptions, its cursor and what waits for it."""
        execute = self._writer.connection.execute
        row = execute("SELECT number FROM subscribers WHERE name = ?", (name,)).fetchone()
        if row is None:
            raise NotFound(f"there is no subscriber {brief(name)}")
        position = self._writer.add_change(now_us, _facts("delete_subscriber", name, by))
        ended = execute(
            "UPDATE subscriptions SET ended = ? WHERE subscriber = ? AND ended IS NULL "
            "RETURNING number, id, length(CAST(body AS BLOB))",
            (position, row[0]),
        ).fetchall()
        numbers, ids = [number for number, *_ in ended], [id_ for _, id_, _ in ended]
        self._writer.weigh(position, sum(nbytes for *_, nbytes in ended))
        ranges = [old for number in numbers for old in self._end_ranges(number, position)]
        execute("DELETE FROM subscribers WHERE number = ?", (row[0],))
        self._tracks.take_up(self._find_ended(ids), now_us)

        def then() -> None:
            self._remove_all(ids, numbers, ranges)

        changed = Changed(self._write(position), details={"subscriptions": len(numbers)})
        return ChangeOutcome(changed, then)

    def note_settings(self, by: str | None, now_us: int) -> ChangeOutcome:
        """Write down that the settings have changed."""
        position = self._writer.add_change(now_us, _facts("put_settings", "", by))
        return ChangeOutcome(Changed(self._write(position)))

    def _write(self, position: int) -> str:
        return self._writer.epochs.write(position)


def _details(body: SubscriptionBody) -> dict[str, Any]:
    """What an answer says of a body beside the change."""
    return {"warnings": list(body.warnings)} if body.warnings else {}


def _refuse_packed(id_: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    """Refuse to change what the rows of a collection were packed with."""
    packed = (column.name for column in ROW_COLUMNS if column.holds is not Holds.ID)
    changed = [name for name in packed if before.get(name) != after.get(name)]
    asked = [read_transitions(body.get("transitions"), "transitions") for body in (before, after)]
    if asked[0] != asked[1]:
        changed.append("transitions")
    if changed:
        raise Conflict(
            f"the subscription {brief(id_)} has rows, which were packed with what it had: delete "
            "it and put it and its rows again, or put both under another id; beside rows only "
            "`subscriber` and `expires` can be changed",
            place=changed[0],
        )


def _facts(change: str, name: str, by: str | None) -> dict[str, Any]:
    """What the log says of a change."""
    facts: dict[str, Any] = {"change": change, "name": name}
    return facts if by is None else facts | {"by": by}
