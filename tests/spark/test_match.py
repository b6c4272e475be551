"""`contrada.spark.match` gives the rows that the library gives, whatever the data look like."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

import contrada
import contrada.spark
from contrada.model.relation import RELATIONS

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.random import Generator
    from pyspark.sql import DataFrame, SparkSession
    from shapely.geometry.base import BaseGeometry

pytestmark = pytest.mark.spark

Pair = tuple[Any, Any, Any]

WKB_POINT = shapely.to_wkb(shapely.Point(1, 1))


def pairs_of(frame: DataFrame) -> list[Pair]:
    """Event, subscription and subscriber of every row, in an order of their own."""
    rows = frame.select("event", "subscription", "subscriber").collect()
    return sorted((tuple(row) for row in rows), key=repr)


def pairs_of_library(events: pa.Table, subscriptions: pa.Table) -> list[Pair]:
    matcher = contrada.Matcher()
    matcher.add_many(subscriptions)
    rows = matcher.match_many(events, threads=1).to_pylist()
    found = [(row["event"], row["subscription"]) for row in rows]
    return sorted(((e, s, matcher.get(s).subscriber) for e, s in found), key=repr)


def points(spark: SparkSession, *ids: object, kind: str = "long") -> DataFrame:
    """Events at (1, 1)."""
    rows = [(id_, bytearray(WKB_POINT)) for id_ in ids]
    return spark.createDataFrame(rows, f"id {kind}, geometry binary")


def filters(spark: SparkSession, *texts: str) -> DataFrame:
    return spark.createDataFrame(list(enumerate(texts)), "id long, filter string")


# Random data


def some_shape(rng: Generator) -> BaseGeometry | None:
    """A shape on a small lattice, so that borders are often shared; now and then none or empty."""
    x, y = rng.integers(0, 6, 2).tolist()
    w, h = rng.integers(1, 4, 2).tolist()
    box = shapely.box(x, y, x + w, y + h)
    kinds: list[BaseGeometry | None] = [
        None,
        shapely.from_wkt("POLYGON EMPTY"),
        shapely.Point(x, y),
        shapely.MultiPoint([(x, y), (x + w, y + h)]),
        shapely.LineString([(x, y), (x + w, y), (x + w, y + h)]),
        box,
        box,
        shapely.Polygon([(x, y), (x + w, y), (x, y + h)]),
        shapely.Polygon(
            [(x, y), (x + 4, y), (x + 4, y + 4), (x, y + 4)],
            [[(x + 1, y + 1), (x + 3, y + 1), (x + 3, y + 3), (x + 1, y + 3)]],
        ),
        shapely.MultiPolygon([box, shapely.box(x + 5, y, x + 6, y + 1)]),
        shapely.GeometryCollection([box, shapely.Point(x + 8, y)]),
    ]
    return kinds[rng.integers(len(kinds))]


def some_area(rng: Generator) -> BaseGeometry:
    while True:
        shape = some_shape(rng)
        if shape is not None and shape.geom_type in {"Polygon", "MultiPolygon"} and shape.area:
            return shape


def some_events(rng: Generator, count: int) -> pa.Table:
    def shapes() -> pa.Array:
        wkb = [None if s is None else shapely.to_wkb(s) for s in map(some_shape, [rng] * count)]
        return pa.array(wkb, pa.binary())

    def thinned(values: list[Any], kind: pa.DataType) -> pa.Array:
        return pa.array(values, kind, mask=rng.random(count) < 0.2)

    places = pa.StructArray.from_arrays(
        [shapes()], ["shape"], mask=pa.array(rng.random(count) < 0.2)
    )
    return pa.table(
        {
            "id": pa.array(range(100, 100 + count)),
            "geometry": shapes(),
            "area": shapes(),
            "place": places,
            "wind": thinned(rng.integers(0, 10, count).tolist(), pa.int32()),
            "kind": thinned(rng.choice(["storm", "flood", "fire"], count).tolist(), pa.string()),
        }
    )


def some_subscriptions(rng: Generator) -> pa.Table:
    """Each relation as a row with a geometry and as a filter, and predicates of all sorts."""
    columns: dict[str, list[Any]] = {
        name: [] for name in ("id", "filter", "geometry", "relation", "where", "attribute")
    }

    def add(**values: object) -> None:
        for name, column in columns.items():
            column.append(values.get(name))
        columns["id"][-1] = f"s{len(columns['id'])}"

    wheres = [None, "wind > 4", "kind IN ('storm', 'fire')", "NOT (wind < 5) OR kind IS NULL"]
    for relation in [*RELATIONS, "T*F**F***", "FF*FF****"]:
        add(
            geometry=shapely.to_wkb(some_area(rng)),
            relation=relation,
            where=wheres[rng.integers(4)],
            attribute=[None, "area", "place.shape"][rng.integers(3)],
        )
    for name in RELATIONS:
        function = name if name.startswith(("eh", "cover")) else f"S_{name}"
        test = f"{function}(area, {some_area(rng)})"
        other = f"S_INTERSECTS(geometry, {some_area(rng)})"
        joined = [f"NOT {test}", f"{test} OR ({other} AND wind > 3)", f"{other} AND NOT ({test})"]
        add(filter=joined[rng.integers(3)])
    add(filter="wind BETWEEN 2 AND 4 OR kind LIKE 'f%'")
    add(filter="NOT (kind = 'storm')")
    add(filter="area IS NULL")
    add(filter="S_TOUCHES(geometry, area)")
    add(filter="dwithin(geometry, POINT(3 3), 250000)")
    add(filter="NOT dwithin(area, POLYGON((0 0, 1 0, 1 1, 0 0)), 100000) AND wind >= 1")
    add(filter="TRUE")
    add(filter="wind > 99")
    kinds = {"geometry": pa.binary()}
    return pa.table({n: pa.array(v, kinds.get(n, pa.string())) for n, v in columns.items()})


@pytest.mark.parametrize(("seed", "partitions"), [(1, 1), (2, 3), (3, 8)])
def test_random_events_match_as_in_the_library(
    spark: SparkSession, seed: int, partitions: int
) -> None:
    rng = np.random.default_rng(seed)
    events, subscriptions = some_events(rng, 120), some_subscriptions(rng)
    expected = pairs_of_library(events, subscriptions)
    hit = {subscription for _, subscription, _ in expected}
    assert len(hit) > 30, "most subscriptions have a match"
    frame = spark.createDataFrame(events).repartition(partitions)
    answer = contrada.spark.match(frame, spark.createDataFrame(subscriptions))
    assert pairs_of(answer) == expected
    counts = contrada.spark.match(frame, spark.createDataFrame(subscriptions), output="counts")
    grouped = Counter(event for event, _, _ in expected)
    assert sorted(map(tuple, counts.collect())) == [
        (event, grouped[event]) for event in range(100, 220)
    ]


# Values of all types

MOMENTS = [dt.datetime(2026, 6, day, 12, tzinfo=dt.UTC) for day in range(1, 9)]
TYPED = pa.table(
    {
        "id": pa.array(range(8)),
        "geometry": pa.array([WKB_POINT] * 8, pa.binary()),
        "utc": pa.array(MOMENTS, pa.timestamp("us", "UTC")),
        "rome": pa.array(MOMENTS, pa.timestamp("us", "Europe/Rome")),
        "naive": pa.array([m.replace(tzinfo=None) for m in MOMENTS], pa.timestamp("us")),
        "day": pa.array([m.date() for m in MOMENTS], pa.date32()),
        "text": pa.array([m.isoformat() for m in MOMENTS]),
        "price": pa.array([Decimal(f"{n}.50") for n in range(8)], pa.decimal128(20, 2)),
        "tags": pa.array([["a"], ["a", "b"], [], None, ["b"], ["c"], ["b", "a"], [None]]),
        "levels": pa.array([[1, 2], [2], [], None, [3], [1], [2, 1], [1]], pa.list_(pa.int64())),
        "place": pa.array(
            [None, {}, *({"name": n, "inner": {"level": i}} for i, n in enumerate("abcdef"))],
            pa.struct(
                [
                    ("name", pa.string()),
                    ("inner", pa.struct([("level", pa.int16())])),
                ]
            ),
        ),
        "tiny": pa.array([-128, -1, 0, 1, 2, 3, 127, None], pa.int8()),
        "huge": pa.array([2**53 + n for n in range(7)] + [2**63 - 1], pa.int64()),
        "single": pa.array([0.1, 0.5, float("nan"), float("inf"), -0.0, 1, 2, None], pa.float32()),
        "yes": pa.array([True, False, None, True, False, None, True, False]),
        "dotted.name": pa.array(range(8)),
    }
)
TYPED_FILTERS = [
    "utc > TIMESTAMP('2026-06-03T12:00:00Z')",
    "rome > TIMESTAMP('2026-06-03T12:00:00Z')",
    "naive = TIMESTAMP('2026-06-03T12:00:00Z')",
    "T_AFTER(utc, TIMESTAMP('2026-06-05T11:59:59.999999Z'))",
    "T_DURING(naive, INTERVAL('2026-06-02T00:00:00Z', '2026-06-04T00:00:00Z'))",
    "day >= DATE('2026-06-06')",
    "text < TIMESTAMP('2026-06-03T12:00:00Z')",
    "utc = rome AND rome = naive AND tiny > 0",
    "price = 3.5",
    "price > 2.5 AND price <= 5.5",
    "A_CONTAINS(tags, ('a'))",
    "A_EQUALS(tags, ('b', 'a'))",
    "A_OVERLAPS(levels, (2, 3))",
    "place.name = 'c'",
    "place.name IS NULL",
    "place.inner.level >= 3",
    "place.name LIKE '%' AND tiny < 3",
    "tiny = -128 OR tiny = 127",
    "huge = 9007199254740993",
    "huge > 9007199254740996",
    "single >= 0.5",
    "NOT (single >= 0.5)",
    "single = 0",
    "yes = TRUE",
    "NOT yes",
    '"dotted.name" < 3',
    "price * 2 > huge - 9007199254740990",
]


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_values_of_every_type_mean_what_they_mean_in_the_library(
    spark: SparkSession, zone: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    spark.conf.set("spark.sql.session.timeZone", zone)
    request.addfinalizer(lambda: spark.conf.set("spark.sql.session.timeZone", "UTC"))
    subscriptions = pa.table({"id": range(len(TYPED_FILTERS)), "filter": TYPED_FILTERS})
    expected = pairs_of_library(TYPED, subscriptions)
    hits = Counter(subscription for _, subscription, _ in expected)
    assert all(0 < hits[n] < 8 for n in range(len(TYPED_FILTERS))), hits
    # From a file: `createDataFrame` takes a moment without a zone for one of the session's zone.
    pq.write_table(TYPED, tmp_path / "typed.parquet")
    events = spark.read.parquet(str(tmp_path / "typed.parquet")).repartition(3)
    assert events.schema["naive"].dataType.typeName() == "timestamp_ntz"
    assert pairs_of(contrada.spark.match(events, spark.createDataFrame(subscriptions))) == expected


def test_a_geometry_may_be_wkt(spark: SparkSession) -> None:
    events = spark.createDataFrame(
        [(1, "POINT(1 1)"), (2, "POINT(9 9)"), (3, ""), (4, None)],
        "id int, geometry string",
    )
    zones = spark.createDataFrame(
        [("a", "POLYGON((0 0,2 0,2 2,0 2,0 0))")], "id string, geometry string"
    )
    assert pairs_of(contrada.spark.match(events, zones)) == [(1, "a", None)]


def test_sparks_own_geometries_are_read_on_both_sides(spark: SparkSession) -> None:
    from pyspark.sql import functions

    points = [(n, bytearray(shapely.to_wkb(shapely.Point(n, n)))) for n in range(4)]
    zones = [("a", bytearray(shapely.to_wkb(shapely.box(0.5, 0.5, 2, 2)))), ("b", None)]
    try:
        events = spark.createDataFrame(points, "id int, geometry binary").withColumn(
            "geometry", functions.expr("st_geomfromwkb(geometry)")
        )
    except Exception as error:
        pytest.skip(f"this Spark has no geometries: {error}"[:100])
    subscriptions = (
        spark.createDataFrame(zones, "id string, geometry binary")
        .withColumn("geometry", functions.expr("st_geomfromwkb(geometry)"))
        .withColumn(
            "filter", functions.expr("if(id = 'b', 'S_EQUALS(geometry, POINT(3 3))', null)")
        )
    )
    answer = contrada.spark.match(events, subscriptions, keep=["geometry"])
    assert pairs_of(answer) == [(1, "a", None), (2, "a", None), (3, "b", None)]
    kept = {row.event: bytes(row.geometry) for row in answer.collect()}
    assert kept == {n: shapely.to_wkb(shapely.Point(n, n)) for n in (1, 2, 3)}


# Ids and columns


@pytest.mark.parametrize("kind", ["tinyint", "smallint", "int", "long", "string"])
def test_event_ids_are_strings_or_integers_of_any_size(spark: SparkSession, kind: str) -> None:
    ids: list[Any] = ["b", "a"] if kind == "string" else [100, -7]
    answer = contrada.spark.match(points(spark, *ids, kind=kind), filters(spark, "TRUE"))
    assert answer.schema["event"].dataType.simpleString() == (
        "string" if kind == "string" else "bigint"
    )
    assert pairs_of(answer) == sorted(((id_, 0, None) for id_ in ids), key=repr)


@pytest.mark.parametrize(
    ("kind", "ids", "written"),
    [
        ("string", ["x", "y"], "string"),
        ("long", [2**62 + 1, 3], "bigint"),
        ("int", [4, 3], "bigint"),
    ],
)
def test_subscription_ids_are_strings_or_integers(
    spark: SparkSession, kind: str, ids: list[Any], written: str
) -> None:
    rows = [(id_, "TRUE") for id_ in ids]
    answer = contrada.spark.match(
        points(spark, 1), spark.createDataFrame(rows, f"id {kind}, filter string")
    )
    assert answer.schema["subscription"].dataType.simpleString() == written
    assert pairs_of(answer) == sorted(((1, id_, None) for id_ in ids), key=repr)


@pytest.mark.parametrize(
    ("kind", "values", "written"),
    [
        ("string", ["ops", None], "string"),
        ("int", [7, None], "bigint"),
        ("long", [2**62 + 1, None], "bigint"),
        ("void", [None, None], "string"),
        (None, [None, None], "string"),
    ],
)
def test_the_subscriber_comes_along(
    spark: SparkSession, kind: str | None, values: list[Any], written: str
) -> None:
    rows = [(n, "TRUE", value)[: 2 if kind is None else 3] for n, value in enumerate(values)]
    schema = "id int, filter string" + (f", subscriber {kind}" if kind else "")
    answer = contrada.spark.match(points(spark, 1), spark.createDataFrame(rows, schema))
    assert answer.schema["subscriber"].dataType.simpleString() == written
    assert pairs_of(answer) == [(1, n, value) for n, value in enumerate(values)]


def test_ids_may_be_in_other_columns(spark: SparkSession) -> None:
    events = points(spark, 1, 2).withColumnRenamed("id", "key `of` it")
    zones = filters(spark, "TRUE").withColumnRenamed("id", "code")
    answer = contrada.spark.match(events, zones, event_id="key `of` it", subscription_id="code")
    assert pairs_of(answer) == [(1, 0, None), (2, 0, None)]


def test_the_answer_has_the_columns_that_are_promised(spark: SparkSession) -> None:
    answer = contrada.spark.match(points(spark, 1), filters(spark, "TRUE"))
    assert answer.columns == ["event", "subscription", "subscriber", "version"]
    assert [row.version for row in answer.collect()] == [None]
    counted = contrada.spark.match(points(spark, 1), filters(spark, "TRUE"), output="counts")
    assert counted.columns == ["event", "n"]


def test_kept_columns_keep_their_values_and_types(spark: SparkSession) -> None:
    events = spark.createDataFrame(TYPED)
    keep = [name for name in TYPED.column_names if name != "geometry"]
    answer = contrada.spark.match(
        events, filters(spark, "tiny >= 1", "huge > 0"), keep=[*keep, "tags"], quarantine=True
    )
    assert answer.columns == ["event", "subscription", "subscriber", "version", *keep, "error"]
    for name in keep:
        assert answer.schema[name].dataType == events.schema[name].dataType
    chosen = [f"`{name}`" for name in keep]
    whole = {repr(row) for row in events.select(chosen).collect()}
    found = answer.select(chosen).collect()
    assert len(found) == 4 + 8
    assert {repr(row) for row in found} == whole


def test_counts_may_keep_columns_too(spark: SparkSession) -> None:
    events = points(spark, 1, 2).selectExpr("*", "id * 10 AS subscription")
    answer = contrada.spark.match(
        events, filters(spark, "id = 2", "id > 0"), keep=["subscription"], output="counts"
    )
    assert sorted(map(tuple, answer.collect())) == [(1, 1, 10), (2, 2, 20)]


# Little or nothing


def test_no_events_no_subscriptions_and_partitions_without_rows_are_fine(
    spark: SparkSession,
) -> None:
    none, one = points(spark, kind="string"), points(spark, 1)
    no_zones = spark.createDataFrame([], "id string, filter string, subscriber string")
    assert contrada.spark.match(none, filters(spark, "TRUE")).collect() == []
    assert contrada.spark.match(none, filters(spark, "TRUE"), output="counts").collect() == []
    assert contrada.spark.match(one, no_zones).collect() == []
    assert contrada.spark.match(none, no_zones).collect() == []
    counts = contrada.spark.match(one, no_zones, output="counts").collect()
    assert list(map(tuple, counts)) == [(1, 0)]
    spread = points(spark, 1, 2).repartition(6)
    assert spread.rdd.getNumPartitions() == 6
    assert pairs_of(contrada.spark.match(spread, filters(spark, "TRUE"))) == [
        (1, 0, None),
        (2, 0, None),
    ]


def test_events_without_a_geometry_match_by_attributes(spark: SparkSession) -> None:
    events = spark.createDataFrame([(1, 5.0), (2, None), (3, 9.5)], "id int, wind double")
    answer = contrada.spark.match(events, filters(spark, "wind > 7", "NOT (wind > 7)"))
    assert pairs_of(answer) == [(1, 1, None), (3, 0, None)]


def test_the_answer_can_be_asked_for_twice_and_joined(spark: SparkSession) -> None:
    answer = contrada.spark.match(points(spark, 1, 2, 3), filters(spark, "id > 1", "id > 2"))
    assert answer.count() == answer.count() == 3
    both = answer.alias("a").join(answer.alias("b"), "event")
    assert both.count() == 1 + 4
