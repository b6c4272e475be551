"""Subscriptions as columns: ids, subscribers, predicates, filters; objects are made on demand.

Equal operands are stored once, and so are equal constraints. The columns never change; what is
added or left out makes new ones.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
import pyarrow as pa

from contrada.arrays import Positions
from contrada.matching.constraint_columns import ConstraintColumns, pack_constraints
from contrada.matching.expression_columns import (
    ExpressionColumns,
    ExpressionWriter,
    join_expressions,
)
from contrada.matching.grouping import expand, find_used, starts_of
from contrada.matching.id_columns import (
    IdColumn,
    SubscriberColumns,
    join_subscribers,
    make_id_array,
    make_subscribers,
)
from contrada.matching.operand_pools import HasOperands, Moves, OperandPools, PoolWriter, join_pools
from contrada.matching.table import FilterTable
from contrada.model.expression_parts import OperandType, divide
from contrada.model.packed_lists import repeat
from contrada.model.subscription import Constraint, Filter, Predicate, Subscription


@dataclass(frozen=True, slots=True, eq=False)
class SubscriptionColumns(Sequence[Subscription]):
    """A sequence of subscriptions; filters come in their order."""

    ids: IdColumn
    subscribers: SubscriberColumns
    expressions: ExpressionColumns
    table: FilterTable

    @property
    def pools(self) -> OperandPools:
        """The operands of all expressions and constraints."""
        return self.table.constraints.pools

    def __len__(self) -> int:
        return len(self.ids)

    @overload
    def __getitem__(self, position: int) -> Subscription: ...

    @overload
    def __getitem__(self, position: slice) -> list[Subscription]: ...

    def __getitem__(self, position: int | slice) -> Subscription | list[Subscription]:
        if isinstance(position, slice):
            return [self[i] for i in range(*position.indices(len(self)))]
        if not 0 <= position < len(self):
            raise IndexError(position)
        return self._make(position, self.pools, self.table.constraints)

    def __iter__(self) -> Iterator[Subscription]:
        operands, constraints = self.pools.ready(), list(self.table.constraints)
        return (self._make(position, operands, constraints) for position in range(len(self)))

    def _make(
        self, position: int, operands: HasOperands, constraints: Sequence[Constraint]
    ) -> Subscription:
        filters = self._filters(position, constraints)
        predicate = Predicate(self.expressions.one(position, operands), filters)
        return Subscription(self.ids.one(position), predicate, self.subscribers.one(position))

    def _filters(self, position: int, constraints: Sequence[Constraint]) -> tuple[Filter, ...]:
        first, last = np.searchsorted(self.table.owner, [position, position + 1]).tolist()
        return tuple(
            Filter(tuple(constraints[n] for n in self.table.constraints_of(filter_).tolist()))
            for filter_ in range(first, last)
        )

    def take(self, positions: Positions) -> "SubscriptionColumns":
        """Return some subscriptions, with what they need of constraints and operands."""
        first, last = np.searchsorted(self.table.owner, [positions, positions + 1])
        counts = last - first
        owner = repeat(np.arange(len(positions)), counts)
        filters = repeat(first - (np.cumsum(counts) - counts), counts) + np.arange(counts.sum())
        which, places = expand(self.table.starts, filters)
        members = self.table.members[places]
        used, renumbered = find_used(members, len(self.table.constraints))
        starts = starts_of(np.bincount(which, minlength=len(filters)))
        taken = SubscriptionColumns(
            IdColumn(self.ids.array.take(pa.array(positions))),
            self.subscribers.take(positions),
            self.expressions.take(positions),
            FilterTable(self.table.constraints.take(used), owner, starts, renumbered),
        )
        return taken._without_unused()

    def _without_unused(self) -> "SubscriptionColumns":
        """Return the same subscriptions without the operands that none of them has."""
        pools, kept = self.pools, []
        for type_, size in zip(OperandType, pools.sizes(), strict=True):
            is_used = np.zeros(size, bool)
            for columns in (self.expressions, self.table.constraints.tests):
                is_used[columns.operands[columns.types() == type_]] = True
            kept.append(is_used)
        moves = tuple(np.cumsum(is_used) - 1 for is_used in kept)
        return self.moved(moves, pools.take(tuple(map(np.flatnonzero, kept))))

    def moved(self, moves: Moves, pools: OperandPools) -> "SubscriptionColumns":
        """Return the same subscriptions after their operands have moved to other pools."""
        constraints = self.table.constraints
        tests = constraints.tests.moved(moves)
        moved = ConstraintColumns(tests, constraints.is_negated, pools)
        table = FilterTable(moved, self.table.owner, self.table.starts, self.table.members)
        return SubscriptionColumns(self.ids, self.subscribers, self.expressions.moved(moves), table)

    @property
    def nbytes(self) -> int:
        """Count the bytes of all columns."""
        table = self.table
        filters = table.owner.nbytes + table.starts.nbytes + table.members.nbytes
        own = self.ids.array.nbytes + self.subscribers.nbytes + self.expressions.nbytes
        return int(own + filters + table.constraints.nbytes + self.pools.nbytes)


def pack_subscriptions(subscriptions: Sequence[Subscription]) -> SubscriptionColumns:
    """Write subscriptions as columns, one by one."""
    writer, expressions = PoolWriter(), ExpressionWriter()
    numbers: dict[Constraint, int] = {}
    owner: list[int] = []
    sizes: list[int] = []
    members: list[int] = []
    for position, subscription in enumerate(subscriptions):
        skeleton, operands = divide(subscription.predicate.expression)
        expressions.add(skeleton, [writer.add(operand) for operand in operands])
        for filter_ in subscription.predicate.filters:
            owner.append(position)
            sizes.append(len(filter_.constraints))
            members += [numbers.setdefault(c, len(numbers)) for c in filter_.constraints]
    table = FilterTable(
        pack_constraints(numbers, writer),
        np.array(owner, np.int64),
        starts_of(np.array(sizes, np.int64)),
        np.array(members, np.int64),
    )
    return SubscriptionColumns(
        IdColumn(make_id_array([s.id for s in subscriptions])),
        make_subscribers([s.subscriber for s in subscriptions]),
        expressions.finish(),
        table,
    )


def join_subscriptions(parts: Sequence[SubscriptionColumns]) -> SubscriptionColumns:
    """Put subscriptions one after another; what several parts have in common is stored once."""
    parts = [part for part in parts if len(part)] or list(parts[:1])
    pools, moves = join_pools([part.pools for part in parts])
    moved = [part.moved(move, pools) for part, move in zip(parts, moves, strict=True)]
    return SubscriptionColumns(
        IdColumn(pa.concat_arrays([part.ids.array for part in parts])),
        join_subscribers([part.subscribers for part in parts]),
        join_expressions([part.expressions for part in moved]),
        _join_tables([part.table for part in moved], [len(part) for part in parts], pools),
    )


def _join_tables(
    tables: Sequence[FilterTable], lengths: Sequence[int], pools: OperandPools
) -> FilterTable:
    constraints = [table.constraints for table in tables]
    everything = ConstraintColumns(
        join_expressions([columns.tests for columns in constraints]),
        np.concatenate([columns.is_negated for columns in constraints]),
        pools,
    )
    shifts = np.cumsum([0, *map(len, constraints)])[:-1]
    positions = np.cumsum([0, *lengths])[:-1]
    return unify_table(
        FilterTable(
            everything,
            np.concatenate([t.owner + at for t, at in zip(tables, positions, strict=True)]),
            starts_of(np.concatenate([t.sizes() for t in tables])),
            np.concatenate([t.members + at for t, at in zip(tables, shifts, strict=True)]),
        )
    )


def unify_table(table: FilterTable) -> FilterTable:
    """Return the same filters over distinct constraints."""
    firsts = table.constraints.firsts()
    kept = np.flatnonzero(firsts == np.arange(len(firsts)))
    places = np.empty(len(firsts), np.int64)
    places[kept] = np.arange(len(kept))
    members = places[firsts[table.members]] if len(firsts) else table.members
    return FilterTable(table.constraints.take(kept), table.owner, table.starts, members)
