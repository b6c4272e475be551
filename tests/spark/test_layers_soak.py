"""Real layers on Spark: both plans give the matcher's rows, on every pair that their README lists.

Nothing is sampled: all events of a layer, all subscriptions of the other, compared pair by pair.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import contrada.spark
from contrada import Matcher
from real_layers import LayerPair, listed_pairs, needs_layers, path_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [
    needs_layers,
    pytest.mark.soak,
    pytest.mark.spark,
]

PAIRS = pa.schema([("event", pa.int64()), ("subscription", pa.int64())])


def frame_of(spark: SparkSession, layer: str) -> DataFrame:
    """The geometries of a layer; an id is the number of the row, as the matcher has it."""
    from pyspark.sql import functions

    row = functions.col("_metadata.row_index").alias("id")
    return spark.read.parquet(str(path_of(layer))).select(row, "geometry")


def find_with_matcher(pair: LayerPair) -> pa.Table:
    matcher = Matcher()
    matcher.add_many(path_of(pair.subscriptions), repair=True)
    return matcher.match_many(path_of(pair.events), repair=True, threads=1)


def as_sorted(pairs: pa.Table) -> pa.Table:
    plain = pairs.select(PAIRS.names).cast(PAIRS)
    return plain.sort_by([(name, "ascending") for name in PAIRS.names])


@pytest.mark.parametrize("pair", listed_pairs(), ids=str)
def test_both_plans_give_the_rows_of_the_matcher(spark: SparkSession, pair: LayerPair) -> None:
    expected = as_sorted(find_with_matcher(pair))
    assert expected.num_rows == pair.matches
    events, subscriptions = frame_of(spark, pair.events), frame_of(spark, pair.subscriptions)
    count = events.count()
    for plan in ("broadcast", "partitioned"):
        answer = contrada.spark.match(events, subscriptions, plan=plan, repair=True)
        assert as_sorted(answer.toArrow()).equals(expected), plan
        counts = contrada.spark.counts(answer)
        assert (counts.events, counts.evaluated, counts.set_aside) == (count, count, 0), plan
