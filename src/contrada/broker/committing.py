"""The thread that commits: what waits is taken together, and put on disk in one go.

Whatever comes in is answered in order. Events and cursors that wait together are one transaction,
and so are changes; between the two a transaction ends, since events are matched against the changes
before them. A commit that the disk has no room for fails what is in it, and nothing else; one whose
sync fails ends the process, since nobody knows then what is on disk.
"""

import logging
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any, TypeVar

from contrada.broker.broker_options import BrokerOptions
from contrada.broker.commit_tasks import (
    ChangeOutcome,
    ChangeTask,
    CommitTask,
    CursorTask,
    PublishTask,
)
from contrada.broker.event_storing import EventStoring, StoredEvents
from contrada.broker.log_writing import LogWriter, is_disk_full, is_sync_failure
from contrada.broker.steady_clock import SteadyClock
from contrada.errors import ContradaError, OutOfSpace, Overloaded, Unavailable

_log = logging.getLogger(__name__)
_TASKS_MAX = 4_096  # in one transaction
_EVENTS_MAX = 8_192
_IDLE_S = 1.0

Fatal = Callable[[str], object]
_SameTask = TypeVar("_SameTask", bound=CommitTask)


class Committer:
    """Commits what is handed in, in a thread of its own; `chores` run between commits."""

    def __init__(
        self,
        writer: LogWriter,
        storing: EventStoring,
        clock: SteadyClock,
        options: BrokerOptions,
        *,
        on_commit: Callable[[], object],
        on_stored: Callable[[StoredEvents], object],
        expire: Callable[[], object],
        chores: Callable[[], float],
        on_fatal: Fatal,
    ) -> None:
        """Take what commits; `expire` ends what has expired before events are matched.

        `chores` returns in how many seconds it wants to run again.

        After a commit of events `on_stored` hears whose they are, then `on_commit` that there was
        one, and only then whoever waits for an answer.
        """
        self._writer, self._storing, self._clock = writer, storing, clock
        self._options = options
        self._on_commit, self._on_stored = on_commit, on_stored
        self._expire, self._chores, self._on_fatal = expire, chores, on_fatal
        self._tasks: queue.SimpleQueue[CommitTask | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._events_waiting = self._bytes_waiting = 0
        self._is_closed = False
        self._next_chores = 0.0
        self.commits = 0
        self._thread = threading.Thread(target=self._run, name="contrada-commit", daemon=True)

    def start(self) -> None:
        """Begin to commit."""
        self._thread.start()

    def close(self) -> None:
        """Commit what waits, then end."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            self._tasks.put(None)
        self._thread.join()

    @property
    def events_waiting(self) -> int:
        """How many events wait to be stored."""
        return self._events_waiting

    def submit(self, task: CommitTask) -> None:
        """Hand in what is to be committed; too much at once is refused."""
        events, nbytes = _weigh(task)
        events_max, bytes_max = self._options.queue_events_max, self._options.queue_bytes_max
        with self._lock:
            if self._is_closed:
                raise Unavailable("the broker is closing")
            is_full = (
                self._events_waiting + events > events_max
                or self._bytes_waiting + nbytes > bytes_max
            )
            if events and self._events_waiting and is_full:
                raise Overloaded(
                    f"{self._events_waiting:,} events wait to be stored, and no more can "
                    f"(at most {events_max:,}, of {bytes_max:,} bytes)"
                )
            self._events_waiting += events
            self._bytes_waiting += nbytes
            self._tasks.put(task)

    # In the thread

    def _run(self) -> None:
        try:
            while self._turn():
                pass
        except BaseException as fault:
            _log.exception("the thread that commits has failed")
            self._on_fatal(f"the thread that commits has failed: {fault}")

    def _turn(self) -> bool:
        """Commit what waits, then do chores; return whether to go on."""
        tasks, goes_on = self._gather()
        for has_changes, group in groupby(tasks, lambda task: isinstance(task, ChangeTask)):
            own = list(group)
            if has_changes:
                self._commit_changes([task for task in own if isinstance(task, ChangeTask)])
            else:
                self._commit_events(own)
        if not tasks or time.monotonic() >= self._next_chores or not goes_on:
            self._next_chores = time.monotonic() + self._chores()
            self._on_commit()
        return goes_on

    def _gather(self) -> tuple[list[CommitTask], bool]:
        """Wait for something to commit, or until chores are due, and take all that waits."""
        tasks: list[CommitTask] = []
        events = 0
        try:
            pause_s = min(max(self._next_chores - time.monotonic(), 0.001), _IDLE_S)
            task = self._tasks.get(timeout=pause_s)
            while True:
                if task is None:
                    return [*tasks, *self._rest()], False
                tasks.append(task)
                events += _weigh(task)[0]
                if len(tasks) >= _TASKS_MAX or events >= _EVENTS_MAX:
                    break
                task = self._tasks.get_nowait()
        except queue.Empty:
            pass
        return tasks, True

    def _rest(self) -> Iterator[CommitTask]:
        while True:
            try:
                task = self._tasks.get_nowait()
            except queue.Empty:
                return
            if task is not None:
                yield task

    def _commit_events(self, tasks: Sequence[CommitTask]) -> None:
        publishing = [task for task in tasks if isinstance(task, PublishTask)]
        cursors = [task for task in tasks if isinstance(task, CursorTask)]
        if publishing:
            self._expire()  # what has ended matches nothing any more
        answers: list[tuple[CommitTask, Any]] = []
        stored: StoredEvents | None = None

        def write(now_us: int) -> None:
            nonlocal stored
            if publishing:
                stored = self._storing.store(publishing, now_us)
                answers.extend(zip(publishing, stored.answers, strict=True))
            answers.extend((task, self._try(task.apply, now_us)) for task in cursors)

        if self._transact(tasks, write, self._commit_events):
            if stored is not None:
                self._on_stored(stored)
            self._on_commit()
            _answer(answers)
        elif len(tasks) > 1:
            return  # each was tried alone
        self._take_off(publishing)

    def _commit_changes(self, tasks: Sequence[ChangeTask]) -> None:
        outcomes: list[tuple[CommitTask, Any]] = []

        def write(now_us: int) -> None:
            for task in tasks:
                self._writer.connection.execute("SAVEPOINT change")
                head = self._writer.head
                outcome = self._try(task.apply, now_us)
                if isinstance(outcome, Exception):
                    self._writer.connection.execute("ROLLBACK TO change")
                    self._writer.head = head
                self._writer.connection.execute("RELEASE change")
                outcomes.append((task, outcome))

        if not self._transact(tasks, write, self._commit_changes):
            return
        for _, outcome in outcomes:
            if isinstance(outcome, ChangeOutcome) and outcome.then is not None:
                outcome.then()
        self._on_commit()
        _answer([(task, o.answer if isinstance(o, ChangeOutcome) else o) for task, o in outcomes])

    def _try(self, apply: Callable[[int], Any], now_us: int) -> Any:
        try:
            return apply(now_us)
        except ContradaError as error:
            return error

    def _transact(
        self,
        tasks: Sequence[_SameTask],
        write: Callable[[int], object],
        again: Callable[[Sequence[_SameTask]], object],
    ) -> bool:
        """Write in one transaction; where that fails each task is tried alone, and then fails."""
        try:
            self._writer.begin()
            write(self._clock.now_us())
            self._writer.commit(self._clock.lived_us())
        except Exception as fault:
            if is_sync_failure(fault):
                self._on_fatal(f"what was written is perhaps not on disk: {fault}")
            self._writer.rollback()
            if len(tasks) > 1:
                for task in tasks:
                    again([task])
                return False
            error = _blame(fault)
            if not isinstance(error, ContradaError):
                _log.exception("nothing was stored")
            _answer([(tasks[0], error)])
            return False
        self.commits += 1
        return True

    def _take_off(self, tasks: Sequence[PublishTask]) -> None:
        with self._lock:
            for task in tasks:
                events, nbytes = _weigh(task)
                self._events_waiting -= events
                self._bytes_waiting -= nbytes


def _weigh(task: CommitTask | None) -> tuple[int, int]:
    if not isinstance(task, PublishTask):
        return 0, 0
    return len(task.events.texts), task.nbytes


def _answer(answers: Sequence[tuple[CommitTask, Any]]) -> None:
    """Let whoever waits know; nobody may wait any more."""
    for task, answer in answers:
        if not task.future.set_running_or_notify_cancel():
            continue
        if isinstance(answer, BaseException):
            task.future.set_exception(answer)
        else:
            task.future.set_result(answer)


def _blame(fault: Exception) -> Exception:
    """Make an error of ours, but of what is a mistake of ours."""
    if is_disk_full(fault):
        return OutOfSpace("the disk is full: nothing was stored")
    if isinstance(fault, MemoryError):
        return Unavailable(f"there is not enough memory: {fault}".rstrip(": "))
    if isinstance(fault, sqlite3.OperationalError):
        return Unavailable(f"nothing was stored: {fault}")
    return fault
