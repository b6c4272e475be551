"""The left side of an indexed constraint, and the kinds of value that it may have."""

from typing import Any

import numpy as np

from contrada.language import evaluate
from contrada.language.values import is_number
from contrada.matching.table import Ids
from contrada.model.event import Event
from contrada.model.expression import Attribute, Computed, Expression
from contrada.model.instant import Instant, read_instant

Kind = str


def is_operand(expression: Expression) -> bool:
    """Tell whether an expression is an attribute, perhaps without its case or accents."""
    if isinstance(expression, Computed) and expression.operator in {"casei", "accenti"}:
        return is_operand(expression.arguments[0])
    return isinstance(expression, Attribute)


def kind_of_literal(value: Any) -> Kind | None:
    """Name the kind of a literal that can be compared."""
    if isinstance(value, bool):
        return "boolean"
    if is_number(value):
        return "number"
    if isinstance(value, str):
        return "text"
    return "time" if isinstance(value, Instant) else None


def read_kinds(operand: Expression, event: Event) -> list[tuple[Kind, Any]]:
    """Give an event's value for an operand under each kind that it may be compared as."""
    value = evaluate(operand, event)
    if isinstance(value, bool):
        return [("boolean", value)]
    if is_number(value):
        return [("number", value)]
    kinds: list[tuple[Kind, Any]] = [("text", value)] if isinstance(value, str) else []
    instant = read_instant(value)
    return kinds if instant is None else [*kinds, ("time", instant)]


def as_ids(numbers: list[int]) -> Ids:
    """Write numbers of constraints as an array."""
    return np.array(numbers, np.int64)
