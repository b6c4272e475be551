"""What an engine is: a way to index a fixed set of subscriptions and ask it about events."""

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Protocol

from contrada.matching.columns import EventBatch, Rows
from contrada.matching.table import Ids
from contrada.model.event import Event
from contrada.model.subscription import Subscription

Skip = Callable[[int], bool]


class Index(Protocol):
    """Subscriptions by position, ready to be matched. It never changes after it is made."""

    def match(self, event: Event, skip: Skip) -> Iterator[int]:
        """Find the positions that an event satisfies, each once, in any order.

        A position for which `skip` is true just then is not looked at.
        """

    def match_batch(self, batch: EventBatch) -> tuple[Rows, Ids]:
        """Find all pairs of row and position that match, each once, in any order."""

    def without(self, positions: Collection[int]) -> "Index":
        """Give an index that need not find some positions; this one stays as it is."""

    def breadth(self) -> int:
        """Count the filters that any event may satisfy, whatever it holds."""

    def stats(self) -> dict[str, int]:
        """Count what the index holds."""


MakeIndex = Callable[[Sequence[Subscription]], Index]
