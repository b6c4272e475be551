"""What holds of subscriptions with transitions: their numbers, their terms, and a lasting name.

A body that is replaced gets a new number, and so do rows that are put anew. A visit goes on: it is
kept by a *key*, the id of the subscription, and with a collection the id of the row, which the next
version has as well. So a changed fence decides anew at the next position of each object, as if it
had never been another one. A subscription that ends is forgotten; one of the same id that begins
later has nothing to do with it.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from contrada.arrays import Floats, Positions, RowBits
from contrada.broker.spelt_ids import read_spelt, spell_id
from contrada.broker.transition_bodies import FenceTerms
from contrada.model.subscription import Id
from contrada.threads import once
from contrada.transitions.id_order import as_ids, find_places, ids_like, sort_order

_BETWEEN = "\0"  # an id has none


class Fence(NamedTuple):
    """A subscription, or a row of a collection, in a matcher by `number`; `key` outlives it."""

    number: int
    key: str
    terms: FenceTerms


def key_of(subscription: str, row: Id | None = None) -> str:
    """Return the key of a subscription, or of a row of a collection."""
    return subscription if row is None else f"{subscription}{_BETWEEN}{spell_id(row)}"


def subscription_of(key: str) -> str:
    """Return the id of the subscription that a key is of."""
    return key.partition(_BETWEEN)[0]


class RowFences:
    """The rows of a collection that were put together: numbers in a row, from `first` on."""

    def __init__(self, subscription: str, first: int, ids: pa.Array, terms: FenceTerms) -> None:
        """Take the ids of the rows in the order of their numbers: integers or strings."""
        self.subscription, self.first, self.terms = subscription, first, terms
        self._ids = as_ids(ids)

    def __len__(self) -> int:
        return len(self._ids)

    def by_number(self, number: int) -> Fence | None:
        """Find a row by its number."""
        if not 0 <= number - self.first < len(self._ids):
            return None
        row = self._ids[number - self.first].as_py()
        return Fence(number, key_of(self.subscription, row), self.terms)

    def by_key(self, key: str) -> Fence | None:
        """Find a row by its key."""
        subscription, _, row = key.partition(_BETWEEN)
        if subscription != self.subscription or not row:
            return None
        sorted_ids, order = self._sorted
        wanted = pa.array([read_spelt(row)])
        if pa.types.is_int64(wanted.type) != pa.types.is_int64(sorted_ids.type):
            return None
        place = int(find_places(sorted_ids, ids_like(wanted, sorted_ids))[0])
        return Fence(self.first + int(order[place]), key, self.terms) if place >= 0 else None

    @once
    def _sorted(self) -> tuple[pa.Array, Positions]:
        order = sort_order(self._ids)
        if bool((np.diff(order) == 1).all()):
            return self._ids, order
        return self._ids.take(pa.array(order)), order

    def prepare(self) -> None:
        """Sort the ids, which takes long if they are many, in the thread of whoever asks."""
        self._sorted  # noqa: B018


class FenceBook:
    """All subscriptions with transitions that hold; changed by one thread, after each change."""

    def __init__(self) -> None:
        """Begin without any."""
        self._by_number: dict[int, Fence] = {}
        self._by_key: dict[str, Fence] = {}
        self._rows: dict[str, RowFences] = {}
        self._firsts: list[int] = []
        self._ranges: list[RowFences] = []

    def __len__(self) -> int:
        return len(self._by_key) + sum(map(len, self._ranges))

    @property
    def rows(self) -> Mapping[str, RowFences]:
        """The rows of collections, by the id of the subscription."""
        return MappingProxyType(self._rows)

    def put(self, fence: Fence) -> None:
        """Let a subscription hold, in place of what it was."""
        self.remove(fence.key)
        self._by_number[fence.number] = self._by_key[fence.key] = fence

    def remove(self, subscription: str) -> None:
        """Let a subscription hold no longer, if it did."""
        old = self._by_key.pop(subscription, None)
        if old is not None:
            del self._by_number[old.number]

    def remove_all(self, subscriptions: Iterable[str]) -> None:
        """Let subscriptions and the rows of collections hold no longer, where they did."""
        had_rows = False
        for subscription in subscriptions:
            self.remove(subscription)
            had_rows |= self._rows.pop(subscription, None) is not None
        if had_rows:
            self._order()

    def put_rows(self, rows: RowFences) -> None:
        """Let rows hold, in place of those that the collection had."""
        self._rows[rows.subscription] = rows
        self._order()

    def _order(self) -> None:
        self._ranges = sorted(self._rows.values(), key=lambda rows: rows.first)
        self._firsts = [rows.first for rows in self._ranges]

    def by_number(self, number: int) -> Fence | None:
        """Find what has a number."""
        found = self._by_number.get(number)
        if found is not None or not self._firsts:
            return found
        place = bisect_right(self._firsts, number) - 1
        return self._ranges[place].by_number(number) if place >= 0 else None

    def find_terms(self, numbers: Positions) -> tuple[RowBits, Floats]:
        """Return the kinds and the hysteresis of some numbers, sorted; 0 for what is not here."""
        kinds, hysteresis_m = np.zeros(len(numbers), np.uint8), np.zeros(len(numbers))
        for rows in self._ranges:
            start, end = np.searchsorted(numbers, [rows.first, rows.first + len(rows)])
            kinds[start:end], hysteresis_m[start:end] = rows.terms.kinds, rows.terms.hysteresis_m
        for place in np.flatnonzero(kinds == 0).tolist():
            fence = self._by_number.get(int(numbers[place]))
            if fence is not None:
                kinds[place], hysteresis_m[place] = fence.terms.kinds, fence.terms.hysteresis_m
        return kinds, hysteresis_m

    def by_key(self, key: str) -> Fence | None:
        """Find what holds by a key."""
        found = self._by_key.get(key)
        if found is not None:
            return found
        rows = self._rows.get(subscription_of(key))
        return None if rows is None else rows.by_key(key)
