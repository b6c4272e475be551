"""What a broker stores of webhooks: targets, secrets and states.

A subscriber whose row is here is not read but called. Its *revision* is another one each time it is
put: what became of a request is stored only if revision and cursor are still those that it was sent
with, so that a webhook which was put anew, or whose cursor was moved, begins from there whatever
was under way. State, cursor and dead letter are one transaction.

A secret that is replaced is valid for another day. Secrets are stored as they are, since they must
sign; no answer shows one but that to the `PUT` which made it.
"""

import json
import secrets as randomness
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any

from contrada.broker.commit_tasks import Changed, ChangeOutcome, CommitTask, CursorTask
from contrada.broker.dead_letters import DeadLetters
from contrada.broker.deliveries import write_time
from contrada.broker.log_reading import LogReader
from contrada.broker.log_writing import LogWriter
from contrada.broker.webhook_bodies import WebhookBody
from contrada.broker.webhook_rules import WebhookPhase, WebhookState, begin_anew
from contrada.signatures import make_secret

ROTATION_S = 86_400.0  # a secret that was replaced is valid for as long
_OLD_SECRETS_MAX = 3
_US = 1_000_000


@dataclass(frozen=True, slots=True)
class Webhook:
    """A webhook as it is stored; `secrets` are those that are valid, the newest first.

    `number` and `revision` are for the store alone. `letters_due` says that there are dead letters
    to be sent again.
    """

    subscriber: str
    number: int
    revision: int
    url: str
    batch: int
    secrets: tuple[str, ...] = field(repr=False)
    state: WebhookState
    cursor: str
    letters_due: bool = False


@dataclass(frozen=True, slots=True)
class WebhookResult:
    """What became of a request: the next state, and what to do with what was sent.

    `cursor` is where it moves to, `dead` the position of a delivery that is to be a dead letter,
    for the reason `state.last_error`, `accepted` that of a dead letter which was accepted. `told`
    counts deliveries which are no longer kept, as the receiver now knows.
    """

    state: WebhookState
    cursor: str | None = None
    dead: str | None = None
    accepted: str | None = None
    told: int = 0


class WebhookStore:
    """The webhooks of one broker; reads and `settle` from any thread."""

    def __init__(
        self,
        writer: LogWriter,
        reader: LogReader,
        submit: Callable[[CommitTask], object],
        letters: DeadLetters,
    ) -> None:
        """Take what writes, what reads, what commits, and where refused deliveries go."""
        self._writer, self._reader, self._submit = writer, reader, submit
        self.letters = letters
        self.check_url: Callable[[str], object] | None = None  # raises where it may not be called
        self._watching: dict[object, Callable[[str], object]] = {}
        self._lock = threading.Lock()

    # Who wants to know of changes

    def watch(self, wake: Callable[[str], object]) -> Callable[[], None]:
        """Call a function with the name of each subscriber whose webhook changes, until stopped."""
        token = object()
        with self._lock:
            self._watching[token] = wake

        def stop() -> None:
            with self._lock:
                self._watching.pop(token, None)

        return stop

    def notify(self, name: str) -> None:
        """Let whoever calls webhooks look again at that of a subscriber, which may have none."""
        with self._lock:
            wakes = list(self._watching.values())
        for wake in wakes:
            wake(name)

    # In the thread that commits

    def put(
        self,
        name: str,
        wanted: WebhookBody | None,
        by: str | None,
        now_us: int,
        begun: ChangeOutcome,
    ) -> ChangeOutcome:
        """Let a subscriber, which has just begun or was there, have a webhook or none.

        `begun` is what was made of the subscriber itself. The answer has a secret that was made.
        """
        execute = self._writer.connection.execute
        (number,) = execute("SELECT number FROM subscribers WHERE name = ?", (name,)).fetchone()
        row = execute(
            "SELECT url, batch, secrets, state FROM webhooks WHERE subscriber = ?", (number,)
        ).fetchone()
        if wanted is None:
            return begun if row is None else self._remove(name, number, by, now_us, begun)
        known = (
            None
            if row is None
            else _Stored(row[0], row[1], json.loads(row[2]), _read_state(row[3]))
        )
        if self.check_url is not None:
            self.check_url(wanted.url)
        secrets, made = _choose_secrets(known.secrets if known else [], wanted, now_us / _US)
        is_equal = known is not None and (known.url, known.batch) == (wanted.url, wanted.batch)
        is_equal = is_equal and known is not None and secrets == known.secrets
        if is_equal and known is not None and not known.is_in_trouble:
            return begun
        state = WebhookState()
        if known is not None:
            state = begin_anew(known.state, is_other_target=known.url != wanted.url)
        execute(
            "REPLACE INTO webhooks VALUES (?, ?, ?, ?, ?, ?)",
            (
                number,
                randomness.randbits(62),
                wanted.url,
                wanted.batch,
                json.dumps(secrets),
                json.dumps(state.to_json()),
            ),
        )
        was_paused = known is not None and known.state.phase is WebhookPhase.PAUSED
        if is_equal and not was_paused:  # nothing changes, but what waits is tried at once
            return _then(begun, lambda: self.notify(name))
        return self._record(
            "put_webhook", name, by, now_us, begun, {"secret": made} if made else {}
        )

    def _remove(
        self, name: str, number: int, by: str | None, now_us: int, begun: ChangeOutcome
    ) -> ChangeOutcome:
        self._writer.connection.execute("DELETE FROM webhooks WHERE subscriber = ?", (number,))
        return self._record("delete_webhook", name, by, now_us, begun, {})

    def _record(
        self,
        change: str,
        name: str,
        by: str | None,
        now_us: int,
        begun: ChangeOutcome,
        details: dict[str, Any],
    ) -> ChangeOutcome:
        facts = {"change": change, "name": name} | ({} if by is None else {"by": by})
        position = self._writer.epochs.write(self._writer.add_change(now_us, facts))
        changed = Changed(
            position, begun.answer.is_new, details={**begun.answer.details, **details}
        )
        return _then(replace(begun, answer=changed), lambda: self.notify(name))

    def end(self, name: str, finish: Callable[[], ChangeOutcome]) -> ChangeOutcome:
        """Forget the webhook and the dead letters of a subscriber, which `finish` then ends."""
        execute = self._writer.connection.execute
        row = execute("SELECT number FROM subscribers WHERE name = ?", (name,)).fetchone()
        if row is not None:
            execute("DELETE FROM webhooks WHERE subscriber = ?", row)
            self.letters.remove_all(row[0])
        return _then(finish(), lambda: self.notify(name))

    # What became of requests

    def settle(self, webhook: Webhook, result: WebhookResult) -> "Future[bool]":
        """Store what became of a request; false if the webhook or its cursor is another by now."""
        task = CursorTask(lambda now_us: self._settle(webhook, result, now_us))
        self._submit(task)
        return task.future

    def _settle(self, webhook: Webhook, result: WebhookResult, now_us: int) -> bool:
        execute, number = self._writer.connection.execute, webhook.number
        row = execute(
            "SELECT s.cursor FROM subscribers s JOIN webhooks w ON w.subscriber = s.number "
            "WHERE s.number = ? AND w.revision = ?",
            (number, webhook.revision),
        ).fetchone()
        if row is None or self._writer.epochs.write(row[0]) != webhook.cursor:
            return False
        execute(
            "UPDATE webhooks SET state = ? WHERE subscriber = ?",
            (json.dumps(result.state.to_json()), number),
        )
        if result.dead is not None:
            error = result.state.last_error or ""
            self.letters.add(number, self._read(result.dead), now_us, error)
        if result.accepted is not None:
            self.letters.remove(number, self._read(result.accepted))
        if result.cursor is not None:
            self._writer.move_cursors([(number, max(row[0], self._read(result.cursor)))])
        if result.told:
            sql = "UPDATE subscribers SET lost = max(0, lost - ?) WHERE number = ?"
            execute(sql, (result.told, number))
        return True

    def _read(self, position: str) -> int:
        return self._writer.epochs.read(position, "position", self._writer.head)

    def redrive(self, name: str, positions: Sequence[str] | None = None) -> "Future[int]":
        """Let dead letters, all or those of some positions, be sent again; return how many.

        They are tried at once, as after a `PUT`, unless the webhook is paused.
        """
        future = self.letters.redrive(name, positions, lambda: self._try_at_once(name))
        future.add_done_callback(lambda _: self.notify(name))
        return future

    def _try_at_once(self, name: str) -> None:
        execute = self._writer.connection.execute
        number, text = execute(
            "SELECT w.subscriber, w.state FROM webhooks w JOIN subscribers s "
            "ON s.number = w.subscriber WHERE s.name = ?",
            (name,),
        ).fetchone()
        state = _read_state(text)
        if state.phase is not WebhookPhase.PAUSED:
            anew = json.dumps(begin_anew(state, is_other_target=False).to_json())
            execute("UPDATE webhooks SET state = ? WHERE subscriber = ?", (anew, number))

    # Reads

    def find(self, name: str, now: float) -> Webhook | None:
        """Return the webhook of a subscriber, with the secrets that are valid at a time."""
        with self._reader.reading() as connection:
            row = connection.execute(
                "SELECT s.number, w.revision, w.url, w.batch, w.secrets, w.state, s.cursor "
                "FROM webhooks w JOIN subscribers s ON s.number = w.subscriber WHERE s.name = ?",
                (name,),
            ).fetchone()
        if row is None:
            return None
        number, revision, url, batch, secrets, state, cursor = row
        valid = tuple(secret for secret, until in json.loads(secrets) if (until or now) >= now)
        at = self._writer.epochs.write(cursor)
        _, due = self.letters.count(number)
        return Webhook(name, number, revision, url, batch, valid, _read_state(state), at, bool(due))

    def list_names(self) -> list[str]:
        """List the subscribers that have a webhook."""
        with self._reader.reading() as connection:
            rows = connection.execute(
                "SELECT s.name FROM webhooks w JOIN subscribers s ON s.number = w.subscriber"
            ).fetchall()
        return [name for (name,) in rows]

    def describe(self, number: int) -> dict[str, Any]:
        """Describe the webhook of a subscriber as a member of its answer; nothing without one."""
        with self._reader.reading() as connection:
            row = connection.execute(
                "SELECT url, batch, state FROM webhooks WHERE subscriber = ?", (number,)
            ).fetchone()
        letters, _ = self.letters.count(number)
        if row is None:
            return {"dead_letters": letters} if letters else {}
        shown = {"url": row[0], "batch": row[1], **_describe_state(_read_state(row[2]))}
        return {"webhook": {**shown, "dead_letters": letters}}


@dataclass(frozen=True, slots=True)
class _Stored:
    url: str
    batch: int
    secrets: list[list[Any]]  # each with the time until which it is valid, or None
    state: WebhookState

    @property
    def is_in_trouble(self) -> bool:
        """Whether something waits because of what was answered."""
        return self.state.failures > 0 or self.state.phase is WebhookPhase.PAUSED


def _read_state(text: str) -> WebhookState:
    return WebhookState.from_json(json.loads(text))


def _choose_secrets(
    known: list[list[Any]], wanted: WebhookBody, now: float
) -> tuple[list[list[Any]], str | None]:
    """Return the secrets to store, the newest first, and the one that was made, if any."""
    current = known[0][0] if known else None
    made = make_secret() if wanted.rotates or (wanted.secret or current) is None else None
    newest = made or wanted.secret or current
    if newest == current:
        return known, None
    old = [[secret, until or now + ROTATION_S] for secret, until in known if secret != newest]
    valid = [each for each in old if each[1] >= now]
    return [[newest, None], *valid[:_OLD_SECRETS_MAX]], made


def _describe_state(state: WebhookState) -> Mapping[str, Any]:
    """Describe a state as those see it who wonder why nothing comes."""
    times = {"last_success": state.last_success, "last_failure": state.last_failure}
    if state.not_before and state.phase is not WebhookPhase.PAUSED:
        times["next_attempt"] = state.not_before
    return {
        "state": str(state.phase),
        "breaker": "open" if state.is_breaker_open else "closed",
        "failures": state.failures,
        **{name: write_time(int(at * _US)) for name, at in times.items() if at is not None},
        **({} if state.last_error is None else {"last_error": state.last_error}),
    }


def _then(outcome: ChangeOutcome, more: Callable[[], object]) -> ChangeOutcome:
    """Let more be done once an outcome is on disk."""
    first = outcome.then

    def then() -> None:
        if first is not None:
            first()
        more()

    return replace(outcome, then=then)
