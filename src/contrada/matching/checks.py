"""Constraints checked on pairs of an event's row and a constraint, a kind of constraint at a time.

A check serves all constraints of its kind and is asked about many pairs at once, so that the work
follows the pairs and not the constraints registered. A new kind is a new class here and a line in
`_kind` and in `_make_check`.
"""

import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from shapely.geometry.base import BaseGeometry

from contrada.arrays import Mask, Positions
from contrada.language import is_satisfied
from contrada.matching.columns import EventBatch, OneEvent
from contrada.matching.row_relations import make_shapes, pairs_related
from contrada.model.event import Event
from contrada.model.expression import (
    Attribute,
    Comparison,
    Literal,
    Spatial,
    geometry_attributes,
)
from contrada.model.geometry import as_array
from contrada.model.subscription import Constraint

_INT_MIN, _INT_MAX = -(2**63), 2**63 - 1


AskedEvents = EventBatch | OneEvent


class Check(Protocol):
    """All constraints of one kind, numbered from 0."""

    def holds(self, batch: AskedEvents, rows: Positions, ids: Positions) -> Mask:
        """Decide for each pair whether the row satisfies the constraint."""


class Checks:
    """Every constraint of a table, each served by the check for its kind."""

    def __init__(self, constraints: Sequence[Constraint]) -> None:
        """Sort constraints into checks."""
        kinds: dict[object, list[int]] = {}
        for number, constraint in enumerate(constraints):
            kinds.setdefault(_kind(constraint), []).append(number)
        self._constraints = constraints
        self._kinds = list(kinds.items())
        self._checks: list[Check | None] = [None] * len(kinds)
        self._check_of = np.zeros(len(constraints), np.int64)
        self._id_of = np.zeros(len(constraints), np.int64)
        for number, (_, members) in enumerate(self._kinds):
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

    def _check(self, number: int) -> Check:
        """Make a check when it is first needed: most anchors never are checked again."""
        check = self._checks[number]
        if check is None:
            kind, members = self._kinds[number]
            check = _make_check(kind, [self._constraints[m] for m in members])
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


def _make_check(kind: object, constraints: list[Constraint]) -> Check:
    match kind:
        case ("range", str(name)):
            return _RangeCheck(name, constraints)
        case ("spatial", str(name), _, bool(is_negated)):
            return _SpatialCheck(name, is_negated, constraints)
        case ("value", str(name)):
            return _ValueCheck(name, constraints)
        case _:
            return _RowCheck(constraints)


class _RowCheck:
    """Whatever else: evaluated row by row."""

    def __init__(self, constraints: list[Constraint]) -> None:
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

    def __init__(self, name: str, constraints: list[Constraint]) -> None:
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

    def __init__(self, name: str, constraints: list[Constraint]) -> None:
        self._name = name
        self._by_value = _ValueCheck(name, constraints)
        bounds = [range_of(constraint) for constraint in constraints]
        self._outside = np.array([b[0] for b in bounds])
        self._whole = np.array([b[1] for b in bounds], np.int64).reshape(-1, 2)
        self._real = np.array([b[2] for b in bounds], np.float64).reshape(-1, 2)

    def holds(self, batch: AskedEvents, rows: Positions, ids: Positions) -> Mask:
        numbers = batch.numbers(self._name)
        if numbers is None:
            return self._by_value.holds(batch, rows, ids)
        values, is_valid = numbers
        ranges: NDArray[np.int64] | NDArray[np.float64] = (
            self._whole if values.dtype == np.int64 else self._real
        )
        low, high = ranges[ids].T
        chosen = values[rows]
        within = (chosen >= low) & (chosen <= high)
        return np.asarray((within ^ self._outside[ids]) & is_valid[rows], bool)


def is_relation(constraint: Constraint) -> bool:
    """Whether a constraint relates an attribute to a geometry."""
    kind = _kind(constraint)
    return isinstance(kind, tuple) and kind[0] == "spatial"


def is_range(constraint: Constraint) -> bool:
    """Whether a constraint compares an attribute with a finite number."""
    kind = _kind(constraint)
    return isinstance(kind, tuple) and kind[0] == "range"


def range_of(constraint: Constraint) -> tuple[bool, tuple[int, int], tuple[float, float]]:
    """Write `value op bound` as (is the range excluded, range of int64, range of doubles)."""
    test = constraint.test
    assert isinstance(test, Comparison) and isinstance(test.right, Literal)
    bound = test.right.value
    assert isinstance(bound, int | float) and not constraint.is_negated
    operator = "=" if test.operator == "<>" else test.operator
    whole, real = _whole_range(operator, bound), _real_range(operator, bound)
    return test.operator == "<>", whole, real


def _whole_range(operator: str, bound: int | float) -> tuple[int, int]:
    floor, ceiling = math.floor(bound), math.ceil(bound)
    low, high = {
        "<": (_INT_MIN, ceiling - 1),
        "<=": (_INT_MIN, floor),
        ">": (floor + 1, _INT_MAX),
        ">=": (ceiling, _INT_MAX),
        "=": (ceiling, floor),
    }[operator]
    if low > high or low > _INT_MAX or high < _INT_MIN:
        return 1, 0
    return max(low, _INT_MIN), min(high, _INT_MAX)


def _real_range(operator: str, bound: int | float) -> tuple[float, float]:
    below, above = _nearest_doubles(bound)
    is_exact = below == above
    return {
        "<": (-math.inf, math.nextafter(below, -math.inf) if is_exact else below),
        "<=": (-math.inf, below),
        ">": (math.nextafter(above, math.inf) if is_exact else above, math.inf),
        ">=": (above, math.inf),
        "=": (above, below),
    }[operator]


def _nearest_doubles(bound: int | float) -> tuple[float, float]:
    """Return the greatest double that is not above a number, and the least not below it."""
    try:
        near = float(bound)
    except OverflowError:
        huge = 1.7976931348623157e308
        return (huge, math.inf) if bound > 0 else (-math.inf, -huge)
    if near == bound:
        return near, near
    if near < bound:
        return near, math.nextafter(near, math.inf)
    return math.nextafter(near, -math.inf), near


class _SpatialCheck:
    """One relation of one attribute to literal geometries, positive or negated."""

    def __init__(self, name: str, is_negated: bool, constraints: list[Constraint]) -> None:
        self._name = name
        self._is_negated = is_negated
        tests = [constraint.test for constraint in constraints]
        sides = [test.right for test in tests if isinstance(test, Spatial)]
        values = [side.value for side in sides if isinstance(side, Literal)]
        self._shapes = make_shapes(as_array([v for v in values if isinstance(v, BaseGeometry)]))
        assert isinstance(tests[0], Spatial)
        self._relation = tests[0].relation

    def holds(self, batch: AskedEvents, rows: Positions, ids: Positions) -> Mask:
        column = batch.geometry(self._name)
        order = np.argsort(ids, kind="stable")
        holds, known = pairs_related(self._relation, column, rows[order], self._shapes, ids[order])
        result = np.zeros(len(rows), bool)
        result[order] = known & (holds ^ self._is_negated)
        return result
