"""What runs inside Spark's Python workers: a matcher, made once in each, and batches of events.

Only importable names travel to a worker by reference, so this module must not need the driver.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from contrada.errors import InvalidInput
from contrada.matcher import Matcher
from contrada.matcher.run import MatchedBatch, match_record_batch
from contrada.matching.columns import Rows
from contrada.matching.segments import SubscriptionSet
from contrada.model.geometry import Fault

_ROWS_MAX = 65_536
_KEPT_BYTES_MAX = 32 * 2**20
_KEPT_MATCHERS_MAX = 2
_LONG_TYPES = (
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_string,
    pa.types.is_large_string,
)
_matchers: dict[str, SubscriptionSet] = {}


@dataclass(frozen=True, slots=True)
class Names:
    """What an answer calls the subscriptions, by rank: columns of their ids and subscribers."""

    ids: pa.Array
    subscribers: pa.Array


@dataclass(frozen=True, slots=True)
class MatchTask:
    """The function for `mapInArrow`: the subscriptions as Arrow IPC, and how to answer.

    `columns` are the names of the events' columns, in their order; what they are called in the
    batches does not matter.
    """

    subscriptions: bytes
    digest: str
    columns: tuple[str, ...]
    event_id: str
    subscription_id: str
    has_whole_ids: bool
    has_whole_subscribers: bool
    keep: tuple[str, ...]
    repair: bool
    quarantine: bool
    wants_counts: bool

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Match batches of events; the answers are of bounded size."""
        subscriptions = _subscriptions(self)
        names = name_subscriptions(self, subscriptions)
        for large in batches:
            for first in range(0, large.num_rows, _ROWS_MAX):
                batch = large.slice(first, _ROWS_MAX).rename_columns(list(self.columns))
                yield from self._answer(batch, self._match(batch, subscriptions), names)

    def _match(self, batch: pa.RecordBatch, subscriptions: SubscriptionSet) -> MatchedBatch:
        matched = match_record_batch(
            subscriptions,
            batch,
            0,
            geometry_columns=(),
            id_column=self.event_id,
            name="events",
            repair=self.repair,
        )
        if matched.events.bad and not self.quarantine:
            raise InvalidInput(_first_fault(matched))
        return matched

    def _answer(
        self, batch: pa.RecordBatch, matched: MatchedBatch, names: Names
    ) -> Iterator[pa.RecordBatch]:
        if self.wants_counts:
            good = np.setdiff1d(np.arange(batch.num_rows), list(matched.events.bad))
            counts = np.bincount(matched.rows, minlength=batch.num_rows)[good]
            yield self._batch(batch, matched, good, {"n": pa.array(counts, pa.int64())})
        else:
            for piece in _pieces(matched.rows, _kept_bytes(batch, self.keep)):
                rows, ranks = matched.rows[piece], pa.array(matched.ranks[piece])
                columns = {
                    "subscription": names.ids.take(ranks),
                    "subscriber": names.subscribers.take(ranks),
                    "version": pa.nulls(len(rows), pa.string()),
                }
                yield self._batch(batch, matched, rows, columns)
        if matched.events.bad:
            yield self._bad_rows(batch, matched)

    def _bad_rows(self, batch: pa.RecordBatch, matched: MatchedBatch) -> pa.RecordBatch:
        rows = np.array(sorted(matched.events.bad), np.int64)
        faults = [matched.events.bad[row] for row in rows.tolist()]
        columns: dict[str, pa.Array] = (
            {"n": pa.nulls(len(rows), pa.int64())}
            if self.wants_counts
            else {
                "subscription": pa.nulls(len(rows), _id_type(self.has_whole_ids)),
                "subscriber": pa.nulls(len(rows), _id_type(self.has_whole_subscribers)),
                "version": pa.nulls(len(rows), pa.string()),
            }
        )
        return self._batch(batch, matched, rows, columns, faults)

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
        return pa.RecordBatch.from_pydict(answer)


def _subscriptions(task: MatchTask) -> SubscriptionSet:
    """Give the subscriptions of a task; a worker makes them once and keeps the last few."""
    if task.digest not in _matchers:
        while len(_matchers) >= _KEPT_MATCHERS_MAX:
            del _matchers[next(iter(_matchers))]
        matcher = Matcher()
        with pa.ipc.open_stream(task.subscriptions) as reader:
            matcher.add_many(reader.read_all(), id=task.subscription_id, repair=task.repair)
        _matchers[task.digest] = matcher.freeze()
    return _matchers[task.digest]


def name_subscriptions(task: MatchTask, subscriptions: SubscriptionSet) -> Names:
    """Make the columns of names for the answers of a task."""
    return Names(
        pa.array(subscriptions.ids, _id_type(task.has_whole_ids)),
        pa.array(subscriptions.subscribers_by_rank, _id_type(task.has_whole_subscribers)),
    )


def _kept_bytes(batch: pa.RecordBatch, keep: tuple[str, ...]) -> NDArray[np.int64]:
    """Count, for each row, the bytes of texts and geometries that a match of it carries along."""
    sizes = np.zeros(batch.num_rows, np.int64)
    for name in keep:
        column = batch.column(batch.schema.get_field_index(name))
        if any(is_long(column.type) for is_long in _LONG_TYPES):
            sizes += pc.fill_null(pc.binary_length(column), 0).to_numpy(zero_copy_only=False)
    return sizes


def _pieces(rows: Rows, row_bytes: NDArray[np.int64]) -> Iterator[slice]:
    """Cut pairs into pieces of so many rows at most, and of so many bytes or little more."""
    by_bytes = np.cumsum(row_bytes[rows]) // _KEPT_BYTES_MAX
    by_rows = np.arange(len(rows)) // _ROWS_MAX
    is_start = (np.diff(by_bytes, prepend=-1) != 0) | (np.diff(by_rows, prepend=-1) != 0)
    starts = np.flatnonzero(is_start).tolist()
    for start, end in pairwise([*starts, len(rows)]):
        yield slice(start, end)


def _id_type(is_whole: bool) -> pa.DataType:
    return pa.int64() if is_whole else pa.string()


def _first_fault(matched: MatchedBatch) -> str:
    row = min(matched.events.bad)
    id_ = matched.events.ids[row].as_py()
    return f"event {id_!r}, {matched.events.bad[row].message}"


def _errors(faults: list[Fault] | None, length: int) -> pa.Array:
    names = ("code", "message", "place")
    kind = pa.struct([pa.field(name, pa.string()) for name in names])
    if faults is None:
        return pa.nulls(length, kind)
    rows = []
    for fault in faults:
        place, _, message = fault.message.partition(": ")
        rows.append({"code": fault.code, "message": message, "place": place})
    return pa.array(rows, kind)
