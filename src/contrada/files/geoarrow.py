"""Native GeoArrow geometries, coordinates in nested lists, to WKB.

Both layouts of coordinates are read: separated (a struct of x and y) and interleaved (a list of
fixed size). A z is kept, an m is not.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import shapely
from numpy.typing import NDArray

Offsets = tuple[NDArray[np.int64], ...]

NATIVE_TYPES = {
    "point": shapely.GeometryType.POINT,
    "linestring": shapely.GeometryType.LINESTRING,
    "polygon": shapely.GeometryType.POLYGON,
    "multipoint": shapely.GeometryType.MULTIPOINT,
    "multilinestring": shapely.GeometryType.MULTILINESTRING,
    "multipolygon": shapely.GeometryType.MULTIPOLYGON,
}


def encode_wkb(native: pa.Array, encoding: str) -> pa.Array:
    """WKB of an array of native geometries, all of the kind `encoding`; nulls stay null."""
    present = np.asarray(native.is_valid())
    offsets, leaves = _unnest(native.drop_null())
    geometries = shapely.from_ragged_array(NATIVE_TYPES[encoding], _coordinates(leaves), offsets)
    encoded = np.full(len(native), None, dtype=object)
    encoded[present] = shapely.to_wkb(geometries)
    return pa.array(encoded, pa.binary())


def _unnest(nested: pa.Array) -> tuple[Offsets, pa.Array]:
    """The offsets of each level of lists, innermost first as Shapely wants them, and the leaves."""
    levels: list[NDArray[np.int64]] = []
    while pa.types.is_list(nested.type) or pa.types.is_large_list(nested.type):
        offsets = np.asarray(nested.offsets, dtype=np.int64)
        nested = nested.values.slice(offsets[0], offsets[-1] - offsets[0])
        levels.append(offsets - offsets[0])
    return tuple(reversed(levels)), nested


def _coordinates(leaves: pa.Array) -> NDArray[np.float64]:
    """Coordinates as an array of shape (n, 2) or (n, 3)."""
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
