"""A real broker behind a real server, on loopback in a thread of this process."""

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn

from contrada.broker.broker import Broker
from contrada.broker.broker_options import BrokerOptions
from contrada.server.application import make_app

EPHEMERAL = BrokerOptions(is_durable=False)


class _Server(uvicorn.Server):
    """Tells when it listens, and on which port."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.loop = asyncio.get_running_loop()
        self.listening.set()

    @property
    def port(self) -> int:
        port: int = self.servers[0].sockets[0].getsockname()[1]
        return port


class ServedBroker:
    """A broker of a folder that is served; it may be stopped and started again on its port."""

    def __init__(self, folder: Path, options: BrokerOptions = EPHEMERAL) -> None:
        self._folder, self._options = folder, options
        self._port = 0
        self._stop: Callable[[], None] = lambda: None
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        self.broker = Broker.open(self._folder, self._options)
        app = make_app(lambda _: self.broker)
        config = uvicorn.Config(
            app, port=self._port, log_config=None, lifespan="on", ws="none", access_log=False
        )
        server = _Server(config)
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        assert server.listening.wait(30)
        self._port = server.port

        def stop() -> None:
            server.loop.call_soon_threadsafe(app.state.stopping.set)
            server.should_exit = True
            thread.join(30)
            self.broker.close()

        self._stop = stop

    def stop(self) -> None:
        self._stop()


@contextmanager
def serving(folder: Path, options: BrokerOptions = EPHEMERAL) -> Iterator[ServedBroker]:
    served = ServedBroker(folder, options)
    try:
        yield served
    finally:
        served.stop()
