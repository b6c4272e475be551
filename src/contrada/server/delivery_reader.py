"""One reader's way through the deliveries of a subscriber: a page, and a wait for the next.

Nothing is held between two pages but a position, so a slow reader costs no memory, and no read
keeps the log open: it gets its next page when it is ready for it.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from contrada.broker.broker import Broker
from contrada.broker.deliveries import DeliveryPage
from contrada.server.json_answers import write_json
from contrada.server.service import Service
from contrada.server.waker import Waker


class DeliveryReader:
    """Reads the deliveries of one subscriber from a position on, without moving its cursor."""

    def __init__(
        self, service: Service, broker: Broker, subscriber: str, after: str | None
    ) -> None:
        """Begin after a position, or at the cursor."""
        self._service, self._broker = service, broker
        self.subscriber, self.position = subscriber, after
        self._waker = Waker()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Be woken by commits that have deliveries for the subscriber."""
        stop = self._broker.watch(self.subscriber, self._waker)
        try:
            yield
        finally:
            stop()

    async def probe(self) -> None:
        """Refuse a subscriber or a position that cannot be read."""
        await self._service.read(
            self._broker.read_deliveries, self.subscriber, after=self.position, limit=1
        )

    async def read(self, limit: int, wait_s: float = 0.0) -> DeliveryPage:
        """Return the next page; one without deliveries only if none came in time."""
        end = time.monotonic() + wait_s
        while True:
            self._waker.clear()
            page = await self._service.read(
                self._broker.read_deliveries, self.subscriber, after=self.position, limit=limit
            )
            self.position = page.next
            if page.deliveries or page.gap is not None:
                return page
            left_s = end - time.monotonic()
            if page.is_end and (left_s <= 0 or not await self._waker.wait(left_s)):
                return page


def write_page(page: DeliveryPage) -> bytes:
    """Write a page as JSON; its deliveries are JSON already."""
    members = {"next": page.next} | ({} if page.gap is None else {"gap": describe_gap(page)})
    deliveries = b",".join(delivery.json for delivery in page.deliveries)
    return b'{"deliveries":[' + deliveries + b"]," + write_json(members)[1:]


def describe_gap(page: DeliveryPage) -> dict[str, Any]:
    """Return what a reader must know of deliveries that are no longer kept, and of how many."""
    assert page.gap is not None
    count = {} if page.gap.deliveries is None else {"deliveries": page.gap.deliveries}
    return {"until": page.gap.until} | count
