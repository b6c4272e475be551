"""A small stream that tests write to folders, make fail or kill, and start again.

Each file of events is a batch: points that lie in one zone or two, and one event that is bad. As a
program it runs the stream until it comes to a place at which it is told to stop, says so, and waits
to be killed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
import shapely

import contrada.spark
from contrada.spark.crs_metadata import state_crs
from contrada.spark.folder_sink import FolderSink
from contrada.spark.stream_checkpoints import StreamCheckpoint
from contrada.spark.stream_folders import StreamFolder
from contrada.spark.stream_watch import StreamWatch
from contrada.spark.topic_sink import TopicSink

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

EVENTS = "id long, geometry binary, speed int"
GOOD_EVENTS = 3  # in each batch
Rows = set[tuple[Any, ...]]

# Where a batch can fail: which method comes next, and which of its calls belongs to batch 1.
PLACES: dict[str, tuple[type, str, int]] = {  # in folders
    "the offsets are written": (FolderSink, "_begin", 2),
    "the drafts are written": (StreamCheckpoint, "decide", 2),
    "the batch is decided": (StreamFolder, "put", 3),
    "the bad rows are in place": (StreamFolder, "put", 4),
    "all rows are in place": (StreamCheckpoint, "settle", 2),
    "all is done but Spark's commit": (FolderSink, "_clear", 3),
}
TOPIC_PLACES: dict[str, tuple[type, str, int]] = {
    "only the offsets are written": (TopicSink, "__call__", 2),
    "the messages are written": (StreamWatch, "check", 2),
}
NOWHERE = (FolderSink, "_clear", 0)


class StreamRun(NamedTuple):
    """A stream to be run: where its events are, where to stop, and where matches and bad rows go.

    It goes to the end where it stops nowhere, and without other places to its own folders.
    """

    folder: str
    place: str
    to: str = ""
    quarantine: str = ""


def stop_at(place: str, stop: Callable[[], None]) -> tuple[type, str, Any]:
    """Return a class, a method, and what to put in its stead: it stops where a batch is so far."""
    kind, name, number = (PLACES | TOPIC_PLACES).get(place, NOWHERE)
    method, calls = getattr(kind, name), []

    def stopping(*args: Any, **options: Any) -> Any:
        calls.append(name)
        if len(calls) == number:
            stop()
        return method(*args, **options)

    return kind, name, stopping


def add_batch(folder: Path, number: int) -> None:
    """Add a file of events, which is a batch: what is older comes before it."""
    (folder / "events").mkdir(exist_ok=True)
    ids = range(10 * number, 10 * number + GOOD_EVENTS + 1)
    points = [shapely.to_wkb(shapely.Point(0.5 + id_ % 10, 0.5)) for id_ in ids[:-1]]
    points.append(b"no geometry")
    table = pa.table({"id": ids, "geometry": points, "speed": pa.array(ids, pa.int32())})
    path = folder / "events" / f"{number}.parquet"
    pq.write_table(table, path)
    os.utime(path, (1_000_000 + number, 1_000_000 + number))


def prepare(folder: Path, published: Path, batches: int) -> Path:
    """Leave a published set in a folder, and the events of some batches; return the folder."""
    shutil.copytree(published, folder / "zones")
    for number in range(batches):
        add_batch(folder, number)
    return folder


def zones(spark: SparkSession, count: int = 2) -> DataFrame:
    """Squares of sides 1, 2, …, so that an event at 0.5 lies in all, and one at 1.5 in one less."""
    rows = [
        (f"zone {n}", f"POLYGON((0 0, {n} 0, {n} 1, 0 1, 0 0))", f"user {n}")
        for n in range(1, count + 1)
    ]
    return spark.createDataFrame(rows, "id string, geometry string, subscriber string")


def answer(spark: SparkSession, folder: Path, **options: Any) -> DataFrame:
    """The events of a folder, one file at a time, matched against the set that it has."""
    stream = spark.readStream.schema(EVENTS).option("maxFilesPerTrigger", 1)
    events = state_crs(stream.parquet(str(folder / "events")), {"geometry": "EPSG:4326"})
    options = {"keep": ["geometry"], "quarantine": True, **options}
    return contrada.spark.match(events, str(folder / "zones"), **options)


def start(spark: SparkSession, folder: Path, **options: Any) -> StreamingQuery:
    """Write what there is, or go on with it; without another place to its folders."""
    places = {"to": folder / "matches", "quarantine": folder / "bad", **options}
    return contrada.spark.write_stream(
        answer(spark, folder), checkpoint=folder / "checkpoint", once=True, **places
    )


def run(spark: SparkSession, folder: Path, **options: Any) -> None:
    start(spark, folder, **options).awaitTermination()


def expected(numbers: range) -> tuple[Rows, Rows]:
    """The rows that batches have: event, subscription and batch, and bad event, code and batch."""
    inside = {0: ("zone 1", "zone 2"), 1: ("zone 2",)}
    good = {(10 * n + e, zone, n) for n in numbers for e in inside for zone in inside[e]}
    return good, {(10 * n + GOOD_EVENTS, "undecodable", n) for n in numbers}


def expected_ids(batches: int) -> tuple[set[str], set[str]]:
    """The ids of the messages that the first batches have, of matches and of bad events."""
    matches, bad = expected(range(batches))
    return {f"{e}|{zone}" for e, zone, _ in matches}, {f"{e}|error" for e, *_ in bad}


def read(folder: Path) -> tuple[Rows, Rows]:
    """Read both folders as strangers do, who must agree; nobody may be writing."""
    found = read_by_arrow(folder)
    assert found == read_by_duckdb(folder)
    return found


def read_by_arrow(folder: Path) -> tuple[Rows, Rows]:
    """Read matches and bad rows with pyarrow."""

    def rows(name: str, *columns: str) -> Rows:
        dataset = ds.dataset(folder / name, partitioning="hive")
        if not dataset.files:
            return set()
        return _plain(row.values() for row in dataset.to_table(columns=[*columns]).to_pylist())

    return rows("matches", "event", "subscription", "batch"), rows("bad", "event", "error", "batch")


def read_by_duckdb(folder: Path) -> tuple[Rows, Rows]:
    """Read matches and bad rows with DuckDB, which does not read a folder without files."""

    def rows(name: str, columns: str) -> Rows:
        files = f"{folder}/{name}/**/*.parquet"
        if not query(f"SELECT * FROM glob('{files}')"):
            return set()
        return _plain(query(f"SELECT {columns} FROM read_parquet('{files}')"))

    return rows("matches", "event, subscription, batch"), rows("bad", "event, error, batch")


def query(sql: str) -> list[tuple[Any, ...]]:
    """Ask DuckDB."""
    with duckdb.connect() as connection:
        return connection.execute(sql).fetchall()


def _plain(rows: Iterable[Iterable[Any]]) -> Rows:
    """Make rows comparable, of which none may come twice."""
    found = [tuple(v["code"] if isinstance(v, dict) else v for v in row) for row in rows]
    assert len(found) == len(set(found))
    return set(found)


def check_partial(matches: Rows, bad: Rows) -> set[int]:
    """Check that whole batches were read and nothing else; return which files have matches there.

    Matches are put in place last, so that bad rows may be there before them. A batch is a file, but
    for one that Spark had listed and not yet begun when it was killed: the next file joins it.
    """
    all_matches, all_bad = expected(range(99))
    seen, set_aside = ({row[0] // 10: row[-1] for row in rows} for rows in (matches, bad))
    assert matches == {(*row, seen[n]) for *row, n in all_matches if n in seen}
    assert bad == {(*row, set_aside[n]) for *row, n in all_bad if n in set_aside}
    placed = set(seen.values())
    assert seen == {n: batch for n, batch in set_aside.items() if batch in placed}
    return set(seen)


def check_whole(folder: Path, batches: int) -> None:
    """Check that the files of all batches are there once, and no drafts."""
    assert check_partial(*read(folder)) == set(range(batches))
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]


@contextmanager
def child(*runs: StreamRun) -> Iterator[subprocess.Popen[str]]:
    """A process that runs streams; what is left of it in the end, its Java too, is killed."""
    command = [sys.executable, __file__, json.dumps(runs)]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def kill_at(*runs: StreamRun) -> None:
    """Run streams to their places in a process of its own, and kill it with all it has started."""
    with child(*runs) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "here\n"


def kill_at_random(generator: random.Random, folder: Path, *places: str) -> None:
    """Run the stream in a process of its own, and kill it at some moment in its next batches."""
    wanted = count_committed(folder) + generator.randrange(1, 6)
    with child(StreamRun(str(folder), "never", *places)) as process:
        while count_committed(folder) < wanted:
            let_run(process, 0.02)
        let_run(process, generator.uniform(0, 1))


def count_committed(folder: Path) -> int:
    """Count the batches that Spark has committed."""
    commits = folder / "checkpoint" / "commits"
    return sum(path.name.isdigit() for path in commits.iterdir()) if commits.exists() else 0


def let_run(process: subprocess.Popen[str], seconds: float) -> None:
    """Let some time go by, in which a process does not end."""
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(seconds)


def fail_at(
    place: str, spark: SparkSession, folder: Path, patch: pytest.MonkeyPatch, **options: Any
) -> None:
    """Run the stream until batch 1 fails at a place."""
    from pyspark.errors import StreamingQueryException

    def fail() -> None:
        raise AssertionError(place)

    with patch.context() as patched:
        patched.setattr(*stop_at(place, fail))
        with pytest.raises(StreamingQueryException, match=place):
            run(spark, folder, **options)


def main(runs: list[StreamRun]) -> None:
    """Run streams one after the other, each to its place; say so where all have one, and wait."""
    spark = contrada.spark.session("local[2]")
    for run_ in runs:
        reached = threading.Event()

        def wait(reached: threading.Event = reached) -> None:
            reached.set()
            threading.Event().wait()

        places = {"to": run_.to, "quarantine": run_.quarantine}
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(*stop_at(run_.place, wait))
            query = start(spark, Path(run_.folder), **{k: v for k, v in places.items() if v})
            while query.isActive and not reached.wait(0.02):
                continue
        if not reached.is_set():
            query.awaitTermination()
            return
    print("here", flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", help="JSON: a list of folder, place, and where rows go, of each")
    main([StreamRun(*fields) for fields in json.loads(parser.parse_args().runs)])
