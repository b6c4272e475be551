"""Segments: columns of subscriptions, each with an index of its own, of which rows may be gone."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from contrada.arrays import Mask, Positions
from contrada.matching.engine import Index, MakeIndex
from contrada.matching.read_facts import ReadFacts
from contrada.matching.subscription_columns import SubscriptionColumns
from contrada.model.event import Event
from contrada.model.subscription import Id, Subscription
from contrada.threads import once

LARGE_MIN = 1_000  # rows: a smaller index is built in no time by whoever asks first
_ALONE_MIN = 200_000  # rows that go together: merged with others they would leave a large gap
_GROUPED_MAX = 10_000  # rows: to group more for each event takes longer than what it saves

_ASKED_ALWAYS = ("groups", "skeleton_counts", "facts")


def is_large(count: int) -> bool:
    """Whether so many rows are too many to be indexed or merged while somebody waits."""
    return count >= LARGE_MIN


class SegmentRows:
    """Subscriptions and their index; the same for all versions of a segment."""

    def __init__(
        self, columns: SubscriptionColumns, make_index: MakeIndex, *, is_one: bool = False
    ) -> None:
        """Take the columns; the index is built when it is first asked.

        Rows that are one come and go together.
        """
        self.columns = columns
        self._make_index = make_index
        self.stays_alone = is_one and len(columns) >= _ALONE_MIN

    def prepare(self, like: "Iterable[SegmentRows]" = ()) -> None:
        """Build now what is large, so that no reader has to; others know what readers ask."""
        if is_large(len(self.columns)):
            self.index.prepare([rows.index for rows in like if "index" in rows.__dict__])
            self.columns.ids.prepare()
            for name in _ASKED_ALWAYS:
                getattr(self, name)

    @once
    def groups(self) -> Positions:
        """A group of its own for each row."""
        return np.arange(len(self.columns))

    @once
    def index(self) -> Index:
        """The engine's index."""
        return self._make_index(self.columns)

    def without(self, positions: Collection[int]) -> "SegmentRows":
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

    @once
    def skeleton_counts(self) -> list[int]:
        """How many subscriptions have each skeleton."""
        expressions = self.columns.expressions
        counts: list[int] = np.bincount(
            expressions.which, minlength=len(expressions.skeletons)
        ).tolist()
        return counts

    @once
    def facts_by_skeleton(self) -> list[ReadFacts]:
        """What the subscriptions of each skeleton read."""
        return [ReadFacts.of(skeleton) for skeleton in self.columns.expressions.skeletons]

    @once
    def facts(self) -> ReadFacts:
        """What all subscriptions read."""
        return ReadFacts.join(self.facts_by_skeleton)


@dataclass(frozen=True)
class Segment:
    """Rows of which some may have been removed."""

    rows: SegmentRows
    is_alive: Mask
    living_count: int
    gone: Mapping[int, int]  # of those removed: how many have each skeleton
    emptied: frozenset[int]  # the skeletons that none has any more

    @staticmethod
    def of(rows: SegmentRows) -> "Segment":
        """Take rows that are all there."""
        return Segment(rows, np.ones(len(rows.columns), bool), len(rows.columns), {}, frozenset())

    def match(self, event: Event) -> Positions:
        """Find the rows that an event satisfies."""
        groups = self.rows.groups
        if self.living_count == len(groups):
            return self.rows.index.find(event, groups)
        if len(groups) <= _GROUPED_MAX:
            return self.rows.index.find(event, np.where(self.is_alive, groups, -1))
        positions = self.rows.index.find(event, groups)
        return positions[self.is_alive[positions]]

    def subscribers(self, event: Event, found: Collection[Id]) -> list[Id]:
        """List to whom to forward an event, but for some; each is tried until it is found."""
        subscribers = self.rows.columns.subscribers
        codes = subscribers.codes
        if len(codes) > _GROUPED_MAX:
            codes = np.unique(codes[self.match(event)])
            return [subscribers.name(code) for code in codes[codes >= 0].tolist()]
        names = self.rows.subscribers
        is_open = np.array([*(name not in found for name in names), False])  # last: nobody
        wanted = self.is_alive & is_open[codes]
        positions = self.rows.index.find(event, np.where(wanted, codes, -1))
        return [names[code] for code in codes[positions].tolist()]

    def without(self, removed: pa.Array) -> "Segment":
        """Return the segment without some ids."""
        ids = self.rows.columns.ids
        is_one = len(removed) == 1
        gone = np.array([ids.find(removed[0].as_py())]) if is_one else ids.find_many(removed)
        gone = gone[gone >= 0]
        newly = np.unique(gone[self.is_alive[gone]])
        return self.leave_out(newly) if newly.size else self

    def without_range(self, removed: range) -> "Segment":
        """Return the segment without the ids of a range, by which integers are meant."""
        ids = self.rows.columns.ids
        if not (ids.is_whole and removed):
            return self
        numbers = ids.array.to_numpy()
        is_gone = self.is_alive & (numbers >= removed.start) & (numbers < removed.stop)
        gone = np.flatnonzero(is_gone)
        return self.leave_out(gone) if gone.size else self

    def leave_out(self, gone: Positions) -> "Segment":
        """Return the segment without some living rows."""
        is_alive = self.is_alive.copy()
        is_alive[gone] = False
        if len(gone) == self.living_count:  # nobody will ask anything of it
            return replace(self, is_alive=is_alive, living_count=0)
        codes, numbers = np.unique(self.rows.columns.expressions.which[gone], return_counts=True)
        newly = dict(zip(codes.tolist(), numbers.tolist(), strict=True))
        counts = {**self.gone, **{code: self.gone.get(code, 0) + n for code, n in newly.items()}}
        emptied = [code for code in newly if counts[code] == self.rows.skeleton_counts[code]]
        left = Segment(
            self.rows.without(gone.tolist()),
            is_alive,
            self.living_count - len(gone),
            counts,
            self.emptied.union(emptied),
        )
        if not emptied and "facts" in self.__dict__:
            left.__dict__["facts"] = self.facts
        return left

    @once
    def facts(self) -> ReadFacts:
        """What living rows read."""
        if not self.emptied:
            return self.rows.facts
        each = enumerate(self.rows.facts_by_skeleton)
        return ReadFacts.join([facts for code, facts in each if code not in self.emptied])

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
