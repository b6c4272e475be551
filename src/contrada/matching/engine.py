"""What an engine is: a way to index a fixed set of subscriptions and ask it about events."""

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Protocol

import numpy as np

from contrada.matching.columns import EventBatch, Mask, Rows
from contrada.matching.table import Ids
from contrada.model.event import Event
from contrada.model.subscription import Subscription

Skip = Callable[[int], bool]


class Index(Protocol):
    """Subscriptions by position, ready to be matched. It never changes after it is made."""

    def find(self, event: Event, is_alive: Mask) -> Ids:
        """Find all living positions that an event satisfies, each once, in any order."""

    def match(self, event: Event, skip: Skip) -> Iterator[int]:
        """Find the positions that an event satisfies one after another, each once, in any order.

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


def find_all(index: Index, event: Event, is_alive: Mask) -> Ids:
    """Collect what an index finds one after another."""
    return np.fromiter(index.match(event, lambda position: not is_alive[position]), np.int64)


MakeIndex = Callable[[Sequence[Subscription]], Index]
