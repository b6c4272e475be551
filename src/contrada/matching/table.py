"""The filters of a set of subscriptions by columns, every distinct constraint stored once."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from contrada.arrays import Positions
from contrada.model.subscription import Constraint, Subscription


@dataclass(frozen=True, slots=True)
class FilterTable:
    """Filter f belongs to subscription `owner[f]`; its constraints are those numbered
    `members[starts[f] : starts[f + 1]]`."""

    constraints: list[Constraint]
    owner: Positions
    starts: Positions
    members: Positions

    def constraints_of(self, filter_: int) -> Positions:
        """Number the constraints of one filter."""
        return self.members[self.starts[filter_] : self.starts[filter_ + 1]]

    def sizes(self) -> Positions:
        """Count the constraints of each filter."""
        return np.diff(self.starts)


def make_table(subscriptions: Sequence[Subscription]) -> FilterTable:
    """Lay out the filters of subscriptions, in their order."""
    numbers: dict[Constraint, int] = {}
    owner: list[int] = []
    sizes: list[int] = []
    members: list[int] = []
    for position, subscription in enumerate(subscriptions):
        for filter_ in subscription.predicate.filters:
            owner.append(position)
            sizes.append(len(filter_.constraints))
            members += [numbers.setdefault(c, len(numbers)) for c in filter_.constraints]
    starts = np.concatenate([[0], np.cumsum(np.array(sizes, np.int64))]).astype(np.int64)
    return FilterTable(
        list(numbers), np.array(owner, np.int64), starts, np.array(members, np.int64)
    )


def group_by(keys: Positions, count: int) -> tuple[Positions, Positions]:
    """Sort positions by key: those with key k are `order[starts[k] : starts[k + 1]]`."""
    order = np.argsort(keys, kind="stable").astype(np.int64)
    starts = np.searchsorted(keys[order], np.arange(count + 1)).astype(np.int64)
    return order, starts


def expand(starts: Positions, keys: Positions) -> tuple[Positions, Positions]:
    """List all members of each key's group: which key (by position), and where the member is."""
    lengths = starts[keys + 1] - starts[keys]
    which = np.repeat(np.arange(len(keys), dtype=np.int64), lengths)
    first = np.repeat(np.cumsum(lengths) - lengths, lengths)
    return which, starts[keys][which] + np.arange(len(which), dtype=np.int64) - first
