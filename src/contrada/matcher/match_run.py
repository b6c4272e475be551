"""Matching a long table batch by batch: in order, in bounded memory, on several threads."""

import math
import os
from collections import deque
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from contrada.arrays import Positions
from contrada.deferred import compute as pc
from contrada.errors import InvalidInput, Remedy, blaming_memory
from contrada.files import Rows
from contrada.files.shared_values import is_shared
from contrada.matching.engine import find_no_faults
from contrada.matching.ids import read_id_column
from contrada.matching.receiving import ReceivedEvents, find_remedies, receive
from contrada.matching.segments import SubscriptionSet
from contrada.matching.subscribing import HearBad
from contrada.model.event import GEOMETRY, Event, paths_of
from contrada.model.geometry import Fault, as_array
from contrada.showing import brief, listed
from contrada.threads import ProcessLock, once


class Counts:
    """Running totals of a matcher, safe to add to from any thread."""

    def __init__(self) -> None:
        """Start at zero."""
        self._lock = ProcessLock()
        self._totals = {
            "subscriptions_mended": 0,
            "subscriptions_left_out": 0,
            "events": 0,
            "events_mended": 0,
            "events_left_out": 0,
            "events_without_geometry": 0,
        }

    def add(self, **counts: int) -> None:
        """Add to totals by name."""
        with self._lock:
            for name, count in counts.items():
                self._totals[name] += count

    def as_dict(self) -> dict[str, int]:
        """Return all totals."""
        with self._lock:
            return dict(self._totals)


_PAIRS_MAX, _ROWS_MIN = 4_000_000, 64
_ID_BYTES_MAX = 64 * 2**20  # of ids that many rows share, once written out
_PIECE_BYTES_MIN = 128 * 1024  # what is less is matched before another thread has begun


@dataclass(frozen=True, slots=True)
class MatchedBatch:
    """What became of one batch: its events and the matching pairs.

    Pair i is row `rows[i]` of the batch and the subscription of rank `ranks[i]` in order of ids.
    """

    events: ReceivedEvents
    rows: Positions
    ranks: Positions


class MatchRun:
    """One pass of events over one version of the subscriptions."""

    def __init__(
        self,
        subscriptions: SubscriptionSet,
        rows: Rows,
        *,
        id_column: str | None,
        repair: bool,
        quarantine: bool,
        on_bad: HearBad | None,
        counts: Counts,
        on_done: Callable[[], object],
    ) -> None:
        """Fix what is matched against what, and how bad rows are treated."""
        self.subscriptions = subscriptions
        self.rows = rows
        self._id_column = id_column
        self.repair, self._quarantine, self._on_bad = repair, quarantine, on_bad
        self._counts = counts
        self._on_done = on_done
        self._read = list_read(subscriptions, id_column)
        self.schema = answer_schema(self._event_type(), subscriptions.id_type)

    @once
    def _ids(self) -> pa.Array:
        return self.subscriptions.ids

    def batches(self, threads: int | None) -> Iterator[pa.RecordBatch]:
        """Match batch by batch, in the order of the rows: pairs of event and subscription."""
        with blaming_memory():
            yield from map(self.as_pairs, self.matched(threads))

    def matched(self, threads: int | None) -> Iterator[MatchedBatch]:
        """Match batch by batch, in the order of the rows; `on_done` is called after the last."""
        yield from self._matched(count_threads(threads))
        self._on_done()

    def _matched(self, workers: int) -> Iterator[MatchedBatch]:
        received = self._receive_all(workers)
        if workers <= 1:
            for piece in received:
                yield self._finish(self._match(*piece))
            return
        with ThreadPoolExecutor(workers, "contrada-match") as pool:
            pending: deque[Future[MatchedBatch]] = deque()
            try:
                for piece in received:
                    pending.append(pool.submit(self._match, *piece))
                    if len(pending) > workers:
                        yield self._finish(pending.popleft().result())
                while pending:
                    yield self._finish(pending.popleft().result())
            finally:
                for future in pending:
                    future.cancel()

    def _receive_all(self, workers: int) -> Iterator[tuple[pa.RecordBatch, int, dict[int, Fault]]]:
        """Cut batches so small that the answer is bounded even for events that match everything.

        The last batch, which may be the only one, is cut into a piece for each thread as well. With
        a piece come its first row, and the rows that the file knows to be bad.
        """
        rows_max = count_rows_at_once(self.subscriptions)
        first_row = 0
        for batch, told in self.rows.judged(self._read, compact=self.rows.schema.names):
            is_last = batch.num_rows < self.rows.batch_rows
            pieces = min(workers, batch.nbytes // _PIECE_BYTES_MIN) if is_last else 1
            rows = min(rows_max, math.ceil(batch.num_rows / max(pieces, 1)))
            rows = min(rows, self._count_by_ids(batch))
            for start in range(0, batch.num_rows, rows):
                own = {row - start: told[row] for row in told if start <= row < start + rows}
                yield batch.slice(start, rows), first_row + start, own
            first_row += batch.num_rows

    def _count_by_ids(self, batch: pa.RecordBatch) -> int:
        """Return how many rows to take at once so that their ids, written out, are bounded."""
        ids = None if self._id_column is None else batch.column(self._id_column)
        if ids is None or not is_shared(ids):
            return int(batch.num_rows)
        longest = int(pc.max(pc.binary_length(ids.dictionary)).as_py() or 1)
        return max(1, _ID_BYTES_MAX // max(1, longest))

    def _event_type(self) -> pa.DataType:
        if self._id_column is None:
            return pa.int64()
        field = self.rows.schema.field(self._id_column)
        place = f"{self.rows.name}, column {self._id_column!r}"
        try:
            return read_id_column(pa.nulls(0, field.type), place).type
        except InvalidInput as error:
            raise error.with_remedies(Remedy.EVENT_ID) from None

    def as_pairs(self, matched: MatchedBatch) -> pa.RecordBatch:
        """Write the pairs of a batch as ids of events and subscriptions."""
        ranks = pa.array(matched.ranks.astype(np.int32))
        subscription = pa.DictionaryArray.from_arrays(ranks, self._ids, safe=False)
        event = matched.events.ids.take(pa.array(matched.rows))
        return pa.RecordBatch.from_arrays([event, subscription], schema=self.schema)

    def refuse_bad_before(self, row: int) -> None:
        """Refuse the first bad event, if it comes before a row; nothing is matched."""
        for batch, first_row, told in self._receive_all(1):
            if first_row >= row:
                return
            events = self._receive(batch, first_row, told)
            if events.bad and first_row + min(events.bad) < row:
                self._refuse(events)

    def _receive(
        self, batch: pa.RecordBatch, first_row: int, told: dict[int, Fault]
    ) -> ReceivedEvents:
        return receive(
            batch,
            first_row,
            geometry_attributes=self.subscriptions.geometry_attributes,
            geometry_columns=self.rows.geometry_columns,
            id_column=self._id_column,
            name=self.rows.name,
            repair=self.repair,
            find_more_faults=self.subscriptions.find_event_faults,
            told=told,
        )

    def _match(self, batch: pa.RecordBatch, first_row: int, told: dict[int, Fault]) -> MatchedBatch:
        matched = match_received(self._receive(batch, first_row, told), self.subscriptions)
        if matched.events.bad and not self._quarantine:
            self._refuse(matched.events)
        return matched

    def _refuse(self, events: ReceivedEvents) -> None:
        """Refuse the first bad row of a batch."""
        row = min(events.bad)
        fault, place = events.bad[row], self.rows.place(events.first_row + row)
        raise fault.as_error(find_remedies(fault)).within(place)

    def _finish(self, matched: MatchedBatch) -> MatchedBatch:
        """Count a batch and report its bad rows, in the order of the rows."""
        events = matched.events
        mended = {row: fault for row, fault in events.mended.items() if row not in events.bad}
        self._counts.add(
            events=events.batch.length,
            events_mended=len(mended),
            events_left_out=len(events.bad),
            events_without_geometry=events.count_without_geometry(),
        )
        if self._on_bad is not None:
            reasons = {row: (fault.message, True) for row, fault in mended.items()}
            reasons |= {row: (str(fault), False) for row, fault in events.bad.items()}
            for row in sorted(reasons):
                self._on_bad(events.first_row + row, events.ids[row].as_py(), *reasons[row])
        return matched


def count_threads(threads: int | None) -> int:
    """Return the number of threads that was asked for, or one for each core."""
    if threads is None:
        return os.cpu_count() or 1
    if not isinstance(threads, int) or threads < 1:
        raise InvalidInput(f"threads must be a number >= 1, not {brief(threads)}")
    return threads


def match_received(events: ReceivedEvents, subscriptions: SubscriptionSet) -> MatchedBatch:
    """Match events that are decoded; bad rows match nothing."""
    rows, ranks = subscriptions.match_batch(events.batch)
    if events.bad:
        is_good = ~np.isin(rows, list(events.bad))
        rows, ranks = rows[is_good], ranks[is_good]
    return MatchedBatch(events, rows, ranks)


def count_rows_at_once(subscriptions: SubscriptionSet) -> int:
    """Return how many events to match at once, so that even those that match all are bounded."""
    return max(_ROWS_MIN, _PAIRS_MAX // max(1, subscriptions.breadth()))


def judged(event: Event, subscriptions: SubscriptionSet) -> Event:
    """Read the geometries of an event that a subscription will ask for; refuse bad ones.

    What no subscription reads as a geometry is not judged.
    """
    names = subscriptions.geometry_attributes
    event = event.settled(names)
    if subscriptions.find_event_faults is find_no_faults:
        return event
    for name in names:
        geometry = event.geometry(name)
        if geometry is None:
            continue
        fault = subscriptions.find_event_faults(as_array([geometry])).get(0)
        if fault is not None:
            raise replace(fault, place=f"{event.place}, attribute {name!r}").as_error()
    return event


def answer_schema(event_type: pa.DataType, subscription_type: pa.DataType) -> pa.Schema:
    """Return the columns of pairs, given the types of ids."""
    return pa.schema(
        [
            pa.field("event", event_type, nullable=False),
            pa.field("subscription", pa.dictionary(pa.int32(), subscription_type), nullable=False),
        ]
    )


def choose_id_column(rows: Rows, wanted: str | None, remedy: Remedy) -> str | None:
    """Choose the column of ids: the one that is named, else `id` if there is one.

    `remedy` is the option that names it.
    """
    names = rows.schema.names
    read_column_name(wanted)
    if wanted is not None and wanted not in names:
        raise InvalidInput(
            f"{rows.name}: there is no column {wanted!r} for the id; it has {listed(names)}",
            remedies=[remedy],
        )
    return wanted if wanted is not None else "id" if "id" in names else None


def read_column_name(wanted: str | None) -> None:
    """Refuse what cannot name a column of ids."""
    if wanted is not None and not isinstance(wanted, str):
        raise InvalidInput(f"id must be the name of a column, not {brief(wanted)}")


def narrow_to_read(
    rows: Rows,
    subscriptions: SubscriptionSet,
    id_column: str | None,
    kept: Collection[str] = (),
) -> Rows:
    """Leave of the rows the id, what constraints name, what is kept, and the primary geometry."""
    attributes = {GEOMETRY, *rows.geometry_columns[:1], *subscriptions.attributes, *kept}
    if id_column is not None:
        attributes.add(id_column)
    wanted = {path for name in attributes for path in paths_of(name)}
    return rows.narrowed([name for name in rows.schema.names if name in wanted], attributes)


def list_read(subscriptions: SubscriptionSet, id_column: str | None) -> frozenset[str]:
    """List the columns in which a bad cell makes a bad event: the id, and what constraints name."""
    named = {path for name in subscriptions.attributes for path in paths_of(name)}
    return frozenset(named if id_column is None else {*named, id_column})
