"""What turns messages of Kafka into rows, inside Spark's Python workers: one row for each.

A bad message is a row, too: `__fault` has what is wrong with it, and `__message` what came, so that
it can be put aside as it was. The same column has the message of every row that may turn out bad
when its geometry is judged, which is any but a plain point.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from contrada.arrays import Mask
from contrada.files.arrow_types import is_text
from contrada.files.declared_columns import DeclaredColumn, judge_wkb
from contrada.files.geojson_wkb import encode_geojson
from contrada.matching.columns import find_points
from contrada.model.event import GEOMETRY
from contrada.model.geometry import BAD_CELL, Fault
from contrada.model.unicode import is_unicode
from contrada.showing import brief
from contrada.spark.frames import FAULT_TYPE, SOURCE_FAULT, SOURCE_MESSAGE
from contrada.spark.handshake import Handshake
from contrada.spark.kafka_headers import pack_headers
from contrada.spark.kafka_reading import ID, ReadMessages, read_messages
from contrada.spark.task_errors import noting_errors

CLOUD_NAME = "__name"  # source and id of a CloudEvent, by which doubles are told
SOURCE_COLUMNS = ("key", "value", "headers", "partition", "offset")
MESSAGE_TYPE = pa.struct(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", pa.binary()),  # packed
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
    ]
)


@dataclass(frozen=True, slots=True)
class DecodeTask:
    """The function for `mapInArrow` that reads messages of a topic, in `SOURCE_COLUMNS`.

    `attributes` are the declared ones without the id, which is text unless `has_whole_ids`.
    `place` and `time` name columns for where and when the broker has a message; `time` comes in
    last. With `names_events` a column says what names a row, so that doubles can be dropped.
    """

    handshake: Handshake
    topic: str
    format: str
    attributes: tuple[pa.Field, ...]
    has_whole_ids: bool
    place: str | None = None
    time: str | None = None
    names_events: bool = False

    @noting_errors
    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Decode batches; each has as many rows as came in."""
        self.handshake.check()
        for batch in batches:
            if batch.num_rows:
                yield self.decode(batch)

    def decode(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Decode one batch."""
        texts = {field.name: is_text(field.type) for field in self.attributes}
        texts[ID] = not self.has_whole_ids
        read = read_messages(batch.column("value"), batch.column("headers"), self.format, texts)
        places = self._join_places(batch)
        columns = {ID: self._read_ids(read, places)}
        shapes = []
        for field in self.attributes:
            columns[field.name], faults = DeclaredColumn(field).read(read.attributes[field.name])
            _add(read.faults, faults)
            if pa.types.is_binary(field.type):
                shapes.append(columns[field.name])
        columns[GEOMETRY], faults = _read_geometries(read.geometries)
        _add(read.faults, faults)
        if self.place is not None:
            columns[self.place] = places
        if self.time is not None:
            columns[self.time] = batch.column(len(SOURCE_COLUMNS))
        columns[SOURCE_FAULT] = _write_faults(read.faults, places)
        columns[SOURCE_MESSAGE] = self._keep_messages(
            batch, read.faults, [columns[GEOMETRY], *shapes]
        )
        if self.names_events:
            columns[CLOUD_NAME] = _name_events(read, places)
        return pa.RecordBatch.from_pydict(columns)

    def _read_ids(self, read: ReadMessages, places: pa.Array) -> pa.Array:
        """Make the column of ids: a message's own, or else its place, unless they are integers."""
        if self.has_whole_ids:
            ids, faults = DeclaredColumn(pa.field(ID, pa.int64(), nullable=False)).read(read.ids)
            _add(read.faults, faults)
            return ids
        if read.ids.count(None) == len(read.ids):
            return places
        texts: list[str | None] = []
        for row, id_ in enumerate(read.ids):
            text = _write_id(id_)
            if text is None and id_ is not None:
                fault = Fault(BAD_CELL, f"{brief(id_)} is not a text or a number", f"column {ID!r}")
                _add(read.faults, {row: fault})
            texts.append(text)
        return pc.coalesce(pa.array(texts, pa.string()), places)

    def _join_places(self, batch: pa.RecordBatch) -> pa.Array:
        """Name each message by its topic, partition and offset: `positions/3/41`."""
        numbers = (batch.column(name).cast(pa.string()) for name in ("partition", "offset"))
        return pc.binary_join_element_wise(pa.scalar(self.topic), *numbers, "/")

    def _keep_messages(
        self, batch: pa.RecordBatch, faults: dict[int, Fault], shapes: list[pa.Array]
    ) -> pa.Array:
        """Keep the messages of rows that are bad or may turn out so; the others are null."""
        is_kept = np.logical_or.reduce([_may_be_bad(array) for array in shapes])
        is_kept[list(faults)] = True
        if not is_kept.any():
            return pa.nulls(batch.num_rows, MESSAGE_TYPE)
        # Taken, not masked: else the bytes under a null would travel, too.
        at = pa.array(np.arange(batch.num_rows), mask=~is_kept)
        taken = {name: batch.column(name).take(at) for name in SOURCE_COLUMNS}
        packed = [pack_headers(headers) for headers in taken["headers"].to_pylist()]
        taken["headers"] = pa.array(packed, pa.binary())
        taken["topic"] = pa.repeat(self.topic, batch.num_rows)
        columns = [taken[field.name].cast(field.type) for field in MESSAGE_TYPE]
        return pa.StructArray.from_arrays(columns, fields=[*MESSAGE_TYPE], mask=pa.array(~is_kept))


@dataclass(frozen=True, slots=True)
class DecodedColumns:
    """The function for `mapInArrow` that reads messages, and yields only the columns wanted.

    A column that messages have and events do not is handed on as it is.
    """

    decoding: DecodeTask
    names: tuple[str, ...]

    @noting_errors
    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Decode batches; each has as many rows as came in."""
        for batch in batches:
            if batch.num_rows:
                decoded = self.decoding.decode(batch)
                known = set(decoded.schema.names)
                arrays = [(decoded if n in known else batch).column(n) for n in self.names]
                yield pa.RecordBatch.from_arrays(arrays, list(self.names))


def _add(faults: dict[int, Fault], more: Mapping[int, Fault]) -> None:
    """Add faults of rows that have none yet."""
    for row, fault in more.items():
        faults.setdefault(row, fault)


def _write_id(id_: Any) -> str | None:
    """Write an id as text; None where it is none."""
    if isinstance(id_, str):
        return id_ if is_unicode(id_) else None
    is_number = isinstance(id_, int | float) and not isinstance(id_, bool)
    return repr(id_) if is_number else None


def _read_geometries(values: list[Any] | pa.Array) -> tuple[pa.Array, dict[int, Fault]]:
    if isinstance(values, list):
        encoded = [
            value if value is None or isinstance(value, bytes) else encode_geojson(value)
            for value in values
        ]
        values = pa.array(encoded, pa.binary())
    return judge_wkb(values, GEOMETRY)


def _write_faults(faults: dict[int, Fault], places: pa.Array) -> pa.Array:
    if not faults:
        return pa.nulls(len(places), FAULT_TYPE)
    rows: list[dict[str, str] | None] = [None] * len(places)
    for row, fault in faults.items():
        inside = f", {fault.place}" if fault.place else ""
        place = f"{places[row].as_py()}{inside}"
        rows[row] = {"code": fault.code, "message": fault.message, "place": place}
    return pa.array(rows, FAULT_TYPE)


def _may_be_bad(array: pa.Array) -> Mask:
    """Find geometries that are not plain points of finite coordinates."""
    x, y = np.full((2, len(array)), np.nan)
    is_plain = find_points(array, x, y) & np.isfinite(x) & np.isfinite(y)
    return np.asarray(array.is_valid().to_numpy(zero_copy_only=False) & ~is_plain, bool)


def _name_events(read: ReadMessages, places: pa.Array) -> pa.Array:
    """Name good CloudEvents by source and id, and every other row by its own place."""
    names: list[str | None] = [None] * len(places)
    for row, name in read.names.items():
        if row not in read.faults:
            names[row] = name
    own = pc.binary_join_element_wise(pa.scalar(""), places, "/")  # no name begins with a slash
    return pc.coalesce(pa.array(names, pa.string()), own)
