"""A served broker for benchmarks: a process on loopback, subscriptions, and bodies of events."""

import http.client
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import shapely
from numpy.typing import NDArray

from contrada.broker import Broker, BrokerOptions
from contrada.broker.changing import Changing
from contrada.broker.log_writing import LogWriter
from contrada.broker.standing_set import StandingSet
from contrada.broker.subscription_bodies import SubscriptionBody, write_canonical
from contrada.broker.tenant_folders import tenant_folder
from contrada.broker.track_keeping import TrackKeeping

_KINDS = ("van", "tug", "bus")
_PUTS_AT_ONCE = 50_000  # in one transaction
JSON = {"Content-Type": "application/geo+json"}


@dataclass(frozen=True)
class Served:
    """A server that runs: its port, and its process."""

    port: int
    process: "subprocess.Popen[str]"

    def connect(self) -> http.client.HTTPConnection:
        """Open a connection."""
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)

    def call(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        """Send one request, and return what is answered."""
        connection = self.connect()
        text = None if body is None else json.dumps(body)
        connection.request(method, path, text, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        if answer.status >= 300:
            raise SystemExit(f"{method} {path}: {answer.status} {content[:300]!r}")
        found: dict[str, Any] = json.loads(content)
        return found


@contextmanager
def serving(folder: Path, *words: str) -> Iterator[Served]:
    """Run `contrada serve` on a folder until the end."""
    command = [sys.executable, "-m", "contrada.cli", "serve", "--port", "0", "--data", str(folder)]
    with subprocess.Popen(
        [*command, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        errors = process.stderr
        line = process.stdout.readline()
        found = re.search(r":(\d+)", line)
        if found is None:
            raise SystemExit(line + errors.read())
        threading.Thread(target=lambda: [None for _ in errors], daemon=True).start()
        try:
            yield Served(int(found[1]), process)
        finally:
            process.terminate()
            process.wait(60)


def area(x: float, y: float, width: float = 1.0) -> dict[str, Any]:
    """A square, as GeoJSON."""
    x1, y1 = x + width, y + width
    return {"type": "Polygon", "coordinates": [[[x, y], [x1, y], [x1, y1], [x, y1], [x, y]]]}


def fill(
    folder: Path, count: int, subscribers: int, overlap: int = 2, *, has_snapshot: bool = True
) -> float:
    """Store squares with a range each, `overlap` on each place; return the side of all of them.

    They are written to the log of a folder that nobody serves. To match events with each before the
    next is put, as a broker does, would take twelve minutes for a million.
    """
    side = int(np.ceil(np.sqrt(count / overlap)))
    own = tenant_folder(folder)
    own.mkdir(parents=True)
    writer = LogWriter(own, is_durable=False)
    now_us = time.time_ns() // 1_000
    tracks = TrackKeeping(writer, now_us, lambda *_: None)
    changing = Changing(writer, StandingSet(), tracks, BrokerOptions(subscriptions_max=count))
    writer.begin()
    for number in range(count):
        place = number // overlap
        body = {
            "geometry": area(place % side, place // side),
            "where": f"speed > {number % 50}",
            "subscriber": f"s{number % subscribers}",
        }
        changing.put_subscription(f"fence-{number}", _judged(body), None, now_us)
        if number % _PUTS_AT_ONCE == _PUTS_AT_ONCE - 1:
            writer.commit(0)
            writer.begin()
    writer.commit(0)
    writer.close()
    if has_snapshot:
        Broker.open(own).close()
    return float(side)


def _judged(body: dict[str, Any]) -> SubscriptionBody:
    """A body as if it had been read; it has no predicate, since nothing is matched with it yet."""
    return SubscriptionBody(
        write_canonical(body), body["subscriber"], None, None, has_transitions=False, members=body
    )


def make_batches(
    count: int, size: int, side: float, seed: int = 7
) -> tuple[list[bytes], NDArray[np.float64]]:
    """Make bodies of points with three attributes each, faster than any range asks."""
    generator = np.random.default_rng(seed)
    bodies = []
    places = generator.uniform(0, side, (count, size, 2)).round(6)
    for batch in places.tolist():
        features = [
            {
                "type": "Feature",
                "id": f"vehicle {number}",
                "geometry": {"type": "Point", "coordinates": place},
                "properties": {"speed": 60.5, "kind": _KINDS[number % 3], "load": number},
            }
            for number, place in enumerate(batch)
        ]
        bodies.append(json.dumps({"type": "FeatureCollection", "features": features}).encode())
    return bodies, places


def make_rows(count: int) -> bytes:
    """Make a GeoParquet file of squares beside each other, with ids."""
    side = int(np.ceil(np.sqrt(count)))
    x, y = np.arange(count) % side, np.arange(count) // side
    squares = shapely.to_wkb(shapely.box(x, y, x + 1.0, y + 1.0))
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"id": np.arange(count), "geometry": squares}), sink)
    return bytes(sink.getvalue().to_pybytes())


def publish_all(served: Served, bodies: Sequence[bytes], clients: int) -> tuple[float, list[float]]:
    """Publish bodies over several connections; return the seconds of all, and of each answer."""
    spent: list[float] = []

    def publish(own: Sequence[bytes]) -> None:
        connection = served.connect()
        for body in own:
            begun = time.perf_counter()
            connection.request("POST", "/v1/events", body, JSON)
            answer = connection.getresponse()
            content = answer.read()
            if answer.status != 200:
                raise SystemExit(f"{answer.status} {content[:300]!r}")
            spent.append(time.perf_counter() - begun)
        connection.close()

    threads = [threading.Thread(target=publish, args=(bodies[i::clients],)) for i in range(clients)]
    begun = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - begun, spent


def measure_sync(folder: Path, count: int = 200) -> float:
    """Return the milliseconds of one fdatasync after a small write, as a median."""
    spent = []
    descriptor, name = tempfile.mkstemp(dir=folder)
    try:
        for _ in range(count):
            os.write(descriptor, b"x" * 4_096)
            begun = time.perf_counter()
            os.fdatasync(descriptor)
            spent.append(time.perf_counter() - begun)
    finally:
        os.close(descriptor)
        with suppress(OSError):
            Path(name).unlink()
    return float(np.median(spent)) * 1_000
