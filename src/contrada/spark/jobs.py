"""The two plans as Spark jobs over events: `broadcast` and `partitioned`."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from contrada.spark.answering import AnswerShape
from contrada.spark.area_tasks import AreaTask, AreaVisit, DetermineTask, partial_schema
from contrada.spark.event_samples import EventSample, take_sample
from contrada.spark.joined_parts import join_parts
from contrada.spark.match_counts import observed
from contrada.spark.partitioned import Partitions, partition
from contrada.spark.routing import ROUTE, TURN, RouteTask
from contrada.spark.subscription_tasks import Subscribed
from contrada.spark.versions import Versions
from contrada.spark.visiting import PartitionTask, Visit
from contrada.spark.worker import EventColumns, MatchTask

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType, StructField, StructType

BROADCAST_BYTES_MAX = 512 * 2**20  # of staged subscriptions


@dataclass(frozen=True, slots=True)
class ChosenPlan:
    """Which plan to take, and why."""

    name: str
    reason: str


def choose_plan(wanted: str, subscribed: Subscribed) -> ChosenPlan:
    """Choose a plan: the one asked for, else by the size of the set, which every worker holds."""
    if wanted != "auto":
        return ChosenPlan(wanted, "requested")
    size, limit = subscribed.staged.size_bytes, BROADCAST_BYTES_MAX
    is_small = size <= limit
    reason = (
        f"the subscriptions are {size:,} bytes, {'at most' if is_small else 'more than'} {limit:,}"
    )
    return ChosenPlan("broadcast" if is_small else "partitioned", reason)


@dataclass(frozen=True, slots=True)
class Job:
    """Events with numbered columns, and staged subscriptions.

    `event_type` is that of the answer's column `event`; `kept` are the columns that it keeps.
    Without a `sample` one is taken of the events, where the plan needs it.
    """

    events: "DataFrame"
    subscribed: Subscribed
    columns: EventColumns
    shape: AnswerShape
    event_type: "DataType"
    kept: "Sequence[StructField]"
    plan: ChosenPlan
    sample: EventSample | None = None

    def run(self) -> "DataFrame":
        """Match the events, when something is asked of the answer."""
        if self.plan.name == "partitioned":
            return self.run_partitioned(self.partition())
        return self.run_broadcast()

    def partition(self) -> Partitions:
        """Put the subscriptions into as many partitions as a shuffle has."""
        spark = self.events.sparkSession
        count = int(str(spark.conf.get("spark.sql.shuffle.partitions")))
        sample = self.sample or take_sample(self.events, self.columns, self.subscribed.anchored)
        return partition(spark, self.subscribed, sample, count)

    def run_broadcast(self) -> "DataFrame":
        """Match every event against all subscriptions, wherever it is read."""
        staged = join_parts(self.events.sparkSession, self.subscribed.staged)
        task = MatchTask(Versions.here(), staged, self.columns, self.shape)
        schema = self.shape.schema(self.event_type, self.kept)
        return observed(self.events, lambda events: events.mapInArrow(task, schema))

    def run_partitioned(self, found: Partitions) -> "DataFrame":
        """Bring events to the subscriptions in their part of the universe."""
        from pyspark.sql import types

        is_area = self.columns.evaluator.grid is not None
        shape, kept = self.shape, list(self.kept)
        if shape.wants_counts or is_area:
            shape = replace(shape, keep=(*shape.keep, TURN))
            kept.append(types.StructField(TURN, types.LongType()))
        routing = RouteTask(Versions.here(), found.table, self.columns, self.subscribed.anchored)
        matching = PartitionTask(
            Versions.here(),
            found.table,
            found.segments,
            found.residual,
            self.columns,
            shape,
            AreaVisit if is_area else Visit,
        )
        route = [
            types.StructField(name, kind) for name, kind in zip(ROUTE, _route_types(), strict=True)
        ]
        routed = types.StructType([*route, *self.events.schema.fields])
        schema = shape.schema(self.event_type, kept)

        def run(events: "DataFrame") -> "DataFrame":
            copies = events.mapInArrow(routing, routed)
            dealt = copies.repartitionById(found.table.partition_count, ROUTE[0])
            if is_area:
                return self._determine(dealt, AreaTask(matching), schema)
            return dealt.mapInArrow(matching, schema)

        return observed(self.events, run, self._sum_up if shape.wants_counts else lambda a: a)

    def _determine(
        self, dealt: "DataFrame", matching: AreaTask, schema: "StructType"
    ) -> "DataFrame":
        """Bring partial answers together by event, and decide over their sums."""
        from pyspark.sql import types

        wants_counts = self.shape.wants_counts
        partial = dealt.mapInArrow(matching, partial_schema(schema, self.shape))
        fields = [field for field in schema.fields if wants_counts or field.name != TURN]
        task = DetermineTask(tuple(field.name for field in fields), wants_counts)
        count = matching.within.table.partition_count
        return partial.repartition(count, TURN).mapInArrow(task, types.StructType(fields))

    def _sum_up(self, answer: "DataFrame") -> "DataFrame":
        """Add up the counts that partitions have of one event."""
        from pyspark.sql import functions

        names = [name for name in answer.columns if name not in ("n", TURN)]
        firsts = [
            functions.first(name, ignorenulls=True).alias(
                name, metadata=answer.schema[name].metadata
            )
            for name in names
        ]
        summed = answer.groupBy(TURN).agg(functions.sum("n").alias("n"), *firsts)
        return summed.select(*(name for name in answer.columns if name != TURN))


def _route_types() -> "list[DataType]":
    from pyspark.sql import types

    return [
        types.IntegerType(),
        types.BooleanType(),
        types.LongType(),
        types.ArrayType(types.LongType()),
    ]
