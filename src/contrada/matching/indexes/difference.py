"""Difference: `<>` and `NOT IN` hold for every value of the kind but a few."""

from typing import Any

import numpy as np

from contrada.matching.indexes.equality import equal_values
from contrada.matching.indexes.operands import Kind, as_ids, kind_of_literal, read_kinds
from contrada.matching.table import Ids
from contrada.model.event import Event
from contrada.model.expression import Comparison, Expression
from contrada.model.subscription import Constraint


class DifferenceIndex:
    """Constraints by operand and kind; those that name a value are left out where it comes."""

    def __init__(self) -> None:
        """Start empty."""
        self._all: dict[tuple[Expression, Kind], list[int]] = {}
        self._by_value: dict[tuple[Expression, Kind], dict[Any, list[int]]] = {}
        self._ids: dict[tuple[Expression, Kind], Ids] = {}
        self._operands: list[Expression] = []

    def take(self, number: int, constraint: Constraint) -> bool:
        """Take `<>`, and `IN` of values of one kind where it is negated."""
        found = equal_values(constraint)
        is_difference = isinstance(constraint.test, Comparison) and constraint.test.operator == "<>"
        if found is None or is_difference == constraint.is_negated:
            return False
        operand, values = found
        kind = kind_of_literal(values[0])
        assert kind is not None
        self._all.setdefault((operand, kind), []).append(number)
        excluded = self._by_value.setdefault((operand, kind), {})
        for value in dict.fromkeys(values):
            excluded.setdefault(value, []).append(number)
        return True

    def freeze(self) -> None:
        """Write the numbers as arrays."""
        self._ids = {key: as_ids(numbers) for key, numbers in self._all.items()}
        self._operands = list(dict.fromkeys(operand for operand, _ in self._all))

    def satisfied(self, event: Event) -> list[Ids]:
        """Give all constraints on the event's values but those that name one of them."""
        found = []
        for operand in self._operands:
            for kind, value in read_kinds(operand, event):
                ids = self._ids.get((operand, kind))
                if ids is None:
                    continue
                excluded = self._by_value[operand, kind].get(value)
                found.append(ids if excluded is None else np.setdiff1d(ids, excluded))
        return found
