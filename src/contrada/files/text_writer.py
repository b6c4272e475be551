"""CSV and JSON lines out: a column at a time to text, then the rows."""

import csv
import io
import json
import math
from collections.abc import Collection, Sequence
from decimal import Decimal
from typing import IO, Any

import numpy as np
import pyarrow as pa

from contrada.deferred import compute as pc
from contrada.files.arrow_types import is_binary, is_text
from contrada.files.geometry_text import decode_geometries, to_geojson, to_wkt
from contrada.files.time_texts import iso_times, python_values


class CsvWriter:
    """UTF-8 CSV with a header; geometries are WKT, lists and structs are JSON.

    A text is quoted where it must be, and where it is empty: null is nothing at all.
    """

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
        self._file.write(_csv_text(columns))

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
                texts = json_texts(column)
            key = json.dumps(field.name, ensure_ascii=False)
            columns.append([f"{key}: {text}" for text in texts])
        self._rows += table.num_rows
        lines = ("{" + ", ".join(members) + "}\n" for members in zip(*columns, strict=True))
        self._file.write("".join(lines).encode())

    def finish(self) -> None:
        """Do nothing: nothing comes after the last row."""

    def abandon(self) -> None:
        """Do nothing: nothing is held."""


def _csv_text(columns: Sequence[pa.ChunkedArray | pa.Array]) -> bytes:
    """Write the lines of some rows."""
    rows = pc.binary_join_element_wise(*map(_quote, columns), _text(","), null_handling="replace")
    return _join(pc.binary_join_element_wise(rows, _text(""), _text("\n")))


def _quote(column: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray | pa.Array:
    """Return a column as text, in quotes where they are needed."""
    cells = column.cast(pa.large_string())
    if not is_text(column.type):
        return cells
    whole = _join(cells)
    is_empty = pc.equal(cells, "")
    if not pc.any(is_empty).as_py() and not any(mark in whole for mark in b'",\r\n'):
        return cells
    inside = pc.replace_substring(cells, '"', '""') if b'"' in whole else cells
    quoted = pc.binary_join_element_wise(_text('"'), inside, _text('"'), _text(""))
    return pc.if_else(pc.or_(is_empty, pc.match_substring_regex(cells, r'[",\r\n]')), quoted, cells)


def _text(text: str) -> pa.Scalar:
    return pa.scalar(text, pa.large_string())


def _join(texts: pa.ChunkedArray | pa.Array) -> bytes:
    """Join all texts into one."""
    chunks = texts.chunks if isinstance(texts, pa.ChunkedArray) else [texts]
    return b"".join(_join_chunk(chunk) for chunk in chunks if len(chunk))


def _join_chunk(texts: pa.LargeStringArray) -> bytes:
    _, offsets, data = texts.buffers()
    bounds = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    return b"" if data is None else bytes(data[int(bounds[0]) : int(bounds[-1])])


def _csv_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _csv_column(column.cast(kind.value_type))
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return iso_times(column)
    if pa.types.is_nested(kind):
        texts = [None if text == "null" else text for text in json_texts(column)]
        return pa.array(texts, pa.large_string())
    if is_binary(kind):
        return pa.array([None if raw is None else raw.hex() for raw in column.to_pylist()])
    is_plain = pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_floating(kind)
    return column if is_plain else column.cast(pa.large_string())


def json_texts(column: pa.ChunkedArray | pa.Array) -> list[str]:
    """Write each value of a column as JSON, whatever its type."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return json_texts(column.cast(kind.value_type))
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return json_texts(iso_times(column))
    values = python_values(column)
    if pa.types.is_integer(kind):
        return ["null" if value is None else str(value) for value in values]
    write = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
    if is_text(kind) or pa.types.is_boolean(kind):
        return [write(value) for value in values]
    return [write(_plain(value)) for value in values]


def _plain(value: Any) -> Any:
    """Convert the value to the types of JSON, inside lists and mappings too."""
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
