"""The simplifier: constraints and filters that change no answer are taken out.

After section 4.2 of the CR-tree paper: Rule 1 drops a filter two of whose constraints conflict,
Rule 2 a constraint that another one of its filter implies, Rule 3 a filter that is satisfied only
where another filter of the predicate is.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from contrada.language import constraint_text
from contrada.matching.implying import Implications
from contrada.model.subscription import Constraint, Filter, Predicate


@dataclass(frozen=True, slots=True)
class Removal:
    """Something that the simplifier took out, and why."""

    rule: int
    removed: str
    because: str

    def __str__(self) -> str:
        return f"{self.removed} (rule {self.rule}: {self.because})"


def simplify(predicate: Predicate) -> tuple[Predicate, tuple[Removal, ...]]:
    """Take out of a predicate what changes no answer."""
    if sum(len(filter_.constraints) for filter_ in predicate.filters) < 2:
        return predicate, ()
    constraints = list(dict.fromkeys(c for f in predicate.filters for c in f.constraints))
    number = {constraint: i for i, constraint in enumerate(constraints)}
    implied = Implications(constraints)
    removals: list[Removal] = []
    filters: list[list[int]] = []
    for filter_ in predicate.filters:
        members = [number[constraint] for constraint in filter_.constraints]
        kept = _without_redundant(members, constraints, implied, removals)
        if kept is not None and kept not in filters:
            filters.append(kept)
    chosen = _without_covered(filters, constraints, implied, removals)
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
        first, second = (constraint_text(constraints[members[i]]) for i in conflict[0])
        text = " AND ".join(constraint_text(constraints[m]) for m in members)
        removals.append(Removal(1, f"filter {text}", f"{first} conflicts with {second}"))
        return None
    kept = list(members)
    for member in members:
        rest = [other for other in kept if other != member]
        reason = next((other for other in rest if implied.covers[member, other]), None)
        if reason is not None:
            kept = rest
            removals.append(
                Removal(
                    2,
                    constraint_text(constraints[member]),
                    f"{constraint_text(constraints[reason])} implies it",
                )
            )
    return kept


def _without_covered(
    filters: list[list[int]],
    constraints: list[Constraint],
    implied: Implications,
    removals: list[Removal],
) -> list[list[int]]:
    """Apply Rule 3: drop the filters that imply another one; of equivalent ones keep the first."""
    if len(filters) < 2:
        return filters
    implies = _implies(filters, implied.covers)
    kept = np.ones(len(filters), bool)
    for i in range(len(filters)):
        others = np.flatnonzero(implies[i] & kept)
        others = others[others != i]
        if not others.size:
            continue
        kept[i] = False
        texts = [
            " AND ".join(constraint_text(constraints[m]) for m in filters[f]) or "TRUE"
            for f in (i, int(others[0]))
        ]
        removals.append(Removal(3, f"filter {texts[0]}", f"it implies {texts[1]}"))
    return [members for members, is_kept in zip(filters, kept, strict=True) if is_kept]


def _implies(filters: list[list[int]], covers: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Tell for each pair of filters i, h whether each constraint of h is implied by one of i."""
    implied_by = np.zeros((len(filters), len(covers)), bool)
    for i, members in enumerate(filters):
        implied_by[i] = covers[:, members].any(axis=1) if members else False
    return np.stack([implied_by[:, members].all(axis=1) for members in filters], axis=1)
