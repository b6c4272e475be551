"""The meaning of a predicate: three-valued evaluation of its tree on one event."""

from collections.abc import Callable, Mapping
from typing import Any

from shapely.geometry.base import BaseGeometry

from contrada.language.array_tests import compare_arrays
from contrada.language.distance import is_within
from contrada.language.spatial import relates
from contrada.language.values import (
    compare,
    compare_times,
    compute,
    every,
    fold_case,
    like,
    opposite,
    some,
    strip_accents,
)
from contrada.model.event import Event
from contrada.model.expression import (
    And,
    ArrayTest,
    Attribute,
    Between,
    Comparison,
    Computed,
    DistanceWithin,
    Expression,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
    Spatial,
    Temporal,
)
from contrada.model.subscription import Constraint


def evaluate(expression: Expression, event: Event) -> Any:
    """Return a node's value on an event: for a test True, False, or None for unknown."""
    return _EVALUATORS[type(expression)](expression, event)


def truth(expression: Expression, event: Event) -> bool | None:
    """Return a test's truth; an attribute that is not a truth value is unknown."""
    value = evaluate(expression, event)
    return value if isinstance(value, bool) else None


def is_satisfied(constraint: Constraint, event: Event) -> bool:
    """Whether a constraint is satisfied: true, or false where it is negated."""
    return truth(constraint.test, event) is (not constraint.is_negated)


def geometry_of(expression: Expression, event: Event) -> BaseGeometry | None:
    """Return a side of a spatial test as a geometry; None where it is unknown."""
    if isinstance(expression, Attribute):
        return event.prepared(expression.name)
    value = expression.value if isinstance(expression, Literal) else None
    return value if isinstance(value, BaseGeometry) else None


def _computed(node: Computed, event: Event) -> Any:
    arguments = [evaluate(argument, event) for argument in node.arguments]
    if node.operator == "casei":
        return fold_case(arguments[0])
    if node.operator == "accenti":
        return strip_accents(arguments[0])
    if node.operator in {"array", "interval"}:
        return tuple(arguments)
    return compute(node.operator, arguments[0], arguments[1])


def _in(node: In, event: Event) -> bool | None:
    value = evaluate(node.value, event)
    return some(compare("=", value, evaluate(choice, event)) for choice in node.choices)


def _between(node: Between, event: Event) -> bool | None:
    value, low, high = (evaluate(part, event) for part in (node.value, node.low, node.high))
    return every((compare(">=", value, low), compare("<=", value, high)))


def _is_null(node: IsNull, event: Event) -> bool:
    return _is_missing(node.value, event)


def _is_missing(expression: Expression, event: Event) -> bool:
    """Whether a value is absent or null; a computed one is if an argument is."""
    match expression:
        case Attribute(name):
            return event.value(name) is None
        case Literal(value):
            return value is None
        case Computed(_, arguments):
            return any(_is_missing(argument, event) for argument in arguments)
        case _:
            return truth(expression, event) is None


def _distance_within(node: DistanceWithin, event: Event) -> bool | None:
    sides = geometry_of(node.left, event), geometry_of(node.right, event)
    return is_within(*sides, evaluate(node.radius_m, event))


_EVALUATORS: Mapping[type, Callable[[Any, Event], Any]] = {
    Attribute: lambda node, event: event.value(node.name),
    Literal: lambda node, _: node.value,
    Computed: _computed,
    And: lambda node, event: every(truth(argument, event) for argument in node.arguments),
    Or: lambda node, event: some(truth(argument, event) for argument in node.arguments),
    Not: lambda node, event: opposite(truth(node.argument, event)),
    Comparison: lambda node, event: compare(
        node.operator, evaluate(node.left, event), evaluate(node.right, event)
    ),
    Between: _between,
    In: _in,
    Like: lambda node, event: like(evaluate(node.value, event), evaluate(node.pattern, event)),
    IsNull: _is_null,
    Spatial: lambda node, event: relates(
        node.relation, geometry_of(node.left, event), geometry_of(node.right, event)
    ),
    DistanceWithin: _distance_within,
    Temporal: lambda node, event: compare_times(
        node.operator, evaluate(node.left, event), evaluate(node.right, event)
    ),
    ArrayTest: lambda node, event: compare_arrays(
        node.operator, evaluate(node.left, event), evaluate(node.right, event)
    ),
}
