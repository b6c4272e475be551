"""Filters of which one event may still satisfy all, by the ranges among their constraints.

Filter f has the constraints `members[starts[f] : starts[f + 1]]`. Constraint c is the range
`rows[c]`, or none where that is negative; range r is of the attribute `codes[r]`.
"""

import numpy as np
from numpy.typing import NDArray

from contrada.arrays import Floats, Mask
from contrada.kernels.boxtree import Ints
from contrada.kernels.compiling import kernel

NO_NUMBER, AN_INTEGER, A_DOUBLE = (
    0,
    1,
    2,
)  # what the value of an attribute is: no number, an integer, a double


@kernel
def keep_admitted(
    filters: Ints,
    starts: Ints,
    members: Ints,
    rows: Ints,
    codes: Ints,
    whole_ranges: Ints,
    real_ranges: Floats,
    is_outside: Mask,
    whole: Ints,
    real: Floats,
    kinds: NDArray[np.uint8],
) -> Ints:
    """Keep the filters of which the values of an event satisfy all ranges.

    Attribute a has the value `whole[a]` or `real[a]`, as `kinds[a]` says.
    """
    kept = np.empty(len(filters), np.int64)
    size = 0
    for filter_ in filters:
        is_admitted = True
        for k in range(starts[filter_], starts[filter_ + 1]):
            row = rows[members[k]]
            if row < 0:
                continue
            code = codes[row]
            if kinds[code] == AN_INTEGER:
                is_in = whole_ranges[row, 0] <= whole[code] <= whole_ranges[row, 1]
            elif kinds[code] == A_DOUBLE:
                is_in = real_ranges[row, 0] <= real[code] <= real_ranges[row, 1]
            else:
                is_in = is_outside[row]
            if is_in == is_outside[row]:
                is_admitted = False
                break
        if is_admitted:
            kept[size] = filter_
            size += 1
    return kept[:size]
