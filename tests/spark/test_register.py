"""Subscriptions as SQL functions, plans explained, and events that are known by file and row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import shapely
from pyspark.errors import PythonException

import contrada.spark
from contrada.errors import InvalidInput

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture
def events(spark: SparkSession) -> DataFrame:
    rows = [(n, bytearray(shapely.to_wkb(shapely.Point(n, n))), n % 3) for n in range(12)]
    return spark.createDataFrame(rows, "id long, geometry binary, wind int")


@pytest.fixture
def zones(spark: SparkSession) -> DataFrame:
    """Squares from n to n + 3, with wind above n % 3."""
    rows = [
        (f"z{n}", bytearray(shapely.to_wkb(shapely.box(n, n, n + 3, n + 3))), f"wind > {n % 3}")
        for n in range(4)
    ]
    return spark.createDataFrame(rows, "id string, geometry binary, where string")


def expected_pairs() -> list[tuple[int, str]]:
    return [(e, f"z{z}") for e in range(12) for z in range(4) if z <= e <= z + 3 and e % 3 > z % 3]


def test_registered_subscriptions_are_functions_of_sql(
    spark: SparkSession, events: DataFrame, zones: DataFrame
) -> None:
    contrada.spark.register(spark, "zones", zones)
    events.createOrReplaceTempView("events")
    rows = spark.sql("SELECT id, zones(struct(*)) AS ids FROM events").collect()
    assert sorted((row.id, id_) for row in rows for id_ in row.ids) == expected_pairs()
    assert len(rows) == 12
    pairs = spark.sql("SELECT * FROM zones_match(TABLE(events))").collect()
    assert sorted((int(row.event), row.subscription) for row in pairs) == expected_pairs()
    for arguments, given in (("", "nothing"), ("id, wind", "int64, int32")):
        words = rf"InvalidInput: the function takes struct\(\*\), .*, not {given}"
        with pytest.raises(PythonException, match=words):
            spark.sql(f"SELECT zones({arguments}) FROM events").collect()


def test_a_name_can_be_registered_anew(
    spark: SparkSession, events: DataFrame, zones: DataFrame
) -> None:
    contrada.spark.register(spark, "again", zones)
    contrada.spark.register(spark, "again", zones.where("id = 'z1'"))
    events.createOrReplaceTempView("events")
    rows = spark.sql("SELECT again(struct(*)) AS ids FROM events").collect()
    assert {id_ for row in rows for id_ in row.ids} == {"z1"}


@pytest.mark.parametrize("name", ["two words", "", "1st", "a;b"])
def test_a_name_that_sql_cannot_call_is_refused(
    spark: SparkSession, zones: DataFrame, name: str
) -> None:
    with pytest.raises(InvalidInput, match="not a name for a function"):
        contrada.spark.register(spark, name, zones)


def test_events_from_parquet_are_known_by_file_and_row(
    spark: SparkSession, events: DataFrame, zones: DataFrame, tmp_path: Path
) -> None:
    events.coalesce(1).write.parquet(str(tmp_path / "events"))
    stored = spark.read.parquet(str(tmp_path / "events"))
    answer = contrada.spark.match(stored.drop("id"), zones).collect()
    (file,) = (tmp_path / "events").glob("*.parquet")
    assert {row.event.rpartition("#")[0] for row in answer} == {f"file:{file}"}
    found = sorted((int(row.event.rpartition("#")[2]), row.subscription) for row in answer)
    assert found == expected_pairs()


def test_other_events_without_an_id_are_refused(events: DataFrame, zones: DataFrame) -> None:
    with pytest.raises(InvalidInput, match=r"no column 'id' for .* have geometry, wind"):
        contrada.spark.match(events.drop("id"), zones)
    with pytest.raises(InvalidInput, match="no column 'key' for the id"):
        contrada.spark.match(events, zones, event_id="key")


def test_a_plan_is_explained_and_drawn(events: DataFrame, zones: DataFrame, tmp_path: Path) -> None:
    broadcast = contrada.spark.explain(events, zones)
    assert broadcast.plan == "broadcast"
    assert "at most" in str(broadcast)
    assert "id, geometry, wind" in str(broadcast)
    with pytest.raises(InvalidInput, match="no partitions to draw"):
        broadcast.draw(tmp_path / "plan.png")
    partitioned = contrada.spark.explain(events, zones, plan="partitioned")
    partitioned.draw(tmp_path / "plan.png")
    assert (tmp_path / "plan.png").stat().st_size > 5_000
    assert partitioned.partitions is not None
    held = [s.count for s in partitioned.partitions.segments if s is not None]
    assert sum(held) / 4 == partitioned.partitions.replication
    with pytest.raises(InvalidInput, match="no option 'plans'"):
        contrada.spark.explain(events, zones, plans="x")
