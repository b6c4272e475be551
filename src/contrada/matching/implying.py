"""What one constraint says about another: `covers` (is implied by it), `conflicts` (excludes it).

Constraint i covers j where every event that satisfies j satisfies i, and they conflict where no
event satisfies both (CR-tree paper, section 4.2). Both are decided for events of every kind;
where nothing can be proved, the answer is no.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from shapely.geometry.base import BaseGeometry

from contrada.matching.value_sets import ValueSet, value_set
from contrada.model.calculus import (
    AREA,
    KINDS,
    base_relations,
    compose,
    conceivable,
    is_decided_by_base,
    matrices_of,
    possible_after,
)
from contrada.model.expression import Attribute, Comparison, In, IsNull, Literal, Spatial
from contrada.model.geometry import are_areas, as_array
from contrada.model.regions import BASES, UNCERTAIN, relate_regions
from contrada.model.relation import Family, Relation, SpatialRelation
from contrada.model.subscription import Constraint

Square = NDArray[np.bool_]
Kind = tuple[SpatialRelation, bool]  # a relation, and whether the constraint is negated
_VALUES_MAX = 256  # comparisons of one attribute beyond this many are left as they are
_KINDS_MAX = 48  # so are relations of one attribute beyond this many different ones,
_REGIONS_MAX = 1_024  # and its regions
_CASES_MAX = 1 << 14  # what is remembered: more than the cases of all named relations


class Implications:
    """`covers[i, j]` and `conflicts[i, j]` for all pairs of some constraints."""

    def __init__(self, constraints: Sequence[Constraint]) -> None:
        """Decide all pairs, those on one attribute at a time."""
        self._constraints = constraints
        self.covers: Square = np.eye(len(constraints), dtype=bool)
        self.conflicts: Square = np.zeros((len(constraints), len(constraints)), bool)
        by_attribute: dict[str, list[int]] = {}
        for number, constraint in enumerate(constraints):
            names = constraint.attributes()
            if len(names) == 1:
                by_attribute.setdefault(names[0], []).append(number)
        for members in by_attribute.values():
            if len(members) > 1:
                self._decide_regions([m for m in members if _is_regional(constraints[m])])
                self._decide_values(members)
                self._decide_presence(members)

    def _decide_regions(self, members: list[int]) -> None:
        kinds = list(dict.fromkeys(_spatial_kind(self._constraints[m]) for m in members))
        code_of = {kind: code for code, kind in enumerate(kinds[:_KINDS_MAX])}
        members = [m for m in members if _spatial_kind(self._constraints[m]) in code_of]
        members = members[:_REGIONS_MAX]
        if len(members) < 2:
            return
        constraints = [self._constraints[m] for m in members]
        bases = relate_regions(as_array([_region(c) for c in constraints]))
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
        at = np.ix_(members, members)
        self.covers[at] |= covers.ravel()[cases]
        self.conflicts[at] |= conflicts.ravel()[cases]

    def _decide_values(self, members: list[int]) -> None:
        sets: list[tuple[int, ValueSet]] = []
        for member in members:
            values = value_set(self._constraints[member])
            if values is not None:
                sets.append((member, values))
        for i, first in sets[:_VALUES_MAX]:
            for j, second in sets[:_VALUES_MAX]:
                self.covers[i, j] |= second.is_within(first)
                self.conflicts[i, j] |= second.is_apart_from(first)

    def _decide_presence(self, members: list[int]) -> None:
        """A constraint that needs a value excludes IS NULL and implies IS NOT NULL."""
        for i in members:
            test = self._constraints[i].test
            if not (isinstance(test, IsNull) and isinstance(test.value, Attribute)):
                continue
            for j in members:
                if isinstance(self._constraints[j].test, IsNull):
                    continue
                if self._constraints[i].is_negated:
                    self.covers[i, j] |= _needs_value(self._constraints[j])
                elif _needs_value(self._constraints[j]):
                    self.conflicts[i, j] = self.conflicts[j, i] = True


def _needs_value(constraint: Constraint) -> bool:
    """Tell whether a constraint on an attribute is unknown where that is null."""
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


def _spatial_kind(constraint: Constraint) -> Kind:
    assert isinstance(constraint.test, Spatial)
    return constraint.test.relation, constraint.is_negated


@lru_cache(maxsize=_CASES_MAX)
def does_cover(first: Kind, second: Kind, base: Relation) -> bool:
    """Tell whether the second constraint implies the first; `base` relates R2 to R1."""
    return all(possible <= satisfying for possible, satisfying in _by_kind(first, second, base))


@lru_cache(maxsize=_CASES_MAX)
def do_conflict(first: Kind, second: Kind, base: Relation) -> bool:
    """Tell whether no event satisfies both constraints; `base` relates R2 to R1."""
    return all(not possible & satisfying for possible, satisfying in _by_kind(first, second, base))


def _by_kind(
    first: Kind, second: Kind, base: Relation
) -> Iterator[tuple[frozenset[Any], frozenset[Any]]]:
    """For each kind of event: what the second constraint leaves possible, what the first admits."""
    for kind in KINDS:
        if kind == AREA and is_decided_by_base(first[0]) and is_decided_by_base(second[0]):
            yield compose(base_relations(*second), base), base_relations(*first)
        else:
            after = (possible_after(m, base) for m in matrices_of(*second, kind))
            possible = frozenset[int]().union(*after) & conceivable(kind)
            yield possible, matrices_of(*first, kind)
