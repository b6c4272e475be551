"""Geometries of an output column, to the encoding that a format wants.

Every number is written so that reading it gives the same double.
"""

import numpy as np
import pyarrow as pa
import shapely

from contrada.arrays import Geometries
from contrada.errors import InvalidInput
from contrada.files.arrow_types import is_text
from contrada.model.encodings import WKT_DECIMALS, read_wkbs, read_wkts

_UNREADABLE = (shapely.errors.ShapelyError, TypeError, ValueError, NotImplementedError)


def decode_geometries(column: pa.ChunkedArray, first_row: int, name: str) -> Geometries:
    """Decode a column of WKB or WKT; nulls are None.

    `first_row` is the row of the output `name` at which the column begins.
    """
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    raw = np.array(column.to_pylist(), dtype=object)
    decode = read_wkts if is_text(column.type) else read_wkbs
    try:
        return decode(raw)
    except _UNREADABLE:
        for row in range(len(raw)):
            try:
                decode(raw[row : row + 1])
            except _UNREADABLE as fault:
                place = f"{name}: row {first_row + row}"
                raise InvalidInput(f"{place} has no readable geometry: {fault}") from fault
        raise


def to_wkt(geometries: Geometries) -> pa.Array:
    """Write WKT as an Arrow column."""
    return pa.array(shapely.to_wkt(geometries, rounding_precision=WKT_DECIMALS), pa.large_string())


def to_iso_wkb(geometries: Geometries) -> pa.Array:
    """Write ISO WKB, as GeoParquet asks for, as an Arrow column."""
    return pa.array(shapely.to_wkb(geometries, flavor="iso"), pa.large_binary())


def to_geojson(geometries: Geometries) -> list[str]:
    """Write GeoJSON texts, `null` where there is no geometry."""
    return [text or "null" for text in shapely.to_geojson(geometries)]
