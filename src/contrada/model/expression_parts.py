"""An expression as its skeleton and the operands in it: numbers, texts and geometries.

Predicates that differ only in these have one skeleton, which is an expression, too: each operand
gives way to a stand-in of its kind. Operands are listed in the order of the tree, so that the two
make the expression again. Other literals (truth values, moments, arrays, null, integers beyond 64
bits, infinity) stay where they are, and so does an interval, whose open end is a text.
"""

from collections.abc import Iterator, Sequence
from enum import IntEnum
from math import isfinite

import shapely
from shapely.geometry.base import BaseGeometry

from contrada.model.expression import (
    Attribute,
    Computed,
    Expression,
    Literal,
    Value,
    children,
    with_children,
)

INT_MIN, INT_MAX = -(2**63), 2**63 - 1

Operand = int | float | str | BaseGeometry


class OperandType(IntEnum):
    """What an operand is."""

    NUMBER = 0
    TEXT = 1
    GEOMETRY = 2


_STAND_INS = {
    OperandType.NUMBER: Literal(0),
    OperandType.TEXT: Literal(""),
    OperandType.GEOMETRY: Literal(shapely.box(0, 0, 1, 1)),
}


def divide(expression: Expression) -> tuple[Expression, list[Operand]]:
    """Take an expression apart."""
    operands: list[Operand] = []
    return _divide(expression, operands), operands


def _divide(expression: Expression, operands: list[Operand]) -> Expression:
    if _is_indivisible(expression):
        return expression
    if isinstance(expression, Literal):
        kind = operand_type(expression.value)
        if kind is None:
            return expression
        operands.append(expression.value)  # type: ignore[arg-type]
        return _STAND_INS[kind]
    below = tuple([_divide(child, operands) for child in children(expression)])
    return with_children(expression, below)


def fill(skeleton: Expression, operands: Sequence[Operand]) -> Expression:
    """Put operands into a skeleton."""
    return _fill(skeleton, iter(operands))


def _fill(node: Expression, operands: Iterator[Operand]) -> Expression:
    if _is_indivisible(node):
        return node
    if isinstance(node, Literal):
        return node if operand_type(node.value) is None else Literal(next(operands))
    return with_children(node, tuple([_fill(child, operands) for child in children(node)]))


def make_example(skeleton: Expression) -> Expression:
    """Fill a skeleton with operands each of which is different from the others."""
    types = enumerate(list_operand_types(skeleton))
    return fill(skeleton, [_make_operand(type_, number) for number, type_ in types])


def _make_operand(type_: OperandType, number: int) -> Operand:
    if type_ is OperandType.NUMBER:
        return number
    # However many there are, each is on the globe, as `dwithin` wants it.
    return str(number) if type_ is OperandType.TEXT else shapely.box(0, 0, 1, 1 / (1 + number))


def list_operand_types(skeleton: Expression) -> list[OperandType]:
    """List what the operands of a skeleton are, in their order."""
    if _is_indivisible(skeleton):
        return []
    if isinstance(skeleton, Literal):
        kind = operand_type(skeleton.value)
        return [] if kind is None else [kind]
    return [kind for child in children(skeleton) for kind in list_operand_types(child)]


def _is_indivisible(node: Expression) -> bool:
    """Whether a node that is not a literal has no operands, whatever is below it."""
    return isinstance(node, Attribute) or (
        isinstance(node, Computed) and node.operator == "interval"
    )


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
        case _:
            return None
