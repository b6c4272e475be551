"""Expressions back to CQL2 text and JSON, exactly.

Numbers in geometries are written without exponents, since parsers of CQL2 text refuse them.
"""

import json
import re
from decimal import Decimal
from typing import Any

import numpy as np
import shapely
from shapely.geometry.base import BaseGeometry

from contrada.language.operators import ARITHMETIC
from contrada.language.tokens import is_plain_name
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
from contrada.model.instant import Instant, Interval
from contrada.model.relation import Family, SpatialRelation
from contrada.model.subscription import Constraint

_LONE_LENGTH_MAX = 1_000
_BUILT_IN = re.compile(r"[sta]_|casei|accenti")


def to_text(expression: Expression) -> str:
    """Write CQL2 text."""
    match expression:
        case And(arguments):
            return " AND ".join(map(_operand, arguments))
        case Or(arguments):
            return " OR ".join(map(_operand, arguments))
        case Not(argument):
            return f"NOT {_operand(argument)}"
        case Comparison(operator, left, right):
            return f"{_operand(left)} {operator} {_operand(right)}"
        case Between(value, low, high):
            return f"{_operand(value)} BETWEEN {_operand(low)} AND {_operand(high)}"
        case In(value, choices):
            return f"{_operand(value)} IN ({', '.join(map(to_text, choices))})"
        case Like(value, pattern):
            return f"{_operand(value)} LIKE {_operand(pattern)}"
        case IsNull(value):
            return f"{_operand(value)} IS NULL"
        case Attribute(name):
            return name if is_plain_name(name) else '"' + name.replace('"', '""') + '"'
        case Literal(value):
            return _value_text(value)
        case Computed(operator, arguments) if operator in ARITHMETIC:
            return f"{_operand(arguments[0])} {operator} {_operand(arguments[1])}"
        case Computed("array", arguments):
            return _array_text(list(map(to_text, arguments)))
        case Computed("interval", arguments):
            return f"INTERVAL({', '.join(map(_end_text, arguments))})"
        case _:
            name, arguments = _call(expression)
            word = name.upper() if _BUILT_IN.match(name) else name
            return f"{word}({', '.join(map(to_text, arguments))})"


def to_json(expression: Expression) -> Any:
    """Write CQL2 JSON, as Python's dictionaries, lists and values."""
    match expression:
        case And(arguments) | Or(arguments):
            name = "and" if isinstance(expression, And) else "or"
            return _operation(name, arguments)
        case Not(argument):
            return _operation("not", (argument,))
        case Comparison(operator, left, right):
            return _operation(operator, (left, right))
        case Between(value, low, high):
            return _operation("between", (value, low, high))
        case In(value, choices):
            return {"op": "in", "args": [to_json(value), list(map(to_json, choices))]}
        case Like(value, pattern):
            return _operation("like", (value, pattern))
        case IsNull(value):
            return _operation("isNull", (value,))
        case Attribute(name):
            return {"property": name}
        case Literal(value):
            return _value_json(value)
        case Computed("array", arguments):
            return list(map(to_json, arguments))
        case Computed("interval", arguments):
            return {"interval": list(map(_end_json, arguments))}
        case _:
            name, arguments = _call(expression)
            return _operation(name, arguments)


def constraint_text(constraint: Constraint) -> str:
    """Write one constraint as CQL2 text."""
    return to_text(Not(constraint.test) if constraint.is_negated else constraint.test)


def _operation(name: str, arguments: tuple[Expression, ...]) -> dict[str, Any]:
    return {"op": name, "args": list(map(to_json, arguments))}


def _call(expression: Expression) -> tuple[str, tuple[Expression, ...]]:
    """Name the function or operator of a node that is written as a call."""
    match expression:
        case Computed(operator, arguments):
            return operator, arguments
        case Spatial(relation, left, right):
            return _spatial_call(relation, left, right)
        case DistanceWithin(left, right, radius_m):
            return "dwithin", (left, right, radius_m)
        case Temporal(operator, left, right) | ArrayTest(operator, left, right):
            return operator, (left, right)
        case _:
            raise AssertionError(expression)


def _spatial_call(
    relation: SpatialRelation, left: Expression, right: Expression
) -> tuple[str, tuple[Expression, ...]]:
    pattern = (Literal(relation.name),) if relation.family is Family.PATTERN else ()
    return relation.operator, (left, right, *pattern)


def _operand(expression: Expression) -> str:
    """Write an operand, in parentheses where it has an operator of its own."""
    text = to_text(expression)
    is_simple = isinstance(
        expression, Attribute | Literal | Spatial | DistanceWithin | Temporal | ArrayTest
    ) or (isinstance(expression, Computed) and expression.operator not in ARITHMETIC)
    return text if is_simple else f"({text})"


def _value_text(value: Value) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int() | float():
            return repr(value)
        case str():
            return "'" + value.replace("'", "''") + "'"
        case Instant():
            return f"TIMESTAMP('{value}')"
        case Interval(start, end):
            return f"INTERVAL('{start or '..'}', '{end or '..'}')"
        case tuple():
            return _array_text(list(map(_value_text, value)))
        case _:
            return geometry_text(value)


def _array_text(elements: list[str]) -> str:
    """Write an array; a single element twice, since `(x)` is x to every parser.

    A long one is written once all the same: arrays of one array would double with each level.
    """
    is_lone = len(elements) == 1 and len(elements[0]) <= _LONE_LENGTH_MAX
    return f"({', '.join(elements * 2 if is_lone else elements)})"


def _value_json(value: Value) -> Any:
    match value:
        case Instant():
            return {"timestamp": str(value)}
        case Interval(start, end):
            return {"interval": [str(start or ".."), str(end or "..")]}
        case tuple():
            return list(map(_value_json, value))
        case BaseGeometry():
            return json.loads(shapely.to_geojson(value))
        case _:
            return value


def _end_text(end: Expression) -> str:
    return f"'{end.value}'" if isinstance(end, Literal) else to_text(end)


def _end_json(end: Expression) -> Any:
    return str(end.value) if isinstance(end, Literal) else to_json(end)


def geometry_text(geometry: BaseGeometry) -> str:
    """Write WKT with the shortest exact decimals and no exponents."""
    kind = geometry.geom_type.upper()
    if geometry.geom_type == "GeometryCollection":
        return f"{kind}({', '.join(map(geometry_text, shapely.get_parts(geometry)))})"
    if geometry.geom_type in {"MultiPolygon", "MultiLineString", "MultiPoint"}:
        return f"{kind}({', '.join(_body(part) for part in shapely.get_parts(geometry))})"
    return f"{kind}{_body(geometry)}"


def _body(geometry: BaseGeometry) -> str:
    if geometry.geom_type == "Polygon":
        rings = shapely.get_rings(geometry)
        return f"({', '.join(_body(ring) for ring in rings)})"
    pairs = (f"{_decimal(x)} {_decimal(y)}" for x, y in shapely.get_coordinates(geometry))
    return f"({', '.join(pairs)})"


def _decimal(number: float) -> str:
    text = format(Decimal(repr(float(np.float64(number)))), "f")
    return text.removesuffix(".0")
