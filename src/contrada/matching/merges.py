"""Which segments of a set are merged, and when; whoever owns the set carries it out.

Younger segments join their elder unless that is much larger, so that n additions cost n log n. A
merge may take long, and meanwhile the set changes: `beside` are the merges that are under way, and
whatever they take is left to them.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from contrada.matching.engine import MakeIndex
from contrada.matching.recent import Recent, RecentSubscription
from contrada.matching.segment_rows import Segment, SegmentRows, is_large
from contrada.matching.subscription_columns import join_subscriptions, pack_subscriptions

RECENT_MAX = 1_024  # subscriptions that wait for an index
QUIETLY = np.errstate(all="ignore")  # coordinates may be so large that products are infinite
_GROWTH = 4  # a segment is merged into its elder once the elder is not this much larger
_OVERDUE = 4  # times what is due
_SEGMENTS_MAX = 32


@dataclass(frozen=True, slots=True)
class Merge:
    """Segments and subscriptions that are to become one segment."""

    segments: Sequence[Segment]
    recent: Sequence[RecentSubscription]
    make_index: MakeIndex
    like: Sequence[Segment] = ()  # all of the set: they know what is asked of it
    weight: int = 0  # what the subscriptions weigh while they wait

    @property
    def is_small(self) -> bool:
        """Whether it takes no time."""
        return not self.recent and not is_large(sum(len(s.is_alive) for s in self.segments))

    @QUIETLY
    def run(self) -> SegmentRows:
        """Make the columns of what is left of them, and a large index."""
        parts = [segment.living() for segment in self.segments]
        if self.recent:
            parts.append(pack_subscriptions([member.subscription for member in self.recent]))
        rows = SegmentRows(join_subscriptions(parts), self.make_index)
        rows.prepare(segment.rows for segment in self.like)
        return rows


def find_place(sizes: Sequence[int], count: int) -> int:
    """Find the place of a new segment: last, but before those that are much smaller.

    So a file of columns that joins a few other subscriptions is not copied for their sake.
    """
    place = len(sizes)
    while place and _GROWTH * sizes[place - 1] <= count:
        place -= 1
    return place


class MergeChoice:
    """What can be merged of a version, but for what other merges take."""

    def __init__(
        self,
        segments: Sequence[Segment],
        recent: Recent,
        make_index: MakeIndex,
        beside: Collection[Merge] = (),
    ) -> None:
        """Take the segments, the eldest first, and what was added last."""
        self._segments, self._recent, self._make_index = segments, recent, make_index
        self._beside = beside
        taken = {id(segment.rows.columns) for merge in beside for segment in merge.segments}
        self._is_free = [
            id(segment.rows.columns) not in taken and not segment.rows.stays_alone
            for segment in segments
        ]
        self._sizes = [len(segment.is_alive) for segment in segments]
        # Too little by those that others take and that have been removed since.
        self._weight = recent.weight - sum(merge.weight for merge in beside)

    def find_due(self) -> Merge | None:
        """Choose what is to be merged next, if anything.

        A segment of which most rows are gone is made anew; otherwise, younger segments join their
        elder unless that is much larger, and what was added last joins them once it is enough.
        """
        for segment, is_free in zip(self._segments, self._is_free, strict=True):
            if is_free and 2 * segment.living_count < len(segment.is_alive):
                return self._merge([segment])
        if self._weight > RECENT_MAX:
            first = self._find_elder(len(self._sizes), len(self._recent))
            return self._with_recent(self._segments[first:])
        for last in range(len(self._sizes) - 1, 0, -1):
            first = self._find_elder(last, self._sizes[last]) if self._is_free[last] else last
            if first < last:
                return self._merge(self._segments[first : last + 1])
        return None

    def find_overdue(self) -> Merge | None:
        """Choose what is merged before anything else is added: else events take notably longer.

        That is what was added last, or the youngest segments, so that whoever waits for it does not
        wait long.
        """
        if self._weight > _OVERDUE * RECENT_MAX:
            return self._with_recent(())
        first = last = len(self._sizes)
        while first and self._is_free[first - 1] and 2 * (last - first) < _SEGMENTS_MAX:
            first -= 1
        if sum(self._is_free) > _SEGMENTS_MAX and last - first > 1:
            return self._merge(self._segments[first:])
        return None

    def _with_recent(self, segments: Sequence[Segment]) -> Merge:
        """Merge segments and what was added last."""
        taken = {id(member) for merge in self._beside for member in merge.recent}
        members = tuple(m for m in self._recent.members.values() if id(m) not in taken)
        return self._merge(segments, members)

    def _merge(
        self, segments: Sequence[Segment], members: Sequence[RecentSubscription] = ()
    ) -> Merge:
        weight = sum(member.weight for member in members)
        return Merge(segments, members, self._make_index, self._segments, weight)

    def _find_elder(self, last: int, size: int) -> int:
        """Find the first of the segments before one that it joins: none is much larger than all."""
        first = last
        while first and self._is_free[first - 1] and self._sizes[first - 1] < _GROWTH * size:
            first -= 1
            size += self._sizes[first]
        return first
