"""Parquet files that tasks add to a draft: what they look like, and how one is written."""

import contextlib
import io
import secrets
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import IO, TYPE_CHECKING, Protocol, Self

import pyarrow as pa

from contrada.errors import InvalidInput, blame
from contrada.files.parquet_writer import GeoParquetWriter, PlainParquetWriter
from contrada.spark.uris import is_remote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Draft(Protocol):
    """A folder that files are written to before anyone may read them."""

    @property
    def uri(self) -> str:
        """Where the files are meant to appear."""

    def open(self, name: str) -> AbstractContextManager[IO[bytes]]:
        """Open a new file; what a failure leaves of it is removed."""


@dataclass(frozen=True, slots=True)
class FileShape:
    """Columns of files, and which one makes them GeoParquet; None where they are plain Parquet."""

    schema: pa.Schema
    geometry: str | None = None
    crs: str | None = None

    @classmethod
    def of(
        cls, frame: "DataFrame", geometry: str | None, crs: str | None, name: str
    ) -> "FileShape":
        """Find the columns of files with the rows of a frame.

        A type that they cannot have is refused, before anything runs.
        """
        from pyspark.errors import PySparkException

        # Not of the frame itself: an action on the answer of a match ends its counts.
        empty = frame.sparkSession.createDataFrame([], frame.schema).limit(0)
        try:
            schema = pa.schema([field.remove_metadata() for field in empty.toArrow().schema])
            shape = cls(schema, geometry, crs)
            shape.start(io.BytesIO(), name).abandon()
        except (PySparkException, pa.ArrowException) as fault:
            raise InvalidInput(f"{name}: a column cannot be written: {fault}") from fault
        return shape

    def start(self, file: IO[bytes], place: str) -> PlainParquetWriter:
        """Begin a file."""
        if self.geometry is None:
            return PlainParquetWriter(file, self.schema)
        return GeoParquetWriter(file, self.schema, self.geometry, self.crs, place)


class PartFile(AbstractContextManager["PartFile"]):
    """The file that a task adds to a draft; it begins with its first rows.

    It is whole when the block that it is the context of has ended well, and gone if that fails.
    """

    def __init__(self, draft: Draft, shape: FileShape, number: int) -> None:
        self.name = f"part-{number:05}-{secrets.token_hex(8)}.parquet"
        self.rows = 0
        self._draft = draft
        self._shape = shape
        self._place = f"{draft.uri}: partition {number}"
        self._writer: PlainParquetWriter | None = None
        self._stack = ExitStack()

    def begin(self) -> PlainParquetWriter:
        """Make the file, unless it is there."""
        if self._writer is None:
            with _blaming(self._place, self._draft.uri):
                file = self._stack.enter_context(self._draft.open(self.name))
                self._writer = self._shape.start(file, self._place)
        return self._writer

    def write(self, batch: pa.RecordBatch) -> None:
        """Write rows; columns that the file does not have are left out."""
        if not batch.num_rows:
            return
        table = pa.Table.from_batches([batch]).select(self._shape.schema.names)
        with _blaming(self._place, self._draft.uri):
            self.begin().write(table.cast(self._shape.schema))
        self.rows += batch.num_rows

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        writer = self._writer
        if fault is None and writer is not None:
            with _blaming(self._place, self._draft.uri), self._stack, _abandoned_on_failure(writer):
                writer.finish()
            return
        if writer is not None:
            writer.abandon()
        self._stack.__exit__(kind, fault, trace)


@contextlib.contextmanager
def _blaming(place: str, uri: str) -> Iterator[None]:
    try:
        yield
    except OSError as fault:
        message = f"{place}: cannot be written: {fault}"
        raise blame(fault, message, is_remote=is_remote(uri)) from fault


@contextlib.contextmanager
def _abandoned_on_failure(writer: PlainParquetWriter) -> Iterator[None]:
    try:
        yield
    except BaseException:
        writer.abandon()
        raise
