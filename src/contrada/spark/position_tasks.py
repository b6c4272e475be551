"""How tasks read positions: events are judged, and packed by the shard of their object.

What Spark moves from task to task is a row for each shard, with Arrow's bytes: rows of their own
would go one by one through pandas.
"""

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np
import pyarrow as pa

from contrada.arrays import Integers, Mask, Positions
from contrada.matcher.position_intake import NULL_OBJECT
from contrada.matching.ids import read_event_ids
from contrada.matching.moments import read_moments
from contrada.matching.receiving import ReceivedEvents
from contrada.model.event import GEOMETRY
from contrada.model.geometry import Fault
from contrada.spark.answering import ROWS_MAX
from contrada.spark.chosen_sets import SetChoice
from contrada.spark.frames import FILE, MOMENT, SOURCE_FAULT, SOURCE_MESSAGE
from contrada.spark.handshake import Handshake
from contrada.spark.null_lists import NULL_LISTS, restore_lists
from contrada.spark.task_errors import noting_errors
from contrada.spark.transition_answers import FollowTally, TransitionShape
from contrada.spark.transition_options import TransitionOptions
from contrada.spark.worker import EventColumns, begin

POSITION_TIME, X, Y, IS_KNOWN = "__time", "__x", "__y", "__known"
SHARD, PACKED, GREATEST, BEGAN, ANSWER = "shard", "positions", "greatest", "began", "answer"
DONE_LINE = "done"  # what a task has done, as JSON
PACKED_DDL = (
    f"{SHARD} int, {PACKED} binary, {GREATEST} bigint, {BEGAN} string, {ANSWER} binary, "
    f"{DONE_LINE} string"
)
_PACKED = pa.schema(
    [
        (SHARD, pa.int32()),
        (PACKED, pa.binary()),
        (GREATEST, pa.int64()),
        (BEGAN, pa.string()),
        (ANSWER, pa.binary()),
        (DONE_LINE, pa.string()),
    ]
)
_NOTHING_DONE: Mapping[int, str] = MappingProxyType({})
_PACKED_BYTES_MAX = 32 * 2**20  # of the positions that a task holds back
_OWN = (FILE, MOMENT, SOURCE_FAULT, SOURCE_MESSAGE, NULL_LISTS)  # which are not columns of events
AHEAD = "time_ahead"


@dataclass(frozen=True, slots=True)
class JudgedPositions:
    """Events that were judged: the good ones as a table, with time and place beside them."""

    rows: pa.Table
    events: ReceivedEvents

    @property
    def greatest_us(self) -> int | None:
        """The greatest time of all good rows; None where there are none."""
        times = self.rows.column(POSITION_TIME)
        return max(times.to_numpy().tolist(), default=None)


@dataclass(frozen=True, slots=True)
class PositionReader:
    """Reads events as positions: which columns they have, and what makes one bad."""

    columns: EventColumns
    options: TransitionOptions

    def judge(self, batch: pa.RecordBatch, latest_us: int | None) -> JudgedPositions:
        """Judge a batch; a time after `latest_us` is that of a clock which runs ahead."""
        times, bad_times = read_moments(batch.column(self.options.time), self.options.time)
        told = self._find_faults(batch, times, bad_times, latest_us)
        events = self.columns.receive(batch, told)
        place = events.batch.geometry(GEOMETRY)
        rows = pa.table(
            {
                **{name: batch.column(name) for name in batch.schema.names if name not in _OWN},
                **self._primary(batch),
                POSITION_TIME: times,
                X: place.x,
                Y: place.y,
                IS_KNOWN: place.is_known,
            }
        )
        good = rows if not events.bad else rows.take(pa.array(events.good_rows()))
        return JudgedPositions(good, events)

    def _primary(self, batch: pa.RecordBatch) -> Mapping[str, pa.Array]:
        """Return the geometry under the name that it has in predicates, if it has another one."""
        primary = self.columns.primary
        if primary is None or GEOMETRY in batch.schema.names:
            return {}
        return {GEOMETRY: batch.column(primary)}

    def _find_faults(
        self,
        batch: pa.RecordBatch,
        times: Integers,
        bad_times: Mapping[int, Fault],
        latest_us: int | None,
    ) -> dict[int, Fault]:
        """Find what is wrong with objects and times."""
        column = self.options.object
        objects, faults = read_event_ids(batch.column(column), column, "events")
        for row in _rows_of(objects.is_null().to_numpy(zero_copy_only=False)):
            fault = Fault(NULL_OBJECT, "the object is missing", f"column {column!r}")
            faults.setdefault(row, fault)
        place = f"column {self.options.time!r}"
        for row, fault in bad_times.items():
            faults.setdefault(row, fault)
        if latest_us is not None:
            for row in _rows_of(times > latest_us):
                faults.setdefault(row, Fault(AHEAD, _tell_ahead(times, row, latest_us), place))
        return faults


def _rows_of(mask: Mask) -> list[int]:
    return list(np.flatnonzero(mask).tolist())


def _tell_ahead(times: Integers, row: int, latest_us: int) -> str:
    seconds = (int(times[row]) - latest_us) / 1e6
    return (
        f"the time is {seconds:,.0f} s later than `ahead` allows after the moment of the batch: "
        "one wrong clock would end the visits of all others"
    )


@dataclass(slots=True)
class _Shards:
    """The positions that a task has read and not yet handed on, by shard."""

    shards: int
    parts: dict[int, list[pa.Table]] = field(default_factory=dict)
    nbytes: int = 0

    def add(self, rows: pa.Table, objects: pa.Array) -> None:
        """Deal rows out to the shards of their objects."""
        if not rows.num_rows:
            return
        numbers = shards_of(objects, self.shards)
        order = np.argsort(numbers, kind="stable")
        dealt = rows.take(pa.array(order))
        bounds = np.searchsorted(numbers[order], np.arange(self.shards + 1)).tolist()
        for shard in np.unique(numbers).tolist():
            start, end = bounds[shard], bounds[shard + 1]
            self.parts.setdefault(shard, []).append(dealt.slice(start, end - start))
        self.nbytes += dealt.nbytes

    def pack(self) -> dict[int, bytes]:
        """Hand on what there is, as bytes."""
        packed = {shard: write_tables(tables) for shard, tables in self.parts.items()}
        self.parts, self.nbytes = {}, 0
        return packed


def shards_of(objects: pa.Array, shards: int) -> Positions:
    """Return the shard of each object: the CRC-32 of its text, by which it never moves."""
    encoded = objects.cast(pa.string()).dictionary_encode()
    texts = encoded.dictionary.cast(pa.binary()).to_pylist()
    codes = np.array([zlib.crc32(text) % shards for text in texts], np.int64)
    found: Positions = codes[encoded.indices.to_numpy()]
    return found


@dataclass(frozen=True, slots=True)
class ReadPositionsTask:
    """The function for `mapInArrow` of a stream: events to positions, packed by shard.

    It ends with a row for every shard, with the greatest time that it has read: so all shards have
    one clock, and in each batch run their timers and take up its version.
    """

    handshake: Handshake
    sets: SetChoice
    reader: PositionReader
    shape: TransitionShape

    @noting_errors
    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Read a task's events; without any there are no rows."""
        self.handshake.check()
        begun = begin(batches, self.reader.columns.names)
        if begun is None:
            return
        first, named = begun
        chosen = self.sets.choose(first)
        moment = first.column(MOMENT)[0].as_py()
        reader = read_with(self.reader, chosen.geometries)
        options = reader.options
        shards, done = _Shards(options.shards), FollowTally(version=chosen.version)
        greatest: int | None = None
        own = _find_task() % options.shards  # which shard hands on what is an answer already
        for batch in map(restore_lists, cut_rows(named)):
            judged = reader.judge(batch, int(moment) + options.ahead_us)
            if bad := set_aside(reader, self.shape, batch, judged.events):
                yield _as_rows({own: b""}, None, moment, {own: write_batches(bad)})
            done.set_aside += len(judged.events.bad)
            shards.add(judged.rows, judged.rows.column(options.object).combine_chunks())
            times = [time for time in (greatest, judged.greatest_us) if time is not None]
            greatest = max(times, default=None)
            if shards.nbytes > _PACKED_BYTES_MAX:
                yield _as_rows(shards.pack(), None, moment, {})
        packed = dict.fromkeys(range(options.shards), b"") | shards.pack()
        yield _as_rows(packed, greatest, moment, {}, {own: done.as_line()})


def read_with(reader: PositionReader, geometries: tuple[str, ...]) -> PositionReader:
    """Return a reader that judges the geometries of a version, and where a position is."""
    judged = tuple(dict.fromkeys((*geometries, GEOMETRY)))
    return replace(reader, columns=replace(reader.columns, geometries=judged))


def cut_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Cut batches so that each has so many rows at most."""
    for large in batches:
        for first in range(0, large.num_rows, ROWS_MAX):
            yield large.slice(first, ROWS_MAX)


def set_aside(
    reader: PositionReader, shape: TransitionShape, batch: pa.RecordBatch, events: ReceivedEvents
) -> list[pa.RecordBatch]:
    """Return the bad rows of a batch as an answer has them; refuse them where it has none."""
    if not events.bad:
        return []
    if not shape.quarantine:
        reader.columns.refuse_bad(batch, events)
    rows = sorted(events.bad)
    at = pa.array(rows, pa.int64())
    messages = None
    if SOURCE_MESSAGE in batch.schema.names:
        messages = batch.column(SOURCE_MESSAGE).take(at)
    return [shape.bad(events.ids.take(at), [events.bad[row] for row in rows], messages)]


def _as_rows(
    packed: Mapping[int, bytes],
    greatest: int | None,
    moment: str,
    answers: Mapping[int, bytes],
    done: Mapping[int, str] = _NOTHING_DONE,
) -> pa.RecordBatch:
    """Make a row for each shard."""
    count = len(packed)
    columns = [
        pa.array(packed.keys(), pa.int32()),
        pa.array([data or None for data in packed.values()], pa.binary()),
        pa.array([greatest] * count, pa.int64()),
        pa.array([moment] * count, pa.string()),
        pa.array([answers.get(shard) for shard in packed], pa.binary()),
        pa.array([done.get(shard) for shard in packed], pa.string()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=_PACKED)


def _find_task() -> int:
    """Return the number of the task among those of its batch."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return 0 if context is None else context.partitionId()


def write_tables(tables: list[pa.Table]) -> bytes:
    """Write tables of one schema as Arrow's bytes."""
    return write_batches([batch for table in tables for batch in table.to_batches()])


def write_batches(batches: list[pa.RecordBatch]) -> bytes:
    """Write batches of one schema as Arrow's bytes; nothing where there are none."""
    if not batches:
        return b""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return bytes(sink.getvalue())


def read_packed(packed: list[bytes]) -> pa.Table | None:
    """Read what tasks have packed for a shard; None where there is nothing."""
    tables = [pa.ipc.open_stream(data).read_all() for data in packed]
    return pa.concat_tables(tables) if tables else None


@dataclass(frozen=True, slots=True)
class UnpackTask:
    """The function for `mapInArrow` that makes rows of the bytes of answers."""

    shape: TransitionShape

    @noting_errors
    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the batches that were written."""
        for batch in batches:
            for data in batch.column(0):
                yield from map(self.shape.spread, pa.ipc.open_stream(data.as_buffer()))


def list_event_columns(columns: EventColumns) -> tuple[str, ...]:
    """List the columns of judged rows that are those of events."""
    names = tuple(name for name in columns.names if name not in _OWN)
    has_other = columns.primary is not None and GEOMETRY not in names
    return (*names, GEOMETRY) if has_other else names
