"""Who emits a pair that several partitions find: the partition of the first cell common to both."""

import numpy as np

from contrada.kernels.boxtree import Ints
from contrada.kernels.compiling import kernel


@kernel
def first_common(
    rows: Ints, items: Ints, row_starts: Ints, of_rows: Ints, item_starts: Ints, of_items: Ints
) -> Ints:
    """Return for each pair the smallest number that its row and its item share; -1 for none.

    Row r has the numbers `of_rows[row_starts[r] : row_starts[r + 1]]`, sorted; items likewise.
    """
    found = np.empty(len(rows), np.int64)
    for pair in range(len(rows)):
        i, i_end = row_starts[rows[pair]], row_starts[rows[pair] + 1]
        k, k_end = item_starts[items[pair]], item_starts[items[pair] + 1]
        while i < i_end and k < k_end and of_rows[i] != of_items[k]:
            if of_rows[i] < of_items[k]:
                i += 1
            else:
                k += 1
        found[pair] = of_rows[i] if i < i_end and k < k_end else -1
    return found
