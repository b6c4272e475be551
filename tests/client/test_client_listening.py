"""A listener loses nothing: not with a connection, not with a broker that restarts."""

import asyncio
import threading
from collections.abc import Iterator
from itertools import islice
from queue import Queue

import pytest

from contrada.client import resuming
from contrada.client.awaiting import AsyncClient
from contrada.client.blocking import Client
from contrada.client.exchange import BrokerRequest, HttpAnswer, NoAnswer
from contrada.client.received import MissedDeliveries, ReceivedDelivery, ReceivedPage
from contrada.client.resuming import ListeningPlace
from contrada.client.retrying import ONCE
from contrada.errors import Gone
from served_broker import ServedBroker


class CountingClient(Client):
    """A client that notes what it asks for."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.asked: list[str] = []

    def _exchange(self, request: BrokerRequest) -> HttpAnswer | NoAnswer:
        self.asked.append(request.path.rsplit("/", 1)[-1])
        return super()._exchange(request)


@pytest.fixture
def counting(served: ServedBroker) -> Iterator[CountingClient]:
    with CountingClient(served.url) as client:
        client.put_subscription("all", "n >= 0", subscriber="ops")
        yield client


def number_of(delivery: ReceivedDelivery) -> int:
    assert delivery.event is not None
    number: int = delivery.event["properties"]["n"]
    return number


def test_a_listener_hears_what_was_there_and_what_comes(counting: CountingClient) -> None:
    counting.publish({"n": n} for n in range(3))
    heard = counting.listen("ops")
    assert [number_of(next(heard)) for _ in range(3)] == [0, 1, 2]
    later = threading.Thread(target=counting.publish, args=[{"n": 3}])
    later.start()
    assert number_of(next(heard)) == 3
    later.join()


def test_a_listener_asks_for_no_more_than_is_used(counting: CountingClient) -> None:
    counting.publish({"n": n} for n in range(25))
    counting.asked.clear()
    heard = counting.listen("ops", limit=10)
    assert counting.asked == []
    list(islice(heard, 10))
    assert counting.asked == ["deliveries"]
    list(islice(heard, 11))
    assert counting.asked == ["deliveries"] * 3


def test_a_listener_survives_a_restart_of_the_broker(served: ServedBroker, client: Client) -> None:
    client.put_subscription("all", "n >= 0", subscriber="ops")
    queue: Queue[int] = Queue()

    def hear() -> None:
        with Client(served.url) as own:
            for delivery in own.listen("ops", auto_ack=True):
                queue.put(number_of(delivery))
                if number_of(delivery) == 3:
                    return

    listener = threading.Thread(target=hear)
    listener.start()
    client.publish([{"n": 0}, {"n": 1}])
    assert [queue.get(timeout=30) for _ in range(2)] == [0, 1]
    served.stop()
    served.start()
    client.publish([{"n": 2}, {"n": 3}])
    assert [queue.get(timeout=30) for _ in range(2)] == [2, 3]
    listener.join(30)


def test_a_listener_acknowledges_what_was_used_and_no_more(
    counting: CountingClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resuming, "_ACK_INTERVAL_S", 3_600)
    counting.publish({"n": n} for n in range(5))
    heard = counting.listen("ops", auto_ack=True, limit=3)
    list(islice(heard, 3))
    assert "ack" not in counting.asked
    next(heard)
    assert counting.asked.count("ack") == 1
    assert number_of(counting.deliveries("ops").deliveries[0]) == 3
    next(heard)
    assert counting.asked.count("ack") == 1
    heard.close()
    assert number_of(counting.deliveries("ops").deliveries[0]) == 4


def test_a_listener_acknowledges_nothing_by_itself(counting: CountingClient) -> None:
    counting.publish({"n": n} for n in range(3))
    list(islice(counting.listen("ops"), 3))
    assert "ack" not in counting.asked
    assert number_of(counting.deliveries("ops").deliveries[0]) == 0


def test_a_listener_begins_after_a_position(counting: CountingClient) -> None:
    counting.publish([{"n": 0}, {"n": 1}])
    first = counting.deliveries("ops").deliveries[0]
    assert number_of(next(counting.listen("ops", after=first.position))) == 1


def test_an_asynchronous_listener_is_woken_and_acknowledges(served: ServedBroker) -> None:
    async def talk() -> list[int]:
        async with AsyncClient(served.url) as client:
            await client.put_subscription("all", "n >= 0", subscriber="ops")
            numbers: list[int] = []

            async def hear() -> None:
                async for delivery in client.listen("ops", auto_ack=True):
                    numbers.append(number_of(delivery))
                    if len(numbers) == 3:
                        return

            listener = asyncio.create_task(hear())
            for n in range(3):
                await client.publish({"n": n})
            await listener
            return numbers

    assert asyncio.run(talk()) == [0, 1, 2]


def test_a_gap_is_told_or_ends_the_listening() -> None:
    page = ReceivedPage((), "p-9", MissedDeliveries("p-8", 7))

    def hear(place: ListeningPlace) -> ReceivedPage:
        steps = place.read()
        next(steps)
        body = b'{"deliveries":[],"next":"p-9","gap":{"until":"p-8","deliveries":7}}'
        with pytest.raises(StopIteration) as stop:
            steps.send(HttpAnswer(200, {}, body))
        result: ReceivedPage = stop.value.value
        return result

    told: list[MissedDeliveries] = []
    assert hear(ListeningPlace("ops", None, 10, False, told.append, ONCE)) == page
    assert told == [page.gap]
    steps = ListeningPlace("ops", None, 10, False, None, ONCE).read()
    next(steps)
    with pytest.raises(Gone, match="7 deliveries up to position p-8"):
        steps.send(
            HttpAnswer(
                200, {}, b'{"deliveries":[],"next":"p-9","gap":{"until":"p-8","deliveries":7}}'
            )
        )
