"""A set of subscriptions that never changes: a new version shares what did not change.

Subscriptions lie in segments of columns, each with an index of its own that is built when it is
first asked. Small segments are merged as they pile up, so that n single additions cost n log n; a
removal only marks the row. Whoever holds a version goes on seeing it whatever is added or removed.
"""

from collections import Counter
from collections.abc import Collection, Iterator
from copy import copy
from dataclasses import dataclass
from functools import partial
from itertools import chain

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from contrada.arrays import Positions
from contrada.language.expecting import Kinds
from contrada.matching.columns import EventBatch
from contrada.matching.engine import FindFaults, Index, MakeIndex, find_no_faults
from contrada.matching.id_columns import rank_ids
from contrada.matching.mismatches import (
    Mismatch,
    describe_unmet,
    find_unmet,
    list_expectations,
)
from contrada.matching.small_index import SMALL_MAX, SmallIndex
from contrada.matching.subscription_columns import (
    SubscriptionColumns,
    join_subscriptions,
    pack_subscriptions,
)
from contrada.model.event import Event
from contrada.model.expression import DistanceWithin, attributes, geometry_attributes
from contrada.model.subscription import Id, Subscription
from contrada.threads import once

_GROWTH = 4  # a segment is merged into its elder once the elder is not this much larger
_WAITING_MAX = 8  # small segments
_LARGE_MIN = 1_000  # rows: a smaller index is built in no time by whoever asks first
_QUIETLY = np.errstate(all="ignore")  # coordinates may be so large that products are infinite


class _Rows:
    """Subscriptions and their index; the same for all versions of a segment."""

    def __init__(self, columns: SubscriptionColumns, make_index: MakeIndex) -> None:
        self.columns = columns
        self._make_index = make_index

    @once
    def index(self) -> Index:
        return self._make_index(self.columns)

    def without(self, positions: Collection[int]) -> "_Rows":
        """Return the same rows with an index that need not find some of them."""
        if "index" not in self.__dict__:
            return self
        twin = copy(self)
        twin.__dict__["index"] = self.index.without(positions)
        return twin

    @once
    def subscribers(self) -> list[Id]:
        """The subscribers, by their codes."""
        return self.columns.subscribers.names()

    def count_readers(self, positions: Positions | None = None) -> Counter[str]:
        """Count the subscriptions, or some of them, that read each attribute as a geometry."""
        expressions = self.columns.expressions
        which = expressions.which if positions is None else expressions.which[positions]
        counts = np.bincount(which, minlength=len(expressions.skeletons)).tolist()
        readers: Counter[str] = Counter()
        for skeleton, count in zip(expressions.skeletons, counts, strict=True):
            for name in set(geometry_attributes(skeleton)) if count else ():
                readers[name] += count
        return readers

    @once
    def geometry_readers(self) -> Counter[str]:
        return self.count_readers()

    @once
    def attributes(self) -> frozenset[str]:
        return frozenset(n for s in self.columns.expressions.skeletons for n in attributes(s))

    @once
    def expectations(self) -> frozenset[tuple[str, Kinds]]:
        return list_expectations(self.columns.expressions.skeletons)

    @once
    def has_distances(self) -> bool:
        tests = self.columns.table.constraints.tests.skeletons
        return any(isinstance(test, DistanceWithin) for test in tests)


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

    def find(self, id_: Id) -> int:
        """Return the position of a living row by its id; -1 where there is none."""
        position = self.rows.columns.ids.find(id_)
        return position if position >= 0 and self.is_alive[position] else -1

    def living(self) -> SubscriptionColumns:
        """Return the rows that are left."""
        if self.living_count == len(self.is_alive):
            return self.rows.columns
        return self.rows.columns.take(np.flatnonzero(self.is_alive))

    def __iter__(self) -> Iterator[Subscription]:
        return iter(self.living())


class SubscriptionSet:
    """One version of the subscriptions of a matcher."""

    def __init__(
        self,
        make_index: MakeIndex,
        segments: tuple[_Segment, ...] = (),
        find_event_faults: FindFaults = find_no_faults,
        is_exact: bool = False,
    ) -> None:
        """Hold segments; an empty set has none.

        `find_event_faults` finds the geometries of events that the indexes cannot handle. Where
        these are exact, few subscriptions that are added to others may be evaluated instead.
        """
        self._make_index, self._is_exact = make_index, is_exact
        self._segments = segments
        self.find_event_faults = find_event_faults

    def __len__(self) -> int:
        return sum(segment.living_count for segment in self._segments)

    def __iter__(self) -> Iterator[Subscription]:
        for segment in self._segments:
            yield from segment

    @property
    def has_whole_ids(self) -> bool | None:
        """Whether ids are integers; None in an empty set."""
        return self._segments[0].rows.columns.ids.is_whole if self._segments else None

    def living(self) -> SubscriptionColumns:
        """Return all subscriptions in one piece."""
        if not self._segments:
            return pack_subscriptions([])
        return join_subscriptions([segment.living() for segment in self._segments])

    def living_ids(self) -> list[Id]:
        """List the ids in order."""
        living = [s.rows.columns.ids.list(np.flatnonzero(s.is_alive)) for s in self._segments]
        return sorted(chain.from_iterable(living))

    def get(self, id_: Id) -> Subscription | None:
        """Find a subscription by its id."""
        for segment in self._segments:
            position = segment.find(id_)
            if position >= 0:
                return segment.rows.columns[position]
        return None

    def __contains__(self, id_: Id) -> bool:
        return any(segment.find(id_) >= 0 for segment in self._segments)

    def are_taken(self, ids: pa.Array) -> NDArray[np.bool_]:
        """Which of some ids a subscription has."""
        taken = np.zeros(len(ids), bool)
        for segment in self._segments:
            positions = segment.rows.columns.ids.find_many(ids)
            taken |= (positions >= 0) & segment.is_alive[positions]
        return taken

    def changed(
        self, removed: pa.Array | None = None, added: SubscriptionColumns | None = None
    ) -> "SubscriptionSet":
        """Return the version without the removed ids and with the added subscriptions."""
        segments = list(self._segments)
        if removed is not None and len(removed):
            segments = [_without(segment, removed) for segment in segments]
        segments = [self._compacted(segment) for segment in segments if segment.living_count]
        if added is not None and len(added):
            segments.append(self._segment(added, is_delta=bool(segments)))
        while count := _count_due(segments):
            due = segments[-count:]
            del segments[-count:]
            joined = join_subscriptions([segment.living() for segment in due])
            segments.append(self._segment(joined, is_delta=bool(segments)))
        return SubscriptionSet(
            self._make_index, tuple(segments), self.find_event_faults, self._is_exact
        )

    @_QUIETLY
    def prepare(self) -> None:
        """Build the large indexes that are not there yet, so that no reader has to."""
        for segment in self._segments:
            if len(segment.is_alive) >= _LARGE_MIN:
                assert segment.rows.index is not None

    def _compacted(self, segment: _Segment) -> _Segment:
        """Rebuild a segment once most of its rows have been removed."""
        if 2 * segment.living_count >= len(segment.is_alive):
            return segment
        return self._segment(segment.living())

    def _segment(self, columns: SubscriptionColumns, *, is_delta: bool = False) -> _Segment:
        """Make a segment; what comes after the first is a delta, which is small at first."""
        is_small = is_delta and self._is_exact and len(columns) <= SMALL_MAX
        make_index = partial(SmallIndex, make_index=self._make_index)
        rows = _Rows(columns, make_index if is_small else self._make_index)
        return _Segment.of(rows, np.ones(len(columns), bool))

    @_QUIETLY
    def match(self, event: Event) -> list[Id]:
        """Find the ids of the subscriptions that an event satisfies, sorted."""
        found: list[Id] = []
        for segment in self._segments:
            positions = segment.rows.index.find(event, segment.groups)
            if positions.size:
                found += segment.rows.columns.ids.list(positions)
        return sorted(found) if len(found) > 1 else found

    @_QUIETLY
    def subscribers(self, event: Event) -> list[Id]:
        """Find whom to forward an event to; no filter of a subscriber already found is tried."""
        found: set[Id] = set()
        for segment in self._segments:
            names, codes = segment.rows.subscribers, segment.rows.columns.subscribers.codes
            is_open = np.array([*(name not in found for name in names), False])  # last: nobody
            wanted = segment.is_alive & is_open[codes]
            positions = segment.rows.index.find(event, np.where(wanted, codes, -1))
            found.update(names[code] for code in codes[positions].tolist())
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

    @property
    def ids(self) -> pa.Array:
        """All ids in order, each once, with those removed but not yet merged away."""
        ids = self._ids_and_ranks[0]
        return ids if pa.types.is_int64(ids.type) else ids.cast(pa.string())

    @property
    def _ranks(self) -> Positions:
        return self._ids_and_ranks[1]

    @once
    def _ids_and_ranks(self) -> tuple[pa.Array, Positions]:
        return rank_ids([segment.rows.columns.ids for segment in self._segments])

    @once
    def subscribers_by_rank(self) -> list[Id | None]:
        """List the subscribers in the order of `ids`."""
        found: list[Id | None] = [None] * len(self.ids)
        first = 0
        for segment in self._segments:
            names: list[Id | None] = [*segment.rows.subscribers, None]  # the last for nobody
            alive = np.flatnonzero(segment.is_alive)
            codes = segment.rows.columns.subscribers.codes[alive].tolist()
            for rank, code in zip(self._ranks[first + alive].tolist(), codes, strict=True):
                found[rank] = names[code]
            first += len(segment.is_alive)
        return found

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
        if not unmet:
            return []
        return describe_unmet(unmet, [segment.living() for segment in self._segments])

    @_QUIETLY
    def breadth(self) -> int:
        """Count the filters that any event may satisfy, and so the answers that it may have."""
        return sum(segment.rows.index.breadth() for segment in self._segments)

    @property
    def nbytes(self) -> int:
        """Count the bytes of all columns, with rows removed but not yet merged away."""
        return sum(segment.rows.columns.nbytes for segment in self._segments)

    @_QUIETLY
    def stats(self) -> dict[str, int]:
        """Count subscriptions, the bytes of their columns, and what the indexes hold."""
        counts = {
            "subscriptions": len(self),
            "segments": len(self._segments),
            "bytes": self.nbytes,
        }
        for segment in self._segments:
            for name, count in segment.rows.index.stats().items():
                counts[name] = counts.get(name, 0) + count
        return counts


def _without(segment: _Segment, removed: pa.Array) -> _Segment:
    gone = segment.rows.columns.ids.find_many(removed)
    gone = np.unique(gone[gone >= 0])
    newly = gone[segment.is_alive[gone]]
    if not newly.size:
        return segment
    is_alive = segment.is_alive.copy()
    is_alive[newly] = False
    readers = segment.gone_readers + segment.rows.count_readers(newly)
    return _Segment.of(segment.rows.without(newly.tolist()), is_alive, readers)


def _count_due(segments: list[_Segment]) -> int:
    """Count the last segments that are to be merged now; 0 for none.

    After a large one, small ones wait until there are some, and are merged all at once.
    """
    sizes = [len(segment.is_alive) for segment in segments]
    if len(sizes) < 2 or sizes[-2] >= _GROWTH * sizes[-1]:
        return 0
    small = next((i for i, size in enumerate(reversed(sizes)) if size > SMALL_MAX), len(sizes))
    if sizes[0] >= _LARGE_MIN and small > 1:
        return small if small > _WAITING_MAX else 0
    return 2
