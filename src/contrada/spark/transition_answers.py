"""Transitions as record batches of bounded size: rows, bad positions, and what a task has done."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING

import pyarrow as pa

from contrada.model.geometry import Fault
from contrada.spark.answering import DONE, ROWS_MAX, TALLY
from contrada.spark.frames import FAULT_TYPE, SOURCE_MESSAGE
from contrada.spark.kafka_decoding import MESSAGE_TYPE
from contrada.transitions.transition_rows import TRANSITION_COLUMNS, TransitionRows

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

TRANSITION = "transition"
_ERROR = "error"
_TIME = pa.timestamp("us", "UTC")


@dataclass(slots=True)
class FollowTally:
    """What a task has done with positions: those that it took in and set aside, and their objects.

    Of the `evaluated`, which came in, and the `waited`, which were held before, each was applied,
    late, repeated, without a geometry, or is held. `objects`, `visits` and `state_bytes` are what
    is remembered after them.
    """

    evaluated: int = 0
    set_aside: int = 0
    mended: int = 0
    without_geometry: int = 0
    waited: int = 0
    applied: int = 0
    late: int = 0
    repeated: int = 0
    held: int = 0
    objects: int = 0
    visits: int = 0
    state_bytes: int = 0
    version: str | None = None

    def as_line(self) -> str:
        """Write it as a line of JSON, as `TALLY_DDL` reads it."""
        return json.dumps(asdict(self))


FOLLOWED = tuple(field.name for field in fields(FollowTally))[:-1]
assert FOLLOWED[: len(DONE)] == DONE
_TALLY = pa.struct([*((name, pa.int64()) for name in FOLLOWED), ("version", pa.string())])
TALLY_DDL = ", ".join([*(f"{name} bigint" for name in FOLLOWED), "version string"])


@dataclass(frozen=True, slots=True)
class TransitionShape:
    """Which types the columns of an answer have: integers, or texts; and whether it has errors.

    With `has_messages` a bad position has the message that it came as.
    """

    has_whole_objects: bool
    has_whole_ids: bool
    has_whole_subscribers: bool
    has_whole_events: bool
    quarantine: bool
    has_messages: bool

    @property
    def schema(self) -> pa.Schema:
        """The columns of an answer."""
        text = pa.string()
        kinds = {
            "object": _id_type(self.has_whole_objects),
            "subscription": _id_type(self.has_whole_ids),
            "subscriber": _id_type(self.has_whole_subscribers),
            "time": _TIME,
            "event": _id_type(self.has_whole_events),
        }
        columns = [(name, kinds.get(name, text)) for name in TRANSITION_COLUMNS]
        if self.quarantine and self.has_messages:
            columns.append((SOURCE_MESSAGE, MESSAGE_TYPE))
        if self.quarantine:
            columns.append((_ERROR, FAULT_TYPE))
        return pa.schema(columns)

    @property
    def spark_schema(self) -> "StructType":
        """The same for Spark."""
        from pyspark.sql.pandas.types import from_arrow_schema
        from pyspark.sql.types import StructType, TimestampType

        found = from_arrow_schema(self.schema)
        for field in found:
            if field.name == "time":
                field.dataType = TimestampType()
        return StructType(found.fields)

    @property
    def counted_spark_schema(self) -> "StructType":
        """The same with what a task has done beside it."""
        from pyspark.sql.pandas.types import from_arrow_type

        return self.spark_schema.add(TALLY, from_arrow_type(_TALLY))

    def answer(self, rows: TransitionRows, *, is_encoded: bool = False) -> Iterator[pa.RecordBatch]:
        """Yield rows of transitions in pieces, each dictionary-encoded on its own if asked for."""
        for piece in rows.pieces(ROWS_MAX):
            table = piece.table(is_encoded=is_encoded)
            yield self._batch({name: table.column(name) for name in TRANSITION_COLUMNS}, len(piece))

    def bad(
        self, ids: pa.Array, faults: Sequence[Fault], messages: pa.Array | None
    ) -> pa.RecordBatch:
        """Return bad positions, with what is wrong with each."""
        told = [{"code": f.code, "message": f.message, "place": f.place} for f in faults]
        columns = {"event": ids, _ERROR: pa.array(told, FAULT_TYPE)}
        if messages is not None and self.has_messages:
            columns[SOURCE_MESSAGE] = messages
        return self._batch(columns, len(ids))

    def spread(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch in which nothing is dictionary-encoded."""
        pairs = zip(batch.columns, self.schema, strict=True)
        columns = [c if c.type == field.type else c.cast(field.type) for c, field in pairs]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def counted(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch with the column of what a task has done, in which is nothing."""
        return self.spread(batch).append_column(TALLY, pa.nulls(batch.num_rows, _TALLY))

    def tally(self, done: FollowTally) -> pa.RecordBatch:
        """Return the last row of a task: what it has done."""
        return self._batch({}, 1).append_column(TALLY, pa.array([asdict(done)], _TALLY))

    def _batch(self, columns: dict[str, pa.Array], length: int) -> pa.RecordBatch:
        """Put columns in their order, and nothing where there is none."""
        arrays = []
        for field in self.schema:
            column = columns.get(field.name)
            column = pa.nulls(length, field.type) if column is None else column
            if isinstance(column, pa.ChunkedArray):
                column = column.combine_chunks()
            is_as_meant = column.type == field.type or pa.types.is_dictionary(column.type)
            arrays.append(column if is_as_meant else column.cast(field.type))
        return pa.RecordBatch.from_arrays(arrays, names=self.schema.names)


def _id_type(is_whole: bool) -> pa.DataType:
    return pa.int64() if is_whole else pa.string()
