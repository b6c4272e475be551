"""The engine `crtree`: Siena's forwarding table, extended with regions.

After Siena Fast Forwarding (Carzaniga and Wolf 2003) and the CR-tree paper (2011): every distinct
constraint is in one index, the satisfied ones are counted per filter, and a filter whose count is
complete is satisfied. Constraints that no index serves are evaluated last, on the filters that the
rest leaves.
"""

from collections.abc import Collection, Iterator, Sequence
from copy import copy

import numpy as np
from shapely.geometry.base import BaseGeometry

from contrada.kernels.searching import count_filters
from contrada.language import is_satisfied
from contrada.matching.columns import EventBatch, Mask, Rows
from contrada.matching.crtree import CRTree, may_hold_apart
from contrada.matching.engine import Index, Skip
from contrada.matching.indexes import INDEXES, ConstraintIndex
from contrada.matching.indexes.equality import equal_values
from contrada.matching.indexes.operands import is_operand
from contrada.matching.indexes.patterns import read_shape
from contrada.matching.indexes.space import Evaluator, ExactEvaluator, SpaceIndex
from contrada.matching.table import Ids, group_by, make_table
from contrada.model.event import Event
from contrada.model.expression import (
    Attribute,
    Comparison,
    DistanceWithin,
    In,
    Like,
    Literal,
    Spatial,
)
from contrada.model.subscription import Constraint, Subscription


class ForwardingIndex:
    """Constraints in indexes, filters by count."""

    def __init__(
        self,
        subscriptions: Sequence[Subscription],
        evaluator: Evaluator | None = None,
        split: str = "quadratic",
    ) -> None:
        """Offer every distinct constraint to the indexes; keep what none of them takes."""
        self._table = make_table(subscriptions)
        self._is_alive = np.ones(len(subscriptions), bool)
        self._space = SpaceIndex(evaluator or ExactEvaluator(), split)
        self._indexes: list[ConstraintIndex] = [self._space, *(make() for make in INDEXES)]
        self._lay_out()
        for index in self._indexes:
            index.freeze()

    def _lay_out(self) -> None:
        """Choose what each filter counts, and point from those constraints to the filters.

        A filter with selective constraints counts only those, and the rest is evaluated when they
        hold; any other filter counts all that an index takes.
        """
        table = self._table
        selective = np.array([is_selective(c) for c in table.constraints], bool)
        filter_of = np.repeat(np.arange(len(table.owner)), table.sizes())
        has_selective = np.zeros(len(table.owner), bool)
        has_selective[filter_of[selective[table.members]]] = True
        self._has_selective = has_selective
        wanted = selective[table.members] | ~has_selective[filter_of]
        is_taken = np.zeros(len(table.constraints), bool)
        for number in np.unique(table.members[wanted]).tolist():
            constraint = table.constraints[number]
            is_taken[number] = any(index.take(number, constraint) for index in self._indexes)
        counted = wanted & is_taken[table.members]
        order, self._starts = group_by(table.members[counted], len(table.constraints))
        self._filters: Ids = filter_of[counted][order]
        self._needed = np.bincount(filter_of[counted], minlength=len(table.owner)).astype(np.int64)
        self._unindexed = np.flatnonzero(self._needed == 0)
        rest = np.flatnonzero(~counted)
        _, self._rest_starts = group_by(filter_of[rest], len(table.owner))
        self._rest = table.members[rest]

    def find(self, event: Event, is_alive: Mask) -> Ids:
        """Count the satisfied constraints, all at once; evaluate only what no index serves."""
        complete = self._complete(event)
        complete = complete[is_alive[self._table.owner[complete]]]
        has_rest = self._rest_starts[complete + 1] > self._rest_starts[complete]
        known: dict[int, bool] = {}
        unindexed = self._unindexed[is_alive[self._table.owner[self._unindexed]]]
        open_filters = [*complete[has_rest].tolist(), *unindexed.tolist()]
        held = [f for f in open_filters if self._holds_rest(f, event, known)]
        filters = np.concatenate([complete[~has_rest], np.array(held, np.int64)])
        return np.unique(self._table.owner[filters])

    def match(self, event: Event, skip: Skip) -> Iterator[int]:
        """Count the satisfied constraints; yield each subscription at its first filter."""
        known: dict[int, bool] = {}
        found: set[int] = set()
        for filter_ in [*self._complete(event).tolist(), *self._unindexed.tolist()]:
            position = int(self._table.owner[filter_])
            if position in found or skip(position):
                continue
            if self._holds_rest(filter_, event, known):
                found.add(position)
                yield position

    def _complete(self, event: Event) -> Ids:
        """Give the filters all of whose counted constraints an event satisfies."""
        satisfied = [ids for index in self._indexes for ids in index.satisfied(event)]
        numbers = np.concatenate(satisfied) if satisfied else np.zeros(0, np.int64)
        scratch = np.zeros(len(self._needed), np.int64)
        return count_filters(numbers, self._starts, self._filters, self._needed, scratch)

    def _holds_rest(self, filter_: int, event: Event, known: dict[int, bool]) -> bool:
        first, last = self._rest_starts[filter_], self._rest_starts[filter_ + 1]
        for number in self._rest[first:last].tolist():
            if number not in known:
                known[number] = is_satisfied(self._table.constraints[number], event)
            if not known[number]:
                return False
        return True

    def match_batch(self, batch: EventBatch) -> tuple[Rows, Ids]:
        """Match row by row: the paper's algorithm takes one message at a time."""
        rows: list[Rows] = []
        positions: list[Ids] = []
        for row in range(batch.length):
            found = self.find(batch.row(row), self._is_alive)
            rows.append(np.full(len(found), row, np.int64))
            positions.append(found)
        none = np.zeros(0, np.int64)
        return np.concatenate([none, *rows]), np.concatenate([none, *positions])

    def without(self, positions: Collection[int]) -> Index:
        """Delete from the trees the constraints that only filters of these positions have."""
        twin = copy(self)
        twin._is_alive = self._is_alive.copy()
        twin._is_alive[list(positions)] = False
        living = twin._is_alive[self._table.owner[self._filters]]
        used = np.zeros(len(self._table.constraints), np.int64)
        counts = np.diff(self._starts)
        np.add.at(used, np.repeat(np.arange(len(counts)), counts), living)
        twin._space = self._space.without(np.flatnonzero(used == 0).tolist())
        twin._indexes = [twin._space, *self._indexes[1:]]
        return twin

    def breadth(self) -> int:
        """Count the filters without a selective constraint."""
        return int((~self._has_selective).sum())

    def stats(self) -> dict[str, int]:
        """Count filters, distinct constraints, those without an index, and nodes of the trees."""
        return {
            "filters": len(self._table.owner),
            "constraints": len(self._table.constraints),
            "evaluated": len(self._rest),
            "unindexed": len(self._unindexed),
            "nodes": sum(int(tree.arrays[1][1]) for tree in self.trees().values()),
        }

    @property
    def everything(self) -> Mask:
        """Tell which positions have not been removed from the index."""
        return self._is_alive

    def trees(self) -> dict[str, CRTree]:
        """Give the CR-tree of each geometry attribute."""
        return self._space.trees()


def is_selective(constraint: Constraint) -> bool:
    """Tell whether few events can be expected to satisfy a constraint that an index finds."""
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
            is_indexed = is_operand(operand) and read_shape(pattern) is not None
            return is_indexed and not constraint.is_negated
    return False
