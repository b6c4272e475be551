"""The subscriptions that were added last beside very many: few, so that each may be evaluated.

Writing columns and an index for one more would take longer than the events that come before the
next. Most have an anchor, whose box rules them out for most events at once. An approximate engine
cannot have this, since its answers are its index's.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pyarrow as pa
import shapely
from numpy.typing import NDArray
from shapely.geometry.base import BaseGeometry

from contrada.arrays import Box, Floats, Mask, Positions
from contrada.language import truth
from contrada.matching.anchors import find_anchors
from contrada.matching.columns import EventBatch
from contrada.matching.engine import Index, MakeIndex
from contrada.matching.id_columns import IdColumn, make_id_array
from contrada.matching.read_facts import ReadFacts
from contrada.matching.subscription_columns import SubscriptionColumns, pack_subscriptions
from contrada.model.event import Event
from contrada.model.expression import Expression, Literal, children, geometry_attributes
from contrada.model.subscription import Id, Subscription
from contrada.threads import once

_UNPLACED_WEIGHT = 16  # one without a box is evaluated on every event
_VERTICES_WEIGHT = 256  # vertices that make a subscription as heavy as one more
_PAIRS_MAX, _PAIRS_EACH = 100, 4  # in one batch, and for each subscription: evaluated one by one
_BOXES_MAX = 500_000  # pairs of boxes in one batch

_NOWHERE: Box = (np.inf, np.inf, -np.inf, -np.inf)


class RecentSubscription:
    """A subscription, and what is asked about it again and again."""

    def __init__(self, subscription: Subscription, number: int) -> None:
        """Find the box in which an event must lie, if there is one.

        The number is greater than that of whatever was added before.
        """
        self.subscription, self.number = subscription, number
        expression = subscription.predicate.expression
        self.geometry_attributes = frozenset(geometry_attributes(expression))
        self.attribute, self.box = _find_box(subscription)
        evaluations = 1 if self.attribute is not None else _UNPLACED_WEIGHT
        self.weight = evaluations * (1 + _count_vertices(expression) // _VERTICES_WEIGHT)

    @once
    def facts(self) -> ReadFacts:
        """What it reads."""
        return ReadFacts.of(self.subscription.predicate.expression)

    def holds(self, event: Event) -> bool:
        """Evaluate it."""
        return truth(self.subscription.predicate.expression, event) is True


def _find_box(subscription: Subscription) -> tuple[str | None, Box]:
    """Find the attribute and the box that a matching event must meet; None without such a box."""
    anchors = find_anchors(subscription)
    names = {name for name, _ in anchors or ()}
    if anchors is None or len(names) != 1:
        return None, _NOWHERE
    west, south, east, north = zip(*(geometry.bounds for _, geometry in anchors), strict=True)
    return names.pop(), (min(west), min(south), max(east), max(north))


def _count_vertices(expression: Expression) -> int:
    """Count the vertices of all geometries that a predicate names."""
    if isinstance(expression, Literal) and isinstance(expression.value, BaseGeometry):
        return int(shapely.get_num_coordinates(expression.value))
    return sum(map(_count_vertices, children(expression)))


@dataclass(frozen=True, slots=True)
class PlacedSubscriptions:
    """Subscriptions in the order of their numbers, and where an event must lie for each."""

    numbers: Positions
    members: NDArray[np.object_]
    boxes: Floats

    @staticmethod
    def of(members: Collection[RecentSubscription]) -> "PlacedSubscriptions":
        """Take subscriptions that have a box."""
        column = np.empty(len(members), object)
        column[:] = list(members)
        numbers = np.array([member.number for member in members], np.int64)
        boxes = np.array([member.box for member in members]).reshape(-1, 4)
        return PlacedSubscriptions(numbers, column, boxes)

    def extended(self, other: "PlacedSubscriptions") -> "PlacedSubscriptions":
        """Put others after these."""
        return PlacedSubscriptions(
            np.concatenate([self.numbers, other.numbers]),
            np.concatenate([self.members, other.members]),
            np.concatenate([self.boxes, other.boxes]),
        )

    def without(self, gone: Collection[RecentSubscription]) -> "PlacedSubscriptions":
        """Leave some of them out."""
        is_left = np.ones(len(self.numbers), bool)
        is_left[np.searchsorted(self.numbers, [member.number for member in gone])] = False
        return PlacedSubscriptions(
            self.numbers[is_left], self.members[is_left], self.boxes[is_left]
        )


@dataclass(frozen=True, slots=True)
class Boxes:
    """Where events must lie to satisfy subscriptions."""

    placed: Mapping[str, PlacedSubscriptions] = field(default_factory=dict)  # by attribute
    unplaced: tuple[RecentSubscription, ...] = ()  # those that have no box
    readers: Mapping[str, int] = field(default_factory=dict)  # of each attribute as a geometry

    def extended(self, members: Collection[RecentSubscription]) -> "Boxes":
        """Return the boxes with those of more subscriptions."""
        by_name, unplaced = _divide(members)
        placed = dict(self.placed)
        for name, some in by_name.items():
            known, new = placed.get(name), PlacedSubscriptions.of(some)
            placed[name] = new if known is None else known.extended(new)
        return Boxes(placed, (*self.unplaced, *unplaced), _count_readers(self.readers, members, 1))

    def without(self, members: Collection[RecentSubscription]) -> "Boxes":
        """Return the boxes without those of some subscriptions that are here."""
        by_name, gone = _divide(members)
        placed = dict(self.placed)
        for name, some in by_name.items():
            placed[name] = placed[name].without(some)
            if not len(placed[name].numbers):
                del placed[name]
        unplaced = self.unplaced
        if gone:
            unplaced = tuple(member for member in unplaced if member not in gone)
        return Boxes(placed, unplaced, _count_readers(self.readers, members, -1))

    def find(self, event: Event) -> list[RecentSubscription]:
        """Find the subscriptions that an event may satisfy."""
        found = list(self.unplaced)
        for name, placed in self.placed.items():
            geometry = event.geometry(name)
            if geometry is not None:
                is_near = _meet(placed.boxes, np.array(geometry.bounds))
                found += placed.members[is_near].tolist()
        return found

    def find_pairs(self, batch: EventBatch) -> tuple[list[int], list[RecentSubscription]] | None:
        """Find the rows and subscriptions that may match; None where these are too many."""
        count = sum(len(placed.numbers) for placed in self.placed.values())
        pairs_max = _PAIRS_MAX + _PAIRS_EACH * (count + len(self.unplaced))
        if count * batch.length > _BOXES_MAX or len(self.unplaced) * batch.length > pairs_max:
            return None
        rows = [row for row in range(batch.length) for _ in self.unplaced]
        found = [*self.unplaced] * batch.length
        for name, placed in self.placed.items():
            events = batch.geometry(name).boxes()
            at, which = np.nonzero(_meet(placed.boxes[None], events[:, None]))
            rows += at.tolist()
            found += placed.members[which].tolist()
        return (rows, found) if len(rows) <= pairs_max else None


def _divide(
    members: Collection[RecentSubscription],
) -> tuple[dict[str, list[RecentSubscription]], dict[RecentSubscription, None]]:
    """Sort subscriptions by the attribute of their box, and list those that have none."""
    by_name: dict[str, list[RecentSubscription]] = {}
    unplaced = dict[RecentSubscription, None]()
    for member in members:
        if member.attribute is None:
            unplaced[member] = None
        else:
            by_name.setdefault(member.attribute, []).append(member)
    return by_name, unplaced


def _count_readers(
    readers: Mapping[str, int], members: Collection[RecentSubscription], step: int
) -> Mapping[str, int]:
    counts = dict(readers)
    for member in members:
        for name in member.geometry_attributes:
            counts[name] = counts.get(name, 0) + step
    return {name: count for name, count in counts.items() if count}


class Recent:
    """Subscriptions by position, in the order in which they were added; they never change."""

    def __init__(
        self,
        make_index: MakeIndex,
        members: dict[Id, RecentSubscription] | None = None,
        boxes: Boxes | None = None,
        weight: int = 0,
    ) -> None:
        """Hold subscriptions by their ids, with their boxes and what they weigh together."""
        self._make_index = make_index
        self.members = {} if members is None else members
        self._boxes = Boxes() if boxes is None else boxes
        self.weight = weight

    def __len__(self) -> int:
        return len(self.members)

    def __iter__(self) -> Iterator[Subscription]:
        return (member.subscription for member in self.members.values())

    def choose(self, ids: Sequence[Id] | pa.Array) -> list[Id]:
        """Choose those of some ids that a subscription here has."""
        listed = ids.to_pylist() if isinstance(ids, pa.Array) else ids
        return [id_ for id_ in listed if id_ in self.members]

    def changed(self, removed: Collection[Id], added: Sequence[Subscription]) -> "Recent":
        """Return what is left without some ids and with more subscriptions."""
        left = self.without([self.members[id_] for id_ in removed])
        if not added:
            return left
        first = 1 + next(reversed(self.members.values())).number if self.members else 0
        new = [RecentSubscription(one, number) for number, one in enumerate(added, first)]
        members = {**left.members, **{member.subscription.id: member for member in new}}
        weight = left.weight + sum(member.weight for member in new)
        return Recent(self._make_index, members, left._boxes.extended(new), weight)

    def without(self, members: Collection[RecentSubscription]) -> "Recent":
        """Return what is left without some, unless others have taken their place."""
        gone = {m for m in members if self.members.get(m.subscription.id) is m}
        if not gone:
            return self
        left = dict(self.members)
        for member in gone:
            del left[member.subscription.id]
        weight = self.weight - sum(member.weight for member in gone)
        return Recent(self._make_index, left, self._boxes.without(gone), weight)

    @once
    def ids(self) -> IdColumn:
        """The ids by position."""
        return IdColumn(make_id_array(list(self.members)))

    @once
    def columns(self) -> SubscriptionColumns:
        """The same as columns."""
        return pack_subscriptions(list(self))

    @once
    def index(self) -> Index:
        """The index of the engine, which large batches are worth."""
        return self._make_index(self.columns)

    @property
    def geometry_attributes(self) -> frozenset[str]:
        """Names of the attributes that a subscription reads as geometries."""
        return frozenset(self._boxes.readers)

    def match(self, event: Event) -> list[Subscription]:
        """Find the subscriptions that an event satisfies."""
        return [member.subscription for member in self._boxes.find(event) if member.holds(event)]

    def match_batch(self, batch: EventBatch) -> tuple[Positions, Positions]:
        """Find all pairs of row and position that match, in any order."""
        pairs = self._boxes.find_pairs(batch)
        if pairs is None:
            return self.index.match_batch(batch)
        event_of = partial(_read_row, batch, {})
        held = [(row, m.number) for row, m in zip(*pairs, strict=True) if m.holds(event_of(row))]
        rows, numbers = np.array(held, np.int64).reshape(-1, 2).T
        return rows, np.searchsorted([m.number for m in self.members.values()], numbers)


def _read_row(batch: EventBatch, known: dict[int, Event], row: int) -> Event:
    if row not in known:
        known[row] = batch.row(row)
    return known[row]


def _meet(boxes: Floats, events: Floats) -> Mask:
    """Which boxes meet those of events, corner against corner; what is empty meets nothing."""
    west, south, east, north = (boxes[..., side] for side in range(4))
    low_x, low_y, high_x, high_y = (events[..., side] for side in range(4))
    meets = (west <= high_x) & (east >= low_x) & (south <= high_y) & (north >= low_y)
    return np.asarray(meets, bool)
