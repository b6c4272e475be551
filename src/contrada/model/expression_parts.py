"""An expression as its skeleton and the operands in it: numbers, texts, geometries and times.

Predicates that differ only in these have one skeleton, which is an expression, too: each operand
gives way to a stand-in of its kind. Operands are listed in the order of the tree, so that the two
make the expression again. Other literals (truth values, arrays, null, integers and moments beyond
64 bits, infinity) stay where they are, and so does the open end of an interval, which is a text.
"""

from collections.abc import Iterator, Sequence
from enum import IntEnum
from math import isfinite

import shapely
from shapely.geometry.base import BaseGeometry

from contrada.model.expression import (
    Computed,
    Expression,
    Literal,
    Value,
    children,
    with_children,
)
from contrada.model.instant import Instant, Interval

INT_MIN, INT_MAX = -(2**63), 2**63 - 1

Operand = int | float | str | BaseGeometry | Instant | Interval


class OperandType(IntEnum):
    """What an operand is."""

    NUMBER = 0
    TEXT = 1
    GEOMETRY = 2
    MOMENT = 3
    INTERVAL = 4


_STAND_INS = {
    OperandType.NUMBER: Literal(0),
    OperandType.TEXT: Literal(""),
    OperandType.GEOMETRY: Literal(shapely.box(0, 0, 1, 1)),
    OperandType.MOMENT: Literal(Instant(0)),
    OperandType.INTERVAL: Literal(Interval(Instant(0), Instant(0))),
}


def divide(expression: Expression) -> tuple[Expression, list[Operand]]:
    """Take an expression apart."""
    operands: list[Operand] = []
    return _divide(expression, operands), operands


def _divide(expression: Expression, operands: list[Operand], within: str = "") -> Expression:
    if isinstance(expression, Literal):
        kind = _type_of(expression, within)
        if kind is None:
            return expression
        operands.append(expression.value)  # type: ignore[arg-type]
        return _STAND_INS[kind]
    within = _operator(expression)
    below = tuple([_divide(child, operands, within) for child in children(expression)])
    return with_children(expression, below)


def fill(skeleton: Expression, operands: Sequence[Operand]) -> Expression:
    """Put operands into a skeleton."""
    return _fill(skeleton, iter(operands))


def _fill(node: Expression, operands: Iterator[Operand], within: str = "") -> Expression:
    if isinstance(node, Literal):
        return node if _type_of(node, within) is None else Literal(next(operands))
    within = _operator(node)
    return with_children(node, tuple([_fill(child, operands, within) for child in children(node)]))


def make_example(skeleton: Expression) -> Expression:
    """Fill a skeleton with operands each of which is different from the others."""
    types = enumerate(list_operand_types(skeleton))
    return fill(skeleton, [_make_operand(type_, number) for number, type_ in types])


def _make_operand(type_: OperandType, number: int) -> Operand:
    match type_:
        case OperandType.NUMBER:
            return number
        case OperandType.TEXT:
            return str(number)
        case OperandType.GEOMETRY:  # however many there are, each is on the globe, for `dwithin`
            return shapely.box(0, 0, 1, 1 / (1 + number))
        case OperandType.MOMENT:
            return Instant(number)
        case OperandType.INTERVAL:
            return Interval(Instant(number), Instant(number))


def list_operand_types(skeleton: Expression, within: str = "") -> list[OperandType]:
    """List what the operands of a skeleton are, in their order; it may be `within` a node."""
    if isinstance(skeleton, Literal):
        kind = _type_of(skeleton, within)
        return [] if kind is None else [kind]
    within = _operator(skeleton)
    return [kind for child in children(skeleton) for kind in list_operand_types(child, within)]


def _operator(node: Expression) -> str:
    """Name the operator of a computed value."""
    return node.operator if isinstance(node, Computed) else ""


def _type_of(literal: Literal, within: str) -> OperandType | None:
    """Return what a literal is as an operand, below a node; the open end of an interval is none."""
    kind = operand_type(literal.value)
    return None if within == "interval" and kind is OperandType.TEXT else kind


def operand_type(value: Value) -> OperandType | None:
    """Return what a literal is as an operand; None where it stays in the skeleton."""
    match value:
        case bool():
            return None
        case int():
            return OperandType.NUMBER if INT_MIN <= value <= INT_MAX else None
        case float():
            return OperandType.NUMBER if isfinite(value) else None
        case str():
            return OperandType.TEXT
        case BaseGeometry():
            return OperandType.GEOMETRY
        case Instant(ns):
            return OperandType.MOMENT if INT_MIN <= ns <= INT_MAX else None
        case Interval(start, end):
            are_held = all(end is None or INT_MIN < end.ns < INT_MAX for end in (start, end))
            return OperandType.INTERVAL if are_held else None
        case _:
            return None


def pack_interval(interval: Interval) -> tuple[int, int]:
    """Write both ends of an interval as integers: the least is an open start, the greatest an end.

    The ends fit between these.
    """
    start = INT_MIN if interval.start is None else interval.start.ns
    return start, INT_MAX if interval.end is None else interval.end.ns


def unpack_interval(start: int, end: int) -> Interval:
    """Make the interval of two integers."""
    return Interval(
        None if start == INT_MIN else Instant(start), None if end == INT_MAX else Instant(end)
    )
