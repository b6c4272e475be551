"""A broker that restarts while clients publish: they wait, and nothing is lost or doubled."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from contrada.client import AsyncClient, Client
from contrada.client.exchange import Pause
from contrada.client.received import PublishReceipt
from contrada.client.retrying import RETRIES, Attempts
from contrada.errors import BrokerStarting, Unavailable
from contrada.server.tenants import Tenants
from served_broker import ServedBroker

PATIENCE_S = 30


class Restart:
    """A broker that is stopped, started after some looks at it, and open after some more.

    A client's time passes with each look, for which no test waits.
    """

    def __init__(self, served: ServedBroker, starts_at: int, opens_at: int) -> None:
        self.looks, self._starts_at, self._opens_at = 0, starts_at, opens_at
        self._listens, self._may_open = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=served.start)
        self._wait, self._open = Attempts.wait, Tenants._open_folder
        served.stop()

    def open(self, tenants: Tenants, folder: Any) -> Any:
        self._listens.set()
        assert self._may_open.wait(PATIENCE_S)
        return self._open(tenants, folder)

    def look(self, attempts: Attempts, *times: float) -> Pause | None:
        self.looks += 1
        if self.looks == self._starts_at:
            self._thread.start()
            assert self._listens.wait(PATIENCE_S)
        if self.looks == self._opens_at:
            self.end()
        return None if self._wait(attempts, *times) is None else Pause(0)

    def end(self) -> None:
        self._may_open.set()
        if self._thread.ident is not None:
            self._thread.join(PATIENCE_S)


Begin = Callable[[int, int], Restart]


@pytest.fixture
def restart(served: ServedBroker, monkeypatch: pytest.MonkeyPatch) -> Iterator[Begin]:
    begun = []

    def begin(starts_at: int, opens_at: int) -> Restart:
        restart = Restart(served, starts_at, opens_at)
        begun.append(restart)
        monkeypatch.setattr("contrada.server.tenants._PATIENCE_S", 0.0)
        monkeypatch.setattr(Tenants, "_open_folder", lambda *args: restart.open(*args))  # noqa: PLW0108 - bound
        monkeypatch.setattr(Attempts, "wait", lambda *args: restart.look(*args))  # noqa: PLW0108 - bound
        return restart

    yield begin
    for restart in begun:
        restart.end()


def test_a_client_waits_for_a_broker_that_restarts(client: Client, restart: Begin) -> None:
    client.put_subscription("all", "n > 0", subscriber="ops")
    restarted = restart(RETRIES + 1, RETRIES + 5)
    receipt = client.publish([{"n": 1}, {"n": 2}])
    assert restarted.looks == RETRIES + 5
    assert (receipt.accepted, receipt.repeated, receipt.matches) == (2, 0, 2)
    assert len(client.deliveries("ops").deliveries) == 2


def test_an_asynchronous_client_does_so_too(served: ServedBroker, restart: Begin) -> None:
    async def talk() -> PublishReceipt:
        async with AsyncClient(served.url) as client:
            await client.put_subscription("all", "n > 0", subscriber="ops")
            await asyncio.to_thread(restart, RETRIES + 1, RETRIES + 5)
            return await client.publish([{"n": 1}, {"n": 2}])

    assert asyncio.run(talk()).matches == 2


def test_a_broker_that_takes_too_long_to_start_is_named_as_that(
    client: Client, restart: Begin
) -> None:
    client.get_settings()
    restart(1, 1_000)
    with pytest.raises(BrokerStarting, match="the broker is starting"):
        client.publish({"n": 1})


def test_a_broker_that_stays_away_is_unavailable_with_the_time(
    client: Client, restart: Begin
) -> None:
    client.get_settings()
    restart(1_000, 1_000)
    with pytest.raises(Unavailable, match=r"no connection: .*, after waiting for 3\d s"):
        client.publish({"n": 1})
