"""Snapshots on disk: rows and their settings, which come back as they were or are refused.

A snapshot is an Arrow IPC file, so that whatever reads Arrow can look into it. Before its first
message lie 64 bytes that readers of Arrow pass over, since they go by the footer at the end:

    16 bytes  `ARROW1`, two zeros, `CONTRADA`
     4        number of the format
     8        length of the file, header included
    32        SHA-256 of everything after the header, the digest of the snapshot
     4        CRC-32 of the header up to here

Numbers are little-endian. The same rows and settings give the same bytes. Nothing is parsed before
its checksum is known to be right. What rows and settings mean is not known here.
"""

import contextlib
import hashlib
import json
import mmap
import os
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from contrada.errors import InvalidInput, blame
from contrada.files.arrow import lay_out
from contrada.files.arrow_types import check_names
from contrada.files.output import Output
from contrada.files.regular_files import check_regular
from contrada.files.rows import Rows
from contrada.showing import brief, brief_text

SUFFIXES = (".contrada",)
FORMAT = 1
_MAGIC = b"ARROW1\0\0CONTRADA"
_FIELDS = struct.Struct("<16sIQ32s")
_CHECKSUM = struct.Struct("<I")
HEADER_BYTES = _FIELDS.size + _CHECKSUM.size
_SETTINGS = b"contrada"

AnyPath = str | os.PathLike[str]


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


def _spell(path: AnyPath) -> str:
    """Return a path as text; refuse what cannot be the name of a file."""
    try:
        name = os.fsdecode(path)
        os.fsencode(name)
    except (TypeError, UnicodeError) as fault:
        raise InvalidInput(f"{brief(path)} is not a path: {fault}") from fault
    if "\0" in name:
        raise InvalidInput(f"{brief(path)} is not a path: it holds a null character")
    return name


def write_snapshot(
    path: AnyPath, schema: pa.Schema, settings: Mapping[str, Any], batches: Iterable[pa.RecordBatch]
) -> None:
    """Write rows and settings as a snapshot, whole or not at all."""
    name = _spell(path)
    try:
        stated = json.dumps(settings, sort_keys=True, default=_as_json)
    except (TypeError, ValueError) as fault:
        raise InvalidInput(f"{name}: the settings {settings} cannot be written: {fault}") from fault
    metadata = {**(schema.metadata or {}), _SETTINGS: stated}
    schema = schema.with_metadata(metadata)
    target = Path(os.path.realpath(name))
    with Output(target, schema, lambda file: _SnapshotWriter(file, schema)) as output:
        for batch in batches:
            output.write(batch)


def open_snapshot(path: AnyPath) -> Snapshot:
    """Open a snapshot; one that is damaged, cut off or of another format is refused."""
    name = _spell(path)
    try:
        check_regular(Path(name), name)
        with Path(name).open("rb") as file:
            header = _Header.read(file, name)
            content = pa.py_buffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except OSError as fault:
        raise blame(fault, f"{name}: cannot be read: {fault.strerror or fault}") from fault
    header.check(content, name)
    try:
        reader = pa.ipc.open_file(pa.BufferReader(content))
        settings = json.loads((reader.schema.metadata or {})[_SETTINGS])
        count = sum(reader.get_batch(i).num_rows for i in range(reader.num_record_batches))
    except (pa.ArrowException, OSError, ValueError, KeyError, RecursionError) as fault:
        raise InvalidInput(f"{name}: is not a snapshot inside: {brief(fault, 400)}") from fault
    if not isinstance(settings, dict):
        raise InvalidInput(f"{name}: its settings are not a JSON object: {brief_text(settings)}")
    check_names(reader.schema, name)
    return Snapshot(name, header.digest.hex(), reader.schema, settings, count, content)


def read_digest(path: AnyPath) -> str:
    """Return the digest that a snapshot states of itself, from its first 64 bytes alone."""
    name = os.fsdecode(path)
    try:
        with Path(name).open("rb") as file:
            return _Header.read(file, name).digest.hex()
    except OSError as fault:
        raise blame(fault, f"{name}: cannot be read: {fault.strerror or fault}") from fault


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
        lambda: map(layout.arrange, snapshot.batches()),
        narrow,
    )


@dataclass(frozen=True, slots=True)
class _Header:
    """What the first bytes state: they are right in themselves, the rest need not be."""

    length: int
    digest: bytes

    def packed(self) -> bytes:
        fields = _FIELDS.pack(_MAGIC, FORMAT, self.length, self.digest)
        return fields + _CHECKSUM.pack(zlib.crc32(fields))

    @classmethod
    def read(cls, file: IO[bytes], name: str) -> "_Header":
        """Read a header, or refuse one that cannot be trusted."""
        raw = file.read(HEADER_BYTES)
        start = raw[: len(_MAGIC)]
        if not raw or start != _MAGIC[: len(raw)]:
            raise InvalidInput(
                f"{name}: is not a snapshot: it begins with {start!r}, not {_MAGIC!r}"
            )
        if len(raw) < HEADER_BYTES:
            raise InvalidInput(
                f"{name}: is cut off: it has {len(raw)} bytes, and the header alone {HEADER_BYTES}"
            )
        _, format_, length, digest = _FIELDS.unpack_from(raw)
        (stated,) = _CHECKSUM.unpack_from(raw, _FIELDS.size)
        found = zlib.crc32(raw[: _FIELDS.size])
        if found != stated:
            raise InvalidInput(
                f"{name}: is damaged: the CRC-32 of its header is {found:08x}, not {stated:08x}"
            )
        if format_ != FORMAT:
            raise InvalidInput(
                f"{name}: is of format {format_}; this version of Contrada reads format {FORMAT}"
            )
        return cls(length, digest)

    def check(self, content: pa.Buffer, name: str) -> None:
        """Compare a whole file with what its header states."""
        if content.size != self.length:
            what = "is cut off" if content.size < self.length else "is too long"
            raise InvalidInput(f"{name}: {what}: it has {content.size} bytes, not {self.length}")
        found = hashlib.sha256(memoryview(content)[HEADER_BYTES:]).digest()
        if found != self.digest:
            raise InvalidInput(
                f"{name}: is damaged: its SHA-256 is {found.hex()}, not {self.digest.hex()}"
            )


class _SnapshotWriter:
    """An Arrow IPC file whose header is written last, when its digest is known."""

    def __init__(self, file: IO[bytes], schema: pa.Schema) -> None:
        self._file = file
        self._digesting = _DigestingFile(file)
        sink = pa.PythonFile(self._digesting, mode="w")
        sink.write(bytes(HEADER_BYTES))  # through Arrow, whose offsets count from the first byte
        self._ipc = pa.ipc.new_file(sink, schema)

    def write(self, table: pa.Table) -> None:
        """Write rows, in the batches in which they come."""
        self._ipc.write_table(table)

    def finish(self) -> None:
        """Write the footer, then the header."""
        self._ipc.close()
        header = _Header(self._digesting.length, self._digesting.sha256.digest())
        self._file.seek(0)
        self._file.write(header.packed())

    def abandon(self) -> None:
        """Close the writer, which may fail where the file is beyond help."""
        with contextlib.suppress(Exception):
            self._ipc.close()


class _DigestingFile:
    """A file being written that counts its bytes, and digests those after the header."""

    closed = False

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.length = 0
        self.sha256 = hashlib.sha256()

    def write(self, data: Any) -> int:
        written = self._file.write(data)
        if self.length >= HEADER_BYTES:
            self.sha256.update(data)
        self.length += written
        return written


def _as_json(value: Any) -> Any:
    """Convert a NumPy value to one that JSON has."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} {brief(value)} has no JSON")
