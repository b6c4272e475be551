"""The one order of columns for some subscriptions, whatever was added and removed before."""

import numpy as np

from contrada.arrays import Positions
from contrada.matching.constraint_columns import ConstraintColumns
from contrada.matching.expression_columns import ExpressionColumns
from contrada.matching.id_columns import SubscriberColumns
from contrada.matching.subscription_columns import SubscriptionColumns
from contrada.matching.table import FilterTable
from contrada.model.expression_parts import OperandType


def in_canonical_order(columns: SubscriptionColumns) -> SubscriptionColumns:
    """Return subscriptions by id, and all that they share in the order of its first use."""
    taken = columns.take(columns.ids.order)
    constraints, members = _order_constraints(taken.table)
    expressions = _order_skeletons(taken.expressions)
    table = FilterTable(constraints, taken.table.owner, taken.table.starts, members)
    ordered = SubscriptionColumns(taken.ids, _order_names(taken.subscribers), expressions, table)
    return _order_operands(ordered)


def _by_first_use(numbers: Positions, size: int) -> tuple[Positions, Positions]:
    """Return all used numbers in the order of their first use, and the new number of each."""
    used, firsts = np.unique(numbers, return_index=True)
    order = used[np.argsort(firsts)]
    moved = np.full(size, -1, np.int64)
    moved[order] = np.arange(len(order))
    return order, moved


def _order_constraints(table: FilterTable) -> tuple[ConstraintColumns, Positions]:
    order, moved = _by_first_use(table.members, len(table.constraints))
    taken = table.constraints.take(order)
    ordered = ConstraintColumns(_order_skeletons(taken.tests), taken.is_negated, taken.pools)
    return ordered, moved[table.members]


def _order_skeletons(expressions: ExpressionColumns) -> ExpressionColumns:
    which = expressions.which.astype(np.int64)
    order, moved = _by_first_use(which, len(expressions.skeletons))
    skeletons = tuple(expressions.skeletons[number] for number in order.tolist())
    renumbered = moved[which].astype(np.int32)
    return ExpressionColumns(skeletons, renumbered, expressions.starts, expressions.operands)


def _order_names(subscribers: SubscriberColumns) -> SubscriberColumns:
    """Sort the names: which are integers must stay before which are texts."""
    names = subscribers.names()
    order = sorted(range(len(names)), key=lambda code: (isinstance(names[code], str), names[code]))
    moved = np.full(len(names) + 1, -1, np.int64)  # the last is for nobody
    moved[order] = np.arange(len(order))
    wholes = np.sort(subscribers.wholes)
    texts = subscribers.texts.sort()
    return SubscriberColumns(moved[subscribers.codes], wholes, texts)


def _order_operands(columns: SubscriptionColumns) -> SubscriptionColumns:
    orders, moves = [], []
    parts = (columns.expressions, columns.table.constraints.tests)
    for type_, size in zip(OperandType, columns.pools.sizes(), strict=True):
        used = [part.operands[part.types() == type_] for part in parts]
        order, moved = _by_first_use(np.concatenate(used), size)
        orders.append(order)
        moves.append(moved)
    return columns.moved(tuple(moves), columns.pools.take(tuple(orders)))
