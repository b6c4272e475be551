"""Where events fall is learnt from a sample: taken from them, or given, and then they wait."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import contrada.spark
from contrada.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

EVENT_PARTS = 3


class WatchedEvents:
    """Points (0 0), (1 1), … in three parts, each of which leaves a file when a task reads it."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._folder = folder
        place = str(folder)

        def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            import tempfile

            with tempfile.NamedTemporaryFile(dir=place, delete=False):
                for batch in batches:
                    ids = batch.column(0)
                    points = pa.array([f"POINT({n} {n})" for n in ids.to_pylist()])
                    yield pa.RecordBatch.from_pydict({"id": ids, "geometry": points})

        rows = spark.range(0, 60, 1, EVENT_PARTS)
        self.frame = rows.mapInArrow(read, "id long, geometry string")

    def count_reads(self) -> int:
        """Count how often a task has read a part."""
        return len(list(self._folder.iterdir()))


@pytest.fixture
def events(spark: SparkSession, tmp_path: Path) -> WatchedEvents:
    folder = tmp_path / "reads"
    folder.mkdir()
    return WatchedEvents(spark, folder)


@pytest.fixture
def zones(spark: SparkSession) -> DataFrame:
    rows = [(n, f"POLYGON(({n} {n}, {n + 1} {n}, {n} {n + 1}, {n} {n}))") for n in range(60)]
    return spark.createDataFrame(rows, "id long, geometry string")


@pytest.fixture
def sample(spark: SparkSession) -> DataFrame:
    rows = [(f"POINT({n % 2} {n % 2})",) for n in range(40)]
    return spark.createDataFrame(rows, "geometry string")


def pairs_of(answer: DataFrame) -> list[tuple[Any, ...]]:
    return sorted((row["event"], row["subscription"]) for row in answer.collect())


@pytest.mark.parametrize("options", [{"plan": "broadcast"}, {"plan": "auto"}])
def test_without_partitions_events_are_read_by_the_main_job_alone(
    events: WatchedEvents, zones: DataFrame, options: dict[str, Any]
) -> None:
    answer = contrada.spark.match(events.frame, zones, **options)
    contrada.spark.explain(events.frame, zones, **options)
    assert events.count_reads() == 0
    assert pairs_of(answer) == [(n, n) for n in range(60)]
    assert events.count_reads() == EVENT_PARTS


@pytest.mark.parametrize("evaluator", ["exact", "area"])
def test_with_a_sample_events_are_read_by_the_main_job_alone(
    events: WatchedEvents, zones: DataFrame, sample: DataFrame, evaluator: str
) -> None:
    options: dict[str, Any] = {"plan": "partitioned", "evaluator": evaluator, "sample": sample}
    contrada.spark.explain(events.frame, zones, **options)
    answer = contrada.spark.match(events.frame, zones, **options)
    assert events.count_reads() == 0
    answer.collect()
    assert events.count_reads() == EVENT_PARTS


def test_without_a_sample_the_plan_partitioned_takes_one(
    events: WatchedEvents, zones: DataFrame
) -> None:
    answer = contrada.spark.match(events.frame, zones, plan="partitioned")
    assert events.count_reads() == EVENT_PARTS
    answer.collect()
    assert events.count_reads() == 2 * EVENT_PARTS


def test_subscriptions_that_lie_nowhere_need_no_sample(
    spark: SparkSession, events: WatchedEvents
) -> None:
    odd = spark.createDataFrame([("odd", "id = 7")], "id string, filter string")
    answer = contrada.spark.match(events.frame, odd, plan="partitioned")
    assert events.count_reads() == 0
    assert pairs_of(answer) == [(7, "odd")]


def test_a_sample_divides_the_map_and_changes_no_answer(
    events: WatchedEvents, zones: DataFrame, sample: DataFrame
) -> None:
    options: dict[str, Any] = {"plan": "partitioned"}
    empty = sample.limit(0)
    tables = {}
    for name, given in (("crowd", sample), ("empty", empty)):
        found = contrada.spark.explain(events.frame, zones, sample=given, **options).partitions
        assert found is not None
        tables[name] = found.table
        answer = contrada.spark.match(events.frame, zones, sample=given, **options)
        assert pairs_of(answer) == [(n, n) for n in range(60)]
    crowded, even = (tables[name].levels[0] for name in ("crowd", "empty"))
    assert crowded > even, "where the sample falls, prefixes are smaller"


def test_bad_rows_of_a_sample_fall_nowhere(
    spark: SparkSession, events: WatchedEvents, zones: DataFrame
) -> None:
    spoilt = spark.createDataFrame([("POINT(1 1",), (None,), ("POINT(2 2)",)], "geometry string")
    answer = contrada.spark.match(events.frame, zones, plan="partitioned", sample=spoilt)
    assert len(pairs_of(answer)) == 60


@pytest.mark.parametrize("plan", ["broadcast", "partitioned"])
def test_what_is_no_sample_of_these_events_is_refused(
    spark: SparkSession, events: WatchedEvents, zones: DataFrame, sample: DataFrame, plan: str
) -> None:
    stream = spark.readStream.format("rate").load()
    elsewhere = sample.withMetadata("geometry", {"crs": "EPSG:2154"})
    here = zones.withMetadata("geometry", {"crs": "EPSG:4326"})
    cases: list[tuple[Any, DataFrame, str]] = [
        ("events.parquet", zones, "sample must be a Spark DataFrame, not builtins.str"),
        (stream, zones, "sample cannot be a stream; pass a batch DataFrame"),
        (
            sample.withColumnRenamed("geometry", "place"),
            zones,
            "sample has no column 'geometry', by which subscriptions are found; it has place",
        ),
        (sample.selectExpr("interval 1 month AS geometry"), zones, "sample, column 'geometry'"),
        (
            elsewhere,
            here,
            "is in EPSG:4326, sample, column 'geometry' in EPSG:2154; transform one of them",
        ),
    ]
    for given, subscriptions, words in cases:
        with pytest.raises(InvalidInput, match=words):
            contrada.spark.match(events.frame, subscriptions, plan=plan, sample=given)
    assert events.count_reads() == 0


def test_a_sample_is_read_where_subscriptions_are_found(
    spark: SparkSession, events: WatchedEvents, zones: DataFrame, sample: DataFrame
) -> None:
    inside = spark.createDataFrame(
        [(n, f"S_INTERSECTS(place, POINT({n} {n}))") for n in range(60)], "id long, filter string"
    )
    named = events.frame.withColumnRenamed("geometry", "place")
    given = sample.withColumnRenamed("geometry", "place")
    answer = contrada.spark.match(named, inside, plan="partitioned", sample=given)
    assert len(pairs_of(answer)) == 60
