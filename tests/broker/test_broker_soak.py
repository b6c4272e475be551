"""An hour of a whole server: 2,000 events a second, 10,000 fences, changes, readers and a webhook.

`BROKER_SOAK_MINUTES` says how long it is (60 unless stated). Retention keeps half of it, so that
blocks are dropped on the way. Each event lies in one fence, which follows from its number: whoever
is delivered an event knows at once whether one that came before it is missing.
"""

import asyncio
import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import httpx
import pytest

from fuzz.runs import announce
from process_memory import measure_tree
from served_process import ServedProcess, served_process
from server.stream_listeners import Listener, deliveries_of

MINUTES = float(os.environ.get("BROKER_SOAK_MINUTES", "60"))
DURATION_S = 60 * MINUTES
RATE, PUBLISHERS, BATCH = 2_000, 2, 50
EVENT_BYTES = 330  # in the log, with its delivery
RETENTION_BYTES = int(RATE * DURATION_S * EVENT_BYTES / 2)
SIDE = 100  # cells of the grid in a row; each has a fence
ROWS, HOOKED_ROWS = 8_000, 1_000  # of the two collections; the other fences are subscriptions
READERS = 10
WINDOW, AHEAD = 2_000, 8_000  # events that a change is about, and how far they are away


def cell_of(number: int) -> int:
    """The cell in which an event lies."""
    return (number * 2_654_435_761 >> 7) % SIDE**2


def owner_of(cell: int) -> str:
    """Whose fence a cell is."""
    if cell < ROWS:
        return "all"
    return "hooked" if cell < ROWS + HOOKED_ROWS else f"reader-{cell % READERS}"


def fence(cell: int) -> dict[str, Any]:
    x, y = cell % SIDE, cell // SIDE
    ring = [[x, y], [x + 0.9, y], [x + 0.9, y + 0.9], [x, y + 0.9], [x, y]]
    return {"type": "Polygon", "coordinates": [ring]}


def event(number: int) -> dict[str, Any]:
    cell = cell_of(number)
    place = {"type": "Point", "coordinates": [cell % SIDE + 0.5, cell // SIDE + 0.5]}
    return {"type": "Feature", "geometry": place, "properties": {"n": number, "kind": "soak"}}


@dataclass
class Ledger:
    """What one subscriber has had, of each publisher's numbers; a gap or a wrong one is a fault."""

    wants: Callable[[int], bool]
    may_repeat: bool = False
    next: list[int] = field(default_factory=lambda: list(range(PUBLISHERS)))
    count: int = 0

    def take(self, number: int) -> None:
        publisher = number % PUBLISHERS
        if number < self.next[publisher]:
            assert self.may_repeat, f"{number} came again"
            return
        assert self.wants(number), f"{number} is not wanted"
        self.skip(publisher, number)
        self.next[publisher] = number + PUBLISHERS
        self.count += 1

    def skip(self, publisher: int, end: int) -> None:
        """Nothing that is wanted may lie between."""
        lost = [n for n in range(self.next[publisher], end, PUBLISHERS) if self.wants(n)]
        assert not lost, f"{lost[:3]} have not come before {end}"

    def close(self, ends: list[int]) -> None:
        for publisher, end in enumerate(ends):
            self.skip(publisher, end)


class Soak:
    """All who work with one server, until the time is over."""

    def __init__(self, process: ServedProcess, client: httpx.AsyncClient) -> None:
        self.process, self.client = process, client
        self.end = time.monotonic() + DURATION_S
        self.next = list(range(PUBLISHERS))  # number of each publisher
        self.windows: list[range] = []  # of numbers that the subscriber "window" wanted
        self.are_all_published = False
        self.changes = self.crashes = self.resumed = 0
        self.hooks: set[asyncio.Task[None]] = set()
        self.faults: list[AssertionError] = []
        self.server: asyncio.Server
        self.port = 0
        self.memory_mb: list[float] = []
        self.log_mb: list[float] = []
        self.ledgers = {
            name: Ledger(lambda n, name=name: owner_of(cell_of(n)) == name, name == "hooked")  # type: ignore[misc]
            for name in ("all", "hooked", *(f"reader-{i}" for i in range(READERS)))
        }
        self.ledgers["window"] = Ledger(lambda n: any(n in each for each in self.windows[-3:]))

    @property
    def is_over(self) -> bool:
        return time.monotonic() > self.end

    # What is wanted

    async def begin(self, hook: str) -> None:
        for name, cells in (
            ("all", range(ROWS)),
            ("hooked", range(ROWS, ROWS + HOOKED_ROWS)),
        ):
            rows = [
                {"type": "Feature", "id": cell, "geometry": fence(cell), "properties": {}}
                for cell in cells
            ]
            await self.put(f"subscriptions/{name}", {"subscriber": name, "where": "kind = 'soak'"})
            body = "\n".join(map(json.dumps, rows)).encode()
            lines = {"Content-Type": "application/x-ndjson"}
            put = await self.client.put(
                f"/v1/subscriptions/{name}/rows", content=body, headers=lines
            )
            assert put.status_code == 200, put.text
        for cell in range(ROWS + HOOKED_ROWS, SIDE**2):
            await self.put_fence(cell, 0)
        await self.put("subscribers/window", {})
        await self.put("subscribers/hooked", {"webhook": {"url": hook, "batch": 100}})

    async def put_fence(self, cell: int, version: int) -> None:
        """Put a single fence; versions differ in what changes nothing."""
        body = {
            "geometry": fence(cell),
            "subscriber": owner_of(cell),
            "where": f"n > {-1 - version}",
        }
        await self.put(f"subscriptions/fence-{cell}", body)

    async def put(self, path: str, body: dict[str, Any]) -> None:
        answer = await self.client.put(f"/v1/{path}", json=body)
        assert answer.status_code in (200, 201), answer.text

    async def change(self) -> None:
        """Put fences again, and say every few seconds which numbers are wanted next."""
        random = Random(1)
        while not self.is_over:
            now = max(self.next)
            if not self.windows or min(self.next) > self.windows[-1].stop + AHEAD:
                wanted = range(now + AHEAD, now + AHEAD + WINDOW)
                body = {"filter": f"n >= {wanted.start} AND n < {wanted.stop}"}
                await self.put("subscriptions/window", {**body, "subscriber": "window"})
                assert max(self.next) < wanted.start, "the change took longer than there was time"
                self.windows.append(wanted)
            for _ in range(5):
                await self.put_fence(random.randrange(ROWS + HOOKED_ROWS, SIDE**2), self.changes)
                self.changes += 1
            await asyncio.sleep(1)

    # Who publishes

    async def publish(self, publisher: int) -> None:
        pause_s = BATCH * PUBLISHERS / RATE
        due = time.monotonic()
        while not self.is_over:
            first = self.next[publisher]
            numbers = range(first, first + BATCH * PUBLISHERS, PUBLISHERS)
            self.next[publisher] = numbers.stop
            body = {"type": "FeatureCollection", "features": [event(n) for n in numbers]}
            answer = await self.client.post("/v1/events", json=body)
            assert answer.status_code == 200, answer.text
            assert answer.json()["accepted"] == BATCH
            due += pause_s
            await asyncio.sleep(max(0.0, due - time.monotonic()))

    # Who receives

    def has_all(self, ledger: Ledger) -> bool:
        if not self.are_all_published:
            return False
        try:
            ledger.close(self.next)
        except AssertionError:
            return False
        return True

    async def read(self, name: str) -> None:
        """Read a stream to the end; now and then it breaks, and goes on where it was."""
        ledger, after = self.ledgers[name], None
        random = Random(name)
        while not self.has_all(ledger):
            listener = await Listener.open(self.process.port, deliveries_of(name), after)
            left = random.randrange(10, 20_000)
            try:
                while left > 0 and not self.has_all(ledger):
                    with suppress(TimeoutError):
                        await asyncio.wait_for(listener.hear(1), 5)
                    for heard in listener.heard:
                        ledger.take(heard.number)
                        after = heard.position
                        left -= 1
                    listener.heard.clear()
            finally:
                listener.writer.transport.abort()
            self.resumed += 1

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Accept what a webhook sends."""
        task = asyncio.current_task()
        assert task is not None
        self.hooks.add(task)
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
                body = json.loads(await reader.readexactly(length))
                for delivery in body if isinstance(body, list) else [body]:
                    if delivery["type"] == "contrada.delivery":
                        self.ledgers["hooked"].take(delivery["data"]["event"]["properties"]["n"])
                writer.write(b"HTTP/1.1 204 Fine\r\n\r\n")
        except (OSError, EOFError, asyncio.CancelledError):
            pass
        except AssertionError as fault:
            self.faults.append(fault)
        finally:
            writer.transport.abort()
            self.hooks.discard(task)

    async def receive(self) -> None:
        """Take the calls of the webhook; in between nobody is there for a while."""
        pause_s = DURATION_S / 4
        while not self.has_all(self.ledgers["hooked"]):
            end = min(time.monotonic() + pause_s, max(self.end, time.monotonic() + 1))
            while time.monotonic() < end and not self.has_all(self.ledgers["hooked"]):
                await asyncio.sleep(0.2)
                assert not self.faults, self.faults
            if self.is_over:
                continue
            self.server.close()
            for task in list(self.hooks):
                task.cancel()
            await asyncio.sleep(min(60, DURATION_S / 24))
            self.server = await asyncio.start_server(self.take, "127.0.0.1", self.port)
            self.crashes += 1

    async def measure(self) -> None:
        folder = self.process.folder
        while not self.is_over:
            self.memory_mb.append(sum(measure_tree(self.process.pid).values()))
            sizes = [path.stat().st_size for path in folder.rglob("log.sqlite*")]
            self.log_mb.append(sum(sizes) / 2**20)
            await asyncio.sleep(DURATION_S / 120)

    async def run(self) -> None:
        self.server = await asyncio.start_server(self.take, "127.0.0.1", 0)
        self.port = self.server.sockets[0].getsockname()[1]
        await self.begin(f"http://127.0.0.1:{self.port}/")
        self.end = time.monotonic() + DURATION_S
        async with asyncio.TaskGroup() as tasks:
            for name in self.ledgers:
                if name != "hooked":
                    tasks.create_task(self.read(name))
            tasks.create_task(self.receive())
            tasks.create_task(self.measure())
            changing = tasks.create_task(self.change())
            publishing = [tasks.create_task(self.publish(i)) for i in range(PUBLISHERS)]
            await asyncio.wait([*publishing, changing])
            self.are_all_published = True
        self.server.close()


async def soak(process: ServedProcess) -> Soak:
    async with httpx.AsyncClient(base_url=process.url, trust_env=False, timeout=60) as client:
        soak = Soak(process, client)
        async with asyncio.timeout(1.5 * DURATION_S + 300):
            await soak.run()
        return soak


@pytest.mark.soak
@pytest.mark.timeout(2 * DURATION_S + 600)
def test_a_server_keeps_up_loses_nothing_and_does_not_grow(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    settings = [f"retention_bytes={RETENTION_BYTES}", "retention_interval_s=1"]
    arguments = [word for each in settings for word in ("--set", each)]
    with served_process(tmp_path / "data", *arguments, "--allow-webhook", "127.0.0.0/8") as process:
        done = asyncio.run(soak(process))
        metrics = httpx.get(f"{process.url}/metrics", trust_env=False).text
        assert process.stop() == 0
    published = sum(end // PUBLISHERS for end in done.next)
    quarter = len(done.memory_mb) // 4
    third, last = (
        sum(part) / quarter
        for part in (done.memory_mb[-2 * quarter : -quarter], done.memory_mb[-quarter:])
    )
    announce(
        request,
        f"{published:,} events, {done.changes:,} changes, {len(done.windows)} windows, "
        f"{done.resumed:,} streams, {done.crashes} crashes of the receiver; memory "
        f"{', '.join(f'{each:.0f}' for each in done.memory_mb[::10])} MB; log "
        f"{max(done.log_mb):.0f} MB, of {RETENTION_BYTES / 2**20:.0f} to be kept",
    )
    assert published > 0.9 * RATE * DURATION_S
    assert done.crashes >= 2
    assert done.ledgers["window"].count == sum(
        n < done.next[n % PUBLISHERS] for wanted in done.windows for n in wanted
    )
    assert sum(ledger.count for ledger in done.ledgers.values()) > published
    assert 'contrada_log_floor{tenant="default"} 0\n' not in metrics, "no block was dropped"
    assert last < 1.1 * third
    assert max(done.log_mb) * 2**20 < 2 * RETENTION_BYTES + 64 * 2**20
    for line in process.log.read_text().splitlines():
        assert json.loads(line)["level"] != "error", line
