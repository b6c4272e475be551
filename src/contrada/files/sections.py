"""Columns on disk that are used where they lie: NumPy arrays in one memory-mapped file.

This is format 2 of a snapshot. All processes that open a file share one copy of it, the one in the
system's cache. After the header of `snapshot_header.py`, whose own 8 bytes are the place of the
directory, come

    the columns, in the order of their names, little-endian and in C order,
    the directory, to the end of the file, as JSON in ASCII:
        {"columns": [{"dtype": "int64", "name": "a", "offset": 64, "shape": [3]}, …],
         "settings": {…}}

each at the next multiple of 64 bytes, after zeros. The same columns and settings give the same
bytes. What columns and settings mean is not known here.
"""

import mmap
import os
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from contrada.errors import InvalidInput
from contrada.files.output import Output
from contrada.files.section_directory import (
    Section,
    find_next_place,
    place_columns,
    read_directory,
    write_directory,
)
from contrada.files.snapshot_header import (
    HEADER_BYTES,
    AnyPath,
    DigestingFile,
    SnapshotHeader,
    opened,
    read_format,
    spell_path,
    spell_settings,
)

__all__ = ["SECTIONS_FORMAT", "Sections", "open_sections", "read_format", "write_sections"]

SECTIONS_FORMAT = 2
_PLACE = struct.Struct("<Q")
_NO_ROWS = pa.schema([])
_PIECE_BYTES = 2**20  # written and digested while they are in the processor's cache


@dataclass(frozen=True, slots=True, eq=False)
class Sections:
    """An open file of columns: read-only views, each of which keeps the whole file mapped.

    `nbytes` is the length of the file. A file that is replaced stays as it was for whoever has it
    open. To another process goes the path, which it opens for itself.
    """

    name: str
    digest: str
    settings: Mapping[str, Any]
    columns: Mapping[str, NDArray[Any]]
    nbytes: int


def write_sections(
    path: AnyPath, settings: Mapping[str, Any], columns: Mapping[str, NDArray[Any]]
) -> None:
    """Write columns and settings to a file, whole or not at all.

    Columns have one or two dimensions and a type of `section_directory.py`. Their order does not
    matter.
    """
    name = spell_path(path)
    stated = spell_settings(settings, name)
    try:
        sections = place_columns(columns)
        directory = write_directory(sections, stated)
    except InvalidInput as fault:
        raise InvalidInput(f"{name}: cannot be written: {fault.message}") from None
    target = Path(os.path.realpath(name))
    with Output(target, _NO_ROWS, lambda file: _SectionsWriter(file, columns, sections, directory)):
        pass  # there are no rows: all is written at the end


def open_sections(path: AnyPath, *, verify: bool = True) -> Sections:
    """Open a file of columns; one that is damaged, cut off or of another format is refused.

    Without `verify` the digest is not computed, which takes a second for each 1.5 GB: that is for
    a file that was verified before. Its columns may then hold anything, but lie inside the file.
    """
    name = spell_path(path)
    with opened(name) as file:
        header = SnapshotHeader.read(file, name)
        header.expect(SECTIONS_FORMAT, name)
        whole = np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)
    header.check_length(len(whole), name)
    if verify:
        header.check_digest(whole.data, name)
    (place,) = _PLACE.unpack(header.own)
    try:
        sections, settings = read_directory(whole[place:].data, place)
        columns = {section.name: _view(whole, section) for section in sections}
    except InvalidInput as fault:
        raise InvalidInput(f"{name}: is not a valid snapshot: {fault.message}") from None
    return Sections(name, header.digest.hex(), settings, MappingProxyType(columns), len(whole))


def _view(whole: NDArray[np.uint8], section: Section) -> NDArray[Any]:
    """Return a column as a view of the file, which it keeps mapped."""
    content = whole[section.offset : section.end]
    # NumPy and compiled code take 0 and 1 for granted; what another byte does is anybody's guess.
    if section.dtype == np.bool_ and content.max(initial=0) > 1:
        raise InvalidInput(
            f"column {section.name!r} is of type 'bool' and holds the byte {content.max()}"
        )
    return content.view(section.dtype).reshape(section.shape)


class _SectionsWriter:
    """A file of columns, all of which is written at the end; the header last."""

    def __init__(
        self,
        file: IO[bytes],
        columns: Mapping[str, NDArray[Any]],
        sections: Sequence[Section],
        directory: bytes,
    ) -> None:
        self._file = DigestingFile(file)
        self._columns = columns
        self._sections = sections
        self._directory = directory

    def write(self, table: pa.Table) -> None:
        """Do nothing: there are no rows."""

    def finish(self) -> None:
        """Write the columns, the directory, then the header."""
        self._file.write(bytes(HEADER_BYTES))
        for section in self._sections:
            self._pad(section.offset)
            self._write_column(np.ascontiguousarray(self._columns[section.name], section.dtype))
        place = find_next_place(self._sections)
        self._pad(place)
        self._file.write(self._directory)
        self._file.write_header(SECTIONS_FORMAT, _PLACE.pack(place))

    def _pad(self, place: int) -> None:
        self._file.write(bytes(place - self._file.length))

    def _write_column(self, column: NDArray[Any]) -> None:
        content = column.reshape(-1).view(np.uint8)
        for start in range(0, len(content), _PIECE_BYTES):
            self._file.write(content[start : start + _PIECE_BYTES])

    def abandon(self) -> None:
        """Do nothing: nothing is held."""
