"""Answers as record batches of bounded size: pairs, counts, bad rows, and what a task has done."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from contrada.arrays import Positions
from contrada.matcher.match_run import MatchedBatch
from contrada.matching.receiving import ReceivedEvents
from contrada.matching.segments import SubscriptionSet
from contrada.model.geometry import Fault
from contrada.spark.version_names import number_version

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructField, StructType

ROWS_MAX = 65_536
TALLY = "__tally"  # the column of what a task has done; it never leaves `match`
_KEPT_BYTES_MAX = 32 * 2**20
_LONG_TYPES = (
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_string,
    pa.types.is_large_string,
)
DONE = ("evaluated", "set_aside", "mended", "without_geometry")
_TALLY = pa.struct([(name, pa.int64()) for name in (*DONE, "version")])
_ERROR_FIELDS = ("code", "message", "place")


@dataclass(frozen=True, slots=True)
class AnswerNames:
    """What an answer calls the subscriptions: columns of ids and subscribers by rank, a version."""

    ids: pa.Array
    subscribers: pa.Array
    version: str | None = None

    @property
    def nbytes(self) -> int:
        """Count the bytes of both columns."""
        return int(self.ids.nbytes + self.subscribers.nbytes)


@dataclass(slots=True)
class TaskTally:
    """What a task has done: the events that it evaluated and set aside.

    Among the evaluated are those that were mended, and those without a geometry. `version` is that
    of the subscriptions that they met, as a number; None where these came as a DataFrame.
    """

    evaluated: int = 0
    set_aside: int = 0
    mended: int = 0
    without_geometry: int = 0
    version: int | None = None

    @classmethod
    def begin(cls, version: str | None) -> "TaskTally":
        """Begin with the name of a version, if there is one."""
        return cls(version=None if version is None else number_version(version))

    def add(self, events: ReceivedEvents) -> None:
        """Count the events of a batch."""
        self.evaluated += events.batch.length - len(events.bad)
        self.set_aside += len(events.bad)
        self.mended += len(events.mended.keys() - events.bad.keys())
        self.without_geometry += events.count_without_geometry()


@dataclass(frozen=True, slots=True)
class AnswerShape:
    """Which columns an answer has, and of which types."""

    keep: tuple[str, ...]
    quarantine: bool
    wants_counts: bool
    has_whole_ids: bool
    has_whole_subscribers: bool

    def name(self, subscriptions: SubscriptionSet, version: str | None = None) -> AnswerNames:
        """Make the columns of names for a version of a set of subscriptions."""
        return AnswerNames(
            subscriptions.ids.cast(_id_type(self.has_whole_ids)),
            subscriptions.subscriber_column(_id_type(self.has_whole_subscribers)),
            version,
        )

    @property
    def id_type(self) -> pa.DataType:
        """The type of subscriptions' ids."""
        return _id_type(self.has_whole_ids)

    def schema(self, event_type: "DataType", kept: "Sequence[StructField]") -> "StructType":
        """Describe the answer to Spark, the tally of a task included.

        What a kept column states of itself it states in the answer too, such as its `crs`.
        """
        from pyspark.sql import types

        field = types.StructField
        kinds = {True: types.LongType(), False: types.StringType()}
        fields = [field("event", event_type)]
        if self.wants_counts:
            fields.append(field("n", types.LongType()))
        else:
            fields += [
                field("subscription", kinds[self.has_whole_ids]),
                field("subscriber", kinds[self.has_whole_subscribers]),
                field("version", types.StringType()),
            ]
        fields += [field(item.name, item.dataType, metadata=item.metadata) for item in kept]
        if self.quarantine:
            texts = [field(name, types.StringType()) for name in _ERROR_FIELDS]
            fields.append(field("error", types.StructType(texts)))
        done = [field(name, types.LongType()) for name in (*DONE, "version")]
        return types.StructType([*fields, field(TALLY, types.StructType(done))])

    def answer(
        self,
        batch: pa.RecordBatch,
        matched: MatchedBatch,
        names: AnswerNames | None,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the pairs of a batch, or the number of matches of each good row."""
        if self.wants_counts:
            good = matched.events.good_rows()
            counts = np.bincount(matched.rows, minlength=batch.num_rows)[good]
            yield self._batch(batch, matched, good, {"n": pa.array(counts, pa.int64())})
            return
        assert names is not None
        for piece in self.pieces(batch, matched):
            rows, ranks = matched.rows[piece], pa.array(matched.ranks[piece])
            columns = {
                "subscription": names.ids.take(ranks),
                "subscriber": names.subscribers.take(ranks),
                "version": pa.repeat(pa.scalar(names.version, pa.string()), len(rows)),
            }
            yield self._batch(batch, matched, rows, columns)

    def pieces(self, batch: pa.RecordBatch, matched: MatchedBatch) -> Iterator[slice]:
        """Cut the pairs of a batch so that each piece makes an answer of bounded size."""
        return _pieces(matched.rows, _kept_bytes(batch, self.keep))

    def blank(
        self, batch: pa.RecordBatch, matched: MatchedBatch, rows: Positions
    ) -> pa.RecordBatch:
        """Return rows that name their event and hold nothing else."""
        return self._batch(batch, matched, rows, self._nothing(len(rows)))

    def bad(
        self, batch: pa.RecordBatch, matched: MatchedBatch, rows: Positions
    ) -> Iterator[pa.RecordBatch]:
        """Yield the bad rows with what is wrong with each."""
        if not len(rows):
            return
        faults = [matched.events.bad[row] for row in rows.tolist()]
        yield self._batch(batch, matched, rows, self._nothing(len(rows)), faults)

    def tally(
        self, event_type: pa.DataType, kept: Sequence[pa.DataType], done: "TaskTally"
    ) -> pa.RecordBatch:
        """Return the last row of a task: what it has done."""
        answer = {"event": pa.nulls(1, event_type), **self._nothing(1)}
        answer |= {name: pa.nulls(1, kind) for name, kind in zip(self.keep, kept, strict=True)}
        if self.quarantine:
            answer["error"] = _errors(None, 1)
        answer[TALLY] = pa.array([asdict(done)], _TALLY)
        return pa.RecordBatch.from_pydict(answer)

    def _nothing(self, length: int) -> dict[str, pa.Array]:
        if self.wants_counts:
            return {"n": pa.nulls(length, pa.int64())}
        return {
            "subscription": pa.nulls(length, _id_type(self.has_whole_ids)),
            "subscriber": pa.nulls(length, _id_type(self.has_whole_subscribers)),
            "version": pa.nulls(length, pa.string()),
        }

    def _batch(
        self,
        batch: pa.RecordBatch,
        matched: MatchedBatch,
        rows: Any,
        columns: dict[str, pa.Array],
        faults: list[Fault] | None = None,
    ) -> pa.RecordBatch:
        """Put the answer for some rows together, in the order of the output's columns."""
        at = pa.array(rows, pa.int64())
        answer = {"event": matched.events.ids.take(at), **columns}
        for name in self.keep:
            answer[name] = batch.column(batch.schema.get_field_index(name)).take(at)
        if self.quarantine:
            answer["error"] = _errors(faults, len(rows))
        answer[TALLY] = pa.nulls(len(rows), _TALLY)
        return pa.RecordBatch.from_pydict(answer)


def _kept_bytes(batch: pa.RecordBatch, keep: tuple[str, ...]) -> NDArray[np.int64]:
    """Count, for each row, the bytes of texts and geometries that a match of it carries along."""
    sizes = np.zeros(batch.num_rows, np.int64)
    for name in keep:
        column = batch.column(batch.schema.get_field_index(name))
        if any(is_long(column.type) for is_long in _LONG_TYPES):
            sizes += pc.fill_null(pc.binary_length(column), 0).to_numpy(zero_copy_only=False)
    return sizes


def _pieces(rows: Positions, row_bytes: NDArray[np.int64]) -> Iterator[slice]:
    """Cut pairs into pieces of so many rows at most, and of so many bytes or little more."""
    by_bytes = np.cumsum(row_bytes[rows]) // _KEPT_BYTES_MAX
    by_rows = np.arange(len(rows)) // ROWS_MAX
    is_start = (np.diff(by_bytes, prepend=-1) != 0) | (np.diff(by_rows, prepend=-1) != 0)
    starts = np.flatnonzero(is_start).tolist()
    for start, end in pairwise([*starts, len(rows)]):
        yield slice(start, end)


def _id_type(is_whole: bool) -> pa.DataType:
    return pa.int64() if is_whole else pa.string()


def _errors(faults: list[Fault] | None, length: int) -> pa.Array:
    kind = pa.struct([pa.field(name, pa.string()) for name in _ERROR_FIELDS])
    if faults is None:
        return pa.nulls(length, kind)
    rows = [{"code": f.code, "message": f.message, "place": f.place} for f in faults]
    return pa.array(rows, kind)
