"""Arrow columns as attributes of events: found by name or path, and as Python's values.

A dotted name means the same as for a single event (`find_value`): in each row the first value that
is not null, of the column of that very name, then along the paths, the shortest beginning first.
"""

from collections.abc import Iterator, Mapping
from itertools import islice, pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from contrada.deferred import compute as pc
from contrada.errors import InvalidInput
from contrada.limits import COLUMN_DEPTH_MAX
from contrada.model.event import find_beginnings, find_value
from contrada.model.instant import Instant

Columns = Mapping[str, pa.Array]


def find_column(columns: Columns, name: str) -> pa.Array | None:
    """Find an attribute as one column; None where no row has it, or only rows decide."""
    if "." not in name:
        return columns.get(name)
    found: list[pa.Array] = []
    for candidate in _candidates(columns, name):
        if candidate is None:
            return None
        found.append(candidate)
        if candidate.null_count == 0:
            break
    telling = [array for array in found if array.null_count < len(array)] or found[:1]
    return _merge(telling) if len(telling) > 1 else next(iter(telling), None)


def find_rows(columns: Columns, name: str) -> list[Any] | None:
    """Find the values of an attribute row by row; None where no column can have it."""
    read = [*find_beginnings(columns, name), *([name] if name in columns else [])]
    if not read:
        return None
    rows = zip(*(as_values(columns[path], f"column {path!r}") for path in read), strict=True)
    return [find_value(dict(zip(read, row, strict=True)), name) for row in rows]


def _candidates(columns: Columns, name: str) -> Iterator[pa.Array | None]:
    """List the columns that may have an attribute, in the order in which a row asks them.

    None stands for one that only its values can decide.
    """
    pending: list[tuple[Columns | pa.Array, str]] = [(columns, name)]
    while pending:
        outer, rest = pending.pop()
        if isinstance(outer, pa.Array) and pa.types.is_dictionary(outer.type):
            outer = outer.dictionary_decode()
        if isinstance(outer, pa.StructArray):
            outer = _fields(outer)
        if isinstance(outer, pa.Array):
            if _is_plain_map(outer.type):
                yield pc.map_lookup(outer, pa.scalar(rest, outer.type.key_type), "last")
            elif _may_hold_mappings(outer.type):
                yield None
            continue
        if rest in outer:
            yield _with_plain_nulls(outer[rest])
        for path in reversed(find_beginnings(outer, rest)):
            pending += [(outer[path], rest[len(path) + 1 :])]


def _fields(array: pa.StructArray) -> dict[str, pa.Array]:
    """Return the fields of a struct, null where it is; the last of a name counts."""
    names = (field.name for field in array.type)
    return dict(zip(names, struct_members(array), strict=True))


def struct_members(array: pa.StructArray) -> list[pa.Array]:
    """Return the fields of a struct, without what they hold where the struct is null.

    Those that have no nulls of their own, such as unions, stay as they are: to flatten them ends
    the process.
    """
    kinds = [field.type for field in array.type]
    if array.null_count and not any(map(_is_never_null, kinds)):
        return list(array.flatten())
    return [
        array.field(i)
        if not array.null_count or _is_never_null(kind)
        else pc.struct_field(array, [i])
        for i, kind in enumerate(kinds)
    ]


def _is_never_null(kind: pa.DataType) -> bool:
    kind = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
    return bool(pa.types.is_union(kind) or pa.types.is_run_end_encoded(kind))


def _with_plain_nulls(array: pa.Array) -> pa.Array | None:
    """Return a column whose nulls Arrow knows of; None where they are hidden in the values."""
    if pa.types.is_dictionary(array.type):
        if _is_shared_text(array.type.value_type) and not array.dictionary.null_count:
            return array  # a long value stays one, however many rows have it
        array = array.dictionary_decode()
    return None if _is_never_null(array.type) else array


def _is_shared_text(kind: pa.DataType) -> bool:
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary)
    return any(is_kind(kind) for is_kind in (*tests, pa.types.is_large_binary))


def _is_plain_map(kind: pa.DataType) -> bool:
    """Whether keys are texts, and no path leads into the values."""
    if not pa.types.is_map(kind) or _may_hold_mappings(kind.item_type):
        return False
    if pa.types.is_struct(kind.item_type) or pa.types.is_dictionary(kind.item_type):
        return False
    return bool(pa.types.is_string(kind.key_type) or pa.types.is_large_string(kind.key_type))


def _may_hold_mappings(kind: pa.DataType) -> bool:
    """Whether values of a type that is not a struct may be mappings to Python."""
    return bool(
        pa.types.is_map(kind)
        or pa.types.is_interval(kind)
        or pa.types.is_union(kind)
        or pa.types.is_run_end_encoded(kind)
        or isinstance(kind, pa.BaseExtensionType)
    )


def _merge(arrays: list[pa.Array]) -> pa.Array | None:
    """Take the first value of each row that is not null; None where the types differ."""
    arrays = [a.dictionary_decode() if pa.types.is_dictionary(a.type) else a for a in arrays]
    if any(array.type != arrays[0].type for array in arrays):
        return None
    try:
        return pc.coalesce(*arrays)
    except pa.ArrowNotImplementedError:
        return None


_LIST_TYPES = (
    pa.types.is_list,
    pa.types.is_large_list,
    pa.types.is_fixed_size_list,
    pa.types.is_list_view,
    pa.types.is_large_list_view,
)
_TICKS_NS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}


def used_values(array: pa.DictionaryArray) -> tuple[NDArray[np.int64], pa.Array]:
    """Return the values of a dictionary that rows have, and the number of each row's; -1 for null.

    A dictionary may be far longer than the rows that are looked at.
    """
    codes = np.asarray(array.indices.cast(pa.int64()).fill_null(-1), np.int64)
    used = np.unique(codes[codes >= 0])
    if len(used) == len(array.dictionary):
        return codes, array.dictionary
    places = np.where(codes >= 0, np.searchsorted(used, codes), -1)
    return places, array.dictionary.take(pa.array(used))


def as_values(array: pa.Array, place: str = "a column") -> list[Any]:
    """Return a column as Python values; one that is nested too deep is refused."""
    if _is_deeper(array.type, COLUMN_DEPTH_MAX):
        raise InvalidInput(
            f"{place}: its type is nested deeper than {COLUMN_DEPTH_MAX} levels (COLUMN_DEPTH_MAX)"
        )
    return _as_values(array)


def _is_deeper(kind: pa.DataType, depth: int) -> bool:
    """Whether a type has more levels than some, without recursion."""
    pending = [(kind, 0)]
    while pending:
        kind, level = pending.pop()
        if level > depth:
            return True
        if pa.types.is_dictionary(kind):
            pending.append((kind.value_type, level))
        pending += [(kind.field(i).type, level + 1) for i in range(kind.num_fields)]
    return False


def _as_values(array: pa.Array) -> list[Any]:
    """Return an Arrow array as Python values; moments become instants, however deep they lie.

    Rows that share a value of a dictionary share the object.
    """
    if pa.types.is_dictionary(array.type):
        codes, known = used_values(array)
        objects = [*_as_values(known), None]
        return [objects[code] for code in codes.tolist()]
    if pa.types.is_date(array.type):
        array = array.cast(pa.timestamp("ms"))
    if pa.types.is_timestamp(array.type):
        size = _TICKS_NS[array.type.unit]
        ticks = array.cast(pa.int64()).to_pylist()
        return [None if tick is None else Instant(tick * size) for tick in ticks]
    if pa.types.is_struct(array.type):
        return _as_mappings(array)
    if pa.types.is_map(array.type):
        return _as_mappings_by_key(array)
    if any(is_list(array.type) for is_list in _LIST_TYPES):
        return _as_lists(array)
    if pa.types.is_union(array.type):
        return _as_members(array)
    if pa.types.is_duration(array.type):
        return _as_durations(array)
    values: list[Any] = array.to_pylist()
    if pa.types.is_interval(array.type):  # a tuple, but no array
        return [None if v is None else {"months": v[0], "days": v[1], "ns": v[2]} for v in values]
    return values


def _as_mappings(array: pa.Array) -> list[Any]:
    names = [field.name for field in array.type]
    fields = [_as_values(child) for child in struct_members(array)]
    rows = zip(array.is_valid().to_pylist(), *fields, strict=True)
    return [dict(zip(names, row, strict=True)) if is_valid else None for is_valid, *row in rows]


def _as_mappings_by_key(array: pa.MapArray) -> list[Any]:
    """Return maps as mappings of what a path can reach: the entries whose keys are texts."""
    offsets = array.offsets.to_pylist()
    entries = slice(offsets[0], offsets[-1])
    keys, values = _as_values(array.keys[entries]), _as_values(array.items[entries])
    rows: list[Any] = []
    for is_valid, (start, end) in zip(array.is_valid().to_pylist(), pairwise(offsets), strict=True):
        at = slice(start - offsets[0], end - offsets[0])
        pairs = zip(keys[at], values[at], strict=True)
        rows.append({k: v for k, v in pairs if isinstance(k, str)} if is_valid else None)
    return rows


def _as_members(array: pa.UnionArray) -> list[Any]:
    """Return what a union holds, each value as its member of the union has it."""
    if not len(array):
        return []
    kind, buffers, own = array.type, array.buffers(), slice(array.offset, array.offset + len(array))
    codes, places = np.frombuffer(buffers[1], np.int8)[own], np.arange(len(array))
    if kind.mode == "dense":
        places = np.frombuffer(buffers[2], np.int32)[own].astype(np.int64)
    rows: list[Any] = [None] * len(array)
    for number, code in enumerate(kind.type_codes):
        at = np.flatnonzero(codes == code)
        values = _as_values(array.field(number).take(pa.array(places[at])))
        for row, value in zip(at.tolist(), values, strict=True):
            rows[row] = value
    return rows


def _as_durations(array: pa.Array) -> list[Any]:
    """Return durations as NumPy's: Python's own end at a billion days."""
    durations = array.to_numpy(zero_copy_only=False)
    is_valid = array.is_valid().to_pylist()
    return [
        value if is_there else None for value, is_there in zip(durations, is_valid, strict=True)
    ]


def _as_lists(array: pa.Array) -> list[Any]:
    elements = iter(_as_values(array.flatten()))
    lengths = pc.list_value_length(array).to_pylist()
    return [None if n is None else list(islice(elements, n)) for n in lengths]
