"""`contrada stream` for ten minutes at 2,000 events a second, with a new version every 30 seconds.

Nothing is lost or doubled: every event names a version, and has the matches that the library finds
in the subscriptions of that version. The memory of all processes stays within 5 % over the last
half. `STREAM_SOAK_MINUTES` makes it shorter, for a try. The same with `--transitions`, of 5,000
objects: the rows are those of the oracle, and the state is there besides.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest
import shapely

from boxed_tracks import read_rows
from contrada import Matcher
from process_memory import measure_tree
from stream_desk import Desk, RunningStream
from transitions_oracle import Fix, Oracle, Row, Watch

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
OBJECTS = 5_000
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

    def events(self, number: int) -> pa.Table:
        """The events of a file."""
        return make_events(number)

    def send(self, number: int) -> None:
        """Let a file of events come in."""
        self.desk.put(f"in/{number:06}.parquet", self.events(number))

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


class TrackRun(Run):
    """The same for positions of objects, each of which wanders about a place of its own."""

    def __init__(self, folder: Path) -> None:
        self._begin_us = time.time_ns() // 1_000
        super().__init__(folder)

    def events(self, number: int) -> pa.Table:
        """The positions of a file, whose times go on from one to the next."""
        ids = np.arange(EVENTS_PER_FILE) + EVENTS_PER_FILE * number
        objects = ids % OBJECTS
        home = np.random.default_rng(0).uniform(2, SIDE - 2, (OBJECTS, 2))[objects]
        at = home + np.random.default_rng(number + 1).uniform(-1.5, 1.5, (EVENTS_PER_FILE, 2))
        times = self._begin_us + ids * (1_000_000 // (EVENTS_PER_FILE * FILES_PER_S))
        return pa.table(
            {
                "id": ids,
                "object_id": objects,
                "time": pa.array(times, pa.timestamp("us", "UTC")),
                "geometry": shapely.to_wkb(shapely.points(at)),
            }
        )

    def check_answers(self) -> None:
        """Compare all rows with those of the oracle, batch by batch and object by object."""
        dataset = ds.dataset(self.desk.folder / "out", partitioning="hive")
        rows = dataset.to_table()
        events = pa.concat_tables(self.events(number) for number in range(FILES))
        applied = rows.filter(pc.is_in(rows["transition"], pa.array(["enter", "inside"])))
        batch_of = np.full(len(events), -1)
        version_of: dict[int, str] = {}
        batch_of[applied["event"].to_numpy()] = applied["batch"].to_numpy()
        assert (batch_of >= 0).all(), "every position lies in a tile"
        for batch, version in set(
            zip(rows["batch"].to_pylist(), rows["version"].to_pylist(), strict=True)
        ):
            assert version_of.setdefault(batch, version) == version
        assert len(set(version_of.values())) > self.versions // 2
        found = sorted(map(repr, read_rows(rows)))
        assert found == sorted(map(repr, self._expect(events, batch_of, version_of)))

    def _expect(self, events: pa.Table, batch_of: Any, version_of: dict[int, str]) -> list[Row]:
        """Ask the oracle about an object at a time, and the tiles that it comes to."""
        shapes = shapely.from_wkb(events["geometry"].to_numpy())
        points = shapely.get_coordinates(shapes)
        times = events["time"].cast(pa.int64()).to_numpy()
        trees: dict[str, shapely.STRtree] = {}
        for version in version_of.values():
            tiles = make_fences(int(version.partition("-")[0]))["geometry"].to_numpy()
            trees.setdefault(version, shapely.STRtree(shapely.from_wkb(tiles)))
        expected: list[Row] = []
        for object_ in range(OBJECTS):
            own = np.arange(object_, len(events), OBJECTS)
            oracle, start = Oracle(), 0
            while start < len(own):
                batch = batch_of[own[start]]
                mine = own[batch_of[own] == batch]
                version = version_of[int(batch)]
                before = own[max(start - 1, 0)]
                watches = watch_tiles(trees[version], shapes, points, before, mine, oracle)
                track = [
                    Fix(object_, int(times[i]), int(i), (points[i][0], points[i][1])) for i in mine
                ]
                expected += oracle.follow(track, watches, version)
                start += len(mine)
        return expected


def watch_tiles(
    tree: shapely.STRtree, shapes: Any, points: Any, before: int, own: Any, oracle: Oracle
) -> dict[int, Watch]:
    """Watch the tiles that positions lie in or come through, and those that were visited."""
    starts = points[[before, *own[:-1]]]
    ways = shapely.linestrings(np.stack([starts, points[own]], axis=1))
    inside, met = (
        {(int(own[row]), int(tile)) for row, tile in tree.query(found, predicate="intersects").T}
        for found in (shapes[own], ways)
    )
    visited = {tile for track in oracle.tracks.values() for tile in track.pairs}
    tiles = sorted({tile for _, tile in inside | met} | visited)

    def watch(tile: int) -> Watch:
        return Watch(
            None,
            lambda fix: (fix.id, tile) in inside,
            is_fence=True,
            meets=lambda _, fix: (fix.id, tile) in met,
        )

    return {tile: watch(tile) for tile in tiles}


def test_at_2000_positions_a_second_rows_are_those_of_the_oracle_and_memory_stays(
    tmp_path: Path,
) -> None:
    run = TrackRun(tmp_path)
    counts = str(tmp_path / "counts.prom")
    with run.desk.running("--metrics", counts, "--transitions") as stream:
        run.feed(stream)
        stream.wait_until(lambda: run.count_seen() == FILES * EVENTS_PER_FILE)
        stream.process.send_signal(signal.SIGTERM)
        assert stream.process.wait() == 0, stream.said
    assert run.desk.rows("state/quarantine") == []
    run.check_answers()
    run.check_memory()
