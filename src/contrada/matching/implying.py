"""What one constraint says about another: `covers` (is implied by it), `conflicts` (excludes it).

Constraint i covers j where every event that satisfies j satisfies i, and they conflict where no
event satisfies both (CR-tree paper, section 4.2). Both are decided for events of every kind;
where nothing can be proved, the answer is no.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import combinations
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from shapely.geometry.base import BaseGeometry

from contrada.limits import SIMPLIFIER_PAIRS_MAX, SIMPLIFIER_VERTICES_MAX
from contrada.matching.value_sets import Bits, ValueSet, value_set, write_bits
from contrada.model.calculus import (
    AREA,
    DIMENSION_KINDS,
    base_relations,
    compose,
    conceivable,
    is_decided_by_base,
    matrices_of,
    possible_after,
)
from contrada.model.expression import Attribute, Comparison, In, IsNull, Literal, Spatial
from contrada.model.geometry import are_areas, as_array
from contrada.model.regions import BASES, UNCERTAIN, Allowance, relate_regions
from contrada.model.relation import Family, Relation, SpatialRelation
from contrada.model.subscription import Constraint

Square = NDArray[np.bool_]
SignedRelation = tuple[SpatialRelation, bool]  # a relation, and whether the constraint is negated
_KINDS_MAX = 48  # relations of one attribute beyond this many different ones are left as they are
_CASES_MAX = 1 << 14  # what is remembered: more than the cases of all named relations


class Group:
    """Constraints on one attribute, by place: `covers[i, j]` and `conflicts[i, j]` of all pairs.

    `numbers` are those of the constraints among all of the predicate.
    """

    def __init__(
        self, numbers: Sequence[int], constraints: Sequence[Constraint], allowance: Allowance
    ) -> None:
        """Decide all pairs of the constraints that have these numbers."""
        self.numbers = np.array(numbers, np.int64)
        self._constraints = [constraints[number] for number in numbers]
        self.covers: Square = np.eye(len(numbers), dtype=bool)
        self.conflicts: Square = np.zeros((len(numbers), len(numbers)), bool)
        self._decide_regions(allowance)
        self._decide_values()
        self._decide_presence()

    def _decide_regions(self, allowance: Allowance) -> None:
        places = [i for i, constraint in enumerate(self._constraints) if _is_regional(constraint)]
        if len(places) < 2:
            return
        kinds = list(dict.fromkeys(_spatial_kind(self._constraints[i]) for i in places))
        code_of = {kind: code for code, kind in enumerate(kinds[:_KINDS_MAX])}
        places = [i for i in places if _spatial_kind(self._constraints[i]) in code_of]
        constraints = [self._constraints[i] for i in places]
        bases = relate_regions(as_array([_region(c) for c in constraints]), allowance)
        codes = np.array([code_of[_spatial_kind(c)] for c in constraints])
        # bases[j, i] is the relation of region j to region i.
        shape = (len(code_of), len(code_of), len(BASES) + 1)
        cases = np.ravel_multi_index((codes[:, None], codes[None, :], bases.T), shape)
        covers, conflicts = np.zeros((2, *shape), bool)
        for case in np.unique(cases).tolist():
            i, j, k = (int(number) for number in np.unravel_index(case, shape))
            if k == UNCERTAIN:
                continue
            covers[i, j, k] = does_cover(kinds[i], kinds[j], BASES[k])
            conflicts[i, j, k] = do_conflict(kinds[i], kinds[j], BASES[k])
        at = np.ix_(places, places)
        self.covers[at] |= covers.ravel()[cases]
        self.conflicts[at] |= conflicts.ravel()[cases]

    def _decide_values(self) -> None:
        by_kind: dict[str, list[tuple[int, ValueSet]]] = {}
        for place, constraint in enumerate(self._constraints):
            values = value_set(constraint)
            if values is not None:
                by_kind.setdefault(values.kind, []).append((place, values))
        for sets in by_kind.values():
            bits = write_bits([values for _, values in sets])
            self._compare([place for place, _ in sets], bits)
        for first, second in combinations(by_kind, 2):
            if {first, second} != {"text", "time"}:  # a text may also be a moment
                places = [[place for place, _ in by_kind[kind]] for kind in (first, second)]
                self.conflicts[np.ix_(*places)] = self.conflicts[np.ix_(*places[::-1])] = True

    def _compare(self, places: Sequence[int], bits: Sequence[Bits]) -> None:
        """Decide the pairs of constraints whose values are of one kind."""
        for (i, first), (j, second) in combinations(zip(places, bits, strict=True), 2):
            common = first & second
            if not common:
                self.conflicts[i, j] = self.conflicts[j, i] = True
            if common == first:
                self.covers[j, i] = True
            if common == second:
                self.covers[i, j] = True

    def _decide_presence(self) -> None:
        """A constraint that needs a value excludes IS NULL and implies IS NOT NULL."""
        places = [i for i, c in enumerate(self._constraints) if isinstance(c.test, IsNull)]
        if not places:
            return
        needing = [j for j, c in enumerate(self._constraints) if _needs_value(c)]
        for i in places:
            if self._constraints[i].is_negated:
                self.covers[i, needing] = True
            else:
                self.conflicts[i, needing] = self.conflicts[needing, i] = True


class Implications:
    """What constraints imply about each other: those on one attribute are a group.

    No more than `SIMPLIFIER_PAIRS_MAX` pairs are looked at, those of the smallest groups first,
    and of pairs of regions no more than `SIMPLIFIER_VERTICES_MAX` vertices.
    """

    def __init__(self, constraints: Sequence[Constraint]) -> None:
        """Form the groups, and decide the pairs in them."""
        self._groups: list[Group] = []
        self._place_of: dict[int, tuple[int, int]] = {}  # its group, and the place in that
        by_attribute: dict[str, list[int]] = {}
        for number, constraint in enumerate(constraints):
            name = _attribute(constraint)
            if name is not None:
                by_attribute.setdefault(name, []).append(number)
        pairs_left, allowance = SIMPLIFIER_PAIRS_MAX, Allowance(SIMPLIFIER_VERTICES_MAX)
        for numbers in sorted(by_attribute.values(), key=len):
            chosen = numbers[: isqrt(pairs_left)]
            if len(chosen) > 1:
                pairs_left -= len(chosen) ** 2
                self._place_of |= {n: (len(self._groups), i) for i, n in enumerate(chosen)}
                self._groups.append(Group(chosen, constraints, allowance))

    def divide(self, numbers: Iterable[int]) -> Iterable[tuple[Group, list[int]]]:
        """Sort constraints by group: their places in it. Those in no group are left out."""
        places: dict[int, list[int]] = {}
        for number in numbers:
            if number in self._place_of:
                group, place = self._place_of[number]
                places.setdefault(group, []).append(place)
        return ((self._groups[group], chosen) for group, chosen in places.items())


def _attribute(constraint: Constraint) -> str | None:
    """Name the one attribute whose other constraints may bear on this one."""
    test = constraint.test
    is_presence = isinstance(test, IsNull) and isinstance(test.value, Attribute)
    if not (is_presence or _needs_value(constraint)):
        return None
    names = constraint.attributes()
    return names[0] if len(names) == 1 else None


def _needs_value(constraint: Constraint) -> bool:
    """Whether a constraint on an attribute is unknown where that is null."""
    match constraint.test:
        case Comparison(_, Attribute(), Literal()) | Spatial():
            return True
        case In(Attribute(), choices):
            return len(choices) > 0
    return False


def _is_regional(constraint: Constraint) -> bool:
    test = constraint.test
    if not (isinstance(test, Spatial) and isinstance(test.left, Attribute)):
        return False
    if test.relation.family is Family.PATTERN and set(test.relation.name) & set("012"):
        return False
    if not (isinstance(test.right, Literal) and isinstance(test.right.value, BaseGeometry)):
        return False
    return bool(are_areas(as_array([test.right.value]))[0])


def _region(constraint: Constraint) -> BaseGeometry:
    assert isinstance(constraint.test, Spatial) and isinstance(constraint.test.right, Literal)
    assert isinstance(constraint.test.right.value, BaseGeometry)
    return constraint.test.right.value


def _spatial_kind(constraint: Constraint) -> SignedRelation:
    assert isinstance(constraint.test, Spatial)
    return constraint.test.relation, constraint.is_negated


@lru_cache(maxsize=_CASES_MAX)
def does_cover(first: SignedRelation, second: SignedRelation, base: Relation) -> bool:
    """Whether the second constraint implies the first; `base` relates R2 to R1."""
    return all(possible <= satisfying for possible, satisfying in _by_kind(first, second, base))


@lru_cache(maxsize=_CASES_MAX)
def do_conflict(first: SignedRelation, second: SignedRelation, base: Relation) -> bool:
    """Whether no event satisfies both constraints; `base` relates R2 to R1."""
    return all(not possible & satisfying for possible, satisfying in _by_kind(first, second, base))


def _by_kind(
    first: SignedRelation, second: SignedRelation, base: Relation
) -> Iterator[tuple[frozenset[Any], frozenset[Any]]]:
    """For each kind of event: what the second constraint leaves possible, what the first admits."""
    for kind in DIMENSION_KINDS:
        if kind == AREA and is_decided_by_base(first[0]) and is_decided_by_base(second[0]):
            yield compose(base_relations(*second), base), base_relations(*first)
        else:
            after = (possible_after(m, base) for m in matrices_of(*second, kind))
            possible = frozenset[int]().union(*after) & conceivable(kind)
            yield possible, matrices_of(*first, kind)
