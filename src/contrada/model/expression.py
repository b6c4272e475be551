"""The predicate as a tree of small frozen nodes.

A node is a value (attribute, literal, computed value) or a test. Every test has three values:
True, False and unknown, written None. `And`, `Or` and `Not` join tests; all other tests are
leaves, and a leaf, perhaps negated, is what a constraint is made of.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from shapely.geometry.base import BaseGeometry

from contrada.model.instant import Instant, Interval
from contrada.model.number_keys import number_key
from contrada.model.relation import SpatialRelation

Value: TypeAlias = (
    "bool | int | float | str | Instant | Interval | BaseGeometry | tuple[Value, ...] | None"
)


@dataclass(frozen=True, slots=True)
class Attribute:
    """The value that the event has under a name."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Literal:
    """A value written in the predicate.

    Values of different types are never equal, nor are 0.0 and -0.0, which are written differently.
    """

    value: Value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Literal) and _typed(self.value) == _typed(other.value)

    def __hash__(self) -> int:
        return hash(_typed(self.value))


def _typed(value: Value) -> tuple[object, ...]:
    """Return a value with its type, so that 1 and TRUE differ, in arrays too."""
    if isinstance(value, tuple):
        return tuple(map(_typed, value))
    if isinstance(value, float):
        return float, value or str(value)
    return type(value), number_key(value) if isinstance(value, int) else value


@dataclass(frozen=True, slots=True)
class Computed:
    """A value made of others: `+ - * / % div ^`, `casei`, `accenti`, `interval`, `array`."""

    operator: str
    arguments: "tuple[Expression, ...]"


@dataclass(frozen=True, slots=True)
class And:
    """True where all are; false where one is false; else unknown."""

    arguments: "tuple[Expression, ...]"


@dataclass(frozen=True, slots=True)
class Or:
    """True where one is; false where all are false; else unknown."""

    arguments: "tuple[Expression, ...]"


@dataclass(frozen=True, slots=True)
class Not:
    """True and false swapped; unknown stays unknown."""

    argument: "Expression"


@dataclass(frozen=True, slots=True)
class Comparison:
    """`= <> < <= > >=` of two values of one type."""

    operator: str
    left: "Expression"
    right: "Expression"


@dataclass(frozen=True, slots=True)
class Between:
    """`low <= value AND value <= high`."""

    value: "Expression"
    low: "Expression"
    high: "Expression"


@dataclass(frozen=True, slots=True)
class In:
    """`value = a OR value = b OR …`."""

    value: "Expression"
    choices: "tuple[Expression, ...]"


@dataclass(frozen=True, slots=True)
class Like:
    """A text against a pattern with `%`, `_` and the escape `\\`."""

    value: "Expression"
    pattern: "Expression"


@dataclass(frozen=True, slots=True)
class IsNull:
    """True where the value is absent or null, false everywhere else; never unknown."""

    value: "Expression"


@dataclass(frozen=True, slots=True)
class Spatial:
    """A relation of two geometries; an attribute stands left of a literal."""

    relation: SpatialRelation
    left: "Expression"
    right: "Expression"


@dataclass(frozen=True, slots=True)
class DistanceWithin:
    """A geodesic distance of at most so many metres."""

    left: "Expression"
    right: "Expression"
    radius_m: "Expression"


@dataclass(frozen=True, slots=True)
class Temporal:
    """One of the fifteen `T_…` relations of two spans of time."""

    operator: str
    left: "Expression"
    right: "Expression"


@dataclass(frozen=True, slots=True)
class ArrayTest:
    """One of the four `A_…` relations of two arrays."""

    operator: str
    left: "Expression"
    right: "Expression"


Expression: TypeAlias = (
    Attribute
    | Literal
    | Computed
    | And
    | Or
    | Not
    | Comparison
    | Between
    | In
    | Like
    | IsNull
    | Spatial
    | DistanceWithin
    | Temporal
    | ArrayTest
)


def children(expression: Expression) -> "tuple[Expression, ...]":
    """List the nodes right below one."""
    match expression:
        case Attribute() | Literal():
            return ()
        case And(arguments) | Or(arguments) | Computed(_, arguments):
            return arguments
        case Not(argument) | IsNull(argument):
            return (argument,)
        case Between(value, low, high):
            return (value, low, high)
        case In(value, choices):
            return (value, *choices)
        case Like(value, pattern):
            return (value, pattern)
        case DistanceWithin(left, right, radius_m):
            return (left, right, radius_m)
        case (
            Comparison(_, left, right)
            | Temporal(_, left, right)
            | ArrayTest(_, left, right)
            | Spatial(_, left, right)
        ):
            return (left, right)


def with_children(expression: Expression, below: "tuple[Expression, ...]") -> Expression:
    """Make the same node over other children, as many as `children` lists."""
    match expression:
        case Attribute() | Literal():
            return expression
        case And():
            return And(below)
        case Or():
            return Or(below)
        case Computed(operator, _):
            return Computed(operator, below)
        case Not():
            return Not(*below)
        case IsNull():
            return IsNull(*below)
        case Between():
            return Between(*below)
        case In():
            return In(below[0], below[1:])
        case Like():
            return Like(*below)
        case DistanceWithin():
            return DistanceWithin(*below)
        case Comparison(operator):
            return Comparison(operator, *below)
        case Temporal(operator):
            return Temporal(operator, *below)
        case ArrayTest(operator):
            return ArrayTest(operator, *below)
        case Spatial(relation):
            return Spatial(relation, *below)


def attributes(expression: Expression) -> Iterator[str]:
    """List the names of all attributes below a node, repeats included."""
    if isinstance(expression, Attribute):
        yield expression.name
    for child in children(expression):
        yield from attributes(child)


def geometry_attributes(expression: Expression) -> Iterator[str]:
    """List the names of attributes that a node uses as geometries."""
    if isinstance(expression, Spatial | DistanceWithin):
        for side in (expression.left, expression.right):
            if isinstance(side, Attribute):
                yield side.name
    for child in children(expression):
        yield from geometry_attributes(child)
