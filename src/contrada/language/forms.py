"""Predicates of one form: a template is made of one of them, and filled with other operands.

A form is a tree of AND, OR and NOT over tests, each of an attribute and literals. Other literals
change nothing else in the predicate as long as each is of the same kind and sound for its test, and
no two constraints bear on each other. Those on two attributes never do; of two on one attribute
none may imply the other, nor exclude it where both must hold. For bounds, equal values and patterns
this is seen from the operators or by comparing the literals; other pairs have no template.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, repeat

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
_NEGATED_BOUNDS = {">": "high", ">=": "high", "<": "low", "<=": "low", "<>": "="}
_CHOICES_MAX = 16  # of a list, and tests of one attribute: each is compared with all others
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
    radius, `isnull` nothing, every other one operand.
    """

    attribute: str
    operator: str | SpatialRelation
    slots: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Template:
    """The tree of a predicate with NULL for every literal, its constraints, and the slots.

    Slots are in the order in which both the tree and the text have the literals. `ascending` are
    pairs of slots of which the first must have the lesser literal, in those of `different` the two
    must differ.
    """

    tree: Expression
    slots: tuple[Slot, ...]
    constraints: tuple[ConstraintForm, ...]
    ascending: tuple[tuple[int, int], ...]
    different: tuple[tuple[int, int], ...]

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
        for low, high in self.ascending:
            is_served &= _is_less(operands[low], operands[high])
        for one, other in self.different:
            is_served &= _are_distinct(operands[one], operands[other])
        return is_served


def make_template(expression: Expression) -> Template | None:
    """Make a template of the tree of a predicate; None where it is of another form."""
    slots: list[Slot] = []
    tests: list[_PlacedForm] = []
    for test, branches, is_negated in _list_tests(expression, (), is_negated=False):
        found = _take_apart(test)
        if found is None:
            return None
        attribute, operator, kinds = found
        numbers = tuple(range(len(slots), len(slots) + len(kinds)))
        slots += (Slot(kind, len(tests)) for kind in kinds)
        form = ConstraintForm(attribute, operator, numbers)
        tests.append(_PlacedForm(form, kinds, branches, is_negated))
    pairs = _Pairs()
    if not pairs.add_all(tests):
        return None
    return Template(
        _fill(expression, repeat(Literal(None))),
        tuple(slots),
        tuple(test.form for test in tests),
        tuple(pairs.ascending),
        tuple(pairs.different),
    )


_Branch = tuple[bool, int]  # of a node: whether all of its branches must hold, and which one it is


@dataclass(frozen=True, slots=True)
class _PlacedForm:
    """A constraint, the branches that lead to it from the root, and whether it is negated."""

    form: ConstraintForm
    kinds: tuple[LiteralKind, ...]
    branches: tuple[_Branch, ...]
    is_negated: bool

    def bound(self) -> str:
        """What it leaves of the values: those above its operand (`low`), below it, or it alone.

        Of other tests it is the operator.
        """
        operator = str(self.form.operator)
        if self.is_negated:
            return _NEGATED_BOUNDS.get(operator, f"not {operator}")
        return _BOUNDS.get(operator, operator)

    def is_joined(self, other: "_PlacedForm") -> bool:
        """Whether both must hold in some filter: the last node above both is a conjunction."""
        for (must_all, own), (_, others) in zip(self.branches, other.branches, strict=False):
            if own != others:
                return must_all
        raise AssertionError("tests are leaves")


class _Pairs:
    """What must hold of the literals of two constraints that neither bears on the other."""

    def __init__(self) -> None:
        self.ascending: list[tuple[int, int]] = []
        self.different: list[tuple[int, int]] = []

    def add_all(self, tests: Iterable[_PlacedForm]) -> bool:
        """Add all pairs; False where two constraints may bear on each other nevertheless."""
        by_attribute: dict[str, list[_PlacedForm]] = {}
        for test in tests:
            by_attribute.setdefault(test.form.attribute, []).append(test)
        return all(
            len(several) <= _CHOICES_MAX
            and all(self._add(one, other) for one, other in combinations(several, 2))
            for several in by_attribute.values()
        )

    def _add(self, one: _PlacedForm, other: _PlacedForm) -> bool:
        """Add what a pair needs; False where nothing would be enough."""
        slot_of = {test.bound(): test.form.slots[0] for test in (one, other) if test.form.slots}
        are_ordered = {*one.kinds, *other.kinds} in _RANGED
        is_joined = one.is_joined(other)
        match sorted((one.bound(), other.bound())):
            case ["=", "="] if not is_joined:
                self.different.append((one.form.slots[0], other.form.slots[0]))
            case ["like" | "not like", "like" | "not like"]:
                self.different.append((one.form.slots[0], other.form.slots[0]))
            case ["high", "low"] if are_ordered and is_joined:
                self.ascending.append((slot_of["low"], slot_of["high"]))
            case ["high", "low"]:
                return are_ordered
            case ["=", "low"] if are_ordered and not is_joined:
                self.ascending.append((slot_of["="], slot_of["low"]))
            case ["=", "high"] if are_ordered and not is_joined:
                self.ascending.append((slot_of["high"], slot_of["="]))
            case ["=" | "high", "isnull"] | ["isnull", "low"]:
                return not is_joined
            case ["=" | "<>" | "high", "like" | "not like"] | ["like", "low"] | ["low", "not like"]:
                return True
            case _:
                return False
        return True


def _list_tests(
    node: Expression, branches: tuple[_Branch, ...], *, is_negated: bool
) -> Iterator[tuple[Expression, tuple[_Branch, ...], bool]]:
    """List the tests of constraints, each with the branches to it and whether it is negated."""
    match node:
        case Not(argument):
            yield from _list_tests(argument, branches, is_negated=not is_negated)
        case And(arguments) | Or(arguments):
            must_all = isinstance(node, And) != is_negated
            for place, argument in enumerate(arguments):
                below = (*branches, (must_all, place))
                yield from _list_tests(argument, below, is_negated=is_negated)
        case Between(value, low, high):
            both = And((Comparison(">=", value, low), Comparison("<=", value, high)))
            yield from _list_tests(both, branches, is_negated=is_negated)
        case _:
            yield node, branches, is_negated


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
