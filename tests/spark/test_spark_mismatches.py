"""`contrada.spark.match` warns of tests that are never true as the matcher does, word for word."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import contrada
import contrada.spark
from contrada.errors import InvalidInput

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

FILTERS = ["speed > 1", "speed > 2", "seen > TIMESTAMP('2026-01-01T00:00:00Z')", "name = 'a'"]


def warnings_of_a_matcher(columns: dict[str, pa.Array], filters: list[str]) -> list[str]:
    matcher = contrada.Matcher()
    for number, text in enumerate(filters):
        matcher.add(number, text)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        matcher.match_many(pa.table(columns))
    return [str(one.message) for one in told]


def as_subscriptions(spark: SparkSession, filters: list[str]) -> DataFrame:
    frame = spark.createDataFrame(list(enumerate(filters)), "id long, filter string")
    return frame.repartitionByRange(2, "id")


def test_columns_of_another_type_are_warned_of_in_the_same_words(spark: SparkSession) -> None:
    events = spark.createDataFrame(
        [(1, "fast", 5, "a")], "id long, speed string, seen int, name string"
    )
    columns = {
        "id": pa.array([1]),
        "speed": pa.array(["fast"]),
        "seen": pa.array([5]),
        "name": pa.array(["a"]),
    }
    expected = [
        text.replace("table: ", "events: ", 1) for text in warnings_of_a_matcher(columns, FILTERS)
    ]
    assert len(expected) == 2
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        contrada.spark.match(events, as_subscriptions(spark, FILTERS))
    assert [str(one.message) for one in told if one.category is UserWarning] == expected
    assert {one.filename for one in told if one.category is UserWarning} == {__file__}
    with pytest.raises(InvalidInput, match=r"'seen' holds numbers, .*; events: column 'speed'"):
        contrada.spark.match(events, as_subscriptions(spark, FILTERS), strict=True)


def test_distances_between_projected_coordinates_are_warned_of(spark: SparkSession) -> None:
    near = as_subscriptions(spark, ["dwithin(geometry, POINT(1 1), 100)"])
    plain = spark.createDataFrame([(1, "POINT(1 1)")], "id long, geometry string")
    events = plain.withMetadata("geometry", {"crs": "EPSG:2154"})
    words = (
        "events: dwithin reads coordinates as longitude and latitude, but they are in EPSG:2154; "
        "reproject them, for instance to EPSG:4326"
    )
    with pytest.warns(UserWarning, match="dwithin reads") as told:
        contrada.spark.match(events, near)
    assert [str(one.message) for one in told] == [words]
    with pytest.raises(InvalidInput, match="dwithin reads coordinates"):
        contrada.spark.match(events, near, strict=True)
    touching = as_subscriptions(spark, ["S_INTERSECTS(geometry, POINT(1 1))"])
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        contrada.spark.match(plain, near)
        contrada.spark.match(events, touching)
