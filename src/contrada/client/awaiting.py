"""`contrada.AsyncClient`: a broker's calls for asyncio."""

import asyncio
import time as clock
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from contrada.client import batching, calls, collection_rows
from contrada.client.connecting import (
    FILE_PIECE_BYTES,
    TIMEOUT_S,
    Connecting,
    read_answer,
    require_httpx,
)
from contrada.client.exchange import BrokerRequest, HttpAnswer, NoAnswer, Pause, Steps, path_of
from contrada.client.received import (
    ChangeReceipt,
    PublishReceipt,
    ReceivedDelivery,
    ReceivedLetter,
    ReceivedMatch,
    ReceivedPage,
    RowsReceipt,
    WebhookReceipt,
)
from contrada.client.resuming import HearGap, ListeningPlace
from contrada.client.retrying import RESTART_S, RETRIES, Persistence
from contrada.client.trust import Verify
from contrada.errors import InvalidInput
from contrada.model.relation import Relation

_AsyncResult = TypeVar("_AsyncResult")


class AsyncClient:
    """Talks to a broker as `Client` does, in the tasks of one event loop.

    The calls, their arguments and their errors are those of `Client`, which explains them. Those
    that return something are awaited, those that iterate are for `async for`. In the examples `run`
    is `asyncio.Runner().run`, which awaits one.

    >>> import asyncio
    >>> async def main():
    ...     async with contrada.AsyncClient() as client:
    ...         await client.put_subscription("gale", "wind > 17", subscriber="ops")
    ...         return await client.publish({"wind": 20})
    >>> asyncio.run(main()).matches
    1
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        key: str | None = None,
        timeout_s: float = TIMEOUT_S,
        retries: int = RETRIES,
        restart_s: float = RESTART_S,
        verify: Verify = True,
    ) -> None:
        """Make a client; nothing is sent before the first call."""
        require_httpx()
        import httpx

        self._connecting = Connecting.read(url, key, timeout_s, verify)
        self._persistence = Persistence(retries, restart_s)
        self._was_answered = False
        self._http = httpx.AsyncClient(**self._connecting.options())

    def __repr__(self) -> str:
        return f"<AsyncClient {self._connecting.url}>"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections; a call after that raises `InvalidInput`.

        >>> run(contrada.AsyncClient().close())
        """
        await self._http.aclose()

    async def put_subscription(
        self,
        id: str,
        filter: str | Mapping[str, Any] | bool | None = None,
        *,
        geometry: Any = None,
        relation: str | Relation | None = None,
        where: str | Mapping[str, Any] | None = None,
        attribute: str | None = None,
        subscriber: str | None = None,
        expires: str | datetime | None = None,
        transitions: bool | Mapping[str, Any] | None = None,
    ) -> ChangeReceipt:
        """Add or replace a subscription, as `Client.put_subscription` does.

        >>> run(client.put_subscription("gale", "wind > 17", subscriber="ops")).is_new
        True
        """
        body = calls.describe_subscription(
            filter, geometry, relation, where, attribute, subscriber, expires, transitions
        )
        path = path_of("subscriptions", id)
        return await self._run(calls.change("PUT", path, body, self._persistence))

    async def get_subscription(self, id: str) -> dict[str, Any]:
        """Return a subscription, as `Client.get_subscription` does.

        >>> _ = run(client.put_subscription("gale", "wind > 17"))
        >>> run(client.get_subscription("gale"))["filter"]
        'wind > 17'
        """
        return await self._run(calls.get(path_of("subscriptions", id), self._persistence))

    async def delete_subscription(self, id: str) -> ChangeReceipt:
        """Remove a subscription, as `Client.delete_subscription` does.

        >>> _ = run(client.put_subscription("gale", "wind > 17"))
        >>> _ = run(client.delete_subscription("gale"))
        >>> run(client.publish({"wind": 20})).matches
        0
        """
        path = path_of("subscriptions", id)
        return await self._run(calls.change("DELETE", path, None, self._persistence))

    def list_subscriptions(self, *, subscriber: str | None = None) -> AsyncIterator[dict[str, Any]]:
        """Iterate over subscriptions, as `Client.list_subscriptions` does.

        >>> _ = run(client.put_subscription("gale", "wind > 17"))
        >>> async def ids():
        ...     return [found["id"] async for found in client.list_subscriptions()]
        >>> run(ids())
        ['gale']
        """
        return self._list("subscriptions", subscriber)

    async def put_rows(self, id: str, rows: Any, *, empty: bool = False) -> RowsReceipt:
        """Make rows the geometries of a collection, as `Client.put_rows` does.

        >>> import pyarrow as pa
        >>> _ = run(client.put_subscription("zones", relation="intersects", subscriber="ops"))
        >>> zones = pa.table({"id": ["a"], "geometry": ["POLYGON((0 0, 9 0, 9 9, 0 0))"]})
        >>> run(client.put_rows("zones", zones)).count
        1
        >>> run(client.publish({"geometry": "POINT(5 1)"})).matches
        1
        """
        with ExitStack() as stack:
            packing = collection_rows.packed_rows(rows)
            path, media_type = await asyncio.to_thread(stack.enter_context, packing)
            steps = collection_rows.put_rows(id, path, media_type, empty, self._persistence)
            return await self._run(steps)

    async def publish(
        self, events: Any, *, idempotency_key: str | None = None, all_or_none: bool = False
    ) -> PublishReceipt:
        """Publish one event or many, as `Client.publish` does.

        >>> run(client.publish([{"wind": 20}, {"wind": 5, "geometry": "POINT(5 1)"}])).accepted
        2
        """
        steps = batching.publish(events, idempotency_key, all_or_none, self._persistence)
        return await self._run(steps)

    async def deliveries(
        self, subscriber: str, *, after: str | None = None, limit: int = 100, wait_s: float = 0.0
    ) -> ReceivedPage:
        """Read a page of deliveries, as `Client.deliveries` does.

        >>> _ = run(client.put_subscription("gale", "wind > 17", subscriber="ops"))
        >>> _ = run(client.publish({"wind": 20}))
        >>> run(client.deliveries("ops")).deliveries[0].matches[0].subscription
        'gale'
        """
        steps = calls.read_deliveries(subscriber, after, limit, wait_s, self._persistence)
        return await self._run(steps)

    def listen(
        self,
        subscriber: str,
        *,
        after: str | None = None,
        limit: int = 100,
        auto_ack: bool = False,
        on_gap: HearGap | None = None,
    ) -> AsyncGenerator[ReceivedDelivery, None]:
        """Iterate over deliveries for ever, as they come, as `Client.listen` does.

        Only leaving the loop by `contextlib.aclosing` acknowledges what was used last at once.

        >>> _ = run(client.put_subscription("gale", "wind > 17", subscriber="ops"))
        >>> _ = run(client.publish([{"wind": 20}, {"wind": 30}]))
        >>> async def hear():
        ...     async for delivery in client.listen("ops", auto_ack=True):
        ...         return delivery.event["properties"]["wind"]
        >>> run(hear())
        20
        """
        place = ListeningPlace(subscriber, after, limit, auto_ack, on_gap, self._persistence)
        return self._listen(place)

    async def _listen(self, place: ListeningPlace) -> AsyncGenerator[ReceivedDelivery, None]:
        try:
            while True:
                page = await self._run(place.read())
                for left, delivery in enumerate(page.deliveries, 1 - len(page.deliveries)):
                    yield delivery
                    now = clock.monotonic()
                    await self._run(place.use(delivery.position, now, is_last=not left))
        finally:
            if not self._http.is_closed:
                await self._run(place.leave())

    async def ack(self, subscriber: str, position: str) -> str:
        """Acknowledge deliveries up to a position, as `Client.ack` does.

        >>> _ = run(client.put_subscription("gale", "wind > 17", subscriber="ops"))
        >>> position = run(client.publish({"wind": 20})).position
        >>> run(client.ack("ops", position)) == position
        True
        """
        body = {"position": position}
        return await self._run(calls.move(subscriber, "ack", body, self._persistence))

    async def put_cursor(
        self, subscriber: str, *, position: str | None = None, time: str | datetime | None = None
    ) -> str:
        """Move a subscriber's cursor, as `Client.put_cursor` does.

        >>> _ = run(client.put_subscription("gale", "wind > 17", subscriber="ops"))
        >>> _ = run(client.publish({"wind": 20}))
        >>> _ = run(client.put_cursor("ops", time="2020-01-01T00:00:00Z"))
        >>> len(run(client.deliveries("ops")).deliveries)
        1
        """
        return await self._run(calls.put_cursor(subscriber, position, time, self._persistence))

    async def put_webhook(
        self,
        subscriber: str,
        url: str,
        *,
        secret: str | None = None,
        batch: int | None = None,
        rotate: bool = False,
    ) -> WebhookReceipt:
        """Let the broker call a URL for deliveries, as `Client.put_webhook` does.

        >>> run(client.put_webhook("ops", "https://receiver.example/hook")).is_new
        True
        """
        steps = calls.put_webhook(subscriber, url, secret, batch, rotate, self._persistence)
        return await self._run(steps)

    async def list_dead_letters(self, subscriber: str) -> AsyncIterator[ReceivedLetter]:
        """Iterate over dead letters, as `Client.list_dead_letters` does.

        >>> _ = run(client.put_webhook("ops", "https://receiver.example/hook"))
        >>> async def positions():
        ...     return [found.delivery.position async for found in client.list_dead_letters("ops")]
        >>> run(positions())
        []
        """
        after: str | None = None
        while True:
            letters, after = await self._run(
                calls.list_letters(subscriber, after, self._persistence)
            )
            for letter in letters:
                yield letter
            if after is None:
                return

    async def redrive(self, subscriber: str, positions: Iterable[str] | None = None) -> int:
        """Let dead letters be sent again, as `Client.redrive` does.

        >>> _ = run(client.put_webhook("ops", "https://receiver.example/hook"))
        >>> run(client.redrive("ops"))
        0
        """
        return await self._run(calls.redrive(subscriber, positions, self._persistence))

    async def get_subscriber(self, name: str) -> dict[str, Any]:
        """Return what is known of a subscriber, as `Client.get_subscriber` does.

        >>> _ = run(client.put_subscription("gale", "wind > 17", subscriber="ops"))
        >>> run(client.get_subscriber("ops"))["name"]
        'ops'
        """
        return await self._run(calls.get(path_of("subscribers", name), self._persistence))

    def list_subscribers(self) -> AsyncIterator[dict[str, Any]]:
        """Iterate over subscribers, as `Client.list_subscribers` does.

        >>> _ = run(client.put_subscription("gale", "wind > 17", subscriber="ops"))
        >>> async def names():
        ...     return [found["name"] async for found in client.list_subscribers()]
        >>> run(names())
        ['ops']
        """
        return self._list("subscribers", None)

    async def delete_subscriber(self, name: str) -> ChangeReceipt:
        """Remove a subscriber, as `Client.delete_subscriber` does.

        >>> _ = run(client.put_subscription("gale", "wind > 17", subscriber="ops"))
        >>> _ = run(client.delete_subscriber("ops"))
        >>> run(client.match({"wind": 20}))
        []
        """
        path = path_of("subscribers", name)
        return await self._run(calls.change("DELETE", path, None, self._persistence))

    async def explain(self, filter: str | Mapping[str, Any]) -> dict[str, Any]:
        """Return how the broker understands a predicate, as `Client.explain` does.

        >>> run(client.explain("wind > 90 AND wind > 80"))["removed"]
        ['wind > 80 (another constraint implies it: wind > 90)']
        """
        return await self._run(
            calls.post(path_of("explain"), {"filter": filter}, self._persistence)
        )

    async def match(self, event: Any) -> list[ReceivedMatch]:
        """Return what an event would match, as `Client.match` does.

        >>> _ = run(client.put_subscription("gale", "wind > 17"))
        >>> run(client.match({"wind": 20}))[0].subscription
        'gale'
        """
        return await self._run(calls.match(event, self._persistence))

    async def why(self, id: str, event: Any) -> dict[str, Any]:
        """Return whether and why a subscription matches an event, as `Client.why` does.

        >>> _ = run(client.put_subscription("gale", "wind > 17"))
        >>> run(client.why("gale", {"wind": 5}))["matches"]
        False
        """
        return await self._run(calls.why(id, event, self._persistence))

    async def get_settings(self) -> dict[str, Any]:
        """Return the tenant's settings, as `Client.get_settings` does.

        >>> run(client.get_settings())["time"]
        'time'
        """
        return await self._run(calls.get(path_of("settings"), self._persistence))

    async def put_settings(self, **settings: Any) -> ChangeReceipt:
        """Replace the tenant's settings, as `Client.put_settings` does.

        >>> _ = run(client.put_settings(object="ship", lateness="10 s"))
        >>> run(client.get_settings())["object"]
        'ship'
        """
        path = path_of("settings")
        return await self._run(calls.change("PUT", path, settings, self._persistence))

    async def _list(self, kind: str, subscriber: str | None) -> AsyncIterator[dict[str, Any]]:
        after: str | None = None
        while True:
            items, after = await self._run(
                calls.list_part(kind, after, self._persistence, subscriber)
            )
            for item in items:
                yield item
            if after is None:
                return

    async def _run(self, steps: Steps[_AsyncResult]) -> _AsyncResult:
        """Carry out a call."""
        outcome: HttpAnswer | NoAnswer | None = None
        try:
            while True:
                step = steps.send(outcome)
                if isinstance(step, Pause):
                    outcome = None
                    await asyncio.sleep(step.seconds)
                else:
                    outcome = await self._exchange(step)
        except StopIteration as stop:
            result: _AsyncResult = stop.value
            return result

    async def _exchange(self, request: BrokerRequest) -> HttpAnswer | NoAnswer:
        import httpx

        if self._http.is_closed:
            raise InvalidInput("this client is closed")
        content = request.content
        body = content if isinstance(content, bytes) else _read_pieces(content)
        try:
            response = await self._http.request(content=body, **self._connecting.arguments(request))
        except httpx.RequestError as fault:
            return self._connecting.describe(fault, self._was_answered)
        self._was_answered = True
        return read_answer(response)


async def _read_pieces(path: Path) -> AsyncIterator[bytes]:
    with path.open("rb") as file:
        while piece := await asyncio.to_thread(file.read, FILE_PIECE_BYTES):
            yield piece
