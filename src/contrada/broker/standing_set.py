"""The subscriptions that hold, as the committer sees them: a matcher whose ids are numbers.

The number of a subscription is that of the version of its body, or with a collection one of a range
that its rows have; numbers are never given out twice. Whose each is lies beside, by number.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from contrada.arrays import Positions
from contrada.files.geojson_wkb import encode_geojson
from contrada.matcher.facade import Matcher
from contrada.matcher.inside import exchange, freeze
from contrada.matcher.match_run import count_rows_at_once, match_received
from contrada.matcher.packed_rows import PackedRows
from contrada.matcher.ready_rows import ReadyRows, remove_range
from contrada.matcher.removing import remove_numbers
from contrada.matching.receiving import ReceivedEvents, receive
from contrada.matching.segments import SubscriptionSet
from contrada.model.event import GEOMETRY
from contrada.model.row_columns import ROW_COLUMNS, Holds
from contrada.model.subscription import Predicate, Subscription

_NOBODY = -1
_ROWS_AT_ONCE = 100_000


class StandingRow(NamedTuple):
    """A subscription that holds: its number and id, its subscriber's number, and its body."""

    number: int
    id: str
    subscriber: int
    body: Mapping[str, Any]

    @property
    def has_predicate(self) -> bool:
        """Whether it is found by itself, not by its rows."""
        return "filter" in self.body or GEOMETRY in self.body

    @property
    def has_transitions(self) -> bool:
        """Whether objects are followed through it."""
        return "transitions" in self.body


class NumberTable:
    """A whole number for each of many numbers that grow."""

    def __init__(self, empty: int) -> None:
        """Begin with nothing."""
        self._empty = empty
        self._values: NDArray[np.int64] = np.full(1_024, empty, np.int64)

    def put(self, first: int, count: int, value: int) -> None:
        """Set the value of some numbers in a row."""
        self._reserve(first + count)
        self._values[first : first + count] = value

    def put_many(self, numbers: Positions, values: Positions | int) -> None:
        """Set the values of some numbers."""
        if len(numbers):
            self._reserve(int(numbers.max()) + 1)
            self._values[numbers] = values

    def take(self, numbers: Positions) -> Positions:
        """Return the values of numbers that were set."""
        return self._values[numbers]

    def get(self, number: int) -> int:
        """Return the value of a number, set or not."""
        return int(self._values[number]) if number < len(self._values) else self._empty

    def _reserve(self, count: int) -> None:
        if count > len(self._values):
            grown = np.full(max(count, 2 * len(self._values)), self._empty, np.int64)
            grown[: len(self._values)] = self._values
            self._values = grown


class StandingSet:
    """A matcher over numbers, and whose they are; changed by one thread, read by any."""

    def __init__(self, matcher: Matcher | None = None) -> None:
        """Begin without subscriptions, or with those of a matcher that was saved."""
        self.matcher = Matcher() if matcher is None else matcher
        self.subscribers = NumberTable(_NOBODY)
        if matcher is not None:
            columns = freeze(matcher).living()
            numbers = columns.ids.array.to_numpy()
            whose = columns.subscribers.take(np.arange(len(columns)))
            is_known = whose.codes >= 0  # rows of collections are nobody's in a snapshot
            self.subscribers.put_many(numbers[is_known], whose.wholes[whose.codes[is_known]])

    def put(self, number: int, subscriber: int, predicate: Predicate) -> None:
        """Let a subscription hold."""
        self.subscribers.put(number, 1, subscriber)
        exchange(self.matcher, [], [Subscription(number, predicate, subscriber)], "put")

    def remove(self, numbers: Sequence[int]) -> None:
        """Let subscriptions hold no longer, all at once; those that do not are passed over."""
        if len(numbers) == 1:  # for which there is a shorter way
            exchange(self.matcher, numbers, [], "delete")
        elif numbers:
            remove_numbers(self.matcher, numbers)

    def make_ready(self, path: Path, first: int, replaced: range) -> ReadyRows:
        """Index the rows of a packed file, which takes seconds for a million; in any thread."""
        return ReadyRows(self.matcher, PackedRows.open(path, first=first), replaced)

    def put_rows(self, ready: ReadyRows, subscriber: int, old: range) -> None:
        """Let the rows of a collection hold, in place of those it had."""
        self.subscribers.put(ready.range.start, len(ready.range), subscriber)
        ready.put(old)

    def remove_rows(self, old: range) -> None:
        """Let the rows of a collection hold no longer."""
        remove_range(self.matcher, old)

    def load(self, rows: Iterable[StandingRow]) -> None:
        """Let very many subscriptions hold that were judged when they were put."""
        for table in _make_tables(rows):
            numbers = table["id"].to_numpy()
            self.subscribers.put_many(numbers, table["subscriber"].to_numpy())
            self.matcher.add_many(table)

    def freeze(self) -> SubscriptionSet:
        """Return the subscriptions as they are now."""
        return freeze(self.matcher)


def _make_tables(rows: Iterable[StandingRow]) -> Iterator[pa.Table]:
    """Make tables of subscription rows from bodies."""
    columns: dict[str, list[Any]] = {}

    def begin() -> None:
        columns.update({column.name: [] for column in ROW_COLUMNS})

    begin()
    for row in rows:
        body = row.body
        own = {"id": row.number, "subscriber": row.subscriber}
        for column in ROW_COLUMNS:
            value = own.get(column.name, body.get(column.name))
            columns[column.name].append(_write_cell(column.holds, value))
        if len(columns["id"]) >= _ROWS_AT_ONCE:
            yield _make_table(columns)
            begin()
    if columns["id"]:
        yield _make_table(columns)


def _write_cell(holds: Holds, value: Any) -> Any:
    """Write a member of a body as a cell of a table."""
    if value is None or holds is Holds.ID:
        return value
    if holds is Holds.SHAPE:
        return encode_geojson(value)
    return value if isinstance(value, str) else json.dumps(value)


def _make_table(columns: dict[str, list[Any]]) -> pa.Table:
    kinds = {"id": pa.int64(), "subscriber": pa.int64(), GEOMETRY: pa.binary()}
    return pa.table(
        {name: pa.array(values, kinds.get(name, pa.string())) for name, values in columns.items()}
    )


def receive_events(rows: pa.RecordBatch, subscriptions: SubscriptionSet) -> ReceivedEvents:
    """Decode what subscriptions read of events, and judge it."""
    return receive(
        rows,
        0,
        geometry_attributes=subscriptions.geometry_attributes,
        geometry_columns=[GEOMETRY] if GEOMETRY in rows.schema.names else [],
        id_column=None,
        name="events",
        repair=False,
        find_more_faults=subscriptions.find_event_faults,
    )


def match_events(
    events: ReceivedEvents, subscriptions: SubscriptionSet
) -> tuple[Positions, Positions]:
    """Find all pairs of event and subscription, as rows and numbers, in that order."""
    matched = match_received(events, subscriptions)
    if not len(matched.rows):
        return matched.rows, matched.ranks
    ids = subscriptions.ids.to_numpy()
    return matched.rows, ids[matched.ranks]


def rows_at_once(subscriptions: SubscriptionSet) -> int:
    """Return how many events to match at once, so that even those that match all are bounded."""
    return count_rows_at_once(subscriptions)
