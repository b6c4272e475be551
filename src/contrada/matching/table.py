"""The filters of a set of subscriptions by columns, every distinct constraint stored once."""

from dataclasses import dataclass

import numpy as np

from contrada.arrays import Positions
from contrada.matching.constraint_columns import ConstraintColumns


@dataclass(frozen=True, slots=True)
class FilterTable:
    """Filter f belongs to subscription `owner[f]`; its constraints are those numbered
    `members[starts[f] : starts[f + 1]]`."""

    constraints: ConstraintColumns
    owner: Positions
    starts: Positions
    members: Positions

    def constraints_of(self, filter_: int) -> Positions:
        """Number the constraints of one filter."""
        return self.members[self.starts[filter_] : self.starts[filter_ + 1]]

    def sizes(self) -> Positions:
        """Count the constraints of each filter."""
        return np.diff(self.starts)
