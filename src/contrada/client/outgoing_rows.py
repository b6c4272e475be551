"""Rows of a table or file as GeoJSON Features, a column at a time.

The column `geometry` is the geometry of a Feature, `id` its id, and every other column a property,
whether it holds a geometry or not; what is null is left out.
"""

import json
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from contrada.deferred import compute as pc
from contrada.errors import InvalidInput
from contrada.files import Rows
from contrada.files.arrow_types import decoded_type, is_text
from contrada.files.geometry_text import decode_geometries, to_geojson
from contrada.files.text_writer import json_texts
from contrada.model.event import GEOMETRY

_NULL = "null"


def write_features(rows: Rows) -> Iterator[str]:
    """Write each row as the JSON text of a Feature; a bad cell is refused with its place."""
    first = 0
    for batch in rows.batches():
        yield from _write_batch(batch, rows, first)
        first += batch.num_rows


def _write_batch(batch: pa.RecordBatch, rows: Rows, first: int) -> Iterator[str]:
    geometries, ids = [_NULL] * batch.num_rows, [_NULL] * batch.num_rows
    names: list[str] = []
    columns: list[list[str]] = []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if name in rows.geometry_columns:
            chunked = pa.chunked_array([column])
            texts = to_geojson(decode_geometries(chunked, first, rows.name))
        else:
            _refuse_infinite(column, rows, name, first)
            texts = json_texts(column)
        if name == GEOMETRY and name in rows.geometry_columns:
            geometries = texts
        elif name == "id" and _can_be_id(column.type):
            ids = texts
        else:
            names.append(f"{json.dumps(name, ensure_ascii=False)}:")
            columns.append(texts)
    for row, (geometry, id_) in enumerate(zip(geometries, ids, strict=True)):
        texts = [column[row] for column in columns]
        members = ",".join(
            name + text for name, text in zip(names, texts, strict=True) if text != _NULL
        )
        own = "" if id_ == _NULL else f'"id":{id_},'
        yield f'{{"type":"Feature",{own}"geometry":{geometry},"properties":{{{members}}}}}'


def _can_be_id(kind: pa.DataType) -> bool:
    kind = decoded_type(kind)
    return is_text(kind) or pa.types.is_integer(kind)


def _refuse_infinite(column: pa.Array, rows: Rows, name: str, first: int) -> None:
    if not pa.types.is_floating(column.type):
        return
    infinite = np.flatnonzero(np.asarray(pc.fill_null(pc.is_inf(column), False)))
    if len(infinite):
        place = f"{rows.place(first + int(infinite[0]))}, column {name!r}"
        raise InvalidInput("an infinite number cannot be written as JSON", place=place)
