"""Siena's forwarding table, extended with regions.

After Siena Fast Forwarding (Carzaniga and Wolf 2003) and the CR-tree paper (2011): every distinct
constraint is stored once, those that indexes find are counted per filter, and a filter whose count
is complete is satisfied, if what it does not count holds too. Relations that must be computed come
after all that is known without, and only as long as they can still find somebody. How space is
indexed, and who decides it, is chosen.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from copy import copy

import numpy as np
from numpy.typing import NDArray
from shapely.geometry.base import BaseGeometry

from contrada.arrays import Positions
from contrada.collecting import untrack
from contrada.kernels.counting import keep_held
from contrada.matching.columns import EventBatch
from contrada.matching.engine import Index
from contrada.matching.grouping import group_by
from contrada.matching.indexes import INDEXES, ConstraintIndex, SpatialIndex
from contrada.matching.indexes.by_tree import ExactEvaluator, SpaceIndex
from contrada.matching.indexes.cr_tree import CRTree, may_hold_apart
from contrada.matching.indexes.equality import equal_values
from contrada.matching.indexes.operands import is_operand
from contrada.matching.indexes.patterns import read_shape
from contrada.matching.subscription_columns import SubscriptionColumns
from contrada.matching.tallying import Counted, Tally
from contrada.model.event import Event
from contrada.model.expression import (
    Attribute,
    Comparison,
    DistanceWithin,
    In,
    Like,
    Literal,
    Spatial,
    children,
)
from contrada.model.subscription import Constraint, Filter

_FEW = 16  # so few open constraints are all evaluated, whether that is useful or not
_PRUNED_SHARE = 16  # trees are pruned when a sixteenth of the positions is gone
_ASKED_FIRST = 4  # open constraints of a group that are evaluated together; then twice as many


def _uncollected(constraints: Iterable[Constraint]) -> Iterator[Constraint]:
    """Hide constraints, as they are made, from Python's collector: nobody would run meanwhile."""
    for constraint in constraints:
        untrack((constraint, constraint.test, *children(constraint.test)))
        yield constraint


class ForwardingIndex:
    """Constraints in indexes, filters by count."""

    def __init__(
        self,
        subscriptions: SubscriptionColumns,
        space: SpatialIndex | None = None,
    ) -> None:
        """Offer every distinct constraint to the indexes; keep what none of them takes.

        `space` comes empty; without one it is the CR-tree with exact relations.
        """
        self._table = subscriptions.table
        self._constraints = list(_uncollected(self._table.constraints))
        self._is_alive = np.ones(len(subscriptions), bool)
        self._space = space or SpaceIndex(ExactEvaluator())
        self._indexes: list[ConstraintIndex] = [make() for make in INDEXES]
        self._late: list[ConstraintIndex] = [make() for make in INDEXES]
        self._unpruned = 0
        self._lay_out()
        self._space.freeze()
        for index in (*self._indexes, *self._late):
            index.freeze()

    def _lay_out(self) -> None:
        """Choose what each filter counts, and point from those constraints to the filters.

        A filter with selective constraints counts only those, and the rest is looked at when they
        hold: in late indexes if many filters wait for theirs, else one by one. Any other filter
        counts all that an index takes.
        """
        table = self._table
        selective = np.array([is_selective(c) for c in self._constraints], bool)
        filter_of = np.repeat(np.arange(len(table.owner)), table.sizes())
        has_selective = np.zeros(len(table.owner), bool)
        has_selective[filter_of[selective[table.members]]] = True
        self._has_selective = has_selective
        wanted = selective[table.members] | ~has_selective[filter_of]
        is_taken = np.zeros(len(self._constraints), bool)
        for number in np.unique(table.members[wanted]).tolist():
            constraint = self._constraints[number]
            is_taken[number] = self._space.take(number, constraint) or any(
                index.take(number, constraint) for index in self._indexes
            )
        counted = wanted & is_taken[table.members]
        order, starts = group_by(table.members[counted], len(self._constraints))
        needed = np.bincount(filter_of[counted], minlength=len(table.owner)).astype(np.int64)
        self._counted = Counted(starts, filter_of[counted][order], needed)
        self._unindexed = np.flatnonzero(needed == 0)
        rest = np.flatnonzero(~counted)
        _, self._rest_starts = group_by(filter_of[rest], len(table.owner))
        self._has_rest = np.diff(self._rest_starts) > 0
        self._rest = table.members[rest]
        self._is_unlisted = np.ones(len(self._constraints), bool)
        for number in np.unique(self._rest).tolist():
            constraint = self._constraints[number]
            taken = any(index.take(number, constraint) for index in self._late)
            self._is_unlisted[number] = not taken

    def find(self, event: Event, groups: Positions) -> Positions:
        """Count what the indexes know; evaluate only what may still find a group."""
        known = [ids for index in self._indexes for ids in index.satisfied(event)]
        apart, near = self._space.survey(event)
        tally = Tally(self._counted, self._table.owner, groups)
        if known or apart:
            self._count(tally, event, np.concatenate([*known, *apart]))
        open_ = self._place(tally, event, near)
        quota = _ASKED_FIRST
        while open_.size:
            chosen, open_ = tally.choose(open_, quota) if open_.size > _FEW else (open_, open_[:0])
            self._count(tally, event, self._space.decide(event, chosen))
            quota *= 2
        self._evaluate(tally, event, self._unindexed)
        return tally.found()

    def _place(self, tally: Tally, event: Event, near: Positions) -> Positions:
        """Count what a grid decides of the constraints that may find a group; give the rest."""
        if len(near) <= _FEW:
            return near
        _, useful = tally.choose(near, 0)
        placed, open_ = self._space.place(event, useful)
        if placed.size:
            self._count(tally, event, placed)
        return open_

    def _count(self, tally: Tally, event: Event, numbers: Positions) -> None:
        """Count satisfied constraints; evaluate the rest of the filters that become complete."""
        complete = tally.add(numbers)
        has_rest = self._has_rest[complete]
        tally.find(complete[~has_rest])
        self._evaluate(tally, event, complete[has_rest])

    def _evaluate(self, tally: Tally, event: Event, filters: Positions) -> None:
        """Look at the rest of filters, where it may still find a group."""
        if len(filters) > _FEW:
            filters = self._keep_held(event, filters)
        for filter_ in filters.tolist():
            if not tally.is_settled(filter_) and self._holds_rest(filter_, event, tally.known):
                tally.find_alone(filter_)

    def _keep_held(self, event: Event, filters: Positions) -> Positions:
        """Drop the filters that fail a constraint which the late indexes know."""
        holds = np.zeros(len(self._is_unlisted), bool)
        for index in self._late:
            for numbers in index.satisfied(event):
                holds[numbers] = True
        return keep_held(filters, self._rest_starts, self._rest, self._is_unlisted, holds)

    def _holds_rest(self, filter_: int, event: Event, known: dict[int, bool]) -> bool:
        first, last = self._rest_starts[filter_], self._rest_starts[filter_ + 1]
        for number in self._rest[first:last].tolist():
            if number not in known:
                constraint = self._constraints[number]
                known[number] = self._space.is_satisfied(number, constraint, event)
            if not known[number]:
                return False
        return True

    def match_batch(self, batch: EventBatch) -> tuple[Positions, Positions]:
        """Match row by row: the paper's algorithm takes one message at a time."""
        rows: list[Positions] = []
        positions: list[Positions] = []
        groups = self.everything
        for row in range(batch.length):
            found = self.find(batch.row(row), groups)
            rows.append(np.full(len(found), row, np.int64))
            positions.append(found)
        none = np.zeros(0, np.int64)
        return np.concatenate([none, *rows]), np.concatenate([none, *positions])

    def prepare(self, like: Sequence[Index]) -> None:
        """Do nothing: all is there."""

    def without(self, positions: Collection[int]) -> Index:
        """Mark positions as removed; delete their constraints once they are many."""
        twin = copy(self)
        twin._is_alive = self._is_alive.copy()
        twin._is_alive[list(positions)] = False
        twin._unpruned += len(positions)
        if twin._unpruned * _PRUNED_SHARE >= len(self._is_alive):
            twin._space = self._space.without(np.flatnonzero(twin._unused()).tolist())
            twin._unpruned = 0
        return twin

    def _unused(self) -> NDArray[np.bool_]:
        """Which constraints only filters of removed positions count."""
        living = self._is_alive[self._table.owner[self._counted.filters]]
        counts = np.diff(self._counted.starts)
        numbers = np.repeat(np.arange(len(counts)), counts)
        return np.asarray((np.bincount(numbers, living, len(counts)) == 0) & (counts > 0))

    def breadth(self) -> int:
        """Count the filters without a selective constraint."""
        return int((~self._has_selective).sum())

    def stats(self) -> dict[str, int]:
        """Count filters, distinct constraints, those without an index, and what is in space."""
        return {
            "filters": len(self._table.owner),
            "constraints": len(self._constraints),
            "evaluated": len(self._rest),
            "unindexed": len(self._unindexed),
            **self._space.stats(),
        }

    @property
    def everything(self) -> Positions:
        """A group of its own for each position that has not been removed."""
        return np.where(self._is_alive, np.arange(len(self._is_alive)), -1)

    def trees(self) -> dict[str, CRTree]:
        """The CR-tree of each geometry attribute."""
        return self._space.trees()


def is_selective(constraint: Constraint) -> bool:
    """Whether few events can be expected to satisfy a constraint that an index finds."""
    match constraint.test:
        case Spatial(relation, Attribute(), Literal(BaseGeometry())):
            return not may_hold_apart(relation, constraint.is_negated)
        case DistanceWithin(Attribute(), Literal(), Literal()):
            return not constraint.is_negated
        case Comparison("=", operand, Literal()) | In(operand, _):
            return (
                is_operand(operand)
                and equal_values(constraint) is not None
                and (not constraint.is_negated)
            )
        case Like(operand, Literal(str() as pattern)):
            is_indexed = is_operand(operand) and read_shape(pattern) not in {None, ("inside", "")}
            return is_indexed and not constraint.is_negated
    return False


def effort_of(constraint: Constraint) -> int:
    """Rank a constraint: an index finds it and few events satisfy it, or not."""
    return 0 if is_selective(constraint) else 1


def describe_counted(filter_: Filter, space: SpatialIndex) -> list[str]:
    """Describe what serves each constraint: the selective ones are counted, or without any all."""
    constraints = filter_.constraints
    has_selective = any(map(is_selective, constraints))
    found = [
        (space.describe(constraint) or _name_index(constraint))
        if is_selective(constraint) or not has_selective
        else None
        for constraint in constraints
    ]
    rest = "evaluated where the others hold" if any(found) else "evaluated on every event"
    return [words or rest for words in found]


def _name_index(constraint: Constraint) -> str | None:
    for make in INDEXES:
        index = make()
        if index.take(0, constraint):
            return index.words.format(constraint.attributes()[0])
    return None
