"""Columns as versions of format 2 wrote them that had no pool of moments.

There moments were part of skeletons, so that each had one of its own. Here they become operands,
as they are now; the columns of such expressions are copies, all others stay as they lie.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from contrada.arrays import Positions, SmallIntegers
from contrada.matching.expression_columns import ExpressionColumns
from contrada.matching.grouping import starts_of
from contrada.matching.operand_pools import PoolWriter
from contrada.model.expression import Expression
from contrada.model.expression_parts import Operand, OperandType, divide, operand_type
from contrada.model.instant import Instant, Interval

_TIMES = {OperandType.MOMENT, OperandType.INTERVAL}


@dataclass(frozen=True, slots=True)
class OlderSkeleton:
    """An expression that has its moments in place, and stand-ins for all other operands."""

    skeleton: Expression
    operands: tuple[Operand, ...]

    @classmethod
    def of(cls, expression: Expression) -> "OlderSkeleton":
        """Take an expression apart, as it is done now."""
        skeleton, operands = divide(expression)
        return cls(skeleton, tuple(operands))

    @property
    def width(self) -> int:
        """How many operands lie in the columns."""
        return sum(operand_type(operand) not in _TIMES for operand in self.operands)


def take_moments_out(
    skeletons: Sequence[OlderSkeleton],
    which: SmallIntegers,
    operands: Positions,
    writer: PoolWriter,
) -> ExpressionColumns:
    """Put the moments of skeletons into a pool, and their numbers among the operands."""
    old_starts = starts_of(np.array([s.width for s in skeletons], np.int64)[which])
    starts = starts_of(np.array([len(s.operands) for s in skeletons], np.int64)[which])
    moved = np.empty(starts[-1], np.int64)
    order = np.argsort(which, kind="stable")
    ends = np.cumsum(np.bincount(which, minlength=len(skeletons)))
    for skeleton, rows in zip(skeletons, np.split(order, ends[:-1]), strict=True):
        place = 0
        for number, operand in enumerate(skeleton.operands):
            if isinstance(operand, Instant | Interval):
                moved[starts[rows] + number] = writer.add(operand)
            else:
                moved[starts[rows] + number] = operands[old_starts[rows] + place]
                place += 1
    number_of: dict[Expression, int] = {}
    numbers = [number_of.setdefault(s.skeleton, len(number_of)) for s in skeletons]
    return ExpressionColumns(tuple(number_of), np.array(numbers, np.int32)[which], starts, moved)
