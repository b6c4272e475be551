"""A server that is killed while clients publish and read: streams that resume have all, once."""

import asyncio
import json
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from served_process import ServedProcess, served_process
from server.open_server import SQUARE, collection, point
from server.stream_listeners import Heard, Listener, deliveries_of

PATIENCE_S = 240.0
PUBLISHERS, SUBSCRIBERS = 3, ("a", "b")
GONE = (OSError, EOFError, httpx.HTTPError, asyncio.IncompleteReadError)


class Clients:
    """Who publishes and who reads, over all lives of a server."""

    def __init__(self, process: ServedProcess) -> None:
        self.process = process
        self.is_over = False
        self.published = 0  # numbers that were given out
        self.acknowledged = 0

    async def publish(self, client: httpx.AsyncClient) -> None:
        """Publish batches one after another, each again until it is acknowledged."""
        while not self.is_over:
            numbers = range(self.published, self.published + 1 + self.published % 7)
            self.published += len(numbers)
            body = collection(*(point(1, 1, n=n) for n in numbers))
            headers = {"Idempotency-Key": f"from {numbers[0]}"}
            while True:
                try:
                    answer = await client.post("/v1/events", json=body, headers=headers)
                except GONE:
                    await asyncio.sleep(0.01)
                    continue
                if answer.status_code == 200:
                    break
                assert answer.status_code == 503, answer.text
            assert answer.json()["accepted"] == len(numbers)
            self.acknowledged += len(numbers)

    async def read(self, subscriber: str) -> list[Heard]:
        """Hear all, and go on after what was heard last whenever the stream breaks."""
        heard: list[Heard] = []
        while not (self.is_over and len(heard) >= self.published):
            after = heard[-1].position if heard else None
            with suppress(*GONE):
                listener = await Listener.open(self.process.port, deliveries_of(subscriber), after)
                try:
                    while not (self.is_over and len(heard) >= self.published):
                        await asyncio.wait_for(listener.hear(1), 0.5)
                        heard += listener.heard
                        listener.heard.clear()
                except TimeoutError:
                    pass
                finally:
                    listener.writer.transport.abort()
            await asyncio.sleep(0.01)
        return heard


async def live(process: ServedProcess, kills: int, each: int) -> tuple[Clients, list[list[Heard]]]:
    """Let clients work while a server is killed now and then."""
    clients = Clients(process)
    async with httpx.AsyncClient(base_url=process.url, trust_env=False, timeout=60) as client:
        for name in SUBSCRIBERS:
            body = {"geometry": SQUARE, "subscriber": name}
            put = await client.put(f"/v1/subscriptions/of {name}", json=body)
            assert put.status_code == 201
        publishing = [asyncio.create_task(clients.publish(client)) for _ in range(PUBLISHERS)]
        reading = [asyncio.create_task(clients.read(name)) for name in SUBSCRIBERS for _ in "12"]
        for life in range(kills):
            while clients.acknowledged < (life + 1) * each:
                assert not any(task.done() for task in (*publishing, *reading))
                await asyncio.sleep(0.002)
            process.kill()
            await asyncio.to_thread(process.start)
        while clients.acknowledged < (kills + 1) * each:
            await asyncio.sleep(0.002)
        clients.is_over = True
        await asyncio.gather(*publishing)
        return clients, await asyncio.gather(*reading)


def check(folder: Path, kills: int, each: int) -> None:
    async def bounded(process: ServedProcess) -> tuple[Clients, list[list[Heard]]]:
        async with asyncio.timeout(PATIENCE_S + kills * 30):
            return await live(process, kills, each)

    with served_process(folder) as process:
        clients, heard_by_all = asyncio.run(bounded(process))
        assert process.stop() == 0
    assert clients.acknowledged == clients.published
    for heard in heard_by_all:
        positions = [int(each.position.rpartition("-")[2]) for each in heard]
        assert positions == sorted(set(positions))
        assert sorted(each.number for each in heard) == list(range(clients.published))
        assert heard == heard_by_all[0]
    for line in process.log.read_text().splitlines():
        said = json.loads(line)
        assert said["level"] != "error" or said.get("status") == 503, line  # while it starts


def test_streams_that_resume_after_kills_have_everything_once_and_in_order(tmp_path: Path) -> None:
    check(tmp_path / "data", 2, 150)


@pytest.mark.soak
@pytest.mark.parametrize("each", [10, 300, 2_000])
def test_streams_that_resume_after_many_kills_have_everything(tmp_path: Path, each: int) -> None:
    check(tmp_path / "data", 12, each)
