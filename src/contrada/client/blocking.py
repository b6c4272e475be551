"""`contrada.Client`: a broker's calls, each of which blocks until it is answered."""

import time as clock
from collections.abc import Generator, Iterable, Iterator, Mapping
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

_BlockingResult = TypeVar("_BlockingResult")


class Client:
    """Talks to a broker that `contrada serve` runs, from any thread.

    `url` is the broker's address (default: CONTRADA_URL, else http://127.0.0.1:8080), `key` one of
    its keys (default: CONTRADA_KEY), which is sent in the header `Authorization` and shown nowhere.
    A request that gets no answer within `timeout_s` is sent again, up to `retries` times, where
    that is safe; a broker that is too busy is asked again when it says, and one that restarts is
    waited for, up to `restart_s`. `verify` is a path to the certificates to trust, for a broker
    whose own this machine does not know, or an `ssl.SSLContext`. A client is closed by `close`, or
    by the end of a `with` block.

    Unlike a `Matcher`, which is in this process, a broker keeps subscriptions and events on disk
    and delivers every match at least once. `AsyncClient` has the same calls for asyncio.

    Every call raises `InvalidInput`, or a subclass such as `NotFound`, in the broker's words for
    what the caller must change, `Overloaded` where the broker has too much to do, and `Unavailable`
    where it cannot be reached. Without httpx the first client raises `MissingPackage`.

    >>> with contrada.Client() as client:
    ...     _ = client.put_subscription("gale", "wind > 17", subscriber="ops")
    ...     client.publish({"wind": 20}).matches
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
        self._http = httpx.Client(**self._connecting.options())

    def __repr__(self) -> str:
        return f"<Client {self._connecting.url}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; a call after that raises `InvalidInput`.

        >>> client = contrada.Client()
        >>> client.close()
        """
        self._http.close()

    def put_subscription(
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
        """Add a subscription, or replace the one of this id; an equal one changes nothing.

        The arguments are those of `Matcher.add`. `subscriber` receives the matches (default: a
        subscriber of the same name as the subscription), `expires` is when it ends, and
        `transitions` asks for enter, exit, cross and dwell instead of matches. With neither a
        filter nor a geometry it is a collection, whose geometries `put_rows` sends. What is
        published after this call has returned is matched with it.

        Raises `InvalidInput` for a predicate or a geometry that the library would refuse, too.

        >>> client.put_subscription("gale", "wind > 17", subscriber="ops").is_new
        True
        """
        body = calls.describe_subscription(
            filter, geometry, relation, where, attribute, subscriber, expires, transitions
        )
        path = path_of("subscriptions", id)
        return self._run(calls.change("PUT", path, body, self._persistence))

    def get_subscription(self, id: str) -> dict[str, Any]:
        """Return a subscription: its members, its id and its position in the log.

        Raises `NotFound` if there is none.

        >>> _ = client.put_subscription("gale", "wind > 17")
        >>> client.get_subscription("gale")["filter"]
        'wind > 17'
        """
        return self._run(calls.get(path_of("subscriptions", id), self._persistence))

    def delete_subscription(self, id: str) -> ChangeReceipt:
        """Remove a subscription; what it has matched is still delivered.

        Raises `NotFound` if there is none.

        >>> _ = client.put_subscription("gale", "wind > 17")
        >>> _ = client.delete_subscription("gale")
        >>> client.publish({"wind": 20}).matches
        0
        """
        path = path_of("subscriptions", id)
        return self._run(calls.change("DELETE", path, None, self._persistence))

    def list_subscriptions(self, *, subscriber: str | None = None) -> Iterator[dict[str, Any]]:
        """Iterate over all subscriptions, or those of one subscriber, by id, page by page.

        >>> _ = client.put_subscription("gale", "wind > 17")
        >>> [subscription["id"] for subscription in client.list_subscriptions()]
        ['gale']
        """
        return self._list("subscriptions", subscriber)

    def put_rows(self, id: str, rows: Any, *, empty: bool = False) -> RowsReceipt:
        """Make these rows the geometries of a collection, in place of all that it had.

        `rows` is a path, an Arrow table or a GeoDataFrame with a column `geometry` and perhaps
        `id`; a file of GeoParquet, GeoJSON or JSON lines is sent as it is. Matches name the row.
        Unlike a subscription for each row, which each have conditions of their own, all rows share
        those of the collection, and millions of them are replaced at once. A collection that is
        not there begins, and wants what intersects one of its rows. Without a row nothing is
        replaced, since a source that happened to be empty would take all fences away; `empty` says
        that it may.

        Raises `InvalidInput` for a bad row, or if there is none, and `Conflict` if the subscription
        has a filter.

        >>> import pyarrow as pa
        >>> _ = client.put_subscription("zones", relation="intersects", subscriber="ops")
        >>> zones = pa.table({"id": ["a"], "geometry": ["POLYGON((0 0, 9 0, 9 9, 0 0))"]})
        >>> client.put_rows("zones", zones).count
        1
        >>> client.publish({"geometry": "POINT(5 1)"}).matches
        1
        """
        with collection_rows.packed_rows(rows) as (path, media_type):
            steps = collection_rows.put_rows(id, path, media_type, empty, self._persistence)
            return self._run(steps)

    def publish(
        self, events: Any, *, idempotency_key: str | None = None, all_or_none: bool = False
    ) -> PublishReceipt:
        """Publish one event or many; they are on disk when this returns.

        `events` is an event (a mapping, a GeoJSON Feature, a CloudEvent, or a geometry of Shapely
        or of anything with `__geo_interface__`), an iterable of events, a FeatureCollection, an
        Arrow table, a GeoDataFrame or a path. Many are sent in batches, in their order.

        A batch that is sent again because its answer was lost is not stored twice, since it has a
        key of its own. Two calls publish twice, even the same event: an `idempotency_key` of yours
        makes a repeated call one, if its events are the same, and a CloudEvent is known by `source`
        and `id`. With `all_or_none` a bad event keeps all others out; they are then one request.

        Raises `RefusedEvents`, an `InvalidInput`, if no event can be taken; where only some cannot,
        the receipt's `errors` has them.

        >>> receipt = client.publish([{"wind": 20}, {"wind": 5, "geometry": "POINT(5 1)"}])
        >>> receipt.accepted, receipt.errors
        (2, ())
        """
        return self._run(batching.publish(events, idempotency_key, all_or_none, self._persistence))

    def deliveries(
        self, subscriber: str, *, after: str | None = None, limit: int = 100, wait_s: float = 0.0
    ) -> ReceivedPage:
        """Read a page of deliveries after a position, or after the subscriber's cursor.

        Where there is none yet, the broker waits for one, up to `wait_s` seconds. Reading moves no
        cursor, so the same call reads the same again; `ack` moves it, and `page.next` is the
        `after` of the next page. `listen` does both.

        Raises `NotFound` if there is no such subscriber, and `Gone` for a position of another log.

        >>> _ = client.put_subscription("gale", "wind > 17", subscriber="ops")
        >>> _ = client.publish({"wind": 20})
        >>> page = client.deliveries("ops")
        >>> page.deliveries[0].event["properties"], page.deliveries[0].matches[0].subscription
        ({'wind': 20}, 'gale')
        """
        return self._run(calls.read_deliveries(subscriber, after, limit, wait_s, self._persistence))

    def listen(
        self,
        subscriber: str,
        *,
        after: str | None = None,
        limit: int = 100,
        auto_ack: bool = False,
        on_gap: HearGap | None = None,
    ) -> Generator[ReceivedDelivery, None, None]:
        """Iterate over deliveries for ever, as they come, after a position or after the cursor.

        A lost connection, or a broker that restarts, is waited for, and nothing is lost with it.
        Deliveries are read as fast as they are used, `limit` at most in advance. With `auto_ack`
        the cursor follows those whose next one was asked for: what came last when the iteration
        ends comes again the next time. Without it, call `ack`.

        Raises `NotFound` if there is no such subscriber. If deliveries are no longer kept, because
        the subscriber was away for longer than the broker keeps them, it calls `on_gap` with their
        number and goes on; without `on_gap` it raises `Gone`.

        >>> _ = client.put_subscription("gale", "wind > 17", subscriber="ops")
        >>> _ = client.publish([{"wind": 20}, {"wind": 30}])
        >>> for delivery in client.listen("ops", auto_ack=True):
        ...     print(delivery.event["properties"]["wind"])
        ...     if delivery.event["properties"]["wind"] == 30:
        ...         break
        20
        30
        """
        place = ListeningPlace(subscriber, after, limit, auto_ack, on_gap, self._persistence)
        return self._listen(place)

    def _listen(self, place: ListeningPlace) -> Generator[ReceivedDelivery, None, None]:
        try:
            while True:
                page = self._run(place.read())
                for left, delivery in enumerate(page.deliveries, 1 - len(page.deliveries)):
                    yield delivery
                    self._run(place.use(delivery.position, clock.monotonic(), is_last=not left))
        finally:
            if not self._http.is_closed:
                self._run(place.leave())

    def ack(self, subscriber: str, position: str) -> str:
        """Acknowledge deliveries up to a position, and return where the cursor is.

        It only moves forward, so late calls do no harm; `put_cursor` also moves it back.

        >>> _ = client.put_subscription("gale", "wind > 17", subscriber="ops")
        >>> position = client.publish({"wind": 20}).position
        >>> client.ack("ops", position) == position
        True
        """
        return self._run(calls.move(subscriber, "ack", {"position": position}, self._persistence))

    def put_cursor(
        self, subscriber: str, *, position: str | None = None, time: str | datetime | None = None
    ) -> str:
        """Move a subscriber's cursor to a position or a time, also back, and return where it is.

        What comes after it is delivered again as far as it is kept.

        >>> _ = client.put_subscription("gale", "wind > 17", subscriber="ops")
        >>> _ = client.publish({"wind": 20})
        >>> _ = client.put_cursor("ops", time="2020-01-01T00:00:00Z")
        >>> len(client.deliveries("ops").deliveries)
        1
        """
        return self._run(calls.put_cursor(subscriber, position, time, self._persistence))

    def put_webhook(
        self,
        subscriber: str,
        url: str,
        *,
        secret: str | None = None,
        batch: int | None = None,
        rotate: bool = False,
    ) -> WebhookReceipt:
        """Let the broker call a URL for the deliveries of a subscriber, which may be a new one.

        The calls are signed with `secret`; without one the broker makes one and the receipt has it,
        this once. `contrada.verify_webhook` checks them, `contrada.client.read_webhook` reads them.
        `rotate` has another secret made; the old one signs, too, for a day. With a `batch` of more
        than one, a call has a list of deliveries. A new URL is sent a ping first, perhaps before
        this returns, and deliveries once it has accepted that.

        Raises `InvalidInput` for a URL that the broker does not call, such as one of its own
        network.

        >>> client.put_webhook("ops", "https://receiver.example/hook").is_new
        True
        """
        steps = calls.put_webhook(subscriber, url, secret, batch, rotate, self._persistence)
        return self._run(steps)

    def list_dead_letters(self, subscriber: str) -> Iterator[ReceivedLetter]:
        """Iterate over what the receiver of a webhook has refused for good, by position.

        >>> _ = client.put_webhook("ops", "https://receiver.example/hook")
        >>> list(client.list_dead_letters("ops"))
        []
        """
        after: str | None = None
        while True:
            letters, after = self._run(calls.list_letters(subscriber, after, self._persistence))
            yield from letters
            if after is None:
                return

    def redrive(self, subscriber: str, positions: Iterable[str] | None = None) -> int:
        """Let dead letters be sent again, all or those of some positions; return their number.

        >>> _ = client.put_webhook("ops", "https://receiver.example/hook")
        >>> client.redrive("ops")
        0
        """
        return self._run(calls.redrive(subscriber, positions, self._persistence))

    def get_subscriber(self, name: str) -> dict[str, Any]:
        """Return what is known of a subscriber: its cursor, its channel, how far it is behind.

        Raises `NotFound` if there is none.

        >>> _ = client.put_subscription("gale", "wind > 17", subscriber="ops")
        >>> client.get_subscriber("ops")["name"]
        'ops'
        """
        return self._run(calls.get(path_of("subscribers", name), self._persistence))

    def list_subscribers(self) -> Iterator[dict[str, Any]]:
        """Iterate over all subscribers, by name, page by page.

        >>> _ = client.put_subscription("gale", "wind > 17", subscriber="ops")
        >>> [subscriber["name"] for subscriber in client.list_subscribers()]
        ['ops']
        """
        return self._list("subscribers", None)

    def delete_subscriber(self, name: str) -> ChangeReceipt:
        """Remove a subscriber, its subscriptions, and what waits for it.

        Raises `NotFound` if there is none.

        >>> _ = client.put_subscription("gale", "wind > 17", subscriber="ops")
        >>> _ = client.delete_subscriber("ops")
        >>> list(client.list_subscriptions())
        []
        """
        return self._run(
            calls.change("DELETE", path_of("subscribers", name), None, self._persistence)
        )

    def explain(self, filter: str | Mapping[str, Any]) -> dict[str, Any]:
        """Return how the broker understands a predicate, as `contrada.explain` does; nothing is
        stored.

        Raises `InvalidInput` for one that cannot be read.

        >>> client.explain("wind > 90 AND wind > 80")["removed"]
        ['wind > 80 (another constraint implies it: wind > 90)']
        """
        return self._run(calls.post(path_of("explain"), {"filter": filter}, self._persistence))

    def match(self, event: Any) -> list[ReceivedMatch]:
        """Return what an event would match: subscriptions, and rows of collections.

        Unlike `publish` it stores and delivers nothing.

        >>> _ = client.put_subscription("gale", "wind > 17")
        >>> client.match({"wind": 20})[0].subscription
        'gale'
        """
        return self._run(calls.match(event, self._persistence))

    def why(self, id: str, event: Any) -> dict[str, Any]:
        """Return whether and why a subscription matches an event: each constraint and its value.

        Raises `NotFound` if there is no such subscription.

        >>> _ = client.put_subscription("gale", "wind > 17")
        >>> client.why("gale", {"wind": 5})["matches"]
        False
        """
        return self._run(calls.why(id, event, self._persistence))

    def get_settings(self) -> dict[str, Any]:
        """Return the tenant's settings, which are those of transitions; `put_settings` names them.

        >>> client.get_settings()["time"]
        'time'
        """
        return self._run(calls.get(path_of("settings"), self._persistence))

    def put_settings(self, **settings: Any) -> ChangeReceipt:
        """Replace the tenant's settings: `object`, `time`, `lateness`, `silence`, `ahead`, `idle`.

        Raises `InvalidInput` for one that does not exist, or is no duration.

        >>> _ = client.put_settings(object="ship", lateness="10 s")
        >>> client.get_settings()["object"]
        'ship'
        """
        return self._run(calls.change("PUT", path_of("settings"), settings, self._persistence))

    def _list(self, kind: str, subscriber: str | None) -> Iterator[dict[str, Any]]:
        after: str | None = None
        while True:
            items, after = self._run(calls.list_part(kind, after, self._persistence, subscriber))
            yield from items
            if after is None:
                return

    def _run(self, steps: Steps[_BlockingResult]) -> _BlockingResult:
        """Carry out a call."""
        outcome: HttpAnswer | NoAnswer | None = None
        try:
            while True:
                step = steps.send(outcome)
                if isinstance(step, Pause):
                    outcome = None
                    clock.sleep(step.seconds)
                else:
                    outcome = self._exchange(step)
        except StopIteration as stop:
            result: _BlockingResult = stop.value
            return result

    def _exchange(self, request: BrokerRequest) -> HttpAnswer | NoAnswer:
        import httpx

        if self._http.is_closed:
            raise InvalidInput("this client is closed")
        content = request.content
        body = content if isinstance(content, bytes) else _read_pieces(content)
        try:
            response = self._http.request(content=body, **self._connecting.arguments(request))
        except httpx.RequestError as fault:
            return self._connecting.describe(fault, self._was_answered)
        self._was_answered = True
        return read_answer(response)


def _read_pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(FILE_PIECE_BYTES):
            yield piece
