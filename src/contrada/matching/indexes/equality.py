"""Equality by hash: `=`, `IN`, and attributes that are themselves true or false."""

from typing import Any

from contrada.arrays import Positions
from contrada.matching.indexes.operands import (
    OperandKey,
    Operands,
    add_number,
    as_ids,
    is_operand,
    kind_of_literal,
    literal_keys,
    table_key,
    value_keys,
)
from contrada.model.event import Event
from contrada.model.expression import Attribute, Comparison, Expression, In, Literal
from contrada.model.subscription import Constraint


def equal_values(constraint: Constraint) -> tuple[Expression, list[Any]] | None:
    """Read the operand and the values of one kind to which it is compared for equality."""
    match constraint.test:
        case Comparison("=" | "<>", operand, Literal(value)):
            values = [value]
        case In(operand, choices) if all(isinstance(c, Literal) for c in choices):
            values = [choice.value for choice in choices if isinstance(choice, Literal)]
        case _:
            return None
    kinds = {kind_of_literal(value) for value in values}
    return (
        (operand, values) if is_operand(operand) and len(kinds) == 1 and None not in kinds else None
    )


class EqualityIndex:
    """Constraints by operand, kind and value."""

    words = "values of {} by hash"

    def __init__(self) -> None:
        """Start empty."""
        self._numbers: dict[Expression, dict[OperandKey, list[int]]] = {}
        self._operands = Operands[dict[OperandKey, Positions]]({})

    def take(self, number: int, constraint: Constraint) -> bool:
        """Take `=`, `IN` of values of one kind, and truth values."""
        if isinstance(constraint.test, Attribute):
            self._add(constraint.test, ("boolean", not constraint.is_negated), number)
            return True
        found = equal_values(constraint)
        is_difference = isinstance(constraint.test, Comparison) and constraint.test.operator == "<>"
        if found is None or is_difference or constraint.is_negated:
            return False
        operand, values = found
        keys = (table_key(key) for value in values for key in literal_keys(value))
        for key in dict.fromkeys(keys):
            self._add(operand, key, number)
        return True

    def _add(self, operand: Expression, key: OperandKey, number: int) -> None:
        add_number(self._numbers.setdefault(operand, {}), key, number)

    def freeze(self) -> None:
        """Write the numbers as arrays."""
        self._operands = Operands(
            {
                operand: {key: as_ids(numbers) for key, numbers in values.items()}
                for operand, values in self._numbers.items()
            }
        )

    def satisfied(self, event: Event) -> list[Positions]:
        """Look the event's values up."""
        return [
            ids[key]
            for value, ids in self._operands.read(event)
            for key in map(table_key, value_keys(value))
            if key in ids
        ]
