"""`/v1/socket`: the WebSocket route; what is said on it is in `socket_frames`."""

import asyncio
from contextlib import suppress

from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from contrada.errors import ContradaError
from contrada.server.open_streams import Ending
from contrada.server.problems import HttpRefusal
from contrada.server.query_parameters import QueryParameters
from contrada.server.service import PUBLISH, SUBSCRIBE, Service, service_of
from contrada.server.socket_frames import CLOSE_REFUSED, CLOSE_STOPPING
from contrada.server.socket_session import SocketSession

_FAREWELL_S = 1.0  # for closing a socket whose other end may be stalled
_FORBIDDEN = 403
_REASON_BYTES_MAX = 120  # of a close frame


def socket_routes() -> list[WebSocketRoute]:
    """Make the route of the socket."""
    return [WebSocketRoute("/v1/socket", serve_socket)]


async def serve_socket(socket: WebSocket) -> None:
    """Serve one socket until either end closes it."""
    service = service_of(socket)
    QueryParameters(socket)

    def check() -> None:
        _check_some_scope(service, socket)

    check()
    with service.streams.entered(check) as stream:
        await socket.accept()
        try:
            ending = await stream.run(SocketSession(service, socket).run(), _never())
        except WebSocketDisconnect:
            return
        except ContradaError as fault:
            await _close(socket, CLOSE_REFUSED, str(fault))
            return
        if ending is Ending.STOPPED:
            await _close(socket, CLOSE_STOPPING, "the broker stops")


def _check_some_scope(service: Service, socket: WebSocket) -> None:
    """Refuse a key that counts no longer, or allows neither to publish nor to receive."""
    try:
        service.check_scope(socket, PUBLISH)
    except HttpRefusal as refusal:
        if refusal.status != _FORBIDDEN:
            raise
        service.check_scope(socket, SUBSCRIBE)


async def _close(socket: WebSocket, code: int, reason: str) -> None:
    cut = reason.encode()[:_REASON_BYTES_MAX].decode(errors="ignore")
    with suppress(TimeoutError, RuntimeError, WebSocketDisconnect, OSError):
        async with asyncio.timeout(_FAREWELL_S):
            await socket.close(code, cut)


async def _never() -> None:
    """Wait for ever: a session notices by itself that the other end is gone."""
    await asyncio.get_running_loop().create_future()
