"""The index of `strtree`: anchors in trees, and checks for the rest.

Each filter is found through one positive spatial constraint, its anchor: equal anchors are stored
once, in an STRtree (see `anchor_trees`). Without one, a filter is found through a value
(see `value_anchors`). The other constraints of a filter are checked on what is found. Filters
without any anchor (`disjoint`, NOT) are checked on every event.
"""

from collections.abc import Collection, Iterator, Sequence
from itertools import chain

import numpy as np

from contrada.arrays import Mask, Positions
from contrada.language import is_satisfied
from contrada.matching.anchors import anchor_sizes, choose_anchors
from contrada.matching.checks import AskedEvents, Checks, is_range, is_relation
from contrada.matching.columns import EventBatch, OneEvent
from contrada.matching.engine import Index
from contrada.matching.grouping import expand, find_used, group_by
from contrada.matching.strtree.anchor_trees import AnchorTree, make_trees
from contrada.matching.strtree.event_ranges import EventRanges
from contrada.matching.strtree.value_anchors import (
    EventValues,
    ValueAnchors,
    make_value_anchors,
    rank_value_anchors,
)
from contrada.matching.subscription_columns import SubscriptionColumns
from contrada.model.event import Event
from contrada.model.packed_lists import repeat
from contrada.model.subscription import Constraint
from contrada.threads import once

_FEW = 16  # so few filters are evaluated one by one for an event
_PAIRS_AT_ONCE = 1_000_000
_NONE = np.zeros(0, np.int64)


class StrtreeIndex:
    """Trees of anchors, a table of filters, and checks for all other constraints."""

    def __init__(self, subscriptions: SubscriptionColumns) -> None:
        """Choose an anchor for each filter and build the trees."""
        self._table = subscriptions.table
        self._sizes = self._table.sizes()
        self._has_one_each = bool((np.diff(self._table.owner) > 0).all())
        constraints = self._table.constraints
        anchors = choose_anchors(self._table, anchor_sizes(constraints))
        self._treeless = np.flatnonzero(anchors < 0)
        self._trees = make_trees(constraints, _list_used(anchors, len(constraints)))
        ranks = rank_value_anchors(constraints)
        by_value = np.where(anchors < 0, choose_anchors(self._table, ranks), -1)
        self._values = make_value_anchors(constraints, _list_used(by_value, len(constraints)))
        self._event_values = EventValues(self._values)
        self._anchor_of = np.where(anchors < 0, by_value, anchors)
        self._unanchored = np.flatnonzero(self._anchor_of < 0)
        self._filters, self._filter_starts = group_by(self._anchor_of, len(constraints))
        filter_of = repeat(np.arange(len(self._sizes)), self._sizes)
        is_checked = np.zeros(len(constraints), bool)
        is_checked[self._table.members[self._table.members != self._anchor_of[filter_of]]] = True
        self._has_checks = bool(is_checked.any())
        self._checks = Checks(constraints, is_checked)
        self._made: dict[int, Constraint] = {}  # constraints that were evaluated one by one
        is_range_, self._is_relation = np.zeros((2, len(constraints)), bool)
        for head in constraints.heads():
            is_range_[head.numbers] = is_range(head.constraint)
            self._is_relation[head.numbers] = is_relation(head.constraint)
        self._has_ranges, self._has_relations = is_range_.any(), self._is_relation.any()
        slow = np.flatnonzero(~(is_range_ | self._is_relation)[self._table.members])
        self._are_quick = np.ones(len(self._table.owner), bool)
        self._are_quick[np.searchsorted(self._table.starts, slow, "right") - 1] = False

    def find(self, event: Event, groups: Positions) -> Positions:
        """Find the filters whose anchor holds, then check their other constraints."""
        anchors = []
        for tree in self._trees:
            geometry = event.prepared(tree.attribute)
            if geometry is not None:
                anchors.append(tree.find_one(geometry))
        held = anchors[0] if len(anchors) == 1 else np.concatenate([_NONE, *anchors])
        if self._values:
            held = np.concatenate([held, *self._event_values.find(event)])
        filters = self._filters_of(held)
        if self._unanchored.size:
            filters = np.concatenate([self._unanchored, filters])
        done = _NONE
        if len(filters) > _FEW:
            done, filters = self._check_many(event, groups, filters)
        if not filters.size:
            return done
        found = dict(zip(groups[done].tolist(), done.tolist(), strict=True))
        known = dict.fromkeys(held.tolist(), True)
        for filter_ in filters.tolist():
            position = int(self._table.owner[filter_])
            group = int(groups[position])
            if group >= 0 and group not in found and self._is_satisfied(filter_, event, known):
                found[group] = position
        return np.array(list(found.values()), np.int64)

    @once
    def _event_ranges(self) -> EventRanges:
        """Make what batches do not need, either."""
        return EventRanges(self._table.constraints)

    def _check_many(
        self, event: Event, groups: Positions, filters: Positions
    ) -> tuple[Positions, Positions]:
        """Check filters whose anchors hold as far as that can be done for all at once.

        Returns a position of each group that is satisfied, and the filters that have something
        left to check.
        """
        filters = filters[groups[self._table.owner[filters]] >= 0]
        if self._has_ranges:
            filters = self._event_ranges.keep(event, filters, self._table)
        if self._has_relations:
            rows = np.zeros(len(filters), np.int64)
            batch = OneEvent(event)
            _, filters = self._check(batch, rows, filters, self._is_relation, is_found=True)
        is_done = self._are_quick[filters]
        satisfied = self._table.owner[filters[is_done]]
        firsts = np.unique(groups[satisfied], return_index=True)[1]
        return satisfied[firsts], filters[~is_done]

    def match_batch(self, batch: EventBatch) -> tuple[Positions, Positions]:
        """Match all rows at once, tree by tree and constraint by constraint."""
        found = [self._match_tree(tree, batch) for tree in self._trees]
        found += [pairs for anchors in self._values for pairs in self._match_values(anchors, batch)]
        found += self._match_everywhere(self._unanchored, batch)
        rows = np.concatenate([f[0] for f in found]) if found else np.zeros(0, np.int64)
        filters = np.concatenate([f[1] for f in found]) if found else np.zeros(0, np.int64)
        positions = self._table.owner[filters]
        if self._has_one_each:
            return rows, positions
        pairs = np.unique(np.stack([rows, positions], axis=1), axis=0)
        return pairs[:, 0], pairs[:, 1]

    def prepare(self, like: Sequence[Index]) -> None:
        """Make what single events and batches need, where there are constraints of that kind."""
        for anchors in self._values:
            anchors.prepare()
        if self._has_checks:
            assert self._event_ranges
            self._checks.prepare()
        asked = {name for index in like if isinstance(index, StrtreeIndex) for name in index.made()}
        for tree in self._trees:
            tree.prepare(asked)

    def made(self) -> Iterator[str]:
        """Name what has been made of trees since somebody asked for it."""
        return chain.from_iterable(tree.made() for tree in self._trees)

    def without(self, positions: Collection[int]) -> Index:  # noqa: ARG002
        """Stay as it is: whoever asks leaves removed positions out."""
        return self

    def breadth(self) -> int:
        """Count the filters that are in no tree."""
        return len(self._treeless)

    def stats(self) -> dict[str, int]:
        """Count filters, distinct constraints, trees, and filters that every event visits."""
        return {
            "filters": len(self._table.owner),
            "constraints": len(self._table.constraints),
            "trees": len(self._trees),
            "unanchored": len(self._treeless),
        }

    def _filters_of(self, anchors: Positions) -> Positions:
        if len(anchors) > 1:
            return self._filters[expand(self._filter_starts, anchors)[1]]
        if not len(anchors):
            return anchors
        anchor = int(anchors[0])
        return self._filters[self._filter_starts[anchor] : self._filter_starts[anchor + 1]]

    def _is_satisfied(self, filter_: int, event: Event, known: dict[int, bool]) -> bool:
        for number in self._table.constraints_of(filter_).tolist():
            if number not in known:
                known[number] = self._holds(number, event)
            if not known[number]:
                return False
        return True

    def _holds(self, number: int, event: Event) -> bool:
        """Decide one constraint of one event."""
        decided = self._event_ranges.decide(event, number)
        if decided is not None:
            return decided
        constraint = self._made.get(number)
        if constraint is None:
            constraint = self._made[number] = self._table.constraints[number]
        return is_satisfied(constraint, event)

    def _match_tree(self, tree: AnchorTree, batch: EventBatch) -> tuple[Positions, Positions]:
        rows, anchors = batch.geometry(tree.attribute).find_pairs(tree.find)
        return self._check_found(batch, rows, anchors)

    def _match_values(
        self, anchors: ValueAnchors, batch: EventBatch
    ) -> list[tuple[Positions, Positions]]:
        found = anchors.find(batch)
        if found is not None:
            return [self._check_found(batch, *found)]
        _, places = expand(self._filter_starts, anchors.numbers)
        return self._match_everywhere(self._filters[places], batch)

    def _match_everywhere(
        self, filters: Positions, batch: EventBatch
    ) -> list[tuple[Positions, Positions]]:
        """Check filters on all rows, so many pairs at a time as memory allows."""
        found = []
        rows = np.arange(batch.length, dtype=np.int64)
        step = max(1, _PAIRS_AT_ONCE // max(1, batch.length))
        for start in range(0, len(filters), step):
            part = filters[start : start + step]
            pairs = np.tile(rows, len(part)), np.repeat(part, batch.length)
            found.append(self._check(batch, *pairs))
        return found

    def _check_found(
        self, batch: EventBatch, rows: Positions, anchors: Positions
    ) -> tuple[Positions, Positions]:
        """Check the filters of anchors that hold: all but the anchor."""
        which, places = expand(self._filter_starts, anchors)
        filters = self._filters[places]
        return self._check(batch, rows[which], filters, is_found=True)

    def _check(
        self,
        batch: AskedEvents,
        rows: Positions,
        filters: Positions,
        wanted: Mask | None = None,
        *,
        is_found: bool = False,
    ) -> tuple[Positions, Positions]:
        """Drop the pairs that fail a constraint, or one of those wanted, one at a time.

        Where the filters are found their anchors hold.
        """
        step = 0
        pending = np.arange(len(rows), dtype=np.int64)
        alive = np.ones(len(rows), bool)
        while (pending := pending[(self._sizes[filters[pending]] > step) & alive[pending]]).size:
            chosen = filters[pending]
            constraints = self._table.members[self._table.starts[chosen] + step]
            is_open = np.ones(len(chosen), bool) if wanted is None else wanted[constraints]
            if is_found:
                is_open &= constraints != self._anchor_of[chosen]
            to_check = np.flatnonzero(is_open)
            at = pending[to_check]
            alive[at] = self._checks.holds(batch, rows[at], constraints[to_check])
            step += 1
        return rows[alive], filters[alive]


def _list_used(anchors: Positions, size: int) -> Positions:
    """List the anchors that filters have, each once."""
    return find_used(anchors[anchors >= 0], size)[0]
