"""`contrada stream` for ten minutes at 2,000 events a second, with a new version every 30 seconds.

Nothing is lost or doubled: every event names a version, and has the matches that the library finds
in the subscriptions of that version. The memory of all processes stays within 5 % over the last
half. `STREAM_SOAK_MINUTES` makes it shorter, for a try.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest
import shapely

from contrada import Matcher
from process_memory import measure_tree
from stream_desk import Desk, RunningStream

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.soak,
    pytest.mark.spark,
    pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc"),
]

MINUTES = float(os.environ.get("STREAM_SOAK_MINUTES", "10"))
EVENTS_PER_FILE, FILES_PER_S = 1_000, 2
FILES = round(60 * MINUTES * FILES_PER_S)
FILES_PER_VERSION = 30 * FILES_PER_S
FILES_PER_LOOK = 5 * FILES_PER_S
SIDE = 100  # tiles in a row: 10,000 fences, in one of which every event lies
MEMORY_CHANGE_MAX = 0.05
MINUTES_MIN = 5.0  # before that Java still grows to its size
EVENTS_SEEN = re.compile(r"^contrada_stream_events_total (\d+)$", re.MULTILINE)


def make_fences(version: int) -> pa.Table:
    """The tiles of a version; one in a hundred is larger than in all others."""
    x, y = np.divmod(np.arange(SIDE * SIDE), SIDE)
    side = 1 + 0.5 * (np.arange(SIDE * SIDE) % 100 == version % 100)
    tiles = shapely.box(x, y, x + side, y + side)
    return pa.table({"id": np.arange(SIDE * SIDE), "geometry": shapely.to_wkb(tiles)})


def make_events(number: int) -> pa.Table:
    """The events of a file: points anywhere on the tiles."""
    x, y = np.random.default_rng(number).uniform(0, SIDE, (2, EVENTS_PER_FILE))
    ids = np.arange(EVENTS_PER_FILE) + EVENTS_PER_FILE * number
    return pa.table({"id": ids, "geometry": shapely.to_wkb(shapely.points(x, y))})


class Run:
    """A desk at which files come in at a steady rate, and what was seen meanwhile."""

    def __init__(self, folder: Path) -> None:
        self.desk = Desk(folder, "fences.parquet")
        self.versions = 0
        self.memory: list[dict[str, float]] = []
        self.publish()
        self.send(0)

    def publish(self) -> None:
        """Change the subscriptions."""
        self.versions += 1
        self.desk.put("fences.parquet", make_fences(self.versions))

    def send(self, number: int) -> None:
        """Let a file of events come in."""
        self.desk.put(f"in/{number:06}.parquet", make_events(number))

    def count_seen(self) -> int:
        """Count the events of which the stream says that they came in."""
        path = self.desk.folder / "counts.prom"
        found = EVENTS_SEEN.search(path.read_text()) if path.exists() else None
        return int(found[1]) if found else 0

    def feed(self, stream: RunningStream) -> None:
        """Let files come in when their moments come, and look at the processes now and then."""
        stream.wait_until(lambda: self.count_seen() > 0)
        begin = time.monotonic()
        for number in range(1, FILES):
            stream.wait(begin + number / FILES_PER_S - time.monotonic())
            self.send(number)
            if number % FILES_PER_VERSION == 0:
                self.publish()
            if number % FILES_PER_LOOK == 0:
                self.memory.append(measure_tree(stream.process.pid))
                print(number, self.count_seen() // EVENTS_PER_FILE, self.memory[-1], flush=True)

    def check_answers(self) -> None:
        """Compare all matches with those that the library finds, version by version."""
        columns = ["event", "subscription", "version"]
        found = ds.dataset(self.desk.folder / "out").to_table(columns)
        events = pa.concat_tables(make_events(number) for number in range(FILES))
        assert len(pc.unique(found["event"])) == len(events)
        seen, versions = 0, pc.unique(found["version"]).to_pylist()
        assert len(versions) > self.versions // 2  # a busy machine may leave some out
        for version in versions:
            rows = found.filter(pc.equal(found["version"], version)).drop_columns("version")
            matcher = Matcher()
            matcher.add_many(make_fences(int(version.partition("-")[0])))
            met = pc.unique(rows["event"])
            seen += len(met)
            wanted = matcher.match_many(events.take(met.sort())).cast(rows.schema)
            in_order = [("event", "ascending"), ("subscription", "ascending")]
            assert rows.sort_by(in_order).equals(wanted.sort_by(in_order)), version
        assert seen == len(events), "an event names two versions"

    def check_memory(self) -> None:
        """Compare the most and the least memory over the last half."""
        totals = [sum(parts.values()) for parts in self.memory]
        half = totals[len(totals) // 2 :]
        print(f"memory of all processes: {min(half):.0f} to {max(half):.0f} MB")
        if MINUTES >= MINUTES_MIN:
            assert max(half) <= (1 + MEMORY_CHANGE_MAX) * min(half), self.memory


def test_at_2000_events_a_second_nothing_is_lost_or_doubled_and_memory_stays(
    tmp_path: Path,
) -> None:
    run = Run(tmp_path)
    counts = str(tmp_path / "counts.prom")
    with run.desk.running("--metrics", counts) as stream:
        run.feed(stream)
        stream.wait_until(lambda: run.count_seen() == FILES * EVENTS_PER_FILE)
        stream.process.send_signal(signal.SIGTERM)
        assert stream.process.wait() == 0, stream.said
    assert run.desk.rows("state/quarantine") == []
    run.check_answers()
    run.check_memory()
