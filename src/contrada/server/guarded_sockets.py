"""A WebSocket's guard, around uvicorn's protocol, which reads as fast as frames come.

Tiny frames are nearly free to send, and each costs some time here. So what has come is parsed in
small pieces, no piece before the application has taken all frames of the one before, and the caller
has a rate of frames; meanwhile nothing more is read off the connection. Between two pieces
everybody else has a turn. Control frames, which an application never sees and nobody needs many
of, end the socket beyond a rate of their own.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import ServerState
from websockets.exceptions import InvalidState
from websockets.frames import Frame

from contrada.server.guard_limits import GuardLimits
from contrada.server.rates import RequestRates

PACE = "pace"  # of the scope's state: a function that takes frames and returns seconds to wait

_PIECE_BYTES = 1_024  # the smallest frames are 6 bytes: some two milliseconds
_FRAGMENTS_MAX = 4_096  # of one message: each takes far more memory than its bytes
_CLOSE_TOO_MANY = 1008
_FAREWELL_S = 1.0  # for the other end to read why its socket ends


class GuardedSocket(WebSocketsSansIOProtocol):
    """One WebSocket; what is wrong with its frames, or too much of them, ends it alone.

    Where `_held` has bytes, or the caller has to wait, the connection is not read from, and
    exactly one of these goes on: the application that takes a frame or accepts, or `_going_on`.
    """

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        *,
        limits: GuardLimits,
    ) -> None:
        """Take what uvicorn's own protocol does, and limits that hold for this socket."""
        super().__init__(config, server_state, app_state)
        self._limits = limits
        self._held = bytearray()
        self._frames = 0  # of the piece that is being parsed
        self._free_at_s = 0.0
        self._going_on: asyncio.TimerHandle | None = None
        self._controls = RequestRates()
        self._is_ended = False

    # What asyncio and the application call

    def data_received(self, data: bytes) -> None:
        """Read on, unless something of before is still to be read."""
        if self._is_ended:
            return
        self._held += data
        if self._going_on is None and not self._waits_for_application:
            self._read_on()
        else:
            self.transport.pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget what nobody would be answered for."""
        self._end_reading()
        super().connection_lost(exc)

    async def receive(self) -> Any:
        """Return the next message; once all are taken, read on."""
        message = await self.queue.get()
        if self.read_paused and self.queue.empty():
            self.read_paused = False
            self._go_on()
        return message

    async def send(self, message: Any) -> None:
        """Send a message; one that accepts or closes the socket lets it be read from again."""
        if self.close_sent and message["type"] in ("websocket.send", "websocket.close"):
            raise ClientDisconnected  # what went wrong here has ended it
        was_open = self.handshake_complete
        await super().send(message)
        if not was_open and self.handshake_complete:
            self._free_at_s = self.loop.time() + self._pace(0)
        if not was_open or self.close_sent:
            self._go_on()

    # What the parser finds

    def handle_text(self, event: Frame) -> None:
        """Take a text or the beginning of one."""
        self._count(is_control=not (event.fin or event.data))
        super().handle_text(event)

    def handle_bytes(self, event: Frame) -> None:
        """Take bytes or the beginning of them."""
        self._count(is_control=not (event.fin or event.data))
        super().handle_bytes(event)

    def handle_cont(self, event: Frame) -> None:
        """Take a further part of a message; one without content is as good as a ping."""
        self._count(is_control=not (event.fin or event.data))
        if len(self.frames) >= _FRAGMENTS_MAX:
            self._end(f"a message comes in at most {_FRAGMENTS_MAX:,} parts")
        super().handle_cont(event)

    def handle_ping(self) -> None:
        """Answer a ping."""
        self._count(is_control=True)
        super().handle_ping()

    def handle_pong(self, event: Frame) -> None:
        """Take the answer to a ping, or one that nobody has asked for."""
        self._count(is_control=True)
        super().handle_pong(event)

    def _count(self, *, is_control: bool) -> None:
        self._frames += 1
        most = self._limits.control_frames_per_s_max
        if is_control and self._controls.take("", most, self.loop.time()):
            self._end(f"more than {most:,} control frames a second are too many")

    # How fast it is read from

    @property
    def _waits_for_application(self) -> bool:
        """Whether messages wait to be taken, or a handshake to be answered."""
        return self.read_paused or (self.handshake_initiated and not self.handshake_complete)

    def _read_on(self) -> None:
        """Parse what is held up to the next frames, and no further."""
        self._going_on = None
        self._frames = 0
        while self._held and not self._frames and not self._waits_for_application:
            piece = bytes(self._held[:_PIECE_BYTES])
            del self._held[:_PIECE_BYTES]
            try:
                super().data_received(piece)
            except InvalidState:  # uvicorn cannot end what the other end has closed already
                self.transport.abort()
            if self.transport.is_closing() or self._is_ended:
                self._end_reading()
                return
        if self._frames:
            self._free_at_s = self.loop.time() + self._pace(self._frames)
        self._go_on()

    def _go_on(self) -> None:
        """Read on when it is time to, and from the connection once nothing is held."""
        if self.transport.is_closing() or self._is_ended or self._going_on is not None:
            return
        wait_s = max(0.0, self._free_at_s - self.loop.time())
        if self._held or wait_s or self.read_paused:
            self.transport.pause_reading()
            if not self._waits_for_application:
                self._going_on = self.loop.call_later(wait_s, self._read_on)
        else:
            self.transport.resume_reading()

    def _pace(self, frames: int) -> float:
        """Count frames of the caller; return the seconds until the next may come."""
        pace: Callable[[int], float] | None = self.scope["state"].get(PACE)
        return 0.0 if pace is None else pace(frames)

    def _end(self, reason: str) -> None:
        """Close with a reason, read nothing more, and wait a moment for the other end to go."""
        if self._is_ended or self.close_sent or self.transport.is_closing():
            return
        self._is_ended = True
        self.stop_keepalive()
        self.queue.put_nowait({"type": "websocket.disconnect", "code": _CLOSE_TOO_MANY})
        self.conn.fail(_CLOSE_TOO_MANY, reason)
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.close_sent = True
        self.transport.pause_reading()
        self.close_timer = self.loop.call_later(_FAREWELL_S, self.transport.abort)

    def _end_reading(self) -> None:
        self._held.clear()
        if self._going_on is not None:
            self._going_on.cancel()
            self._going_on = None
