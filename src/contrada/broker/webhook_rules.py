"""What follows from each answer of a webhook's receiver: a state machine without clock or chance.

A webhook sends one request at a time, and its *state* says what is to be sent next and when. Each
answer, or the lack of one, leads to a *verdict* and to the next state:

| answer | verdict | then |
| --- | --- | --- |
| 2xx | accepted | the next, at once |
| none, 3xx, 5xx, 408, 425, 429 | wait | the same again, later, for as long as it takes |
| 410 | pause | nothing, until the webhook is put again |
| other 4xx | wait; at the fifth refusal dead | the same again, later; then the next, at once |

Waits double from failure to failure up to a limit, each shortened by chance so that webhooks which
failed together do not come back together; `Retry-After` makes them longer. What refuses one event
loses little time over it, what refuses everything is asked ever more seldom, since the wait only
begins anew after a 2xx. The *breaker* opens after some failures in a row that were not refusals:
until the endpoint answers again it is tried no more often than every so many seconds.

A batch that is refused is sent again one by one, so that only what is refused by itself becomes a
dead letter. One that took too long is sent again as its first half, and grows back later. Any other
batch is sent again just as it was, so that its id stays. A ping is never a dead letter; a new
webhook sends nothing else until its ping was accepted.

Time is an argument, in seconds since 1970, and so is the source of random numbers.
"""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC
from email.utils import parsedate_to_datetime
from enum import StrEnum
from random import Random
from typing import Any

_SECONDS = re.compile(r"[0-9]{1,9}")
_RETRY_STATUSES = {408, 425, 429}  # 4xx that speak of the moment, not of what was sent
_DOUBLINGS_MAX = 30


class WebhookPhase(StrEnum):
    """How far a webhook has come with its target."""

    NEW = "new"  # its target has not yet accepted a ping
    ACTIVE = "active"
    PAUSED = "paused"  # its target said that it is gone


class Verdict(StrEnum):
    """What an answer means for what was sent."""

    ACCEPTED = "accepted"
    WAIT = "wait"
    DEAD = "dead"
    PAUSE = "pause"


@dataclass(frozen=True, slots=True)
class RetryTiming:
    """How long a webhook waits, and how often it is refused."""

    wait_s: float = 1.0  # after the first failure
    wait_s_max: float = 60.0
    retry_after_s_max: float = 3_600.0  # of what a receiver asks for
    refusals_max: int = 5
    breaker_failures: int = 5
    breaker_wait_s: float = 30.0  # at the least, while the breaker is open


@dataclass(frozen=True, slots=True)
class WebhookState:
    """What is remembered of a webhook between two requests, and over a restart.

    `failures` counts since the last 2xx, `downs` the last ones in a row that were no refusals, and
    `refusals` those of what has the id `refused`. `again` says how many deliveries are sent again
    as they were, `size` how many are sent at the most, and `singly` how many of a batch that was
    refused are still to be sent one by one; 0 stands for no such rule. Times are in seconds since
    1970; `not_before` is when the next request is due.
    """

    phase: WebhookPhase = WebhookPhase.NEW
    failures: int = 0
    downs: int = 0
    refusals: int = 0
    refused: str = ""
    again: int = 0
    size: int = 0
    singly: int = 0
    not_before: float = 0.0
    is_breaker_open: bool = False
    last_success: float | None = None
    last_failure: float | None = None
    last_error: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the state as a JSON object."""
        return asdict(self)

    @classmethod
    def from_json(cls, members: Mapping[str, Any]) -> "WebhookState":
        """Read a state that was written as JSON; members of another version are passed over."""
        known = {field.name for field in fields(cls)}
        values = {name: value for name, value in members.items() if name in known}
        return cls(**values | {"phase": WebhookPhase(values.get("phase", WebhookPhase.NEW))})

    def count_to_send(self, batch: int) -> int:
        """Return how many deliveries the next request may have, of `batch` at the most."""
        if self.singly:
            return 1
        return min(filter(None, (self.again, self.size, batch)))

    def wait_s(self, now: float, timing: RetryTiming) -> float:
        """Return how long to wait for the next request; never long if the clock was put back."""
        longest = 2 * max(timing.wait_s_max, timing.breaker_wait_s, timing.retry_after_s_max)
        return max(0.0, min(self.not_before - now, longest))


@dataclass(frozen=True, slots=True)
class WebhookRequest:
    """What was sent, as far as it matters here; `count` is 0 unless it was deliveries.

    `is_ping` and `is_letter`, one dead letter that is sent again, say what else it was.
    """

    id: str
    count: int = 0
    is_ping: bool = False
    is_letter: bool = False


@dataclass(frozen=True, slots=True)
class WebhookReply:
    """What came back: a status, or the lack of one; `problem` says in words what was wrong.

    `is_late` means that the request went out and that no status came in time.
    """

    status: int | None = None
    problem: str = ""
    retry_after_s: float | None = None
    is_late: bool = False


def settle(
    state: WebhookState,
    request: WebhookRequest,
    reply: WebhookReply,
    *,
    batch: int,
    now: float,
    random: Random,
    timing: RetryTiming,
) -> tuple[Verdict, WebhookState]:
    """Decide what a reply means for what was sent, and what the state is after it."""
    status = reply.status
    if status is not None and 200 <= status < 300:
        return Verdict.ACCEPTED, _accept(state, request, batch, now)
    failed = replace(
        state,
        failures=state.failures + 1,
        last_failure=now,
        last_error=reply.problem or f"answered {status}",
    )
    if status == 410:
        return Verdict.PAUSE, replace(failed, phase=WebhookPhase.PAUSED)
    if status is not None and 400 <= status < 500 and status not in _RETRY_STATUSES:
        return _refuse(failed, request, reply, now, random, timing)
    downs = state.downs + 1
    failed = replace(failed, downs=downs, is_breaker_open=downs >= timing.breaker_failures)
    if request.count:
        is_cut = reply.is_late and request.count > 1
        half = request.count // 2
        failed = replace(failed, size=half, again=half) if is_cut else _repeat(failed, request)
    return Verdict.WAIT, _wait(failed, reply, now, random, timing)


def _accept(state: WebhookState, request: WebhookRequest, batch: int, now: float) -> WebhookState:
    state = replace(
        state,
        phase=WebhookPhase.ACTIVE,
        failures=0,
        downs=0,
        refusals=0,
        refused="",
        not_before=0.0,
        is_breaker_open=False,
        last_success=now,
    )
    if request.count and state.size and not state.singly:
        size = 2 * state.size
        state = replace(state, size=size if size < batch else 0)
    return _pass_over(state, request)


def _pass_over(state: WebhookState, request: WebhookRequest) -> WebhookState:
    """Count what need not be sent any more."""
    if not request.count:
        return state
    return replace(state, again=0, singly=max(0, state.singly - request.count))


def _refuse(
    state: WebhookState,
    request: WebhookRequest,
    reply: WebhookReply,
    now: float,
    random: Random,
    timing: RetryTiming,
) -> tuple[Verdict, WebhookState]:
    """Count a refusal: it shows that the endpoint is there."""
    state = replace(state, downs=0, is_breaker_open=False)
    if request.count > 1:
        singly = replace(state, singly=request.count, again=0, refusals=0, refused="")
        return Verdict.WAIT, _wait(singly, reply, now, random, timing)
    refusals = state.refusals + 1 if state.refused == request.id else 1
    if refusals >= timing.refusals_max and not request.is_ping:
        state = replace(state, refusals=0, refused="", not_before=0.0)
        return Verdict.DEAD, _pass_over(state, request)
    state = replace(_repeat(state, request), refusals=refusals, refused=request.id)
    return Verdict.WAIT, _wait(state, reply, now, random, timing)


def _repeat(state: WebhookState, request: WebhookRequest) -> WebhookState:
    return replace(state, again=request.count) if request.count else state


def _wait(
    state: WebhookState, reply: WebhookReply, now: float, random: Random, timing: RetryTiming
) -> WebhookState:
    """Put the next request off: chance shortens a wait of ours, and lengthens one asked for."""
    doublings = min(state.failures - 1, _DOUBLINGS_MAX)
    wait_s = min(timing.wait_s * 2**doublings, timing.wait_s_max)
    asked_s = min(reply.retry_after_s or 0.0, timing.retry_after_s_max)
    if state.is_breaker_open:
        asked_s = max(asked_s, timing.breaker_wait_s)
    wait_s = max(wait_s * random.uniform(0.5, 1.0), asked_s * random.uniform(1.0, 1.1))
    return replace(state, not_before=now + wait_s)


def begin_anew(state: WebhookState, *, is_other_target: bool) -> WebhookState:
    """Return the state of a webhook that was put again: what it waited for, it tries at once."""
    if is_other_target:
        return WebhookState()
    return replace(
        state,
        phase=WebhookPhase.NEW if state.phase is WebhookPhase.PAUSED else state.phase,
        failures=0,
        downs=0,
        refusals=0,
        refused="",
        not_before=0.0,
        is_breaker_open=False,
    )


def read_retry_after(text: str | None, now: float) -> float | None:
    """Return the seconds that a header `Retry-After` asks for; None for what is neither form."""
    text = (text or "").strip()
    if _SECONDS.fullmatch(text):
        return float(text)
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    try:
        return max(0.0, moment.timestamp() - now)
    except (OverflowError, ValueError):
        return None
