"""The brokers of all tenants: each is opened once, in a thread, and closed at the end."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from contrada.broker.broker import Broker
from contrada.broker.broker_options import BrokerOptions
from contrada.broker.keys import DEFAULT_TENANT
from contrada.broker.tenant_folders import list_tenants, tenant_folder
from contrada.errors import BrokerStarting, ContradaError, Unavailable

_LOG = logging.getLogger("contrada.server")
_OPENING_THREADS = 2
_PATIENCE_S = 5.0  # of a request whose tenant is being opened
_RETRY_S = 2.0
_STARTING = "the broker is starting: it is being opened"


class Tenants:
    """The brokers that are open; all methods but `find` belong to the loop that serves."""

    def __init__(
        self,
        data: Path,
        options: BrokerOptions,
        begin: Callable[[Broker], Awaitable[object]] | None = None,
    ) -> None:
        """Take a data folder; `begin` starts what works for a broker as long as it is open."""
        self._data, self._options, self._begin = data, options, begin
        self._opening: dict[str, asyncio.Task[Broker]] = {}
        self._threads = ThreadPoolExecutor(_OPENING_THREADS, "contrada-opening")
        self._open: dict[str, Broker] = {}
        self.is_ready = False

    async def open_all(self) -> None:
        """Open the tenants that the folder has, and the one there is without keys."""
        names = dict.fromkeys([DEFAULT_TENANT, *list_tenants(self._data)])
        for opening in [self._open_once(name) for name in names]:
            await opening
        self.is_ready = True

    async def opened(self, tenant: str) -> None:
        """Return once a tenant is open; it begins with its first request."""
        if tenant in self._open:
            return
        try:
            async with asyncio.timeout(_PATIENCE_S):
                await asyncio.shield(self._open_once(tenant))
        except TimeoutError:
            raise BrokerStarting(_STARTING, _RETRY_S) from None
        except ContradaError as fault:  # which names folders, and is nothing a caller could change
            raise Unavailable("the broker cannot be opened; its log has the reason") from fault

    def find(self, tenant: str) -> Broker:
        """Return the broker of a tenant that is open."""
        broker = self._open.get(tenant)
        if broker is None:
            raise BrokerStarting(_STARTING, _RETRY_S)
        return broker

    def brokers(self) -> dict[str, Broker]:
        """Return all brokers that are open, by tenant."""
        return dict(self._open)

    async def close(self) -> None:
        """Close all; what waits to be stored is stored first."""
        openings = list(self._opening.values())
        await asyncio.gather(*openings, return_exceptions=True)
        loop = asyncio.get_running_loop()
        brokers, self._open = list(self._open.values()), {}
        closings = [loop.run_in_executor(self._threads, broker.close) for broker in brokers]
        faults = await asyncio.gather(*closings, return_exceptions=True)
        self._threads.shutdown(wait=False)
        for fault in faults:
            if fault is not None:
                raise fault

    def _open_once(self, tenant: str) -> asyncio.Task[Broker]:
        task = self._opening.get(tenant)
        if task is None:
            task = self._opening[tenant] = asyncio.create_task(self._open_one(tenant))
            task.add_done_callback(lambda done: self._end_opening(tenant, done))
        return task

    async def _open_one(self, tenant: str) -> Broker:
        folder = tenant_folder(self._data, tenant)
        loop = asyncio.get_running_loop()
        broker = await loop.run_in_executor(self._threads, self._open_folder, folder)
        self._open[tenant] = broker
        if self._begin is not None:
            await self._begin(broker)
        return broker

    def _open_folder(self, folder: Path) -> Broker:
        return Broker.open(folder, self._options)

    def _end_opening(self, tenant: str, done: asyncio.Task[Broker]) -> None:
        """Let one that failed be tried again."""
        self._opening.pop(tenant, None)
        if not done.cancelled() and done.exception() is not None:
            _LOG.error("tenant %s: %s", tenant, done.exception())
