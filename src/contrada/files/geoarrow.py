"""Native GeoArrow geometries, coordinates in nested lists, to WKB.

Both layouts of coordinates are read: separated (a struct of x and y) and interleaved (a list of
fixed size). A z is kept, an m is not. They are written as they stand, empty or not, without
judging them and without GEOS, which ends the process on some that are empty within: whoever decodes
the WKB looks at it first.
"""

import struct
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from contrada.deferred import compute as pc
from contrada.files.geojson_wkb import PARTS, WKB_CODES, Z_CODES
from contrada.model.geometry import tell_fault

_MemberPlaces = NDArray[np.int64]

NATIVE_TYPES = {
    name.lower(): name
    for name in ("Point", "LineString", "Polygon", "MultiPoint", "MultiLineString", "MultiPolygon")
}

LISTS = {"point": 0, "linestring": 1, "multipoint": 1, "polygon": 2, "multilinestring": 2}
_WKB_BYTES_MAX = 2**31 - 1  # of one array of Arrow's type for bytes


def is_native(kind: pa.DataType, encoding: str) -> bool:
    """Whether a type can hold geometries of the kind `encoding`: positions in lists."""
    for _ in range(LISTS.get(encoding, 3)):
        if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
            return False
        kind = kind.value_type
    if pa.types.is_fixed_size_list(kind):
        return 2 <= kind.list_size <= 4 and bool(pa.types.is_floating(kind.value_type))
    if not pa.types.is_struct(kind):
        return False
    numbers = {member.name for member in kind if pa.types.is_floating(member.type)}
    return numbers >= {"x", "y"} and len(numbers) == kind.num_fields


@dataclass(frozen=True, slots=True)
class _Nested:
    """The coordinates of geometries, and the lists around them, outermost first.

    A list is the places of its members, where it begins and, as the next begins there, ends.
    `is_holed` says of each geometry whether one of its lists or positions is null.
    """

    lists: list[_MemberPlaces]
    coordinates: NDArray[np.float64]
    is_holed: NDArray[np.bool_]


def encode_wkb(native: pa.Array, encoding: str, column: str) -> pa.Array:
    """Encode an array of native geometries, all of the kind `encoding`; nulls stay null.

    In place of one with a null inside stands what is wrong with it.
    """
    nested = _unnest(native.drop_null())
    data, starts = _write(nested, NATIVE_TYPES[encoding])
    lengths = np.zeros(len(native), np.int64)
    present = np.asarray(native.is_valid())
    lengths[present] = np.diff(starts, append=len(data))
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    validity = pa.array(present).buffers()[1] if native.null_count else None
    parts = [validity, pa.py_buffer(offsets), pa.py_buffer(data)]
    encoded = pa.Array.from_buffers(pa.binary(), len(native), parts)
    if not nested.is_holed.any():
        return encoded
    is_holed = np.zeros(len(native), bool)
    is_holed[present] = nested.is_holed
    told = tell_fault(column, "a part or a position of the geometry is null")
    return pc.if_else(is_holed, pa.scalar(told, pa.binary()), encoded)


def _unnest(native: pa.Array) -> _Nested:
    """Take geometries, none of them null, apart."""
    lists: list[_MemberPlaces] = []
    is_holed = np.zeros(len(native), bool)
    while pa.types.is_list(native.type) or pa.types.is_large_list(native.type):
        offsets = np.asarray(native.offsets, np.int64)
        native = native.values.slice(offsets[0], offsets[-1] - offsets[0])
        lists.append(offsets - offsets[0])
        if native.null_count:
            is_holed[_find_outermost(lists, np.asarray(native.is_null()))] = True
    return _Nested(lists, _coordinates(native), is_holed)


def _find_outermost(lists: list[_MemberPlaces], is_meant: NDArray[np.bool_]) -> _MemberPlaces:
    """Return the geometries in which some of the innermost members are."""
    members = np.flatnonzero(is_meant)
    for starts in reversed(lists):
        members = np.searchsorted(starts, members, side="right") - 1
    return members


def _coordinates(positions: pa.Array) -> NDArray[np.float64]:
    """Return coordinates as an array of shape (n, 2) or (n, 3); null is NaN."""
    if pa.types.is_struct(positions.type):
        names = [name for name in "xyz" if positions.type.get_field_index(name) >= 0]
        columns = [np.asarray(pc.struct_field(positions, name)) for name in names]
        return np.column_stack(columns).astype("<f8")
    size = positions.type.list_size
    has_z = "z" in positions.type.value_field.name or (
        size == 3 and "m" not in positions.type.value_field.name
    )
    # Not `flatten`, which leaves out what is null.
    values = positions.values.slice(positions.offset * size, len(positions) * size)
    flat = np.asarray(values, dtype="<f8").reshape(-1, size)
    return np.ascontiguousarray(flat[:, : 3 if has_z else 2])


def _write(nested: _Nested, kind: str) -> tuple[NDArray[np.uint8], _MemberPlaces]:
    """Return the WKB of all geometries, one after the other, and where each begins."""
    count, dimension = nested.coordinates.shape
    lists, heads = _list_heads(nested, kind)
    before = [np.arange(count + 1) * (8 * dimension)]  # bytes before each member, outermost first
    for places, head in zip(reversed(lists), reversed(heads), strict=True):
        own = np.arange(len(places)) * head.shape[1]
        before.insert(0, own + before[0][places])
    total = int(before[0][-1])
    if total > _WKB_BYTES_MAX:
        raise pa.ArrowInvalid(f"a batch would take {total:,} bytes as WKB; pass smaller batches")
    data = np.empty(total, np.uint8)
    is_coordinate = np.ones(total, bool)
    starts = first = before[0][:-1]
    for level, (places, head) in enumerate(zip(lists, heads, strict=True)):
        at = starts[:, None] + np.arange(head.shape[1])
        data[at] = head
        is_coordinate[at] = False
        inside = before[level + 1]
        base = starts + head.shape[1] - inside[places[:-1]]
        starts = np.repeat(base, np.diff(places)) + inside[:-1]
    data[is_coordinate] = nested.coordinates.view(np.uint8).reshape(-1)
    return data, first


def _list_heads(nested: _Nested, kind: str) -> tuple[list[_MemberPlaces], list[NDArray[np.uint8]]]:
    """Return the lists of each level, and what WKB has before the members of each list."""
    count, dimension = nested.coordinates.shape
    kinds = [kind, *([PARTS[kind]] if kind in PARTS else [])]
    lists = [*nested.lists]
    if kinds[-1] == "Point":
        lists.append(np.arange(count + 1))  # each position has a head of its own
    heads = []
    for places, own in zip_longest(lists, kinds):  # rings have no kind
        columns = [np.diff(places).astype("<u4").view(np.uint8).reshape(-1, 4)]
        if own is not None:
            code = WKB_CODES[own] + (Z_CODES if dimension == 3 else 0)
            named = np.frombuffer(struct.pack("<BI", 1, code), np.uint8)
            columns.insert(0, np.broadcast_to(named, (len(places) - 1, len(named))))
        heads.append(np.hstack(columns[:1] if own == "Point" else columns))
    return lists, heads
