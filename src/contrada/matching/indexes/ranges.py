"""Ranges by sorted bounds: `< <= > >=`, and so BETWEEN, of numbers, texts and moments."""

from bisect import bisect_left, bisect_right
from typing import Any

from contrada.matching.indexes.operands import (
    Kind,
    as_ids,
    is_operand,
    kind_of_literal,
    read_kinds,
)
from contrada.matching.table import Ids
from contrada.model.event import Event
from contrada.model.expression import Comparison, Expression, Literal
from contrada.model.subscription import Constraint

_Key = tuple[Kind, str]
_OPERATORS = ("<", "<=", ">", ">=")


class RangeIndex:
    """Bounds in order: those that a value satisfies lie all on one side of it."""

    def __init__(self) -> None:
        """Start empty."""
        self._bounds: dict[Expression, dict[_Key, list[tuple[Any, int]]]] = {}
        self._sorted: dict[Expression, dict[_Key, tuple[list[Any], Ids]]] = {}

    def take(self, number: int, constraint: Constraint) -> bool:
        """Take comparisons by order with a number, a text or a moment."""
        test = constraint.test
        if not (isinstance(test, Comparison) and test.operator in _OPERATORS):
            return False
        if constraint.is_negated or not (isinstance(test.right, Literal) and is_operand(test.left)):
            return False
        kind = kind_of_literal(test.right.value)
        if kind not in {"number", "text", "time"}:
            return False
        bounds = self._bounds.setdefault(test.left, {})
        bounds.setdefault((str(kind), test.operator), []).append((test.right.value, number))
        return True

    def freeze(self) -> None:
        """Sort the bounds."""
        for operand, rows in self._bounds.items():
            self._sorted[operand] = {}
            for key, bounds in rows.items():
                bounds.sort(key=lambda pair: pair[0])
                self._sorted[operand][key] = (
                    [bound for bound, _ in bounds],
                    as_ids([number for _, number in bounds]),
                )

    def satisfied(self, event: Event) -> list[Ids]:
        """Give the bounds on the right side of each value."""
        found = []
        for operand, rows in self._sorted.items():
            for kind, value in read_kinds(operand, event):
                for operator in _OPERATORS:
                    row = rows.get((kind, operator))
                    if row is not None:
                        found.append(_on_right_side(row, operator, value))
        return found


def _on_right_side(row: tuple[list[Any], Ids], operator: str, value: Any) -> Ids:
    bounds, ids = row
    match operator:
        case ">":
            return ids[: bisect_left(bounds, value)]
        case ">=":
            return ids[: bisect_right(bounds, value)]
        case "<":
            return ids[bisect_right(bounds, value) :]
        case _:
            return ids[bisect_left(bounds, value) :]
