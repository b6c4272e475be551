"""The engine `scan`: no index. Every event is evaluated against every predicate, as written."""

from collections.abc import Collection, Iterator, Sequence

import numpy as np

from contrada.language import truth
from contrada.matching.columns import EventBatch, Mask, Rows
from contrada.matching.engine import Index, Skip, find_all
from contrada.matching.table import Ids
from contrada.model.event import Event
from contrada.model.subscription import Subscription


class ScanIndex:
    """Slow, obvious and right: the baseline, and the answer that other engines must give."""

    def __init__(self, subscriptions: Sequence[Subscription]) -> None:
        """Keep the subscriptions as they are."""
        self._subscriptions = subscriptions

    def find(self, event: Event, is_alive: Mask) -> Ids:
        """Find all living positions that an event satisfies."""
        return find_all(self, event, is_alive)

    def match(self, event: Event, skip: Skip) -> Iterator[int]:
        """Evaluate the tree of each predicate, not its normal form."""
        for position, subscription in enumerate(self._subscriptions):
            if not skip(position) and truth(subscription.predicate.expression, event) is True:
                yield position

    def match_batch(self, batch: EventBatch) -> tuple[Rows, Ids]:
        """Match row by row."""
        pairs = [
            (row, position)
            for row in range(batch.length)
            for position in self.match(batch.row(row), lambda _: False)
        ]
        found = np.array(pairs, np.int64).reshape(-1, 2)
        return found[:, 0], found[:, 1]

    def without(self, positions: Collection[int]) -> Index:  # noqa: ARG002
        """Stay as it is: whoever asks leaves removed positions out."""
        return self

    def breadth(self) -> int:
        """Count all: without an index any of them may match."""
        return len(self._subscriptions)

    def stats(self) -> dict[str, int]:
        """Count the subscriptions that each event is tried on."""
        return {"scanned": len(self._subscriptions)}
