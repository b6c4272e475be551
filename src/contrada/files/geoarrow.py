"""Native GeoArrow geometries, coordinates in nested lists, to WKB.

Both layouts of coordinates are read: separated (a struct of x and y) and interleaved (a list of
fixed size). A z is kept, an m is not.
"""

from typing import Any

import numpy as np
import pyarrow as pa
import shapely
from numpy.typing import NDArray
from shapely.errors import ShapelyError

from contrada.deferred import compute as pc
from contrada.files.geojson_wkb import WKB_CODES, write_wkb

Offsets = tuple[NDArray[np.int64], ...]

NATIVE_TYPES = {
    "point": shapely.GeometryType.POINT,
    "linestring": shapely.GeometryType.LINESTRING,
    "polygon": shapely.GeometryType.POLYGON,
    "multipoint": shapely.GeometryType.MULTIPOINT,
    "multilinestring": shapely.GeometryType.MULTILINESTRING,
    "multipolygon": shapely.GeometryType.MULTIPOLYGON,
}

LISTS = {"point": 0, "linestring": 1, "multipoint": 1, "polygon": 2, "multilinestring": 2}
WKB_NAMES = {name.lower(): name for name in WKB_CODES}


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


def encode_wkb(native: pa.Array, encoding: str) -> pa.Array:
    """Encode an array of native geometries, all of the kind `encoding`; nulls stay null."""
    present = np.asarray(native.is_valid())
    offsets, leaves = _unnest(native.drop_null())
    kind = NATIVE_TYPES[encoding]
    try:
        geometries = shapely.from_ragged_array(kind, _coordinates(leaves), offsets)
    except (ShapelyError, ValueError):
        return _encode_unbuilt(native, WKB_NAMES[encoding])
    encoded = np.full(len(native), None, dtype=object)
    encoded[present] = shapely.to_wkb(geometries)
    return pa.array(encoded, pa.binary())


def _encode_unbuilt(native: pa.Array, kind: str) -> pa.Array:
    """Encode geometries as they stand, where GEOS will not build one of them."""
    encoded = [
        None if nested is None else write_wkb({"type": kind, "coordinates": _to_lists(nested)})
        for nested in native.to_pylist()
    ]
    return pa.array(encoded, pa.binary())


def _to_lists(nested: Any) -> list[Any]:
    """Return positions as lists of x and y, in the same nesting."""
    if isinstance(nested, dict):
        return [nested["x"], nested["y"]]
    if nested and isinstance(nested[0], float):
        return list(nested[:2])
    return [_to_lists(member) for member in nested]


def _unnest(nested: pa.Array) -> tuple[Offsets, pa.Array]:
    """Return the offsets of each level of lists, innermost first as in Shapely, and the leaves."""
    levels: list[NDArray[np.int64]] = []
    while pa.types.is_list(nested.type) or pa.types.is_large_list(nested.type):
        offsets = np.asarray(nested.offsets, dtype=np.int64)
        nested = nested.values.slice(offsets[0], offsets[-1] - offsets[0])
        levels.append(offsets - offsets[0])
    return tuple(reversed(levels)), nested


def _coordinates(leaves: pa.Array) -> NDArray[np.float64]:
    """Return coordinates as an array of shape (n, 2) or (n, 3)."""
    if pa.types.is_struct(leaves.type):
        names = [name for name in "xyz" if leaves.type.get_field_index(name) >= 0]
        columns = [np.asarray(pc.struct_field(leaves, name)) for name in names]
        return np.column_stack(columns).astype(np.float64)
    size = leaves.type.list_size
    has_z = "z" in leaves.type.value_field.name or (
        size == 3 and "m" not in leaves.type.value_field.name
    )
    flat = np.asarray(leaves.flatten(), dtype=np.float64).reshape(-1, size)
    return flat[:, : 3 if has_z else 2]
