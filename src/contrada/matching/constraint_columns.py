"""The distinct constraints of a set of subscriptions, as columns; objects are made on demand."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np

from contrada.arrays import Mask, Positions
from contrada.matching.expression_columns import ExpressionColumns, ExpressionWriter
from contrada.matching.operand_pools import OperandPools, PoolWriter
from contrada.model.expression_parts import divide
from contrada.model.subscription import Constraint

_FEW = 4  # operands for each constraint: if there are more, not all of them are made


@dataclass(frozen=True, slots=True)
class Head:
    """A constraint without its operands, and the constraints that share it, by number.

    `operands[:, k]` are the numbers of their operands at place k, each in the pool of its type.
    """

    constraint: Constraint
    numbers: Positions
    operands: Positions


@dataclass(frozen=True, slots=True, eq=False)
class ConstraintColumns(Sequence[Constraint]):
    """Tests, and which of them are negated."""

    tests: ExpressionColumns
    is_negated: Mask
    pools: OperandPools

    def __len__(self) -> int:
        return len(self.tests)

    @overload
    def __getitem__(self, number: int) -> Constraint: ...

    @overload
    def __getitem__(self, number: slice) -> list[Constraint]: ...

    def __getitem__(self, number: int | slice) -> Constraint | list[Constraint]:
        if isinstance(number, slice):
            return [self[i] for i in range(*number.indices(len(self)))]
        if not 0 <= number < len(self):
            raise IndexError(number)
        return Constraint(self.tests.one(number, self.pools), bool(self.is_negated[number]))

    def __iter__(self) -> Iterator[Constraint]:
        is_most = _FEW * len(self) > sum(self.pools.sizes())
        operands = self.pools.ready() if is_most else self.pools
        for number, is_negated in enumerate(self.is_negated.tolist()):
            yield Constraint(self.tests.one(number, operands), is_negated)

    def heads(self, numbers: Positions | None = None) -> Iterator[Head]:
        """List all constraints, or some of them, by what they are without their operands."""
        wanted = np.arange(len(self)) if numbers is None else numbers
        codes = 2 * self.tests.which[wanted].astype(np.int64) + self.is_negated[wanted]
        order = np.argsort(codes, kind="stable")
        firsts = np.flatnonzero(np.diff(codes[order], prepend=-1))
        for at in np.split(order, firsts[1:]) if len(order) else ():
            code = int(codes[at[0]])
            chosen = wanted[at]
            starts = self.tests.starts
            width = int(starts[chosen[0] + 1] - starts[chosen[0]])
            operands = self.tests.operands[starts[chosen][:, None] + np.arange(width)]
            head = Constraint(self.tests.skeletons[code // 2], bool(code % 2))
            yield Head(head, chosen, operands)

    def take(self, numbers: Positions) -> "ConstraintColumns":
        """Return some constraints, over the same pools."""
        return ConstraintColumns(self.tests.take(numbers), self.is_negated[numbers], self.pools)

    def firsts(self) -> Positions:
        """Return for each constraint the number of the first that is equal to it."""
        firsts = np.arange(len(self))
        for head in self.heads():
            firsts[head.numbers] = head.numbers[_first_rows(head.operands)]
        return firsts

    @property
    def nbytes(self) -> int:
        """Count the bytes of the columns, without the pools."""
        return self.tests.nbytes + self.is_negated.nbytes


def pack_constraints(
    constraints: Iterable[Constraint], writer: PoolWriter | None = None
) -> ConstraintColumns:
    """Write constraints as columns, one by one; `writer` may hold operands of others already."""
    writer, tests, is_negated = writer or PoolWriter(), ExpressionWriter(), []
    for constraint in constraints:
        skeleton, operands = divide(constraint.test)
        tests.add(skeleton, [writer.add(operand) for operand in operands])
        is_negated.append(constraint.is_negated)
    return ConstraintColumns(tests.finish(), np.array(is_negated, bool), writer.finish())


def _first_rows(rows: Positions) -> Positions:
    """Return for each row the place of the first that is equal to it."""
    if not rows.shape[1]:
        return np.zeros(len(rows), np.int64)
    keys = rows[:, 0]
    for column in rows.T[1:]:  # NumPy lets no other thread run while it sorts rows
        _, codes = np.unique(keys, return_inverse=True)
        keys = codes * (column.max() + 1) + column
    _, index, inverse = np.unique(keys, return_index=True, return_inverse=True)
    return np.asarray(index[inverse], np.int64)
