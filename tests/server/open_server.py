"""A broker in a folder of its own behind a real server on a free port, in a thread."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from starlette.applications import Starlette

from contrada.broker.broker import Broker
from contrada.broker.broker_options import BrokerOptions
from contrada.server.application import make_app
from contrada.server.server_limits import ServerLimits

SQUARE = {"type": "Polygon", "coordinates": [[[0, 0], [9, 0], [9, 9], [0, 9], [0, 0]]]}


def point(x: float, y: float, **properties: Any) -> dict[str, Any]:
    """A Feature of a point."""
    place = {"type": "Point", "coordinates": [x, y]}
    return {"type": "Feature", "geometry": place, "properties": properties}


def collection(*features: Any) -> dict[str, Any]:
    return {"type": "FeatureCollection", "features": list(features)}


class OpenServer:
    """An application that is being served; `client` sends requests to it."""

    def __init__(self, app: Starlette, broker: Broker) -> None:
        self.app, self.broker = app, broker
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        config = uvicorn.Config(
            app, log_config=None, ws="websockets-sansio", timeout_graceful_shutdown=5
        )
        self._server = uvicorn.Server(config)
        self.client = httpx.Client(base_url=self.url, timeout=30)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_serving = threading.Event()
        self._thread = threading.Thread(target=self._run)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def socket_url(self) -> str:
        return f"ws://127.0.0.1:{self.port}/v1/socket"

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._is_serving.set()
        await self._server.serve([self._listener])

    def start(self) -> None:
        self._thread.start()
        assert self._is_serving.wait(30)
        assert self.client.get("/readyz").status_code == 200

    def tell_streams_to_end(self) -> None:
        """What the server does at SIGTERM."""
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self.app.state.stopping.set)

    def stop(self) -> None:
        self.client.close()
        self.tell_streams_to_end()
        self._server.should_exit = True
        self._thread.join(30)
        assert not self._thread.is_alive()


@contextmanager
def serving(
    folder: Path,
    limits: ServerLimits | None = None,
    options: BrokerOptions | None = None,
    **more: Any,
) -> Iterator[OpenServer]:
    """Serve a broker of a folder; `more` goes to `make_app`."""
    broker = Broker.open(folder, options or BrokerOptions(is_durable=False))
    try:
        server = OpenServer(make_app(lambda _: broker, limits, **more), broker)
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        broker.close()
