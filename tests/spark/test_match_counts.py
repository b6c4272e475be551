"""Counts are of the first action, and an answer without one is refused."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException

import contrada.spark
from contrada.errors import InvalidInput
from contrada.spark import match_counts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture
def points(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([("s", "POINT(1 1)")], "id string, geometry string")


def test_an_answer_without_an_action_is_refused(
    points: DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(match_counts, "_PATIENCE_S", 0.2)
    with pytest.raises(InvalidInput, match="an action has run"):
        contrada.spark.counts(contrada.spark.match(points, points))


def test_an_action_that_reads_nothing_counts_nothing(points: DataFrame) -> None:
    answer = contrada.spark.match(points, points)
    answer.limit(0).toArrow()
    with pytest.raises(InvalidInput, match="match again"):
        contrada.spark.counts(answer)


class RemoteFrame:
    """A batch of Spark Connect, as far as it is counted."""

    isStreaming = False  # noqa: N815  as Spark names it

    def same(self, *_: object) -> RemoteFrame:
        return self

    observe = where = drop = same


@pytest.mark.usefixtures("spark")
def test_observations_of_spark_connect_which_are_of_another_class_count_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Dispatching:  # as PySpark's own, which makes what the session needs
        def __new__(cls) -> Any:
            return SimpleNamespace(get={"events": 3, "evaluated": 2, "set_aside": 1})

    monkeypatch.setattr("pyspark.sql.Observation", Dispatching)
    frame: Any = RemoteFrame()
    counted = contrada.spark.counts(match_counts.observed(frame, lambda events: events))
    assert (counted.events, counted.evaluated, counted.set_aside) == (3, 2, 1)


def test_a_match_leaves_the_errors_of_spark_as_they_are(points: DataFrame) -> None:
    contrada.spark.match(points, points, quarantine=True).collect()
    with pytest.raises(InvalidInput, match="no column 'id'"):
        contrada.spark.match(points.drop("id"), points)
    with pytest.raises(AnalysisException, match="nope"):
        points.select("nope").schema  # noqa: B018


def test_what_is_no_row_is_refused_by_the_function_in_sql(
    spark: SparkSession, points: DataFrame
) -> None:
    contrada.spark.register(spark, "zones_of_one", points)
    points.createOrReplaceTempView("points_of_one")
    with pytest.raises(Exception, match=r"takes struct\(\*\), the columns of a row, not string"):
        spark.sql("SELECT zones_of_one(geometry) FROM points_of_one").collect()
