"""Tables in memory, and the types of Arrow that the rows above may count on.

Whatever the source, text is `string` or `large_string`, bytes are `binary` or `large_binary`,
also inside lists and structs; dictionaries stay. Geometries are WKB, or WKT where they came as
text.
"""

import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from contrada.deferred import compute as pc
from contrada.errors import InvalidInput
from contrada.files.arrow_types import check_names, is_uuid, plain_type, validate
from contrada.files.geoarrow import NATIVE_TYPES, encode_wkb
from contrada.files.geometry_columns import GeometryField, find_geometry_columns, warn_of_edges
from contrada.files.rows import Rows, keep_columns


@dataclass(frozen=True, slots=True)
class Layout:
    """How the columns of a source become columns of rows."""

    schema: pa.Schema
    geometries: tuple[GeometryField, ...]

    @property
    def geometry_columns(self) -> tuple[str, ...]:
        """Names of the columns that hold geometries, the primary one first."""
        return tuple(geometry.name for geometry in self.geometries)

    @property
    def crs(self) -> str | None:
        """The coordinate system that the primary geometry column states."""
        return self.geometries[0].crs if self.geometries else None

    def arrange(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch of the source with the columns and types of this layout."""
        batch.validate()  # whether its columns are of one length
        for field in self.schema:
            validate(batch.column(field.name))
        encodings = {geometry.name: geometry.encoding for geometry in self.geometries}
        columns = [
            _convert(batch.column(field.name), field.type, encodings.get(field.name, ""))
            for field in self.schema
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def lay_out(
    schema: pa.Schema, columns: Sequence[str] | None, name: str, primary: str | None = None
) -> Layout:
    """Find the layout of a source's schema, of `columns` only where they are named."""
    check_names(schema, name)
    kept = keep_columns(schema, columns, name)
    fields = [schema.field(column) for column in kept]
    geometries = find_geometry_columns(schema, kept, name, primary)
    encodings = {geometry.name: geometry.encoding for geometry in geometries}
    target = [
        pa.field(field.name, _target_type(field.type, encodings.get(field.name, "")))
        for field in fields
    ]
    return Layout(pa.schema(target), tuple(geometries))


def read_table(source: Any, *, batch_rows: int, columns: Sequence[str] | None) -> Rows:
    """Read the rows of a table in memory or of an Arrow stream.

    A source with a length can be read again and again; any other is taken for a stream.
    """
    name, primary = "table", None
    try:
        if hasattr(source, "active_geometry_name") and hasattr(source, "to_arrow"):
            primary = source.active_geometry_name
            source = pa.table(source.to_arrow(geometry_encoding="WKB"))
        elif isinstance(source, (pa.Array, pa.ChunkedArray)):
            source.validate(full=True)
        if not hasattr(source, "__arrow_c_stream__"):
            source = pa.Table.from_batches([pa.record_batch(source)])
        stream = _open_stream(source)
    except (pa.ArrowException, TypeError, ValueError) as fault:
        raise InvalidInput(f"{name}: {type(source).__name__} gives no table: {fault}") from fault
    layout = lay_out(stream.schema, columns, name, primary)
    warn_of_edges(layout.geometries, name)
    open_stream, count = _once(stream, name), None
    if hasattr(source, "__len__"):
        open_stream, count = lambda: _open_stream(source), len(source)
    return Rows(
        name,
        layout.schema,
        layout.geometry_columns,
        layout.crs,
        count,
        batch_rows,
        lambda: map(layout.arrange, open_stream()),
    )


def _open_stream(source: Any) -> pa.RecordBatchReader:
    """Open a table as a stream; pyarrow's own without exporting it, since that loses the sizes of
    buffers, and bytes that lie about them could no longer be found out.
    """
    if isinstance(source, pa.RecordBatchReader):
        return source
    if isinstance(source, pa.RecordBatch):
        source = pa.Table.from_batches([source])
    if isinstance(source, pa.Table):
        source.validate()  # a reader cuts it in pieces, and all columns must have them
        return source.to_reader()
    return pa.RecordBatchReader.from_stream(source)


def _once(stream: pa.RecordBatchReader, name: str) -> Callable[[], Iterator[pa.RecordBatch]]:
    left = [stream]

    def open_stream() -> Iterator[pa.RecordBatch]:
        if not left:
            raise InvalidInput(f"{name}: an Arrow stream can be read only once; pass a table")
        return iter(left.pop())

    return open_stream


def _target_type(kind: pa.DataType, encoding: str) -> pa.DataType:
    if encoding in NATIVE_TYPES:
        return pa.binary()
    kind = plain_type(kind)
    if not encoding:
        return kind
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return pa.binary() if pa.types.is_fixed_size_binary(kind) else kind


def _convert(array: pa.Array, target: pa.DataType, encoding: str) -> pa.Array:
    if isinstance(array, pa.ExtensionArray):
        if is_uuid(array.type):
            texts = [
                None if raw is None else str(uuid.UUID(bytes=raw))
                for raw in array.storage.to_pylist()
            ]
            return pa.array(texts, pa.string())
        array = array.storage
    if encoding in NATIVE_TYPES:
        return encode_wkb(array, encoding)
    if pa.types.is_run_end_encoded(array.type):
        array = pc.run_end_decode(array)
    return array if array.type == target else array.cast(target)
