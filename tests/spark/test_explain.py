"""What `explain` says of row groups is what Spark reads, and it is said of nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import geopandas
import pyarrow.parquet as pq
import pytest
import shapely

import contrada.spark

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from contrada.spark.box_columns import RowGroups

pytestmark = pytest.mark.spark


@pytest.fixture
def places(tmp_path: Path) -> Path:
    """Two files of ten points in a row each, in row groups of two; the last has no geometry."""
    folder = tmp_path / "places"
    folder.mkdir()
    for first in (0, 10):
        shapes: list[Any] = [shapely.Point(x + 0.5, 0.5) for x in range(first, first + 10)]
        if first:
            shapes[-2:] = [None, None]
        frame = geopandas.GeoDataFrame({"id": range(first, first + 10)}, geometry=shapes, crs=4326)
        frame.to_parquet(folder / f"{first}.parquet", write_covering_bbox=True, row_group_size=2)
    return folder


@pytest.fixture
def zones(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([("a", "POINT(6.5 0.5)")], "id string, geometry string")


def row_groups(events: DataFrame, zones: DataFrame) -> RowGroups | None:
    return contrada.spark.explain(events, zones).row_groups


def rows_read(frame: DataFrame) -> int:
    """How many rows the scan gives to the filter, by Spark's own metric."""
    frame.collect()
    plan = frame._jdf.queryExecution().executedPlan()
    return int(plan.collectLeaves().head().metrics().apply("numOutputRows").value())


@pytest.mark.parametrize(
    ("box", "left"),
    [
        ((6.1, 0, 6.9, 1), 1),
        ((7, 0, 12.5, 1), 4),
        ((15, 0, 3, 1), 4),
        ((50, 0, 60, 1), 0),
        ((0, 3, 60, 4), 0),
        ((-9, -9, 99, 99), 9),
    ],
    ids=str,
)
def test_the_row_groups_that_are_left_are_those_that_spark_reads(
    spark: SparkSession, places: Path, zones: DataFrame, box: Any, left: int
) -> None:
    events = contrada.spark.read_geoparquet(spark, places, bbox=box)
    found = row_groups(events, zones)
    assert found is not None
    assert (found.left, found.total) == (left, 10)
    assert (found.rows_left, found.rows) == (rows_read(events), 20) == (2 * left, 20)


def test_the_row_groups_are_shown_even_of_events_that_were_selected_and_filtered(
    spark: SparkSession, places: Path, zones: DataFrame
) -> None:
    events = contrada.spark.read_geoparquet(spark, places, bbox=(6.1, 0, 6.9, 1))
    narrow = events.where("id > 3").select("geometry", "id")
    line = "row groups of events: 1 of 10 are read, with 2 of 20 rows; the others are outside bbox"
    assert line in str(contrada.spark.explain(narrow, zones)).splitlines()
    assert narrow.schema["geometry"].metadata["crs"] == "EPSG:4326"


def test_a_box_that_prunes_nothing_is_told_apart_from_no_box(
    spark: SparkSession, places: Path, zones: DataFrame
) -> None:
    geopandas.read_parquet(places / "0.parquet").to_parquet(places / "without.parquet")
    events = contrada.spark.read_geoparquet(spark, places, bbox=(6.1, 0, 6.9, 1))
    said = str(contrada.spark.explain(events, zones))
    assert "row groups of events: all 11 are read: the files have no covering in common" in said
    unboxed = contrada.spark.read_geoparquet(spark, places / "0.parquet")
    assert "row groups" not in str(contrada.spark.explain(unboxed, zones))


def test_a_copy_that_spark_has_written_says_nothing_of_the_row_groups_of_its_original(
    spark: SparkSession, places: Path, zones: DataFrame, tmp_path: Path
) -> None:
    events = contrada.spark.read_geoparquet(spark, places, bbox=(6.1, 0, 6.9, 1))
    events.write.parquet(str(tmp_path / "copy"))
    copy = spark.read.parquet(str(tmp_path / "copy"))
    assert "row_groups" in copy.schema["geometry"].metadata, "Spark has kept it"
    assert row_groups(copy, zones) is None


def test_row_groups_without_statistics_may_have_anything(
    spark: SparkSession, places: Path, zones: DataFrame
) -> None:
    path = places / "0.parquet"
    options: dict[str, Any] = {"write_statistics": False, "use_dictionary": False}
    pq.write_table(pq.read_table(path), path, row_group_size=2, **options)
    events = contrada.spark.read_geoparquet(spark, path, bbox=(6.1, 0, 6.9, 1))
    found = row_groups(events, zones)
    assert found is not None
    assert (found.left, found.total) == (5, 5)
    assert rows_read(events) == 10
