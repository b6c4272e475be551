"""The tasks that put subscriptions into partitions: count cells, assign, and write segments."""

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import shapely
from numpy.typing import NDArray
from shapely.geometry.base import BaseGeometry

from contrada.arrays import Box, Geometries, Positions
from contrada.matcher.column_files import load_columns
from contrada.matching.anchors import AnchorList, list_anchors
from contrada.matching.columns import GeometryColumn
from contrada.matching.grid import Grid
from contrada.matching.grouping import expand, starts_of
from contrada.matching.lookup import (
    LookupTable,
    PrefixLists,
    join_prefix_lists,
    make_prefix_lists,
)
from contrada.matching.subscription_columns import SubscriptionColumns, join_subscriptions
from contrada.matching.universe import SIDE_MAX
from contrada.spark.evaluators import Evaluator
from contrada.spark.joined_parts import as_row, prefix_columns, write_joined
from contrada.spark.staging import StagedPart, fetch
from contrada.spark.worker import EventColumns

FAR = SIDE_MAX / 4  # whatever lies beyond counts as there
_FAR_UNIVERSES = 2.0**16  # a kernel bends edges that go sixteen times as far
_ROWS_MAX = 8_192


@dataclass(frozen=True, slots=True)
class CellCountTask:
    """The function for `mapInArrow` that counts the cells of subscriptions, by where they start."""

    uri: str
    level: int
    universe: Box
    evaluator: Evaluator

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Count the cells of all anchors of some parts."""
        for part in read_parts(batches):
            subscriptions = load_columns(fetch(self.uri, part))
            shapes = list_anchors(subscriptions, self.evaluator.engine().find_anchors).shapes
            for first in range(0, len(shapes), _ROWS_MAX):
                yield self._count(shapes[first : first + _ROWS_MAX])

    def _count(self, shapes: Geometries) -> pa.RecordBatch:
        grid = Grid(self.level, self.universe)
        cells = grid.decompose(bound(grid, shapes))
        codes, counts = np.unique(cells.starts, return_counts=True)
        return pa.RecordBatch.from_pydict({"code": codes, "n": counts.astype(np.int64)})


@dataclass(frozen=True, slots=True)
class EventCountTask:
    """The function for `mapInArrow` that counts where events fall: the middles of their boxes."""

    level: int
    universe: Box
    columns: EventColumns
    anchored: tuple[str, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Count the events of some batches; bad ones fall nowhere."""
        grid = Grid(self.level, self.universe)
        for batch in batches:
            events = self.columns.receive(batch.rename_columns(list(self.columns.names)))
            columns = [boxes_of(events.batch.geometry(name)) for name in self.anchored]
            boxes = np.concatenate([np.zeros((0, 4)), *columns])
            inside = boxes[meet(boxes, self.universe)]
            middles = np.asarray(shapely.points((inside[:, :2] + inside[:, 2:]) / 2))
            codes, counts = np.unique(grid.decompose(middles).starts, return_counts=True)
            yield pa.RecordBatch.from_pydict({"code": codes, "n": counts.astype(np.int64)})


@dataclass(frozen=True, slots=True)
class AssignTask:
    """The function for `mapInArrow` that sends the subscriptions of a part to their partitions.

    The partition after the last is that of the residual subscriptions. Subscriptions travel as
    columns with their prefixes, some thousand in a row: driver and workers run the same version.
    A table that is older than the subscriptions may not reach to all of them; the others are then
    residual, too.
    """

    uri: str
    table: LookupTable
    evaluator: Evaluator
    is_older: bool = False

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the subscriptions of some parts, once for each partition that they belong to."""
        for part in read_parts(batches):
            subscriptions = load_columns(fetch(self.uri, part))
            lists, rows, partitions = self.assign(subscriptions)
            for partition in np.unique(partitions).tolist():
                own = rows[partitions == partition]
                for first in range(0, len(own), _ROWS_MAX):
                    at = own[first : first + _ROWS_MAX]
                    chosen = subscriptions.take(at), lists.take(at)
                    yield pa.RecordBatch.from_pydict(
                        {
                            "partition": pa.array([partition], pa.int32()),
                            "place": [f"{part.digest} {first:012}"],
                            "subscriptions": pa.array([pickle.dumps(chosen)], pa.binary()),
                        }
                    )

    def assign(
        self, subscriptions: SubscriptionColumns
    ) -> tuple[PrefixLists, Positions, Positions]:
        """Return the prefixes of all rows, and rows with the partition that each belongs to."""
        anchors = list_anchors(subscriptions, self.evaluator.engine().find_anchors)
        if self.is_older:
            anchors = keep_inside(anchors, self.table.universe)
        lists = select_prefixes(anchors, self.table, len(subscriptions))
        replicas = [np.array(numbers, np.int64) for numbers in self.table.replicas]
        starts = starts_of(np.array([len(numbers) for numbers in replicas], np.int64))
        owners = np.repeat(np.arange(len(subscriptions)), np.diff(lists.list_starts))
        which, places = expand(starts, np.asarray(lists.prefixes, np.int64))
        residual = np.flatnonzero(anchors.is_broad)
        rows = np.concatenate([owners[which], residual])
        numbers = np.concatenate([np.zeros(0, np.int64), *replicas])[places]
        last = self.table.partition_count
        partitions = np.concatenate([numbers, np.full(len(residual), last)])
        rows, partitions = np.divmod(np.unique(rows * (last + 1) + partitions), last + 1)
        return lists, rows, partitions


@dataclass(frozen=True, slots=True)
class SegmentTask:
    """The function for `mapInArrow` that writes the subscriptions of one partition as a part."""

    uri: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write all subscriptions of a task, which are those of one partition."""
        pieces = [row for batch in batches for row in batch.to_pylist()]
        if not pieces:
            return
        pieces.sort(key=lambda row: str(row["place"]))  # they come in any order
        parts = [pickle.loads(row["subscriptions"]) for row in pieces]  # noqa: S301  our own task's
        subscriptions = join_subscriptions([part for part, _ in parts])
        prefixes = join_prefix_lists([lists for _, lists in parts])
        part = write_joined(self.uri, subscriptions, prefix_columns(prefixes))
        partition = pa.array([pieces[0]["partition"]], pa.int32())
        yield pa.RecordBatch.from_pylist([as_row(part)]).add_column(0, "partition", partition)


def keep_inside(anchors: AnchorList, universe: Box) -> AnchorList:
    """Return the anchors of subscriptions that lie in a universe; all others are broad."""
    west, south, east, north = universe
    boxes = np.array(shapely.bounds(anchors.shapes), float).reshape(-1, 4)
    is_inside = (boxes[:, :2] >= (west, south)).all(axis=1)
    is_inside &= (boxes[:, 2:] <= (east, north)).all(axis=1)
    is_broad = anchors.is_broad.copy()
    is_broad[anchors.owners[~is_inside]] = True
    is_left = ~is_broad[anchors.owners]
    return replace(
        anchors,
        owners=anchors.owners[is_left],
        shapes=anchors.shapes[is_left],
        is_broad=is_broad,
    )


def select_prefixes(anchors: AnchorList, table: LookupTable, count: int) -> PrefixLists:
    """Select the prefixes of subscriptions: those that an anchor of theirs touches."""
    grid = table.grid()
    lists = table.select(grid.decompose(bound(grid, anchors.shapes)))
    of_shape = np.repeat(np.arange(len(anchors.owners)), np.diff(lists.list_starts))
    return make_prefix_lists(anchors.owners[of_shape], lists.prefixes, count)


def bound(grid: Grid, shapes: Geometries) -> Geometries:
    """Replace shapes by their boxes if their outlines run through too many cells, or too far."""
    boxes = np.array(shapely.bounds(shapes), float).reshape(-1, 4)
    with np.errstate(over="ignore"):
        long = list(grid.find_faults(shapes))
        beyond = np.abs(boxes / 2 - np.array([*grid.middle, *grid.middle]) / 2)
        far = (beyond > _FAR_UNIVERSES * np.array([*grid.sides, *grid.sides])).any(axis=1)
    at = np.union1d(long, np.flatnonzero(far)).astype(np.int64)
    bounded = shapes.copy()
    bounded[at] = [_stand_for(grid.universe, box) for box in boxes[at].tolist()]
    return bounded


def _stand_for(universe: Box, box: Sequence[float]) -> BaseGeometry:
    """Return the part of a box within the universe, or what it is drawn to on the rim."""
    low, high = np.array(universe[:2]), np.array(universe[2:])
    west, south = np.clip(box[:2], low, high).tolist()
    east, north = np.clip(box[2:], low, high).tolist()
    if west < east and south < north:
        whole: BaseGeometry = shapely.box(west, south, east, north)
        return whole
    if west == east and south == north:
        return shapely.Point(west, south)
    return shapely.LineString([(west, south), (east, north)])


def boxes_of(column: GeometryColumn) -> NDArray[np.float64]:
    """Return the boxes of geometries, none beyond `FAR`; a missing one has a box of NaN."""
    boxes = np.array(shapely.bounds(column.shapes), float).reshape(-1, 4)
    at = column.is_point
    boxes[at] = np.stack([column.x[at], column.y[at]] * 2, axis=1)
    return np.asarray(np.clip(boxes, -FAR, FAR))


def meet(boxes: NDArray[np.float64], universe: Box) -> NDArray[np.bool_]:
    """Which boxes meet the universe; one of NaN does not."""
    west, south, east, north = universe
    return np.asarray(
        (boxes[:, 0] <= east)
        & (boxes[:, 2] >= west)
        & (boxes[:, 1] <= north)
        & (boxes[:, 3] >= south)
    )


def read_parts(batches: Iterator[pa.RecordBatch]) -> Iterator[StagedPart]:
    """Read the rows of parts, as `as_row` makes them."""
    for batch in batches:
        for row in batch.to_pylist():
            yield StagedPart(**row)
