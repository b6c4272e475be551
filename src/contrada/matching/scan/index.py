"""The engine `scan`: no index. Every event is evaluated against every predicate, as written."""

from collections.abc import Collection, Sequence

import numpy as np

from contrada.arrays import Positions
from contrada.language import truth
from contrada.matching.columns import EventBatch
from contrada.matching.engine import Index
from contrada.matching.subscription_columns import SubscriptionColumns
from contrada.model.event import Event


class ScanIndex:
    """Slow, obvious and right: the baseline, and the answer that other engines must give."""

    def __init__(self, subscriptions: SubscriptionColumns) -> None:
        """Make the tree of every predicate."""
        expressions, operands = subscriptions.expressions, subscriptions.pools.ready()
        self._expressions = [expressions.one(i, operands) for i in range(len(expressions))]

    def find(self, event: Event, groups: Positions) -> Positions:
        """Evaluate the tree of each predicate, not its normal form."""
        found: dict[int, int] = {}
        for position, group in enumerate(groups.tolist()):
            if group >= 0 and group not in found and self._is_satisfied(position, event):
                found[group] = position
        return np.array(list(found.values()), np.int64)

    def _is_satisfied(self, position: int, event: Event) -> bool:
        return truth(self._expressions[position], event) is True

    def match_batch(self, batch: EventBatch) -> tuple[Positions, Positions]:
        """Match row by row."""
        groups = np.arange(len(self._expressions))
        found = [self.find(batch.row(row), groups) for row in range(batch.length)]
        rows = np.repeat(np.arange(batch.length), [len(positions) for positions in found])
        return rows, np.concatenate([np.zeros(0, np.int64), *found])

    def prepare(self, like: Sequence[Index]) -> None:
        """Do nothing: all is there."""

    def without(self, positions: Collection[int]) -> Index:  # noqa: ARG002
        """Return itself: whoever asks leaves removed positions out."""
        return self

    def breadth(self) -> int:
        """Count all: without an index any of them may match."""
        return len(self._expressions)

    def stats(self) -> dict[str, int]:
        """Count the subscriptions that each event is tried on."""
        return {"scanned": len(self._expressions)}
