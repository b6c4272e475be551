"""What one event satisfies, counted per filter, and whom it has found so far."""

from dataclasses import dataclass

import numpy as np

from contrada.arrays import Integers, Positions
from contrada.kernels.counting import choose_open, count_filters, find_groups
from contrada.threads import once


@dataclass(frozen=True, slots=True)
class Counted:
    """Constraint c counts for the filters `filters[starts[c] : starts[c + 1]]`; filter f is
    complete with `needed[f]` constraints."""

    starts: Positions
    filters: Positions
    needed: Integers


class Tally:
    """The counts of one event. Filter f belongs to the group of its owner, groups[owner[f]]."""

    def __init__(self, counted: Counted, owner: Positions, groups: Positions) -> None:
        """Start with nothing satisfied."""
        self._counted, self._owner, self._groups = counted, owner, groups
        self._counts = np.zeros(len(counted.needed), np.int64)
        self._is_found = np.zeros(len(groups), bool)  # groups are numbered below their count
        self._found: list[Positions] = []
        self._found_alone: list[int] = []
        self.known: dict[int, bool] = {}

    def add(self, numbers: Positions) -> Positions:
        """Count satisfied constraints, each once; return the filters thus completed."""
        counted = self._counted
        return count_filters(numbers, counted.starts, counted.filters, counted.needed, self._counts)

    def find(self, filters: Positions) -> None:
        """Take filters as satisfied: their groups are found."""
        self._found.append(find_groups(filters, self._owner, self._groups, self._is_found))

    def is_settled(self, filter_: int) -> bool:
        """Whether a filter cannot find anybody new."""
        group = self._groups[self._owner[filter_]]
        return bool(group < 0 or self._is_found[group])

    def find_alone(self, filter_: int) -> None:
        """Take one filter as satisfied that is not settled."""
        owner = self._owner[filter_]
        self._is_found[self._groups[owner]] = True
        self._found_alone.append(int(owner))

    @once
    def _scratch(self) -> tuple[Integers, Integers]:
        return np.zeros(len(self._counts), np.int64), np.zeros(len(self._groups), np.int64)

    def choose(self, open_: Positions, quota: int) -> tuple[Positions, Positions]:
        """Choose open constraints to evaluate now, and those for later; drop the useless ones."""
        counted = self._counted
        return choose_open(
            open_,
            counted.starts,
            counted.filters,
            counted.needed,
            self._counts,
            self._owner,
            self._groups,
            self._is_found,
            quota,
            *self._scratch,
        )

    def found(self) -> Positions:
        """Return an owner of each group that was found."""
        return np.concatenate([*self._found, np.array(self._found_alone, np.int64)])
