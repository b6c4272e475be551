"""Intervals of months, and of days and milliseconds: Arrow has them, and PyArrow no arrays of them.

It takes a table with such a column and fails wherever somebody looks at it. So such a column is
taken in anew, as integers under a type that tells what they are, and becomes plain from these.
"""

from collections.abc import Callable

import numpy as np
import pyarrow as pa

_INTEGERS = {pa.lib.Type_INTERVAL_MONTHS: pa.int32(), pa.lib.Type_INTERVAL_DAY_TIME: pa.int64()}
_MARKED = {
    key: pa.opaque(kind, type_name="interval", vendor_name="contrada")
    for key, kind in _INTEGERS.items()
}
_NS_PER_MS = 1_000_000
_PLAIN = np.dtype([("months", "<i4"), ("days", "<i4"), ("ns", "<i8")])


def is_old_interval(kind: pa.DataType) -> bool:
    """Whether a type is one of these, or stands for one."""
    return kind.id in _INTEGERS or kind in _MARKED.values()


def with_readable_intervals(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch whose columns PyArrow can look into, at any depth."""
    schema = batch.schema
    if not any(_holds_old_interval(field.type) for field in schema):
        return batch
    schema = pa.schema([pa.field(field.name, _marked(field.type)) for field in schema])
    return pa.record_batch(_Retyped(batch, schema))


def as_plain_intervals(array: pa.ExtensionArray) -> pa.Array:
    """Return intervals that are integers here as those of months, days and nanoseconds."""
    integers = np.ascontiguousarray(array.storage.fill_null(0))
    plain = np.zeros(len(array), _PLAIN)
    if array.type.storage_type == pa.int32():
        plain["months"] = integers
    else:
        plain["days"], milliseconds = integers.view("<i4").reshape(-1, 2).T
        plain["ns"] = milliseconds.astype(np.int64) * _NS_PER_MS
    validity = pa.array(np.asarray(array.is_valid())).buffers()[1] if array.null_count else None
    kind = pa.month_day_nano_interval()
    return pa.Array.from_buffers(kind, len(array), [validity, pa.py_buffer(plain)])


class _Retyped:
    """A batch whose columns have types of another name for what lies there."""

    def __init__(self, batch: pa.RecordBatch, schema: pa.Schema) -> None:
        self._batch = batch
        self._schema = schema

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        return self._schema.__arrow_c_schema__(), self._batch.__arrow_c_array__()[1]


def _holds_old_interval(kind: pa.DataType) -> bool:
    pending = [kind]
    while pending:
        kind = pending.pop()
        if kind.id in _INTEGERS:
            return True
        if isinstance(kind, pa.BaseExtensionType):
            pending.append(kind.storage_type)
        elif pa.types.is_dictionary(kind):
            pending.append(kind.value_type)
        pending += [kind.field(i).type for i in range(kind.num_fields)]
    return False


def _marked(kind: pa.DataType) -> pa.DataType:
    if kind.id in _INTEGERS:
        return _MARKED[kind.id]
    if not _holds_old_interval(kind):
        return kind
    if isinstance(kind, pa.BaseExtensionType):
        return _marked(kind.storage_type)
    if pa.types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, _marked(kind.value_type), kind.ordered)
    fields = [kind.field(i).with_type(_marked(kind.field(i).type)) for i in range(kind.num_fields)]
    return _NESTED[type(kind)](kind, fields)


def _marked_union(kind: pa.DataType, fields: list[pa.Field]) -> pa.DataType:
    return pa.union(fields, kind.mode, kind.type_codes)


def _marked_map(kind: pa.MapType, entries: list[pa.Field]) -> pa.DataType:
    (entry,) = entries
    return pa.map_(entry.type.field(0), entry.type.field(1), kind.keys_sorted)


_NESTED: dict[type[pa.DataType], Callable[[pa.DataType, list[pa.Field]], pa.DataType]] = {
    pa.ListType: lambda _, fields: pa.list_(*fields),
    pa.LargeListType: lambda _, fields: pa.large_list(*fields),
    pa.ListViewType: lambda _, fields: pa.list_view(*fields),
    pa.LargeListViewType: lambda _, fields: pa.large_list_view(*fields),
    pa.FixedSizeListType: lambda kind, fields: pa.list_(*fields, kind.list_size),
    pa.StructType: lambda _, fields: pa.struct(fields),
    pa.MapType: _marked_map,
    pa.RunEndEncodedType: lambda _, fields: pa.run_end_encoded(*(f.type for f in fields)),
    pa.UnionType: _marked_union,
    pa.DenseUnionType: _marked_union,
    pa.SparseUnionType: _marked_union,
}
