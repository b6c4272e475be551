"""Ranges by sorted bounds: `< <= > >=`, and so BETWEEN, of numbers, texts and moments."""

from bisect import bisect_left, bisect_right
from typing import Any

from contrada.arrays import Positions
from contrada.matching.indexes.operands import (
    OperandKind,
    Operands,
    as_ids,
    is_operand,
    kind_of_literal,
    literal_keys,
    value_keys,
)
from contrada.model.event import Event
from contrada.model.expression import Comparison, Expression, Literal
from contrada.model.subscription import Constraint

_Key = tuple[OperandKind, str]
_Bounds = tuple[list[Any], Positions]  # in order, and the constraint of each
_OPERATORS = ("<", "<=", ">", ">=")


class RangeIndex:
    """Bounds in order: those that a value satisfies lie all on one side of it."""

    words = "sorted bounds of {}"

    def __init__(self) -> None:
        """Start empty."""
        self._bounds: dict[Expression, dict[_Key, list[tuple[Any, int]]]] = {}
        self._operands = Operands[dict[_Key, _Bounds]]({})

    def take(self, number: int, constraint: Constraint) -> bool:
        """Take comparisons by order with a number, a text or a moment."""
        test = constraint.test
        if not (isinstance(test, Comparison) and test.operator in _OPERATORS):
            return False
        if constraint.is_negated or not (isinstance(test.right, Literal) and is_operand(test.left)):
            return False
        if kind_of_literal(test.right.value) not in {"number", "text", "time"}:
            return False
        bounds = self._bounds.setdefault(test.left, {})
        for kind, value in literal_keys(test.right.value):
            bounds.setdefault((kind, test.operator), []).append((value, number))
        return True

    def freeze(self) -> None:
        """Sort the bounds."""
        self._operands = Operands(
            {
                operand: {key: _in_order(bounds) for key, bounds in rows.items()}
                for operand, rows in self._bounds.items()
            }
        )

    def satisfied(self, event: Event) -> list[Positions]:
        """Find the bounds on the right side of each value."""
        found = []
        for value, rows in self._operands.read(event):
            for kind, comparable in value_keys(value):
                for operator in _OPERATORS:
                    row = rows.get((kind, operator))
                    if row is not None:
                        found.append(_on_right_side(row, operator, comparable))
        return found


def _in_order(bounds: list[tuple[Any, int]]) -> _Bounds:
    ordered = sorted(bounds, key=lambda pair: pair[0])
    return [bound for bound, _ in ordered], as_ids([number for _, number in ordered])


def _on_right_side(row: _Bounds, operator: str, value: Any) -> Positions:
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
