"""The disjunctive normal form: a predicate as an OR of filters.

De Morgan's laws hold in three-valued logic, so NOT is pushed down to the leaves; there it stays
as the constraint's negation, except where an operator has an exact opposite (`NOT a < b` and
`a >= b` are unknown for the same events, and so are `NOT S_DISJOINT(a, b)` and
`S_INTERSECTS(a, b)`). A test without any attribute is evaluated at once.
"""

from collections.abc import Iterable, Mapping
from itertools import product

from contrada.errors import InvalidInput
from contrada.language.evaluate import evaluate, truth
from contrada.language.operators import MIRRORED
from contrada.limits import FILTERS_MAX
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
    attributes,
)
from contrada.model.relation import RELATIONS
from contrada.model.subscription import Constraint, Filter, Predicate

_OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_COMPLEMENT = {"disjoint": "intersects", "intersects": "disjoint"}
_NO_EVENT = Event({})

Terms = tuple[Constraint, ...]


def make_predicate(expression: Expression, filters_max: int = FILTERS_MAX) -> Predicate:
    """Bring an expression into normal form; more than `filters_max` filters are refused."""
    folded = fold(expression)
    filters = tuple(dict.fromkeys(Filter(terms) for terms in _filters(folded, False, filters_max)))
    return Predicate(folded, filters)


def fold(expression: Expression) -> Expression:
    """Evaluate everything that reads no attribute."""
    if isinstance(expression, Literal):
        return expression
    if next(attributes(expression), None) is None:
        if isinstance(expression, Computed) and expression.operator in {"interval", "array"}:
            return expression
        return Literal(evaluate(expression, _NO_EVENT))
    return _fold_children(expression)


def _fold_children(node: Expression) -> Expression:
    match node:
        case And(arguments):
            return And(tuple(map(fold, arguments)))
        case Or(arguments):
            return Or(tuple(map(fold, arguments)))
        case Not(argument):
            return Not(fold(argument))
        case Computed("array", arguments):
            return Computed("array", tuple(dict.fromkeys(map(fold, arguments))))
        case Computed(operator, arguments):
            return Computed(operator, tuple(map(fold, arguments)))
        case Comparison(operator, left, right):
            return _mirror(Comparison(operator, fold(left), fold(right)))
        case Between(value, low, high):
            return Between(fold(value), fold(low), fold(high))
        case In(value, choices):
            return In(fold(value), tuple(dict.fromkeys(map(fold, choices))))
        case Like(value, pattern):
            return Like(fold(value), fold(pattern))
        case DistanceWithin(left, right, radius_m):
            return DistanceWithin(left, right, fold(radius_m))
        case ArrayTest(operator, left, right):
            return ArrayTest(operator, fold(left), fold(right))
        case Attribute() | Literal() | IsNull() | Spatial() | Temporal():
            return node


def _mirror(node: Comparison) -> Comparison:
    """Put a literal on the right."""
    if isinstance(node.left, Literal):
        return Comparison(MIRRORED[node.operator], node.right, node.left)
    return node


def _filters(node: Expression, is_negated: bool, filters_max: int) -> list[Terms]:
    """List the filters of a node, each as its constraints without repeats."""
    match node:
        case Not(argument):
            return _filters(argument, not is_negated, filters_max)
        case And(arguments) | Or(arguments):
            parts = [_filters(argument, is_negated, filters_max) for argument in arguments]
            is_conjunction = isinstance(node, And) != is_negated
            return _join(parts, filters_max) if is_conjunction else _collect(parts, filters_max)
        case Between(value, low, high):
            both = And((Comparison(">=", value, low), Comparison("<=", value, high)))
            return _filters(fold(both), is_negated, filters_max)
        case Literal():
            holds = truth(node, _NO_EVENT) is (not is_negated)
            return [()] if holds else []
        case Comparison(operator, left, right) if is_negated:
            return [(Constraint(Comparison(_OPPOSITE[operator], left, right)),)]
        case Spatial(relation, left, right) if is_negated and relation.name in _COMPLEMENT:
            return [(Constraint(Spatial(RELATIONS[_COMPLEMENT[relation.name]], left, right)),)]
        case _:
            return [(Constraint(node, is_negated),)]


def _collect(parts: Iterable[list[Terms]], filters_max: int) -> list[Terms]:
    found = dict.fromkeys(terms for part in parts for terms in part)
    _check(found, filters_max)
    return list(found)


def _join(parts: list[list[Terms]], filters_max: int) -> list[Terms]:
    joined: list[Terms] = [()]
    for part in parts:
        found: dict[Terms, None] = {}
        for a, b in product(joined, part):
            found[tuple(dict.fromkeys(a + b))] = None
            _check(found, filters_max)
        joined = list(found)
    return joined


def _check(filters: Mapping[Terms, None], filters_max: int) -> None:
    if len(filters) > filters_max:
        raise InvalidInput(
            f"the predicate has more than {filters_max} filters in disjunctive normal form; "
            "split it into several subscriptions, or raise filters_max"
        )
