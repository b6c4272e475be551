"""Moments of Arrow as texts, where Python cannot hold them or does not know their zone.

Arrow's moments reach far beyond the years 1 to 9999, and its zones are whatever a file says.
"""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from contrada.deferred import compute as pc
from contrada.errors import InvalidInput
from contrada.files.plain_arrays import union_places
from contrada.matching.arrow_values import struct_members

_YEAR_MAX = 9_999  # beyond it Arrow may write no year, or another one
_MS_PER_DAY = 86_400_000


def python_values(column: pa.ChunkedArray | pa.Array) -> list[Any]:
    """Return a column as Python's values; moments are texts if Python cannot hold them all.

    Maps are mappings, or lists of pairs where a key cannot be one of Python's.
    """
    try:
        return _list_values(column)
    except (ArithmeticError, LookupError, ValueError):  # a moment, or an unknown zone
        return written_values(column)


def written_values(column: pa.ChunkedArray | pa.Array) -> list[Any]:
    """Return a column as Python's values, but moments as texts, however deep they lie."""
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    try:
        return [value for chunk in chunks for value in _list_values(_spell(chunk))]
    except (ArithmeticError, LookupError, ValueError) as error:
        raise InvalidInput(f"values of type {column.type} cannot be read: {error}") from error


def _list_values(column: pa.ChunkedArray | pa.Array) -> list[Any]:
    has_pairs = not pa.types.is_nested(column.type) or _has_nested_keys(column.type)
    values: list[Any] = column.to_pylist(maps_as_pydicts=None if has_pairs else "lossy")
    return values


def _has_nested_keys(kind: pa.DataType) -> bool:
    if pa.types.is_map(kind) and pa.types.is_nested(kind.key_type):
        return True
    return any(_has_nested_keys(kind.field(i).type) for i in range(kind.num_fields))


def iso_times(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Write dates and moments as ISO 8601; a time with a zone is given in UTC.

    A year beyond 9999 has more than four digits, one before the first a sign.
    """
    kind = column.type
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([iso_times(chunk) for chunk in column.chunks], pa.large_string())
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        column = column.cast(pa.timestamp(kind.unit, "UTC"))
    texts = pc.replace_substring(column.cast(pa.large_string()), " ", "T")
    ticks = _count_ticks(column)
    years = ticks.astype("datetime64[Y]").view(np.int64) + 1970
    is_far = (years < 0) | (years > _YEAR_MAX)
    if not is_far.any():
        return texts
    zone = "Z" if pa.types.is_timestamp(kind) and kind.tz is not None else ""
    written = [f"{text}{zone}" for text in np.datetime_as_string(ticks[is_far])]
    return pc.replace_with_mask(texts, pa.array(is_far), pa.array(written, pa.large_string()))


def _count_ticks(column: pa.Array) -> NDArray[np.datetime64]:
    """Return dates or moments as NumPy's; a null is the year 1970."""
    kind = column.type
    whole = column.cast(pa.int32()) if pa.types.is_date32(kind) else column
    ticks = np.asarray(pc.fill_null(whole.cast(pa.int64()), 0), np.int64)
    if pa.types.is_timestamp(kind):
        return ticks.astype(f"datetime64[{kind.unit}]")
    days = ticks if pa.types.is_date32(kind) else ticks // _MS_PER_DAY
    return days.astype("datetime64[D]")


def _spell(array: pa.Array) -> pa.Array:
    """Return a column with texts in place of moments."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        return _spell(array.dictionary_decode())
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return iso_times(array)
    is_null = array.is_null() if array.null_count else None
    if pa.types.is_struct(kind):
        fields = [_spell(child) for child in struct_members(array)]
        names = [field.name for field in kind]
        return pa.StructArray.from_arrays(fields, names, mask=is_null)
    if pa.types.is_map(kind):
        offsets = np.asarray(array.offsets, np.int32)
        entries = slice(int(offsets[0]), int(offsets[-1]))
        keys, items = (_spell(side[entries]) for side in (array.keys, array.items))
        return pa.MapArray.from_arrays(pa.array(offsets - offsets[0]), keys, items, mask=is_null)
    if pa.types.is_union(kind):
        return _spell_members(array)
    if _is_list(kind):
        lengths = pc.fill_null(pc.list_value_length(array), 0)
        offsets = np.concatenate([[0], np.cumsum(np.asarray(lengths, np.int64))])
        inner = _spell(array.flatten())
        return pa.LargeListArray.from_arrays(pa.array(offsets), inner, mask=is_null)
    return array


def _spell_members(array: pa.UnionArray) -> pa.Array:
    kind = array.type
    members = [_spell(array.field(i)) for i in range(kind.num_fields)]
    fields = [pa.field(kind.field(i).name, member.type) for i, member in enumerate(members)]
    spelled = pa.union(fields, kind.mode, kind.type_codes)
    return pa.Array.from_buffers(spelled, len(array), union_places(array), children=members)


def _is_list(kind: pa.DataType) -> bool:
    tests = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    views = (pa.types.is_list_view, pa.types.is_large_list_view)
    return any(is_kind(kind) for is_kind in (*tests, *views))
