"""What an engine is: a way to index a fixed set of subscriptions and ask it about events."""

from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from contrada.arrays import Geometries, Positions
from contrada.matching.columns import EventBatch
from contrada.model.event import Event
from contrada.model.geometry import Fault
from contrada.model.subscription import Subscription


class Index(Protocol):
    """Subscriptions by position, ready to be matched. It never changes after it is made."""

    def find(self, event: Event, groups: Positions) -> Positions:
        """Find a position of each group that an event satisfies, in any order.

        `groups` numbers the group of each position, below the number of positions; a group that
        is found need not be looked at again, and a position with a negative group not at all.
        """

    def match_batch(self, batch: EventBatch) -> tuple[Positions, Positions]:
        """Find all pairs of row and position that match, each once, in any order."""

    def without(self, positions: Collection[int]) -> "Index":
        """Give an index that need not find some positions; this one stays as it is."""

    def breadth(self) -> int:
        """Count the filters that any event may satisfy, whatever it holds."""

    def stats(self) -> dict[str, int]:
        """Count what the index holds."""


MakeIndex = Callable[[Sequence[Subscription]], Index]
FindFaults = Callable[[Geometries], dict[int, Fault]]


def find_no_faults(_: Geometries) -> dict[int, Fault]:
    """Find nothing wrong with any geometry of an event."""
    return {}
