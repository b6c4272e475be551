"""CSV and JSON lines out: a column at a time to text, then the rows."""

import csv
import io
import json
import math
from collections.abc import Collection
from decimal import Decimal
from typing import IO, Any

import pyarrow as pa

from contrada.deferred import compute as pc
from contrada.deferred import csv as pa_csv
from contrada.files.arrow_types import is_binary, is_text
from contrada.files.geometry_text import decode_geometries, to_geojson, to_wkt


class CsvWriter:
    """UTF-8 CSV with a header; null is empty, geometries are WKT, lists and structs are JSON."""

    def __init__(
        self, file: IO[bytes], schema: pa.Schema, geometries: Collection[str], name: str
    ) -> None:
        self._file = file
        self._geometries = geometries
        self._name = name
        self._rows = 0
        header = io.StringIO()
        csv.writer(header, lineterminator="\n").writerow(schema.names)
        file.write(header.getvalue().encode())

    def write(self, table: pa.Table) -> None:
        """Write rows."""
        columns = []
        for field, column in zip(table.schema, table.columns, strict=True):
            if field.name in self._geometries:
                columns.append(to_wkt(decode_geometries(column, self._rows, self._name)))
            else:
                columns.append(_csv_column(column))
        self._rows += table.num_rows
        self._file.write(_csv_text(pa.table(columns, names=table.schema.names)))

    def finish(self) -> None:
        """Do nothing: nothing comes after the last row."""

    def abandon(self) -> None:
        """Do nothing: nothing is held."""


class JsonLinesWriter:
    """One JSON object per line; integers are exact, numbers that are not finite are null."""

    def __init__(self, file: IO[bytes], geometries: Collection[str], name: str) -> None:
        self._file = file
        self._geometries = geometries
        self._name = name
        self._rows = 0

    def write(self, table: pa.Table) -> None:
        """Write rows."""
        columns = []
        for field, column in zip(table.schema, table.columns, strict=True):
            if field.name in self._geometries:
                texts = to_geojson(decode_geometries(column, self._rows, self._name))
            else:
                texts = _json_texts(column)
            key = json.dumps(field.name, ensure_ascii=False)
            columns.append([f"{key}: {text}" for text in texts])
        self._rows += table.num_rows
        lines = ("{" + ", ".join(members) + "}\n" for members in zip(*columns, strict=True))
        self._file.write("".join(lines).encode())

    def finish(self) -> None:
        """Do nothing: nothing comes after the last row."""

    def abandon(self) -> None:
        """Do nothing: nothing is held."""


def _csv_text(table: pa.Table) -> bytes:
    """Write lines without a header, quoted only where some value needs it: plain ids stay plain."""
    for style in ("none", "needed"):
        sink = pa.BufferOutputStream()
        options = pa_csv.WriteOptions(include_header=False, quoting_style=style)
        try:
            pa_csv.write_csv(table, sink, options)
        except pa.ArrowInvalid:
            if style == "needed":
                raise
            continue
        return bytes(sink.getvalue())
    raise AssertionError


def _csv_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _csv_column(column.cast(kind.value_type))
    if pa.types.is_timestamp(kind):
        return _iso_times(column)
    if pa.types.is_nested(kind):
        texts = [None if text == "null" else text for text in _json_texts(column)]
        return pa.array(texts, pa.large_string())
    if is_binary(kind):
        return pa.array([None if raw is None else raw.hex() for raw in column.to_pylist()])
    is_plain = pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_floating(kind)
    return column if is_plain else column.cast(pa.large_string())


def _iso_times(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Write ISO 8601 texts; a time with a zone is given in UTC."""
    if column.type.tz is not None:
        column = column.cast(pa.timestamp(column.type.unit, "UTC"))
    return pc.replace_substring(column.cast(pa.large_string()), " ", "T")


def _json_texts(column: pa.ChunkedArray) -> list[str]:
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _json_texts(column.cast(kind.value_type))
    if pa.types.is_timestamp(kind):
        return _json_texts(_iso_times(column))
    as_objects = {"maps_as_pydicts": "lossy"} if pa.types.is_nested(kind) else {}
    values = column.to_pylist(**as_objects)
    if pa.types.is_integer(kind):
        return ["null" if value is None else str(value) for value in values]
    write = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
    if is_text(kind) or pa.types.is_boolean(kind):
        return [write(value) for value in values]
    return [write(_plain(value)) for value in values]


def _plain(value: Any) -> Any:
    """Give the value in the types of JSON, inside lists and mappings too."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _plain(member) for key, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(member) for member in value]
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if value is None or isinstance(value, (bool, int, str)):
        return value
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
