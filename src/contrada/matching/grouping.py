"""Groups in arrays: where each begins, and who belongs to it."""

import numpy as np
from numpy.typing import NDArray

from contrada.arrays import Positions
from contrada.model.packed_lists import repeat, take_lists


def starts_of(lengths: NDArray[np.int64]) -> Positions:
    """Return where each of some groups of such lengths starts, and last where all end."""
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def find_used(numbers: Positions, size: int) -> tuple[Positions, Positions]:
    """Return which numbers below a size are used, in order, and the place of each number there.

    Unlike `np.unique` it needs no sorting.
    """
    is_used = np.zeros(size, bool)
    is_used[numbers] = True
    return np.flatnonzero(is_used), (np.cumsum(is_used) - 1)[numbers]


def group_by(keys: Positions, count: int) -> tuple[Positions, Positions]:
    """Sort positions by key: those with key k are `order[starts[k] : starts[k + 1]]`."""
    order = np.argsort(keys, kind="stable").astype(np.int64)
    starts = np.searchsorted(keys[order], np.arange(count + 1)).astype(np.int64)
    return order, starts


def expand(starts: Positions, keys: Positions) -> tuple[Positions, Positions]:
    """List all members of each key's group: which key (by position), and where the member is."""
    which = repeat(np.arange(len(keys), dtype=np.int64), starts[keys + 1] - starts[keys])
    return which, take_lists(starts, keys)[1]
