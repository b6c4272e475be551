"""The subscriptions that were added last beside very many: few, so that each may be evaluated.

Writing columns and an index for one more would take longer than the events that come before the
next. Most have an anchor, whose box rules them out for most events at once. An approximate engine
cannot have this, since its answers are its index's.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from contrada.arrays import Box, Floats, Mask, Positions
from contrada.language import truth
from contrada.language.expecting import Kinds
from contrada.matching.anchors import find_anchors
from contrada.matching.columns import EventBatch
from contrada.matching.engine import Index, MakeIndex
from contrada.matching.id_columns import IdColumn, make_id_array
from contrada.matching.mismatches import list_expectations
from contrada.matching.subscription_columns import SubscriptionColumns, pack_subscriptions
from contrada.model.event import Event
from contrada.model.expression import DistanceWithin, attributes, geometry_attributes
from contrada.model.subscription import Id, Subscription
from contrada.threads import once

_UNPLACED_WEIGHT = 16  # one without a box is evaluated on every event
_PAIRS_MAX = 100  # of events and subscriptions in one batch that are evaluated one by one
_BOXES_MAX = 100_000  # pairs of boxes in one batch

_NOWHERE: Box = (np.inf, np.inf, -np.inf, -np.inf)


class RecentSubscription:
    """A subscription, and what is asked about it again and again."""

    def __init__(self, subscription: Subscription) -> None:
        """Find the box in which an event must lie, if there is one."""
        self.subscription = subscription
        self.geometry_attributes = frozenset(geometry_attributes(subscription.predicate.expression))
        self.attribute, self.box = _find_box(subscription)
        self.weight = _UNPLACED_WEIGHT if self.attribute is None else 1

    @once
    def attributes(self) -> frozenset[str]:
        """Names of all that it reads."""
        return frozenset(attributes(self.subscription.predicate.expression))

    @once
    def expectations(self) -> frozenset[tuple[str, Kinds]]:
        """The kinds of values that it expects of attributes."""
        return list_expectations([self.subscription.predicate.expression])

    @once
    def has_distances(self) -> bool:
        """Whether it asks for a distance."""
        filters = self.subscription.predicate.filters
        return any(isinstance(c.test, DistanceWithin) for f in filters for c in f.constraints)

    def holds(self, event: Event) -> bool:
        """Evaluate it."""
        return truth(self.subscription.predicate.expression, event) is True


def _find_box(subscription: Subscription) -> tuple[str | None, Box]:
    """Find the attribute and the box that a matching event must meet; None without such a box."""
    anchors = find_anchors(subscription)
    names = {name for name, _ in anchors or ()}
    if anchors is None or len(names) != 1:
        return None, _NOWHERE
    boxes = np.array([geometry.bounds for _, geometry in anchors])
    west, south = boxes[:, :2].min(axis=0).tolist()
    east, north = boxes[:, 2:].max(axis=0).tolist()
    return names.pop(), (west, south, east, north)


@dataclass(frozen=True, slots=True)
class Boxes:
    """Where events must lie to satisfy subscriptions, which are numbered."""

    count: int = 0
    placed: Mapping[str, tuple[Positions, Floats]] = field(default_factory=dict)  # by attribute
    unplaced: Sequence[int] = ()  # those that have no box
    geometry_attributes: frozenset[str] = frozenset()

    def extended(self, members: Collection[RecentSubscription]) -> "Boxes":
        """Return the boxes with those of more subscriptions."""
        unplaced = list(self.unplaced)
        fresh: dict[str, tuple[list[int], list[Box]]] = {}
        for number, member in enumerate(members, self.count):
            if member.attribute is None:
                unplaced.append(number)
            else:
                numbers, boxes = fresh.setdefault(member.attribute, ([], []))
                numbers.append(number)
                boxes.append(member.box)
        placed = dict(self.placed)
        for name, (numbers, boxes) in fresh.items():
            known = placed.get(name, (np.zeros(0, np.int64), np.zeros((0, 4))))
            placed[name] = np.append(known[0], numbers), np.concatenate([known[1], boxes])
        names = self.geometry_attributes.union(*{m.geometry_attributes for m in members})
        return Boxes(self.count + len(members), placed, unplaced, names)

    def without(self, gone: Positions, left: Collection[RecentSubscription]) -> "Boxes":
        """Return the boxes of those that are left without some numbers; the others move up."""
        moves = np.arange(self.count) - np.searchsorted(gone, np.arange(self.count))
        moves[gone] = -1
        placed = {}
        for name, (numbers, boxes) in self.placed.items():
            moved = moves[numbers]
            if (moved >= 0).any():
                placed[name] = moved[moved >= 0], boxes[moved >= 0]
        unplaced = moves[np.array(self.unplaced, np.int64)]
        names = frozenset[str]().union(*{member.geometry_attributes for member in left})
        return Boxes(len(left), placed, unplaced[unplaced >= 0].tolist(), names)

    def find(self, event: Event) -> list[int]:
        """Find the subscriptions that an event may satisfy."""
        found = list(self.unplaced)
        for name, (numbers, boxes) in self.placed.items():
            geometry = event.geometry(name)
            if geometry is not None:
                found += numbers[_meet(boxes, np.array(geometry.bounds))].tolist()
        return found

    def find_pairs(self, batch: EventBatch) -> tuple[list[int], list[int]] | None:
        """Find the rows and subscriptions that may match; None where these are too many."""
        if self.count * batch.length > _BOXES_MAX or len(self.unplaced) * batch.length > _PAIRS_MAX:
            return None
        rows = [row for row in range(batch.length) for _ in self.unplaced]
        found = [*self.unplaced] * batch.length
        for name, (numbers, boxes) in self.placed.items():
            events = batch.geometry(name).boxes()
            at, which = np.nonzero(_meet(boxes[None], events[:, None]))
            rows += at.tolist()
            found += numbers[which].tolist()
        return (rows, found) if len(rows) <= _PAIRS_MAX else None


class Recent:
    """Subscriptions by position, in the order in which they were added; they never change."""

    def __init__(
        self,
        make_index: MakeIndex,
        members: Mapping[Id, RecentSubscription] | None = None,
        boxes: "Boxes | None" = None,
    ) -> None:
        """Hold subscriptions by their ids; `boxes` are theirs, if they are known."""
        self._make_index = make_index
        self.members = {} if members is None else members
        self._boxes = Boxes().extended(self.members.values()) if boxes is None else boxes
        self.weight = len(self.members) + (_UNPLACED_WEIGHT - 1) * len(self._boxes.unplaced)

    def __len__(self) -> int:
        return len(self.members)

    def __iter__(self) -> Iterator[Subscription]:
        return (member.subscription for member in self.members.values())

    def changed(self, removed: Collection[Id], added: Sequence[Subscription]) -> "Recent":
        """Return what is left without some ids and with more subscriptions."""
        kept, boxes = self.members, self._boxes
        if not kept.keys().isdisjoint(removed):
            kept, boxes = self._leave_out(kept.keys() & removed)
        elif not added:
            return self
        new = {subscription.id: RecentSubscription(subscription) for subscription in added}
        return Recent(self._make_index, {**kept, **new}, boxes.extended(new.values()))

    def without(self, members: Collection[RecentSubscription]) -> "Recent":
        """Return what is left without some, unless others have taken their place."""
        ids = {m.subscription.id for m in members if self.members.get(m.subscription.id) is m}
        return Recent(self._make_index, *self._leave_out(ids)) if ids else self

    def _leave_out(self, ids: Collection[Id]) -> tuple[dict[Id, RecentSubscription], Boxes]:
        gone = [position for position, id_ in enumerate(self.members) if id_ in ids]
        left = {id_: member for id_, member in self.members.items() if id_ not in ids}
        return left, self._boxes.without(np.array(gone, np.int64), left.values())

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
        return self._boxes.geometry_attributes

    def match(self, event: Event) -> list[Subscription]:
        """Find the subscriptions that an event satisfies."""
        candidates = self._boxes.find(event)
        members = list(self.members.values()) if candidates else []
        return [members[p].subscription for p in candidates if members[p].holds(event)]

    def match_batch(self, batch: EventBatch) -> tuple[Positions, Positions]:
        """Find all pairs of row and position that match, in any order."""
        pairs = self._boxes.find_pairs(batch)
        if pairs is None:
            return self.index.match_batch(batch)
        members = list(self.members.values())
        event_of = partial(_read_row, batch, {})
        holds = [members[p].holds(event_of(row)) for row, p in zip(*pairs, strict=True)]
        rows, positions = np.array(pairs, np.int64).reshape(2, -1)[:, np.array(holds, bool)]
        return rows, positions


def _read_row(batch: EventBatch, known: dict[int, Event], row: int) -> Event:
    if row not in known:
        known[row] = batch.row(row)
    return known[row]


def _meet(boxes: Floats, events: Floats) -> Mask:
    """Which boxes meet those of events, corner against corner; what is empty meets nothing."""
    low = boxes[..., :2] <= events[..., 2:]
    high = boxes[..., 2:] >= events[..., :2]
    return np.asarray(low.all(axis=-1) & high.all(axis=-1), bool)
