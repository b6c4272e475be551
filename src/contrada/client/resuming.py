"""A listener's way through deliveries: what it reads next, and what it acknowledges.

It asks for a page when the one before is used up, so it never holds more than one, and what it has
not asked for waits on the broker's disk. Nothing is lost with a connection: the next request begins
after the last page.
"""

from collections.abc import Callable
from contextlib import suppress

from contrada.client.calls import move, read_deliveries
from contrada.client.exchange import Steps
from contrada.client.received import MissedDeliveries, ReceivedPage
from contrada.client.retrying import FOR_EVER, ONCE, Persistence
from contrada.errors import ContradaError, Gone

_WAIT_S = 25.0  # shorter than what proxies allow a request to take
_ACK_INTERVAL_S = 1.0

HearGap = Callable[[MissedDeliveries], object]


class ListeningPlace:
    """Where one listener is, and how far it has come with what it was given."""

    def __init__(
        self,
        subscriber: str,
        after: str | None,
        limit: int,
        auto_ack: bool,
        on_gap: HearGap | None,
        persistence: Persistence,
    ) -> None:
        """Begin after a position, or at the subscriber's cursor."""
        self._subscriber, self._after, self._limit = subscriber, after, limit
        self._auto_ack, self._on_gap = auto_ack, on_gap
        self._persistence = self._first_persistence = persistence
        self._used = self._acknowledged = ""
        self._acknowledged_at: float | None = None

    def read(self) -> Steps[ReceivedPage]:
        """Wait for the next page; the first is not waited for beyond the client's retries."""
        page = yield from read_deliveries(
            self._subscriber, self._after, self._limit, _WAIT_S, self._persistence
        )
        self._persistence = FOR_EVER  # a broker that was there once will be back
        if page.gap is not None:
            self._hear_gap(page.gap)
        self._after = page.next
        return page

    def _hear_gap(self, gap: MissedDeliveries) -> None:
        if self._on_gap is None:
            some = "deliveries" if gap.deliveries is None else f"{gap.deliveries:,} deliveries"
            raise Gone(
                f"{some} up to position {gap.until} are no longer kept; with on_gap=… a listener "
                "hears of that and goes on after them"
            )
        self._on_gap(gap)

    def use(self, position: str, now: float, *, is_last: bool) -> Steps[None]:
        """Note that a delivery was used; acknowledge at the end of a page, or after a while."""
        self._used = position
        if self._acknowledged_at is None:
            self._acknowledged_at = now
        if self._auto_ack and (is_last or now - self._acknowledged_at > _ACK_INTERVAL_S):
            yield from self._acknowledge(self._first_persistence)
            self._acknowledged_at = now

    def leave(self) -> Steps[None]:
        """Acknowledge what was used, if the broker can be reached just now."""
        if self._auto_ack and self._used != self._acknowledged:
            with suppress(ContradaError):
                yield from self._acknowledge(ONCE)

    def _acknowledge(self, persistence: Persistence) -> Steps[None]:
        yield from move(self._subscriber, "ack", {"position": self._used}, persistence)
        self._acknowledged = self._used
