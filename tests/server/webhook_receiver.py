"""A receiver of webhooks on loopback that does what a script says, and a broker that calls it."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

from broker_stories import feature, incoming
from contrada.broker.broker import Broker
from contrada.broker.broker_options import BrokerOptions
from contrada.broker.webhook_rules import RetryTiming
from contrada.server.public_addresses import AddressRules
from contrada.server.webhook_posts import WebhookOptions
from contrada.server.webhooks import Webhooks

PATIENCE_S = 60.0
SOON = RetryTiming(wait_s=0.001, wait_s_max=0.004, retry_after_s_max=3_600.0, breaker_wait_s=0.004)
OPTIONS = WebhookOptions(
    AddressRules.read(["127.0.0.0/8"]), SOON, answer_s_max=PATIENCE_S, unused_s_max=PATIENCE_S
)

Act = Callable[[asyncio.StreamWriter], Awaitable[None]]
Answer = int | bytes | Act


@dataclass(frozen=True)
class Request:
    """What came: the first line, headers by their names in small letters, and the body."""

    line: str
    headers: dict[str, str]
    body: bytes

    @property
    def events(self) -> list[dict[str, Any]]:
        """The CloudEvents of the body."""
        read = json.loads(self.body)
        return read if isinstance(read, list) else [read]

    @property
    def ids(self) -> list[Any]:
        """The ids of the features that were delivered."""
        return [event["data"]["event"]["id"] for event in self.events]

    @property
    def is_ping(self) -> bool:
        return bool(self.events[0]["type"] == "contrada.ping")


class Receiver:
    """Answers pings with 204, and all else by its script, then with 204."""

    def __init__(self, *script: Answer, pings: tuple[Answer, ...] = ()) -> None:
        self.script, self.ping_script = list(script), list(pings)
        self.requests: list[Request] = []
        self.accepted: list[Request] = []
        self.pings: list[Request] = []
        self.connections = 0
        self.port = 0
        self._came = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    @property
    def ids(self) -> list[Any]:
        """The ids of the features of all requests."""
        return [id_ for request in self.requests for id_ in request.ids]

    async def listen(self) -> asyncio.Server:
        server = await asyncio.start_server(self._meet, "127.0.0.1", self.port)
        self.port = server.sockets[0].getsockname()[1]
        return server

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        try:
            while await self._take(reader, writer):
                pass
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        line, *rest = (await reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
        headers = {name.lower(): value for name, value in (each.split(": ", 1) for each in rest)}
        request = Request(line, headers, await reader.readexactly(int(headers["content-length"])))
        script = self.ping_script if request.is_ping else self.script
        (self.pings if request.is_ping else self.requests).append(request)
        self._came.set()
        answer = script.pop(0) if script else 204
        if isinstance(answer, int):
            if answer < 300 and not request.is_ping:
                self.accepted.append(request)
            writer.write(f"HTTP/1.1 {answer} X\r\nContent-Length: 0\r\n\r\n".encode())
            await writer.drain()
            return True
        if isinstance(answer, bytes):
            writer.write(answer)
            await writer.drain()
            writer.write_eof()
            return False
        await answer(writer)
        return False

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until requests have come that fulfil a condition."""
        async with asyncio.timeout(PATIENCE_S):
            while not condition():
                self._came.clear()
                await self._came.wait()

    async def end(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def reset(writer: asyncio.StreamWriter) -> None:
    """End the connection without an answer."""
    writer.transport.abort()


async def stall(writer: asyncio.StreamWriter) -> None:
    """Never answer."""
    await asyncio.Event().wait()


async def drip(writer: asyncio.StreamWriter) -> None:
    """Answer with a header that never ends, a byte at a time."""
    writer.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    with suppress(OSError):
        while True:
            writer.write(b"a")
            await writer.drain()
            await asyncio.sleep(0.005)


async def flood(writer: asyncio.StreamWriter) -> None:
    """Accept, with a body without end."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n")
    with suppress(OSError):
        while True:
            writer.write(bytes(65_536))
            await writer.drain()


async def flood_headers(writer: asyncio.StreamWriter) -> None:
    """Answer with headers without end."""
    writer.write(b"HTTP/1.1 200 OK\r\n")
    with suppress(OSError):
        while True:
            writer.write(b"X-More: " + b"a" * 60_000 + b"\r\n")
            await writer.drain()


async def accept_and_stall(writer: asyncio.StreamWriter) -> None:
    """Accept, and never send the body that was announced."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")
    await asyncio.Event().wait()


def with_header(status: int, header: str) -> bytes:
    return f"HTTP/1.1 {status} X\r\n{header}\r\nContent-Length: 0\r\n\r\n".encode()


class Desk:
    """A broker, what calls its webhooks, and the receivers that listen."""

    def __init__(self, broker: Broker, webhooks: Webhooks) -> None:
        self.broker, self.webhooks = broker, webhooks
        self._servers: list[tuple[Receiver, asyncio.Server]] = []

    async def listen(self, receiver: Receiver) -> Receiver:
        self._servers.append((receiver, await receiver.listen()))
        return receiver

    async def end(self, receiver: Receiver) -> None:
        """Let nobody listen any more where a receiver was."""
        for each, server in list(self._servers):
            if each is receiver:
                self._servers.remove((each, server))
                server.close()
                await receiver.end()
                await server.wait_closed()

    async def end_all(self) -> None:
        for receiver, _ in list(self._servers):
            await self.end(receiver)

    async def call(self, name: str, url: str, **more: Any) -> Any:
        """Let a subscriber, who wants everything, be called; returns the answer."""
        body = {"filter": "id >= 0", "subscriber": name}
        await asyncio.wrap_future(self.broker.put_subscription(f"all of {name}", body))
        webhook = {"url": url, **more}
        return await asyncio.wrap_future(self.broker.put_subscriber(name, {"webhook": webhook}))

    async def publish(self, *ids: int) -> str:
        events = [feature(id_, 1, 1, id=id_) for id_ in ids]
        return (await asyncio.wrap_future(self.broker.publish(incoming(events)))).position

    def show(self, name: str) -> dict[str, Any]:
        return self.broker.get_subscriber(name)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until something that is stored fulfils a condition."""
        async with asyncio.timeout(PATIENCE_S):
            while not condition():
                await asyncio.sleep(0.002)


@asynccontextmanager
async def calling(
    folder: Path, kept: BrokerOptions | None = None, **options: Any
) -> AsyncIterator[Desk]:
    """Open a broker and call its webhooks, with options that differ from those of tests."""
    broker = Broker.open(folder, kept or BrokerOptions(is_durable=False))
    threads = ThreadPoolExecutor(4)
    webhooks = Webhooks(broker, threads, replace(OPTIONS, **options), random=Random(1))
    desk = Desk(broker, webhooks)
    try:
        await webhooks.start()
        yield desk
    finally:
        await webhooks.stop()
        await desk.end_all()
        threads.shutdown()
        broker.close()
