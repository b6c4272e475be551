"""How many bytes the rows of a batch take once every value is written out where it stands.

Arrow may hold a value once for many rows: in a dictionary, in runs, in views that overlap; and
nulls in lists take no room at all. A few hundred bytes could so become terabytes. Rows are cut
into pieces of bounded size before anybody writes them out.
"""

from collections.abc import Callable, Container, Iterator
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from contrada.deferred import compute as pc
from contrada.files.arrow_types import storage_type
from contrada.files.shared_values import is_shared
from contrada.limits import ROW_BYTES_MAX
from contrada.matching.arrow_values import struct_members

PIECE_BYTES = 64 * 2**20
_LOOK_ROWS = 2**20  # rows whose sizes are in memory at once
_ELEMENT_BYTES = 32  # of a list, and of a run, whatever it holds: as an object of Python's
_EXPANSION_MAX = 10  # a row may be large where its values are really there
_Places: TypeAlias = NDArray[np.int64]
_Sizes: TypeAlias = NDArray[np.float64]  # integers would overflow


def cut_rows(
    batch: pa.RecordBatch, compact: Container[str] = ()
) -> Iterator[tuple[pa.RecordBatch, int | None]]:
    """Yield the rows of a batch in pieces, each with its bytes once it is written out.

    A piece has at most `PIECE_BYTES`, unless it is one row. A row that is larger than
    `ROW_BYTES_MAX` only because its values are held once for many places is refused. The batch
    must be valid. Where its types hold every value where it stands, it is returned as it is, and
    nothing is counted. Neither is, in columns that are to stay compact, a dictionary of values that
    many rows share, which nobody writes out.
    """
    sharing = []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        parts = _leaves(column) if name in compact else [column]
        sharing += [
            part
            for part in parts
            if _may_share(part.type) and not (name in compact and is_shared(part))
        ]
    if not sharing:
        yield batch, None
        return
    held = batch.get_total_buffer_size()
    for first in range(0, batch.num_rows, _LOOK_ROWS):
        rows = min(_LOOK_ROWS, batch.num_rows - first)
        places = np.arange(first, first + rows + 1)
        try:
            before = np.sum([_bytes_before(column, places) for column in sharing], axis=0)
        except (IndexError, ValueError) as fault:  # what lies under a null is not validated
            raise pa.ArrowInvalid(f"its values do not fit together: {fault}") from fault
        except RecursionError as fault:
            raise pa.ArrowInvalid("a column is nested too deeply") from fault
        _refuse_large_rows(np.diff(before), first, held)
        piece_of = np.floor((before[1:] - before[0]) / PIECE_BYTES)
        starts = [0, *(np.flatnonzero(np.diff(piece_of)) + 1).tolist(), rows]
        for start, end in pairwise(starts):
            piece = batch.slice(first + start, end - start)
            yield piece, int(before[end] - before[start])


def _leaves(column: pa.Array) -> Iterator[pa.Array]:
    """Yield a column, or what a struct is made of."""
    if not isinstance(column, pa.StructArray):
        yield column
        return
    for member in struct_members(column):
        yield from _leaves(member)


def _refuse_large_rows(sizes: _Sizes, first: int, held: int) -> None:
    row = int(np.argmax(sizes))
    if sizes[row] > max(ROW_BYTES_MAX, _EXPANSION_MAX * held):
        raise pa.ArrowInvalid(
            f"row {first + row} of a batch of {held:,} bytes would take {sizes[row]:,.0f} bytes: "
            "it holds the same values many times; the limit for such a row is "
            f"{ROW_BYTES_MAX:,} (ROW_BYTES_MAX)"
        )


def _may_share(kind: pa.DataType) -> bool:
    """Whether a value of a type may stand in several places, or in a list take no room at all."""
    pending = [(kind, False)]
    while pending:
        kind, is_inside_list = pending.pop()
        kind = storage_type(kind)
        if type(kind) in _SHARING or kind in (pa.string_view(), pa.binary_view()):
            return True
        is_empty = pa.types.is_null(kind) or kind == pa.struct([])
        if is_inside_list and is_empty:
            return True
        is_inside_list |= type(kind) in _LISTS
        pending += [(kind.field(i).type, is_inside_list) for i in range(kind.num_fields)]
    return False


def _bytes_before(array: pa.Array, places: _Places) -> _Sizes:
    """Count the bytes of the values before each of some places of an array, in rising order."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    kind = array.type
    if pa.types.is_null(kind):
        return np.zeros(len(places))
    if isinstance(array, pa.StructArray):
        parts = [_bytes_before(part, places) for part in struct_members(array)]
        return np.sum(parts, axis=0) if parts else np.zeros(len(places))
    if type(kind) in _LISTS:
        return _bytes_of_lists(array, places)
    if isinstance(array, pa.RunEndEncodedArray):
        return _bytes_of_runs(array, places)
    count = _COUNTS.get(type(array))
    if count is None:
        return np.asarray(places * (kind.bit_width / 8))
    low, high = int(places[0]), int(places[-1])
    sizes = np.asarray(count(array.slice(low, high - low)))
    return np.concatenate([[0.0], np.cumsum(sizes, dtype=np.float64)])[places - low]


def _bytes_of_lists(array: pa.Array, places: _Places) -> _Sizes:
    if isinstance(array, pa.FixedSizeListArray):
        inside = (places + array.offset) * array.type.list_size
    else:
        inside = np.asarray(array.offsets, np.int64)[places]
    values = array.values if not isinstance(array, pa.MapArray) else _entries(array)
    return np.asarray(_bytes_before(values, inside) + _ELEMENT_BYTES * inside)


def _entries(array: pa.MapArray) -> pa.Array:
    return pa.StructArray.from_arrays([array.keys, array.items], names=["key", "value"])


def _lengths(array: pa.Array) -> _Sizes:
    return np.asarray(pc.binary_length(array).fill_null(0), np.float64)


def _view_lengths(array: pa.Array) -> _Sizes:
    """Return the lengths of texts or bytes of which each is 16 bytes that begin with a length."""
    views = array.buffers()[1]
    if views is None or not len(array):
        return np.zeros(len(array))
    end = 4 * (array.offset + len(array))
    lengths = np.frombuffer(views, np.int32, end)[4 * array.offset :: 4]
    return np.where(np.asarray(array.is_valid()), lengths, 0).astype(np.float64)


def _list_view_sizes(array: pa.Array) -> _Sizes:
    """Return the sizes of lists that may overlap: each begins and ends anywhere."""
    if not len(array):
        return np.zeros(0)
    lengths = np.asarray(pc.fill_null(pc.list_value_length(array), 0), np.int64)
    starts = np.where(lengths > 0, np.asarray(array.offsets, np.int64), 0)
    ends = np.concatenate([starts, starts + lengths])
    distinct, back = np.unique(ends, return_inverse=True)
    before = (_bytes_before(array.values, distinct) + _ELEMENT_BYTES * distinct)[back]
    return np.asarray(before[len(array) :] - before[: len(array)])


def _coded_sizes(array: pa.DictionaryArray) -> _Sizes:
    sizes = np.append(_sizes(array.dictionary), 0)
    codes = array.indices.cast(pa.int64()).fill_null(len(sizes) - 1)
    return np.asarray(sizes[np.asarray(codes)])


def _bytes_of_runs(array: pa.RunEndEncodedArray, places: _Places) -> _Sizes:
    """Count for runs without writing one of them out: their length is only a number."""
    ends = np.asarray(array.run_ends, np.int64)
    sizes = _sizes(array.values) + _ELEMENT_BYTES
    before = np.concatenate([[0.0], np.cumsum(np.diff(ends, prepend=0) * sizes)])
    rows = places + array.offset
    runs = np.searchsorted(ends, rows, side="right")
    starts = np.concatenate([[0], ends])[runs]
    return np.asarray(before[runs] + (rows - starts) * np.append(sizes, 0)[runs])


def _union_sizes(array: pa.UnionArray) -> _Sizes:
    buffers, own = array.buffers(), slice(array.offset, array.offset + len(array))
    of, at = np.frombuffer(buffers[1], np.int8)[own], np.arange(len(array))
    if array.type.mode == "dense":
        at = np.frombuffer(buffers[2], np.int32)[own].astype(np.int64)
    sizes = np.zeros(len(array))
    for child, code in enumerate(array.type.type_codes):
        rows = np.flatnonzero(of == code)
        sizes[rows] = _sizes(array.field(child))[at[rows]]
    return sizes


def _sizes(array: pa.Array) -> _Sizes:
    return np.diff(_bytes_before(array, np.arange(len(array) + 1)))


_SHARING = (
    *(pa.DictionaryType, pa.RunEndEncodedType, pa.ListViewType, pa.LargeListViewType),
    *(pa.UnionType, pa.DenseUnionType, pa.SparseUnionType),
)
_LISTS = (pa.ListType, pa.LargeListType, pa.FixedSizeListType, pa.MapType)
_COUNTS: dict[type[pa.Array], Callable[[pa.Array], _Sizes]] = {
    **dict.fromkeys((pa.StringArray, pa.LargeStringArray), _lengths),
    **dict.fromkeys((pa.BinaryArray, pa.LargeBinaryArray), _lengths),
    **dict.fromkeys((pa.StringViewArray, pa.BinaryViewArray), _view_lengths),
    **dict.fromkeys((pa.ListViewArray, pa.LargeListViewArray), _list_view_sizes),
    pa.DictionaryArray: _coded_sizes,
    pa.UnionArray: _union_sizes,
}
