"""Columns of ids: in order, found in each other, merged.

Ids are int64, or large strings, whose bytes in UTF-8 have the order of their code points.
"""

import numpy as np
import pyarrow as pa

from contrada.arrays import Positions
from contrada.deferred import compute as pc
from contrada.errors import InvalidInput

_HASHED_SHARE = 16  # ids are hashed to find others that are more than one of so many


def as_ids(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return a column of ids as int64 or large strings in one piece."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    return array if pa.types.is_int64(array.type) else array.cast(pa.large_string())


def ids_like(ids: pa.Array, known: pa.Array, what: str = "ids") -> pa.Array:
    """Return ids as the same type as others; a column without any is of every type."""
    if not len(known):
        return as_ids(ids)
    if ids.type == known.type:
        return ids
    if len(ids) == ids.null_count:
        return pa.nulls(len(ids), known.type)
    ids = as_ids(ids)
    if ids.type == as_ids(known[:0]).type:
        return ids.cast(known.type)
    kinds = ["integers" if pa.types.is_int64(x.type) else "strings" for x in (ids, known)]
    raise InvalidInput(f"{what} are {kinds[0]} here, but were {kinds[1]} before")


def join_ids(first: pa.Array, second: pa.Array, what: str = "ids") -> pa.Array:
    """Return two columns of ids one after the other, nulls among them."""
    if not len(first) or not len(second):
        return first if len(first) else second
    if len(first) == first.null_count:
        first = pa.nulls(len(first), second.type)
    return pa.concat_arrays([first, ids_like(second, first, what)])


def sort_order(ids: pa.Array) -> Positions:
    """Return the places of ids in their order."""
    if pa.types.is_int64(ids.type):
        return np.argsort(ids.to_numpy(), kind="stable").astype(np.int64)
    return np.asarray(pc.array_sort_indices(ids), np.int64)


def are_increasing(ids: pa.Array) -> bool:
    """Whether ids are sorted, each once."""
    return len(ids) < 2 or bool(pc.all(pc.less(ids[:-1], ids[1:])).as_py())


def find_places(known: pa.Array, wanted: pa.Array) -> Positions:
    """Return where ids are among others, which are sorted, each once; -1 where they are not."""
    if not len(known) or not len(wanted):
        return np.full(len(wanted), -1)
    if pa.types.is_int64(known.type):
        own, others = known.to_numpy(), wanted.to_numpy()
        places = np.minimum(np.searchsorted(own, others), len(own) - 1)
        return np.where(own[places] == others, places, -1).astype(np.int64)
    if len(wanted) * _HASHED_SHARE > len(known):
        found = pc.fill_null(pc.index_in(wanted, value_set=known), -1)
        return np.asarray(found, np.int64)
    return _bisect(known, wanted)


def _bisect(known: pa.Array, wanted: pa.Array) -> Positions:
    """Bisect for all texts at once, which takes less than to hash many for a few."""
    low, high = np.zeros(len(wanted), np.int64), np.full(len(wanted), len(known) - 1)
    while (low < high).any():
        middle = (low + high) // 2
        is_before = pc.less(known.take(pa.array(middle)), wanted).to_numpy(zero_copy_only=False)
        low, high = np.where(is_before, middle + 1, low), np.where(is_before, high, middle)
        low = np.minimum(low, len(known) - 1)
        high = np.maximum(low, high)
    is_here = pc.equal(known.take(pa.array(low)), wanted).to_numpy(zero_copy_only=False)
    return np.where(is_here, low, -1)


def merge_ids(known: pa.Array, new: pa.Array) -> tuple[pa.Array, Positions, Positions]:
    """Merge two sorted columns without a common id; return where both have gone, too."""
    if not len(new):
        return known, np.arange(len(known)), np.zeros(0, np.int64)
    if not len(known):
        return new, np.zeros(0, np.int64), np.arange(len(new))
    both = pa.concat_arrays([known, new])
    order = sort_order(both)
    places = np.empty(len(both), np.int64)
    places[order] = np.arange(len(both))
    return both.take(pa.array(order)), places[: len(known)], places[len(known) :]
