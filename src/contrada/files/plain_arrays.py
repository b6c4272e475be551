"""Arrays of the many types that Arrow has for one thing, as arrays of the few that rows have.

Arrow's own cast takes no view out of a dictionary or out of runs, and writes a UUID as its bytes.
So an array is taken apart here, down to what Arrow can cast.
"""

import uuid
from collections.abc import Callable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from contrada.deferred import compute as pc
from contrada.files.arrow_types import is_bool8, is_uuid, plain_type
from contrada.files.old_intervals import as_plain_intervals, is_old_interval


def as_plain(array: pa.Array) -> pa.Array:
    """Return an array with the values of another, of its plain type."""
    target = plain_type(array.type)
    if array.type == target:
        return array
    if isinstance(array, pa.ExtensionArray):
        return _plain_storage(array)
    convert = _CONVERSIONS.get(type(array))
    return array.cast(target) if convert is None else convert(array, target)


def _plain_storage(array: pa.ExtensionArray) -> pa.Array:
    if is_bool8(array.type):
        return pc.not_equal(array.storage, 0)
    if is_old_interval(array.type):
        return as_plain_intervals(array)
    if not is_uuid(array.type):
        return as_plain(array.storage)
    raws = array.storage.to_pylist()
    texts = [None if raw is None else str(uuid.UUID(bytes=raw)) for raw in raws]
    return pa.array(texts, pa.string())


def number_runs(array: pa.RunEndEncodedArray) -> tuple[NDArray[np.int64], pa.Array]:
    """Return the number of each row's run, and the values of the runs."""
    rows = np.arange(array.offset, array.offset + len(array))
    runs = np.searchsorted(np.asarray(array.run_ends), rows, side="right")
    if not len(runs):
        return runs, array.values.slice(0, 0)
    return runs - runs[0], array.values.slice(runs[0], runs[-1] - runs[0] + 1)


def _without_runs(array: pa.RunEndEncodedArray, _: pa.DataType) -> pa.Array:
    runs, used = number_runs(array)
    return as_plain(used).take(pa.array(runs))


def _plain_dictionary(array: pa.DictionaryArray, target: pa.DataType) -> pa.Array:
    return pa.DictionaryArray.from_arrays(
        array.indices, as_plain(array.dictionary), ordered=target.ordered
    )


def _plain_struct(array: pa.StructArray, target: pa.DataType) -> pa.Array:
    members = [as_plain(array.field(i)) for i in range(array.type.num_fields)]
    return pa.StructArray.from_arrays(members, fields=list(target), mask=array.is_null())


def _plain_list(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Rebuild a list, a large one or a view: what the lists hold, one after the other."""
    lengths = pc.fill_null(pc.list_value_length(array), 0)
    is_large = pa.types.is_large_list(target)
    kind, make = (np.int64, pa.LargeListArray) if is_large else (np.int32, pa.ListArray)
    ends = np.cumsum(np.asarray(lengths, np.int64))
    offsets = pa.array(np.concatenate([[0], ends]).astype(kind))
    return make.from_arrays(offsets, as_plain(array.flatten()), target, mask=array.is_null())


def _plain_fixed_list(array: pa.FixedSizeListArray, target: pa.DataType) -> pa.Array:
    size = target.list_size
    values = as_plain(array.values.slice(array.offset * size, len(array) * size))
    return pa.FixedSizeListArray.from_arrays(values, type=target, mask=array.is_null())


def _plain_map(array: pa.MapArray, target: pa.DataType) -> pa.Array:
    offsets = np.asarray(array.offsets)
    first, length = offsets[0], offsets[-1] - offsets[0]
    keys, items = (as_plain(part.slice(first, length)) for part in (array.keys, array.items))
    return pa.MapArray.from_arrays(
        pa.array(offsets - first), keys, items, target, mask=array.is_null()
    )


def _plain_union(array: pa.UnionArray, target: pa.DataType) -> pa.Array:
    members = [as_plain(array.field(i)) for i in range(target.num_fields)]
    return pa.Array.from_buffers(target, len(array), union_places(array), children=members)


def union_places(array: pa.UnionArray) -> list[pa.Buffer | None]:
    """Return the own buffers of a union, from its first row on: which member each row has.

    Where the union is dense, they also say where in it.
    """
    _, codes, *rest = array.buffers()
    places = rest[:1] if array.type.mode == "dense" else []
    return [None, codes.slice(array.offset), *(part.slice(4 * array.offset) for part in places)]


_CONVERSIONS: dict[type[pa.Array], Callable[[pa.Array, pa.DataType], pa.Array]] = {
    pa.RunEndEncodedArray: _without_runs,
    pa.DictionaryArray: _plain_dictionary,
    pa.StructArray: _plain_struct,
    pa.ListArray: _plain_list,
    pa.LargeListArray: _plain_list,
    pa.ListViewArray: _plain_list,
    pa.LargeListViewArray: _plain_list,
    pa.FixedSizeListArray: _plain_fixed_list,
    pa.MapArray: _plain_map,
    pa.UnionArray: _plain_union,
}
