"""The plan "partitioned", on the driver: the distributed AHS model in place of broadcasting.

Index: subscriptions go to the partitions of their anchors' cells. Match: an event goes to the
partitions that it touches, and the whole predicate is evaluated there. A pair that several
partitions find is emitted by the one in charge of the first cell common to both, so that nothing
is lost or doubled. Subscriptions without an anchor are residual: an event visits them once, in its
home partition.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from contrada.arrays import Box
from contrada.matching.grid import LONGITUDE_LATITUDE
from contrada.matching.lookup import LookupTable, loads, make_lookup_table, weigh
from contrada.matching.universe import SIDE_MIN
from contrada.spark.chosen_sets import SetPartitions
from contrada.spark.event_samples import EventSample
from contrada.spark.joined_parts import PART, as_row
from contrada.spark.partition_tasks import (
    FAR,
    AssignTask,
    CellCountTask,
    EventCountTask,
    SegmentTask,
)
from contrada.spark.staging import StagedPart, StagedSet
from contrada.spark.subscription_tasks import Subscribed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PARTITION_LEVEL = 10  # of the cells by which the universe is divided
_ROW = "partition int, place string, subscriptions binary"


@dataclass(frozen=True, slots=True)
class Partitions(SetPartitions):
    """Subscriptions in their partitions, the load of each, and in how many one lies on average."""

    loads: NDArray[np.float64]
    replication: float


def partition(
    spark: "SparkSession",
    subscribed: Subscribed,
    sample: EventSample | None,
    count: int,
) -> Partitions:
    """Divide the universe by where subscriptions lie and a sample falls, and stage the segments."""
    table, weights = divide(spark, subscribed, sample, count)
    parts = _parts(spark, subscribed.staged)
    rows = parts.mapInArrow(
        AssignTask(subscribed.staged.uri, table, subscribed.staged.evaluator), _ROW
    )
    residual_number = table.partition_count
    writing = SegmentTask(subscribed.staged.uri)
    written = (
        rows.repartitionById(table.partition_count + 1, "partition")
        .mapInArrow(writing, f"partition int, {PART}")
        .collect()
    )
    staged = {
        row["partition"]: StagedSet(
            subscribed.staged.uri,
            (StagedPart(row["digest"], row["count"], row["size_bytes"], row["gone"]),),
            subscribed.staged.evaluator,
        )
        for row in written
    }
    held = sum(staged_set.count for staged_set in staged.values())
    return Partitions(
        table,
        tuple(staged.get(number) for number in range(table.partition_count)),
        staged.get(residual_number),
        weights,
        held / max(1, subscribed.staged.count),
    )


def divide(
    spark: "SparkSession",
    subscribed: Subscribed,
    sample: EventSample | None,
    count: int,
) -> tuple[LookupTable, NDArray[np.float64]]:
    """Make the table; return it with the weight of each of its partitions."""
    evaluator = subscribed.staged.evaluator
    own = evaluator.grid
    universe = choose_universe(subscribed.bounds) if own is None else own.universe
    level = (
        PARTITION_LEVEL if evaluator.grid is None else min(PARTITION_LEVEL, evaluator.grid.level)
    )
    counting = CellCountTask(subscribed.staged.uri, level, universe, evaluator)
    cells = _histogram(_parts(spark, subscribed.staged).mapInArrow(counting, "code long, n long"))
    fallen = {}
    if sample is not None and sample.columns.names:
        falling = EventCountTask(level, universe, sample.columns, subscribed.anchored)
        fallen = _histogram(sample.frame.mapInArrow(falling, "code long, n long"))
    weights = weigh(level, cells, fallen)
    table = make_lookup_table(universe, weights, count)
    refined = table if evaluator.grid is None else table.refined(evaluator.grid.level)
    return refined, loads(table, weights)


def choose_universe(bounds: Box | None) -> Box:
    """Take the bounds of all anchors, as far as numbers can be reckoned with; any box for none."""
    west, south, east, north = bounds or LONGITUDE_LATITUDE
    (west, east), (south, north) = _choose_sides(west, east), _choose_sides(south, north)
    return west, south, east, north


def _choose_sides(low: float, high: float) -> tuple[float, float]:
    low, high = max(low, -FAR), min(high, FAR)
    low, high = min(low, FAR), max(high, -FAR)
    if high - low >= SIDE_MIN:
        return low, high
    margin = max(1.0, abs(low) * 2.0**-20)  # all on one line: anything around it will do
    return low - margin, high + margin


def _histogram(counted: "DataFrame") -> dict[int, int]:
    from pyspark.sql import functions

    summed = counted.groupBy("code").agg(functions.sum("n").alias("n")).toArrow()
    return dict(zip(summed["code"].to_pylist(), summed["n"].to_pylist(), strict=True))


def _parts(spark: "SparkSession", staged: StagedSet) -> "DataFrame":
    return parts_frame(spark, staged.parts)


def parts_frame(spark: "SparkSession", parts: Sequence[StagedPart]) -> "DataFrame":
    """Return parts as rows, one for each task."""
    rows = [as_row(part) for part in parts]
    return spark.createDataFrame(rows, PART).repartition(max(1, len(rows)))
