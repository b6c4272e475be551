"""When a request is sent again: only where that is safe, not for ever, and not at once.

It is safe where the broker cannot have done anything, as no connection came about or it said that
it is too busy, and otherwise where a request is repeatable. The pauses double, with jitter, so that
clients which failed together do not come back together; a broker that asks for a longer pause gets
it, up to `PAUSE_S_MAX`.
"""

from dataclasses import dataclass
from secrets import SystemRandom

from contrada.client.exchange import BrokerRequest, HttpAnswer, NoAnswer, Pause, Steps
from contrada.client.refusals import retry_after_s
from contrada.errors import Unavailable

RETRIES = 5
PAUSE_S_MAX = 60.0
_FIRST_S, _LONGEST_S = 0.1, 10.0
_BUSY = frozenset({429, 503})
_LOST = frozenset({408, 502, 504})  # of proxies, which do not know what became of the request
_RANDOM = SystemRandom()


@dataclass(slots=True)
class Attempts:
    """How often one request was sent, and whether an answer may have been lost; None: no end."""

    most: int | None
    failed: int = 0
    has_lost: bool = False

    def pause(self, at_least_s: float = 0.0) -> Pause | None:
        """Return how long to wait before the next one; None after the last."""
        self.failed += 1
        if at_least_s > PAUSE_S_MAX or (self.most is not None and self.failed > self.most):
            return None
        longest = min(_LONGEST_S, _FIRST_S * 2 ** min(self.failed, 10))
        return Pause(at_least_s + _RANDOM.uniform(longest / 2, longest))


def ask(request: BrokerRequest, attempts: Attempts) -> Steps[HttpAnswer]:
    """Send a request until it is answered, or cannot be sent again."""
    while True:
        outcome: HttpAnswer | NoAnswer = yield request
        pause = _plan_next(request, outcome, attempts)
        if pause is not None:
            yield pause
        elif isinstance(outcome, NoAnswer):
            raise Unavailable(outcome.reason)
        else:
            return outcome


def _plan_next(
    request: BrokerRequest, outcome: HttpAnswer | NoAnswer, attempts: Attempts
) -> Pause | None:
    if isinstance(outcome, NoAnswer):
        is_lost, wait_s = outcome.is_sent, 0.0
    elif outcome.status in _LOST:
        is_lost, wait_s = True, retry_after_s(outcome) or 0.0
    elif outcome.status in _BUSY:
        is_lost, wait_s = False, retry_after_s(outcome) or 0.0
    else:
        return None
    attempts.has_lost |= is_lost
    return None if is_lost and not request.is_repeatable else attempts.pause(wait_s)
