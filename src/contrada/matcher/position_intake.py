"""Positions from tables, files and lists: read, judged, and bad rows set aside."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa

from contrada.arrays import Positions
from contrada.deferred import compute as pc
from contrada.errors import InvalidInput, Remedy
from contrada.files import Rows
from contrada.matcher.event_texts import TEXT_COLUMNS, write_event
from contrada.matcher.match_run import choose_id_column, list_read, narrow_to_read
from contrada.matcher.piece_threads import mapping
from contrada.matching.arrow_values import as_values
from contrada.matching.columns import read_geometries
from contrada.matching.event_objects import EventObjects, receive_objects
from contrada.matching.ids import read_event_ids, read_id
from contrada.matching.moments import BAD_TIME, NO_TIME, read_moment_us, read_moments
from contrada.matching.receiving import ReceivedEvents, receive
from contrada.matching.segments import SubscriptionSet
from contrada.matching.writing import with_mended, write_geometries
from contrada.model.event import GEOMETRY, Event, read_event
from contrada.model.geometry import BAD_CELL, Fault
from contrada.model.subscription import Id
from contrada.showing import listed
from contrada.transitions.id_order import as_ids
from contrada.transitions.position_columns import PositionColumns

NULL_OBJECT, _DEFAULT_ID = "null_object", "id"
_PIECE_ROWS = 16_384

_NO_TEXTS: Mapping[int, bytes] = MappingProxyType({})

OnRead = Callable[[int], object]
Judged = tuple[ReceivedEvents, pa.Array, Positions]


@dataclass(frozen=True, slots=True)
class PositionNames:
    """The columns of a position: the object that it is of, its time, and the id of the event."""

    object: str
    time: str
    id: str


@dataclass(frozen=True, slots=True)
class IntakePiece:
    """Some events in a row, with what makes positions of them; `good` are the rows that count.

    `texts` has those of events, by row, that were written already.
    """

    received: ReceivedEvents
    objects: pa.Array
    time_us: Positions
    good: Positions
    texts: Mapping[int, bytes]

    def take(self, column: pa.Array) -> pa.Array:
        """Return the good rows of a column."""
        return column if len(self.good) == len(column) else column.take(pa.array(self.good))

    def rows(self) -> pa.Table:
        """Return the good events as they may have to wait: geometries that were mended are."""
        events = self.received.batch
        if isinstance(events, EventObjects):
            texts = pa.array(self._write_texts(events), pa.large_binary())
            shapes = write_geometries(events.geometry(GEOMETRY))
            rows = pa.table([texts, shapes, self.objects], TEXT_COLUMNS)
        else:
            names = tuple(events.names())
            batch = pa.RecordBatch.from_arrays([events.raw(name) for name in names], names)
            rows = pa.Table.from_batches([with_mended(batch, events, names)])
        return rows if len(self.good) == rows.num_rows else rows.take(pa.array(self.good))

    def _write_texts(self, events: EventObjects) -> list[bytes | None]:
        """Write events; null what cannot be written, which is bad where it would have to wait."""
        texts: list[bytes | None] = [None] * events.length
        for row in self.good.tolist():
            mended = dict(events.mended(row))
            texts[row] = self.texts.get(row)
            if texts[row] is None or mended:
                with suppress(InvalidInput):
                    texts[row] = write_event(events.events[row], mended)
        return texts


@dataclass(slots=True)
class Intake:
    """All positions of a batch: pieces in order, and what was bad or mended, by row."""

    place: Callable[[int], str]
    is_numbered: bool
    id_type: pa.DataType
    pieces: list[IntakePiece] = field(default_factory=list)
    ids: dict[int, Any] = field(default_factory=dict)
    bad: dict[int, Fault] = field(default_factory=dict)
    mended: dict[int, Fault] = field(default_factory=dict)
    count: int = 0

    def add(
        self,
        received: ReceivedEvents,
        objects: pa.Array,
        time_us: Positions,
        texts: Mapping[int, bytes] = _NO_TEXTS,
    ) -> None:
        """Take the next piece in."""
        first, bad = received.first_row, received.bad
        piece = IntakePiece(received, objects, time_us, received.good_rows(), texts)
        self.pieces.append(piece)
        self.bad |= {first + row: bad[row] for row in sorted(bad)}
        self.mended |= {
            first + row: fault for row, fault in received.mended.items() if row not in bad
        }
        told = sorted({*bad, *received.mended})
        self.ids |= {first + row: received.ids[row].as_py() for row in told}
        self.count += received.batch.length

    def count_objects(self) -> int:
        """Count the objects that have a good row."""
        objects = [piece.take(piece.objects) for piece in self.pieces]
        return pc.count_distinct(pa.chunked_array(objects)).as_py() if objects else 0

    def positions(self) -> PositionColumns | None:
        """Return the columns of all good rows; None where there are none."""
        pieces = [piece for piece in self.pieces if len(piece.good)]
        if not pieces:
            return None
        columns = [piece.received.batch.geometry(GEOMETRY) for piece in pieces]
        goods = [piece.good for piece in pieces]
        return PositionColumns(
            as_ids(pa.chunked_array([piece.take(piece.objects) for piece in pieces])),
            np.concatenate([piece.time_us[piece.good] for piece in pieces]),
            as_ids(pa.chunked_array([piece.take(piece.received.ids) for piece in pieces])),
            np.concatenate([c.x[good] for c, good in zip(columns, goods, strict=True)]),
            np.concatenate([c.y[good] for c, good in zip(columns, goods, strict=True)]),
            np.concatenate([c.is_known[good] for c, good in zip(columns, goods, strict=True)]),
            cache(lambda: _join_rows(pieces)),
            make_order_keys,
        )


def _join_rows(pieces: Sequence[IntakePiece]) -> pa.Table:
    return pa.concat_tables((piece.rows() for piece in pieces), promote_options="permissive")


def make_order_keys(rows: pa.Table) -> pa.Array:
    """Return what decides between events with one object, time and id: WKB, then all the rest."""
    names = sorted(name for name in rows.schema.names if name != GEOMETRY)
    shapes = write_geometries(read_geometries(rows[GEOMETRY].combine_chunks())).to_pylist()
    values = [as_values(rows[name].combine_chunks()) for name in names]
    rest = zip(*values, strict=True) if values else ((),) * rows.num_rows
    keys = [
        (shape or b"") + b"\0" + repr(row).encode() for shape, row in zip(shapes, rest, strict=True)
    ]
    return pa.array(keys, pa.large_binary())


def take_in_rows(
    rows: Rows,
    subscriptions: SubscriptionSet,
    names: PositionNames,
    *,
    repair: bool,
    numbered: int,
    are_kept: bool,
    threads: int,
    on_read: OnRead | None = None,
) -> Intake:
    """Take in the rows of a table or file; where there are no ids, they are numbered from one on.

    They are judged on threads. Where rows may be kept, for a version that may read other columns,
    they come whole. `on_read` hears how many have been read, a batch at a time.
    """
    wanted = None if names.id == _DEFAULT_ID else names.id
    id_column = choose_id_column(rows, wanted, Remedy.EVENT_ID)
    for column, what, remedy in (
        (names.object, "the object", Remedy.OBJECT),
        (names.time, "the time", Remedy.TIME),
    ):
        if column not in rows.schema.names:
            known = listed(rows.schema.names)
            raise InvalidInput(
                f"{rows.name}: there is no column {column!r} for {what}; it has {known}",
                remedies=[remedy],
            )
    rows = rows.identified(id_column).identified(names.object)
    own = {names.object, names.time}
    if not are_kept:
        rows = narrow_to_read(rows, subscriptions, id_column, own)
    intake = Intake(rows.place, id_column is None, _id_type(rows, id_column))

    def judge(piece: pa.RecordBatch, first_row: int, told: dict[int, Fault]) -> Judged:
        received = _receive(
            piece, first_row, subscriptions, rows, id_column, repair, told, numbered
        )
        objects, faults = read_objects(piece.column(names.object), names.object, rows.name)
        time_us, more = read_moments(piece.column(names.time), names.time)
        _note(received.bad, faults, more)
        return received, objects, time_us

    pieces = list(_cut(rows.judged({*list_read(subscriptions, id_column), *own}), on_read))
    with mapping(threads, len(pieces)) as run:
        for judged in run(judge, *zip(*pieces, strict=True)) if pieces else ():
            intake.add(*judged)
    return intake


def _cut(
    batches: Iterator[tuple[pa.RecordBatch, dict[int, Fault]]], on_read: OnRead | None
) -> Iterator[tuple[pa.RecordBatch, int, dict[int, Fault]]]:
    """Cut batches into pieces, each with its first row, and what is known to be bad in it."""
    first_row = 0
    for batch, told in batches:
        for start in range(0, batch.num_rows, _PIECE_ROWS):
            piece = batch.slice(start, _PIECE_ROWS)
            here = {row - start: told[row] for row in told if 0 <= row - start < piece.num_rows}
            yield piece, first_row + start, here
        first_row += batch.num_rows
        if on_read is not None:
            on_read(batch.num_rows)


def _id_type(rows: Rows, column: str | None) -> pa.DataType:
    if column is None:
        return pa.int64()
    return read_event_ids(pa.nulls(0, rows.schema.field(column).type), column, rows.name)[0].type


def _receive(
    batch: pa.RecordBatch,
    first_row: int,
    subscriptions: SubscriptionSet,
    rows: Rows,
    id_column: str | None,
    repair: bool,
    told: Mapping[int, Fault],
    numbered: int,
) -> ReceivedEvents:
    received = receive(
        batch,
        first_row,
        geometry_attributes={GEOMETRY, *subscriptions.geometry_attributes},
        geometry_columns=rows.geometry_columns,
        id_column=id_column,
        name=rows.name,
        repair=repair,
        find_more_faults=subscriptions.find_event_faults,
        told=told,
    )
    if id_column is not None:
        return received
    numbers = np.arange(batch.num_rows, dtype=np.int64) + (numbered + first_row)
    return ReceivedEvents(
        received.batch, pa.array(numbers), first_row, received.bad, received.mended
    )


def read_objects(array: pa.Array, column: str, source: str) -> tuple[pa.Array, dict[int, Fault]]:
    """Read a column of objects as int64 or strings; one that is missing is a fault of its row."""
    objects, faults = read_event_ids(array, column, source)
    for row in np.flatnonzero(objects.is_null().to_numpy(zero_copy_only=False)).tolist():
        faults.setdefault(row, Fault(NULL_OBJECT, "the object is missing", f"column {column!r}"))
    return objects, faults


def _note(bad: dict[int, Fault], *more: Mapping[int, Fault]) -> None:
    """Add what is wrong with objects and times to what is wrong with rows; the first counts."""
    for faults in more:
        for row, fault in faults.items():
            bad.setdefault(row, fault)


def take_in_list(
    events: Sequence[Any],
    subscriptions: SubscriptionSet,
    names: PositionNames,
    *,
    repair: bool,
    numbered: int,
    are_kept: bool,
) -> Intake:
    """Take in a list of events, as one piece."""
    read, told, texts = _read_events(events, are_kept)
    ids, is_numbered = _read_list_ids(read, names, numbered, told)
    objects = _read_values(
        [event.value(names.object) for event in read],
        names.object,
        NULL_OBJECT,
        "the object is missing",
        told,
    )
    received = receive_objects(
        read,
        ids,
        {GEOMETRY, *subscriptions.geometry_attributes},
        repair=repair,
        find_more_faults=subscriptions.find_event_faults,
        told=told,
    )
    time_us, faults = _read_times([event.value(names.time) for event in read], names.time)
    _note(received.bad, faults)
    intake = Intake(lambda row: f"row {row}", is_numbered, ids.type)
    intake.add(received, objects, time_us, texts)
    return intake


def _read_events(
    events: Sequence[Any], are_kept: bool
) -> tuple[list[Event], dict[int, Fault], dict[int, bytes]]:
    """Read events, and write those that may have to wait; one that cannot be either is bad."""
    read: list[Event] = []
    told: dict[int, Fault] = {}
    texts: dict[int, bytes] = {}
    for row, item in enumerate(events):
        place = f"row {row}"
        try:
            event = read_event(item, place=place)
            if are_kept:
                texts[row] = write_event(event)
        except InvalidInput as error:
            told[row] = Fault(BAD_CELL, error.message.removeprefix(f"{place}: "), error.place or "")
            event = Event({})
        read.append(event)
    return read, told, texts


def _read_list_ids(
    events: Sequence[Event], names: PositionNames, numbered: int, told: dict[int, Fault]
) -> tuple[pa.Array, bool]:
    """Return the ids of events, and whether they are numbers that none of them states."""
    if names.id != _DEFAULT_ID:
        given = [event.value(names.id) for event in events]
    elif any(event.id is not None or _DEFAULT_ID in event.attributes for event in events):
        given = [event.value(_DEFAULT_ID) if event.id is None else event.id for event in events]
    else:
        return pa.array(np.arange(len(events), dtype=np.int64) + numbered), True
    return _read_values(given, "the event's id", "null_id", "the id is missing", told), False


def _read_values(
    values: Sequence[Any], what: str, code: str, missing: str, bad: dict[int, Fault]
) -> pa.Array:
    """Read ids from values of any kind; what is wrong with one is added to the bad rows."""
    read: list[Any] = []
    for row, value in enumerate(values):
        try:
            read.append(None if value is None else _plain_id(read_id(value, what)))
        except InvalidInput as error:
            bad.setdefault(row, Fault(BAD_CELL, error.message.removeprefix(f"{what}: "), what))
            read.append(None)
        if value is None:
            bad.setdefault(row, Fault(code, missing, what))
    kinds = {type(value) for value in read if value is not None}
    if len(kinds) > 1:
        raise InvalidInput(f"{what}: must be all strings or all integers, not some of each")
    return pa.array(read, pa.int64() if int in kinds else pa.string())


def _plain_id(id_: Id) -> Id:
    """Return an id that may be of a class of somebody's own, as what Arrow takes."""
    return int(id_) if isinstance(id_, int) else str(id_)


def _read_times(values: Sequence[Any], name: str) -> tuple[Positions, dict[int, Fault]]:
    """Read times from values of any kind, as `read_moments` does from columns."""
    time_us, faults = np.zeros(len(values), np.int64), {}
    for row, value in enumerate(values):
        read = NO_TIME if value is None else read_moment_us(value)
        if isinstance(read, int):
            time_us[row] = read
        else:
            faults[row] = Fault(BAD_TIME, read, f"column {name!r}")
    return time_us, faults
