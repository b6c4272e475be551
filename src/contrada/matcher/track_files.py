"""The state of a tracker in a file: a header that tells damage and newer formats, then the state.

    16 bytes  `CONTRADA TRACKS`, a zero
     4        number of the format
     8        length of the file, header included
    32        SHA-256 of the header up to here and of all after it

Numbers are little-endian. What the state means is for the room of transitions.
"""

import hashlib
import struct
from pathlib import Path

from contrada.errors import InvalidInput
from contrada.files.snapshot_header import AnyPath, opened, spell_path
from contrada.machine import write_whole
from contrada.transitions.state_bytes import decode, encode
from contrada.transitions.track_state import TrackState

_MAGIC = b"CONTRADA TRACKS\0"
_FORMAT = 1
_FIELDS = struct.Struct("<16sIQ")
_DIGEST_BYTES = 32
_HEADER_BYTES = _FIELDS.size + _DIGEST_BYTES


def save_tracks(path: AnyPath, state: TrackState) -> None:
    """Write a state to a file, whole or not at all."""
    name, content = spell_path(path), encode(state)
    fields = _FIELDS.pack(_MAGIC, _FORMAT, _HEADER_BYTES + len(content))
    write_whole(Path(name), fields + _digest(fields, content) + content)


def open_tracks(path: AnyPath) -> TrackState:
    """Read a state from a file; one that is damaged, of a newer format or another is refused."""
    name = spell_path(path)
    with opened(name) as file:
        data = file.read()
    if not data.startswith(_MAGIC):
        raise InvalidInput(f"{name}: is not the state of a tracker: it begins with {data[:16]!r}")
    if len(data) < _HEADER_BYTES:
        raise InvalidInput(f"{name}: is damaged: it ends within its header")
    _, format_, length = _FIELDS.unpack_from(data)
    if format_ != _FORMAT:
        raise InvalidInput(
            f"{name}: is of format {format_}; this version of Contrada reads format {_FORMAT}"
        )
    if length != len(data):
        raise InvalidInput(f"{name}: is damaged: it has {len(data):,} bytes, not {length:,}")
    fields, stated, content = (
        data[: _FIELDS.size],
        data[_FIELDS.size : _HEADER_BYTES],
        data[_HEADER_BYTES:],
    )
    if _digest(fields, content) != stated:
        raise InvalidInput(f"{name}: is damaged: its SHA-256 is not the one that it states")
    try:
        return decode(content)
    except InvalidInput as fault:
        raise fault.within(name) from None


def _digest(fields: bytes, content: bytes) -> bytes:
    digest = hashlib.sha256(fields)
    digest.update(content)
    return digest.digest()
