"""uvicorn with a door of our own, which closes in time: an application on sockets that listen.

It knows no broker, no key and no signal: whoever runs it calls `stop` and `force`.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from contrada.errors import Unavailable
from contrada.server.accepting import Connections, Door
from contrada.server.guard_limits import GuardLimits
from contrada.server.guarded_sockets import GuardedSocket
from contrada.server.guarding import GuardedProtocol

_FINISH_S = 5.0  # for the requests that are under way when the server stops
_LAST_WORDS_S, _PAUSE_S = 2.0, 0.01
_PING_S = 20.0  # between two pings of a WebSocket, and for the answer to one


class GuardedServer(uvicorn.Server):
    """Serves an application until it is told to stop."""

    def __init__(
        self,
        app: ASGIApp,
        listeners: Sequence[socket.socket],
        limits: GuardLimits,
        *,
        tls: ssl.SSLContext | None = None,
        frame_bytes_max: Callable[[], int] = lambda: 2**20,
        on_stop: Callable[[], object] = lambda: None,
        has_ended: Callable[[], bool] = lambda: True,
        finish_s: float = _FINISH_S,
    ) -> None:
        """Take sockets that listen; `on_stop` is called when it begins to stop, to end streams.

        Streams have a moment to say their last words, until `has_ended`; requests that are under
        way have `finish_s` to end.
        """
        config = uvicorn.Config(
            app,
            http=GuardedProtocol,
            ws=partial(GuardedSocket, limits=limits),  # type: ignore[arg-type]
            ws_ping_interval=_PING_S,
            ws_ping_timeout=_PING_S,
            ws_per_message_deflate=False,  # it takes 300 kB for each connection
            loop="asyncio",
            lifespan="on",
            log_config=None,
            access_log=False,
            proxy_headers=False,  # whoever sends one could be anybody
            server_header=False,
        )
        config.timeout_graceful_shutdown = finish_s  # type: ignore[assignment]
        super().__init__(config)
        self._listeners, self._limits, self._tls = listeners, limits, tls
        self._frame_bytes_max = frame_bytes_max
        self._on_stop, self._has_ended = on_stop, has_ended
        self.guarded = Connections(limits)

    async def startup(self, sockets: object = None) -> None:  # noqa: ARG002
        """Start the application, then accept connections."""
        await self.lifespan.startup()
        if self.lifespan.should_exit:
            raise Unavailable("the application could not start; the log says why")
        doors = [
            Door(listener, self._make_protocol, self.guarded, self._limits, self._tls)
            for listener in self._listeners
        ]
        for door in doors:
            door.open()
        self.servers: list[Any] = doors
        self.started = True

    async def shutdown(self, sockets: object = None) -> None:  # noqa: ARG002
        """Accept no more, end streams, and finish what is under way for some seconds."""
        self._on_stop()
        end_s = asyncio.get_running_loop().time() + _LAST_WORDS_S
        while not self._has_ended() and asyncio.get_running_loop().time() < end_s:
            await asyncio.sleep(_PAUSE_S)  # else uvicorn closes sockets before their answers
        await super().shutdown()
        for connection in list(self.server_state.connections):  # whoever takes nothing
            transport = connection.transport
            if transport is not None:
                transport.abort()
        await asyncio.sleep(0)  # in which the connections end

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to whoever runs this."""
        yield

    def stop(self) -> None:
        """Begin to stop; from the thread that serves."""
        self.should_exit = True

    def force(self) -> None:
        """Stop without finishing anything."""
        self.should_exit = self.force_exit = True

    def _make_protocol(self) -> GuardedProtocol:
        self.config.timeout_keep_alive = self._limits.idle_s_max  # type: ignore[assignment]
        self.config.ws_max_size = self._frame_bytes_max()
        return GuardedProtocol(self.config, self.server_state, self.lifespan.state, self._limits)
