"""The plan "partitioned" answers as the plan "broadcast" and the matcher do, row by row."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
import shapely

import contrada
import contrada.spark
from contrada.model.relation import RELATIONS
from contrada.spark import meeting

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.random import Generator
    from pyspark.sql import DataFrame, SparkSession
    from shapely.geometry.base import BaseGeometry

pytestmark = pytest.mark.spark

EVENT_SCHEMA = "id long, geometry binary, area binary, wind int"
SUBSCRIPTION_SCHEMA = (
    "id long, geometry binary, relation string, where string, attribute string, filter string, "
    "subscriber string"
)
ELSEWHERE = "POLYGON((60 60, 80 60, 80 80, 60 60))"
FILTERS = (
    "wind > 7",
    "geometry IS NULL",
    f"NOT S_INTERSECTS(geometry, {ELSEWHERE})",
    f"S_DISJOINT(area, {ELSEWHERE}) AND wind < 3",
    f"S_INTERSECTS(geometry, {ELSEWHERE}) OR S_WITHIN(area, POLYGON((0 0, 9 0, 9 9, 0 0)))",
    f"S_INTERSECTS(area, {ELSEWHERE}) OR wind = 5",
    "dwithin(geometry, POINT(10 10), 400000) AND wind <> 2",
    "S_INTERSECTS(geometry, area)",
    f"S_INTERSECTS(geometry, {ELSEWHERE}) AND NOT S_WITHIN(geometry, {ELSEWHERE})",
    "FALSE",
)


def make_shape(rng: Generator, kind: int) -> BaseGeometry:
    """A point, line, area or multi-point; most lie in one crowded corner."""
    x, y = rng.exponential(12.0, 2) if rng.random() < 0.7 else rng.uniform(-30, 120, 2)
    x, y = round(min(x, 170.0), 0), round(min(y, 80.0), 0)  # whole numbers touch each other
    r = round(rng.exponential(4.0)) + 1.0
    if kind == 0:
        return shapely.Point(x, y)
    if kind == 1:
        return shapely.LineString([(x, y), (x + r, y), (x + r, y + 2)])
    if kind == 2:
        return shapely.Polygon([(x, y), (x + r, y), (x + r, y + 2 * r), (x, y + 2 * r)])
    return shapely.MultiPoint([(x, y), (x + r, y + r)])


def as_wkb(shape: BaseGeometry) -> bytes:
    return bytes(shapely.to_wkb(shape))


def make_events(rng: Generator, count: int) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    for number in range(count):
        shape = None if number % 23 == 0 else as_wkb(make_shape(rng, int(rng.integers(0, 4))))
        area = None if rng.random() < 0.5 else as_wkb(make_shape(rng, 2))
        rows.append((number, shape, area, int(rng.integers(0, 10))))
    return rows


def make_subscriptions(rng: Generator, count: int) -> list[tuple[Any, ...]]:
    """Subscriptions with all named relations, and those of FILTERS."""
    rows: list[tuple[Any, ...]] = []
    names = list(RELATIONS)
    for number in range(count):
        relation = names[number % len(names)]
        kind = 2 if relation.startswith("eh") else int(rng.integers(0, 4))
        where = f"wind > {rng.integers(0, 9)}" if rng.random() < 0.5 else None
        attribute = "area" if rng.random() < 0.3 else None
        shape = as_wkb(make_shape(rng, kind))
        rows.append((number, shape, relation, where, attribute, None, f"u{number % 7}"))
    return rows + [(count + i, None, None, None, None, f, None) for i, f in enumerate(FILTERS)]


def as_frame(spark: SparkSession, rows: list[tuple[Any, ...]], schema: str) -> DataFrame:
    mutable = [tuple(bytearray(v) if isinstance(v, bytes) else v for v in row) for row in rows]
    return spark.createDataFrame(mutable, schema).repartition(3)


def as_table(rows: list[tuple[Any, ...]], schema: str) -> pa.Table:
    names = [field.split()[0] for field in schema.split(", ")]
    return pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        yield


@pytest.fixture(scope="module")
def workload() -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    rng = np.random.default_rng(7)
    return make_events(rng, 400), make_subscriptions(rng, 180)


def test_all_plans_and_the_matcher_give_the_same_rows(
    spark: SparkSession, workload: tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]
) -> None:
    events, subscriptions = workload
    matcher = contrada.Matcher()
    matcher.add_many(as_table(subscriptions, SUBSCRIPTION_SCHEMA))
    table = matcher.match_many(as_table(events, EVENT_SCHEMA))
    expected = sorted(zip(*(table[name].to_pylist() for name in table.column_names), strict=True))
    assert len(expected) > 3_000
    for plan in ("broadcast", "partitioned"):
        answer = contrada.spark.match(
            as_frame(spark, events, EVENT_SCHEMA),
            as_frame(spark, subscriptions, SUBSCRIPTION_SCHEMA),
            plan=plan,
            keep=["wind"],
        )
        found = sorted((row.event, row.subscription) for row in answer.collect())
        assert found == expected, plan
        counts = contrada.spark.counts(answer)
        assert (counts.events, counts.evaluated, counts.set_aside) == (len(events), len(events), 0)


def test_the_counts_of_all_partitions_are_added_up(
    spark: SparkSession, workload: tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]
) -> None:
    events, subscriptions = workload
    frames = (
        as_frame(spark, events, EVENT_SCHEMA),
        as_frame(spark, subscriptions, SUBSCRIPTION_SCHEMA),
    )
    found = [
        sorted(
            tuple(row)
            for row in contrada.spark.match(
                *frames, plan=plan, output="counts", keep=["wind"]
            ).collect()
        )
        for plan in ("broadcast", "partitioned")
    ]
    assert found[0] == found[1]
    assert [event for event, _, _ in found[1]] == list(range(len(events)))


def test_each_bad_event_comes_back_once_from_any_plan(spark: SparkSession) -> None:
    rng = np.random.default_rng(3)
    events = make_events(rng, 60)
    bad = as_wkb(shapely.Point(1, 2))[:-1]
    events[5] = (5, bad, events[5][2], 1)
    events[6] = (6, events[6][1], bad, 1)
    events[7] = (None, *events[7][1:])
    subscriptions = make_subscriptions(rng, 40)
    found = []
    for plan in ("broadcast", "partitioned"):
        answer = contrada.spark.match(
            as_frame(spark, events, EVENT_SCHEMA),
            as_frame(spark, subscriptions, SUBSCRIPTION_SCHEMA),
            plan=plan,
            quarantine=True,
        )
        found.append(sorted(answer.collect(), key=str))
        assert contrada.spark.counts(answer).set_aside == 3
    assert found[0] == found[1]
    errors = [row for row in found[1] if row.error is not None]
    assert {row.event for row in errors} == {5, 6, None}
    assert len(errors) == 3


def test_a_set_too_large_for_every_worker_is_partitioned(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(5)
    events = as_frame(spark, make_events(rng, 20), EVENT_SCHEMA)
    subscriptions = as_frame(spark, make_subscriptions(rng, 20), SUBSCRIPTION_SCHEMA)
    plans = [contrada.spark.explain(events, subscriptions).plan]
    monkeypatch.setattr(meeting, "BROADCAST_BYTES_MAX", 10)
    explained = contrada.spark.explain(events, subscriptions)
    assert [*plans, explained.plan] == ["broadcast", "partitioned"]
    assert "more than 10" in explained.reason
    assert "replication" in str(explained)


def test_subscriptions_that_hold_anywhere_need_no_place_on_the_map(spark: SparkSession) -> None:
    rng = np.random.default_rng(9)
    events = as_frame(spark, make_events(rng, 30), EVENT_SCHEMA)
    broad = [row for row in make_subscriptions(rng, 0) if row[5] in ("wind > 7", FILTERS[2])]
    found = [
        sorted(
            (row.event, row.subscription)
            for row in contrada.spark.match(
                events, as_frame(spark, rows, SUBSCRIPTION_SCHEMA), plan=plan
            ).collect()
        )
        for rows in (broad, [])
        for plan in ("broadcast", "partitioned")
    ]
    assert found[0] == found[1] != []
    assert found[2] == found[3] == []


def test_no_coordinate_is_too_far_away_to_be_partitioned(spark: SparkSession) -> None:
    shapes = [
        shapely.box(-1e300, -1e300, 1e300, 1e300),
        shapely.box(5e299, 0, 1e300, 1e300),
        shapely.Point(1e300, 1),
        shapely.box(0, 0, 1, 1),
        shapely.LineString([(0, 0.5), (1e30, 0.5)]),
    ]
    rows = [(number, as_wkb(shape)) for number, shape in enumerate(shapes)]
    frame = as_frame(spark, rows, "id long, geometry binary")
    matcher = contrada.Matcher()
    table = as_table(rows, "id long, geometry binary")
    matcher.add_many(table)
    expected = [tuple(row.values()) for row in matcher.match_many(table).to_pylist()]
    assert {(1, 0), (2, 1), (4, 3)} <= set(expected)
    answer = contrada.spark.match(frame, frame, plan="partitioned")
    assert sorted((row.event, row.subscription) for row in answer.collect()) == expected
