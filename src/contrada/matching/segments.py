"""A set of subscriptions that never changes: a new version shares what did not change.

Subscriptions lie in segments of columns, each with an index of its own that is built when it is
first asked. Small segments are merged as they pile up, so that n single additions cost n log n; a
removal only marks the row. Beside a large segment, what was added last waits without columns until
it is worth them (see `recent`), and what is large is merged by whoever owns the set, when `due`
says so. Whoever holds a version goes on seeing it whatever is added or removed.
"""

from collections.abc import Collection, Iterator, Sequence
from itertools import chain

import numpy as np
import pyarrow as pa

from contrada.arrays import Mask, Positions
from contrada.matching.columns import EventBatch
from contrada.matching.engine import FindFaults, Index, MakeIndex, find_no_faults
from contrada.matching.fence_sets import FenceSets
from contrada.matching.id_columns import make_id_array
from contrada.matching.merges import QUIETLY, Merge, MergeChoice, find_place
from contrada.matching.mismatches import Mismatch, describe_unmet, find_unmet
from contrada.matching.ranked_ids import RankedIds, VersionIds
from contrada.matching.read_facts import ReadFacts
from contrada.matching.recent import Recent
from contrada.matching.segment_rows import Segment, SegmentRows, is_large
from contrada.matching.subscription_columns import (
    SubscriptionColumns,
    join_subscriptions,
    pack_subscriptions,
)
from contrada.model.event import Event
from contrada.model.subscription import Id, Subscription
from contrada.threads import once

_FEW_MAX = 16  # subscriptions added at once that need no columns of their own


class SubscriptionSet:
    """One version of the subscriptions of a matcher."""

    def __init__(
        self,
        make_index: MakeIndex,
        segments: Sequence[Segment] = (),
        recent: Recent | None = None,
        *,
        find_event_faults: FindFaults = find_no_faults,
        is_exact: bool = False,
        segment_ids: RankedIds | None = None,
    ) -> None:
        """Hold segments; an empty set has none.

        `find_event_faults` finds the geometries of events that the indexes cannot handle. Where
        these are exact, what is added to many others may be evaluated instead. `segment_ids` are
        those of an earlier version, which serve as well if the segments are the same.
        """
        self._make_index, self._is_exact = make_index, is_exact
        self._segments = segments
        self._recent = Recent(make_index) if recent is None else recent
        self.find_event_faults = find_event_faults
        columns = [segment.rows.columns.ids for segment in segments]
        if segment_ids is None or not segment_ids.are_of(columns):
            segment_ids = RankedIds(columns)
        self._segment_ids = segment_ids

    def __len__(self) -> int:
        return sum(segment.living_count for segment in self._segments) + len(self._recent)

    def __iter__(self) -> Iterator[Subscription]:
        return chain(*self._segments, self._recent)

    @property
    def has_whole_ids(self) -> bool | None:
        """Whether ids are integers; None in an empty set."""
        return self._segments[0].rows.columns.ids.is_whole if self._segments else None

    def living(self) -> SubscriptionColumns:
        """Return all subscriptions in one piece."""
        parts = list(self._parts()) or [pack_subscriptions([])]
        return parts[0] if len(parts) == 1 else join_subscriptions(parts)

    def _parts(self) -> Iterator[SubscriptionColumns]:
        yield from (segment.living() for segment in self._segments)
        if len(self._recent):
            yield self._recent.columns

    def living_ids(self) -> list[Id]:
        """List the ids in order."""
        living = [s.rows.columns.ids.list(np.flatnonzero(s.is_alive)) for s in self._segments]
        return sorted(chain(*living, self._recent.members))

    def get(self, id_: Id) -> Subscription | None:
        """Find a subscription by its id."""
        if id_ in self._recent.members:
            return self._recent.members[id_].subscription
        for segment in self._segments:
            position = segment.find(id_)
            if position >= 0:
                return segment.rows.columns[position]
        return None

    def __contains__(self, id_: Id) -> bool:
        return id_ in self._recent.members or any(s.find(id_) >= 0 for s in self._segments)

    def are_taken(self, ids: pa.Array) -> Mask:
        """Which of some ids a subscription has."""
        taken = np.zeros(len(ids), bool)
        for segment in self._segments:
            positions = segment.rows.columns.ids.find_many(ids)
            taken |= (positions >= 0) & segment.is_alive[positions]
        if len(self._recent):
            taken |= self._recent.ids.find_many(ids) >= 0
        return taken

    def changed(
        self,
        removed: Sequence[Id] | pa.Array = (),
        added: Sequence[Subscription] = (),
        beside: Collection[Merge] = (),
    ) -> "SubscriptionSet":
        """Return the version without the removed ids and with the added subscriptions.

        What is small is merged, unless the merges `beside` take it.
        """
        segments = self._segments
        gone = self._recent.choose(removed) if len(self._recent) else []
        if len(gone) < len(removed):
            ids = removed if isinstance(removed, pa.Array) else make_id_array(removed)
            segments = [segment.without(ids) for segment in segments]
        segments = [segment for segment in segments if segment.living_count]
        are_many = any(is_large(len(segment.is_alive)) for segment in segments)
        waits = are_many and self._is_exact and len(added) <= _FEW_MAX
        recent = self._recent.changed(gone, added if waits else ())
        if not are_many and len(recent):
            segments.append(self._make_segment(recent.columns))
            recent = Recent(self._make_index)
        if len(added) and not waits:
            place = find_place([len(segment.is_alive) for segment in segments], len(added))
            segments.insert(place, self._make_segment(added))
        changed = self._version(segments, recent)
        while (merge := changed.due(beside)) is not None and merge.is_small:
            changed = changed.merged(merge, merge.run())
        return changed

    def exchanged(
        self, gone: range, rows: SegmentRows | None, draft: "SubscriptionSet | None" = None
    ) -> "SubscriptionSet":
        """Return the version with rows that are one, or nothing, in place of the ids of a range.

        Nothing is merged. What a draft of that version has found out of its ids is used, if it
        still holds.
        """
        segments = [segment.without_range(gone) for segment in self._segments]
        segments = [segment for segment in segments if segment.living_count]
        members = self._recent.members
        recent = self._recent.without([members[id_] for id_ in members if id_ in gone])
        if rows is not None and len(
            rows.columns
        ):  # before others, so that it does not keep these from merging
            segments.insert(0, Segment.of(rows))
        return self._version(segments, recent, None if draft is None else draft._segment_ids)

    def has_any(self, ids: range, but: range = range(0)) -> bool:
        """Whether a subscription has an id of a range, unless it is in another one, too."""
        left = [segment.without_range(but) for segment in self._segments]
        is_taken = any(segment.without_range(ids) is not segment for segment in left)
        return is_taken or any(id_ in ids and id_ not in but for id_ in self._recent.members)

    def _version(
        self,
        segments: Sequence[Segment],
        recent: Recent,
        segment_ids: RankedIds | None = None,
    ) -> "SubscriptionSet":
        return SubscriptionSet(
            self._make_index,
            segments,
            recent,
            find_event_faults=self.find_event_faults,
            is_exact=self._is_exact,
            segment_ids=self._segment_ids if segment_ids is None else segment_ids,
        )

    def make_rows(self, columns: SubscriptionColumns) -> SegmentRows:
        """Take subscriptions that come and go together, for `exchanged`."""
        return SegmentRows(columns, self._make_index, is_one=True)

    def _make_segment(self, added: Sequence[Subscription]) -> Segment:
        columns = added if isinstance(added, SubscriptionColumns) else pack_subscriptions(added)
        return Segment.of(SegmentRows(columns, self._make_index))

    @QUIETLY
    def prepare(self, known: "SubscriptionSet | None" = None) -> None:
        """Build what is large and not there yet, so that no reader has to.

        What an earlier version has and left to its first reader stays so.
        """
        old = {id(segment.rows.columns) for segment in (known._segments if known else ())}
        for segment in self._segments:
            if id(segment.rows.columns) not in old:
                segment.rows.prepare(other.rows for other in self._segments)
        self._segment_ids.prepare()

    def due(self, beside: Collection[Merge] = ()) -> Merge | None:
        """Return what is to be merged next, if anything: `merged` takes what it makes.

        What the merges `beside` take is left to them.
        """
        return self._choice(beside).find_due()

    def overdue(self, beside: Collection[Merge] = ()) -> Merge | None:
        """Return what is merged at once, since so much waits that events take notably longer."""
        return self._choice(beside).find_overdue()

    def _choice(self, beside: Collection[Merge]) -> MergeChoice:
        return MergeChoice(self._segments, self._recent, self._make_index, beside)

    def merged(self, merge: Merge, rows: SegmentRows) -> "SubscriptionSet":
        """Return the version with rows in place of what they were merged from.

        The merge may be that of an earlier version: what has been removed since is not there.
        """
        current = {id(segment.rows.columns): segment for segment in self._segments}
        parts = []
        for old in merge.segments:
            now = current.pop(id(old.rows.columns), None)
            living = np.flatnonzero(old.is_alive)
            parts.append(np.zeros(len(living), bool) if now is None else now.is_alive[living])
        members = self._recent.members
        parts.append(np.array([members.get(m.subscription.id) is m for m in merge.recent], bool))
        is_gone = ~np.concatenate(parts)
        segment = Segment.of(rows)
        if is_gone.any():
            segment = segment.leave_out(np.flatnonzero(is_gone))
        kept = list(current.values())
        places = [i for i, s in enumerate(self._segments) if id(s.rows.columns) not in current]
        if segment.living_count:
            kept.insert(min(places, default=len(kept)), segment)
        return self._version(kept, self._recent.without(merge.recent))

    @QUIETLY
    def match(self, event: Event) -> list[Id]:
        """Find the ids of the subscriptions that an event satisfies, sorted."""
        found: list[Id] = []
        for segment in self._segments:
            positions = segment.match(event)
            if positions.size:
                found += segment.rows.columns.ids.list(positions)
        if len(self._recent):
            found += [subscription.id for subscription in self._recent.match(event)]
        return sorted(found) if len(found) > 1 else found

    @QUIETLY
    def subscribers(self, event: Event) -> list[Id]:
        """Find whom to forward an event to; no filter of a subscriber already found is tried."""
        found: set[Id] = set()
        for segment in self._segments:
            found.update(segment.subscribers(event, found))
        if len(self._recent):
            names = (subscription.subscriber for subscription in self._recent.match(event))
            found.update(name for name in names if name is not None)
        return sorted(found, key=lambda s: (isinstance(s, str), s))

    @QUIETLY
    def match_batch(self, batch: EventBatch) -> tuple[Positions, Positions]:
        """Find all pairs of row and subscription, as rows and ranks in `ids`, in that order."""
        found = [(np.zeros(0, np.int64), np.zeros(0, np.int64))]
        for number, segment in enumerate(self._segments):
            rows, positions = segment.rows.index.match_batch(batch)
            alive = segment.is_alive[positions]
            found.append((rows[alive], self._ranked.ranks(number, positions[alive])))
        if len(self._recent):
            rows, positions = self._recent.match_batch(batch)
            found.append((rows, self._ranked.ranks(len(self._segments), positions)))
        rows, ranks = (np.concatenate(parts) for parts in zip(*found, strict=True))
        count = max(self._count_positions(), 1)
        keys = np.sort(rows * count + ranks)
        rows, ranks = np.divmod(keys, count)
        return rows, ranks

    def _count_positions(self) -> int:
        return sum(len(segment.is_alive) for segment in self._segments) + len(self._recent)

    @property
    def ids(self) -> pa.Array:
        """All ids in order, each once, with those removed but not yet merged away."""
        ids = self._ranked.ids
        return ids if pa.types.is_int64(ids.type) else ids.cast(pa.string())

    @property
    def id_type(self) -> pa.DataType:
        """The type of `ids`."""
        return self.ids.type

    @once
    def _ranked(self) -> RankedIds | VersionIds:
        if not len(self._recent):
            return self._segment_ids
        return VersionIds(self._segment_ids, self._recent.ids)

    def list_by_rank(self) -> Positions:
        """List the living rows by rank, as positions in all segments one after another.

        At a rank that no living row has, 0 stands.
        """
        places = np.zeros(len(self._ranked.ids), np.int64)
        first = 0
        for number, segment in enumerate(self._segments):
            alive = np.flatnonzero(segment.is_alive)
            places[self._ranked.ranks(number, alive)] = first + alive
            first += len(segment.is_alive)
        return places

    @once
    def fences(self) -> FenceSets:
        """The fences among living rows, by the rank of their ids among those of living rows."""
        return FenceSets(self.living())

    def living_ranks(self) -> Positions:
        """Return for each of `ids` its rank among those of living rows; -1 where it is gone."""
        is_alive = np.zeros(len(self._ranked.ids), bool)
        for number, segment in enumerate(self._segments):
            is_alive[self._ranked.ranks(number, np.flatnonzero(segment.is_alive))] = True
        if len(self._recent):
            recent = np.arange(len(self._recent))
            is_alive[self._ranked.ranks(len(self._segments), recent)] = True
        return np.where(is_alive, np.cumsum(is_alive) - 1, -1)

    @once
    def has_whole_subscribers(self) -> bool:
        """Whether all subscribers are integers, and there are some."""
        columns = [part.subscribers for part in self._parts()]
        texts = sum(len(part.texts) for part in columns)
        return not texts and any(len(part.wholes) for part in columns)

    def subscriber_column(self, kind: pa.DataType) -> pa.Array:
        """Return the subscribers in the order of `ids`, as a column of strings or integers.

        Where they are strings, an integer is the string of its digits.
        """
        parts = [s.rows.columns.subscribers for s in self._segments]
        alive = [np.flatnonzero(s.is_alive) for s in self._segments]
        if len(self._recent):
            parts.append(self._recent.columns.subscribers)
            alive.append(np.arange(len(self._recent)))
        places = np.full(len(self._ranked.ids), -1, np.int64)
        names, first = [pa.array([], kind)], 0
        for number, (part, positions) in enumerate(zip(parts, alive, strict=True)):
            taken = part.take(positions)
            ranks = self._ranked.ranks(number, positions)
            places[ranks] = np.where(taken.codes < 0, -1, first + taken.codes)
            names += [pa.array(taken.wholes).cast(kind), taken.texts.cast(kind)]
            first += len(taken.wholes) + len(taken.texts)
        return pa.concat_arrays(names).take(pa.array(places, mask=places < 0))

    @once
    def geometry_attributes(self) -> tuple[str, ...]:
        """Name the attributes that a subscription reads as geometries, sorted."""
        found = (segment.facts.geometry_attributes for segment in self._segments)
        return tuple(sorted(self._recent.geometry_attributes.union(*found)))

    @once
    def _facts(self) -> ReadFacts:
        """What all subscriptions read."""
        recent = (member.facts for member in self._recent.members.values())
        return ReadFacts.join([*(segment.facts for segment in self._segments), *recent])

    @property
    def attributes(self) -> frozenset[str]:
        """Name the attributes that a subscription reads."""
        return self._facts.attributes

    @property
    def has_distances(self) -> bool:
        """Whether a subscription asks for a distance, which takes longitude and latitude."""
        return self._facts.has_distances

    def find_mismatches(self, schema: pa.Schema) -> list[Mismatch]:
        """Find the columns of events for which a subscription expects another kind of value."""
        unmet = find_unmet(self._facts.expectations, schema)
        return describe_unmet(unmet, self._parts()) if unmet else []

    @QUIETLY
    def breadth(self) -> int:
        """Count the filters that any event may satisfy, and so the answers that it may have."""
        recent = sum(len(subscription.predicate.filters) for subscription in self._recent)
        return sum(segment.rows.index.breadth() for segment in self._segments) + recent

    @property
    def nbytes(self) -> int:
        """Count the bytes of all columns, with rows removed but not yet merged away."""
        recent = self._recent.columns.nbytes if len(self._recent) else 0
        return sum(segment.rows.columns.nbytes for segment in self._segments) + recent

    @QUIETLY
    def stats(self) -> dict[str, int]:
        """Count subscriptions, the bytes of their columns, and what the indexes hold."""
        counts = {
            "subscriptions": len(self),
            "segments": len(self._segments),
            "bytes": self.nbytes,
        }
        for index in self._indexes():
            for name, count in index.stats().items():
                counts[name] = counts.get(name, 0) + count
        return counts

    def _indexes(self) -> Iterator[Index]:
        yield from (segment.rows.index for segment in self._segments)
        if len(self._recent):
            yield self._recent.index
