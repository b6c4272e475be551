"""Ids: strings or 64-bit integers, one kind in a matcher."""

from collections.abc import Collection, Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from contrada.deferred import compute as pc
from contrada.errors import InvalidInput
from contrada.model.geometry import BAD_CELL, Fault
from contrada.model.subscription import Id
from contrada.model.unicode import is_unicode
from contrada.showing import brief

_INT_MAX = 2**63


def read_id(value: Any, place: str) -> Id:
    """Read one id; anything but a string or a 64-bit integer is refused."""
    if _is_numpy_integer(value):
        value = int(value)
    if isinstance(value, str):
        if not is_unicode(value):
            raise InvalidInput(f"the id {value!r} is not valid Unicode text", place=place)
        return value
    if value is None:
        raise InvalidInput("the id is missing", place=place)
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidInput(
            f"an id must be a string or a 64-bit integer, not {brief(value)}", place=place
        )
    if not -_INT_MAX <= value < _INT_MAX:
        shown = f"{value}" if value.bit_length() < 512 else f"of {value.bit_length()} bits"
        raise InvalidInput(f"the id {shown} does not fit in 64 bits", place=place)
    return value


def read_ids(values: Collection[Any], place: str) -> pa.Array:
    """Read ids from a collection or an Arrow column, as int64 or large strings."""
    if isinstance(values, pa.Array | pa.ChunkedArray):
        column = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
        ids = read_id_column(column, place)
        if ids.null_count:
            raise InvalidInput("an id is missing", place=place)
        return ids if pa.types.is_int64(ids.type) else ids.cast(pa.large_string())
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InvalidInput(f"must be a list of ids, not {brief(values)}", place=place)
    read = [read_id(value, place) for value in values]
    for value in read:
        if isinstance(value, str) != isinstance(read[0], str):
            kinds = "ids must be all strings or all integers"
            raise InvalidInput(f"{kinds}, but {brief(value)} follows {brief(read[0])}", place=place)
    return pa.array(read, pa.int64() if read and isinstance(read[0], int) else pa.large_string())


def as_key(value: Any) -> Id | None:
    """Return a value as the id that it could be; None where no id is equal to it."""
    if _is_numpy_integer(value):
        return int(value)
    is_id = isinstance(value, str | int) and not isinstance(value, bool)
    return value if is_id else None


def _is_numpy_integer(value: Any) -> bool:
    """Whether a value is a NumPy integer; durations, which are a kind of them, are not."""
    return isinstance(value, np.integer) and not isinstance(value, np.timedelta64)


def read_id_column(array: pa.Array, place: str) -> pa.Array:
    """Read a column of ids as int64 or string; nulls stay."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
        return array.cast(pa.string())
    if pa.types.is_integer(array.type):
        try:
            return array.cast(pa.int64())
        except pa.ArrowInvalid as error:
            raise InvalidInput(f"an id does not fit in 64 bits: {error}", place=place) from None
    if pa.types.is_null(array.type):
        return array.cast(pa.string())
    raise InvalidInput(f"an id must be a string or a 64-bit integer, not {array.type}", place=place)


def read_event_ids(array: pa.Array, column: str, source: str) -> tuple[pa.Array, dict[int, Fault]]:
    """Read a column of ids; those that are too large are null, and faults of their rows."""
    place = f"column {column!r}"
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if not pa.types.is_uint64(array.type):
        return read_id_column(array, f"{source}, {place}"), {}
    is_beyond = pc.fill_null(pc.greater_equal(array, pa.scalar(_INT_MAX, pa.uint64())), False)
    rows = np.flatnonzero(is_beyond.to_numpy(zero_copy_only=False)).tolist()
    reasons = {row: f"the id {array[row].as_py()} does not fit in 64 bits" for row in rows}
    faults = {row: Fault(BAD_CELL, reason, place) for row, reason in reasons.items()}
    return pc.if_else(is_beyond, None, array).cast(pa.int64()), faults


def id_type(ids: list[Id]) -> pa.DataType:
    """Return the Arrow type of ids of one kind."""
    return pa.int64() if ids and isinstance(ids[0], int) else pa.string()
