"""Constraints checked on pairs of an event's row and a constraint, a kind of constraint at a time.

A check serves all constraints of its kind and is asked about many pairs at once, so that the work
follows the pairs and not the constraints registered. A new kind is a new class here and a line in
`_kind` and in `_make_check`.
"""

import math
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from shapely.geometry.base import BaseGeometry

from contrada.arrays import Mask, Positions
from contrada.language import is_satisfied
from contrada.matching.columns import EventBatch, GeometryColumn, OneEvent
from contrada.matching.constraint_columns import ConstraintColumns, Head
from contrada.matching.number_ranges import join_ranges, ranges_of
from contrada.matching.releasing import GeometryOwner
from contrada.matching.row_relations import pairs_related, unpack_shapes
from contrada.model.event import Event
from contrada.model.expression import (
    Attribute,
    Comparison,
    Literal,
    Spatial,
    geometry_attributes,
)
from contrada.model.subscription import Constraint
from contrada.threads import once

AskedEvents = EventBatch | OneEvent


class Check(Protocol):
    """All constraints of one kind, numbered from 0."""

    def holds(self, batch: AskedEvents, rows: Positions, ids: Positions) -> Mask:
        """Decide for each pair whether the row satisfies the constraint."""


class Checks:
    """Every constraint of a table, each served by the check for its kind."""

    def __init__(self, constraints: ConstraintColumns, is_checked: Mask | None = None) -> None:
        """Sort constraints into checks.

        `is_checked` says which will be checked, so far as one can tell; of others, relations never
        are.
        """
        self._is_checked = np.ones(len(constraints), bool) if is_checked is None else is_checked
        kinds: dict[object, list[Head]] = {}
        for head in constraints.heads():
            kind = _kind(head.constraint)
            chosen = _choose(head, self._is_checked) if _is_spatial(kind) else head
            kinds.setdefault(kind, []).append(chosen)
        self._constraints = constraints
        self._kinds = list(kinds.items())
        self._checks: list[Check | None] = [None] * len(kinds)
        self._check_of = np.zeros(len(constraints), np.int64)
        self._id_of = np.zeros(len(constraints), np.int64)
        for number, (_, heads) in enumerate(self._kinds):
            members = np.concatenate([head.numbers for head in heads])
            self._check_of[members] = number
            self._id_of[members] = np.arange(len(members))

    def holds(self, batch: AskedEvents, rows: Positions, constraints: Positions) -> Mask:
        """Decide for each pair of row and constraint whether it is satisfied."""
        result = np.zeros(len(rows), bool)
        checks = self._check_of[constraints]
        for number in np.flatnonzero(np.bincount(checks)):
            at = np.flatnonzero(checks == number)
            ids = self._id_of[constraints[at]]
            result[at] = self._check(int(number)).holds(batch, rows[at], ids)
        return result

    def prepare(self) -> None:
        """Make now the checks that will be needed, and that would take long."""
        for number, (kind, heads) in enumerate(self._kinds):
            is_dear = _is_spatial(kind) or _is_of_ranges(kind)
            if is_dear and any(self._is_checked[head.numbers].any() for head in heads):
                self._check(number)

    def _check(self, number: int) -> Check:
        """Make a check when it is first needed: most anchors never are checked again."""
        check = self._checks[number]
        if check is None:
            check = _make_check(*self._kinds[number], self._constraints)
            self._checks[number] = check
        return check


def describe(constraint: Constraint) -> str:
    """Describe how a constraint is checked on the candidates that the trees leave."""
    match _kind(constraint):
        case ("range", str(name)):
            return f"range of {name}, vectorised"
        case ("spatial", str(name), *_):
            return f"relation of {name}, on the candidates"
        case ("value", str(name)):
            return f"distinct values of {name}"
        case _:
            return "evaluated event by event"


def _kind(constraint: Constraint) -> object:
    match constraint.test:
        case Comparison(_, Attribute(name), Literal(int() | float() as bound)) if (
            not isinstance(bound, bool) and abs(bound) != math.inf
        ):
            return ("range", name)
        case Spatial(relation, Attribute(name), Literal(BaseGeometry())):
            return ("spatial", name, relation.name, constraint.is_negated)
    names = constraint.attributes()
    reads_geometry = next(geometry_attributes(constraint.test), None) is not None
    return ("value", names[0]) if len(names) == 1 and not reads_geometry else "row"


def _make_check(kind: object, heads: list[Head], constraints: ConstraintColumns) -> Check:
    match kind:
        case ("range", str(name)):
            return _RangeCheck(name, heads, constraints)
        case ("spatial", str(name), *_):
            return _SpatialCheck(name, heads, constraints)
        case ("value", str(name)):
            return _ValueCheck(name, _MadeConstraints(heads, constraints))
        case _:
            return _RowCheck(_MadeConstraints(heads, constraints))


def _choose(head: Head, is_chosen: Mask) -> Head:
    at = np.flatnonzero(is_chosen[head.numbers])
    return Head(head.constraint, head.numbers[at], head.operands[at])


class _MadeConstraints:
    """The constraints of one kind, each of which is made when it is first asked."""

    def __init__(self, heads: list[Head], constraints: ConstraintColumns) -> None:
        self._numbers = np.concatenate([head.numbers for head in heads])
        self._constraints = constraints
        self._made: dict[int, Constraint] = {}

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, id_: int) -> Constraint:
        made = self._made.get(id_)
        if made is None:
            made = self._made[id_] = self._constraints[int(self._numbers[id_])]
        return made


class _RowCheck:
    """Whatever else: evaluated row by row."""

    def __init__(self, constraints: _MadeConstraints) -> None:
        self._constraints = constraints

    def holds(self, batch: AskedEvents, rows: Positions, ids: Positions) -> Mask:
        events: dict[int, Event] = {}
        result = np.zeros(len(rows), bool)
        for i, (row, id_) in enumerate(zip(rows.tolist(), ids.tolist(), strict=True)):
            if row not in events:
                events[row] = batch.row(row)
            result[i] = is_satisfied(self._constraints[id_], events[row])
        return result


class _ValueCheck:
    """Constraints on one attribute: evaluated once for each distinct value."""

    def __init__(self, name: str, constraints: _MadeConstraints) -> None:
        self._name = name
        self._constraints = constraints
        self._by_row = _RowCheck(constraints)

    def holds(self, batch: AskedEvents, rows: Positions, ids: Positions) -> Mask:
        codes = batch.codes(self._name)
        if codes is None:
            return self._by_row.holds(batch, rows, ids)
        pairs = (codes.codes[rows] + 1) * len(self._constraints) + ids
        distinct, inverse = np.unique(pairs, return_inverse=True)
        values = [None, *codes.values]
        results = np.zeros(len(distinct), bool)
        for i, pair in enumerate(distinct.tolist()):
            code, id_ = divmod(pair, len(self._constraints))
            results[i] = is_satisfied(self._constraints[id_], Event({self._name: values[code]}))
        return results[inverse]


class _RangeCheck:
    """Comparisons of one attribute with numbers, as closed ranges of int64 and of doubles."""

    def __init__(self, name: str, heads: list[Head], constraints: ConstraintColumns) -> None:
        self._name, self._heads, self._constraints = name, heads, constraints
        self._ranges = join_ranges([ranges_of(head, constraints.pools) for head in heads])

    @once
    def _by_value(self) -> _ValueCheck:
        """Make what numbers do not need."""
        return _ValueCheck(self._name, _MadeConstraints(self._heads, self._constraints))

    def holds(self, batch: AskedEvents, rows: Positions, ids: Positions) -> Mask:
        numbers = batch.numbers(self._name)
        if numbers is None:
            return self._by_value.holds(batch, rows, ids)
        values, is_valid = numbers
        ranges: NDArray[np.int64] | NDArray[np.float64] = (
            self._ranges.whole if values.dtype == np.int64 else self._ranges.real
        )
        low, high = ranges[ids].T
        chosen = values[rows]
        within = (chosen >= low) & (chosen <= high)
        return np.asarray((within ^ self._ranges.is_outside[ids]) & is_valid[rows], bool)


def is_relation(constraint: Constraint) -> bool:
    """Whether a constraint relates an attribute to a geometry."""
    return _is_spatial(_kind(constraint))


def is_range(constraint: Constraint) -> bool:
    """Whether a constraint compares an attribute with a finite number."""
    return _is_of_ranges(_kind(constraint))


def _is_spatial(kind: object) -> bool:
    return isinstance(kind, tuple) and kind[0] == "spatial"


def _is_of_ranges(kind: object) -> bool:
    return isinstance(kind, tuple) and kind[0] == "range"


class _SpatialCheck:
    """One relation of one attribute to literal geometries, positive or negated."""

    def __init__(self, name: str, heads: list[Head], constraints: ConstraintColumns) -> None:
        self._name = name
        first = heads[0].constraint
        assert isinstance(first.test, Spatial)
        self._relation, self._is_negated = first.test.relation, first.is_negated
        numbers = np.concatenate([head.operands[:, 0] for head in heads])
        self._shapes = unpack_shapes(constraints.pools.geometries, numbers)
        self._owner = GeometryOwner(self._shapes.geometries)

    def holds(self, batch: AskedEvents, rows: Positions, ids: Positions) -> Mask:
        column = batch.geometry(self._name)
        if column.leads is not None:
            pairs = np.stack([ids, column.leads[rows]], axis=1)
            distinct, back = np.unique(pairs, axis=0, return_inverse=True)
            return self._are_related(column, distinct[:, 1], distinct[:, 0])[back.reshape(-1)]
        return self._are_related(column, rows, ids)

    def _are_related(self, column: GeometryColumn, rows: Positions, ids: Positions) -> Mask:
        order = np.argsort(ids, kind="stable")
        holds, known = pairs_related(self._relation, column, rows[order], self._shapes, ids[order])
        result = np.zeros(len(rows), bool)
        result[order] = known & (holds ^ self._is_negated)
        return result
