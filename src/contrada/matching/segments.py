"""A set of subscriptions that never changes: a new version shares what did not change.

Subscriptions lie in segments, each with an index of its own that is built when it is first asked.
Small segments are merged as they pile up, so that n single additions cost n log n; a removal
only marks the row. Whoever holds a version goes on seeing it whatever is added or removed.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from contrada.arrays import Positions
from contrada.language.expecting import Kinds
from contrada.matching.columns import EventBatch
from contrada.matching.engine import FindFaults, Index, MakeIndex, find_no_faults
from contrada.matching.mismatches import (
    Mismatch,
    describe_unmet,
    find_unmet,
    list_expectations,
)
from contrada.model.event import Event
from contrada.model.expression import DistanceWithin
from contrada.model.subscription import Id, Subscription
from contrada.threads import once

_GROWTH = 4  # a segment is merged into its elder once the elder is not this much larger
_QUIETLY = np.errstate(all="ignore")  # coordinates may be so large that products are infinite


class _Rows:
    """Subscriptions and their index; the same for all versions of a segment."""

    def __init__(self, subscriptions: tuple[Subscription, ...], make_index: MakeIndex) -> None:
        self.subscriptions = subscriptions
        self._make_index = make_index

    @once
    def index(self) -> Index:
        return self._make_index(self.subscriptions)

    def without(self, positions: Collection[int]) -> "_Rows":
        """Return the same rows with an index that need not find some of them."""
        if "index" not in self.__dict__:
            return self
        twin = copy(self)
        twin.__dict__["index"] = self.index.without(positions)
        return twin

    @once
    def ids_by_rank(self) -> tuple[NDArray[np.object_], NDArray[np.int64]]:
        """The ids in order, and the place of each position in that order."""
        order = sorted(range(len(self.subscriptions)), key=lambda p: self.subscriptions[p].id)
        ids = np.empty(len(order), object)
        ids[:] = [self.subscriptions[position].id for position in order]
        ranks = np.empty(len(order), np.int64)
        ranks[order] = np.arange(len(order))
        return ids, ranks

    @once
    def subscribers(self) -> tuple[list[Id], NDArray[np.int64]]:
        """The subscribers, and the number of the one that each position has; -1 for none."""
        number_of: dict[Id, int] = {}
        numbers = [
            -1 if s.subscriber is None else number_of.setdefault(s.subscriber, len(number_of))
            for s in self.subscriptions
        ]
        return list(number_of), np.array(numbers, np.int64)

    @once
    def position_of(self) -> dict[Id, int]:
        return {s.id: position for position, s in enumerate(self.subscriptions)}

    @once
    def geometry_readers(self) -> Counter[str]:
        """Count the subscriptions that read each attribute as a geometry."""
        return _count_readers(self.subscriptions)

    @once
    def attributes(self) -> frozenset[str]:
        return frozenset(name for s in self.subscriptions for name in s.predicate.attributes())

    @once
    def expectations(self) -> frozenset[tuple[str, Kinds]]:
        return list_expectations(self.subscriptions)

    @once
    def has_distances(self) -> bool:
        return any(
            isinstance(constraint.test, DistanceWithin)
            for subscription in self.subscriptions
            for filter_ in subscription.predicate.filters
            for constraint in filter_.constraints
        )


@dataclass(frozen=True, slots=True)
class _Segment:
    """Rows of which some may have been removed."""

    rows: _Rows
    is_alive: NDArray[np.bool_]
    groups: NDArray[np.int64]  # the living rows are numbered, each a group of its own
    living_count: int
    gone_readers: Counter[str]  # of those removed: how many read each attribute as a geometry

    @staticmethod
    def of(
        rows: _Rows, is_alive: NDArray[np.bool_], gone_readers: Counter[str] | None = None
    ) -> "_Segment":
        groups = np.where(is_alive, np.arange(len(is_alive)), -1)
        gone_readers = Counter() if gone_readers is None else gone_readers
        return _Segment(rows, is_alive, groups, int(is_alive.sum()), gone_readers)

    def geometry_attributes(self) -> Iterator[str]:
        """Name the attributes that a living row reads as geometries."""
        for name, count in self.rows.geometry_readers.items():
            if count > self.gone_readers[name]:
                yield name

    def living(self) -> Iterator[Subscription]:
        for subscription, is_alive in zip(self.rows.subscriptions, self.is_alive, strict=True):
            if is_alive:
                yield subscription


class SubscriptionSet:
    """One version of the subscriptions of a matcher."""

    def __init__(
        self,
        make_index: MakeIndex,
        segments: tuple[_Segment, ...] = (),
        find_event_faults: FindFaults = find_no_faults,
    ) -> None:
        """Hold segments; an empty set has none.

        `find_event_faults` finds the geometries of events that the indexes cannot handle.
        """
        self._make_index = make_index
        self._segments = segments
        self.find_event_faults = find_event_faults

    def __len__(self) -> int:
        return sum(segment.living_count for segment in self._segments)

    def __iter__(self) -> Iterator[Subscription]:
        for segment in self._segments:
            yield from segment.living()

    def get(self, id_: Id) -> Subscription | None:
        """Find a subscription by its id."""
        for segment in self._segments:
            position = segment.rows.position_of.get(id_)
            if position is not None and segment.is_alive[position]:
                return segment.rows.subscriptions[position]
        return None

    def changed(self, removed: Collection[Id], added: Sequence[Subscription]) -> "SubscriptionSet":
        """Return the version without the removed ids and with the added subscriptions."""
        segments = [_without(segment, removed) for segment in self._segments]
        segments = [self._compacted(segment) for segment in segments if segment.living_count]
        if added:
            segments.append(self._segment(tuple(added)))
        while len(segments) > 1 and _is_due(segments[-2], segments[-1]):
            younger, elder = segments.pop(), segments.pop()
            segments.append(self._segment((*elder.living(), *younger.living())))
        return SubscriptionSet(self._make_index, tuple(segments), self.find_event_faults)

    def _compacted(self, segment: _Segment) -> _Segment:
        """Rebuild a segment once most of its rows have been removed."""
        if 2 * segment.living_count >= len(segment.is_alive):
            return segment
        return self._segment(tuple(segment.living()))

    def _segment(self, subscriptions: tuple[Subscription, ...]) -> _Segment:
        rows = _Rows(subscriptions, self._make_index)
        return _Segment.of(rows, np.ones(len(subscriptions), bool))

    @_QUIETLY
    def match(self, event: Event) -> list[Id]:
        """Find the ids of the subscriptions that an event satisfies, sorted."""
        found: list[Id] = []
        for segment in self._segments:
            positions = segment.rows.index.find(event, segment.groups)
            if positions.size:
                ids, ranks = segment.rows.ids_by_rank
                chosen = ranks[positions]
                found += ids[np.sort(chosen) if len(chosen) > 1 else chosen].tolist()
        return sorted(found) if len(found) > 1 else found

    @_QUIETLY
    def subscribers(self, event: Event) -> list[Id]:
        """Find whom to forward an event to; no filter of a subscriber already found is tried."""
        found: set[Id] = set()
        for segment in self._segments:
            names, numbers = segment.rows.subscribers
            is_open = np.array([*(name not in found for name in names), False])  # last: nobody
            wanted = segment.is_alive & is_open[numbers]
            positions = segment.rows.index.find(event, np.where(wanted, numbers, -1))
            found.update(names[number] for number in numbers[positions].tolist())
        return sorted(found, key=lambda s: (isinstance(s, str), s))

    @_QUIETLY
    def match_batch(self, batch: EventBatch) -> tuple[Positions, NDArray[np.int64]]:
        """Find all pairs of row and subscription, as rows and ranks in `ids`, in that order."""
        found = [np.zeros(0, np.int64)]
        first = 0
        for segment in self._segments:
            rows, positions = segment.rows.index.match_batch(batch)
            alive = segment.is_alive[positions]
            ranks = self._ranks[first + positions[alive]]
            found.append(rows[alive] * len(self.ids) + ranks)
            first += len(segment.is_alive)
        keys = np.sort(np.concatenate(found))
        rows, ranks = np.divmod(keys, max(len(self.ids), 1))
        return rows, ranks

    @once
    def ids(self) -> list[Id]:
        """List all ids in order, each once, with those removed but not yet merged away."""
        return sorted(set(self._slots))

    @once
    def subscribers_by_rank(self) -> list[Id | None]:
        """List the subscribers in the order of `ids`."""
        subscriber_of = {s.id: s.subscriber for s in self}
        return [subscriber_of.get(id_) for id_ in self.ids]

    @once
    def _slots(self) -> list[Id]:
        return [s.id for segment in self._segments for s in segment.rows.subscriptions]

    @once
    def _ranks(self) -> NDArray[np.int64]:
        rank_of = {id_: rank for rank, id_ in enumerate(self.ids)}
        return np.array([rank_of[id_] for id_ in self._slots], np.int64)

    @once
    def geometry_attributes(self) -> tuple[str, ...]:
        """Name the attributes that a subscription reads as geometries, sorted."""
        return tuple(sorted({name for s in self._segments for name in s.geometry_attributes()}))

    @once
    def attributes(self) -> frozenset[str]:
        """Name the attributes that a subscription reads."""
        return frozenset[str]().union(*(s.rows.attributes for s in self._segments))

    @once
    def has_distances(self) -> bool:
        """Whether a subscription asks for a distance, which takes longitude and latitude."""
        return any(s.rows.has_distances for s in self._segments)

    def find_mismatches(self, schema: pa.Schema) -> list[Mismatch]:
        """Find the columns of events for which a subscription expects another kind of value."""
        all_ = frozenset[tuple[str, Kinds]]().union(*(s.rows.expectations for s in self._segments))
        unmet = find_unmet(all_, schema)
        return describe_unmet(unmet, self) if unmet else []

    @_QUIETLY
    def breadth(self) -> int:
        """Count the filters that any event may satisfy, and so the answers that it may have."""
        return sum(segment.rows.index.breadth() for segment in self._segments)

    @_QUIETLY
    def stats(self) -> dict[str, int]:
        """Count subscriptions and what the indexes hold."""
        counts = {"subscriptions": len(self), "segments": len(self._segments)}
        for segment in self._segments:
            for name, count in segment.rows.index.stats().items():
                counts[name] = counts.get(name, 0) + count
        return counts


def _without(segment: _Segment, removed: Collection[Id]) -> _Segment:
    position_of = segment.rows.position_of if removed else {}
    gone = [position_of[id_] for id_ in removed if id_ in position_of]
    if not gone:
        return segment
    is_alive = segment.is_alive.copy()
    newly = [position for position in gone if is_alive[position]]
    is_alive[newly] = False
    readers = _count_readers(segment.rows.subscriptions[position] for position in newly)
    return _Segment.of(segment.rows.without(gone), is_alive, segment.gone_readers + readers)


def _count_readers(subscriptions: Iterable[Subscription]) -> Counter[str]:
    return Counter(name for s in subscriptions for name in set(s.predicate.geometry_attributes()))


def _is_due(elder: _Segment, younger: _Segment) -> bool:
    return len(elder.is_alive) < _GROWTH * len(younger.is_alive)
