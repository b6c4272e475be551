"""Views of texts and bytes that are null, cleared of whatever stands there.

What stands under a null may be anything, and Arrow finds it valid. But its cast reads the lengths
and the places of null views too, and goes wherever they point.
"""

from typing import Any

import numpy as np
import pyarrow as pa

from contrada.files.arrow_types import storage_type
from contrada.files.plain_arrays import union_places
from contrada.matching.arrow_values import struct_members

_VIEW_BYTES = 16
_VIEWS = (pa.string_view(), pa.binary_view())


def clear_null_views(array: pa.Array) -> pa.Array:
    """Return a valid array with zeros in the views that are null, at every depth.

    One that is null because its struct is gets a null of its own.
    """
    return _cleared(array) if _has_views(array.type) else array


def _has_views(kind: pa.DataType) -> bool:
    pending = [kind]
    while pending:
        kind = storage_type(pending.pop())
        if kind in _VIEWS:
            return True
        if pa.types.is_dictionary(kind):
            pending.append(kind.value_type)
        pending += [kind.field(i).type for i in range(kind.num_fields)]
    return False


def _cleared(array: pa.Array) -> pa.Array:
    kind = array.type
    if isinstance(array, pa.ExtensionArray):
        return pa.ExtensionArray.from_storage(kind, clear_null_views(array.storage))
    if kind in _VIEWS:
        return _cleared_views(array)
    if isinstance(array, pa.DictionaryArray):
        own, dictionary = array.buffers()[:2], clear_null_views(array.dictionary)
        facts = {"null_count": array.null_count, "offset": array.offset}
        return pa.DictionaryArray.from_buffers(kind, len(array), own, dictionary, **facts)
    if isinstance(array, pa.StructArray):
        members = struct_members(array)
        return _rebuilt(array, [_validity(array)], members, offset=0)
    if isinstance(array, pa.UnionArray):
        return _rebuilt(array, union_places(array), _fields(array), offset=0)
    if isinstance(array, pa.RunEndEncodedArray):
        return _rebuilt(array, [None], [array.run_ends, array.values], offset=array.offset)
    own = array.buffers()[: kind.num_buffers]
    members = [_entries(array) if isinstance(array, pa.MapArray) else array.values]
    return _rebuilt(array, own, members, offset=array.offset)


def _cleared_views(array: pa.Array) -> pa.Array:
    if not array.null_count:
        return array
    validity, views, *data = array.buffers()
    end = array.offset + len(array)
    numbers = np.frombuffer(views, np.uint64, 2 * end).reshape(end, 2)
    is_null = np.zeros(end, bool)
    is_null[array.offset :] = array.is_null()
    if not numbers[is_null].any():
        return array
    parts = [validity, pa.py_buffer(np.where(is_null[:, None], np.uint64(0), numbers)), *data]
    return pa.Array.from_buffers(array.type, len(array), parts, array.null_count, array.offset)


def _rebuilt(array: pa.Array, own: list[Any], members: list[pa.Array], *, offset: int) -> pa.Array:
    """Return an array of the same type with its own buffers, around cleared members."""
    children = [clear_null_views(member) for member in members]
    make = pa.RunEndEncodedArray if isinstance(array, pa.RunEndEncodedArray) else pa.Array
    return make.from_buffers(array.type, len(array), own, -1, offset, children)


def _fields(array: Any) -> list[pa.Array]:
    return [array.field(i) for i in range(array.type.num_fields)]


def _entries(array: pa.MapArray) -> pa.Array:
    kind = pa.struct([array.type.key_field, array.type.item_field])
    keys, items = array.keys, array.items
    return pa.Array.from_buffers(kind, len(keys), [None], 0, children=[keys, items])


def _validity(array: pa.Array) -> pa.Buffer | None:
    if not array.null_count:
        return None
    return pa.array(np.asarray(array.is_valid())).buffers()[1]
