"""Expressions as columns: the skeleton of each, and its operands as numbers in pools."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from contrada.arrays import Positions, SmallIntegers
from contrada.matching.grouping import expand, starts_of
from contrada.matching.operand_pools import HasOperands, Moves
from contrada.model.expression import Expression
from contrada.model.expression_parts import OperandType, fill, list_operand_types


@dataclass(frozen=True, slots=True)
class ExpressionColumns:
    """Expression i has the skeleton numbered `which[i]`, and the operands numbered
    `operands[starts[i] : starts[i + 1]]`, each in the pool of its type."""

    skeletons: tuple[Expression, ...]
    which: SmallIntegers
    starts: Positions
    operands: Positions

    def __len__(self) -> int:
        return len(self.which)

    def one(self, number: int, pools: HasOperands) -> Expression:
        """Make one expression."""
        skeleton = self.skeletons[self.which[number]]
        numbers = self.operands[self.starts[number] : self.starts[number + 1]].tolist()
        types = list_operand_types(skeleton)
        return fill(skeleton, [pools.one(t, n) for t, n in zip(types, numbers, strict=True)])

    def numbers_of(self, skeleton: int) -> Positions:
        """List the expressions that have a skeleton."""
        return np.flatnonzero(self.which == skeleton)

    def operands_of(self, numbers: Positions, place: int = 0) -> Positions:
        """List the operand that some expressions have at one place."""
        return self.operands[self.starts[numbers] + place]

    def types(self) -> NDArray[np.uint8]:
        """Return the type of each operand."""
        types = [list_operand_types(skeleton) for skeleton in self.skeletons]
        starts = np.concatenate([[0], np.cumsum([len(t) for t in types])]).astype(np.int64)
        flat = np.array([t for ts in types for t in ts], np.uint8)
        return flat[expand(starts, self.which.astype(np.int64))[1]]

    def take(self, numbers: Positions) -> "ExpressionColumns":
        """Return some expressions."""
        _, places = expand(self.starts, numbers)
        lengths = self.starts[numbers + 1] - self.starts[numbers]
        used, which = np.unique(self.which[numbers], return_inverse=True)
        skeletons = tuple(self.skeletons[skeleton] for skeleton in used.tolist())
        return ExpressionColumns(
            skeletons, which.astype(np.int32), starts_of(lengths), self.operands[places]
        )

    def moved(self, moves: Moves) -> "ExpressionColumns":
        """Return the same expressions after their operands have moved within the pools."""
        if len(self.skeletons) == 1:
            only = set(list_operand_types(self.skeletons[0]))
            if len(only) == 1:  # a type for each operand would take as much room again
                operands = moves[only.pop()][self.operands]
                return ExpressionColumns(self.skeletons, self.which, self.starts, operands)
        types, operands = self.types(), self.operands.copy()
        for type_ in OperandType:
            at = types == type_
            operands[at] = moves[type_][operands[at]]
        return ExpressionColumns(self.skeletons, self.which, self.starts, operands)

    @property
    def nbytes(self) -> int:
        """Count the bytes of the columns."""
        return self.which.nbytes + self.starts.nbytes + self.operands.nbytes


def join_expressions(parts: Sequence[ExpressionColumns]) -> ExpressionColumns:
    """Put expressions one after another, their operands being in the same pools."""
    if len(parts) == 1:
        return parts[0]
    number_of: dict[Expression, int] = {}
    which = []
    for part in parts:
        numbers = [number_of.setdefault(s, len(number_of)) for s in part.skeletons]
        which.append(np.array(numbers, np.int32)[part.which] if len(part) else part.which)
    lengths = np.concatenate([np.diff(part.starts) for part in parts])
    operands = np.concatenate([part.operands for part in parts])
    return ExpressionColumns(tuple(number_of), np.concatenate(which), starts_of(lengths), operands)


class ExpressionWriter:
    """Expressions being written one by one."""

    def __init__(self) -> None:
        """Start empty."""
        self._number_of: dict[Expression, int] = {}
        self._which: list[int] = []
        self._lengths: list[int] = []
        self._operands: list[int] = []

    def add(self, skeleton: Expression, operands: list[int]) -> None:
        """Write an expression: its skeleton, and the numbers of its operands."""
        self._which.append(self._number_of.setdefault(skeleton, len(self._number_of)))
        self._lengths.append(len(operands))
        self._operands += operands

    def finish(self) -> ExpressionColumns:
        """Return the columns."""
        return ExpressionColumns(
            tuple(self._number_of),
            np.array(self._which, np.int32),
            starts_of(np.array(self._lengths, np.int64)),
            np.array(self._operands, np.int64),
        )
