"""The left side of an indexed constraint, and the kinds of value that it may have.

A kind is what a literal and a value must have in common to be compared: `boolean`, `number`,
`text`, `time` (whatever reads as a moment, beside a literal moment), and `moment` (a moment that
is no text, beside a literal text that reads as one). No constraint is found under two kinds of one
value.
"""

from collections.abc import Hashable, Iterator, Mapping
from typing import Any, Generic, TypeVar

import numpy as np

from contrada.arrays import Positions
from contrada.collecting import untrack
from contrada.language import evaluate
from contrada.language.values import is_number
from contrada.model.event import Event, Names
from contrada.model.expression import Attribute, Computed, Expression, attributes
from contrada.model.instant import Instant, read_instant
from contrada.model.number_keys import number_key

OperandKind = str
OperandKey = tuple[OperandKind, Any]
Indexed = TypeVar("Indexed")
Key = TypeVar("Key", bound=Hashable)


def is_operand(expression: Expression) -> bool:
    """Whether an expression is an attribute, perhaps without its case or accents."""
    if isinstance(expression, Computed) and expression.operator in {"casei", "accenti"}:
        return is_operand(expression.arguments[0])
    return isinstance(expression, Attribute)


def kind_of_literal(value: Any) -> OperandKind | None:
    """Name the kind of a literal that can be compared."""
    if isinstance(value, bool):
        return "boolean"
    if is_number(value):
        return "number"
    if isinstance(value, str):
        return "text"
    return "time" if isinstance(value, Instant) else None


def literal_keys(value: Any) -> list[OperandKey]:
    """A literal under each kind of value that it is compared with."""
    kind = kind_of_literal(value)
    keys = [] if kind is None else [(kind, value)]
    instant = read_instant(value) if kind == "text" else None
    return keys if instant is None else [*keys, ("moment", instant)]


def value_keys(value: Any) -> list[OperandKey]:
    """An event's value under each kind of literal that it is compared with."""
    if isinstance(value, bool):
        return [("boolean", value)]
    if is_number(value):
        return [("number", value)]
    instant = read_instant(value)
    if isinstance(value, str):
        return [("text", value)] if instant is None else [("text", value), ("time", instant)]
    return [] if instant is None else [("time", instant), ("moment", instant)]


def table_key(key: OperandKey) -> OperandKey:
    """The key by which a table finds a value that is compared for equality."""
    kind, value = key
    return (kind, number_key(value)) if kind == "number" else key


class Operands(Generic[Indexed]):
    """A row for each operand; an event reads those of the operands that it has values for."""

    def __init__(self, rows: Mapping[Expression, Indexed]) -> None:
        """Arrange rows by the name of the operand's attribute."""
        self._rows: dict[str, list[tuple[Expression, Indexed]]] = {}
        for operand, row in rows.items():
            self._rows.setdefault(next(attributes(operand)), []).append((operand, row))
        self._names = Names(self._rows)

    def read(self, event: Event) -> Iterator[tuple[Any, Indexed]]:
        """List the event's value for each operand that is not null, and the operand's row."""
        for name in event.find_names(self._names):
            for operand, row in self._rows[name]:
                value = evaluate(operand, event)
                if value is not None:
                    yield value, row


def add_number(numbers_of: dict[Key, list[int]], key: Key, number: int) -> None:
    """Add a number under a key; many keys are no work for Python's collector."""
    numbers = numbers_of.get(key)
    if numbers is None:
        numbers = numbers_of[key] = []
        untrack((numbers,))
    numbers.append(number)


def as_ids(numbers: list[int]) -> Positions:
    """Write numbers of constraints as an array."""
    return np.array(numbers, np.int64)
