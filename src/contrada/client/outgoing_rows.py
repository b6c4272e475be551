"""Rows of a table or file as GeoJSON Features, a column at a time.

The column `geometry` is the geometry of a Feature, `id` its id, and every other column a property,
whether it holds a geometry or not; what is null is left out. A row with a cell that cannot be
written, or that its file knows to be bad, is an event with a fault.
"""

import json
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import shapely

from contrada.client.outgoing_events import OutgoingEvent
from contrada.client.outgoing_shapes import spell_geometry
from contrada.deferred import compute as pc
from contrada.errors import InvalidInput
from contrada.files import Rows
from contrada.files.arrow_types import decoded_type, is_text
from contrada.files.geometry_text import decode_geometries, to_geojson
from contrada.files.text_writer import json_texts
from contrada.model.event import GEOMETRY

_NULL = "null"
_CELL_FAULTS = (ValueError, TypeError, ArithmeticError, NotImplementedError, pa.ArrowException)
_SHAPE_FAULTS = (*_CELL_FAULTS, shapely.errors.ShapelyError)

BadCells = dict[int, InvalidInput]  # of rows, by their place in a batch


def write_features(rows: Rows) -> Iterator[OutgoingEvent]:
    """Write each row as a Feature."""
    for batch, told in rows.judged(rows.schema.names):
        faults = {row: fault.as_error() for row, fault in told.items()}
        yield from _write_batch(batch, set(rows.geometry_columns), faults)


def _write_batch(
    batch: pa.RecordBatch, geometry_columns: set[str], faults: BadCells
) -> Iterator[OutgoingEvent]:
    geometries, ids = [_NULL] * batch.num_rows, [_NULL] * batch.num_rows
    names: list[str] = []
    columns: list[list[str]] = []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        is_spatial = name in geometry_columns
        texts = _write_column(name, column, faults, is_spatial)
        if name == GEOMETRY and is_spatial:
            geometries = texts
        elif name == "id" and _can_be_id(column.type):
            ids = texts
        else:
            names.append(f"{json.dumps(name, ensure_ascii=False)}:")
            columns.append(texts)
    for row, (geometry, id_) in enumerate(zip(geometries, ids, strict=True)):
        if row in faults:
            yield OutgoingEvent.bad(faults[row])
            continue
        texts = [column[row] for column in columns]
        members = ",".join(
            name + text for name, text in zip(names, texts, strict=True) if text != _NULL
        )
        own = "" if id_ == _NULL else f'"id":{id_},'
        yield OutgoingEvent(
            f'{{"type":"Feature",{own}"geometry":{geometry},"properties":{{{members}}}}}'
        )


def _write_column(name: str, column: pa.Array, faults: BadCells, is_spatial: bool) -> list[str]:
    """Write the cells of a column at once, or one by one where that fails, to find out which."""
    place = f"column {name!r}"
    if is_spatial:
        try:
            return to_geojson(decode_geometries(pa.chunked_array([column]), 0, ""))
        except _SHAPE_FAULTS:
            return _write_singly(column, place, faults, _write_geometry)
    _find_infinite(column, place, faults)
    try:
        return json_texts(column)
    except _CELL_FAULTS:
        return _write_singly(column, place, faults, _write_cell)


def _write_singly(
    column: pa.Array, place: str, faults: BadCells, write: Callable[[pa.Array], str]
) -> list[str]:
    texts = []
    for row in range(len(column)):
        text = _NULL
        try:
            text = write(column.slice(row, 1))
        except InvalidInput as error:
            faults.setdefault(row, error if error.place else error.within(place))
        texts.append(text)
    return texts


def _write_geometry(cell: pa.Array) -> str:
    try:
        (value,) = cell.to_pylist()
        return json.dumps(spell_geometry(value))
    except InvalidInput:
        raise
    except _SHAPE_FAULTS as fault:
        raise InvalidInput(f"cannot read the geometry: {fault}") from None


def _write_cell(cell: pa.Array) -> str:
    try:
        return json_texts(cell)[0]
    except _CELL_FAULTS as fault:
        raise InvalidInput(f"cannot be written as JSON: {fault}") from None


def _can_be_id(kind: pa.DataType) -> bool:
    kind = decoded_type(kind)
    return is_text(kind) or pa.types.is_integer(kind)


def _find_infinite(column: pa.Array, place: str, faults: BadCells) -> None:
    """Find the rows with an infinite number, in lists and mappings too."""
    kind = decoded_type(column.type)
    if pa.types.is_floating(kind):
        is_infinite = pc.is_inf(column.cast(kind).cast(pa.float64()))
        found = np.flatnonzero(np.asarray(pc.fill_null(is_infinite, False))).tolist()
    elif pa.types.is_nested(kind) and _may_hold_floats(kind):
        found = _find_infinite_members(column)
    else:
        return
    for row in found:
        error = InvalidInput("an infinite number cannot be written as JSON", place=place)
        faults.setdefault(row, error)


def _find_infinite_members(column: pa.Array) -> list[int]:
    try:
        values = column.to_pylist(maps_as_pydicts="lossy")
    except _CELL_FAULTS:
        return []  # which is found out when the cells are written
    return [row for row, value in enumerate(values) if _holds_infinite(value)]


def _may_hold_floats(kind: pa.DataType) -> bool:
    kind = decoded_type(kind)
    inner = (kind.field(index).type for index in range(kind.num_fields))
    return pa.types.is_floating(kind) or any(map(_may_hold_floats, inner))


def _holds_infinite(value: Any) -> bool:
    if isinstance(value, float):
        return math.isinf(value)
    if isinstance(value, dict):
        return any(map(_holds_infinite, value.values()))
    return isinstance(value, list | tuple) and any(map(_holds_infinite, value))
