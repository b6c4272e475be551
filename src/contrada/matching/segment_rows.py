"""Segments: columns of subscriptions, each with an index of its own, of which rows may be gone."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from copy import copy
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from contrada.arrays import Mask, Positions
from contrada.language.expecting import Kinds
from contrada.matching.engine import Index, MakeIndex
from contrada.matching.mismatches import list_expectations
from contrada.matching.subscription_columns import SubscriptionColumns
from contrada.model.event import Event
from contrada.model.expression import DistanceWithin, attributes, geometry_attributes
from contrada.model.subscription import Id, Subscription
from contrada.threads import once

LARGE_MIN = 1_000  # rows: a smaller index is built in no time by whoever asks first
_GROUPED_MAX = 10_000  # rows: to group more for each event takes longer than what it saves

_ASKED_ALWAYS = ("groups", "geometry_readers", "attributes", "expectations", "has_distances")


def is_large(count: int) -> bool:
    """Whether so many rows are too many to be indexed or merged while somebody waits."""
    return count >= LARGE_MIN


class SegmentRows:
    """Subscriptions and their index; the same for all versions of a segment."""

    def __init__(self, columns: SubscriptionColumns, make_index: MakeIndex) -> None:
        """Take the columns; the index is built when it is first asked."""
        self.columns = columns
        self._make_index = make_index

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
        """How many of all subscriptions read each attribute as a geometry."""
        return self.count_readers()

    @once
    def attributes(self) -> frozenset[str]:
        """Names of all that the subscriptions read."""
        return frozenset(n for s in self.columns.expressions.skeletons for n in attributes(s))

    @once
    def expectations(self) -> frozenset[tuple[str, Kinds]]:
        """The kinds of values that they expect of attributes."""
        return list_expectations(self.columns.expressions.skeletons)

    @once
    def has_distances(self) -> bool:
        """Whether one asks for a distance."""
        tests = self.columns.table.constraints.tests.skeletons
        return any(isinstance(test, DistanceWithin) for test in tests)


@dataclass(frozen=True, slots=True)
class Segment:
    """Rows of which some may have been removed."""

    rows: SegmentRows
    is_alive: Mask
    living_count: int
    gone_readers: Counter[str]  # of those removed: how many read each attribute as a geometry

    @staticmethod
    def of(
        rows: SegmentRows, is_alive: Mask, gone_readers: Counter[str] | None = None
    ) -> "Segment":
        """Take rows and which of them are left."""
        gone_readers = Counter() if gone_readers is None else gone_readers
        return Segment(rows, is_alive, int(np.count_nonzero(is_alive)), gone_readers)

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
        names, codes = self.rows.subscribers, self.rows.columns.subscribers.codes
        if len(codes) > _GROUPED_MAX:
            codes = np.unique(codes[self.match(event)])
            return [names[code] for code in codes[codes >= 0].tolist()]
        is_open = np.array([*(name not in found for name in names), False])  # last: nobody
        wanted = self.is_alive & is_open[codes]
        positions = self.rows.index.find(event, np.where(wanted, codes, -1))
        return [names[code] for code in codes[positions].tolist()]

    def without(self, removed: pa.Array) -> "Segment":
        """Return the segment without some ids."""
        gone = self.rows.columns.ids.find_many(removed)
        gone = gone[gone >= 0]
        newly = np.unique(gone[self.is_alive[gone]])
        return self.leave_out(newly) if newly.size else self

    def leave_out(self, gone: Positions) -> "Segment":
        """Return the segment without some living rows."""
        is_alive = self.is_alive.copy()
        is_alive[gone] = False
        readers = self.gone_readers + self.rows.count_readers(gone)
        return Segment.of(self.rows.without(gone.tolist()), is_alive, readers)

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
