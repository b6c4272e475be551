"""The tasks that bring events to partitions, and match them there.

Routing gives each event to the partitions in charge of the cells that it touches. One of them is
its home, where bad events are reported and residual subscriptions are evaluated. Events that touch
no cell, bad ones among them, have their home outside.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from contrada.kernels.owners import first_common
from contrada.matcher.run import MatchedBatch, count_rows_at_once, match_received
from contrada.matching.columns import GeometryColumn
from contrada.matching.lookup import LookupTable, PrefixLists, make_prefix_lists
from contrada.matching.receiving import ReceivedEvents
from contrada.matching.segments import SubscriptionSet
from contrada.matching.table import Ids
from contrada.spark.answering import ROWS_MAX, AnswerShape
from contrada.spark.segments import boxes_of, meet, prefixes_of
from contrada.spark.staging import StagedSet
from contrada.spark.worker import EventColumns, Versions, open_set, refuse_bad

TURN = "__turn"  # numbers the events of a job, in no order
ROUTE = ("__partition", "__is_home", TURN, "__prefixes")
_TURN_BITS = 40  # of a number, for the events of one task


@dataclass(frozen=True)
class Router:
    """A lookup table by arrays: where the events of each prefix go."""

    table: LookupTable

    @cached_property
    def _replicas(self) -> tuple[Ids, Ids]:
        counts = [len(chosen) for chosen in self.table.replicas]
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        return starts, np.array([p for chosen in self.table.replicas for p in chosen], np.int64)

    def partition(self, prefixes: Ids, turns: Ids) -> Ids:
        """Choose among the replicas of prefixes: events take them in turns."""
        starts, replicas = self._replicas
        counts = starts[prefixes + 1] - starts[prefixes]
        return replicas[starts[prefixes] + turns % counts]

    def prefixes(self, column: GeometryColumn, rows: Ids) -> tuple[Ids, Ids]:
        """List the prefixes that the geometries of some rows touch, each with its row."""
        grid = self.table.grid()
        rows = rows[meet(boxes_of(column)[rows], self.table.universe)]
        points = rows[column.is_point[rows]]
        others = rows[~column.is_point[rows]]
        codes = grid.locate(column.x[points], column.y[points])
        of_points = np.searchsorted(self.table.starts, codes, side="right") - 1
        lists = self.table.select(grid.decompose(column.shapes[others]))
        owners = np.repeat(others, np.diff(lists.list_starts))
        return np.concatenate([points, owners]), np.concatenate([of_points, lists.prefixes])


@dataclass(frozen=True, slots=True)
class RouteTask:
    """The function for `mapInArrow` that gives each event to its partitions."""

    versions: Versions
    table: LookupTable
    events: EventColumns
    anchored: tuple[str, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Give each event once for every partition, with the prefixes that it touches."""
        from pyspark import TaskContext

        self.versions.check()
        context = TaskContext.get()
        first_turn = (0 if context is None else context.partitionId()) << _TURN_BITS
        router = Router(self.table)
        for large in batches:
            for first in range(0, large.num_rows, ROWS_MAX):
                batch = large.slice(first, ROWS_MAX)
                turns = first_turn + np.arange(batch.num_rows, dtype=np.int64)
                yield self._route(batch, turns, router)
                first_turn += batch.num_rows

    def _route(self, batch: pa.RecordBatch, turns: Ids, router: Router) -> pa.RecordBatch:
        events = self.events.receive(batch.rename_columns(list(self.events.names)))
        lists = self._select(events, router)
        copies = _deal(lists, turns, router)
        at = pa.array(copies.rows)
        offsets = pa.array(lists.list_starts.astype(np.int32))
        prefixes = pa.ListArray.from_arrays(offsets, pa.array(lists.prefixes))
        route = [
            pa.array(copies.partitions.astype(np.int32)),
            pa.array(copies.is_home),
            pa.array(turns[copies.rows]),
            prefixes.take(at),
        ]
        columns = [*route, *(column.take(at) for column in batch.columns)]
        return pa.RecordBatch.from_arrays(columns, names=[*ROUTE, *batch.schema.names])

    def _select(self, events: ReceivedEvents, router: Router) -> PrefixLists:
        """Select the prefixes of good events, by all attributes that anchors are found by."""
        good = np.setdiff1d(np.arange(events.batch.length), list(events.bad))
        found = [router.prefixes(events.batch.geometry(name), good) for name in self.anchored]
        none = np.zeros(0, np.int64)
        owners = np.concatenate([none, *(owners for owners, _ in found)])
        prefixes = np.concatenate([none, *(prefixes for _, prefixes in found)])
        return make_prefix_lists(owners, prefixes, events.batch.length)


@dataclass(frozen=True, slots=True)
class _Copies:
    """Rows as they are dealt out: one for each partition of an event."""

    rows: Ids
    partitions: Ids
    is_home: NDArray[np.bool_]


def _deal(lists: PrefixLists, turns: Ids, router: Router) -> _Copies:
    """Give each row to the partitions of its prefixes; the first of them is its home."""
    owners = np.repeat(np.arange(len(turns)), np.diff(lists.list_starts))
    partitions = router.partition(lists.prefixes, turns[owners])
    homeless = np.flatnonzero(np.diff(lists.list_starts) == 0)
    width = router.table.partition_count
    keys = np.concatenate([owners * width + partitions, homeless * width + router.table.outside])
    rows, chosen = np.divmod(np.unique(keys), width)
    return _Copies(rows, chosen, np.diff(rows, prepend=-1) != 0)


@dataclass(frozen=True, slots=True)
class PartitionTask:
    """The function for `mapInArrow` of the plan "partitioned": some subscriptions, their events."""

    versions: Versions
    table: LookupTable
    segments: tuple[StagedSet | None, ...]
    residual: StagedSet | None
    events: EventColumns
    shape: AnswerShape

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Match the events of one partition; the answers are of bounded size."""
        self.versions.check()
        router = Router(self.table)
        rows_max = ROWS_MAX
        if self.residual is not None:
            rows_max = min(rows_max, count_rows_at_once(open_set(self.residual)))
        evaluated = set_aside = 0
        schema: pa.Schema | None = None
        for large in batches:
            for first in range(0, large.num_rows, rows_max):
                batch = large.slice(first, rows_max)
                visit = _Visit(self, router, batch)
                yield from visit.answers()
                evaluated += visit.evaluated
                set_aside += visit.set_aside
                schema = visit.kept_schema
        if schema is not None:
            kept = [schema.field(name).type for name in self.shape.keep]
            yield self.shape.tally(schema.field("event").type, kept, evaluated, set_aside)


class _Visit:
    """One batch of events in its partition."""

    def __init__(self, task: PartitionTask, router: Router, batch: pa.RecordBatch) -> None:
        self._task, self._router = task, router
        names = [*ROUTE, *task.events.names]
        self._batch = batch.rename_columns(names)
        self._partition = int(batch.column(0)[0].as_py())
        self.evaluated = self.set_aside = 0
        self.kept_schema: pa.Schema | None = None

    def answers(self) -> Iterator[pa.RecordBatch]:
        is_home = self._batch.column("__is_home").to_numpy(zero_copy_only=False)
        for at_home in (True, False):
            rows = np.flatnonzero(is_home == at_home)
            if len(rows):
                yield from self._answer(self._batch.take(pa.array(rows)), at_home)

    def _answer(self, batch: pa.RecordBatch, at_home: bool) -> Iterator[pa.RecordBatch]:
        task = self._task
        events = task.events.receive(batch.select(list(task.events.names)))
        refuse_bad(events, task.shape.quarantine)
        kinds = [pa.field("event", events.ids.type), *batch.schema]
        self.kept_schema = pa.schema({field.name: field for field in kinds}.values())
        staged = task.segments[self._partition]
        matched = [] if staged is None else [self._match_segment(batch, events, staged)]
        if at_home and task.residual is not None:
            residual = open_set(task.residual)
            matched.append((match_received(events, residual), residual))
        yield from self._write(batch, events, matched)
        if at_home:
            bad = np.array(sorted(events.bad), np.int64)
            yield from task.shape.bad(batch, MatchedBatch(events, bad[:0], bad[:0]), bad)
            self.set_aside += len(bad)
            self.evaluated += batch.num_rows - len(bad)

    def _match_segment(
        self, batch: pa.RecordBatch, events: ReceivedEvents, staged: StagedSet
    ) -> tuple[MatchedBatch, SubscriptionSet]:
        """Match a segment; keep the pairs of which this partition is the owner."""
        subscriptions = open_set(staged)
        found = match_received(events, subscriptions)
        lists = _prefixes_by_rank(staged, subscriptions, self._task.table)
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
        turns = batch.column(TURN).to_numpy()[found.rows]
        is_mine = self._router.partition(common, turns) == self._partition
        return MatchedBatch(events, found.rows[is_mine], found.ranks[is_mine]), subscriptions

    def _write(
        self,
        batch: pa.RecordBatch,
        events: ReceivedEvents,
        matched: list[tuple[MatchedBatch, SubscriptionSet]],
    ) -> Iterator[pa.RecordBatch]:
        shape = self._task.shape
        if not shape.wants_counts:
            for found, subscriptions in matched:
                yield from shape.answer(batch, found, shape.name(subscriptions))
            return
        none = np.zeros(0, np.int64)
        rows = np.concatenate([none, *(found.rows for found, _ in matched)])
        yield from shape.answer(batch, MatchedBatch(events, rows, rows), None)


_prefixes: dict[str, PrefixLists] = {}


def _prefixes_by_rank(
    staged: StagedSet, subscriptions: SubscriptionSet, table: LookupTable
) -> PrefixLists:
    """List the prefixes of a segment's subscriptions in the order of ids; kept for the last one."""
    if staged.digest not in _prefixes:
        _prefixes.clear()
        ordered = sorted(subscriptions, key=lambda subscription: subscription.id)
        _prefixes[staged.digest] = prefixes_of(ordered, table)
    return _prefixes[staged.digest]
