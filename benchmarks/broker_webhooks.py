"""How soon webhooks are called: where all answer, and beside a dead and a slow one."""

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from broker_desk import JSON, Served, serving

_EVENTS, _RATE = 200, 20  # so many, so many a second
_SLOW_S = 5.0


class Receivers:
    """Endpoints of webhooks in one server, by their paths: `/n` answers, `/slow` takes long."""

    def __init__(self) -> None:
        self.delays: list[float] = []
        self.port = 0
        self._begun = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self._thread.start()
        self._begun.wait(10)

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._begun.set()
        async with server:
            await server.serve_forever()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                path = head.split(b" ", 2)[1]
                length = next(
                    int(line.split(b":")[1])
                    for line in head.split(b"\r\n")
                    if line.lower().startswith(b"content-length:")
                )
                body = await reader.readexactly(length)
                if path == b"/slow":
                    await asyncio.sleep(_SLOW_S)
                else:
                    self._note(body)
                writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    def _note(self, body: bytes) -> None:
        event = json.loads(body).get("data", {}).get("event")
        if event is not None:
            self.delays.append(time.time() - event["properties"]["sent"])


def compare_webhooks(
    folder: Path, count: int, runs: int, say: Callable[[str], object]
) -> tuple[float, float]:
    """Return the 99th percentile of the time to a webhook, without and with bad ones beside."""
    found: dict[bool, list[float]] = {False: [], True: []}
    for run in range(2 * runs):
        is_disturbed = bool(run % 2) is not bool(run % 4 // 2)
        own = folder / f"run-{run}"
        delays = _measure(own, count, is_disturbed)
        found[is_disturbed].append(float(np.percentile(delays, 99)))
        kind = "one dead, one slow" if is_disturbed else "all good"
        say(f"{kind}: {len(delays):,} calls, p99 {found[is_disturbed][-1] * 1_000:.0f} ms")
    return float(np.median(found[False])), float(np.median(found[True]))


def _measure(folder: Path, count: int, is_disturbed: bool) -> list[float]:
    with serving(folder, "--allow-webhook", "127.0.0.0/8") as served, _receiving() as receivers:
        for number in range(count):
            path = f"/{number}"
            port = receivers.port
            if is_disturbed and number == 0:
                port = 9  # nobody listens there
            elif is_disturbed and number == 1:
                path = "/slow"
            url = f"http://127.0.0.1:{port}{path}"
            served.call("PUT", f"/v1/subscribers/w{number}", {"webhook": {"url": url}})
            body = {"filter": "sent > 0", "subscriber": f"w{number}"}
            served.call("PUT", f"/v1/subscriptions/all-{number}", body)
        _publish(served)
        good = count - 2 if is_disturbed else count
        for _ in range(300):
            if len(receivers.delays) >= good * _EVENTS:
                break
            time.sleep(0.1)
        return list(receivers.delays)


@contextmanager
def _receiving() -> Iterator[Receivers]:
    yield Receivers()


def _publish(served: Served) -> None:
    connection = served.connect()
    begun = time.perf_counter()
    for number in range(_EVENTS):
        time.sleep(max(0.0, begun + number / _RATE - time.perf_counter()))
        event = {"type": "Feature", "geometry": None, "properties": {"sent": time.time()}}
        connection.request("POST", "/v1/events", json.dumps(event), JSON)
        connection.getresponse().read()
    connection.close()
