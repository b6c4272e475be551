"""Predicates of one form: a template is made of one of them, and filled with other operands.

A form is a tree of AND, OR and NOT over tests, each of an attribute and literals. Other literals
change nothing else in the predicate as long as each is of the same kind and sound for its test, and
no two constraints bear on each other: an attribute has one test only in the whole tree, or a lower
and an upper bound that are numbers or moments, the lower less than the upper, under the same AND
and no NOT.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, count, repeat

import numpy as np
import shapely
from shapely.geometry.base import BaseGeometry

from contrada.arrays import Mask
from contrada.language.normal_form import make_predicate
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
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
    Spatial,
    Temporal,
    Value,
)
from contrada.model.geometry import are_areas
from contrada.model.instant import Instant
from contrada.model.relation import Family, SpatialRelation
from contrada.model.subscription import Predicate

_BOUNDS = {">": "low", ">=": "low", "<": "high", "<=": "high"}
_CHOICES_MAX = 16  # of a list: each is compared with all others
_RANGED = ({LiteralKind.NUMBER}, {LiteralKind.MOMENT})


@dataclass(frozen=True, slots=True)
class Slot:
    """A place for a literal: its kind, and the number of the constraint that takes it."""

    kind: LiteralKind
    constraint: int


@dataclass(frozen=True, slots=True)
class ConstraintForm:
    """A constraint without its operands, which are in the slots of these numbers.

    The operator is one of comparison or time, `like`, `in`, `dwithin`, `isnull`, or a spatial
    relation. `in` takes any number of operands, no two of them equal, `dwithin` a geometry and a
    radius, `isnull` nothing, every other one operand. `within` numbers the AND that it belongs to;
    it is -1 where it stands alone, or under an OR or a NOT.
    """

    attribute: str
    operator: str | SpatialRelation
    slots: tuple[int, ...]
    within: int


@dataclass(frozen=True, slots=True)
class Template:
    """The tree of a predicate with NULL for every literal, its constraints, and the slots.

    Slots are in the order in which both the tree and the text have the literals. `ranges` are the
    pairs of slots whose literals are the bounds of one attribute.
    """

    tree: Expression
    slots: tuple[Slot, ...]
    constraints: tuple[ConstraintForm, ...]
    ranges: tuple[tuple[int, int], ...]

    def kinds(self) -> tuple[LiteralKind, ...]:
        """List the kinds of its literals."""
        return tuple(slot.kind for slot in self.slots)

    def predicate(self, values: Sequence[Value]) -> Predicate:
        """Make the predicate that has these literals; they are of the slots' kinds, and served."""
        return make_predicate(_fill(self.tree, map(Literal, values)), sys.maxsize)

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
    slots: list[Slot] = []
    forms: list[ConstraintForm] = []
    for test, within in _list_tests(expression, count()):
        found = _take_apart(test)
        if found is None:
            return None
        attribute, operator, kinds = found
        numbers = tuple(range(len(slots), len(slots) + len(kinds)))
        slots += (Slot(kind, len(forms)) for kind in kinds)
        forms.append(ConstraintForm(attribute, operator, numbers, within))
    ranges = _find_ranges(forms, slots)
    if ranges is None:
        return None
    blank = _fill(expression, repeat(Literal(None)))
    return Template(blank, tuple(slots), tuple(forms), ranges)


def _list_tests(
    node: Expression, numbers: Iterator[int], within: int = -1, *, is_negated: bool = False
) -> Iterator[tuple[Expression, int]]:
    """List the tests of constraints, each with the number of the AND that it belongs to, or -1.

    `numbers` are those that no AND has yet. Under a NOT, an AND does not make its tests hold.
    """
    match node:
        case Not(argument):
            yield from _list_tests(argument, numbers, is_negated=True)
        case And(arguments) | Or(arguments):
            own = next(numbers) if isinstance(node, And) and not is_negated else -1
            for argument in arguments:
                yield from _list_tests(argument, numbers, own, is_negated=is_negated)
        case Between(value, low, high):
            own = -1 if is_negated else next(numbers) if within < 0 else within
            yield Comparison(">=", value, low), own
            yield Comparison("<=", value, high), own
        case _:
            yield node, within


def _take_apart(
    test: Expression,
) -> tuple[str, str | SpatialRelation, tuple[LiteralKind, ...]] | None:
    """Return the attribute, the operator and the kinds of the literals of a test."""
    match test:
        case Comparison(operator, Attribute(name), Literal(str())):
            return name, operator, (LiteralKind.TEXT,)
        case Comparison(operator, Attribute(name), Literal(value)) if _is_number(value):
            return name, operator, (LiteralKind.NUMBER,)
        case Comparison(operator, Attribute(name), Literal(Instant())):
            return name, operator, (LiteralKind.MOMENT,)
        case Temporal(operator, Attribute(name), Literal(Instant())):
            return name, operator, (LiteralKind.MOMENT,)
        case Like(Attribute(name), Literal(str())):
            return name, "like", (LiteralKind.TEXT,)
        case IsNull(Attribute(name)):
            return name, "isnull", ()
        case In(Attribute(name), choices) if len(choices) <= _CHOICES_MAX:
            found = [_find_kind(choice) for choice in choices]
            kinds_known = tuple(kind for kind in found if kind is not None)
            return (name, "in", kinds_known) if len(kinds_known) == len(choices) else None
        case Spatial(relation, Attribute(name), Literal(BaseGeometry())):
            return name, relation, (LiteralKind.GEOMETRY,)
        case DistanceWithin(Attribute(name), Literal(BaseGeometry()), Literal(radius_m)):
            kinds = LiteralKind.GEOMETRY, LiteralKind.NUMBER
            return (name, "dwithin", kinds) if _is_number(radius_m) else None
    return None


def _find_kind(choice: Expression) -> LiteralKind | None:
    """Find the kind of one choice of a list; None where it is not a number, text or moment."""
    match choice:
        case Literal(str()):
            return LiteralKind.TEXT
        case Literal(Instant()):
            return LiteralKind.MOMENT
        case Literal(value) if _is_number(value):
            return LiteralKind.NUMBER
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
        bounds = {_BOUNDS.get(str(form.operator)): form.slots[:1] for form in several}
        is_range = len(several) == 2 and bounds.keys() == {"low", "high"}
        is_range &= several[0].within == several[1].within >= 0
        if not is_range or {slots[n].kind for (n,) in bounds.values()} not in _RANGED:
            return None
        (low,), (high,) = bounds["low"], bounds["high"]
        ranges.append((low, high))
    return tuple(ranges)


def _fill(test: Expression, literals: Iterator[Literal]) -> Expression:
    """Make the same tree of other literals, which come in its order."""
    match test:
        case And(arguments):
            return And(tuple([_fill(argument, literals) for argument in arguments]))
        case Or(arguments):
            return Or(tuple([_fill(argument, literals) for argument in arguments]))
        case Not(argument):
            return Not(_fill(argument, literals))
        case IsNull():
            return test
        case Comparison(operator, attribute, _):
            return Comparison(operator, attribute, next(literals))
        case Between(attribute, _, _):
            return Between(attribute, next(literals), next(literals))
        case Temporal(operator, attribute, _):
            return Temporal(operator, attribute, next(literals))
        case Like(attribute, _):
            return Like(attribute, next(literals))
        case In(attribute, choices):
            return In(attribute, tuple([next(literals) for _ in choices]))
        case Spatial(relation, attribute, _):
            return Spatial(relation, attribute, next(literals))
        case DistanceWithin(attribute, _, _):
            return DistanceWithin(attribute, next(literals), next(literals))
    raise AssertionError(test)


def _is_served(form: ConstraintForm, operands: Sequence[OperandColumn]) -> Mask:
    """Which operands the builder takes for a constraint (`build.py`)."""
    is_served = np.ones(1, bool)
    match operands, form.operator:
        case [np.ndarray() as patterns], "like":
            lengths = np.fromiter(map(len, patterns), np.int64, len(patterns))
            is_served = lengths <= LIKE_PATTERN_LENGTH_MAX
        case [np.ndarray() as shapes], SpatialRelation(family=Family.EGENHOFER):
            is_served = are_areas(shapes)
        case choices, "in":
            for one, other in combinations(choices, 2):
                is_served = is_served & _are_distinct(one, other)
        case [np.ndarray() as shapes, NumberColumn() as radii_m], "dwithin":
            west, south, east, north = shapely.bounds(shapes).T
            on_globe = (west >= -180) & (east <= 180) & (south >= -90) & (north <= 90)
            is_served = on_globe & (radii_m.real >= 0)
    return is_served


def _are_distinct(one: OperandColumn, other: OperandColumn) -> Mask:
    """Which values are certain to differ: a list that has one of them twice is made shorter."""
    if isinstance(one, NumberColumn) and isinstance(other, NumberColumn):
        return np.asarray(one.real != other.real)
    if isinstance(one, NumberColumn) or isinstance(other, NumberColumn):
        return np.ones(len(one), bool)
    return np.asarray(one != other, bool)


def _is_less(low: OperandColumn, high: OperandColumn) -> Mask:
    """Which numbers or moments are less than others for certain; doubles as they are rounded."""
    if not (isinstance(low, NumberColumn) and isinstance(high, NumberColumn)):
        assert isinstance(low, np.ndarray)
        assert isinstance(high, np.ndarray)
        return np.asarray(low < high, bool)
    both_whole = low.is_whole & high.is_whole
    return np.where(both_whole, low.whole < high.whole, low.real < high.real)
