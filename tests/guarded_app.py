"""A small application behind the guards of the server, in a thread of this process."""

import asyncio
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from contrada.server.accepting import find_places, listen
from contrada.server.guard_limits import GuardLimits
from contrada.server.serving import GuardedServer

PATIENCE_S = 60.0  # of a test that waits for what must happen


class SmallApp:
    """Answers `/` at once, `/body` after the body, `/flood` without end, `/held` when released."""

    def __init__(self) -> None:
        self.is_stopping = asyncio.Event()
        self.held, self.released = threading.Event(), asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["path"] == "/body":
            await self._read_all(receive)
            await _answer(send, b"read")
        elif scope["path"] == "/flood":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            gone = asyncio.create_task(self._read_until_gone(receive))
            while not gone.done():
                await send(_body(b"x" * 65_536, more=True))
                await asyncio.sleep(0)
        elif scope["path"] == "/held":
            self.held.set()
            await self.released.wait()
            await _answer(send, b"released")
        elif scope["path"] == "/stream":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send(_body(b"begun", more=True))
            await self.is_stopping.wait()
            await send(_body(b"ended", more=False))
        else:
            await _answer(send, scope["query_string"] or b"here")

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            await send({"type": f"{message['type']}.complete"})
            if message["type"] == "lifespan.shutdown":
                return

    async def _read_until_gone(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    async def _read_all(self, receive: Receive) -> None:
        while (await receive()).get("more_body"):
            pass


async def _answer(send: Send, body: bytes) -> None:
    length = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": length})
    await send(_body(body, more=False))


def _body(body: bytes, *, more: bool) -> Message:
    return {"type": "http.response.body", "body": body, "more_body": more}


class Guarded:
    """The server of a small application, for the thread of a test."""

    def __init__(self, limits: GuardLimits, tls: ssl.SSLContext | None, finish_s: float) -> None:
        self._limits, self._tls, self._finish_s = limits, tls, finish_s
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()))
        self._thread.start()
        assert self._ready.wait(PATIENCE_S)

    async def _run(self) -> None:
        self.app = SmallApp()
        self._loop = asyncio.get_running_loop()
        listeners = listen(find_places("127.0.0.1", 0))
        self.port: int = listeners[0].getsockname()[1]
        app: ASGIApp = self.app
        stop = self.app.is_stopping.set
        self.server = GuardedServer(
            app, listeners, self._limits, tls=self._tls, on_stop=stop, finish_s=self._finish_s
        )
        serving = asyncio.create_task(self.server.serve())
        while not self.server.started:
            await asyncio.sleep(0.001)
        self._ready.set()
        await serving

    def call(self, function: object) -> None:
        """Call a function in the loop of the server."""
        with suppress(RuntimeError):  # it has ended
            self._loop.call_soon_threadsafe(function)  # type: ignore[arg-type]

    def connect(self) -> socket.socket:
        """Connect, patiently."""
        return socket.create_connection(("127.0.0.1", self.port), PATIENCE_S)

    def join(self) -> None:
        """Wait for the end of the server."""
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()


@contextmanager
def guarded(
    limits: GuardLimits | None = None, tls: ssl.SSLContext | None = None, finish_s: float = 30.0
) -> Iterator[Guarded]:
    """Serve a small application until the block is left."""
    server = Guarded(limits or GuardLimits(), tls, finish_s)
    try:
        yield server
    finally:
        server.call(server.app.released.set)
        server.call(server.server.stop)
        server.join()


def read_all(connection: socket.socket) -> bytes:
    """Read until the other end closes, however it does."""
    pieces = []
    try:
        while piece := connection.recv(65_536):
            pieces.append(piece)
    except ConnectionError:
        pass
    return b"".join(pieces)


def read_until(connection: socket.socket, end: bytes) -> bytes:
    """Read until something has come."""
    heard = b""
    while not heard.endswith(end):
        piece = connection.recv(65_536)
        assert piece, heard
        heard += piece
    return heard


def drip(connection: socket.socket, begin: bytes, drop: bytes) -> None:
    """Send one drop after another until the other end has gone."""
    connection.sendall(begin)
    connection.settimeout(0.02)
    while True:
        try:
            if not connection.recv(65_536):
                return
        except TimeoutError:
            pass
        except ConnectionError:
            return
        try:
            connection.sendall(drop)
        except ConnectionError:
            return
