"""Arrays that get longer as kernels write to them."""

import numpy as np

from contrada.kernels.boxtree import Ints
from contrada.kernels.compiling import kernel


@kernel
def with_room(table: Ints, size: int, more: int) -> Ints:
    """Return a table with room for more rows."""
    if size + more <= len(table):
        return table
    larger = np.empty((2 * (size + more), table.shape[1]), np.int64)
    larger[:size] = table[:size]
    return larger


@kernel
def with_space(places: Ints, needed: int) -> Ints:
    """Return an array of some length at least, with what is in it."""
    if needed <= len(places):
        return places
    larger = np.empty(2 * needed, np.int64)
    larger[: len(places)] = places
    return larger
