"""The simplifier: constraints and filters that change no answer are taken out.

After section 4.2 of the CR-tree paper: Rule 1 drops a filter two of whose constraints conflict,
Rule 2 a constraint that another one of its filter implies, Rule 3 a filter that is satisfied only
where another filter of the predicate is. What indexes find is never dropped in favour of what they
do not find: of equivalent constraints, and of equivalent filters, the one best found stays.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from contrada.language import constraint_text
from contrada.matching.forwarding import is_selective
from contrada.matching.implying import Implications
from contrada.matching.strtree import is_anchor
from contrada.model.subscription import Constraint, Filter, Predicate

_EFFORT_MAX = 2
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


def simplify(predicate: Predicate) -> tuple[Predicate, tuple[Removal, ...]]:
    """Take out of a predicate what changes no answer."""
    if sum(len(filter_.constraints) for filter_ in predicate.filters) < 2:
        return predicate, ()
    constraints = list(dict.fromkeys(c for f in predicate.filters for c in f.constraints))
    number = {constraint: i for i, constraint in enumerate(constraints)}
    implied = Implications(constraints)
    removals: list[Removal] = []
    filters: dict[tuple[int, ...], None] = {}
    for filter_ in predicate.filters:
        members = [number[constraint] for constraint in filter_.constraints]
        kept = _without_redundant(members, constraints, implied, removals)
        if kept is not None:
            filters[tuple(kept)] = None
    chosen = _without_covered(list(map(list, filters)), constraints, implied, removals)
    simplified = tuple(Filter(tuple(constraints[i] for i in members)) for members in chosen)
    return replace(predicate, filters=simplified), tuple(removals)


def _without_redundant(
    members: list[int],
    constraints: list[Constraint],
    implied: Implications,
    removals: list[Removal],
) -> list[int] | None:
    """Apply Rules 1 and 2 to one filter; None where it can never be satisfied."""
    at = np.ix_(members, members)
    conflict = np.argwhere(implied.conflicts[at])
    if len(conflict):
        pair = [members[i] for i in sorted(conflict[0])]
        removals.append(Removal(Rule.CONFLICT, *(_pick(constraints, m) for m in (members, pair))))
        return None
    kept = list(members)
    if implied.covers[at].sum() == len(members):
        return kept  # each implies itself alone
    effort = {member: _effort_of(constraints[member]) for member in members}
    for member in sorted(members, key=lambda m: -effort[m]):
        better = (m for m in kept if m != member and effort[m] <= effort[member])
        reason = next((other for other in better if implied.covers[member, other]), None)
        if reason is not None:
            kept.remove(member)
            removals.append(Removal(Rule.IMPLIED, (constraints[member],), (constraints[reason],)))
    return kept


def _without_covered(
    filters: list[list[int]],
    constraints: list[Constraint],
    implied: Implications,
    removals: list[Removal],
) -> list[list[int]]:
    """Apply Rule 3: drop the filters that imply another one."""
    if len(filters) < 2:
        return filters
    implies = _implies(filters, implied.covers)
    kept = np.ones(len(filters), bool)
    is_covered = implies.sum(axis=1) > 1
    effort = {
        int(i): min((_effort_of(constraints[m]) for m in filters[i]), default=_EFFORT_MAX)
        for i in np.flatnonzero(is_covered)
    }
    for i in sorted(effort, key=lambda i: -effort[i]):
        others = np.flatnonzero(implies[i] & kept)
        others = others[others != i]
        if not others.size:
            continue
        kept[i] = False
        both = (_pick(constraints, filters[f]) for f in (i, int(others[0])))
        removals.append(Removal(Rule.COVERED, *both))
    return [members for members, is_kept in zip(filters, kept, strict=True) if is_kept]


def _pick(constraints: Sequence[Constraint], members: Sequence[int]) -> tuple[Constraint, ...]:
    return tuple(constraints[member] for member in members)


def _write(constraints: tuple[Constraint, ...], join: str = " AND ") -> str:
    """Write a filter as a text for people."""
    return join.join(map(_shorten, constraints)) or "TRUE"


def _shorten(constraint: Constraint) -> str:
    """Write a constraint, cut to a readable length."""
    text = constraint_text(constraint)
    return text if len(text) <= _TEXT_MAX else f"{text[: _TEXT_MAX - 1]}…"


def _effort_of(constraint: Constraint) -> int:
    """Rank a constraint: every engine's index finds it, only some do, or none finds few events."""
    if is_anchor(constraint):
        return 0
    return 1 if is_selective(constraint) else _EFFORT_MAX


def _implies(filters: list[list[int]], covers: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Tell for each pair of filters i, h whether each constraint of h is implied by one of i."""
    implied_by = np.zeros((len(filters), len(covers)), bool)
    for i, members in enumerate(filters):
        implied_by[i] = covers[:, members].any(axis=1) if members else False
    return np.stack([implied_by[:, members].all(axis=1) for members in filters], axis=1)
