"""Difference: `<>` and `NOT IN` hold for every value of the kind but a few."""

from typing import Any

import numpy as np

from contrada.arrays import Positions
from contrada.matching.indexes.equality import equal_values
from contrada.matching.indexes.operands import (
    OperandKind,
    Operands,
    add_number,
    as_ids,
    literal_keys,
    table_key,
    value_keys,
)
from contrada.model.event import Event
from contrada.model.expression import Comparison, Expression
from contrada.model.subscription import Constraint


class DifferenceIndex:
    """Constraints by operand and kind; those that name a value are left out where it comes."""

    words = "differences from {} by hash"

    def __init__(self) -> None:
        """Start empty."""
        self._rows: dict[Expression, dict[OperandKind, _Differences]] = {}
        self._operands = Operands[dict[OperandKind, _Differences]]({})

    def take(self, number: int, constraint: Constraint) -> bool:
        """Take `<>`, and `IN` of values of one kind where it is negated."""
        found = equal_values(constraint)
        is_difference = isinstance(constraint.test, Comparison) and constraint.test.operator == "<>"
        if found is None or is_difference == constraint.is_negated:
            return False
        operand, values = found
        row = self._rows.setdefault(operand, {})
        keys = [dict(map(table_key, literal_keys(value))) for value in values]
        # One literal that cannot be compared with a kind makes the whole unknown for it.
        for kind in keys[0]:
            if all(kind in key for key in keys):
                row.setdefault(kind, _Differences()).add(number, {key[kind] for key in keys})
        return True

    def freeze(self) -> None:
        """Write the numbers as arrays."""
        for row in self._rows.values():
            for differences in row.values():
                differences.freeze()
        self._operands = Operands(self._rows)

    def satisfied(self, event: Event) -> list[Positions]:
        """Find all constraints on the event's values but those that name one of them."""
        return [
            row[kind].find(key)
            for value, row in self._operands.read(event)
            for kind, key in map(table_key, value_keys(value))
            if kind in row
        ]


class _Differences:
    """Constraints on one operand that values of one kind satisfy, but for those they name."""

    def __init__(self) -> None:
        self._numbers: list[int] = []
        self._ids = as_ids([])
        self._named: dict[
            Any, list[int]
        ] = {}  # by key of a value: where the constraints are in the array

    def add(self, number: int, keys: set[Any]) -> None:
        for key in keys:
            add_number(self._named, key, len(self._numbers))
        self._numbers.append(number)

    def freeze(self) -> None:
        self._ids = as_ids(self._numbers)

    def find(self, key: Any) -> Positions:
        named = self._named.get(key)
        return self._ids if named is None else np.delete(self._ids, named)
