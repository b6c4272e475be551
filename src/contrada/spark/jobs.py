"""The two plans as Spark jobs over events: `broadcast` and `partitioned`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from contrada.spark.answering import TALLY, AnswerShape
from contrada.spark.area_tasks import AreaTask, AreaVisit, DetermineTask, partial_schema
from contrada.spark.chosen_sets import ChosenSet, FixedSet, SetChoice
from contrada.spark.count_tasks import SumTask
from contrada.spark.event_samples import EventSample, take_sample
from contrada.spark.handshake import Handshake
from contrada.spark.joined_parts import join_parts
from contrada.spark.match_counts import observed
from contrada.spark.meeting import ChosenPlan
from contrada.spark.partitioned import Partitions, partition
from contrada.spark.published_sets import PublishedChoice
from contrada.spark.routing import ROUTE, TURN, RouteTask
from contrada.spark.staging import StagedSet
from contrada.spark.subscription_tasks import Subscribed
from contrada.spark.task_chains import (
    AnswerOrigin,
    ArrowTask,
    EventOrigin,
    TaskChain,
    note_answer,
)
from contrada.spark.visiting import PartitionTask, Visit
from contrada.spark.worker import EventColumns, MatchTask

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType, StructField, StructType


@dataclass(frozen=True, slots=True)
class Job:
    """Events with numbered columns, and staged subscriptions.

    `event_type` is that of the answer's column `event`; `kept` are the columns that it keeps.
    Without a `sample` one is taken of the events, where the plan needs it. `published` chooses
    among the versions of a set that has been published, and is None where none has. `origin` says
    how events are made where the tasks that match them can do it.
    """

    events: "DataFrame"
    subscribed: Subscribed
    columns: EventColumns
    shape: AnswerShape
    event_type: "DataType"
    kept: "Sequence[StructField]"
    plan: ChosenPlan
    sample: EventSample | None = None
    published: PublishedChoice | None = None
    origin: EventOrigin | None = None

    def run(self) -> "DataFrame":
        """Match the events, when something is asked of the answer."""
        if self.plan.name == "partitioned":
            return self._run_partitioned()
        return self._run_broadcast()

    def partition(self) -> Partitions:
        """Put the subscriptions into as many partitions as a shuffle has."""
        spark = self.events.sparkSession
        count = int(str(spark.conf.get("spark.sql.shuffle.partitions")))
        sample = self.sample or take_sample(self.events, self.columns, self.subscribed.anchored)
        return partition(spark, self.subscribed, sample, count)

    def _choose(self, staged: StagedSet, partitions: Partitions | None = None) -> FixedSet:
        """Let all tasks meet the subscriptions that were staged."""
        known = self.subscribed
        return FixedSet(ChosenSet(staged, known.geometries, known.anchored, partitions=partitions))

    def _run_broadcast(self) -> "DataFrame":
        """Match every event against all subscriptions, wherever it is read."""
        sets: SetChoice | None = self.published
        if sets is None:
            sets = self._choose(join_parts(self.events.sparkSession, self.subscribed.staged))
        task = self._beginning(MatchTask(Handshake.here(), sets, self.columns, self.shape))
        schema = self.shape.schema(self.event_type, self.kept)
        return self._observe(lambda events: events, task, schema)

    @property
    def _rows(self) -> "DataFrame":
        """What the first task takes: events, or what they are made of."""
        return self.events if self.origin is None else self.origin.rows

    def _beginning(self, task: ArrowTask) -> ArrowTask:
        """Let a task begin with what makes the events."""
        if self.origin is None:
            return task
        return TaskChain(self.origin.choose(self.columns.names), task)

    def _observe(
        self, bring: "Callable[[DataFrame], DataFrame]", task: ArrowTask, schema: "StructType"
    ) -> "DataFrame":
        """Run the last task of a job on events that are brought to it, all counted."""
        rows = self._rows
        answer = observed(rows, lambda events: bring(events).mapInArrow(task, schema))
        if rows.isStreaming:
            note_answer(answer, AnswerOrigin(rows, bring, task, schema[TALLY].dataType))
        return answer

    def _run_partitioned(self) -> "DataFrame":
        if self.published is not None:
            return self._bring(self.published, self.published.partition_count)
        found = self.partition()
        sets = self._choose(self.subscribed.staged, found)
        return self._bring(sets, found.table.partition_count)

    def _bring(self, sets: SetChoice, count: int) -> "DataFrame":
        """Bring events to the subscriptions in their part of the universe."""
        from pyspark.sql import types

        is_area = self.columns.evaluator.grid is not None
        shape, kept = self.shape, list(self.kept)
        if shape.wants_counts or is_area:
            shape = replace(shape, keep=(*shape.keep, TURN))
            kept.append(types.StructField(TURN, types.LongType()))
        routing = self._beginning(RouteTask(Handshake.here(), sets, self.columns))
        visit = AreaVisit if is_area else Visit
        matching = PartitionTask(Handshake.here(), sets, self.columns, shape, visit)
        route = [
            types.StructField(name, kind) for name, kind in zip(ROUTE, _route_types(), strict=True)
        ]
        routed = types.StructType([*route, *self.events.schema.fields])
        schema = shape.schema(self.event_type, kept)

        def deal(events: "DataFrame") -> "DataFrame":
            return events.mapInArrow(routing, routed).repartitionById(count, ROUTE[0])

        def run(events: "DataFrame") -> "DataFrame":
            if is_area:
                return self._determine(deal(events), AreaTask(matching), schema, count)
            return deal(events).mapInArrow(matching, schema)

        if not shape.wants_counts:
            return observed(self._rows, run) if is_area else self._observe(deal, matching, schema)
        if not self.events.isStreaming:
            return observed(self._rows, run, self._sum_up)
        return observed(self._rows, run, lambda answer: _sum_in_batch(answer, count))

    def _determine(
        self, dealt: "DataFrame", matching: AreaTask, schema: "StructType", count: int
    ) -> "DataFrame":
        """Bring partial answers together by event, and decide over their sums."""
        from pyspark.sql import types

        wants_counts = self.shape.wants_counts
        partial = dealt.mapInArrow(matching, partial_schema(schema, self.shape))
        fields = [field for field in schema.fields if wants_counts or field.name != TURN]
        task = DetermineTask(tuple(field.name for field in fields), wants_counts)
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


def _sum_in_batch(answer: "DataFrame", count: int) -> "DataFrame":
    """Add up the counts that partitions have of one event of a stream, within its batch."""
    from pyspark.sql import types

    fields = [field for field in answer.schema.fields if field.name != TURN]
    return answer.repartition(count, TURN).mapInArrow(SumTask(TURN), types.StructType(fields))


def _route_types() -> "list[DataType]":
    from pyspark.sql import types

    return [
        types.IntegerType(),
        types.BooleanType(),
        types.LongType(),
        types.ArrayType(types.LongType()),
        types.IntegerType(),
    ]
