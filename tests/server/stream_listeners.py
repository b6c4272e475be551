"""Listeners to server-sent events on bare sockets: a thousand of them fit into one loop."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

LINE_BYTES_MAX = 2**20


class Heard(NamedTuple):
    """A delivery that a listener has heard: its position, and the number in its event."""

    position: str
    number: int


def ask_for(path: str, headers: Mapping[str, str] | None = None) -> bytes:
    """The request for a stream."""
    lines = {"Host": "localhost", "Accept": "text/event-stream", **(headers or {})}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"GET {path} HTTP/1.1\r\n{head}\r\n".encode()


def deliveries_of(subscriber: str) -> str:
    return f"/v1/subscribers/{subscriber}/deliveries"


class Listener:
    """One stream, which has begun; what it hears is kept."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self.writer = reader, writer
        self.heard: list[Heard] = []

    @classmethod
    async def open(cls, port: int, path: str, after: str | None = None) -> "Listener":
        """Ask for a stream, and wait until it has begun."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=LINE_BYTES_MAX)
        try:
            writer.write(ask_for(path, {} if after is None else {"Last-Event-ID": after}))
            head = await reader.readuntil(b"\r\n\r\n")
            if not head.startswith(b"HTTP/1.1 200 "):
                raise ConnectionError(f"there is no stream: {head!r}")
        except BaseException:
            writer.transport.abort()
            raise
        return cls(reader, writer)

    async def hear(self, count: int) -> None:
        """Listen until so many deliveries have been heard in all."""
        while len(self.heard) < count:
            line = await self._reader.readline()
            if not line:
                raise ConnectionError("the stream has ended")
            if line.startswith(b"data: "):
                delivery: dict[str, Any] = json.loads(line[6:])
                number = delivery["data"]["event"]["properties"]["n"]
                self.heard.append(Heard(delivery["position"], number))

    @property
    def numbers(self) -> list[int]:
        return [heard.number for heard in self.heard]


@asynccontextmanager
async def listening(port: int, paths: list[str]) -> AsyncIterator[list[Listener]]:
    """Open a stream of each path, some at a time."""
    listeners: list[Listener] = []
    try:
        for begin in range(0, len(paths), 50):
            opening = [Listener.open(port, path) for path in paths[begin : begin + 50]]
            listeners += await asyncio.gather(*opening)
        yield listeners
    finally:
        for listener in listeners:
            listener.writer.transport.abort()
