"""`match` on streams: versions by batch, in both plans, and what bad rows and counts come to."""

from __future__ import annotations

import logging
import warnings
from contextlib import contextmanager
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import pytest

import contrada.spark
from contrada.errors import InvalidInput
from contrada.spark.crs_metadata import state_crs
from contrada.spark.match_counts import CAME_IN, WAS_DONE
from contrada.spark.version_names import number_version
from published import EVENT, PointStream, pairs_of, points, zones

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

pytestmark = pytest.mark.spark

TWO = {"a": 0.0, "b": 1.0}
PATIENCE_S = 60.0


@pytest.fixture
def stream(spark: SparkSession, tmp_path: Path) -> Iterator[PointStream]:
    yield PointStream(spark, tmp_path)
    for query in spark.streams.active:
        query.stop()


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return (tmp_path / "fences").as_uri()


def observed(query: StreamingQuery, prefix: str) -> dict[str, Any]:
    """What the last batch has counted."""
    progress = query.lastProgress
    assert progress is not None
    (found,) = [row for name, row in progress.observedMetrics.items() if name.startswith(prefix)]
    return found.asDict()


@pytest.mark.parametrize("partitions", [None, 2])
def test_a_version_is_taken_up_by_the_next_batch_and_named_in_every_match(
    spark: SparkSession, stream: PointStream, uri: str, partitions: int | None
) -> None:
    first = contrada.spark.publish(zones(spark, TWO), uri, partitions=partitions)
    query = stream.match(uri)
    stream.send([0, 1, 2])
    query.processAllAvailable()
    second = contrada.spark.publish(zones(spark, {"b": 1.0, "c": 2.0}), uri, lead=0)
    stream.send([0, 1, 2])
    query.processAllAvailable()
    assert pairs_of(stream.answers[0]) == [(0, "a"), (1, "b")]
    assert {row["version"] for row in stream.answers[0]} == {first}
    assert pairs_of(stream.answers[1]) == [(1, "b"), (2, "c")]
    assert {row["version"] for row in stream.answers[1]} == {second}
    done = observed(query, WAS_DONE)
    assert observed(query, CAME_IN) == {"events": 3}
    assert (done["evaluated"], done["set_aside"]) == (3, 0)
    assert done["version_low"] == done["version_high"] == number_version(second)


def test_a_batch_that_is_run_again_names_the_version_that_it_named_at_first(
    spark: SparkSession, stream: PointStream, uri: str
) -> None:
    first = contrada.spark.publish(zones(spark, TWO), uri)
    stream.send([0, 1])
    stream.failing = True
    query = stream.match(uri)
    with pytest.raises(Exception, match="the sink is broken"):
        query.awaitTermination()
    contrada.spark.publish(zones(spark, {"c": 1.0}), uri, lead=0)
    broken, stream.answers, stream.failing = stream.answers, {}, False
    stream.match(uri).processAllAvailable()
    assert {row["version"] for row in stream.answers[0]} == {first}
    assert sorted(stream.answers[0]) == sorted(broken[0])


def test_a_batch_whose_version_is_gone_fails_and_names_it(
    spark: SparkSession, stream: PointStream, uri: str, tmp_path: Path
) -> None:
    first = contrada.spark.publish(zones(spark, TWO), uri)
    contrada.spark.publish(zones(spark, {"c": 1.0}), uri, lead="1 h")
    (path,) = (tmp_path / "fences" / "versions").rglob("00000001-*.json")
    query = stream.match(f"{uri}")
    path.unlink()
    stream.send([0])
    with pytest.raises(Exception, match=f"version {first}, which held at .* is gone"):
        query.processAllAvailable()


def test_counts_of_a_stream_in_partitions_are_summed_within_the_batch(
    spark: SparkSession, stream: PointStream, uri: str
) -> None:
    wide = zones(spark, {f"z{n}": n / 8 for n in range(16)})
    contrada.spark.publish(wide, uri, partitions=3)
    query = stream.match(uri, output="counts", keep=["speed"])
    stream.send([0, 1, 1, 30])
    query.processAllAvailable()
    frozen = contrada.spark.match(points(spark, [0, 1, 1, 30]), wide, output="counts")
    wanted = sorted((row["event"], row["n"]) for row in frozen.collect())
    assert sorted((row["event"], row["n"]) for row in stream.answers[0]) == wanted
    assert [row["speed"] == row["event"] for row in stream.answers[0]] == [True] * 4


def test_subscriptions_of_a_dataframe_are_frozen_which_is_said(
    spark: SparkSession, stream: PointStream
) -> None:
    with pytest.warns(UserWarning, match="the stream keeps them as they are now"):
        query = stream.match(zones(spark, TWO))
    stream.send([0, 1, 2])
    query.processAllAvailable()
    assert pairs_of(stream.answers[0]) == [(0, "a"), (1, "b")]
    assert {row["version"] for row in stream.answers[0]} == {None}


def test_a_later_version_may_read_a_column_that_the_first_did_not(
    spark: SparkSession, stream: PointStream, uri: str
) -> None:
    contrada.spark.publish(zones(spark, TWO), uri)
    query = stream.match(uri)
    filters = spark.createDataFrame([("fast", "speed > 1")], "id string, filter string")
    contrada.spark.publish(filters, uri, lead=0)
    stream.send([0, 1, 2])
    query.processAllAvailable()
    assert pairs_of(stream.answers[0]) == [(2, "fast")]


@pytest.mark.parametrize("strict", [False, True])
def test_a_version_that_reads_what_the_stream_lacks_is_taken_or_if_strict_passed_over(
    spark: SparkSession, stream: PointStream, uri: str, strict: bool
) -> None:
    first = contrada.spark.publish(zones(spark, TWO), uri)
    query = stream.match(uri, strict=strict)
    lacking = [("hot", "heat > 3"), ("fast", "speed > 0")]
    filters = spark.createDataFrame(lacking, "id string, filter string")
    second = contrada.spark.publish(filters, uri, lead=0)
    with hearing("contrada.spark.stream_listening") as heard:
        for _ in range(2):
            stream.send([0, 1])
            query.processAllAvailable()
        said = heard.get(timeout=PATIENCE_S)
        between = contrada.spark.publish(zones(spark, TWO), uri, lead=0)
        third = contrada.spark.publish(filters, uri, lead=0)
        stream.send([0])
        query.processAllAvailable()
        assert third in heard.get(timeout=PATIENCE_S)
    assert f"version {second} reads 'heat', which no event of the stream has: " in said
    assert ("it is passed over" if strict else "tests of that are never true") in said
    wanted = [(0, "a"), (1, "b")] if strict else [(1, "fast")]
    assert pairs_of(stream.answers[0]) == pairs_of(stream.answers[1]) == wanted
    assert {row["version"] for row in stream.answers[0]} == {first if strict else second}
    query.stop()
    stream.send([1])
    with pytest.warns(
        UserWarning, match="reads 'heat', .*: it is passed over" if strict else "'heat'"
    ):
        stream.match(uri, strict=strict).processAllAvailable()
    assert {row["version"] for row in stream.answers[3]} == {between if strict else third}


def test_a_strict_stream_says_that_it_passes_over_a_version_which_compares_otherwise(
    spark: SparkSession, stream: PointStream, uri: str
) -> None:
    first = contrada.spark.publish(zones(spark, TWO), uri)
    query = stream.match(uri, strict=True)
    filters = spark.createDataFrame([("odd", "speed = 'fast'")], "id string, filter string")
    second = contrada.spark.publish(filters, uri, lead=0)
    stream.send([0])
    with hearing("contrada.spark.stream_listening") as heard:
        query.processAllAvailable()
        said = heard.get(timeout=PATIENCE_S)
    assert f"column 'speed' holds numbers, and subscriptions of version {second} compare" in said
    assert said.endswith(": it is passed over")
    assert {row["version"] for row in stream.answers[0]} == {first}


@pytest.mark.parametrize("partitions", [None, 2])
def test_a_version_that_states_another_system_than_the_stream_is_passed_over(
    spark: SparkSession, stream: PointStream, uri: str, partitions: int | None
) -> None:
    first = contrada.spark.publish(zones(spark, TWO), uri, partitions=partitions)
    stream.frame = state_crs(stream.frame, {"geometry": "EPSG:3857"})
    query = stream.match(uri)
    stated = state_crs(zones(spark, {"c": 0.0}), {"geometry": "EPSG:4326"})
    second = contrada.spark.publish(stated, uri, lead=0)
    stream.send([0])
    with hearing("contrada.spark.stream_listening") as heard:
        query.processAllAvailable()
        said = heard.get(timeout=PATIENCE_S)
    other = f"version {second} is in EPSG:4326, and the events are in EPSG:3857"
    assert said == f"{uri}: {other}: it is passed over"
    query.stop()
    stream.send([1])
    with pytest.warns(UserWarning, match=f"{other}: it is passed over"):
        stream.match(uri).processAllAvailable()
    assert pairs_of(stream.answers[0]) == [(0, "a")]
    assert pairs_of(stream.answers[1]) == [(1, "b")]
    assert {row["version"] for rows in stream.answers.values() for row in rows} == {first}


@contextmanager
def hearing(name: str) -> Iterator[SimpleQueue[str]]:
    """What is logged meanwhile, by whichever thread."""
    said: SimpleQueue[str] = SimpleQueue()
    handler = logging.Handler()
    handler.emit = lambda record: said.put(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger(name).addHandler(handler)
    yield said
    logging.getLogger(name).removeHandler(handler)


@pytest.mark.parametrize("plan", ["broadcast", "partitioned"])
def test_what_a_source_found_wrong_is_a_bad_event(spark: SparkSession, uri: str, plan: str) -> None:
    contrada.spark.publish(zones(spark, TWO), uri, partitions=2)
    fault = "named_struct('code', 'undecodable', 'message', 'is not JSON', 'place', 'offset 7')"
    marked = points(spark, [0, 1]).selectExpr("*", f"CASE WHEN id = 1 THEN {fault} END AS __fault")
    found = contrada.spark.match(marked, uri, plan=plan, quarantine=True)
    rows = sorted(found.collect(), key=lambda row: row["event"])
    assert [(row["event"], row["subscription"]) for row in rows] == [(0, "a"), (1, None)]
    assert rows[1]["error"]["message"] == "is not JSON"
    counted = contrada.spark.counts(found)
    assert (counted.evaluated, counted.set_aside) == (1, 1)
    with pytest.raises(Exception, match="event 1, offset 7: is not JSON"):
        contrada.spark.match(marked, uri, plan=plan).collect()
    with pytest.raises(InvalidInput, match="'__fault' cannot be kept"):
        contrada.spark.match(marked, uri, plan=plan, keep=["__fault"])


def test_counts_of_a_stream_are_in_its_progress(spark: SparkSession, stream: PointStream) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answer = contrada.spark.match(stream.frame, zones(spark, TWO))
    with pytest.raises(InvalidInput, match="look at observedMetrics in its progress"):
        contrada.spark.counts(answer)


def test_a_sample_of_events_goes_to_publish(spark: SparkSession, uri: str) -> None:
    contrada.spark.publish(zones(spark, TWO), uri)
    with pytest.raises(InvalidInput, match="give the sample to publish"):
        contrada.spark.match(points(spark, [0]), uri, sample=points(spark, [0]))


def test_a_column_that_cannot_travel_is_told_once_at_the_start(
    spark: SparkSession, stream: PointStream, uri: str
) -> None:
    contrada.spark.publish(zones(spark, TWO), uri)
    odd = stream.frame.selectExpr("*", "INTERVAL '1' YEAR AS age")
    with pytest.warns(UserWarning, match="Spark cannot pass 'age' to Python"):
        contrada.spark.match(odd, uri)
    assert "age" not in EVENT
