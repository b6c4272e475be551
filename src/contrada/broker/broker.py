"""The broker of one tenant: publish, match, deliver, and lose nothing.

A folder has the log, and beside it what can be made from it again. What writes returns a future
that resolves when it is on disk; reads see what is committed, and block for about a millisecond.
Every method may be called from any thread. Positions are texts here, and numbers further inside.
"""

import json
import logging
import os
import sqlite3
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

from contrada.broker.asking import Questions, explain_body
from contrada.broker.broker_options import BrokerOptions
from contrada.broker.changing import Changing, PackedPart
from contrada.broker.chores import Chores
from contrada.broker.commit_tasks import (
    Changed,
    ChangeOutcome,
    ChangeTask,
    CursorTask,
    PublishAnswer,
    PublishTask,
)
from contrada.broker.committing import Committer, Fatal
from contrada.broker.dead_letters import DeadLetters
from contrada.broker.deliveries import DeliveryGap, DeliveryPage, write_delivery, write_time
from contrada.broker.event_storing import EventStoring, StoredEvents
from contrada.broker.fence_book import RowFences
from contrada.broker.incoming_events import IncomingEvents
from contrada.broker.log_reading import LogReader, StoredRows, StoredSubscriber, StoredSubscription
from contrada.broker.log_schema import LOG_FILE, blame_log
from contrada.broker.log_writing import LogWriter
from contrada.broker.number_names import NumberNames
from contrada.broker.repeats import RepeatWindow, StoredEvent
from contrada.broker.restoring import (
    ROWS_FOLDER,
    count_rows_bytes,
    lock_folder,
    remove_strays,
    restore_fences,
    restore_standing,
    save_standing,
)
from contrada.broker.steady_clock import SteadyClock
from contrada.broker.subscription_bodies import read_name, read_subscription_body
from contrada.broker.track_keeping import TrackKeeping
from contrada.broker.transition_bodies import (
    read_tracking_settings,
    read_transitions,
    write_tracking_settings,
)
from contrada.broker.watching import Watchers
from contrada.broker.webhook_bodies import read_subscriber_body
from contrada.broker.webhook_store import WebhookStore
from contrada.errors import Gone, InvalidInput, NotFound, OutOfSpace
from contrada.limits import PAGE_DELIVERIES_MAX
from contrada.matcher.packed_rows import RowIds, SharedTerms
from contrada.model.event import GEOMETRY
from contrada.model.instant import read_instant
from contrada.showing import brief

_log = logging.getLogger(__name__)
_US = 1_000_000
_WAITING_MAX = 10_000


def end_process(reason: str) -> None:
    """End the process at once: nobody knows what is on disk, or the set may differ from the log."""
    _log.critical("the broker ends: %s", reason)
    with suppress(OSError):  # whoever else logs may not come to it any more
        os.write(2, f"contrada: the broker ends: {reason}\n".encode())
    os._exit(70)


class Broker:
    """A tenant's log and what is matched against it."""

    def __init__(self, folder: Path, options: BrokerOptions, on_fatal: Fatal) -> None:
        """Use `Broker.open`."""
        self.folder, self._options = folder, options
        with ExitStack() as stack:
            self._lock = stack.enter_context(lock_folder(folder))
            self._writer = LogWriter(folder, is_durable=options.is_durable)
            stack.callback(self._writer.connection.close)
            self._clock = SteadyClock(int(self._writer.read_meta("lived_us", 0)))
            remove_strays(self._writer, folder)
            self._standing = restore_standing(self._writer, folder)
            self._begin(on_fatal)
            stack.pop_all()

    def _begin(self, on_fatal: Fatal) -> None:
        writer, options = self._writer, self._options
        self._window = RepeatWindow(int(options.repeats_age_s * _US), options.repeats_events_max)
        self._fill_window()
        self._reader = LogReader(self.folder)
        self._names = NumberNames(self._reader, self.folder)
        self._watchers = Watchers(writer.head)
        self._note_commit()
        self._tracks = TrackKeeping(writer, self._clock.now_us(), self._watchers.note)
        restore_fences(writer, self._tracks, self.folder)
        self._questions = Questions(
            self._standing, self._tracks.standing, self._names, self._reader
        )
        self._counts = dict.fromkeys(("events", "matches", "deliveries", "repeated", "bad"), 0)
        self._counting = threading.Lock()
        self._changing = Changing(writer, self._standing, self._tracks, options)
        self._chores = Chores(
            writer,
            self._standing,
            self._clock,
            self._tracks,
            self._changing,
            options,
            self.folder,
        )
        self._committer = Committer(
            writer,
            EventStoring(writer, self._standing, self._tracks, self._window),
            self._clock,
            options,
            on_commit=self._note_commit,
            on_stored=self._note_stored,
            expire=self._chores.expire_due,
            chores=self._chores.run,
            on_fatal=on_fatal,
        )
        submit = self._committer.submit
        letters = DeadLetters(writer, self._reader, submit, self.read_deliveries)
        self.webhooks = WebhookStore(writer, self._reader, submit, letters)
        self._committer.start()

    def _fill_window(self) -> None:
        """Learn from the log which events may be repeated."""
        since_us = self._clock.now_us() - int(self._options.repeats_age_s * _US)
        rows = self._writer.list_named(self._options.repeats_events_max, since_us)
        for key, position, matches, time_us in rows:
            self._window.add([(key, StoredEvent(position, matches))], time_us)

    @classmethod
    def open(
        cls,
        folder: str | os.PathLike[str],
        options: BrokerOptions | None = None,
        *,
        on_fatal: Fatal = end_process,
    ) -> "Broker":
        """Open the broker of a folder, or begin one; refuse it if another process has its log."""
        try:
            return cls(Path(folder), options or BrokerOptions(), on_fatal)
        except sqlite3.DatabaseError as fault:
            raise blame_log(Path(folder) / LOG_FILE, fault) from fault

    def close(self) -> None:
        """Store what waits, save the set, and let others have the folder."""
        self._committer.close()
        self._watchers.wake_all()
        self._reader.close()
        self._chores.end()
        save_standing(self._writer, self._standing, self.folder, changes_min=1_000)
        self._writer.close()
        self._lock.close()

    # In the thread that commits

    def _note_commit(self) -> None:
        """Let readers see what was committed, after whose it is was noted."""
        self._head, self._floor = self._writer.head, self._writer.floor
        self._watchers.wake_noted()

    def _note_stored(self, stored: StoredEvents) -> None:
        self._window.add(stored.named, self._clock.now_us())
        for subscribers, head in stored.touched:
            self._watchers.note(subscribers, head)
        for name in ("events", "matches", "deliveries"):
            self._counts[name] += getattr(stored, name)
        self._counts["repeated"] += sum(answer.repeated for answer in stored.answers)
        with self._counting:
            self._counts["bad"] += sum(len(answer.errors) for answer in stored.answers)

    # Changes

    def put_subscription(
        self, id: str, body: Mapping[str, Any], *, by: str | None = None
    ) -> "Future[Changed]":
        """Let a subscription be as its body says; an equal body changes nothing."""
        id_ = read_name(id, "id")
        read = read_subscription_body(id_, body, self._standing.matcher)
        if read.expires_us is not None and read.expires_us <= self._clock.now_us():
            raise InvalidInput(f"{brief(body['expires'])} is in the past", place="expires")
        self._refuse_without_space()
        return self._change(lambda now: self._changing.put_subscription(id_, read, by, now))

    def delete_subscription(self, id: str, *, by: str | None = None) -> "Future[Changed]":
        """End a subscription; what it matched before is delivered all the same."""
        return self._change(lambda now: self._changing.delete_subscription(id, by, now))

    def put_rows(
        self, id: str, path: Path, count: int, terms: SharedTerms, *, by: str | None = None
    ) -> "Future[Changed]":
        """Let the rows of a file in the folder of rows, packed with terms, be a collection's.

        The rows are indexed by the thread that calls, in seconds if there are a million.
        """
        id_ = read_name(id, "id")
        self._refuse_without_space()
        plan: Future[tuple[int, range]] = Future()
        self._committer.submit(
            CursorTask(lambda now: self._changing.plan_rows(id_, count, now), plan)
        )
        first, old = plan.result()
        part = self._make_part(id_, path, terms, first, old)
        return self._change(lambda now: self._changing.put_rows(id_, part, by, now))

    def _make_part(
        self, id_: str, path: Path, terms: SharedTerms, first: int, old: range
    ) -> PackedPart:
        """Index rows for where they will be matched, or objects followed through them."""
        found = self._reader.find_subscription(id_)
        body = {} if found is None else json.loads(found.body)
        asked = read_transitions(body.get("transitions"), "transitions")
        if asked is None:
            return PackedPart(path, terms, self._standing.make_ready(path, first, old))
        fences = RowFences(id_, first, RowIds.open(path).array, asked)
        fences.prepare()
        ready = self._tracks.standing.make_ready(path, first, old)
        return PackedPart(path, terms, ready, fences)

    def put_subscriber(
        self, name: str, body: Mapping[str, Any], *, by: str | None = None
    ) -> "Future[Changed]":
        """Let a subscriber begin, unless it is there, and read or be called by a webhook."""
        name = read_name(name, "name")
        wanted = read_subscriber_body(body)
        self._refuse_without_space()

        def apply(now: int) -> ChangeOutcome:
            begun = self._changing.put_subscriber(name, by, now)
            return self.webhooks.put(name, wanted, by, now, begun)

        return self._change(apply)

    def delete_subscriber(self, name: str, *, by: str | None = None) -> "Future[Changed]":
        """End a subscriber, with its subscriptions, its cursor and what waits for it."""

        def apply(now: int) -> ChangeOutcome:
            finish = partial(self._changing.delete_subscriber, name, by, now)
            return self.webhooks.end(name, finish)

        return self._change(apply)

    def put_settings(self, body: Any, *, by: str | None = None) -> "Future[Changed]":
        """Replace the settings: which events are positions, and how late they may come."""
        settings = read_tracking_settings(body)
        self._refuse_without_space()

        def apply(now: int) -> ChangeOutcome:
            self._tracks.change_settings(settings)
            return self._changing.note_settings(by, now)

        return self._change(apply)

    def get_settings(self) -> dict[str, Any]:
        """Return the settings of the tenant."""
        return write_tracking_settings(self._tracks.settings)

    def _change(self, apply: Callable[[int], Any]) -> "Future[Any]":
        task = ChangeTask(apply)
        self._committer.submit(task)
        return task.future

    # Events and cursors

    def publish(
        self, events: IncomingEvents, *, all_or_none: bool = False
    ) -> "Future[PublishAnswer]":
        """Store events, and match each once; bad ones are left out, or with `all_or_none` all."""
        self._refuse_without_space()
        if not events.texts or (all_or_none and events.errors):
            with self._counting:
                self._counts["bad"] += len(events.errors)
            future: Future[PublishAnswer] = Future()
            future.set_result(PublishAnswer(0, self.head, 0, list(events.errors)))
            return future
        task = PublishTask(events, all_or_none)
        self._committer.submit(task)
        return task.future

    def ack(self, subscriber: str, position: str) -> "Future[str]":
        """Move the cursor of a subscriber forward to a position; it is never moved back."""
        number = self._read_position(position)
        return self._move(subscriber, lambda cursor: max(cursor, number))

    def put_cursor(
        self, subscriber: str, *, position: str | None = None, time: str | None = None
    ) -> "Future[str]":
        """Set the cursor of a subscriber to a position, or before the first event of a time."""
        if (position is None) == (time is None):
            raise InvalidInput('give either "position" or "time"')
        if position is not None:
            number = self._read_position(position)
            if number < self._floor:
                raise Gone(
                    f"position {position} is no longer kept; the first that is "
                    f"comes after {self._write(self._floor)}",
                    place="position",
                )
        else:
            moment = read_instant(time) if isinstance(time, str) else None
            if moment is None:
                raise InvalidInput(
                    f'{brief(time)} is not a moment such as "2027-01-31T12:00:00Z"', place="time"
                )
            number = self._reader.find_time(moment.ns // 1_000, self._floor, self._head)
        moved = self._move(subscriber, lambda _: number)
        moved.add_done_callback(lambda _: self.webhooks.notify(subscriber))
        return moved

    def _move(self, name: str, choose: Callable[[int], int]) -> "Future[str]":
        def apply(_: int) -> str:
            row = self._writer.connection.execute(
                "SELECT number, cursor FROM subscribers WHERE name = ?", (name,)
            ).fetchone()
            if row is None:
                raise NotFound(f"there is no subscriber {brief(name)}")
            cursor = choose(row[1])
            if cursor != row[1]:
                self._writer.move_cursors([(row[0], cursor)])
            return self._write(cursor)

        task = CursorTask(apply)
        self._committer.submit(task)
        return task.future

    def _refuse_without_space(self) -> None:
        if not self._chores.has_space():
            raise OutOfSpace(
                f"less than {self._options.space_bytes_min:,} bytes are free on the disk: only "
                "cursors and deletions are stored"
            )

    # Reads

    @property
    def head(self) -> str:
        """The position of the last entry of the log."""
        return self._write(self._head)

    def _write(self, number: int) -> str:
        return self._writer.epochs.write(number)

    def _read_position(self, text: str, place: str = "position") -> int:
        return self._writer.epochs.read(text, place, self._head)

    def get_subscription(self, id: str) -> dict[str, Any]:
        """Return the body of a subscription, with its id and the position of its last change."""
        found = self._reader.find_subscription(id)
        if found is None:
            raise NotFound(f"there is no subscription {brief(id)}")
        return self._show(found)

    def _show(self, found: StoredSubscription) -> dict[str, Any]:
        members = json.loads(found.body)
        shown = {"id": found.id, **members, "position": self._write(found.created)}
        if "filter" in members or GEOMETRY in members:
            return shown
        rows = self._reader.find_rows(found.number)
        return shown | {"rows": 0} if rows is None else shown | self._show_rows(rows)

    def _show_rows(self, rows: StoredRows) -> dict[str, Any]:
        shown: dict[str, Any] = {"rows": rows.length}
        with suppress(FileNotFoundError):  # others have taken their place meanwhile
            written = (self.folder / ROWS_FOLDER / rows.file).stat()
            shown["rows_time"] = write_time(written.st_mtime_ns // 1_000)
        return shown

    def list_subscriptions(
        self, *, after: str | None = None, limit: int = 100, subscriber: str | None = None
    ) -> dict[str, Any]:
        """List subscriptions by id, those of one subscriber or all; `next` is where to go on."""
        limit = _read_limit(limit)
        number = None if subscriber is None else self._find(subscriber).number
        found, has_more = self._reader.list_subscriptions(after or "", limit, number)
        shown = [self._show(each) for each in found]
        return {"subscriptions": shown, "next": found[-1].id if has_more else None}

    def get_subscriber(self, name: str) -> dict[str, Any]:
        """Return what there is to know of a subscriber: its cursor, and what waits for it."""
        return self._show_subscriber(self._find(name))

    def _find(self, name: str) -> StoredSubscriber:
        found = self._reader.find_subscriber(name)
        if found is None:
            raise NotFound(f"there is no subscriber {brief(name)}")
        return found

    def _show_subscriber(self, found: StoredSubscriber) -> dict[str, Any]:
        waiting, since_us = 0, None
        if self._watchers.has_after(found.number, found.cursor):
            waiting, since_us = self._reader.count_waiting(
                found.number, found.cursor, self._head, _WAITING_MAX
            )
        return {
            "name": found.name,
            "cursor": self._write(found.cursor),
            "waiting": waiting,
            **({} if since_us is None else {"waiting_since": write_time(since_us)}),
            "gone": found.lost,
            **self.webhooks.describe(found.number),
        }

    def list_subscribers(self, *, after: str | None = None, limit: int = 100) -> dict[str, Any]:
        """List subscribers by name; `next` is where to go on."""
        limit = _read_limit(limit)
        found = self._reader.list_subscribers(after or "", limit + 1)
        shown = [self._show_subscriber(each) for each in found[:limit]]
        return {"subscribers": shown, "next": found[limit - 1].name if found[limit:] else None}

    def read_deliveries(
        self, subscriber: str, *, after: str | None = None, limit: int = 100
    ) -> DeliveryPage:
        """Return the next deliveries of a subscriber after a position, or after its cursor.

        The page is empty only where nothing more is there yet.
        """
        limit = _read_limit(limit)
        found = self._find(subscriber)
        start = found.cursor if after is None else self._read_position(after, "after")
        head = self._head
        gap, floor = None, found.floor
        if start < floor:
            if found.lost or start < found.cursor:  # or else all that is gone was for others
                count = found.lost if start == found.cursor else None
                gap = DeliveryGap(self._write(floor), count)
            start = floor
        if not self._watchers.has_after(found.number, start):
            return DeliveryPage([], self._write(max(start, head)), True, gap)
        stored, end, floor = self._reader.read_page(found.number, start, head, limit)
        if start < floor:  # a block was dropped in between
            return self.read_deliveries(subscriber, after=after, limit=limit)
        deliveries = [
            write_delivery(each, self._write(each.position), subscriber, self._names)
            for each in stored
        ]
        return DeliveryPage(deliveries, self._write(end), end >= head, gap)

    def watch(self, subscriber: str, wake: Callable[[], object]) -> Callable[[], None]:
        """Call a function after each commit that has deliveries for a subscriber, until stopped."""
        return self._watchers.watch(self._find(subscriber).number, wake)

    def explain(self, body: Any) -> dict[str, Any]:
        """Explain a subscription that is not stored: its filters, and what finds it."""
        return explain_body(body, self._standing)

    def match(self, body: Any) -> dict[str, Any]:
        """Match an event that is not stored; of named ids, say why they match or not."""
        return self._questions.match(body)

    def counts(self) -> dict[str, int | float]:
        """Count what was done since the start, and what there is."""
        return {
            **self._counts,
            **{f"positions_{name}": count for name, count in self._tracks.tracks.stats().items()},
            "commits": self._committer.commits,
            "events_waiting": self._committer.events_waiting,
            "readers_waiting": self._watchers.count(),
            "clock_has_jumped": int(self._clock.has_jumped),
            "head": self._head,
            "log_bytes": sum(block.nbytes for block in self._writer.list_blocks()),
            "rows_bytes": count_rows_bytes(self.folder),
            **self._reader.sum_facts(),
        }

    def describe(self) -> dict[str, Any]:
        """Describe the log: its head and its epoch."""
        return {"head": self.head, "epoch": self._writer.epochs.names[-1]}


def _read_limit(limit: Any) -> int:
    if not isinstance(limit, int) or not 1 <= limit <= PAGE_DELIVERIES_MAX:
        raise InvalidInput(
            f"must be a number from 1 to {PAGE_DELIVERIES_MAX} (PAGE_DELIVERIES_MAX), not "
            f"{brief(limit)}",
            place="limit",
        )
    return limit
