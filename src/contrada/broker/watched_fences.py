"""Fences that objects are near to, or cross: found from one version of the set to the next.

To make the fences of a whole version takes time for all of them, and versions come often. So those
of an earlier version are kept, and beside them the few that are new; a body that is replaced has a
new number, and what is gone is left out of what is found.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from contrada.arrays import Floats, Mask, Positions
from contrada.broker.fence_book import FenceBook
from contrada.matching.columns import EventBatch
from contrada.matching.fence_sets import Choose, FenceSets, NearFences, PairArrays
from contrada.matching.segments import SubscriptionSet
from contrada.matching.subscription_columns import SubscriptionColumns, pack_subscriptions
from contrada.threads import once
from contrada.transitions.followed import CROSS_KIND

_NEW_MIN, _NEW_SHARE = 256, 8  # more new ones than both allow, and all are made anew

ChooseNumbers = Callable[[Positions, Positions], Mask]  # of pairs of row and number
NumberPairs = tuple[Positions, Positions]  # rows, and the number of a fence for each


@dataclass(frozen=True, eq=False)
class _FenceGroup:
    """Some fences by number, sorted, and how far around each counts as near."""

    numbers: Positions
    fences: FenceSets
    hysteresis_m: Floats

    @once
    def near(self) -> NearFences:
        return self.fences.near(self.hysteresis_m)

    def by_rank(self, choose: ChooseNumbers) -> Choose:
        return lambda rows, ranks: choose(rows, self.numbers[ranks])

    def named(self, found: PairArrays) -> NumberPairs:
        return found.rows, self.numbers[found.ranks]


class WatchedFences:
    """The subscriptions that ask for crossings or have a hysteresis, in groups."""

    def __init__(self) -> None:
        """Begin without a version."""
        self._seen: SubscriptionSet | None = None
        self._living: Positions = np.zeros(0, np.int64)
        self._base: Positions = self._living  # all numbers that the large group was chosen from
        self._large: list[_FenceGroup] = []
        self._small: list[_FenceGroup] = []

    def look_at(self, subscriptions: SubscriptionSet, book: FenceBook) -> None:
        """Take a version up."""
        if subscriptions is self._seen:
            return
        ids = subscriptions.ids
        numbers = ids.to_numpy() if len(ids) else self._living[:0]
        living = numbers[subscriptions.living_ranks() >= 0]
        new = np.setdiff1d(living, self._base, assume_unique=True)
        if len(new) > max(_NEW_MIN, len(self._base) // _NEW_SHARE):
            self._large = _make_group(living, book, lambda chosen: _take(subscriptions, chosen))
            self._base, new = living, living[:0]
        self._small = _make_group(new, book, lambda chosen: _get(subscriptions, chosen))
        self._seen, self._living = subscriptions, living

    def find_met(self, events: EventBatch, ways: Floats, choose: ChooseNumbers) -> NumberPairs:
        """Find the pairs of row and fence that the way to the row meets; NaN is no way."""
        found = [
            group.named(group.fences.find_met(events, ways, group.by_rank(choose)))
            for group in (*self._large, *self._small)
        ]
        return self._only_living(found)

    def find_near(self, events: EventBatch, choose: ChooseNumbers) -> NumberPairs:
        """Find the pairs of row and fence where the row is within the hysteresis of the fence."""
        found = [
            group.named(group.near.find(events, group.by_rank(choose)))
            for group in (*self._large, *self._small)
            if group.hysteresis_m.any()
        ]
        return self._only_living(found)

    def _only_living(self, found: list[NumberPairs]) -> NumberPairs:
        none = np.zeros(0, np.int64)
        rows = np.concatenate([none, *(rows for rows, _ in found)])
        numbers = np.concatenate([none, *(numbers for _, numbers in found)])
        if not len(self._living):
            return none, none
        places = np.minimum(np.searchsorted(self._living, numbers), len(self._living) - 1)
        is_living = self._living[places] == numbers
        return rows[is_living], numbers[is_living]


def _make_group(
    numbers: Positions, book: FenceBook, columns_of: Callable[[Positions], SubscriptionColumns]
) -> list[_FenceGroup]:
    """Make a group of those that ask for it, if any do."""
    kinds, hysteresis_m = book.find_terms(numbers)
    at = np.flatnonzero(((kinds & CROSS_KIND) > 0) | (hysteresis_m > 0))
    if not len(at):
        return []
    return [_FenceGroup(numbers[at], FenceSets(columns_of(numbers[at])), hysteresis_m[at])]


def _take(subscriptions: SubscriptionSet, numbers: Positions) -> SubscriptionColumns:
    """Take some of very many."""
    living = subscriptions.living()
    if len(living) == len(numbers):
        return living
    own = pa.array(living.ids.array).to_numpy()
    return living.take(np.flatnonzero(np.isin(own, numbers)))


def _get(subscriptions: SubscriptionSet, numbers: Positions) -> SubscriptionColumns:
    """Take a few."""
    found = (subscriptions.get(number) for number in numbers.tolist())
    return pack_subscriptions([subscription for subscription in found if subscription is not None])
