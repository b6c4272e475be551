"""Indexes of constraints, by kind: which of the registered constraints does an event satisfy?

Each index takes the constraints that it can serve and answers with the numbers of those that an
event satisfies, at a cost that follows the answer. A new type or operator is a new module here
and a line in `INDEXES`.
"""

from collections.abc import Callable
from typing import Protocol

from contrada.matching.indexes.difference import DifferenceIndex
from contrada.matching.indexes.equality import EqualityIndex
from contrada.matching.indexes.patterns import PatternIndex
from contrada.matching.indexes.presence import PresenceIndex
from contrada.matching.indexes.ranges import RangeIndex
from contrada.matching.table import Ids
from contrada.model.event import Event
from contrada.model.subscription import Constraint


class ConstraintIndex(Protocol):
    """Constraints of one kind, by number."""

    def take(self, number: int, constraint: Constraint) -> bool:
        """Take a constraint in, if it is of this kind."""

    def freeze(self) -> None:
        """Make ready for events: no constraint will be taken after this."""

    def satisfied(self, event: Event) -> list[Ids]:
        """Give the numbers of the constraints that an event satisfies, each once."""


INDEXES: tuple[Callable[[], ConstraintIndex], ...] = (
    EqualityIndex,
    RangeIndex,
    DifferenceIndex,
    PatternIndex,
    PresenceIndex,
)
