"""When a request is sent again: only where that is safe, not for ever, and not at once.

It is safe where the broker cannot have done anything, as no connection came about or it said that
it is too busy, and otherwise where a request is repeatable. The pauses double, with jitter, so that
clients which failed together do not come back together; a broker that asks for a longer pause gets
it, up to `PAUSE_S_MAX`.

A broker that restarts is waited for by time, not by number: one that says that it is starting, that
a proxy cannot reach, or that takes no connection from a client which it has answered before.
"""

from dataclasses import dataclass
from secrets import SystemRandom

from contrada.client.exchange import BrokerRequest, HttpAnswer, NoAnswer, Pause, Steps
from contrada.client.refusals import is_starting, retry_after_s
from contrada.errors import InvalidInput, Unavailable

RETRIES = 5
RESTART_S = 30.0
PAUSE_S_MAX = 60.0
_FIRST_S, _LONGEST_S = 0.1, 10.0
_LOOKING_S = 2.0  # between two looks at a broker that restarts, at the most
_BUSY = frozenset({429, 503})
_LOST = frozenset({408, 502, 504})  # of proxies, which do not know what became of the request
_NOT_REACHED = 502
_RANDOM = SystemRandom()


@dataclass(frozen=True, slots=True)
class Persistence:
    """How often a request that failed is sent again; None: no end, and 0: not at all.

    A broker that restarts is waited for until `restart_s` seconds have passed.
    """

    retries: int | None = RETRIES
    restart_s: float = RESTART_S

    def __post_init__(self) -> None:
        if not self.restart_s >= 0:
            raise InvalidInput(f"restart_s must be at least 0, not {self.restart_s}")


FOR_EVER, ONCE = Persistence(None), Persistence(0)


@dataclass(slots=True)
class Attempts:
    """How often one request was sent, and whether an answer may have been lost."""

    persistence: Persistence
    failed: int = 0
    has_lost: bool = False
    looked: int = 0
    waited_s: float = 0.0

    def pause(self, at_least_s: float = 0.0) -> Pause | None:
        """Return how long to wait before the next one; None after the last."""
        self.failed += 1
        most = self.persistence.retries
        if at_least_s > PAUSE_S_MAX or (most is not None and self.failed > most):
            return None
        return Pause(at_least_s + _draw(self.failed, _LONGEST_S))

    def wait(self, took_s: float, at_least_s: float = 0.0) -> Pause | None:
        """Return how long to wait for a broker that restarts; None once that was long enough."""
        most, self.waited_s = self.persistence.retries, self.waited_s + took_s
        is_over = self.waited_s >= self.persistence.restart_s or at_least_s > PAUSE_S_MAX
        if most == 0 or (most is not None and is_over):
            return None
        self.looked += 1
        seconds = at_least_s + _draw(self.looked, _LOOKING_S)
        self.waited_s += seconds
        return Pause(seconds)


def _draw(times: int, longest_s: float) -> float:
    longest_s = min(longest_s, _FIRST_S * 2 ** min(times, 10))
    return _RANDOM.uniform(longest_s / 2, longest_s)


def ask(request: BrokerRequest, attempts: Attempts) -> Steps[HttpAnswer]:
    """Send a request until it is answered, or cannot be sent again."""
    while True:
        outcome: HttpAnswer | NoAnswer = yield request
        pause = _plan_next(request, outcome, attempts)
        if pause is not None:
            yield pause
        elif isinstance(outcome, NoAnswer):
            waited = f", after waiting for {attempts.waited_s:.0f} s" if attempts.looked else ""
            raise Unavailable(outcome.reason + waited)
        else:
            return outcome


def _plan_next(
    request: BrokerRequest, outcome: HttpAnswer | NoAnswer, attempts: Attempts
) -> Pause | None:
    if isinstance(outcome, NoAnswer):
        is_lost, wait_s = outcome.is_sent, 0.0
        is_restart = outcome.was_there and not outcome.is_sent
    elif outcome.status in _LOST | _BUSY:
        is_lost, wait_s = outcome.status in _LOST, retry_after_s(outcome) or 0.0
        is_restart = outcome.status == _NOT_REACHED or is_starting(outcome)
    else:
        return None
    attempts.has_lost |= is_lost
    if is_lost and not request.is_repeatable:
        return None
    return attempts.wait(outcome.took_s, wait_s) if is_restart else attempts.pause(wait_s)
