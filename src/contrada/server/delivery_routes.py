"""`/v1/subscribers/{name}/deliveries`: a page, a wait for one, or a stream of server-sent events.

Reading moves no cursor. A stream begins after `Last-Event-ID`, else after `after`, else at the
cursor; it has no end but the server's, the reader's, or the subscriber's.
"""

import asyncio
from contextlib import ExitStack

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from contrada.broker.broker import Broker
from contrada.broker.deliveries import DeliveryPage
from contrada.errors import ContradaError
from contrada.limits import PAGE_DELIVERIES_MAX
from contrada.server.delivery_reader import DeliveryReader, describe_gap, write_page
from contrada.server.json_answers import JSON_TYPE, write_json
from contrada.server.open_streams import Ending, wait_until_gone
from contrada.server.problems import describe_problem
from contrada.server.query_parameters import QueryParameters
from contrada.server.raw_paths import read_path_name
from contrada.server.resources import resource
from contrada.server.service import SUBSCRIBE, Service, service_of

STREAM_TYPE = "text/event-stream"

_PAGE = 100  # deliveries where no limit is named
_STREAM_PAGE = 500
_FAREWELL_S = 1.0  # for the last words to a reader that may be stalled
_RETRY_MS = 1_000  # until a browser connects again


def delivery_routes() -> list[Route]:
    """Make the route of deliveries."""
    return [resource("/v1/subscribers/{name}/deliveries", GET=get_deliveries)]


async def get_deliveries(request: Request) -> Response:
    """Answer the next deliveries of a subscriber, in the form that is accepted."""
    service = service_of(request)
    broker = service.open_broker(request, SUBSCRIBE)
    query = QueryParameters(request, "after", "limit", "wait")
    after = query.text("after")
    wait_s = query.seconds("wait", service.limits.wait_s_max)
    if STREAM_TYPE in request.headers.get("accept", ""):
        page_items = query.count("limit", _STREAM_PAGE, PAGE_DELIVERIES_MAX)
        after = request.headers.get("last-event-id") or after
        reader = DeliveryReader(service, broker, read_path_name(request, "name"), after)
        return EventStream(service, request, reader, page_items, await reader.read(page_items))
    page_items = query.count("limit", _PAGE, PAGE_DELIVERIES_MAX)
    reader = DeliveryReader(service, broker, read_path_name(request, "name"), after)
    page = await reader.read(page_items)
    if wait_s > 0 and not page.deliveries and page.gap is None:
        page = await _wait_for_page(request, reader, page_items, wait_s)
    return Response(write_page(page), media_type=JSON_TYPE)


async def _wait_for_page(
    request: Request, reader: DeliveryReader, page_items: int, wait_s: float
) -> DeliveryPage:
    """Wait for deliveries; where the server stops meanwhile, answer what there is."""
    service = service_of(request)
    pages: list[DeliveryPage] = []

    async def wait() -> None:
        pages.append(await reader.read(page_items, wait_s))

    def check() -> Broker:
        return service.open_broker(request, SUBSCRIBE)

    with reader.watching(), service.streams.entered(check) as stream:
        ending = await stream.run(wait(), wait_until_gone(request.receive))
    if ending is Ending.GONE:
        raise ClientDisconnect
    return pages[0] if pages else await reader.read(page_items)


class EventStream(Response):
    """Deliveries as server-sent events, from a first page on that has been read."""

    def __init__(
        self,
        service: Service,
        request: Request,
        reader: DeliveryReader,
        page_items: int,
        first: DeliveryPage,
    ) -> None:
        """Answer with a stream."""
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__(None, 200, headers, STREAM_TYPE)
        del self.headers["content-length"]
        self._service, self._request, self._reader = service, request, reader
        self._page_items, self._first = page_items, [first]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send pages until the stream ends; an error on the way is its last event."""
        if scope["method"] == "HEAD":
            await self._begin(send)
            return await self._end(send, b"")
        last = b""
        with ExitStack() as open_things:
            stream = open_things.enter_context(self._service.streams.entered(self._check))
            open_things.enter_context(self._reader.watching())
            await self._begin(send)
            try:
                ending = await stream.run(self._send_pages(send), wait_until_gone(receive))
            except OSError:
                return None  # the other end is gone
            except ContradaError as fault:
                ending, last = Ending.FINISHED, _write_event("problem", describe_problem(fault))
            if ending is not Ending.GONE:
                await self._end(send, last)
        return None

    def _check(self) -> Broker:
        return self._service.open_broker(self._request, SUBSCRIBE)

    async def _begin(self, send: Send) -> None:
        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        await send(start)

    async def _send_pages(self, send: Send) -> None:
        heartbeat_s = self._service.limits.heartbeat_s
        told, page = self._reader.position, self._first.pop()
        part = f"retry: {_RETRY_MS}\n\n".encode() + write_events(page)
        while True:
            del page  # a stalled reader, of whom there may be many, holds one part and no more
            await _send_part(send, part)
            del part
            page = await self._reader.read(self._page_items, heartbeat_s)
            if page.deliveries or page.gap is not None:
                part = write_events(page)
            else:
                part = b": heartbeat\n\n" if page.next == told else _write_place(page.next)
            told = page.next

    async def _end(self, send: Send, last: bytes) -> None:
        try:
            async with asyncio.timeout(_FAREWELL_S):
                await send({"type": "http.response.body", "body": last, "more_body": False})
        except (TimeoutError, OSError):
            return


def write_events(page: DeliveryPage) -> bytes:
    """Write a page as server-sent events, each with its position as id."""
    gap = b"" if page.gap is None else _write_event("gap", describe_gap(page), page.gap.until)
    return gap + b"".join(
        b"id: %b\ndata: %b\n\n" % (delivery.position.encode(), _on_one_line(delivery.json))
        for delivery in page.deliveries
    )


def _on_one_line(text: bytes) -> bytes:
    """Remove line ends, which JSON has between its tokens only."""
    return text.translate(None, b"\r\n") if b"\n" in text or b"\r" in text else text


def _write_event(name: str, value: object, position: str | None = None) -> bytes:
    place = b"" if position is None else b"id: %b\n" % position.encode()
    return place + b"event: %b\ndata: %b\n\n" % (name.encode(), write_json(value))


def _write_place(position: str) -> bytes:
    """Write a sign of life that moves the place from which a browser would go on."""
    return b"id: %b\n: heartbeat\n\n" % position.encode()


async def _send_part(send: Send, body: bytes) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": True})
