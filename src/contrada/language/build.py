"""Nodes of the predicate from an operator and its arguments, checked for number and kind.

An argument whose kind can never fit (a number where a geometry is wanted, an `eh…` function on a
line) is refused here, at `add`; what an event will bring is judged when it comes.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from itertools import chain

from shapely.geometry.base import BaseGeometry

from contrada.errors import InvalidInput
from contrada.language.literals import OPEN_END
from contrada.language.operators import (
    ARITHMETIC,
    ARRAY,
    COMPARISONS,
    MIRRORED,
    SIGNATURES,
    TEMPORAL,
)
from contrada.language.places import Place
from contrada.limits import LIKE_PATTERN_LENGTH_MAX
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
    Value,
)
from contrada.model.geometry import is_area
from contrada.model.instant import Instant, Interval
from contrada.model.relation import BY_OPERATOR, Family, SpatialRelation, pattern_relation
from contrada.showing import brief

Arguments = tuple[Expression, ...]
Places = tuple[Place, ...]


def build(operator: str, arguments: Arguments, places: Places, place: Place) -> Expression:
    """Make the node for an operator; `places` are those of the arguments."""
    if operator in {"and", "or"}:
        return _junction(operator, arguments, places, place)
    if operator == "array":
        return _array(arguments, place)
    if operator == "interval":
        return _interval(arguments, places, place)
    signature = SIGNATURES[operator]
    if len(arguments) != len(signature.takes):
        place.refuse(
            f"{signature.name} takes {len(signature.takes)} arguments, not {len(arguments)},"
        )
    arguments = tuple(map(_as_array, arguments, signature.takes, places))
    for argument, kind, where in zip(arguments, signature.takes, places, strict=True):
        if kind not in {"any", kind_of(argument)} and kind_of(argument) != "any":
            given = with_article(kind_of(argument))
            where.refuse(f"{signature.name} takes {with_article(kind)} here, not {given},")
    return _BUILDERS[operator](signature.name, arguments, places)


def _as_array(argument: Expression, kind: str, place: Place) -> Expression:
    """Restore the array of one element that `cql2` takes for parentheses; only text has those."""
    is_bare = kind == "array" and kind_of(argument) not in {"any", "array"}
    return _array((argument,), place) if is_bare and place.text is not None else argument


def kind_of(expression: Expression) -> str:
    """Name the kind of a node's value; "any" where only the event decides it."""
    match expression:
        case Attribute():
            return "any"
        case Literal(value):
            return _kind_of_value(value)
        case Computed(operator, _):
            return {"casei": "text", "accenti": "text", "interval": "time", "array": "array"}.get(
                operator, "number"
            )
        case _:
            return "boolean"


def with_article(kind: str) -> str:
    """Name one of a kind in a sentence."""
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"


def _kind_of_value(value: Value) -> str:
    match value:
        case None:
            return "any"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "text"
        case Instant() | Interval():
            return "time"
        case tuple():
            return "array"
        case _:
            return "geometry"


def _junction(operator: str, arguments: Arguments, places: Places, place: Place) -> Expression:
    for argument, where in zip(arguments, places, strict=True):
        if kind_of(argument) not in {"any", "boolean"}:
            where.refuse(f"a test is expected here, not {with_article(kind_of(argument))},")
    if not arguments:
        place.refuse(f"{operator} takes at least one argument, not 0,")
    if len(arguments) == 1:
        return arguments[0]
    return join_tests(And if operator == "and" else Or, arguments)


def join_tests(join: type[And | Or], tests: Iterable[Expression]) -> And | Or:
    """Join tests; those of one that is joined in the same way take its place."""
    nested = (test.arguments if isinstance(test, join) else (test,) for test in tests)
    return join(tuple(chain.from_iterable(nested)))


def _array(arguments: Arguments, place: Place) -> Expression:
    """Make an array; arrays are compared as sets, so that a repeated element changes nothing."""
    arguments = tuple(dict.fromkeys(arguments))
    values = [argument.value for argument in arguments if isinstance(argument, Literal)]
    if any(isinstance(value, BaseGeometry) for value in values):
        place.refuse("an array cannot hold a geometry,")
    return Literal(tuple(values)) if len(values) == len(arguments) else Computed("array", arguments)


def _interval(arguments: Arguments, places: Places, place: Place) -> Expression:
    for argument, where in zip(arguments, places, strict=True):
        is_end = isinstance(argument, Attribute) or (
            isinstance(argument, Literal)
            and (isinstance(argument.value, Instant) or argument.value == OPEN_END)
        )
        if not is_end:
            where.refuse("the end of an interval must be a moment, an attribute or '..'")
    start, end = arguments
    if not (isinstance(start, Literal) and isinstance(end, Literal)):
        return Computed("interval", arguments)
    interval = Interval(*(v if isinstance(v, Instant) else None for v in (start.value, end.value)))
    low, high = interval.bounds()
    if low > high:
        place.refuse(f"the interval ends ({interval.end}) before it begins ({interval.start})")
    return Literal(interval)


def compare(name: str, left: Expression, right: Expression) -> Expression:
    """Compare; a test compared with TRUE or FALSE is that test or its negation."""
    if isinstance(left, Literal) and not isinstance(right, Literal):
        left, right, name = right, left, MIRRORED[name]
    is_test = kind_of(left) == "boolean" and not isinstance(left, Literal)
    if is_test and name in {"=", "<>"} and isinstance(right, Literal) and right.value is not None:
        if isinstance(right.value, bool):
            return left if right.value == (name == "=") else Not(left)
        return Literal(None)
    return Comparison(name, left, right)


def _spatial(name: str, arguments: Arguments, places: Places) -> Expression:
    relation = BY_OPERATOR[name]
    return place_relation(relation, arguments[0], arguments[1], places)


def _relate(name: str, arguments: Arguments, places: Places) -> Expression:
    left, right, pattern = arguments
    if not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
        places[2].refuse(f"the pattern of {name} must be a literal text,")
    try:
        relation = pattern_relation(pattern.value)
    except InvalidInput as error:
        places[2].refuse(f"{error},")
    return place_relation(relation, left, right, places)


def place_relation(
    relation: SpatialRelation, left: Expression, right: Expression, places: Places
) -> Spatial:
    """Make a spatial test with the event's side on the left."""
    for side, place in zip((left, right), places, strict=False):
        if not isinstance(side, Attribute | Literal):
            place.refuse("a geometry must be an attribute or a literal, not a computed value,")
        if relation.family is Family.EGENHOFER and isinstance(side, Literal):
            geometry = side.value
            if isinstance(geometry, BaseGeometry) and not is_area(geometry):
                place.refuse(f"{relation.name} takes areas, not a {geometry.geom_type},")
    if isinstance(left, Literal) and isinstance(right, Attribute):
        return Spatial(relation.transposed(), right, left)
    return Spatial(relation, left, right)


def _distance_within(name: str, arguments: Arguments, places: Places) -> Expression:
    left, right, radius_m = arguments
    for side, place in zip((left, right), places, strict=False):
        if isinstance(side, Literal) and isinstance(side.value, BaseGeometry):
            west, south, east, north = side.value.bounds
            if west < -180 or east > 180 or south < -90 or north > 90:
                place.refuse(
                    f"{name} reads longitude and latitude; {(west, south, east, north)} is outside"
                )
    if isinstance(radius_m, Literal):
        metres = radius_m.value
        if not isinstance(metres, int | float) or not (metres >= 0 and math.isfinite(metres)):
            places[2].refuse(f"the distance must be a number of metres >= 0, not {brief(metres)},")
    if isinstance(left, Literal) and isinstance(right, Attribute):
        left, right = right, left
    return DistanceWithin(left, right, radius_m)


def _in(_name: str, arguments: Arguments, places: Places) -> Expression:
    value, choices = arguments
    if choices == Literal(()):
        return Literal(False)
    if isinstance(choices, Literal) and isinstance(choices.value, tuple):
        return In(value, tuple(Literal(choice) for choice in choices.value))
    if isinstance(choices, Computed) and choices.operator == "array":
        return In(value, choices.arguments)
    return places[1].refuse("IN takes a list,")


def _like(_name: str, arguments: Arguments, places: Places) -> Expression:
    value, pattern = arguments
    text = pattern.value if isinstance(pattern, Literal) else None
    if isinstance(text, str) and len(text) > LIKE_PATTERN_LENGTH_MAX:
        what = f"{LIKE_PATTERN_LENGTH_MAX:,} characters (LIKE_PATTERN_LENGTH_MAX)"
        places[1].refuse(f"a pattern may have at most {what}, not {len(text):,},")
    return Like(value, pattern)


def _temporal(name: str, arguments: Arguments, _places: Places) -> Expression:
    return Temporal(name, arguments[0], arguments[1])


_BUILDERS: Mapping[str, Callable[[str, Arguments, Places], Expression]] = {
    **dict.fromkeys(COMPARISONS, lambda n, a, _: compare(n, a[0], a[1])),
    **dict.fromkeys((*ARITHMETIC, "casei", "accenti"), lambda n, a, _: Computed(n, a)),
    **dict.fromkeys((name.lower() for name in TEMPORAL), _temporal),
    **dict.fromkeys((name.lower() for name in ARRAY), lambda n, a, _: ArrayTest(n, a[0], a[1])),
    **dict.fromkeys(
        (key for key, row in SIGNATURES.items() if row.takes == ("geometry", "geometry")),
        _spatial,
    ),
    "relate": _relate,
    "dwithin": _distance_within,
    "not": lambda _n, a, _p: Not(a[0]),
    "isnull": lambda _n, a, _p: IsNull(a[0]),
    "like": _like,
    "between": lambda _n, a, _p: Between(a[0], a[1], a[2]),
    "in": _in,
}
