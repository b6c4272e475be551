"""Predicates of one form: a template is made of one of them, and filled with other operands.

A form is one test or an AND of tests, each of an attribute and literals. Other literals change
nothing else in the predicate as long as each is of the same kind and sound for its test, and no
two constraints bear on each other: an attribute has one constraint only, or a lower and an upper
bound that are numbers, the lower less than the upper.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, repeat

import numpy as np
import shapely
from shapely.geometry.base import BaseGeometry

from contrada.arrays import Mask
from contrada.language.operand_columns import NumberColumn, OperandColumn
from contrada.language.skeletons import LiteralKind
from contrada.limits import LIKE_PATTERN_LENGTH_MAX
from contrada.model.expression import (
    And,
    Attribute,
    Between,
    Comparison,
    DistanceWithin,
    Expression,
    Like,
    Literal,
    Spatial,
    Value,
)
from contrada.model.geometry import are_areas
from contrada.model.relation import Family, SpatialRelation
from contrada.model.subscription import Constraint, Filter, Predicate

_BOUNDS = {">": "low", ">=": "low", "<": "high", "<=": "high"}


@dataclass(frozen=True, slots=True)
class Slot:
    """A place for a literal: its kind, and the number of the constraint that takes it."""

    kind: LiteralKind
    constraint: int


@dataclass(frozen=True, slots=True)
class ConstraintForm:
    """A constraint without its operands, which are in the slots of these numbers.

    The operator is one of comparison, `like` or `dwithin`, or a spatial relation. `dwithin` takes
    a geometry and a radius, every other one operand.
    """

    attribute: str
    operator: str | SpatialRelation
    slots: tuple[int, ...]
    is_negated: bool = False


@dataclass(frozen=True, slots=True)
class Template:
    """The tests of a predicate with NULL for every literal, their constraints, and the slots.

    Slots are in the order in which both the tree and the text have the literals. `ranges` are the
    pairs of slots whose numbers are the bounds of one attribute.
    """

    tests: tuple[Expression, ...]
    slots: tuple[Slot, ...]
    constraints: tuple[ConstraintForm, ...]
    ranges: tuple[tuple[int, int], ...]

    def kinds(self) -> tuple[LiteralKind, ...]:
        """List the kinds of its literals."""
        return tuple(slot.kind for slot in self.slots)

    def predicate(self, values: Sequence[Value]) -> Predicate:
        """Make the predicate that has these literals; they are of the slots' kinds, and served."""
        literals = map(Literal, values)
        tests = tuple(_fill(test, literals) for test in self.tests)
        constraints = chain.from_iterable(map(_constraints, tests))
        tree = And(tests) if len(tests) > 1 else tests[0]
        return Predicate(tree, (Filter(tuple(map(Constraint, constraints))),))

    def find_served(self, operands: Sequence[OperandColumn]) -> Mask:
        """Find the rows of operands for which `predicate` is right, if each is sound by itself.

        All others are refused or simplified where they are read alone.
        """
        is_served = np.ones(len(operands[0]), bool)
        for form in self.constraints:
            is_served &= _is_served(form, [operands[slot] for slot in form.slots])
        for low, high in self.ranges:
            is_served &= _is_less(operands[low], operands[high])
        return is_served


def make_template(expression: Expression) -> Template | None:
    """Make a template of the tree of a predicate; None where it is of another form."""
    tests = expression.arguments if isinstance(expression, And) else (expression,)
    slots: list[Slot] = []
    forms: list[ConstraintForm] = []
    for constraint in chain.from_iterable(map(_constraints, tests)):
        found = _take_apart(constraint)
        if found is None:
            return None
        attribute, operator, kinds = found
        numbers = tuple(range(len(slots), len(slots) + len(kinds)))
        slots += (Slot(kind, len(forms)) for kind in kinds)
        forms.append(ConstraintForm(attribute, operator, numbers))
    ranges = _find_ranges(forms, slots)
    if ranges is None:
        return None
    blank = tuple(_fill(test, repeat(Literal(None))) for test in tests)
    return Template(blank, tuple(slots), tuple(forms), ranges)


def _constraints(test: Expression) -> tuple[Expression, ...]:
    """List the tests of the constraints that the normal form makes of one test."""
    if isinstance(test, Between):
        return Comparison(">=", test.value, test.low), Comparison("<=", test.value, test.high)
    return (test,)


def _take_apart(
    test: Expression,
) -> tuple[str, str | SpatialRelation, tuple[LiteralKind, ...]] | None:
    """Return the attribute, the operator and the kinds of the literals of a test."""
    match test:
        case Comparison(operator, Attribute(name), Literal(str())):
            return name, operator, (LiteralKind.TEXT,)
        case Comparison(operator, Attribute(name), Literal(value)) if _is_number(value):
            return name, operator, (LiteralKind.NUMBER,)
        case Like(Attribute(name), Literal(str())):
            return name, "like", (LiteralKind.TEXT,)
        case Spatial(relation, Attribute(name), Literal(BaseGeometry())):
            return name, relation, (LiteralKind.GEOMETRY,)
        case DistanceWithin(Attribute(name), Literal(BaseGeometry()), Literal(radius_m)):
            kinds = LiteralKind.GEOMETRY, LiteralKind.NUMBER
            return (name, "dwithin", kinds) if _is_number(radius_m) else None
    return None


def _is_number(value: Value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _find_ranges(
    forms: Iterable[ConstraintForm], slots: Sequence[Slot]
) -> tuple[tuple[int, int], ...] | None:
    """List the slots of lower and upper bounds; None where constraints may bear on each other."""
    by_attribute: dict[str, list[ConstraintForm]] = {}
    for form in forms:
        by_attribute.setdefault(form.attribute, []).append(form)
    ranges = []
    for several in by_attribute.values():
        if len(several) == 1:
            continue
        bounds = {_BOUNDS.get(str(form.operator)): form.slots[0] for form in several}
        is_range = len(several) == 2 and bounds.keys() == {"low", "high"}
        if not is_range or any(slots[n].kind is not LiteralKind.NUMBER for n in bounds.values()):
            return None
        ranges.append((bounds["low"], bounds["high"]))
    return tuple(ranges)


def _fill(test: Expression, literals: Iterator[Literal]) -> Expression:
    """Make the same test of other literals, which come in the order of the tree."""
    match test:
        case Comparison(operator, attribute, _):
            return Comparison(operator, attribute, next(literals))
        case Between(attribute, _, _):
            return Between(attribute, next(literals), next(literals))
        case Like(attribute, _):
            return Like(attribute, next(literals))
        case Spatial(relation, attribute, _):
            return Spatial(relation, attribute, next(literals))
        case DistanceWithin(attribute, _, _):
            return DistanceWithin(attribute, next(literals), next(literals))
    raise AssertionError(test)


def _is_served(form: ConstraintForm, operands: Sequence[OperandColumn]) -> Mask:
    """Which operands the builder takes for a constraint (`build.py`)."""
    is_served = np.ones(len(operands[0]), bool)
    match operands, form.operator:
        case [np.ndarray() as patterns], "like":
            lengths = np.fromiter(map(len, patterns), np.int64, len(patterns))
            is_served = lengths <= LIKE_PATTERN_LENGTH_MAX
        case [np.ndarray() as shapes], SpatialRelation(family=Family.EGENHOFER):
            is_served = are_areas(shapes)
        case [np.ndarray() as shapes, NumberColumn() as radii_m], "dwithin":
            west, south, east, north = shapely.bounds(shapes).T
            on_globe = (west >= -180) & (east <= 180) & (south >= -90) & (north <= 90)
            is_served = on_globe & (radii_m.real >= 0)
    return is_served


def _is_less(low: OperandColumn, high: OperandColumn) -> Mask:
    """Which numbers are less than others for certain; doubles are compared as they are rounded."""
    assert isinstance(low, NumberColumn)
    assert isinstance(high, NumberColumn)
    both_whole = low.is_whole & high.is_whole
    return np.where(both_whole, low.whole < high.whole, low.real < high.real)
