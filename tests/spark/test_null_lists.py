"""Lists and maps that are null arrive as nulls, though none travels to Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import contrada.spark
from contrada.spark.match import plan_match
from contrada.spark.null_lists import NULL_LISTS, restore_lists
from contrada.spark_options import SparkOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

EVENTS = [
    ("both", "POINT(1 1)", ["a"], {"k": 1}),
    ("empty", "POINT(1 1)", [], {}),
    ("null", "POINT(1 1)", None, None),
    ("other", "POINT(1 1)", None, {"k": 2}),
]
SCHEMA = "id string, geometry string, `the tags` array<string>, sizes map<string, int>"
SUBSCRIPTIONS = [
    ("no-tags", '"the tags" IS NULL', "POLYGON((0 0, 2 0, 2 2, 0 0))"),
    ("tags", '"the tags" IS NOT NULL', "POLYGON((0 0, 2 0, 2 2, 0 0))"),
    ("large", '"sizes.k" > 1', "POLYGON((0 0, 2 0, 2 2, 0 0))"),
]


@pytest.fixture
def events(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(EVENTS, SCHEMA)


@pytest.fixture
def subscriptions(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(SUBSCRIPTIONS, "id string, `where` string, geometry string")


@pytest.mark.parametrize("plan", ["broadcast", "partitioned"])
def test_a_null_list_is_not_an_empty_one_in_either_plan(
    plan: str, events: DataFrame, subscriptions: DataFrame
) -> None:
    answer = contrada.spark.match(events, subscriptions, plan=plan, keep=["the tags", "sizes"])
    kept = {row.event: (row["the tags"], row.sizes) for row in answer.collect()}
    assert kept == {id_: (tags, sizes) for id_, _, tags, sizes in EVENTS}
    found = {(row.event, row.subscription) for row in answer.collect()}
    assert found == {
        ("both", "tags"),
        ("empty", "tags"),
        ("null", "no-tags"),
        ("other", "no-tags"),
        ("other", "large"),
    }


def test_no_null_travels(events: DataFrame, subscriptions: DataFrame) -> None:
    job = plan_match(events, subscriptions, SparkOptions(keep=["the tags", "sizes"]))
    sent = [row.asDict() for row in job.events.collect()]
    lists = [value for row in sent for value in row.values() if not isinstance(value, str | int)]
    assert len(lists) == 8
    assert None not in lists


CREW = "struct<size: int, names: array<string>>"
DEEP = f"id string, geometry string, ship struct<name: string, crew: {CREW}, at: map<string, int>>"
SHIPS: list[Any] = [
    ("whole", "POINT(1 1)", ("Ann", (1, ["a"]), {"k": 1})),
    ("empty", "POINT(1 1)", ("Ben", (2, []), {})),
    ("no names", "POINT(1 1)", ("Cid", (3, None), None)),
    ("no crew", "POINT(1 1)", ("Dot", None, {"k": 2})),
    ("no ship", "POINT(1 1)", None),
]


@pytest.mark.parametrize("plan", ["broadcast", "partitioned"])
def test_lists_in_structs_arrive_as_they_were(
    plan: str, spark: SparkSession, subscriptions: DataFrame
) -> None:
    ships = spark.createDataFrame(SHIPS, DEEP)
    large = subscriptions.select("id", "geometry").where("id = 'large'")
    answer = contrada.spark.match(ships, large, plan=plan, keep=["ship"])
    wanted = {row.id: row.ship for row in ships.collect()}
    assert {row.event: row.ship for row in answer.collect()} == wanted


def test_no_null_travels_in_a_struct(spark: SparkSession, subscriptions: DataFrame) -> None:
    ships = spark.createDataFrame(SHIPS, DEEP)
    job = plan_match(ships, subscriptions.select("id", "geometry"), SparkOptions(keep=["ship"]))
    sent = job.events.toDF(*job.columns.names)
    lists = sent.where("ship.crew.names IS NULL OR ship.at IS NULL OR ship.crew IS NULL")
    assert lists.count() == 0


def test_events_without_lists_travel_as_they_are(
    events: DataFrame, subscriptions: DataFrame
) -> None:
    few = subscriptions.where("id = 'none'")
    job = plan_match(events.select("id", "geometry"), few, SparkOptions(keep=["geometry"]))
    assert job.columns.names == ("id", "geometry")


def test_nulls_are_restored_by_their_marks() -> None:
    lists: Any = pa.array([[1], [], []], pa.list_(pa.int64()))
    maps = pa.array([[], [], []], pa.map_(pa.string(), pa.int64()))
    marks = pa.array([0, 0b01, 0b10])
    batch = pa.record_batch({"__own": lists, "a": lists, "b": maps, NULL_LISTS: marks})
    restored = restore_lists(batch)
    assert restored.column("__own").to_pylist() == [[1], [], []]
    assert restored.column("a").to_pylist() == [[1], None, []]
    assert restored.column("b").to_pylist() == [[], [], None]


def test_a_batch_without_marks_is_left_alone() -> None:
    batch = pa.record_batch({"a": pa.array([None, [1]], pa.list_(pa.int64()))})
    assert restore_lists(batch) is batch
