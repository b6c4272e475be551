"""Texts and binaries as columns of a file: where each value starts, and the bytes of all.

NumPy has no arrays of values of different lengths. A column "a" of n of them is

    a.starts    int64, n + 1: from 0 to the number of bytes; a value ends where the next one starts
    a.bytes     uint8, the values one after another, texts in UTF-8
    a.is_there  bool, n: false for a null; only where there are nulls

which are just the buffers of Arrow, so that they come back without a copy.
"""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from contrada.arrays import Integers
from contrada.deferred import compute as pc
from contrada.errors import InvalidInput
from contrada.files.sections import Sections

_STARTS, _BYTES, _IS_THERE = ".starts", ".bytes", ".is_there"


def text_columns(name: str, texts: pa.Array) -> dict[str, NDArray[Any]]:
    """Return the columns of texts, to be written; the same texts have the same columns."""
    return _make_columns(name, texts.cast(pa.large_string()))


def binary_columns(name: str, binaries: pa.Array) -> dict[str, NDArray[Any]]:
    """Return the columns of binaries, to be written; the same binaries have the same columns."""
    return _make_columns(name, binaries.cast(pa.large_binary()))


def text_array(sections: Sections, name: str) -> pa.LargeStringArray:
    """Return the texts of a file, where they lie; refuse what is not UTF-8."""
    return _read_array(sections, name, pa.large_string())


def binary_array(sections: Sections, name: str) -> pa.LargeBinaryArray:
    """Return the binaries of a file, where they lie."""
    return _read_array(sections, name, pa.large_binary())


def _make_columns(name: str, values: pa.Array) -> dict[str, NDArray[Any]]:
    columns: dict[str, NDArray[Any]] = {}
    if values.null_count:
        columns[name + _IS_THERE] = values.is_valid().to_numpy(zero_copy_only=False)
        values = pc.fill_null(values, b"")  # under a null there may be anything
    _, starts_buffer, bytes_buffer = values.buffers()
    starts = np.zeros(1, np.int64)
    if len(values):
        starts = np.frombuffer(starts_buffer, np.int64)[values.offset :][: len(values) + 1]
    first, last = int(starts[0]), int(starts[-1])
    content = np.frombuffer(bytes_buffer or b"", np.uint8)
    columns[name + _STARTS] = starts - first if first else starts
    columns[name + _BYTES] = content[first:last]
    return columns


def _read_array(sections: Sections, name: str, kind: pa.DataType) -> pa.Array:
    starts = _find(sections, name + _STARTS, np.int64)
    content = _find(sections, name + _BYTES, np.uint8)
    _check_ends(starts, len(content), f"{sections.name}: column {name + _STARTS!r}")
    count = len(starts) - 1
    buffers = [_read_nulls(sections, name, count), pa.py_buffer(starts), pa.py_buffer(content)]
    array = pa.Array.from_buffers(kind, count, buffers)
    try:
        array.validate(full=True)  # that starts never decrease, and of texts that they are UTF-8
    except pa.ArrowInvalid as fault:
        raise InvalidInput(f"{sections.name}: column {name!r} is damaged: {fault}") from fault
    return array


def _check_ends(starts: Integers, length: int, place: str) -> None:
    if not len(starts):
        raise InvalidInput(f"{place} is empty: it must have at least a 0")
    first, last = int(starts[0]), int(starts[-1])
    if (first, last) != (0, length):
        raise InvalidInput(f"{place} goes from {first} to {last}, not from 0 to {length}")


def _read_nulls(sections: Sections, name: str, count: int) -> pa.Buffer | None:
    """Return Arrow's bits of what is there, or None where everything is."""
    column = name + _IS_THERE
    if column not in sections.columns:
        return None
    is_there = _find(sections, column, np.bool_)
    if len(is_there) != count:
        raise InvalidInput(
            f"{sections.name}: column {column!r} has {len(is_there)} values, not {count}"
        )
    return pa.py_buffer(np.packbits(is_there, bitorder="little"))


def _find(sections: Sections, name: str, kind: type[np.generic]) -> NDArray[Any]:
    """Return a column of one dimension; refuse a file that has none of this type."""
    column = sections.columns.get(name)
    expected = np.dtype(kind)
    if column is None:
        raise InvalidInput(f"{sections.name}: has no column {name!r}")
    if column.ndim != 1 or column.dtype != expected:
        raise InvalidInput(
            f"{sections.name}: column {name!r} is of {column.dtype} in {column.ndim} dimensions, "
            f"not of {expected} in one"
        )
    return column
