"""Filters found through a value: sorted numbers, equal texts, or texts of a pattern.

Where a filter has no positive spatial constraint, one of these is its anchor: the rows of a batch
that satisfy it are found all at once, so that the work follows what is found, not filters times
rows. Anchors that a batch cannot serve, as its column is of another kind, are checked row by row.
For a single event the indexes of the forwarding table find them.
"""

from collections.abc import Callable, Mapping, Sequence
from math import inf, isnan
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from contrada.arrays import Floats, Positions
from contrada.deferred import compute as pc
from contrada.language.values import is_number
from contrada.matching.checks import is_range
from contrada.matching.columns import EventBatch
from contrada.matching.constraint_columns import ConstraintColumns, Head
from contrada.matching.indexes import INDEXES
from contrada.matching.indexes.patterns import PatternTable, read_shape
from contrada.matching.number_ranges import join_ranges, ranges_of
from contrada.matching.operand_pools import OperandPools
from contrada.matching.strtree.sorted_bounds import SortedBounds
from contrada.matching.strtree.text_numbers import TextNumbers
from contrada.model.event import Event, Names
from contrada.model.expression import Attribute, Comparison, Like, Literal
from contrada.model.expression_parts import INT_MAX, INT_MIN
from contrada.model.instant import read_instant
from contrada.model.subscription import Constraint, Filter
from contrada.threads import once

_NONE = np.zeros(0, np.int64)
_EQUAL, _PATTERN, _RANGE = 0, 1, 2  # the most selective first


class ValueAnchors(Protocol):
    """Anchors of one kind on one attribute."""

    name: str
    numbers: Positions

    def find(self, batch: EventBatch) -> tuple[Positions, Positions] | None:
        """Find the rows that satisfy each anchor, with its number; None where it cannot tell."""

    def find_one(self, value: Any) -> Positions:
        """Find the numbers of the anchors that one value satisfies, which is not null."""

    def prepare(self) -> None:
        """Make now what `find_one` needs."""


def make_value_anchors(constraints: ConstraintColumns, numbers: Positions) -> list[ValueAnchors]:
    """Sort the anchors of some numbers by kind and attribute."""
    kinds: dict[tuple[int, str], list[Head]] = {}
    for head in constraints.heads(numbers):
        kinds.setdefault(_kind(head.constraint), []).append(head)
    return [_MAKERS[kind](name, heads, constraints) for (kind, name), heads in kinds.items()]


class EventValues:
    """All anchors by attribute, asked of one event at a time."""

    def __init__(self, anchors: Sequence[ValueAnchors]) -> None:
        """Arrange anchors by the name of their attribute."""
        self._anchors: dict[str, list[ValueAnchors]] = {}
        for each in anchors:
            self._anchors.setdefault(each.name, []).append(each)
        self.names = Names(self._anchors)

    def find(self, event: Event) -> list[Positions]:
        """Find the numbers of the anchors that an event satisfies, each once."""
        found = []
        for name in event.find_names(self.names):
            value = event.value(name)
            if value is not None:
                found += [anchors.find_one(value) for anchors in self._anchors[name]]
        return found


def find_value_anchor(filter_: Filter) -> Constraint | None:
    """Choose the constraint through which a filter without a place is found; None without any."""
    ranks = [rank_value_anchor(constraint) for constraint in filter_.constraints]
    best = min(ranks, default=inf)
    return None if best == inf else filter_.constraints[ranks.index(best)]


def rank_value_anchor(constraint: Constraint) -> float:
    """How well a constraint serves as an anchor, the lowest best; infinite where it is none."""
    match constraint.test:
        case Like(Attribute(), Literal(str(pattern))) if not constraint.is_negated:
            return _PATTERN if read_shape(pattern) is not None else inf
        case Comparison("=", Attribute(), Literal(str())) if not constraint.is_negated:
            return _EQUAL
        case Comparison(operator) if is_range(constraint) and operator != "<>":
            return _EQUAL + 0.5 if operator == "=" else _RANGE
    return inf


def rank_value_anchors(constraints: ConstraintColumns) -> Floats:
    """Rank all constraints, as `rank_value_anchor` does one."""
    ranks = np.full(len(constraints), inf)
    for head in constraints.heads():
        if isinstance(head.constraint.test, Like):
            taken = constraints.take(head.numbers)
            ranks[head.numbers] = [rank_value_anchor(constraint) for constraint in taken]
        else:
            ranks[head.numbers] = rank_value_anchor(head.constraint)
    return ranks


def describe_value_anchor(constraint: Constraint) -> str:
    """Describe how an anchor is found."""
    kind, name = _kind(constraint)
    words = {
        _EQUAL: "values of {} by hash",
        _PATTERN: "text patterns of {}",
        _RANGE: "sorted values of {}",
    }
    return words[kind].format(name)


def _kind(constraint: Constraint) -> tuple[int, str]:
    match constraint.test:
        case Like(Attribute(name)):
            return _PATTERN, name
        case Comparison(_, Attribute(name), Literal(str())):
            return _EQUAL, name
        case Comparison(_, Attribute(name)):
            return _RANGE, name
    raise AssertionError(f"{constraint} is no anchor")


class _RangeAnchors:
    """Ranges of numbers: the rows of each lie side by side once they are sorted."""

    def __init__(self, name: str, heads: list[Head], constraints: ConstraintColumns) -> None:
        self.numbers, self.name = _join_numbers(heads), name
        self._constraints = constraints
        self._ranges = join_ranges([ranges_of(head, constraints.pools) for head in heads])

    @once
    def _wholes(self) -> SortedBounds:
        return SortedBounds(self._ranges.whole, INT_MIN, INT_MAX)

    @once
    def _reals(self) -> SortedBounds:
        return SortedBounds(self._ranges.real, -inf, inf)

    def prepare(self) -> None:
        assert self._wholes and self._reals

    def find_one(self, value: Any) -> Positions:
        kind = type(value)
        if kind is float:
            return self.numbers[self._reals.find(value)] if not isnan(value) else _NONE
        if kind is int and INT_MIN <= value <= INT_MAX:
            return self.numbers[self._wholes.find(value)]
        if not is_number(value):
            return _NONE
        return self._odd_ones.find({self.name: value})

    @once
    def _odd_ones(self) -> "_OddValues":
        return _OddValues(self._constraints, self.numbers)

    def find(self, batch: EventBatch) -> tuple[Positions, Positions] | None:
        if batch.lacks(self.name):
            return _NONE, _NONE
        column = batch.numbers(self.name)
        if column is None:
            return None
        values, is_valid = column
        rows = np.flatnonzero(is_valid)
        rows = rows[np.argsort(values[rows])]
        ranges: NDArray[np.int64] | NDArray[np.float64] = (
            self._ranges.whole if values.dtype == np.int64 else self._ranges.real
        )
        starts = np.searchsorted(values[rows], ranges[:, 0], "left")
        ends = np.searchsorted(values[rows], ranges[:, 1], "right")
        lengths = np.maximum(ends - starts, 0)
        which = np.repeat(np.arange(len(lengths)), lengths)
        places = np.arange(len(which)) - np.repeat(np.cumsum(lengths) - lengths - starts, lengths)
        return rows[places], self.numbers[which]


class _EqualTexts:
    """Texts that a value must be."""

    def __init__(self, name: str, heads: list[Head], constraints: ConstraintColumns) -> None:
        self.numbers, self.name = _join_numbers(heads), name
        self._constraints = constraints
        self._number_of = TextNumbers(_list_texts(heads, constraints.pools), self.numbers)

    def prepare(self) -> None:
        pass  # the texts serve batches and single events

    def find_one(self, value: Any) -> Positions:
        if not isinstance(value, str):  # a moment may be what a text reads as
            return self._odd_ones.find({self.name: value}) if read_instant(value) else _NONE
        number = self._number_of.get(value)
        return _NONE if number < 0 else np.array([number])

    @once
    def _odd_ones(self) -> "_OddValues":
        return _OddValues(self._constraints, self.numbers)

    def find(self, batch: EventBatch) -> tuple[Positions, Positions] | None:
        if batch.lacks(self.name):
            return _NONE, _NONE
        codes = batch.codes(self.name)
        if codes is None or not all(isinstance(value, str) for value in codes.values):
            return None
        numbers = [self._number_of.get(value) for value in codes.values]
        number_of_code = np.array([*numbers, -1], np.int64)  # the last for null
        wanted = number_of_code[codes.codes]
        rows = np.flatnonzero(wanted >= 0)
        return rows, wanted[rows]


class _TextAnchors:
    """Texts that a value must begin with, end with or contain."""

    def __init__(self, name: str, heads: list[Head], constraints: ConstraintColumns) -> None:
        self.numbers, self.name = _join_numbers(heads), name
        texts = _list_texts(heads, constraints.pools)
        self._shapes = [_shape(pattern.as_py()) for pattern in texts]

    @once
    def _patterns(self) -> PatternTable:
        patterns = PatternTable()
        for number, shape in zip(self.numbers.tolist(), self._shapes, strict=True):
            patterns.add(*shape, number, is_negated=False)
        patterns.freeze()
        return patterns

    def prepare(self) -> None:
        assert self._patterns

    def find_one(self, value: Any) -> Positions:
        if not isinstance(value, str):
            return _NONE
        return np.concatenate([_NONE, *self._patterns.find(value)])

    def find(self, batch: EventBatch) -> tuple[Positions, Positions] | None:
        if batch.lacks(self.name):
            return _NONE, _NONE
        column = batch.column(self.name)
        is_text = column is not None and (
            pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
        )
        if not is_text:
            return None
        found = [_find_texts(column, *shape) for shape in self._shapes]
        lengths = [len(rows) for rows in found]
        return np.concatenate(found), np.repeat(self.numbers, lengths)


class _OddValues:
    """Any anchors, asked about values of kinds that hardly ever come: made when one does."""

    def __init__(self, constraints: ConstraintColumns, numbers: Positions) -> None:
        self._indexes = [make() for make in INDEXES]
        for number, constraint in zip(numbers.tolist(), constraints.take(numbers), strict=True):
            is_taken = any(index.take(number, constraint) for index in self._indexes)
            assert is_taken, f"no index takes {constraint}"
        for index in self._indexes:
            index.freeze()

    def find(self, attributes: Mapping[str, Any]) -> Positions:
        event = Event(attributes)
        found = (ids for index in self._indexes for ids in index.satisfied(event))
        return np.concatenate([_NONE, *found])


def _join_numbers(heads: list[Head]) -> Positions:
    return np.concatenate([head.numbers for head in heads])


def _list_texts(heads: list[Head], pools: OperandPools) -> pa.Array:
    """List the texts with which the constraints of some heads compare."""
    return pools.texts.take(pa.array(np.concatenate([head.operands[:, 0] for head in heads])))


def _shape(pattern: str) -> tuple[str, str]:
    shape = read_shape(pattern)
    assert shape is not None
    return shape


def _find_texts(column: pa.Array, shape: str, text: str) -> Positions:
    match shape:
        case "exact":
            mask = pc.equal(column, pa.scalar(text, column.type))
        case "prefix":
            mask = pc.starts_with(column, text)
        case "suffix":
            mask = pc.ends_with(column, text)
        case _:
            mask = pc.match_substring(column, text)
    return np.flatnonzero(mask.fill_null(False).to_numpy(zero_copy_only=False))


_MAKERS: dict[int, Callable[[str, list[Head], ConstraintColumns], ValueAnchors]] = {
    _EQUAL: _EqualTexts,
    _PATTERN: _TextAnchors,
    _RANGE: _RangeAnchors,
}
