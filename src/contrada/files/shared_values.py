"""Texts and bytes that few bytes state for many rows, as dictionaries.

Arrow has views and runs for that, and Parquet pages of codes. Whoever asks something of each value
asks it once of a dictionary; written out it would be asked of gigabytes. What is not shared by many
rows takes its plain type.
"""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from contrada.deferred import compute as pc
from contrada.files.arrow_types import is_binary, is_text, plain_type, storage_type, validate
from contrada.files.plain_arrays import as_plain, number_runs
from contrada.limits import OVERLAP_BYTES_MAX

_SHARED_BYTES_MIN = 2**20  # once written out; less is not worth a thought
_TIMES_MIN = 10  # so many times as large must it be than the values by themselves


def as_compact(array: pa.Array) -> pa.Array:
    """Return an array as a dictionary where many rows share long texts or bytes, else as it is."""
    coded = _as_coded(array)
    return array if coded is None else coded


def as_compact_plain(array: pa.Array) -> pa.Array:
    """Return an array in its plain type, unless it, or what is in a struct, is compact."""
    if isinstance(array, pa.StructArray) and array.type != plain_type(array.type):
        members = [as_compact_plain(array.field(i)) for i in range(array.type.num_fields)]
        pairs = zip(array.type, members, strict=True)
        fields = [pa.field(field.name, member.type) for field, member in pairs]
        return pa.StructArray.from_arrays(members, fields=fields, mask=array.is_null())
    coded = _as_coded(array)
    return as_plain(array) if coded is None else coded


def _as_coded(array: pa.Array) -> pa.DictionaryArray | None:
    kind = storage_type(array.type)
    if isinstance(array, pa.ExtensionArray) and plain_type(array.type) == plain_type(kind):
        array = array.storage
    coded = None
    if _is_view(array.type):
        coded = _coded_views(array)
    elif isinstance(array, pa.RunEndEncodedArray) and _holds_bytes(array.type):
        coded = _coded_runs(array)
    return coded if coded is not None and is_shared(coded) else None


def is_shared(array: pa.Array) -> bool:
    """Whether an array is a dictionary of long texts or bytes that many rows share."""
    if not pa.types.is_dictionary(array.type) or not _holds_bytes(array.type.value_type):
        return False
    if pa.types.is_run_end_encoded(array.type.value_type):
        return False
    lengths = _lengths(array.dictionary)
    sizes = np.append(lengths, 0)
    codes = np.asarray(array.indices.cast(pa.int64()).fill_null(len(lengths)), np.int64)
    written = int(sizes[codes].sum())
    if written < _SHARED_BYTES_MIN:
        return False
    return written > _TIMES_MIN * int(sizes[np.unique(codes)].sum())


def write_out(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return an array with every value where it stands, of its declared type."""
    if array.type == kind:
        return array
    if pa.types.is_dictionary(array.type) and not pa.types.is_dictionary(kind):
        return array.dictionary.cast(kind).take(array.indices)
    if isinstance(array, pa.StructArray):
        pairs = zip((array.field(i) for i in range(array.type.num_fields)), kind, strict=True)
        members = [write_out(member, field.type) for member, field in pairs]
        return pa.StructArray.from_arrays(members, fields=list(kind), mask=array.is_null())
    return array.cast(kind)


def refuse_overlaps(array: pa.Array) -> None:
    """Refuse views of texts or bytes that overlap so much that they stand for far more."""
    array = array.storage if isinstance(array, pa.ExtensionArray) else array
    if not _is_view(array.type):
        return
    held = sum(part.size for part in array.buffers() if part is not None)
    bound = max(OVERLAP_BYTES_MAX, _TIMES_MIN * held)
    if int(_view_lengths(array).sum()) <= bound:
        return
    distinct = int(_view_lengths(_distinct_views(array)[1]).sum())
    if distinct > bound:
        raise pa.ArrowInvalid(
            f"its views, of {held:,} bytes, overlap and stand for {distinct:,} bytes; the limit is "
            f"{OVERLAP_BYTES_MAX:,} (OVERLAP_BYTES_MAX)"
        )


def validate_once(array: pa.Array) -> None:
    """Refuse what is not in Arrow's format, looking once at a view that many rows have."""
    if _is_view(array.type) and len(array):
        array.validate()
        array = _distinct_views(array)[1]
    validate(array)


def _is_view(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string_view(kind) or pa.types.is_binary_view(kind))


def _holds_bytes(kind: pa.DataType) -> bool:
    if pa.types.is_run_end_encoded(kind):
        kind = kind.value_type
    kind = storage_type(kind)
    return is_text(kind) or is_binary(kind)


def _lengths(array: pa.Array) -> NDArray[np.int64]:
    array = array.storage if isinstance(array, pa.ExtensionArray) else array
    if _is_view(array.type):
        return _view_lengths(array)
    return np.asarray(pc.binary_length(array).fill_null(0), np.int64)


def _view_lengths(array: pa.Array) -> NDArray[np.int64]:
    """Return what views state first of all, their lengths; zero for nulls."""
    views = array.buffers()[1]
    if views is None or not len(array):
        return np.zeros(0, np.int64)
    end = 4 * (array.offset + len(array))
    lengths = np.frombuffer(views, np.int32, end)[4 * array.offset :: 4].astype(np.int64)
    if array.null_count:
        lengths[np.asarray(array.is_null())] = 0
    return lengths


def _distinct_views(array: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return the number of each row's view, and the views that differ."""
    validity, views, *data = array.buffers()
    records = pa.Array.from_buffers(
        pa.binary(16), len(array), [validity, views], offset=array.offset
    )
    coded = records.dictionary_encode()
    parts = [None, coded.dictionary.buffers()[1], *data]
    return coded.indices, pa.Array.from_buffers(array.type, len(coded.dictionary), parts)


def _coded_views(array: pa.Array) -> pa.DictionaryArray | None:
    held = sum(part.size for part in array.buffers()[2:])
    written = int(_view_lengths(array).sum())
    if written < _SHARED_BYTES_MIN or written < _TIMES_MIN * held:
        return None
    codes, distinct = _distinct_views(array)
    return pa.DictionaryArray.from_arrays(codes, as_plain(distinct))


def _coded_runs(array: pa.RunEndEncodedArray) -> pa.DictionaryArray:
    runs, used = number_runs(array)
    values = as_plain(used)
    is_null = np.append(np.asarray(values.is_null()), False)[runs]
    if values.null_count:
        values = pc.fill_null(values, "" if is_text(values.type) else b"")
    return pa.DictionaryArray.from_arrays(pa.array(runs.astype(np.int32), mask=is_null), values)
