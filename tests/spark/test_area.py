"""`evaluator="area"`: both plans answer as the matcher with the engine "ahs" does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import contrada
import contrada.spark
from contrada.errors import InvalidInput
from contrada.spark.evaluators import AREA_LEVEL, AREA_UNIVERSE

from .test_partitioned import (
    EVENT_SCHEMA,
    SUBSCRIPTION_SCHEMA,
    as_frame,
    as_table,
    make_events,
    make_subscriptions,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

Rows = list[tuple[Any, ...]]


@pytest.fixture(scope="module")
def workload() -> tuple[Rows, Rows]:
    rng = np.random.default_rng(11)
    return make_events(rng, 300), make_subscriptions(rng, 180)


@pytest.fixture
def coarse(spark: SparkSession) -> Iterator[None]:
    """A grid so coarse that its answers differ from the exact ones, over a part of the data."""
    spark.conf.set(AREA_LEVEL, "7")
    spark.conf.set(AREA_UNIVERSE, "-10,-10,100,90")
    yield
    spark.conf.unset(AREA_LEVEL)
    spark.conf.unset(AREA_UNIVERSE)


def pairs_by_matcher(events: Rows, subscriptions: Rows, **options: Any) -> Rows:
    matcher = contrada.Matcher("ahs", **options)
    matcher.add_many(as_table(subscriptions, SUBSCRIPTION_SCHEMA))
    table = matcher.match_many(as_table(events, EVENT_SCHEMA))
    return sorted(zip(*(table[name].to_pylist() for name in table.column_names), strict=True))


@pytest.mark.parametrize("plan", ["broadcast", "partitioned"])
def test_both_plans_answer_as_the_matcher(
    spark: SparkSession, coarse: None, workload: tuple[Rows, Rows], plan: str
) -> None:
    events, subscriptions = workload
    expected = pairs_by_matcher(
        events, subscriptions, level=7, universe=(-10.0, -10.0, 100.0, 90.0)
    )
    answer = contrada.spark.match(
        as_frame(spark, events, EVENT_SCHEMA),
        as_frame(spark, subscriptions, SUBSCRIPTION_SCHEMA),
        plan=plan,
        evaluator="area",
        keep=["wind"],
    )
    rows = answer.collect()
    assert sorted((row.event, row.subscription) for row in rows) == expected
    assert len(expected) > 3_000
    wind = {event[0]: event[3] for event in events}
    assert all(row.wind == wind[row.event] for row in rows)
    assert all(
        row.subscriber == (f"u{row.subscription % 7}" if row.subscription < 180 else None)
        for row in rows
    )
    assert contrada.spark.counts(answer).evaluated == len(events)


def test_counts_are_those_of_the_pairs(spark: SparkSession, workload: tuple[Rows, Rows]) -> None:
    events, subscriptions = workload
    n = dict.fromkeys((event[0] for event in events), 0)
    for event, _ in pairs_by_matcher(events, subscriptions):
        n[event] += 1
    for plan in ("broadcast", "partitioned"):
        answer = contrada.spark.match(
            as_frame(spark, events, EVENT_SCHEMA),
            as_frame(spark, subscriptions, SUBSCRIPTION_SCHEMA),
            plan=plan,
            evaluator="area",
            output="counts",
        )
        assert {row.event: row.n for row in answer.collect()} == n, plan
        assert contrada.spark.counts(answer).events == len(events)


LONG_LINE = "LINESTRING(-179 -89, 179 89, -179 89, 179 -89)"


def test_what_has_too_many_cells_is_bad_by_name(spark: SparkSession) -> None:
    spark.conf.set(AREA_LEVEL, "22")
    try:
        good = spark.createDataFrame([("s", "POINT(1 1)")], "id string, geometry string")
        long = spark.createDataFrame([("long", LONG_LINE)], "id string, geometry string")
        with pytest.raises(InvalidInput, match=r"1 of 1 .*\n.*'long'.*cells of level 22"):
            contrada.spark.match(good, long, evaluator="area")
        events = long.union(good)
        for plan in ("broadcast", "partitioned"):
            answer = contrada.spark.match(
                events, good, evaluator="area", plan=plan, quarantine=True
            )
            rows = {row.event: row for row in answer.collect()}
            assert rows["s"].subscription == "s" and rows["s"].error is None
            assert rows["long"].subscription is None
            assert rows["long"].error.code == "too_fine"
            assert contrada.spark.counts(answer).set_aside == 1
    finally:
        spark.conf.unset(AREA_LEVEL)


@pytest.mark.parametrize(
    ("name", "value"), [(AREA_LEVEL, "fine"), (AREA_LEVEL, "99"), (AREA_UNIVERSE, "0,0,1")]
)
def test_a_grid_that_cannot_be_is_refused_with_the_setting(
    spark: SparkSession, name: str, value: str
) -> None:
    points = spark.createDataFrame([("s", "POINT(1 1)")], "id string, geometry string")
    spark.conf.set(name, value)
    try:
        with pytest.raises(InvalidInput, match=f"{name}='{value}'"):
            contrada.spark.match(points, points, evaluator="area")
    finally:
        spark.conf.unset(name)
