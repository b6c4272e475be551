"""The task that brings events to partitions.

It sends each event to the partitions in charge of the cells that it touches. One of them is
its home, where bad events are reported and residual subscriptions are evaluated. Events that touch
no cell, bad ones among them, have their home outside.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from contrada.arrays import Integers, Positions
from contrada.matching.columns import GeometryColumn
from contrada.matching.lookup import LookupTable, PrefixLists, make_prefix_lists
from contrada.matching.receiving import ReceivedEvents
from contrada.spark.answering import ROWS_MAX
from contrada.spark.chosen_sets import ROUTED_VERSION, ChosenSet, SetChoice
from contrada.spark.handshake import Handshake
from contrada.spark.null_lists import restore_lists
from contrada.spark.partition_tasks import bound, boxes_of, meet
from contrada.spark.task_errors import noting_errors
from contrada.spark.worker import EventColumns, begin
from contrada.threads import once

TURN = "__turn"  # numbers the events of a job, in no order
ROUTE = ("__partition", "__is_home", TURN, "__prefixes", ROUTED_VERSION)
_TURN_BITS = 40  # of a number, for the events of one task


@dataclass(frozen=True)
class Router:
    """A lookup table by arrays: where the events of each prefix go.

    If `is_bounded`, nothing lies outside the universe: it is drawn to the rim, as in the AHS model.
    """

    table: LookupTable
    is_bounded: bool

    @once
    def _replicas(self) -> tuple[Integers, Integers]:
        counts = [len(chosen) for chosen in self.table.replicas]
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        return starts, np.array([p for chosen in self.table.replicas for p in chosen], np.int64)

    def partition(self, prefixes: Integers, lots: Integers) -> Integers:
        """Choose among the replicas of prefixes, by the lot of each event."""
        starts, replicas = self._replicas
        counts = starts[prefixes + 1] - starts[prefixes]
        return replicas[starts[prefixes] + lots % counts]

    def prefixes(self, column: GeometryColumn, rows: Positions) -> tuple[Positions, Integers]:
        """List the prefixes that the geometries of some rows touch, each with its row."""
        grid = self.table.grid()
        if self.is_bounded:
            rows = rows[column.is_known[rows]]
        else:
            rows = rows[meet(boxes_of(column)[rows], self.table.universe)]
        points = rows[column.is_point[rows]]
        others = rows[~column.is_point[rows]]
        codes = grid.locate(column.x[points], column.y[points])
        of_points = np.searchsorted(self.table.starts, codes, side="right") - 1
        lists = self.table.select(grid.decompose(bound(grid, column.shapes[others])))
        owners = np.repeat(others, np.diff(lists.list_starts))
        return np.concatenate([points, owners]), np.concatenate([of_points, lists.prefixes])


@dataclass(frozen=True, slots=True)
class RouteTask:
    """The function for `mapInArrow` that sends each event to its partitions."""

    handshake: Handshake
    sets: SetChoice
    events: EventColumns

    @noting_errors
    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield each event once for every partition, with the prefixes that it touches."""
        from pyspark import TaskContext

        self.handshake.check()
        context = TaskContext.get()
        first_turn = (0 if context is None else context.partitionId()) << _TURN_BITS
        begun = begin(batches, self.events.names)
        if begun is None:
            return
        first_batch, named = begun
        chosen = self.sets.choose(first_batch)
        router = Router(chosen.placed.table, self.events.evaluator.grid is not None)
        for large in named:
            for first in range(0, large.num_rows, ROWS_MAX):
                batch = large.slice(first, ROWS_MAX)
                turns = first_turn + np.arange(batch.num_rows, dtype=np.int64)
                yield self._route(batch, turns, router, chosen)
                first_turn += batch.num_rows

    def _route(
        self, batch: pa.RecordBatch, turns: Integers, router: Router, chosen: ChosenSet
    ) -> pa.RecordBatch:
        events = self.events.reading(chosen).receive(restore_lists(batch))
        lists = _select(events, chosen.anchored, router)
        copies = _deal(lists, draw_lots(events.ids), router)
        at = pa.array(copies.rows)
        offsets = pa.array(lists.list_starts.astype(np.int32))
        prefixes = pa.ListArray.from_arrays(offsets, pa.array(lists.prefixes))
        route = [
            pa.array(copies.partitions.astype(np.int32)),
            pa.array(copies.is_home),
            pa.array(turns[copies.rows]),
            prefixes.take(at),
            pa.repeat(pa.scalar(chosen.number, pa.int32()), len(at)),
        ]
        columns = [*route, *(column.take(at) for column in batch.columns)]
        names = [*ROUTE, *(f"column{i}" for i in range(batch.num_columns))]
        return pa.RecordBatch.from_arrays(columns, names=names)


def _select(events: ReceivedEvents, anchored: Sequence[str], router: Router) -> PrefixLists:
    """Select the prefixes of good events, by all attributes that anchors are found by."""
    good = events.good_rows()
    found = [router.prefixes(events.batch.geometry(name), good) for name in anchored]
    none = np.zeros(0, np.int64)
    owners = np.concatenate([none, *(owners for owners, _ in found)])
    prefixes = np.concatenate([none, *(prefixes for _, prefixes in found)])
    return make_prefix_lists(owners, prefixes, events.batch.length)


@dataclass(frozen=True, slots=True)
class _Copies:
    """Rows as they are dealt out: one for each partition of an event."""

    rows: Positions
    partitions: Integers
    is_home: NDArray[np.bool_]


def draw_lots(ids: pa.Array) -> Integers:
    """Number each event by its id alone, so that a task that runs again draws the same."""
    if pa.types.is_integer(ids.type):
        return np.asarray(ids.fill_null(0).cast(pa.int64())) & 0x7FFF_FFFF
    texts = ids.fill_null("").to_pylist()
    return np.array([crc32(text.encode()) for text in texts], np.int64)


def _deal(lists: PrefixLists, lots: Integers, router: Router) -> _Copies:
    """Deal each row to the partitions of its prefixes; the first of them is its home."""
    owners = np.repeat(np.arange(len(lots)), np.diff(lists.list_starts))
    partitions = router.partition(lists.prefixes, lots[owners])
    homeless = np.flatnonzero(np.diff(lists.list_starts) == 0)
    width = router.table.partition_count
    keys = np.concatenate([owners * width + partitions, homeless * width + router.table.outside])
    rows, chosen = np.divmod(np.unique(keys), width)
    return _Copies(rows, chosen, np.diff(rows, prepend=-1) != 0)
