"""`evaluator="area"` in the plan "partitioned": the AHS paper's four stages as two tasks.

Each partition indexes the anchors of its subscriptions and matches its events' cells with them
(`AreaVisit`): what leaves it are partial matrices. They are brought together by event, and summed
and decided there (`DetermineTask`), once all of a task have come. Subscriptions without such an
anchor are residual: their answers are whole from the start, and travel with the partial ones.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from contrada.arrays import Integers, Positions
from contrada.matcher.match_run import MatchedBatch
from contrada.matching.ahs.shares import NUMBERS, AreaShare, PartialMatrices, add_up, decide
from contrada.matching.receiving import ReceivedEvents
from contrada.spark.answering import ROWS_MAX, AnswerNames, AnswerShape
from contrada.spark.open_sets import derive, estimate_bytes, open_rows
from contrada.spark.routing import TURN, draw_lots
from contrada.spark.staging import StagedSet
from contrada.spark.task_errors import noting_errors
from contrada.spark.visiting import MatchedSet, PartitionTask, Visit

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_MATRIX = "__matrix"  # of a partial answer; null in whole ones
_KEY = "__subscription"  # of a partial answer, in place of `subscription`, where counts are wanted
_PLACES_MAX = 2**16  # of filters in a subscription


@dataclass(frozen=True, slots=True)
class AreaTask:
    """The function for `mapInArrow` that matches the cells of a partition."""

    within: PartitionTask

    @noting_errors
    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield partial answers, and whole ones."""
        for answer in self.within(batches):
            yield answer if _MATRIX in answer.schema.names else self._as_whole(answer)

    def _as_whole(self, answer: pa.RecordBatch) -> pa.RecordBatch:
        if self.within.shape.wants_counts:
            kind = self.within.shape.id_type
            answer = answer.append_column(_KEY, pa.nulls(answer.num_rows, kind))
        return answer.append_column(_MATRIX, pa.nulls(answer.num_rows, pa.list_(pa.int64())))


class AreaVisit(Visit):
    """One batch of events in its partition, whose cells are matched."""

    def match_segment(
        self, batch: pa.RecordBatch, events: ReceivedEvents, staged: StagedSet
    ) -> tuple[list[MatchedSet], Iterator[pa.RecordBatch]]:
        """Find nothing whole; return the partial matrices of prefixes that this partition has."""
        lots = draw_lots(events.ids)

        def is_mine(rows: Positions, prefixes: Integers) -> NDArray[np.bool_]:
            return np.asarray(self.router.partition(prefixes, lots[rows]) == self.partition)

        good = events.good_rows()
        found = self._share(staged).match(events.batch, good, is_mine)
        names = self.task.shape.name(open_rows(staged), self.chosen.version)
        return [], self._write_partly(batch, events, found, names)

    def _write_partly(
        self,
        batch: pa.RecordBatch,
        events: ReceivedEvents,
        found: PartialMatrices,
        names: AnswerNames,
    ) -> Iterator[pa.RecordBatch]:
        shape, first = self.task.shape, 0
        matched = MatchedBatch(events, found.rows, found.positions)
        answers = shape.answer(batch, matched, names)
        if shape.wants_counts:
            answers = _name_only(batch, matched, names, shape)
        for answer in answers:
            last = first + answer.num_rows
            flat = pa.array(found.numbers[first:last].ravel())
            offsets = pa.array(np.arange(answer.num_rows + 1, dtype=np.int32) * NUMBERS)
            yield answer.append_column(_MATRIX, pa.ListArray.from_arrays(offsets, flat))
            first = last

    def _share(self, staged: StagedSet) -> AreaShare:
        """Index a segment."""
        table = self.chosen.placed.table

        def make() -> AreaShare:
            ordered = sorted(open_rows(staged), key=lambda subscription: subscription.id)
            return AreaShare(ordered, table, self.partition)

        def count_bytes(_: AreaShare) -> int:
            return estimate_bytes(open_rows(staged).living())

        return derive(staged, (table.key, self.partition), make, count_bytes)


def _name_only(
    batch: pa.RecordBatch, matched: MatchedBatch, names: AnswerNames, shape: AnswerShape
) -> Iterator[pa.RecordBatch]:
    """Yield rows that name an event and a subscription, and count nothing."""
    for piece in shape.pieces(batch, matched):
        ids = names.ids.take(pa.array(matched.ranks[piece]))
        yield shape.blank(batch, matched, matched.rows[piece]).append_column(_KEY, ids)


def partial_schema(schema: "StructType", shape: AnswerShape) -> "StructType":
    """Describe to Spark what `AreaTask` yields: an answer, and what makes it partial."""
    from pyspark.sql import types

    key = types.LongType() if shape.has_whole_ids else types.StringType()
    fields = [types.StructField(_KEY, key)] if shape.wants_counts else []
    matrix = types.StructField(_MATRIX, types.ArrayType(types.LongType()))
    return types.StructType([*schema.fields, *fields, matrix])


@dataclass(frozen=True, slots=True)
class DetermineTask:
    """The function for `mapInArrow` that sums partial matrices and decides.

    All partial answers of an event come to one task. `columns` are those of the answer.
    """

    columns: tuple[str, ...]
    wants_counts: bool

    @noting_errors
    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Pass whole answers on, and then yield those that the sums decide."""
        partial: list[pa.RecordBatch] = []
        for batch in batches:
            is_partial = batch.column(_MATRIX).is_valid()
            yield batch.filter(pc.invert(is_partial)).select(list(self.columns))
            partial.append(batch.filter(is_partial))
        if partial:
            yield from self._determine(pa.Table.from_batches(partial).combine_chunks())

    def _determine(self, partial: pa.Table) -> Iterator[pa.RecordBatch]:
        numbers = partial[_MATRIX].combine_chunks().flatten().to_numpy().reshape(-1, NUMBERS)
        subscriptions = partial[_KEY if self.wants_counts else "subscription"].combine_chunks()
        _, turn = np.unique(partial[TURN].to_numpy(), return_inverse=True)
        codes = subscriptions.dictionary_encode()
        pair = turn * max(1, len(codes.dictionary)) + codes.indices.to_numpy()
        firsts, sums = add_up(pair * _PLACES_MAX + numbers[:, 0], numbers)
        held = firsts[decide(sums)]
        _, once = np.unique(pair[held], return_index=True)  # several filters may hold
        found = partial.take(pa.array(held[once]))
        if self.wants_counts:
            _, first, n = np.unique(turn[held[once]], return_index=True, return_counts=True)
            found = found.take(pa.array(first))
            found = found.set_column(found.schema.get_field_index("n"), "n", pa.array(n))
        yield from found.select(list(self.columns)).to_batches(ROWS_MAX)
