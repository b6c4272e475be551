"""Transitions on Spark, in batches and streams, against the oracle; and what is refused."""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import contrada.spark
from boxed_tracks import (
    AHEAD,
    BAD,
    EVENTS,
    FIRST,
    OPTIONS,
    SECOND,
    Position,
    as_table,
    by_object,
    good,
    make_batches,
    make_oracle,
    read_rows,
    subscriptions,
    watches,
)
from contrada import InvalidInput
from contrada.spark.state_store import STATE_STORE
from contrada.spark.transition_options import TransitionOptions
from contrada.spark.transitions import plan_transitions
from contrada.spark_options import SparkOptions
from transitions_oracle import Row, follow_all

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

SHARDS = 3
NOT_FENCES = "1 of 4 subscriptions are not fences: they have neither crossings nor hysteresis"


@contextmanager
def warning_of_others() -> Iterator[None]:
    with pytest.warns(UserWarning, match=NOT_FENCES):
        yield


def frame(spark: SparkSession, rows: list[Position]) -> DataFrame:
    return spark.createDataFrame(as_table(rows)).repartition(3)


class Stream:
    """Files of positions, each of which is a batch, and the folder where transitions go."""

    def __init__(self, folder: Path, spark: SparkSession) -> None:
        self.folder, self.spark, self.count = folder, spark, 0
        (folder / "events").mkdir()

    def add(self, rows: list[Position]) -> None:
        path = self.folder / "events" / f"{self.count}.parquet"
        pq.write_table(as_table(rows), path)
        os.utime(path, (1_000_000 + self.count, 1_000_000 + self.count))
        self.count += 1

    def publish(self, boxes: Mapping[str, Any]) -> str:
        return contrada.spark.publish(subscriptions(self.spark, boxes), self.folder / "set", lead=0)

    def run(self, **options: Any) -> None:
        events = self.spark.readStream.schema(EVENTS).option("maxFilesPerTrigger", 1)
        options = {**OPTIONS, "shards": SHARDS, "quarantine": True, **options}
        with warning_of_others():
            answer = contrada.spark.transitions(
                events.parquet(str(self.folder / "events")), str(self.folder / "set"), **options
            )
        contrada.spark.write_stream(
            answer,
            self.folder / "moves",
            checkpoint=self.folder / "checkpoint",
            quarantine=self.folder / "bad",
            once=True,
        ).awaitTermination()

    def rows(self, number: int) -> list[Row]:
        """Read the rows of a batch."""
        files = sorted(self.folder.glob(f"moves/batch={number}/*.parquet"))
        return [row for file in files for row in read_rows(pq.ParquetFile(file).read())]

    def bad(self) -> set[tuple[int, str]]:
        rows = [row for file in self.folder.glob("bad/batch=*/*.parquet") for row in read_bad(file)]
        assert len(rows) == len(set(rows))
        return set(rows)


def read_bad(file: Path) -> list[tuple[int, str]]:
    table = pq.ParquetFile(file).read()
    assert table.schema.names == ["event", "error"]
    return [(row["event"], row["error"]["code"]) for row in table.to_pylist()]


@pytest.fixture
def stream(tmp_path: Path, spark: SparkSession) -> Stream:
    return Stream(tmp_path, spark)


def test_a_batch_has_the_rows_of_the_oracle_in_pieces_of_any_size(spark: SparkSession) -> None:
    rows = [row for batch in make_batches(1, 6) for row in batch] + BAD
    options = {**OPTIONS, "lateness": "0 s"}
    asked: Any = {"object": "object_id", "time": "time", "ahead": "1 min", "kinds": None}
    read = TransitionOptions.read(**asked, **options, shards=1)
    beside = SparkOptions(plan="broadcast", quarantine=True)
    with warning_of_others():
        job = plan_transitions(frame(spark, rows), subscriptions(spark, FIRST), read, beside)
    answer = replace(job, piece_rows=5).run()
    table = answer.toArrow()
    counts = contrada.spark.counts(answer)
    silence = 60_000_000
    expected = follow_all(good(rows), watches(FIRST), silence)
    found = read_rows(table.filter(pa.compute.is_null(table["error"])))
    assert by_object(found) == by_object(expected)
    bad = table.filter(pa.compute.is_valid(table["error"])).to_pylist()
    assert {(row["event"], row["error"]["code"]) for row in bad} == {(b.id, b.fault) for b in BAD}
    assert all(row[name] is None for row in bad for name in Row._fields if name != "event")
    assert (counts.events, counts.set_aside) == (len(rows), len(BAD))


def test_a_stream_has_the_rows_of_the_oracle_through_versions_and_restarts(stream: Stream) -> None:
    batches = make_batches(2, 6)
    batches[1] += BAD
    batches[4] += [AHEAD]
    oracle = make_oracle()
    expected: list[list[Row]] = []
    for boxes, part in ((FIRST, batches[:3]), (SECOND, batches[3:])):
        version = stream.publish(boxes)
        for rows in part:
            stream.add(rows)
            expected.append(oracle.follow(good(rows), watches(boxes), version))
        stream.run()
    for number, answer in enumerate(expected):
        assert by_object(stream.rows(number)) == by_object(answer), number
    assert stream.bad() == {(row.id, row.fault) for row in [*BAD, AHEAD]}
    causes = {(row.transition, row.cause) for rows in expected for row in rows}
    assert {("exit", "version"), ("exit", "clock"), ("dwell", "clock"), ("late", "position"),
            ("cross", "position"), ("inside", "position")} <= causes  # fmt: skip


def test_a_batch_whose_state_was_committed_in_part_is_applied_once(
    stream: Stream, spark: SparkSession
) -> None:
    from pyspark.errors import StreamingQueryException

    version = stream.publish(FIRST)
    oracle = make_oracle()
    batches = make_batches(3, 3)
    expected = [oracle.follow(good(rows), watches(FIRST), version) for rows in batches]
    stream.add(batches[0])
    stream.run()
    for rows in batches[1:]:
        stream.add(rows)
    in_the_way = stream.folder / "checkpoint" / "state" / "0" / "1" / "2.changelog"
    in_the_way.mkdir()  # of the commit of one partition, in the second batch
    with pytest.raises(StreamingQueryException):
        stream.run()
    assert stream.rows(0), "the first batch is there"
    assert not stream.rows(1)
    in_the_way.rmdir()
    stream.run()
    for number, answer in enumerate(expected):
        assert by_object(stream.rows(number)) == by_object(answer), number
    stream.add(make_batches(4, 1)[0])
    with pytest.raises(StreamingQueryException, match="has 3 shards, and shards=2 is asked for"):
        stream.run(shards=2)


def test_what_cannot_be_is_refused_before_anything_runs(spark: SparkSession) -> None:
    events = frame(spark, [BAD[2]])
    fences = subscriptions(spark, FIRST)
    for message, options in {
        "events have no column 'ship' for the object": {"object": "ship"},
        "events have no column 'when' for the time": {"time": "when"},
        "column 'speed': a time must be a timestamp": {"time": "speed"},
        "column 'geometry': an id must be a string or a 64-bit integer": {"object": "geometry"},
        'lateness must be a duration such as "30 s"': {"lateness": "soon"},
        "silence must be longer than zero": {"silence": "0 s"},
        "dwell must be longer than zero": {"dwell": "0 s"},
        "hysteresis must be a number of metres": {"hysteresis": -1},
        "shards must be a number from 1 to 65,536, not 0": {"shards": 0},
        "unknown kind of transition 'leave'": {"kinds": ["leave"]},
    }.items():
        with pytest.raises(InvalidInput) as refused:
            contrada.spark.transitions(events, fences, **options)  # type: ignore[arg-type]
        assert message in str(refused.value)
    with pytest.raises(InvalidInput, match="events have no column 'geometry'"):
        contrada.spark.transitions(events.drop("geometry"), fences)


def test_a_stream_without_rocksdb_is_refused_with_the_setting_to_make(
    stream: Stream, spark: SparkSession
) -> None:
    before = str(spark.conf.get(STATE_STORE))
    events = spark.readStream.schema(EVENTS).parquet(str(stream.folder / "events"))
    spark.conf.set(STATE_STORE, before.replace("RocksDB", "HDFSBacked"))
    try:
        with pytest.raises(InvalidInput) as refused:
            contrada.spark.transitions(events, "nowhere")
    finally:
        spark.conf.set(STATE_STORE, before)
    assert f'spark.conf.set("{STATE_STORE}", "{before}")' in str(refused.value)
