"""A served broker: what it takes in, how soon it delivers, and what a start costs.

    python benchmarks/broker.py [--parts batches changes single fan rows webhooks restart]
        [--quick]

- batches: HTTP batches of 500 points with three attributes over 100,000 squares with a range each,
  two matches an event, durable, four connections; and with PostGIS, a trigger and NOTIFY as peer,
  if `psql` and the extension are there (Debian: postgresql-15-postgis-3).
- changes: the same, with 100 changes a second beside.
- single: 1,000 events a second one by one over a WebSocket, read by server-sent events.
- fan: one event that 100,000 subscribers want.
- rows: a collection of a million squares is replaced beside 1,000 events a second, as in single.
- webhooks: a hundred, of which one is dead and one takes five seconds, against a hundred good ones.
- restart: a million squares with a range, without the snapshot and from it.

Server and client share the cores. Three runs of each, in turns where there are two to compare;
medians. The table goes to `results/broker.txt` beside this file.
"""

import argparse
import asyncio
import json
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from broker_desk import (
    JSON,
    Served,
    fill,
    make_batches,
    make_rows,
    measure_sync,
    publish_all,
    serving,
)
from broker_peer import PostgisPeer
from broker_webhooks import compare_webhooks
from contrada.broker.tenant_folders import tenant_folder
from contrada.reproduce.reporting import Column
from reporting import Report

RUNS = 3
CHANGERS = 20  # connections that change the set, five times a second each


def main() -> int:
    """Measure the parts that are asked for; print a table, and write it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--quick", action="store_true", help="a tenth of everything")
    options = parser.parse_args()
    report = Report("broker", "starlette", "uvicorn", "pyarrow")
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        report.say(f"fdatasync after 4 kB: {measure_sync(Path(folder)):.2f} ms")
        for part in options.parts:
            report.say(f"\n# {part}")
            own = Path(folder) / part
            PARTS[part](report, own, 10 if options.quick else 1)
            shutil.rmtree(own, ignore_errors=True)
    return report.finish()


def p99(values: list[float]) -> float:
    """The 99th percentile, in milliseconds."""
    return float(np.percentile(values, 99)) * 1_000


def run_batches(report: Report, folder: Path, share: int) -> None:
    """HTTP batches, and PostGIS beside them."""
    count = 100_000 // share
    side = fill(folder, count, 1_000)
    bodies, places = make_batches(120 // min(share, 4), 500, side)
    table = report.start_table(
        Column("run", width_min=4),
        Column("events/s", format=",.0f", width_min=9),
        Column("p50 ms", format=".0f", width_min=7),
        Column("p99 ms", format=".0f", width_min=7),
        Column("PostGIS/s", format=",.0f", width_min=9),
    )
    ours, theirs = [], []
    peer = PostgisPeer.start(count, side)
    with serving(folder) as served:
        publish_all(served, bodies[:20], 4)
        for run in range(RUNS):
            rate = peer.measure(places[:4].reshape(-1, 2)) if peer and run % 2 else None
            spent, answers = publish_all(served, bodies, 4)
            if peer and rate is None:
                rate = peer.measure(places[:4].reshape(-1, 2))
            ours.append(len(bodies) * 500 / spent)
            theirs.append(rate or float("nan"))
            p50 = float(np.median(answers)) * 1_000
            table.add(run + 1, ours[-1], p50, p99(answers), theirs[-1])
    middle = float(np.median(ours))
    report.ask("HTTP batches of 500", "≥ 15,000/s", f"{middle:,.0f}/s", middle >= 15_000)
    if peer is None:
        report.say("PostGIS is not installed: there is no peer")
    else:
        report.ask_ratio("against PostGIS", middle / float(np.median(theirs)), least=5)
        peer.stop()


def run_changes(report: Report, folder: Path, share: int) -> None:
    """The same batches alone, and with a hundred changes a second."""
    side = fill(folder, 100_000 // share, 1_000)
    bodies, _ = make_batches(240 // min(share, 4), 500, side)
    alone, beside, spent = [], [], []
    with serving(folder) as served:
        publish_all(served, bodies[:20], 4)
        for _ in range(RUNS):
            alone.append(len(bodies) * 500 / publish_all(served, bodies, 4)[0])
            stop = threading.Event()
            made: list[int] = []
            changing = [
                threading.Thread(target=_change, args=(served, stop, made)) for _ in range(CHANGERS)
            ]
            for thread in changing:
                thread.start()
            length, answers = publish_all(served, bodies, 4)
            stop.set()
            for thread in changing:
                thread.join()
            beside.append(len(bodies) * 500 / length)
            spent += answers
            report.say(
                f"alone {alone[-1]:,.0f}/s, with {len(made) / length:.0f} changes a second "
                f"{beside[-1]:,.0f}/s, p99 {p99(answers):.0f} ms"
            )
    share_kept = float(np.median(beside) / np.median(alone))
    report.ask_ratio("with 100 changes a second, of alone", share_kept, least=0.5)
    report.ask(
        "p99 of batches beside changes", "≤ 250 ms", f"{p99(spent):.0f} ms", p99(spent) <= 250
    )


def _change(served: Served, stop: threading.Event, made: list[int]) -> None:
    connection = served.connect()
    begun = time.perf_counter()
    own = 0
    while not stop.is_set():
        number = len(made)
        body = {"filter": f"speed < {number % 40} AND kind = 'plane'", "subscriber": "s1"}
        path = f"/v1/subscriptions/changing-{number % 500}"
        connection.request("PUT", path, json.dumps(body), {"Content-Type": "application/json"})
        connection.getresponse().read()
        made.append(number)
        own += 1
        stop.wait(max(0.0, begun + own * CHANGERS / 100 - time.perf_counter()))


def run_single(report: Report, folder: Path, share: int) -> None:
    """Single events over a WebSocket, as they come by server-sent events."""
    side = fill(folder, 10_000 // share, 100)
    count = 10_000 // share
    with serving(folder) as served:
        served.call("PUT", "/v1/subscriptions/everything", {"filter": "speed > 1"})
        for _ in range(RUNS):
            delays = asyncio.run(_send_single(served, side, lambda sent: sent >= count))
            p50 = float(np.median(delays)) * 1_000
            report.say(f"{count:,} events at 1,000/s: p50 {p50:.1f} ms, p99 {p99(delays):.1f} ms")
    report.ask("one event, WebSocket to SSE: p50", "≤ 10 ms", f"{p50:.1f} ms", p50 <= 10)
    worst = p99(delays)
    report.ask("one event, WebSocket to SSE: p99", "≤ 50 ms", f"{worst:.1f} ms", worst <= 50)


async def _send_single(served: Served, side: float, is_over: Callable[[int], bool]) -> list[float]:
    """Send events until it is over, as their number says; return how long each took."""
    import httpx
    import websockets

    sent: dict[int, float] = {}
    delays: list[float] = []
    begun_reading = asyncio.Event()
    url = f"http://127.0.0.1:{served.port}/v1/subscribers/everything/deliveries"
    head = served.call("GET", "/v1/subscribers/everything/deliveries?limit=1000")
    while head["deliveries"]:
        after = head["next"]
        head = served.call("GET", f"/v1/subscribers/everything/deliveries?limit=1000&after={after}")
    after = head["next"]
    served.call("POST", "/v1/subscribers/everything/ack", {"position": after})

    async def read() -> None:
        accept = {"Accept": "text/event-stream"}
        async with (
            httpx.AsyncClient(timeout=None) as client,
            client.stream("GET", url, headers=accept, params={"after": after}) as answer,
        ):
            begun_reading.set()
            async for line in answer.aiter_lines():
                if line.startswith("data:"):
                    now = time.perf_counter()
                    event = json.loads(line[5:])["data"]["event"]
                    delays.append(now - sent[event["id"]])

    reading = asyncio.create_task(read())
    await begun_reading.wait()
    generator = np.random.default_rng(3)
    async with websockets.connect(f"ws://127.0.0.1:{served.port}/v1/socket") as socket:
        draining = asyncio.create_task(_drain(socket))
        begun = time.perf_counter()
        while not is_over(number := len(sent)):
            place = generator.uniform(0, side, 2).round(6).tolist()
            event = {"type": "Feature", "id": number, "properties": {"speed": 60.5}}
            event["geometry"] = {"type": "Point", "coordinates": place}
            await asyncio.sleep(max(0.0, begun + number / 1_000 - time.perf_counter()))
            sent[number] = time.perf_counter()
            await socket.send(json.dumps({"type": "publish", "events": event}))
        async with asyncio.timeout(60):
            while len(delays) < len(sent):
                await asyncio.sleep(0.01)
        reading.cancel()
        draining.cancel()
    return delays


async def _drain(socket: Any) -> None:
    async for _ in socket:
        pass


def run_rows(report: Report, folder: Path, share: int) -> None:
    """A very large collection that is replaced as a whole while single events come."""
    count = 1_000_000 // share
    side = int(np.ceil(np.sqrt(count)))
    delays: list[float] = []
    with serving(folder) as served:
        served.call("PUT", "/v1/subscriptions/everything", {"filter": "speed > 1"})
        served.call("PUT", "/v1/subscriptions/zones", {"where": "speed > 10"})
        rows = make_rows(count)
        _put_rows(served, rows)
        for _ in range(RUNS):
            begun = time.perf_counter()
            replacing = threading.Thread(target=_put_rows, args=(served, rows))
            replacing.start()
            own = asyncio.run(_send_single(served, side, partial(_has_ended, replacing)))
            replacing.join()
            delays += own
            report.say(
                f"{count:,} rows in {time.perf_counter() - begun:.0f} s beside {len(own):,} "
                f"events: p99 {p99(own):.0f} ms, {max(own) * 1_000:.0f} ms at the most"
            )
    worst = p99(delays)
    report.ask("p99 beside rows that are replaced", "≤ 250 ms", f"{worst:.0f} ms", worst <= 250)


def _has_ended(thread: threading.Thread, _: int) -> bool:
    return not thread.is_alive()


def _put_rows(served: Served, rows: bytes) -> None:
    connection = served.connect()
    kind = {"Content-Type": "application/vnd.apache.parquet"}
    connection.request("PUT", "/v1/subscriptions/zones/rows", rows, kind)
    answer = connection.getresponse()
    content = answer.read()
    if answer.status != 200:
        raise SystemExit(f"{answer.status} {content[:300]!r}")
    connection.close()


def run_fan(report: Report, folder: Path, share: int) -> None:
    """One event that very many subscribers want."""
    count = 100_000 // share
    fill(folder, count, count, overlap=count)
    body = {
        "type": "Feature",
        "geometry": {"type": "Point", "coordinates": [0.5, 0.5]},
        "properties": {"speed": 60.5},
    }
    spent, written = [], []
    with serving(folder) as served:
        wal = tenant_folder(folder) / "log.sqlite-wal"
        for _ in range(RUNS):
            before = _find_size(wal)
            begun = time.perf_counter()
            connection = served.connect()
            connection.request("POST", "/v1/events", json.dumps(body), JSON)
            answer = json.loads(connection.getresponse().read())
            spent.append((time.perf_counter() - begun) * 1_000)
            written.append((_find_size(wal) - before) / 2**20)
            report.say(f"{answer['matches']:,} matches: {spent[-1]:.0f} ms, {written[-1]:.1f} MiB")
    middle, mebibytes = float(np.median(spent)), float(np.median(written))
    report.ask("an event for 100,000 subscribers", "≤ 500 ms", f"{middle:.0f} ms", middle <= 500)
    report.ask("its write-ahead log", "≤ 3 MB", f"{mebibytes:.1f} MiB", mebibytes <= 3)


def _find_size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def run_webhooks(report: Report, folder: Path, share: int) -> None:
    """Webhooks of which one is dead and one slow, against good ones."""
    good, disturbed = compare_webhooks(folder, 100 // min(share, 4), RUNS, report.say)
    report.ask_limit("webhooks beside a dead and a slow one, p99", disturbed / good, most=1.5)


def run_restart(report: Report, folder: Path, share: int) -> None:
    """A start with very many subscriptions; the first one has no snapshot, and leaves one."""
    count = 1_000_000 // share
    begun = time.perf_counter()
    fill(folder, count, 1_000, has_snapshot=False)
    report.say(f"{count:,} subscriptions written in {time.perf_counter() - begun:.1f} s")
    own = tenant_folder(folder)
    for name, limit, snapshots in (("without the snapshot", 90, 0), ("from the snapshot", 10, 1)):
        if len(list(own.glob("set-*"))) != snapshots:
            raise SystemExit(f"{own} has not {snapshots} snapshots")
        begun = time.perf_counter()
        with serving(folder) as served:
            served.call("GET", "/readyz")
            bodies, _ = make_batches(1, 1, 100.0)
            publish_all(served, bodies, 1)
            took = time.perf_counter() - begun
            ended = time.perf_counter()
        left = time.perf_counter() - ended
        report.say(f"{name}: {took:.1f} s until the first event was matched; {left:.1f} s to end")
        report.ask(f"a start {name}", f"≤ {limit} s", f"{took:.1f} s", took <= limit)


PARTS: dict[str, Callable[[Report, Path, int], None]] = {
    "batches": run_batches,
    "changes": run_changes,
    "single": run_single,
    "fan": run_fan,
    "rows": run_rows,
    "webhooks": run_webhooks,
    "restart": run_restart,
}


if __name__ == "__main__":
    sys.exit(main())
