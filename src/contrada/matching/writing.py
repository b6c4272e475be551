"""Geometries of a column as they are written: WKB, as they came unless they were mended."""

from typing import Any

import numpy as np
import pyarrow as pa
import shapely
from numpy.typing import NDArray
from shapely.geometry.base import BaseGeometry

from contrada.arrays import Geometries, Positions
from contrada.deferred import compute as pc
from contrada.matching.arrow_values import as_values, used_values
from contrada.matching.columns import EventBatch, GeometryColumn, keep_readable, read_geometries
from contrada.model.encodings import WKT_DECIMALS, read_wkts
from contrada.model.geometry import as_array, read_geometry


def write_geometries(column: GeometryColumn) -> pa.Array:
    """Write the usable geometries of a column as WKB: flat, least byte first."""
    shapes = column.take(np.arange(len(column.x)))
    return pa.array(shapely.to_wkb(shapes, output_dimension=2, byte_order=1), pa.binary())


def can_be_geometry(kind: pa.DataType) -> bool:
    """Whether a column of a type may hold geometries: bytes, text, mappings, or some of each."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return _is_bytes(kind) or _is_text(kind) or _is_mixed(kind)


def as_wkb(array: pa.Array, *, repair: bool = False) -> pa.Array:
    """Return a column as WKB; what is not a geometry, which nobody judged, becomes null.

    With `repair`, invalid geometries are mended, and null where they cannot be. A dictionary stays
    one.
    """
    if pa.types.is_dictionary(array.type):
        codes, known = used_values(array)
        return _coded(codes, as_wkb(known, repair=repair))
    if _is_bytes(array.type):
        wkb = keep_readable(array)
    elif _is_text(array.type):
        wkb = _encode(_read_texts(array.to_pylist()))
    elif _is_mixed(array.type):
        wkb = _encode(as_array([_read(value) for value in as_values(array)]))
    else:
        return pa.nulls(len(array), pa.binary())
    return _repaired(wkb) if repair else wkb


def written_geometries(
    events: EventBatch, name: str, rows: Positions, *, repair: bool = False
) -> pa.Array:
    """Return the geometries of some events as WKB, those that were mended as they are now."""
    array, judged = events.own_column(name), events.judged(name)
    assert array is not None, "refused before anything runs"
    if judged is None:
        return as_wkb(array.take(pa.array(rows)), repair=repair)
    if judged.leads is None:
        return _written(array, judged, rows)
    firsts, codes = np.unique(judged.leads[rows], return_inverse=True)
    return _coded(codes, _written(array, judged, firsts))


def _written(array: pa.Array, judged: GeometryColumn, rows: Positions) -> pa.Array:
    taken = as_wkb(array.take(pa.array(rows)))
    if pa.types.is_dictionary(taken.type):
        taken = taken.dictionary_decode()
    is_mended = np.isin(rows, list(judged.mended))
    return _replaced(taken, is_mended, judged.take(rows[is_mended]))


def _coded(codes: Positions, known: pa.Array) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32(), mask=codes < 0), known)


def with_mended(
    batch: pa.RecordBatch, events: EventBatch, names: tuple[str, ...]
) -> pa.RecordBatch:
    """Return a batch in which some geometry columns, of WKB or WKT, have the mended ones."""
    for name in names:
        judged = events.judged(name)
        if judged is None or not judged.mended:
            continue
        at = batch.schema.get_field_index(name)
        is_mended = np.isin(np.arange(batch.num_rows), list(judged.mended))
        shapes = judged.take(np.flatnonzero(is_mended))
        batch = batch.set_column(at, name, _replaced(batch.column(at), is_mended, shapes))
    return batch


def _replaced(array: pa.Array, is_new: NDArray[np.bool_], shapes: Geometries) -> pa.Array:
    """Put geometries in the place of some, in the encoding of the column."""
    if not is_new.any():
        return array
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if _is_bytes(array.type):
        new = _encode(shapes).cast(array.type)
    elif _is_text(array.type):
        new = pa.array(shapely.to_wkt(shapes, rounding_precision=WKT_DECIMALS), array.type)
    else:
        return array
    return pc.replace_with_mask(array, pa.array(is_new), new)


def _repaired(wkb: pa.Array) -> pa.Array:
    judged = read_geometries(wkb, repair=True)
    rows = np.arange(len(wkb))
    is_lost = pa.array(np.isin(rows, list(judged.faults)))
    is_mended = np.isin(rows, list(judged.mended))
    kept = pc.if_else(is_lost, pa.scalar(None, wkb.type), wkb)
    return _replaced(kept, is_mended, judged.take(np.flatnonzero(is_mended)))


def _encode(shapes: Geometries) -> pa.Array:
    return pa.array(shapely.to_wkb(shapes, flavor="iso"), pa.binary())


def _read_texts(texts: list[str | None]) -> Geometries:
    """Read WKT, and one by one what is not: WKB in hexadecimal digits, or nothing."""
    shapes = read_wkts(np.array(texts, object), on_invalid="ignore")
    for i in np.flatnonzero(shapely.is_missing(shapes)):
        shapes[i] = None if texts[i] is None else _read(texts[i])
    return shapes


def _read(value: Any) -> BaseGeometry | None:
    read = read_geometry(value)
    return read if isinstance(read, BaseGeometry) else None


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_mixed(kind: pa.DataType) -> bool:
    """Whether only its values tell what a column holds: mappings, or a union of types."""
    return bool(pa.types.is_struct(kind) or pa.types.is_union(kind))
