"""One output file, whole or not at all.

Rows go to a temporary file in the same folder, which takes the final name only when all is
written. On any failure it is removed and what was at the path stays as it was.
"""

import contextlib
import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Protocol, Self

import pyarrow as pa

from contrada.errors import InvalidInput, Unavailable, blame
from contrada.files.crs import spell_crs
from contrada.files.parquet_writer import GeoParquetWriter, PlainParquetWriter
from contrada.files.regular_files import check_replaceable
from contrada.files.text_writer import CsvWriter, JsonLinesWriter

WRITTEN_SUFFIXES = (".parquet", ".geoparquet", ".csv", ".jsonl", ".ndjson")


class Writer(Protocol):
    """A format, writing into an open file that it does not close."""

    def write(self, table: pa.Table) -> None:
        """Write rows; the table has the schema that the writer was made with."""

    def finish(self) -> None:
        """Write what belongs after the last row."""

    def abandon(self) -> None:
        """Let go of the file, which is about to be removed."""


class Output:
    """A file being written; a context manager, in which `write` may be called any number of times.

    Until the context ends without an exception there is nothing new at the path.
    """

    def __init__(
        self, path: Path, schema: pa.Schema, make_writer: Callable[[IO[bytes]], Writer]
    ) -> None:
        check_replaceable(path)
        self._path = path
        self._schema = schema
        self._make_writer = make_writer
        self._temporary = path.with_name(f".contrada-{secrets.token_hex(8)}.tmp")
        self._file: IO[bytes] | None = None
        self._writer: Writer | None = None

    def __enter__(self) -> Self:
        with self._all_or_nothing():
            self._file = self._temporary.open("xb")
            self._writer = self._make_writer(self._file)
        return self

    def write(self, rows: pa.RecordBatch | pa.Table) -> None:
        """Append rows; their columns are those of the schema, dictionary-encoded or not."""
        assert self._writer is not None, "write only inside the context"
        table = rows if isinstance(rows, pa.Table) else pa.Table.from_batches([rows])
        assert table.schema.names == self._schema.names, "columns are those of the schema"
        if not table.num_rows:
            return
        with self._all_or_nothing():
            self._writer.write(table.cast(self._schema))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            self._discard()
            return
        assert self._writer is not None
        assert self._file is not None
        with self._all_or_nothing():
            self._writer.finish()
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            self._temporary.replace(self._path)

    @contextlib.contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Discard what is written on any exception; name the file in what the user must act on."""
        try:
            yield
        except BaseException as fault:
            self._discard()
            if isinstance(fault, (OSError, pa.ArrowException)):
                reason = getattr(fault, "strerror", None) or fault
                raise blame(fault, f"{self._path}: cannot be written: {reason}") from fault
            raise

    def _discard(self) -> None:
        if self._writer is not None:
            self._writer.abandon()
            self._writer = None
        if self._file is not None:
            # What the file still holds back may not fit on the disk, and need not.
            with contextlib.suppress(OSError):
                self._file.close()
            self._temporary.unlink(missing_ok=True)


def open_output(
    path: str | os.PathLike[str],
    schema: pa.Schema,
    *,
    geometry_column: str | None = None,
    more_geometries: Sequence[str] = (),
    crs: str | None = None,
) -> Output:
    """Open a file for rows of `schema`, in the format of its suffix.

    `geometry_column`, the primary one, and `more_geometries` hold WKB or WKT; GeoParquet and JSON
    lines and CSV write them in their own way. Nothing is touched until the context is entered, but
    what can be refused is refused here.
    """
    name = os.fspath(path)
    final = Path(os.path.realpath(name))
    make_writer = find_writer(name, schema, geometry_column, more_geometries, spell_crs(crs, name))
    if not final.parent.is_dir():
        raise InvalidInput(f"{name}: there is no folder {final.parent}")
    if os.path.isdir(final):  # noqa: PTH112 - Path.is_dir raises where the name is too long
        raise InvalidInput(f"{name}: is a folder")
    if not os.access(final.parent, os.W_OK):
        raise Unavailable(f"{name}: the folder {final.parent} cannot be written to")
    return Output(final, schema, make_writer)


def find_writer(
    name: str, schema: pa.Schema, primary: str | None, others: Sequence[str], crs: str | None
) -> Callable[[IO[bytes]], Writer]:
    """Find the format of a suffix; return the function that makes a writer for a file."""
    geometries = [*([] if primary is None else [primary]), *others]
    suffix = Path(name).suffix.lower()
    if suffix not in WRITTEN_SUFFIXES:
        raise InvalidInput(f"{name}: unknown suffix; known suffixes: {', '.join(WRITTEN_SUFFIXES)}")
    for geometry in geometries:
        if geometry not in schema.names:
            raise InvalidInput(f'{name}: no column "{geometry}" to take geometries from')
    if suffix == ".geoparquet" and primary is None:
        raise InvalidInput(f"{name}: GeoParquet needs a geometry column; write .parquet instead")
    match suffix:
        case ".parquet":
            return lambda file: PlainParquetWriter(file, schema)
        case ".geoparquet":
            return lambda file: GeoParquetWriter(file, schema, primary or "", crs, name, others)
        case ".csv":
            return lambda file: CsvWriter(file, schema, geometries, name)
    return lambda file: JsonLinesWriter(file, geometries, name)
