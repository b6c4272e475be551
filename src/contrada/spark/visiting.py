"""The task that matches the events of a partition with its subscriptions."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from contrada.kernels.owners import first_common
from contrada.matcher.match_run import MatchedBatch, count_rows_at_once, match_received
from contrada.matching.lookup import PrefixLists, join_prefix_lists
from contrada.matching.receiving import ReceivedEvents
from contrada.matching.segments import SubscriptionSet
from contrada.matching.writing import with_mended
from contrada.spark.answering import ROWS_MAX, AnswerShape, TaskTally
from contrada.spark.chosen_sets import ChosenSet, SetChoice, refuse_two_versions
from contrada.spark.handshake import Handshake
from contrada.spark.joined_parts import read_prefixes
from contrada.spark.null_lists import restore_lists
from contrada.spark.open_sets import derive, open_set
from contrada.spark.routing import ROUTE, Router, draw_lots
from contrada.spark.staging import StagedSet, fetch
from contrada.spark.task_errors import noting_errors
from contrada.spark.worker import EventColumns, begin, name_once

MatchedSet = tuple[MatchedBatch, StagedSet, SubscriptionSet]


@dataclass(frozen=True, slots=True)
class PartitionTask:
    """The function for `mapInArrow` of the plan "partitioned": some subscriptions, their events."""

    handshake: Handshake
    sets: SetChoice
    events: EventColumns
    shape: AnswerShape
    visit: "type[Visit]"

    @noting_errors
    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Match the events of one partition; the answers are of bounded size."""
        self.handshake.check()
        begun = begin(batches, [*ROUTE, *self.events.names])
        if begun is None:
            return
        first_batch, named = begun
        chosen = self.sets.choose(first_batch)
        router = Router(chosen.placed.table, self.events.evaluator.grid is not None)
        residual, rows_max = chosen.placed.residual, ROWS_MAX
        if residual is not None:
            rows_max = min(rows_max, count_rows_at_once(open_set(residual)))
        done = TaskTally.begin(chosen.version)
        schema: pa.Schema | None = None
        for large in named:
            refuse_two_versions(large, chosen)
            for first in range(0, large.num_rows, rows_max):
                batch = restore_lists(large.slice(first, rows_max))
                visit = self.visit(self, chosen, router, batch, done)
                yield from visit.answers()
                schema = visit.kept_schema
        if schema is not None:
            kept = [schema.field(name).type for name in self.shape.keep]
            yield self.shape.tally(schema.field("event").type, kept, done)


class Visit:
    """One batch of events in its partition; `done` counts those that are at home here."""

    def __init__(
        self,
        task: PartitionTask,
        chosen: ChosenSet,
        router: Router,
        batch: pa.RecordBatch,
        done: TaskTally,
    ) -> None:
        self.task, self.chosen, self.router, self._done = task, chosen, router, done
        self._batch = batch
        self.partition = int(batch.column(0)[0].as_py())
        self.kept_schema: pa.Schema | None = None

    def answers(self) -> Iterator[pa.RecordBatch]:
        """Answer for the events that are at home here, then for the others."""
        is_home = self._batch.column("__is_home").to_numpy(zero_copy_only=False)
        for at_home in (True, False):
            rows = np.flatnonzero(is_home == at_home)
            if len(rows):
                yield from self._answer(self._batch.take(pa.array(rows)), at_home)

    def _answer(self, batch: pa.RecordBatch, at_home: bool) -> Iterator[pa.RecordBatch]:
        task, placed = self.task, self.chosen.placed
        reading = task.events.reading(self.chosen)
        events = reading.receive(batch.select(list(reading.names)))
        if not task.shape.quarantine:
            reading.refuse_bad(batch, events)
        batch = with_mended(batch, events.batch, task.shape.keep)
        kinds = [pa.field("event", events.ids.type), *batch.schema]
        self.kept_schema = pa.schema({field.name: field for field in kinds}.values())
        staged = placed.segments[self.partition]
        matched: list[MatchedSet] = []
        if staged is not None:
            matched, partial = self.match_segment(batch, events, staged)
            yield from partial
        if at_home and placed.residual is not None:
            residual = open_set(placed.residual)
            found = match_received(events, residual)
            matched.append((found, placed.residual, residual))
        yield from self._write(batch, events, matched)
        if at_home:
            bad = np.array(sorted(events.bad), np.int64)
            yield from task.shape.bad(batch, MatchedBatch(events, bad[:0], bad[:0]), bad)
            self._done.add(events)

    def match_segment(
        self, batch: pa.RecordBatch, events: ReceivedEvents, staged: StagedSet
    ) -> tuple[list[MatchedSet], Iterator[pa.RecordBatch]]:
        """Match a segment; keep the pairs that this partition owns.

        Answers may also be partial; these are all whole.
        """
        subscriptions = open_set(staged)
        found = match_received(events, subscriptions)
        lists = _prefixes_by_rank(staged, subscriptions)
        column = batch.column("__prefixes")
        common = first_common(
            found.rows,
            found.ranks,
            column.offsets.to_numpy().astype(np.int64),
            column.values.to_numpy(),
            lists.list_starts,
            lists.prefixes,
        )
        assert (common >= 0).all()  # what matches has a point in common with an anchor
        lots = draw_lots(events.ids)[found.rows]
        is_mine = self.router.partition(common, lots) == self.partition
        mine = MatchedBatch(events, found.rows[is_mine], found.ranks[is_mine])
        return [(mine, staged, subscriptions)], iter(())

    def _write(
        self,
        batch: pa.RecordBatch,
        events: ReceivedEvents,
        matched: list[MatchedSet],
    ) -> Iterator[pa.RecordBatch]:
        shape = self.task.shape
        if not shape.wants_counts:
            for found, staged, subscriptions in matched:
                names = name_once(shape, staged, subscriptions)
                yield from shape.answer(batch, found, names)
            return
        none = np.zeros(0, np.int64)
        rows = np.concatenate([none, *(found.rows for found, _, _ in matched)])
        yield from shape.answer(batch, MatchedBatch(events, rows, rows), None)


def _prefixes_by_rank(staged: StagedSet, subscriptions: SubscriptionSet) -> PrefixLists:
    """List the prefixes of a segment's subscriptions, as they were staged, by their ranks."""

    def make() -> PrefixLists:
        lists = [read_prefixes(fetch(staged.uri, part)) for part in staged.parts]
        return join_prefix_lists(lists).take(subscriptions.list_by_rank())

    return derive(staged, "prefixes", make, lambda lists: lists.nbytes)
