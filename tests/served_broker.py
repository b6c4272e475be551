"""What `contrada serve` runs, on a free port of loopback, in a thread of this process."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from contrada.server.hosting import Host
from contrada.server.settings import read_settings


class ServedBroker:
    """A server of a folder, which may be stopped and started again on its port.

    Webhooks may be on loopback.
    """

    def __init__(self, folder: Path, **flags: object) -> None:
        self._flags = {"data": str(folder), "allow_webhook": ["127.0.0.0/8"], **flags}
        self._port = 0
        self.url = ""
        self.start()

    def start(self) -> None:
        self._is_ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))
        self._thread.start()
        assert self._is_ready.wait(30)
        assert self._thread.is_alive()

    async def _serve(self) -> None:
        try:
            settings = read_settings({**self._flags, "port": str(self._port)}, environment={})
            self._loop, self._host = asyncio.get_running_loop(), Host(settings, lambda: settings)
            await self._host.run(self._hear_ready)
        finally:
            self._is_ready.set()

    def _hear_ready(self, address: str) -> None:
        self.url, self._port = address, int(address.rpartition(":")[2])
        self._is_ready.set()

    def stop(self) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._host.stop)
            self._thread.join(30)
            assert not self._thread.is_alive()


@contextmanager
def serving(folder: Path, **flags: object) -> Iterator[ServedBroker]:
    served = ServedBroker(folder, **flags)
    try:
        yield served
    finally:
        served.stop()
