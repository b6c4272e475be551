"""JSON objects written column by column: pieces of text and columns, joined by Arrow in one go.

Values are written as `text_writer` does; only those of the simplest types need no Python for each.
"""

import json
from collections.abc import Collection, Iterable

import numpy as np
import pyarrow as pa
import shapely

from contrada.deferred import compute as pc
from contrada.files.arrow_types import is_binary, is_text
from contrada.files.geometry_text import to_geojson
from contrada.files.text_writer import json_texts
from contrada.files.time_texts import iso_times
from contrada.matching.columns import find_points
from contrada.model.encodings import read_wkbs
from contrada.model.geometry import read_meant

_UNREADABLE = (shapely.errors.ShapelyError, ValueError, NotImplementedError)
_LAST_CONTROL, _QUOTE, _BACKSLASH = 0x1F, ord('"'), ord("\\")


class JsonPieces:
    """The text of many rows as it grows: what is the same in all of them, and columns."""

    def __init__(self, length: int) -> None:
        """Begin with nothing in each of so many rows."""
        self._length = length
        self._pieces: list[str | pa.Array] = [""]

    def add_text(self, text: str) -> None:
        """Add the same to every row."""
        if isinstance(self._pieces[-1], str):
            self._pieces[-1] += text
        else:
            self._pieces.append(text)

    def add_raw(self, texts: pa.Array) -> None:
        """Add to each row a text of its own, as it is; there are no nulls."""
        self._pieces.append(texts)

    def add_object(self, columns: Iterable[tuple[str, pa.Array]], shapes: Collection[str]) -> None:
        """Add to each row an object of its values; those of the columns `shapes` are geometries."""
        begin = "{"
        for name, column in columns:
            self.add_text(f"{begin}{json.dumps(name, ensure_ascii=False)}:")
            if name in shapes:
                self.add_geometries(column)
            else:
                self.add_values(column)
            begin = ","
        self.add_text("{}" if begin == "{" else "}")

    def add_values(self, column: pa.Array) -> None:
        """Add to each row its value as JSON."""
        kind = column.type
        if pa.types.is_dictionary(kind):
            self.add_values(column.dictionary_decode())
        elif column.null_count == len(column):
            self.add_text("null")
        elif is_text(kind):
            self._add_quoted(column, may_need_escapes=True)
        elif pa.types.is_timestamp(kind):
            self._add_quoted(iso_times(column), may_need_escapes=False)
        elif pa.types.is_date(kind):
            self._add_quoted(column, may_need_escapes=False)
        elif pa.types.is_integer(kind) or pa.types.is_boolean(kind):
            self._add_bare(column)
        elif pa.types.is_floating(kind):
            exact = column.cast(pa.float64())
            self._add_bare(pc.if_else(pc.is_finite(exact), exact, None))
        else:
            self.add_raw(pa.array(json_texts(column), pa.string()))

    def add_geometries(self, column: pa.Array) -> None:
        """Add to each row its geometry, WKB or text, as GeoJSON; what is none as it is."""
        if is_binary(column.type):
            x, y = np.full((2, len(column)), np.nan)
            find_points(column, x, y)
            if np.isfinite(x).all() and np.isfinite(y).all():
                self.add_text('{"type":"Point","coordinates":[')
                self._add_bare(pa.array(x))
                self.add_text(",")
                self._add_bare(pa.array(y))
                self.add_text("]}")
                return
        if is_binary(column.type) or is_text(column.type):
            self.add_raw(pa.array(_write_geometries(column), pa.string()))
        else:
            self.add_values(column)

    def join(self) -> pa.Array:
        """Return the text of each row."""
        pieces = [pa.scalar(p) if isinstance(p, str) else p for p in self._pieces if len(p)]
        if not any(isinstance(piece, pa.Array) for piece in pieces):
            return pa.array(["".join(p.as_py() for p in pieces)] * self._length, pa.string())
        return pc.binary_join_element_wise(*pieces, "")

    def _add_bare(self, column: pa.Array) -> None:
        texts = column.cast(pa.string())
        self.add_raw(pc.fill_null(texts, "null") if texts.null_count else texts)

    def _add_quoted(self, column: pa.Array, *, may_need_escapes: bool) -> None:
        texts = column.cast(pa.string())
        if may_need_escapes:
            texts = escape(texts)
        if texts.null_count:
            quoted = pc.binary_join_element_wise('"', texts, '"', "")
            self.add_raw(pc.fill_null(quoted, "null"))
            return
        self.add_text('"')
        self.add_raw(texts)
        self.add_text('"')


def escape(texts: pa.Array) -> pa.Array:
    """Escape what JSON does not allow between quotes; nulls stay."""
    _, ends, data = texts.buffers()
    if data is None or not len(texts):
        return texts
    bounds = np.frombuffer(ends, np.int32)[texts.offset :][: len(texts) + 1]
    letters = np.frombuffer(data, np.uint8)[bounds[0] : bounds[-1]]
    is_special = (letters <= _LAST_CONTROL) | (letters == _QUOTE) | (letters == _BACKSLASH)
    if not is_special.any():
        return texts
    coded = texts.dictionary_encode()
    written = [json.dumps(text, ensure_ascii=False)[1:-1] for text in coded.dictionary.to_pylist()]
    return pa.array(written, pa.string()).take(coded.indices)


def _write_geometries(column: pa.Array) -> list[str]:
    values = column.to_pylist()
    if is_binary(column.type):
        try:
            with np.errstate(invalid="ignore"):
                return to_geojson(read_wkbs(np.array(values, object)))
        except _UNREADABLE:
            pass
    return [_write_geometry(value) for value in values]


def _write_geometry(value: bytes | str | None) -> str:
    """Write one geometry; what cannot be read is a text, bytes in hexadecimal digits."""
    if value is None:
        return "null"
    read = read_meant(value)
    if isinstance(read, shapely.Geometry):
        return str(shapely.to_geojson(read))
    return json.dumps(value.hex() if isinstance(value, bytes) else value, ensure_ascii=False)
