"""The operands of many expressions, each distinct one stored once, in a pool for each type.

Whoever uses an operand keeps its number in the pool of its type.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import pyarrow as pa
import shapely
from shapely.geometry.base import BaseGeometry

from contrada.arrays import Floats, Geometries, Integers, Mask, Positions
from contrada.model.expression_parts import (
    Operand,
    OperandType,
    pack_interval,
    unpack_interval,
)
from contrada.model.geometry import as_array
from contrada.model.instant import Instant, Interval
from contrada.model.packed_geometries import PackedGeometries, concatenate, pack

_LISTED_AT_ONCE = 10_000  # texts: nobody else can run while Arrow lists them

Moves = tuple[Positions, ...]  # the new number of each operand, by type


class HasOperands(Protocol):
    """Operands by type and number."""

    def one(self, kind: OperandType, number: int) -> Operand:
        """Return one operand."""


@dataclass(frozen=True, slots=True)
class OperandPools:
    """Numbers as 64 bits (integers, or doubles where `is_whole` is false), and all other operands.

    Moments are nanoseconds since 1970. So are both ends of intervals, the rows of their column; the
    least integer is an open start, the greatest an open end.
    """

    bits: Integers
    is_whole: Mask
    texts: pa.LargeStringArray
    geometries: PackedGeometries
    moments: Integers = field(default_factory=lambda: np.zeros(0, np.int64))
    intervals: Integers = field(default_factory=lambda: np.zeros((0, 2), np.int64))

    def one(self, kind: OperandType, number: int) -> Operand:
        """Return one operand."""
        match kind:
            case OperandType.NUMBER:
                bits = self.bits[number]
                return int(bits) if self.is_whole[number] else float(bits.view(np.float64))
            case OperandType.TEXT:
                text: str = self.texts[number].as_py()
                return text
            case OperandType.GEOMETRY:
                geometry: BaseGeometry = self.geometries.shapes(np.array([number]))[0]
                return geometry
            case OperandType.MOMENT:
                return Instant(int(self.moments[number]))
            case OperandType.INTERVAL:
                return unpack_interval(*self.intervals[number].tolist())

    def ready(self) -> "ReadyOperands":
        """Make all operands at once, for whoever wants most of them."""
        doubles = self.bits.view(np.float64).tolist()
        values = zip(self.is_whole.tolist(), self.bits.tolist(), doubles, strict=True)
        numbers = [whole if is_whole else real for is_whole, whole, real in values]
        texts = [
            text
            for first in range(0, len(self.texts), _LISTED_AT_ONCE)
            for text in self.texts.slice(first, _LISTED_AT_ONCE).to_pylist()
        ]
        moments = [Instant(ns) for ns in self.moments.tolist()]
        intervals = [unpack_interval(*ends) for ends in self.intervals.tolist()]
        return ReadyOperands((numbers, texts, self.geometries.shapes(), moments, intervals))

    def reals(self, numbers: Positions) -> Floats:
        """Return numbers as doubles, rounded where they are integers beyond these."""
        bits = self.bits[numbers]
        return np.where(self.is_whole[numbers], bits.astype(np.float64), bits.view(np.float64))

    def sizes(self) -> tuple[int, ...]:
        """Count the operands of each type."""
        times = len(self.moments), len(self.intervals)
        return len(self.bits), len(self.texts), len(self.geometries), *times

    def take(self, kept: Moves) -> "OperandPools":
        """Return the pools with some operands of each type."""
        numbers, texts, geometries, moments, intervals = kept
        return OperandPools(
            self.bits[numbers],
            self.is_whole[numbers],
            self.texts.take(pa.array(texts)),
            self.geometries.take(geometries),
            self.moments[moments],
            self.intervals[intervals],
        )

    @property
    def nbytes(self) -> int:
        """Count the bytes of all columns."""
        numbers = self.bits.nbytes + self.is_whole.nbytes
        times = self.moments.nbytes + self.intervals.nbytes
        return int(numbers + self.texts.nbytes + self.geometries.nbytes + times)


@dataclass(frozen=True, slots=True)
class ReadyOperands:
    """All operands of some pools, as objects."""

    by_type: tuple[Sequence[Operand] | Geometries, ...]

    def one(self, kind: OperandType, number: int) -> Operand:
        """Return one operand."""
        operand: Operand = self.by_type[kind][number]
        return operand


def join_pools(pools: Sequence[OperandPools]) -> tuple[OperandPools, list[Moves]]:
    """Join pools into one in which each operand is once; where those of each pool went."""
    joined = append_pools(*pools)
    kept, moved = unify(joined)
    found, ends = [], np.cumsum([pool.sizes() for pool in pools], axis=0)
    for number, pool in enumerate(pools):
        slices = (slice(e - s, e) for s, e in zip(pool.sizes(), ends[number], strict=True))
        found.append(tuple(moves[part] for moves, part in zip(moved, slices, strict=True)))
    return joined.take(kept), found


def append_pools(*pools: OperandPools) -> OperandPools:
    """Put pools one after another, whatever is in several of them."""
    return OperandPools(
        np.concatenate([pool.bits for pool in pools]),
        np.concatenate([pool.is_whole for pool in pools]),
        pa.concat_arrays([pool.texts for pool in pools]),
        concatenate([pool.geometries for pool in pools]),
        np.concatenate([pool.moments for pool in pools]),
        np.concatenate([pool.intervals for pool in pools]),
    )


def unify(pools: OperandPools) -> tuple[Moves, Moves]:
    """Find the distinct operands: which of each type to keep, and where all of them go."""
    firsts = (
        _first_numbers(pools.bits, pools.is_whole),
        _first_texts(pools.texts),
        pools.geometries.firsts(),
        _first_of(pools.moments),
        _first_of(pools.intervals),
    )
    kept, moved = zip(*map(_keep_firsts, firsts), strict=True)
    return kept, moved


def _keep_firsts(firsts: Positions) -> tuple[Positions, Positions]:
    """Return what is the first of its kind, and the place of everything among those."""
    kept = np.flatnonzero(firsts == np.arange(len(firsts)))
    places = np.empty(len(firsts), np.int64)
    places[kept] = np.arange(len(kept))
    return kept, places[firsts]


def _first_numbers(bits: Integers, is_whole: Mask) -> Positions:
    firsts = np.empty(len(bits), np.int64)
    for at in (np.flatnonzero(is_whole), np.flatnonzero(~is_whole)):
        firsts[at] = at[_first_of(bits[at])]
    return firsts


def _first_of(values: Integers) -> Positions:
    """Return for each value, or each row, the place of the first that is equal to it."""
    axis = 0 if values.ndim > 1 else None
    _, index, inverse = np.unique(values, return_index=True, return_inverse=True, axis=axis)
    return np.asarray(index[inverse.reshape(-1)], np.int64)


def _first_texts(texts: pa.LargeStringArray) -> Positions:
    if not len(texts):
        return np.zeros(0, np.int64)
    codes = texts.dictionary_encode().indices.to_numpy()
    _, index = np.unique(codes, return_index=True)
    return np.asarray(index[codes], np.int64)


class PoolWriter:
    """Pools being filled operand by operand."""

    def __init__(self) -> None:
        """Start empty."""
        self._numbers: dict[tuple[bool, int], int] = {}
        self._texts: dict[str, int] = {}
        self._geometries: dict[bytes, int] = {}
        self._shapes: list[BaseGeometry] = []
        self._moments: dict[int, int] = {}
        self._intervals: dict[tuple[int, int], int] = {}

    def add(self, operand: Operand) -> int:
        """Return the number of an operand in the pool of its type."""
        if isinstance(operand, str):
            return self._texts.setdefault(operand, len(self._texts))
        if isinstance(operand, BaseGeometry):
            return self._add_geometry(operand)
        if isinstance(operand, Instant):
            return self._moments.setdefault(operand.ns, len(self._moments))
        if isinstance(operand, Interval):
            return self._intervals.setdefault(pack_interval(operand), len(self._intervals))
        is_whole = isinstance(operand, int)
        bits = operand if isinstance(operand, int) else int(np.float64(operand).view(np.int64))
        return self._numbers.setdefault((is_whole, bits), len(self._numbers))

    def _add_geometry(self, geometry: BaseGeometry) -> int:
        number = self._geometries.setdefault(shapely.to_wkb(geometry), len(self._shapes))
        if number == len(self._shapes):
            self._shapes.append(geometry)
        return number

    def finish(self) -> OperandPools:
        """Return the pools."""
        return OperandPools(
            np.array([bits for _, bits in self._numbers], np.int64),
            np.array([is_whole for is_whole, _ in self._numbers], bool),
            pa.array(list(self._texts), pa.large_string()),
            pack(as_array(self._shapes)),
            np.array(list(self._moments), np.int64),
            np.array(list(self._intervals), np.int64).reshape(-1, 2),
        )


def pack_numbers(values: Sequence[int | float]) -> tuple[Integers, Mask]:
    """Write numbers as 64 bits, and which of them are integers."""
    is_whole = np.array([isinstance(value, int) for value in values], bool)
    bits = np.zeros(len(values), np.int64)
    bits[is_whole] = [value for value in values if isinstance(value, int)]
    reals = np.array([value for value in values if not isinstance(value, int)], np.float64)
    bits[~is_whole] = reals.view(np.int64)
    return bits, is_whole
