"""A connection's first guard, around uvicorn's protocol, which alone waits for ever for a header.

A header must come whole within a time and a size, and a client must take what waits for it. The
body of a request is timed where it is read; a WebSocket has a guard of its own.
"""

import asyncio
import json
from http import HTTPStatus
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from contrada.server.guard_limits import GuardLimits

_PIPELINE_MAX = 100  # requests that a client sends before the first of them is answered
_PARTS_FREE, _PART_BYTES_MIN = 1_000, 16  # of a body: smaller ones cost far more than they carry
_SEPARATORS = len(": ") + len("\r\n")  # of a header, which the parser does not count


class GuardedProtocol(HttpToolsProtocol):
    """One connection: its requests come one after another, each after a header in time."""

    def __init__(
        self, config: Config, state: ServerState, app_state: dict[str, Any], limits: GuardLimits
    ) -> None:
        """Take what uvicorn's own protocol does, and limits that hold for this connection."""
        super().__init__(config, state, app_state)
        self._limits = limits
        self._header_timer: asyncio.TimerHandle | None = None
        self._stall_timer: asyncio.TimerHandle | None = None
        self._header_bytes = self._fed_bytes = 0
        self._parts = self._body_bytes = 0
        self._is_in_header = True
        self._refusal = HTTPStatus.BAD_REQUEST

    # What asyncio calls

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first header."""
        super().connection_made(transport)
        self._await_header()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop all timers."""
        self._stop_header_timer()
        self._stop_stall_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on; what is neither a header in time nor a body that is wanted ends it."""
        self._fed_bytes += len(data)
        super().data_received(data)
        if self.transport.is_closing() or self.transport.get_protocol() is not self:
            return
        if self._is_in_header and self._fed_bytes > self._limits.header_bytes_max:
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        elif self.cycle is None or self.cycle.response_complete:
            self._await_header()  # between requests: blank lines, or a body nobody reads any more

    def pause_writing(self) -> None:
        """Wait until the client takes what is there for it, but not for ever."""
        super().pause_writing()
        if self._stall_timer is None:
            delay_s = self._limits.stall_s_max
            self._stall_timer = self.loop.call_later(delay_s, self.transport.abort)

    def resume_writing(self) -> None:
        """Write on."""
        self._stop_stall_timer()
        super().resume_writing()

    # What the parser calls

    def on_message_begin(self) -> None:
        """Begin a request."""
        super().on_message_begin()
        self._is_in_header = True
        self._header_bytes = self._parts = self._body_bytes = 0
        self._await_header()

    def on_url(self, url: bytes) -> None:
        """Take a piece of the first line."""
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header."""
        self._count(len(name) + len(value) + _SEPARATORS)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Run the request."""
        self._is_in_header = False
        self._stop_header_timer()
        if len(self.pipeline) >= _PIPELINE_MAX:
            self.transport.abort()
            raise ValueError("too many requests wait for answers")  # which ends the parser
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take a part of a body."""
        self._parts += 1
        self._body_bytes += len(body)
        parts = self._parts - _PARTS_FREE
        if parts > 0 and self._body_bytes < parts * _PART_BYTES_MIN:
            self.transport.abort()
            raise ValueError("the parts of the body are too small")  # which ends the parser
        super().on_body(body)

    def on_message_complete(self) -> None:
        """End a request; what comes now belongs to the next."""
        self._fed_bytes = 0
        super().on_message_complete()

    # What it refuses

    def send_400_response(self, msg: str) -> None:
        """Answer what is not HTTP, or too much of it, as a problem, and close."""
        if self.transport.is_closing():
            return
        status = self._refusal
        problem = {"type": "about:blank", "title": status.phrase, "status": status, "detail": msg}
        if status != HTTPStatus.BAD_REQUEST:
            most = self._limits.header_bytes_max
            problem["detail"] = f"the first line and the headers may have {most:,} bytes"
        body = json.dumps(problem).encode()
        head = (
            f"HTTP/1.1 {status.value} {status.phrase}\r\ncontent-type: application/problem+json\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()

    def _count(self, nbytes: int) -> None:
        self._header_bytes += nbytes
        if self._header_bytes > self._limits.header_bytes_max:
            self._refusal = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
            raise ValueError("the header is too large")  # which ends the parser

    def _refuse(self, status: HTTPStatus) -> None:
        self._refusal = status
        self.send_400_response("")

    def _await_header(self) -> None:
        if self._header_timer is None:
            delay_s = self._limits.header_s_max
            self._header_timer = self.loop.call_later(delay_s, self._close)

    def _close(self) -> None:
        if not self.transport.is_closing():
            self.transport.close()

    def _stop_header_timer(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def _stop_stall_timer(self) -> None:
        if self._stall_timer is not None:
            self._stall_timer.cancel()
            self._stall_timer = None
