"""Few subscriptions that were just added: a single event is evaluated against each of them.

Building an index would take longer than the event. Batches of many events get the engine's own.
An approximate engine cannot have this, since its answers are its index's.
"""

from collections.abc import Collection

import numpy as np

from contrada.arrays import Positions
from contrada.language import truth
from contrada.matching.columns import EventBatch
from contrada.matching.engine import Index, MakeIndex
from contrada.matching.subscription_columns import SubscriptionColumns
from contrada.model.event import Event
from contrada.model.expression import Expression
from contrada.threads import once

SMALL_MAX = 16  # subscriptions
_EVENTS_FEW = 64


class SmallIndex:
    """Predicates that are evaluated, and the engine's own index once that is worth it."""

    def __init__(self, subscriptions: SubscriptionColumns, make_index: MakeIndex) -> None:
        """Hold the subscriptions; nothing is built yet."""
        self._subscriptions, self._make_index = subscriptions, make_index

    @once
    def _expressions(self) -> list[Expression]:
        expressions, operands = self._subscriptions.expressions, self._subscriptions.pools.ready()
        return [expressions.one(i, operands) for i in range(len(expressions))]

    @once
    def _own(self) -> Index:
        return self._make_index(self._subscriptions)

    def find(self, event: Event, groups: Positions) -> Positions:
        """Evaluate the predicates of groups that are not found yet."""
        found: dict[int, int] = {}
        for position, (group, expression) in enumerate(
            zip(groups.tolist(), self._expressions, strict=True)
        ):
            if group >= 0 and group not in found and truth(expression, event) is True:
                found[group] = position
        return np.array(list(found.values()), np.int64)

    def match_batch(self, batch: EventBatch) -> tuple[Positions, Positions]:
        """Evaluate few events one by one, and ask the index about many."""
        if batch.length > _EVENTS_FEW:
            return self._own.match_batch(batch)
        groups = np.arange(len(self._subscriptions))
        found = [self.find(batch.row(row), groups) for row in range(batch.length)]
        rows = np.repeat(np.arange(batch.length), [len(positions) for positions in found])
        return rows, np.concatenate([np.zeros(0, np.int64), *found])

    def without(self, positions: Collection[int]) -> Index:  # noqa: ARG002
        """Return itself: whoever asks leaves removed positions out."""
        return self

    def breadth(self) -> int:
        """Count all filters: they are so few."""
        return len(self._subscriptions.table.owner)

    def stats(self) -> dict[str, int]:
        """Count what the index holds."""
        return self._own.stats()
