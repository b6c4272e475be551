"""Indexes of constraints, by kind: which of the registered constraints does an event satisfy?

Each index takes the constraints that it can serve and answers with the numbers of those that an
event satisfies, at a cost that follows the answer. A new type or operator is a new module here
and a line in `INDEXES`.
"""

from collections.abc import Callable, Collection
from typing import Protocol

from contrada.arrays import Positions
from contrada.matching.indexes.cr_tree import CRTree
from contrada.matching.indexes.difference import DifferenceIndex
from contrada.matching.indexes.equality import EqualityIndex
from contrada.matching.indexes.patterns import PatternIndex
from contrada.matching.indexes.presence import PresenceIndex
from contrada.matching.indexes.ranges import RangeIndex
from contrada.model.event import Event
from contrada.model.subscription import Constraint


class ConstraintIndex(Protocol):
    """Constraints of one kind, by number; `words` name it for the attribute in their braces."""

    words: str

    def take(self, number: int, constraint: Constraint) -> bool:
        """Take a constraint in, if it is of this kind."""

    def freeze(self) -> None:
        """Make ready for events: no constraint will be taken after this."""

    def satisfied(self, event: Event) -> list[Positions]:
        """Find the numbers of the constraints that an event satisfies, each once."""


class SpatialIndex(Protocol):
    """Spatial constraints, by number, and the one evaluator that decides all of them."""

    def take(self, number: int, constraint: Constraint) -> bool:
        """Take a constraint in, if it is one that an index can find."""

    def freeze(self) -> None:
        """Make ready for events: no constraint will be taken after this."""

    def survey(self, event: Event) -> tuple[list[Positions], Positions]:
        """Find the constraints that an event satisfies for sure, and those to look at."""

    def place(self, event: Event, numbers: Positions) -> tuple[Positions, Positions]:
        """Decide cheaply what can be; give the constraints that hold, and the open ones."""

    def decide(self, event: Event, numbers: Positions) -> Positions:
        """Evaluate open constraints; give those that the event satisfies."""

    def is_satisfied(self, number: int, constraint: Constraint, event: Event) -> bool:
        """Decide a constraint of any kind that was not taken, as if it had been."""

    def without(self, numbers: Collection[int]) -> "SpatialIndex":
        """Make an index that need not find some constraints; this one stays as it is."""

    def describe(self, constraint: Constraint) -> str | None:
        """Name what finds a constraint; None where it would not be taken."""

    def trees(self) -> dict[str, CRTree]:
        """Return the CR-tree of each attribute that has one."""

    def stats(self) -> dict[str, int]:
        """Count what the index holds."""


INDEXES: tuple[Callable[[], ConstraintIndex], ...] = (
    EqualityIndex,
    RangeIndex,
    DifferenceIndex,
    PatternIndex,
    PresenceIndex,
)
