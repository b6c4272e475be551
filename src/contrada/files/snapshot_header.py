"""The first 64 bytes of a snapshot, and what else its formats have in common.

    16 bytes  format 1: `ARROW1`, two zeros, `CONTRADA`
              format 2 and newer: `CONTRADA`, and 8 bytes that each format has for itself
     4        number of the format
     8        length of the file, header included
    32        SHA-256 of everything after the header, the digest of the snapshot
     4        CRC-32 of the header up to here

Numbers are little-endian. Format 1 holds rows (`snapshot.py`), format 2 columns (`sections.py`).
What these mean is not known here.
"""

import hashlib
import json
import os
import struct
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from contrada.errors import InvalidInput, blame
from contrada.files.regular_files import check_named, check_regular
from contrada.showing import brief

_CONTENTS = {1: "rows", 2: "columns"}  # of each format that is read
_MAGICS = (b"ARROW1\0\0CONTRADA", b"CONTRADA")  # of format 1, and of all others
_FIELDS = struct.Struct("<16sIQ32s")
_CHECKSUM = struct.Struct("<I")
HEADER_BYTES = _FIELDS.size + _CHECKSUM.size

AnyPath = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class SnapshotHeader:
    """What the first bytes state: they are right in themselves, the rest need not be.

    `own` is what the format has for itself after its magic: 8 bytes, but none in format 1.
    """

    format: int
    length: int
    digest: bytes
    own: bytes = b""

    def packed(self) -> bytes:
        """Return the header as bytes."""
        start = _magic_of(self.format) + self.own
        fields = _FIELDS.pack(start, self.format, self.length, self.digest)
        return fields + _CHECKSUM.pack(zlib.crc32(fields))

    @classmethod
    def read(cls, file: IO[bytes], name: str) -> "SnapshotHeader":
        """Read a header, or refuse one that cannot be trusted or is of an unknown format."""
        raw = file.read(HEADER_BYTES)
        _check_start(raw, name)
        start, format_, length, digest = _FIELDS.unpack_from(raw)
        (stated,) = _CHECKSUM.unpack_from(raw, _FIELDS.size)
        found = zlib.crc32(raw[: _FIELDS.size])
        if found != stated:
            raise InvalidInput(
                f"{name}: is damaged: the CRC-32 of its header is {found:08x}, not {stated:08x}"
            )
        if format_ not in _CONTENTS:
            known = " and ".join(map(str, _CONTENTS))
            raise InvalidInput(
                f"{name}: is of format {format_}; this version of Contrada reads formats {known}"
            )
        magic = _magic_of(format_)
        if not start.startswith(magic):
            raise InvalidInput(f"{name}: is not of format {format_}: it begins with {start!r}")
        return cls(format_, length, digest, start[len(magic) :])

    def expect(self, format_: int, name: str) -> None:
        """Refuse a snapshot of the other format."""
        if self.format != format_:
            raise InvalidInput(
                f"{name}: is of format {self.format}, not {format_}: "
                f"it holds {_CONTENTS[self.format]}, not {_CONTENTS[format_]}"
            )

    def check_length(self, length: int, name: str) -> None:
        """Compare the length of a whole file with what its header states."""
        if length != self.length:
            what = "is truncated" if length < self.length else "is too long"
            raise InvalidInput(f"{name}: {what}: it has {length} bytes, not {self.length}")

    def check_digest(self, content: memoryview, name: str) -> None:
        """Compare a whole file, byte for byte, with what its header states."""
        found = hashlib.sha256(content[HEADER_BYTES:]).digest()
        if found != self.digest:
            raise InvalidInput(
                f"{name}: is damaged: its SHA-256 is {found.hex()}, not {self.digest.hex()}"
            )


def _magic_of(format_: int) -> bytes:
    return _MAGICS[format_ != 1]


def _check_start(raw: bytes, name: str) -> None:
    """Refuse bytes that are not the start of a snapshot, or too few of them."""
    if not raw or not any(raw.startswith(magic[: len(raw)]) for magic in _MAGICS):
        known = " or ".join(map(repr, _MAGICS))
        start = raw[: len(_MAGICS[0])]
        raise InvalidInput(f"{name}: is not a snapshot: it begins with {start!r}, not {known}")
    if len(raw) < HEADER_BYTES:
        raise InvalidInput(
            f"{name}: is truncated: it has {len(raw)} bytes, "
            f"but the header alone takes {HEADER_BYTES}"
        )


def read_digest(path: AnyPath) -> str:
    """Return the digest that a snapshot states of itself, from its first 64 bytes alone."""
    name = spell_path(path)
    with opened(name) as file:
        return SnapshotHeader.read(file, name).digest.hex()


def read_format(path: AnyPath) -> int | None:
    """Return the number of the format that a snapshot states, which may be a newer one.

    It is None for a file that does not begin as a snapshot, or not with a whole header. Nothing
    else is checked: whatever opens the snapshot does so.
    """
    with opened(spell_path(path)) as file:
        raw = file.read(HEADER_BYTES)
    if len(raw) < HEADER_BYTES or not raw.startswith(_MAGICS):
        return None
    format_: int = _FIELDS.unpack_from(raw)[1]
    return format_


def spell_path(path: AnyPath) -> str:
    """Return a path as text; refuse what cannot be the name of a file."""
    try:
        name = os.fsdecode(path)
        os.fsencode(name)
    except (TypeError, UnicodeError) as fault:
        raise InvalidInput(f"{brief(path)} is not a path: {fault}") from fault
    check_named(name)
    if "\0" in name:
        raise InvalidInput(f"{brief(path)} is not a path: it holds a null character")
    return name


@contextmanager
def opened(name: str) -> Iterator[IO[bytes]]:
    """Open a file to read; what the system says against it is an error that names the file."""
    try:
        check_regular(Path(name), name)
        with Path(name).open("rb") as file:
            yield file
    except OSError as fault:
        raise blame(fault, f"{name}: cannot be read: {fault.strerror or fault}") from fault


class DigestingFile:
    """A file being written that counts its bytes, and digests those after the header.

    The header is written last, when the digest is known; until then its place holds zeros.
    """

    closed = False

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._sha256 = hashlib.sha256()
        self.length = 0

    def write(self, data: Any) -> int:
        """Write bytes after those that are there."""
        written = self._file.write(data)
        if self.length >= HEADER_BYTES:
            self._sha256.update(data)
        self.length += written
        return written

    def write_header(self, format_: int, own: bytes = b"") -> None:
        """Write the header of what was written; nothing comes after it."""
        header = SnapshotHeader(format_, self.length, self._sha256.digest(), own)
        self._file.seek(0)
        self._file.write(header.packed())


def spell_settings(settings: Mapping[str, Any], name: str) -> str:
    """Return settings as JSON, in the order of their names; refuse what has none."""
    try:
        return json.dumps(settings, sort_keys=True, default=_as_json)
    except (TypeError, ValueError, RecursionError) as fault:
        raise InvalidInput(
            f"{name}: the settings {brief(settings, 400)} cannot be written: {fault}"
        ) from fault


def _as_json(value: Any) -> Any:
    """Convert a NumPy value to one that JSON has."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} {brief(value)} cannot be written as JSON")
