"""What is known of one object, as bytes: what the table of objects has, and memory.

     1 byte   number of the format
     1        bits: KNOWN, FELL_SILENT
     8 each   last, horizon, the next dwell, the end of cooldowns: microseconds
     8 each   x, y
     4 each   bytes of the last event's id, and number of pairs
              that id
              each pair: bits (1), change, cross (8 each), bytes of the key (4), the key

Numbers are little-endian. Positions that wait are not in here: each is a row of its own. Nor is
when the object is silent, which the tenant's settings say; and of the enter's event nobody is told.
"""

import struct
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from contrada.arrays import Integers
from contrada.errors import InvalidInput
from contrada.kernels.track_walk import ALWAYS_LATER, FELL_SILENT, KNOWN, NO_MOMENT

_FORMAT = 1
_HEAD = struct.Struct("<BBqqqqddII")
_PAIR = struct.Struct("<BqqI")
_LENGTHS, _LENGTH = struct.Struct("<II"), struct.Struct("<I")
_HEAD_COLUMNS = np.dtype(
    [
        ("format", "u1"),
        ("bits", "u1"),
        *[(name, "<i8") for name in ("last", "horizon", "dwell", "cooled")],
        ("x", "<f8"),
        ("y", "<f8"),
        ("id_length", "<u4"),
        ("count", "<u4"),
    ]
)


class PairRecord(NamedTuple):
    """A subscription that the object visits, or has left or crossed not long ago."""

    key: str
    bits: int
    change_us: int
    cross_us: int


class ObjectRecord(NamedTuple):
    """An object as of its last position; `dwell_us` is the moment of the next dwell.

    `cooled_us` is when all that it has left or crossed may be forgotten. Where there is no such
    moment, `dwell_us` is ALWAYS_LATER, all others NO_MOMENT.
    """

    bits: int
    last_us: int
    horizon_us: int
    dwell_us: int
    cooled_us: int
    x: float
    y: float
    last_id: str
    pairs: tuple[PairRecord, ...]

    def timer_us(self, silence_us: int | None) -> int:
        """Return the time up to which nothing happens to the object though nothing comes in."""
        if silence_us is None or not self.bits & KNOWN:
            return self.dwell_us
        if self.bits & FELL_SILENT:
            return max(self.last_us + 2 * silence_us, self.cooled_us + silence_us)
        return min(self.dwell_us, self.last_us + silence_us)


UNKNOWN = ObjectRecord(
    0, NO_MOMENT, NO_MOMENT, ALWAYS_LATER, NO_MOMENT, float("nan"), float("nan"), "", ()
)


def list_keys(data: bytes) -> list[str]:
    """List the keys of a record's pairs, without reading the rest of it."""
    id_length, count = _LENGTHS.unpack_from(data, _HEAD.size - _LENGTHS.size)
    at, keys = _HEAD.size + id_length, []
    for _ in range(count):
        (length,) = _LENGTH.unpack_from(data, at + _PAIR.size - _LENGTH.size)
        at += _PAIR.size + length
        keys.append(data[at - length : at].decode())
    return keys


def find_timers(records: Sequence[bytes], silence_us: int | None) -> Integers:
    """Return the timer of each of very many records."""
    if not records:
        return np.zeros(0, np.int64)
    heads = np.frombuffer(b"".join(data[: _HEAD.size] for data in records), _HEAD_COLUMNS)
    if (heads["format"] != _FORMAT).any():
        read_record(records[int(np.argmax(heads["format"] != _FORMAT))])
    if silence_us is None:
        return heads["dwell"].astype(np.int64)
    last = np.where(heads["bits"] & KNOWN, heads["last"], 0)
    cooled = np.maximum(heads["cooled"], -(2**62)) + silence_us
    moments = np.minimum(heads["dwell"], last + silence_us)
    is_silent = (heads["bits"] & FELL_SILENT) > 0
    moments = np.where(is_silent, np.maximum(last + 2 * silence_us, cooled), moments)
    return np.where(heads["bits"] & KNOWN, moments, heads["dwell"]).astype(np.int64)


def write_record(record: ObjectRecord) -> bytes:
    """Write what is known of an object."""
    last_id = record.last_id.encode()
    head = _HEAD.pack(_FORMAT, *record[:7], len(last_id), len(record.pairs))
    parts = [head, last_id]
    for pair in record.pairs:
        key = pair.key.encode()
        parts += [_PAIR.pack(pair.bits, pair.change_us, pair.cross_us, len(key)), key]
    return b"".join(parts)


def read_record(data: bytes) -> ObjectRecord:
    """Read what is known of an object; bytes that are damaged or newer are refused."""
    if data[:1] != bytes([_FORMAT]):
        raise InvalidInput(
            f"the state of an object is of format {data[:1].hex() or 'none'}; "
            f"this version of Contrada reads format {_FORMAT:02x}"
        )
    try:
        head = _HEAD.unpack_from(data)
        id_length, count = head[-2:]
        at = _HEAD.size + id_length
        last_id = data[_HEAD.size : at].decode()
        pairs = []
        for _ in range(count):
            bits, change_us, cross_us, length = _PAIR.unpack_from(data, at)
            at += _PAIR.size
            pairs.append(PairRecord(data[at : at + length].decode(), bits, change_us, cross_us))
            at += length
    except (struct.error, UnicodeDecodeError) as fault:
        raise InvalidInput(f"the state of an object is damaged: {fault}") from None
    if at != len(data):
        raise InvalidInput(f"the state of an object is damaged: it has {len(data)} bytes, not {at}")
    return ObjectRecord._make([*head[1:-2], last_id, tuple(pairs)])
