"""Subscriptions that share a form: the same predicate but for its operands, packed all at once.

A form is studied by an example whose operands are marks: where a mark comes to stand in the
expression and in the constraints, the operand of each subscription will. A mark is known by being
that very object, since somebody may write one that is equal to it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import shapely

from contrada.arrays import Positions
from contrada.matching.constraint_columns import ConstraintColumns
from contrada.matching.expression_columns import ExpressionColumns
from contrada.matching.grouping import starts_of
from contrada.matching.id_columns import IdColumn, SubscriberColumns
from contrada.matching.operand_pools import OperandPools, PoolWriter, append_pools
from contrada.matching.subscription_columns import SubscriptionColumns
from contrada.matching.table import FilterTable
from contrada.model.expression import Expression
from contrada.model.expression_parts import Operand, OperandType, divide, operand_type
from contrada.model.instant import Instant, Interval
from contrada.model.subscription import Predicate


@dataclass(frozen=True, slots=True)
class _Piece:
    """An expression or a constraint of a form, and where each of its operands comes from.

    A source is the number of a mark, or an operand that all subscriptions of the form have.
    """

    skeleton: Expression
    sources: tuple["int | _Constant", ...]
    is_negated: bool = False


@dataclass(frozen=True, slots=True)
class _Constant:
    operand: Operand


@dataclass(frozen=True, slots=True)
class Form:
    """The expression and the filters of a predicate with marks."""

    expression: _Piece
    constraints: tuple[_Piece, ...]
    filters: tuple[tuple[int, ...], ...]  # constraints by number


def make_marks(types: Sequence[OperandType]) -> list[Operand]:
    """Make operands, each different from the others."""
    return [_make_mark(type_, i) for i, type_ in enumerate(types)]


def _make_mark(type_: OperandType, number: int) -> Operand:
    match type_:
        case OperandType.NUMBER:
            return -1.2345678901e-300 * (number + 1)
        case OperandType.TEXT:
            return f"\x00mark {number}\x00"
        case OperandType.GEOMETRY:
            west = 1e-300 * number
            return shapely.box(west, 0, west + 2e-300, 2e-300)
        case OperandType.MOMENT:
            return Instant(number)
        case OperandType.INTERVAL:
            return Interval(Instant(number), Instant(number))


def study(predicate: Predicate, marks: Sequence[Operand]) -> Form:
    """Find out where marks stand in a predicate."""
    expression = _study(predicate.expression, marks)
    assert all(number in expression.sources for number in range(len(marks))), "a mark was lost"
    constraints = dict.fromkeys(c for f in predicate.filters for c in f.constraints)
    numbers = {constraint: number for number, constraint in enumerate(constraints)}
    return Form(
        expression,
        tuple(_study(c.test, marks, c.is_negated) for c in constraints),
        tuple(tuple(numbers[c] for c in f.constraints) for f in predicate.filters),
    )


def _study(expression: Expression, marks: Sequence[Operand], is_negated: bool = False) -> _Piece:
    skeleton, operands = divide(expression)
    number_of = {id(mark): number for number, mark in enumerate(marks)}
    sources = [number_of.get(id(operand), _Constant(operand)) for operand in operands]
    return _Piece(skeleton, tuple(sources), is_negated)


def pack_form(
    form: Form,
    ids: pa.Array,
    subscribers: SubscriberColumns,
    operands: Sequence[Positions],
    pools: OperandPools,
    sets: Positions,
) -> SubscriptionColumns:
    """Pack subscriptions of one form, given sets of operands: their numbers for each mark.

    Subscription i has the set `sets[i]`, and those of one set share their constraints. Operands may
    be in the pools several times, and constraints of equal sets come several times, too.
    """
    count, distinct = len(ids), int(sets.max(initial=-1)) + 1
    sources = _Sources(operands, pools, distinct)
    expression = _stack([form.expression], sources, distinct, sets)
    tests = _stack(form.constraints, sources, distinct)
    pieces = [piece.is_negated for piece in form.constraints]
    constraints = ConstraintColumns(
        tests, np.repeat(np.array(pieces, bool), distinct), sources.finish()
    )
    sizes = np.array([len(members) for members in form.filters], np.int64)
    flat = np.array([number for members in form.filters for number in members], np.int64)
    table = FilterTable(
        constraints,
        np.repeat(np.arange(count), len(form.filters)),
        starts_of(np.tile(sizes, count)),
        (flat[None, :] * distinct + sets[:, None]).reshape(-1),
    )
    return SubscriptionColumns(IdColumn(ids), subscribers, expression, table)


def _stack(
    pieces: Sequence[_Piece], sources: "_Sources", count: int, sets: Positions | None = None
) -> ExpressionColumns:
    """Write each piece for all sets of operands, or for those of each subscription."""
    number_of: dict[Expression, int] = {}
    which = [number_of.setdefault(piece.skeleton, len(number_of)) for piece in pieces]
    columns = []
    for piece in pieces:
        if piece.sources:
            operands = np.stack([sources.column(source) for source in piece.sources], axis=1)
            columns.append((operands if sets is None else operands[sets]).reshape(-1))
    count = count if sets is None else len(sets)
    widths = np.repeat(np.array([len(piece.sources) for piece in pieces], np.int64), count)
    return ExpressionColumns(
        tuple(number_of),
        np.repeat(np.array(which, np.int32), count),
        starts_of(widths),
        columns[0] if len(columns) == 1 else np.concatenate([np.zeros(0, np.int64), *columns]),
    )


class _Sources:
    """The numbers of operands for each source of a form, constants put into the pools as well."""

    def __init__(self, operands: Sequence[Positions], pools: OperandPools, count: int) -> None:
        self._operands, self._pools, self._count = operands, pools, count
        self._constants = PoolWriter()

    def column(self, source: int | _Constant) -> Positions:
        if isinstance(source, int):
            return self._operands[source]
        type_ = operand_type(source.operand)
        assert type_ is not None
        number = self._pools.sizes()[type_] + self._constants.add(source.operand)
        return np.full(self._count, number, np.int64)

    def finish(self) -> OperandPools:
        """Return the pools with the constants at their ends."""
        return append_pools(self._pools, self._constants.finish())
