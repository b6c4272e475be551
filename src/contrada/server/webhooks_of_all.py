"""The webhooks of all brokers of one server: they begin with a broker and stop before it closes."""

import asyncio
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import httpx

from contrada.broker.broker import Broker
from contrada.server.public_addresses import AddressRules, NameLookups
from contrada.server.webhook_posts import WebhookOptions
from contrada.server.webhooks import Webhooks

_THREADS = 4


class AllWebhooks:
    """Who calls the webhooks of each broker that is open; it belongs to the loop that serves."""

    def __init__(self, allowed: Iterable[str]) -> None:
        """Take the networks that may be called besides public addresses."""
        self._options = WebhookOptions(AddressRules.read(allowed))
        self._threads = ThreadPoolExecutor(_THREADS, "contrada-webhooks")
        self._tls = httpx.create_ssl_context()
        self._lookups = NameLookups()
        self._each: list[Webhooks] = []
        self._stopping: asyncio.Task[None] | None = None

    async def begin(self, broker: Broker) -> None:
        """Call the webhooks of a broker from now on, unless all stop."""
        if self._stopping is not None:
            return
        webhooks = Webhooks(
            broker, self._threads, self._options, tls=self._tls, resolve=self._lookups
        )
        self._each.append(webhooks)
        await webhooks.start()

    def count(self, broker: Broker) -> dict[str, int]:
        """Count what became of the requests of a broker's webhooks, and those at work."""
        for webhooks in self._each:
            if webhooks.broker is broker:
                return {**webhooks.counts, "webhook_tasks": webhooks.count_tasks()}
        return {}

    def begin_to_stop(self) -> None:
        """Stop them while others stop, too."""
        if self._stopping is None:
            self._stopping = asyncio.create_task(self._stop_each())

    async def stop(self) -> None:
        """Return once no webhook is called any more."""
        self.begin_to_stop()
        assert self._stopping is not None
        await self._stopping
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _stop_each(self) -> None:
        await asyncio.gather(*(webhooks.stop() for webhooks in self._each))
