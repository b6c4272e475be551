"""A whole server in a thread of this process: keys, tenants and guards around real brokers."""

import asyncio
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx

from contrada.broker.keys import KeyFile
from contrada.server.hosting import Host
from contrada.server.settings import ServeSettings, read_settings

PATIENCE_S = 60.0
HERE = {"type": "Point", "coordinates": [1, 2]}
FEATURE = {"type": "Feature", "geometry": HERE, "properties": {}}


class Hosted:
    """A server of a data folder, for the thread of a test."""

    def __init__(self, data: Path, flags: Mapping[str, Any], limits: list[str]) -> None:
        self.data, self.flags, self.limits = data, {"port": "0", **flags}, limits
        self.keys = KeyFile(data)
        self._told = threading.Event()
        self._fault: BaseException | None = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        assert self._told.wait(PATIENCE_S)
        self._raise()

    def _read(self) -> ServeSettings:
        return read_settings({"data": self.data, **self.flags}, None, self.limits, {})

    def _run(self) -> None:
        try:
            asyncio.run(self._host())
        except BaseException as fault:
            self._fault = fault
        finally:
            self._told.set()

    async def _host(self) -> None:
        self.host = Host(self._read(), self._read)
        self._loop = asyncio.get_running_loop()
        await self.host.run(self._tell)

    def _tell(self, address: str) -> None:
        self.address = address
        self._told.set()

    def add_key(self, name: str, scopes: str, tenant: str = "default") -> dict[str, str]:
        """Add a key and return the header that has it."""
        token = self.keys.add(name, scopes.split(), tenant, datetime.now(UTC))
        return {"Authorization": f"Bearer {token}"}

    def client(self, headers: Mapping[str, str] | None = None) -> httpx.Client:
        """Make a client that trusts nothing of the environment."""
        return httpx.Client(
            base_url=self.address, headers=headers, trust_env=False, timeout=PATIENCE_S
        )

    def call(self, name: str) -> None:
        """Call a method of the host in its loop, as a signal does, and wait until it has run."""
        done = threading.Event()

        def run() -> None:
            getattr(self.host, name)()
            done.set()

        self._loop.call_soon_threadsafe(run)
        assert done.wait(PATIENCE_S)

    def stop(self) -> None:
        """Stop, and raise what went wrong."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self.host.stop)
            self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()
        self._raise()

    def _raise(self) -> None:
        if self._fault is not None:
            self._thread.join()
            raise self._fault


@contextmanager
def hosted(data: Path, *limits: str, **flags: Any) -> Iterator[Hosted]:
    """Run a server until the block is left."""
    server = Hosted(data, flags, list(limits))
    try:
        yield server
    finally:
        server.stop()


def wait_until(condition: Any) -> None:
    """Wait for what must become true, patiently."""
    pause, given_up = threading.Event(), threading.Event()
    timer = threading.Timer(PATIENCE_S, given_up.set)
    timer.start()
    try:
        while not condition():
            assert not given_up.is_set(), "it did not become true"
            pause.wait(0.01)
    finally:
        timer.cancel()
