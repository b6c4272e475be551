"""The simplifier: constraints and filters that change no answer are taken out.

After section 4.2 of the CR-tree paper: Rule 1 drops a filter two of whose constraints conflict,
Rule 2 a constraint that another one of its filter implies, Rule 3 a filter that is satisfied only
where another filter of the predicate is. What indexes find is never dropped in favour of what they
do not find: of equivalent constraints, and of equivalent filters, the one best found stays.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from itertools import chain
from math import inf

import numpy as np
from numpy.typing import NDArray

from contrada.arrays import Positions
from contrada.language import constraint_text
from contrada.matching.engine import Effort
from contrada.matching.implying import Implications
from contrada.matching.value_sets import ValueSet, value_set
from contrada.model.expression import Attribute, Comparison, Literal
from contrada.model.subscription import Constraint, Filter, Predicate

_TEXT_MAX = 80


class Rule(Enum):
    """The rules of the paper, as what they say of the thing that they take out."""

    CONFLICT = "two of its constraints exclude each other"
    IMPLIED = "another constraint implies it"
    COVERED = "it implies another filter"


@dataclass(frozen=True, slots=True)
class Removal:
    """A constraint or a filter that the simplifier took out, and because of what.

    Both are given by their constraints, and written only where somebody asks.
    """

    rule: Rule
    taken: tuple[Constraint, ...]
    reason: tuple[Constraint, ...]

    @property
    def removed(self) -> str:
        """Write what was taken out."""
        return _write(self.taken)

    @property
    def because(self) -> str:
        """Write what made it superfluous."""
        return _write(self.reason, " and " if self.rule is Rule.CONFLICT else " AND ")

    def __str__(self) -> str:
        return f"{self.removed} ({self.rule.value}: {self.because})"


def simplify(predicate: Predicate, effort: Effort) -> tuple[Predicate, tuple[Removal, ...]]:
    """Take out of a predicate what changes no answer; the less effort, the sooner it stays."""
    if sum(len(filter_.constraints) for filter_ in predicate.filters) < 2:
        return predicate, ()
    removals: list[Removal] = []
    number: dict[Constraint, int] = {}
    numbered = [
        [number.setdefault(c, len(number)) for c in _without_weaker(filter_.constraints, removals)]
        for filter_ in predicate.filters
    ]
    terms = _Terms(list(number), removals, effort)
    filters: dict[tuple[int, ...], None] = {}
    for filter_, members in zip(predicate.filters, numbered, strict=True):
        kept = terms.without_redundant(filter_, members)
        if kept is not None:
            filters[tuple(kept)] = None
    chosen = terms.without_covered(list(filters))
    simplified = tuple(Filter(terms.pick(members)) for members in chosen)
    return replace(predicate, filters=simplified), tuple(removals)


def _without_weaker(
    constraints: tuple[Constraint, ...], removals: list[Removal]
) -> Iterable[Constraint]:
    """Apply Rule 2 to the bounds of one filter: of those on one side, the strictest stays.

    Bounds are not compared in pairs, so that there may be very many.
    """
    sides: dict[tuple[str, str], list[Constraint]] = {}
    for constraint in constraints:
        match constraint.test:
            case Comparison("<" | "<=" | ">" | ">=" as operator, Attribute(name), Literal()):
                sides.setdefault((name, operator[0]), []).append(constraint)
    weaker = [pair for bounds in sides.values() if len(bounds) > 1 for pair in _weaker(bounds)]
    removals += (Removal(Rule.IMPLIED, (bound,), (reason,)) for bound, reason in weaker)
    taken = {id(bound) for bound, _ in weaker}
    return [constraint for constraint in constraints if id(constraint) not in taken]


def _weaker(bounds: list[Constraint]) -> Iterator[tuple[Constraint, Constraint]]:
    """List bounds of one attribute on one side, each with one that is stricter."""
    strictest: dict[str, tuple[Constraint, ValueSet]] = {}
    for bound in bounds:
        values = value_set(bound)
        if values is None:
            continue
        best, least = strictest.setdefault(values.kind, (bound, values))
        if best is bound:
            continue
        if values.is_stricter(least):
            strictest[values.kind] = bound, values
            yield best, bound
        else:
            yield bound, best


class _Terms:
    """The distinct constraints of a predicate, by number, and what they say about each other."""

    def __init__(
        self, constraints: list[Constraint], removals: list[Removal], effort: Effort
    ) -> None:
        """Compare the constraints; removals are added to a list."""
        self._effort_of = effort
        self._constraints = constraints
        self._removals = removals
        self._implied = Implications(constraints)
        self._efforts: dict[int, int] = {}

    def pick(self, members: Iterable[int]) -> tuple[Constraint, ...]:
        """The constraints of some numbers."""
        return tuple(self._constraints[member] for member in members)

    def without_redundant(self, filter_: Filter, members: list[int]) -> list[int] | None:
        """Apply Rules 1 and 2 to one filter; None where it can never be satisfied."""
        redundant: set[int] = set()
        for group, places in self._implied.divide(members):
            if len(places) < 2:
                continue
            at = np.ix_(places, places)
            numbers = group.numbers[places].tolist()
            conflict = np.argwhere(group.conflicts[at])
            if len(conflict):
                pair = self.pick(numbers[i] for i in sorted(conflict[0]))
                self._removals.append(Removal(Rule.CONFLICT, filter_.constraints, pair))
                return None
            redundant |= self._find_redundant(numbers, group.covers[at])
        return [member for member in members if member not in redundant]

    def _find_redundant(self, numbers: list[int], covers: NDArray[np.bool_]) -> set[int]:
        """Apply Rule 2 to the constraints of one filter that are in one group."""
        if covers.sum() == len(numbers):
            return set()  # each implies itself alone
        effort = np.array([self._effort(number) for number in numbers])
        kept = np.ones(len(numbers), bool)
        for i in np.argsort(-effort, kind="stable").tolist():
            reasons = covers[i] & kept & (effort <= effort[i])
            reasons[i] = False
            if reasons.any():
                kept[i] = False
                pair = self.pick((numbers[i], numbers[int(reasons.argmax())]))
                self._removals.append(Removal(Rule.IMPLIED, pair[:1], pair[1:]))
        return {numbers[i] for i in np.flatnonzero(~kept)}

    def without_covered(self, filters: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
        """Apply Rule 3: drop the filters that imply another one."""
        if len(filters) < 2:
            return filters
        implied = self._find_implied(filters)
        kept = np.ones(len(filters), bool)
        effort = {
            i: min(map(self._effort, filters[i]), default=inf)
            for i in range(len(filters))
            if len(implied[i]) > 1
        }
        for i in sorted(effort, key=lambda i: -effort[i]):
            others = [other for other in implied[i].tolist() if other != i and kept[other]]
            if others:
                kept[i] = False
                both = self.pick(filters[i]), self.pick(filters[others[0]])
                self._removals.append(Removal(Rule.COVERED, *both))
        return [members for members, is_kept in zip(filters, kept, strict=True) if is_kept]

    def _find_implied(self, filters: list[tuple[int, ...]]) -> list[Positions]:
        """List for each filter those whose constraints are each implied by one of its own."""
        sizes = np.array([len(members) for members in filters])
        ends = np.cumsum(sizes)
        every = np.array(list(chain.from_iterable(filters)), np.int64)
        found = []
        for members in filters:
            is_implied = np.zeros(len(self._constraints), bool)
            is_implied[list(members)] = True
            for group, places in self._implied.divide(members):
                is_implied[group.numbers] |= group.covers[:, places].any(axis=1)
            counts = np.concatenate([[0], np.cumsum(is_implied[every])])
            found.append(np.flatnonzero(counts[ends] - counts[ends - sizes] == sizes))
        return found

    def _effort(self, number: int) -> int:
        if number not in self._efforts:
            self._efforts[number] = self._effort_of(self._constraints[number])
        return self._efforts[number]


def _write(constraints: tuple[Constraint, ...], join: str = " AND ") -> str:
    """Write a filter as a text for people."""
    return join.join(map(_shorten, constraints)) or "TRUE"


def _shorten(constraint: Constraint) -> str:
    """Write a constraint, cut to a readable length."""
    text = constraint_text(constraint)
    return text if len(text) <= _TEXT_MAX else f"{text[: _TEXT_MAX - 1]}…"
