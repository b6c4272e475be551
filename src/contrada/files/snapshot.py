"""Snapshots on disk: rows and their settings, which come back as they were or are refused.

A snapshot is an Arrow IPC file, so that whatever reads Arrow can look into it. Before its first
message lie the 64 bytes of `snapshot_header.py`, which readers of Arrow pass over, since they go
by the footer at the end. The same rows and settings give the same bytes. Nothing is parsed before
its checksum is known to be right. What rows and settings mean is not known here.
"""

import contextlib
import json
import mmap
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from contrada.errors import InvalidInput
from contrada.files.arrow import lay_out
from contrada.files.arrow_types import check_names
from contrada.files.output import Output
from contrada.files.rows import Rows
from contrada.files.snapshot_header import (
    HEADER_BYTES,
    AnyPath,
    DigestingFile,
    SnapshotHeader,
    opened,
    spell_path,
    spell_settings,
)
from contrada.showing import brief, brief_text

SUFFIXES = (".contrada",)
ROWS_FORMAT = 1
_SETTINGS = b"contrada"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A snapshot whose checksum was right, memory-mapped: its rows are read when asked for."""

    name: str
    digest: str
    schema: pa.Schema
    settings: Mapping[str, Any]
    count: int
    _content: pa.Buffer = field(repr=False, compare=False)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows in the batches in which they were written; nothing is copied."""
        try:
            reader = pa.ipc.open_file(pa.BufferReader(self._content))
            for number in range(reader.num_record_batches):
                batch = reader.get_batch(number)
                batch.validate(full=True)
                yield batch
        except (pa.ArrowException, OSError) as fault:
            raise InvalidInput(f"{self.name}: is not an Arrow table: {fault}") from fault


def write_snapshot(
    path: AnyPath, schema: pa.Schema, settings: Mapping[str, Any], batches: Iterable[pa.RecordBatch]
) -> None:
    """Write rows and settings as a snapshot, whole or not at all."""
    name = spell_path(path)
    metadata = {**(schema.metadata or {}), _SETTINGS: spell_settings(settings, name)}
    schema = schema.with_metadata(metadata)
    target = Path(os.path.realpath(name))
    with Output(target, schema, lambda file: _SnapshotWriter(file, schema)) as output:
        for batch in batches:
            output.write(batch)


def open_snapshot(path: AnyPath) -> Snapshot:
    """Open a snapshot; one that is damaged, cut off or of another format is refused."""
    name = spell_path(path)
    with opened(name) as file:
        header = SnapshotHeader.read(file, name)
        header.expect(ROWS_FORMAT, name)
        content = pa.py_buffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    header.check_length(content.size, name)
    header.check_digest(memoryview(content), name)
    try:
        reader = pa.ipc.open_file(pa.BufferReader(content))
        settings = json.loads((reader.schema.metadata or {})[_SETTINGS])
        count = sum(reader.get_batch(i).num_rows for i in range(reader.num_record_batches))
    except (pa.ArrowException, OSError, ValueError, KeyError, RecursionError) as fault:
        raise InvalidInput(f"{name}: is not a valid snapshot: {brief(fault, 400)}") from fault
    if not isinstance(settings, dict):
        raise InvalidInput(f"{name}: its settings are not a JSON object: {brief_text(settings)}")
    check_names(reader.schema, name)
    return Snapshot(name, header.digest.hex(), reader.schema, settings, count, content)


def read_snapshot(path: Path, name: str, *, batch_rows: int, columns: Sequence[str] | None) -> Rows:
    """Read a snapshot as rows, whatever its settings."""
    snapshot = open_snapshot(path)
    layout = lay_out(snapshot.schema, columns, name)

    def narrow(names: Sequence[str], _: Set[str]) -> Rows:
        return read_snapshot(path, name, batch_rows=batch_rows, columns=names)

    return Rows(
        name,
        layout.schema,
        layout.geometry_columns,
        layout.crs,
        snapshot.count,
        batch_rows,
        lambda: chain.from_iterable(map(layout.arrange, snapshot.batches())),
        narrow,
    )


class _SnapshotWriter:
    """An Arrow IPC file whose header is written last, when its digest is known."""

    def __init__(self, file: IO[bytes], schema: pa.Schema) -> None:
        self._file = DigestingFile(file)
        sink = pa.PythonFile(self._file, mode="w")
        sink.write(bytes(HEADER_BYTES))  # through Arrow, whose offsets count from the first byte
        self._ipc = pa.ipc.new_file(sink, schema)

    def write(self, table: pa.Table) -> None:
        """Write rows, in the batches in which they come."""
        self._ipc.write_table(table)

    def finish(self) -> None:
        """Write the footer, then the header."""
        self._ipc.close()
        self._file.write_header(ROWS_FORMAT)

    def abandon(self) -> None:
        """Close the writer, which may fail where the file is beyond help."""
        with contextlib.suppress(Exception):
            self._ipc.close()
