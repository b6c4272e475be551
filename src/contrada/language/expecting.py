"""Which kinds of values a test can decide on: all others leave it unknown, whatever they are.

Only tests of an attribute and literals are examined; about any other nothing is known.
"""

from collections.abc import Iterator
from enum import Enum

from contrada.language.operators import ARITHMETIC
from contrada.model.expression import (
    Attribute,
    Between,
    Comparison,
    Computed,
    Expression,
    In,
    Like,
    Literal,
    Temporal,
    Value,
    children,
)
from contrada.model.instant import Instant, read_instant


class ValueKind(Enum):
    """A kind of value that is compared with its like."""

    NUMBER = "numbers"
    TEXT = "text"
    TRUTH = "truth values"
    MOMENT = "moments"


Kinds = frozenset[ValueKind]

_NUMBERS, _TEXTS, _TRUTHS = (
    frozenset({kind}) for kind in (ValueKind.NUMBER, ValueKind.TEXT, ValueKind.TRUTH)
)
_TIMES = frozenset({ValueKind.MOMENT, ValueKind.TEXT})  # a text may be a moment, too
_ANY = frozenset(ValueKind)


def expected_kinds(expression: Expression) -> Iterator[tuple[str, Kinds, Expression]]:
    """List the attributes whose kind matters, the kinds that will do, and the node that asks."""
    match expression:
        case Comparison(_, Attribute(name), Literal(value)):
            yield name, _comparable(value), expression
        case In(Attribute(name), literals):
            yield name, _comparable_with_some(literals), expression
        case Between(Attribute(name), low, high):
            yield name, _comparable_with_some((low, high)), expression
        case Like(Attribute(name), _):
            yield name, _TEXTS, expression
        case Temporal(_, left, right):
            yield from ((name, _TIMES, expression) for name in _names((left, right)))
        case Computed(operator, arguments) if operator in ARITHMETIC:
            yield from ((name, _NUMBERS, expression) for name in _names(arguments))
        case Computed("casei" | "accenti", arguments):
            yield from ((name, _TEXTS, expression) for name in _names(arguments))
    for child in children(expression):
        yield from expected_kinds(child)


def _names(arguments: tuple[Expression, ...]) -> list[str]:
    return [argument.name for argument in arguments if isinstance(argument, Attribute)]


def _comparable_with_some(arguments: tuple[Expression, ...]) -> Kinds:
    kinds = [_comparable(a.value) if isinstance(a, Literal) else _ANY for a in arguments]
    return frozenset[ValueKind]().union(*kinds)


def _comparable(literal: Value) -> Kinds:
    match literal:
        case bool():
            return _TRUTHS
        case int() | float():
            return _NUMBERS
        case str():
            return _TEXTS if read_instant(literal) is None else _TIMES
        case Instant():
            return _TIMES
    return _ANY
