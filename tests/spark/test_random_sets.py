"""Random predicates over random events: both plans of Spark give what the library gives.

The predicates and tables are those of `fuzz`. A call of Spark is slow, so one call has thousands of
pairs; `FUZZ_SEED` replays a seed.
"""

from __future__ import annotations

import json
from random import Random
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
import shapely

import contrada
import contrada.spark
from fuzz import events, runs
from fuzz.comparing import as_filter, match_table
from fuzz.predicates import Maker

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:constraints read"),  # of columns that a table may lack
    pytest.mark.filterwarnings("ignore:.*which is never true"),  # of other types
]

SUBSCRIPTIONS = 120
EVENTS = 60
SPARK_TYPES = {
    pa.uint64(): pa.decimal128(20, 0),
    pa.large_string(): pa.string(),
    pa.dictionary(pa.int8(), pa.string()): pa.string(),
}
PLANS = ("broadcast", "partitioned")


def as_spark_takes_it(table: pa.Table) -> pa.Table:
    """The table in types that Spark has: it knows no unsigned integers and no dictionaries."""
    kinds = [(field.name, SPARK_TYPES.get(field.type, field.type)) for field in table.schema]
    return table.cast(pa.schema(kinds))


def scattered(random: Random, count: int) -> list[bytes]:
    """Points and boxes all over the globe, so that events go to several partitions."""
    shapes = []
    for _ in range(count):
        x, y = random.randint(-170, 160), random.randint(-80, 70)
        width = random.choice((0, 1, 5, 10))
        shapes.append(shapely.box(x, y, x + width, y + width) if width else shapely.Point(x, y))
    return [shapely.to_wkb(shape) for shape in shapes]


def run(spark: SparkSession, seeds: Iterable[int], request: pytest.FixtureRequest) -> None:
    """Compare seed by seed."""
    for seed in seeds:
        random = Random(seed)
        maker = Maker(random)
        table = as_spark_takes_it(events.table(random, maker.shapes, EVENTS))
        if seed % 2:
            here = table.schema.get_field_index("geometry")
            shapes = pa.array(scattered(random, EVENTS), pa.binary())
            table = table.set_column(here, "geometry", shapes) if here >= 0 else table
        filters = [filter_of(maker, random) for _ in range(SUBSCRIPTIONS)]
        rows = {"id": [f"s{number}" for number in range(SUBSCRIPTIONS)], "filter": filters}
        subscriptions = pa.table(rows)
        wanted = answer_of_library(table, subscriptions)
        for plan in PLANS:
            frames = spark.createDataFrame(table), spark.createDataFrame(subscriptions)
            found = contrada.spark.match(*frames, plan=plan, quarantine=True)
            answer = [(row["event"], row["subscription"]) for row in found.collect()]
            assert len(set(answer)) == len(answer), runs.command(seed, request)
            wrong = sorted(set(answer) ^ wanted, key=str)[:3]
            shown = [
                (name and filters[int(name[1:])], table.to_pylist()[event]) for event, name in wrong
            ]
            assert not wrong, f"{plan}: {shown}\nReplay it: {runs.command(seed, request)}"


def filter_of(maker: Maker, random: Random) -> str:
    """A predicate of any kind, or an area somewhere on the globe."""
    if random.random() < 0.7:
        return json.dumps(as_filter(maker.predicate()))
    x, y = random.randint(-170, 160), random.randint(-80, 70)
    area = {"bbox": [x, y, x + random.randint(1, 20), y + random.randint(1, 10)]}
    operator = random.choice(("s_intersects", "s_within", "s_contains", "s_touches", "s_disjoint"))
    relation = {"op": operator, "args": [{"property": "geometry"}, area]}
    return json.dumps({"op": random.choice(("and", "or")), "args": [relation, maker.test()]})


def answer_of_library(table: pa.Table, subscriptions: pa.Table) -> set[tuple[int, str | None]]:
    """The pairs, and each bad event with None, as Spark gives it back."""
    matcher = contrada.Matcher()
    matcher.add_many(subscriptions)
    bad: list[int] = []
    answer = match_table(matcher, table, bad).to_pylist()
    return {*((row["event"], row["subscription"]) for row in answer), *((row, None) for row in bad)}


def test_random_sets_get_the_same_answers_on_spark(
    spark: SparkSession, request: pytest.FixtureRequest
) -> None:
    run(spark, runs.few(1), request)


@pytest.mark.soak
def test_many_random_sets_get_the_same_answers_on_spark(
    spark: SparkSession, request: pytest.FixtureRequest
) -> None:
    run(spark, runs.many(request), request)
