"""Tables in memory, and the types of Arrow that the rows above may count on.

Whatever the source, text is `string` or `large_string`, bytes are `binary` or `large_binary`,
also inside lists, structs and maps; dictionaries stay. Geometries are WKB, or WKT where they came
as text.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pyarrow as pa

from contrada.errors import ContradaError, InvalidInput, blame
from contrada.files.arrow_types import check_names, plain_type
from contrada.files.expanding import cut_rows
from contrada.files.geoarrow import NATIVE_TYPES, encode_wkb
from contrada.files.geometry_columns import GeometryField, find_geometry_columns, warn_of_edges
from contrada.files.null_views import clear_null_views
from contrada.files.old_intervals import with_readable_intervals
from contrada.files.rows import Rows, keep_columns
from contrada.files.shared_values import (
    as_compact,
    as_compact_plain,
    is_shared,
    refuse_overlaps,
    validate_once,
    write_out,
)
from contrada.showing import brief_text, cut, listed


@dataclass(frozen=True, slots=True)
class Layout:
    """How the columns of a source become columns of rows."""

    schema: pa.Schema
    geometries: tuple[GeometryField, ...]
    is_decoded: bool = True  # geometries are not in dictionaries

    @property
    def geometry_columns(self) -> tuple[str, ...]:
        """Names of the columns that hold geometries, the primary one first."""
        return tuple(geometry.name for geometry in self.geometries)

    @property
    def crs(self) -> str | None:
        """The coordinate system that the primary geometry column states."""
        return self.geometries[0].crs if self.geometries else None

    def arrange(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield a batch of the source with the columns and types of this layout, in pieces.

        They are of bounded size once they are written out, however often the batch holds the same
        values; texts and bytes that many rows share are dictionaries all the same.
        """
        batch.validate()  # whether its columns are of one length
        wanted, known = self.schema.names, batch.schema.names  # which Arrow lists anew each time
        counts = Counter(known)
        for name in wanted:
            count = counts[name]
            if count != 1:  # a stream need not keep to its schema
                what = f'{count} columns "{name}"' if count else f'no column "{name}"'
                raise pa.ArrowInvalid(f"a batch has {what}; its columns: {listed(known)}")
        encodings = {geometry.name: geometry.encoding for geometry in self.geometries}
        own = with_readable_intervals(batch.select(wanted))
        compact = []
        for name in wanted:
            with _naming(own, name):
                column = own.column(name)
                validate_once(column)
                column = clear_null_views(column)
                refuse_overlaps(column)
                compact.append(as_compact(column))
        own = pa.RecordBatch.from_arrays(compact, names=wanted)
        for piece, _ in cut_rows(own, wanted):
            columns = []
            for name in wanted:
                with _naming(own, name):
                    kind = self.schema.field(name).type
                    encoding = encodings.get(name, "")
                    columns.append(_compact_column(piece.column(name), encoding, kind, name))
            yield pa.RecordBatch.from_arrays(columns, names=wanted)


@contextmanager
def _naming(batch: pa.RecordBatch, name: str) -> Iterator[None]:
    """Let an error of Arrow's name the column."""
    try:
        yield
    except MemoryError:
        raise
    except (pa.ArrowException, RecursionError) as fault:
        what = f'column "{name}" of type {cut(str(batch.column(name).type), 200)}'
        raise pa.ArrowInvalid(f"{what}: {fault}") from fault


def lay_out(
    schema: pa.Schema,
    columns: Sequence[str] | None,
    name: str,
    primary: str | None = None,
    *,
    is_decoded: bool = True,
) -> Layout:
    """Find the layout of a source's schema, of `columns` only where they are named."""
    check_names(schema, name)
    kept = keep_columns(schema, columns, name)
    fields = [schema.field(column) for column in kept]
    geometries = find_geometry_columns(schema, kept, name, primary)
    encodings = {geometry.name: geometry.encoding for geometry in geometries}
    target = [
        pa.field(field.name, _target_type(field.type, encodings.get(field.name, ""), is_decoded))
        for field in fields
    ]
    return Layout(pa.schema(target), tuple(geometries), is_decoded)


def read_table(
    source: Any, *, batch_rows: int, columns: Sequence[str] | None, is_decoded: bool = True
) -> Rows:
    """Read the rows of a table in memory or of an Arrow stream.

    Dictionaries of geometries are left as they are unless these are to be decoded. A source with a
    length can be read again and again; any other is taken for a stream. It is not asked for its
    length, which may cost a query.
    """
    name, primary = "table", None
    with _blaming(source, name):
        if hasattr(source, "active_geometry_name") and hasattr(source, "to_arrow"):
            primary = source.active_geometry_name
            source = pa.table(source.to_arrow(geometry_encoding="WKB"))
        elif isinstance(source, (pa.Array, pa.ChunkedArray)):
            source.validate(full=True)
        if not hasattr(source, "__arrow_c_stream__"):
            source = pa.Table.from_batches([pa.record_batch(source)])
        stream = _open_stream(source)
    layout = lay_out(stream.schema, columns, name, primary, is_decoded=is_decoded)
    warn_of_edges(layout.geometries, name)
    open_stream = _openings(stream, source, name)
    return Rows(
        name,
        layout.schema,
        layout.geometry_columns,
        layout.crs,
        source.num_rows if isinstance(source, (pa.Table, pa.RecordBatch)) else None,
        batch_rows,
        lambda: chain.from_iterable(map(layout.arrange, _pull(open_stream()))),
    )


@contextmanager
def _blaming(source: Any, name: str) -> Iterator[None]:
    """Blame a table for whatever its maker raises when it is opened."""
    try:
        yield
    except ContradaError:
        raise
    except Exception as fault:
        what = f"cannot read {type(source).__name__} as an Arrow table"
        raise blame(fault, f"{name}: {what}: {fault}") from fault


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


def _openings(
    first: pa.RecordBatchReader, source: Any, name: str
) -> Callable[[], Iterator[pa.RecordBatch]]:
    """Return a function that opens a source: first the stream that is open, since some sources,
    such as a query of DuckDB, have only one at a time.
    """
    left = [first]

    def open_stream() -> Iterator[pa.RecordBatch]:
        if left:
            return iter(left.pop())
        if not hasattr(type(source), "__len__"):
            raise InvalidInput(f"{name}: an Arrow stream can be read only once; pass a table")
        with _blaming(source, name):
            return iter(_open_stream(source))

    return open_stream


def _pull(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Take the batches of a stream; what its maker raises becomes an error of Arrow's."""
    try:
        yield from batches
    except (pa.ArrowException, ContradaError, OSError, MemoryError):
        raise
    except Exception as fault:
        raise pa.ArrowInvalid(f"{type(fault).__name__}: {brief_text(fault, 200)}") from fault


def _target_type(kind: pa.DataType, encoding: str, is_decoded: bool) -> pa.DataType:
    if encoding in NATIVE_TYPES:
        return pa.binary()
    kind = plain_type(kind)
    is_replaced = encoding and is_decoded and pa.types.is_dictionary(kind)
    return kind.value_type if is_replaced else kind


def _compact_column(array: pa.Array, encoding: str, kind: pa.DataType, name: str) -> pa.Array:
    if encoding in NATIVE_TYPES:
        native = array.storage if isinstance(array, pa.ExtensionArray) else array
        return encode_wkb(native, encoding, name)
    array = as_compact_plain(array)
    if not pa.types.is_dictionary(array.type) or pa.types.is_dictionary(kind):
        return array
    return array if is_shared(array) else write_out(array, kind)
