"""The tasks that put subscriptions into partitions: count cells, assign, and write segments."""

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import shapely
from numpy.typing import NDArray
from shapely.geometry.base import BaseGeometry

from contrada.arrays import Box, Geometries, Positions
from contrada.files.snapshot import Snapshot, write_snapshot
from contrada.matcher.saving import load_subscriptions
from contrada.matching.columns import GeometryColumn
from contrada.matching.grid import CellLists, Grid
from contrada.matching.lookup import LookupTable, PrefixLists, make_prefix_lists
from contrada.matching.universe import SIDE_MAX
from contrada.model.geometry import as_array
from contrada.model.row_columns import ROW_COLUMNS
from contrada.model.subscription import Subscription
from contrada.spark.evaluators import Evaluator
from contrada.spark.staging import StagedPart, fetch, put
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
        for snapshot in _snapshots(self.uri, batches):
            shapes = [
                shape
                for subscription in load_subscriptions(snapshot, self.evaluator.reader())
                for _, shape in self.evaluator.find_anchors(subscription) or ()
            ]
            for first in range(0, len(shapes), _ROWS_MAX):
                yield self._count(as_array(shapes[first : first + _ROWS_MAX]))

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
    """The function for `mapInArrow` that sends each row of a part to its partitions.

    The partition after the last is that of the residual subscriptions.
    """

    uri: str
    table: LookupTable
    evaluator: Evaluator

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of some parts, once for each partition that they belong to."""
        for snapshot in _snapshots(self.uri, batches):
            subscriptions = load_subscriptions(snapshot, self.evaluator.reader())
            rows, partitions = self._assign(subscriptions)
            table = pa.Table.from_batches(snapshot.batches())
            for first in range(0, len(rows), _ROWS_MAX):
                piece = slice(first, first + _ROWS_MAX)
                chosen = table.take(pa.array(rows[piece])).combine_chunks()
                columns = {"partition": pa.array(partitions[piece].astype(np.int32))}
                columns |= {name: _plain(chosen[name]) for name, *_ in ROW_COLUMNS}
                yield pa.RecordBatch.from_pydict(columns)

    def _assign(self, subscriptions: Sequence[Subscription]) -> tuple[Positions, Positions]:
        lists = prefixes_of(subscriptions, self.table, self.evaluator)
        rows: list[int] = []
        partitions: list[int] = []
        for row, subscription in enumerate(subscriptions):
            mine = lists.prefixes[lists.list_starts[row] : lists.list_starts[row + 1]].tolist()
            found = {p for prefix in mine for p in self.table.replicas[prefix]}
            if self.evaluator.find_anchors(subscription) is None:
                found = {self.table.partition_count}
            rows += [row] * len(found)
            partitions += sorted(found)
        return np.array(rows, np.int64), np.array(partitions, np.int64)


@dataclass(frozen=True, slots=True)
class SegmentTask:
    """The function for `mapInArrow` that writes the subscriptions of one partition as a part."""

    uri: str
    has_whole_ids: bool
    has_whole_subscribers: bool

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write all rows of a task, which are those of one partition."""
        received = [batch for batch in batches if batch.num_rows]
        if not received:
            return
        rows = pa.Table.from_batches(received)
        number = rows["partition"][0].as_py()
        part = self._write(self._typed(rows.drop_columns(["partition"])).sort_by("id"))
        yield pa.RecordBatch.from_pydict(
            {
                "partition": pa.array([number], pa.int32()),
                "digest": [part.digest],
                "count": [part.count],
                "size_bytes": [part.size_bytes],
            }
        )

    def _typed(self, rows: pa.Table) -> pa.Table:
        """Make integers of ids that were texts while they travelled."""
        for name, is_whole in (
            ("id", self.has_whole_ids),
            ("subscriber", self.has_whole_subscribers),
        ):
            if is_whole:
                at = rows.schema.get_field_index(name)
                rows = rows.set_column(at, name, rows[name].cast(pa.int64()))
        return rows

    def _write(self, rows: pa.Table) -> StagedPart:
        with tempfile.TemporaryDirectory(prefix="contrada-segment-") as folder:
            path = Path(folder) / "segment"
            write_snapshot(path, rows.schema, {}, rows.to_batches(_ROWS_MAX))
            return put(self.uri, path, rows.num_rows)


def prefixes_of(
    subscriptions: Sequence[Subscription], table: LookupTable, evaluator: Evaluator
) -> PrefixLists:
    """Select the prefixes of subscriptions: those that an anchor of theirs touches."""
    shapes, owners = [], []
    for row, subscription in enumerate(subscriptions):
        for _, shape in evaluator.find_anchors(subscription) or ():
            shapes.append(shape)
            owners.append(row)
    grid = table.grid()
    cells = grid.decompose(bound(grid, as_array(shapes)))
    return _join(table, cells, owners, len(subscriptions))


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


def _join(table: LookupTable, cells: CellLists, owners: Sequence[int], count: int) -> PrefixLists:
    lists = table.select(cells)
    of_shape = np.repeat(np.arange(len(owners)), np.diff(lists.list_starts))
    return make_prefix_lists(np.array(owners, np.int64)[of_shape], lists.prefixes, count)


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


def _snapshots(uri: str, batches: Iterator[pa.RecordBatch]) -> Iterator[Snapshot]:
    for batch in batches:
        for row in batch.to_pylist():
            yield fetch(uri, StagedPart(**row))


def _plain(column: pa.ChunkedArray) -> pa.Array:
    """Return a column in a type that Spark has: ids and subscribers travel as texts."""
    array = column.combine_chunks()
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    return array.cast(pa.string()) if pa.types.is_integer(array.type) else array
