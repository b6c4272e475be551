"""Sorting places by whole numbers, equal ones as they were: a radix sort, eleven bits at a time."""

import numpy as np

from contrada.kernels.boxtree import Ints
from contrada.kernels.compiling import kernel

_BITS = 11
_DIGITS = 1 << _BITS


@kernel
def sort_stably(places: Ints, keys: Ints) -> Ints:
    """Return places by the key at each of them; the difference of two keys fits in 63 bits."""
    if len(places) < 2:
        return places
    low, high, is_sorted = bounds_of(places, keys)
    if is_sorted:
        return places
    span = high - low
    order = places.copy()
    spare = np.empty_like(order)
    shift = 0
    while span >> shift:
        counts = np.zeros(_DIGITS, np.int64)
        for place in order:
            counts[((keys[place] - low) >> shift) & (_DIGITS - 1)] += 1
        total = 0
        for digit in range(_DIGITS):
            total, counts[digit] = total + counts[digit], total
        for place in order:
            digit = ((keys[place] - low) >> shift) & (_DIGITS - 1)
            spare[counts[digit]] = place
            counts[digit] += 1
        order, spare = spare, order
        shift += _BITS
    return order


@kernel
def bounds_of(places: Ints, keys: Ints) -> tuple[int, int, bool]:
    """Return the least and the greatest key of some places, and whether they are sorted."""
    low = high = before = keys[places[0]]
    is_sorted = True
    for place in places:
        key = keys[place]
        low, high = min(low, key), max(high, key)
        if key < before:
            is_sorted = False
        before = key
    return low, high, is_sorted
