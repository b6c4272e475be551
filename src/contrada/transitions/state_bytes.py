"""The state of objects as bytes, in a versioned format: of all of a shard, or of one alone.

     4 bytes  `CTRS`
     4        number of the format
     8        length, all bytes included
     4        CRC-32 of all bytes but these four
     4        length of the facts
              the facts: JSON, with clock, notes and what is known of each column
              the columns, one after another

Numbers are little-endian. The columns are those of `track_state`, in their order; the events of
positions that wait are tables of their own, after them.
"""

import json
import struct
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from contrada.arrays import Mask, Positions
from contrada.errors import InvalidInput
from contrada.kernels.track_walk import KNOWN, VISITING
from contrada.transitions.column_bytes import (
    ByteReader,
    Facts,
    read_floats,
    read_ids,
    read_integers,
    read_table,
    write_floats,
    write_ids,
    write_integers,
    write_table,
)
from contrada.transitions.held_rows import HeldRows
from contrada.transitions.id_order import are_increasing
from contrada.transitions.track_state import (
    HeldColumns,
    ObjectColumns,
    PairColumns,
    SubscriptionFacts,
    TrackState,
)

FORMAT = 1

_MAGIC = b"CTRS"
_HEAD = struct.Struct("<4sIQ")
_REST = struct.Struct("<II")
_HEAD_BYTES = _HEAD.size + _REST.size
_FLAGS = ("flags", "kinds")
_FLOATS = ("x", "y")
_IDS = ("ids", "last_ids", "enter_ids", "subscribers")
_GROUPS = {
    "objects": ObjectColumns._fields,
    "pairs": PairColumns._fields,
    "subscriptions": SubscriptionFacts._fields,
    "held": HeldColumns._fields[:-1],  # all but its rows, which are tables
}
_DAMAGES = (
    AttributeError,
    IndexError,
    KeyError,
    OverflowError,
    TypeError,
    ValueError,  # which those of JSON, UTF-8 and most of Arrow's are
    MemoryError,
    pa.ArrowException,
)


def encode(state: TrackState) -> bytes:
    """Write a state, its notes included."""
    columns, parts = [], []
    for group, names in _GROUPS.items():
        for name, values in zip(names, getattr(state, group), strict=False):
            facts, written = _write_column(name, values)
            columns.append(facts)
            parts += written
    tables = [write_table(table) for table in state.held.rows.tables]
    facts = {
        "clock_us": state.clock_us,
        "numbered": state.numbered,
        "notes": dict(state.notes),
        "columns": columns,
        "tables": [told for told, _ in tables],
    }
    spelt = json.dumps(facts, separators=(",", ":")).encode()
    body = b"".join([spelt, *parts, *(part for _, written in tables for part in written)])
    head = _HEAD.pack(_MAGIC, FORMAT, _HEAD_BYTES + len(body))
    return b"".join([head, _REST.pack(_sum(head, len(spelt), body), len(spelt)), body])


def decode(data: bytes) -> TrackState:
    """Read a state.

    Raises `InvalidInput` for a newer format, for bytes that are damaged or cut off, and for what is
    not the state of objects.
    """
    if len(data) < _HEAD_BYTES or not data.startswith(_MAGIC):
        raise InvalidInput(f"is not the state of objects: it begins with {data[:8]!r}")
    head = data[: _HEAD.size]
    _, format_, length = _HEAD.unpack(head)
    if format_ != FORMAT:
        raise InvalidInput(
            f"the state of objects is of format {format_}; this version of Contrada reads format "
            f"{FORMAT}"
        )
    if length != len(data):
        raise _damage(f"it has {len(data):,} bytes, not {length:,}")
    stated, spelt = _REST.unpack_from(data, _HEAD.size)
    body = memoryview(data)[_HEAD_BYTES:]
    if _sum(head, spelt, body) != stated:
        raise _damage("its CRC-32 is not the one that it states")
    try:
        reader = ByteReader(body)
        return _read_state(json.loads(bytes(reader.take(spelt))), reader)
    except _DAMAGES as error:
        raise _damage(f"{type(error).__name__}: {error}") from None


def _damage(why: str) -> InvalidInput:
    return InvalidInput(f"the state of objects is damaged: {why:.200}")


def _sum(head: bytes, spelt: int, body: bytes | memoryview) -> int:
    return zlib.crc32(body, zlib.crc32(head + struct.pack("<I", spelt)))


def _write_column(name: str, values: Any) -> tuple[Facts, list[bytes]]:
    if name in _IDS:
        return write_ids(values)
    return write_floats(values) if name in _FLOATS else write_integers(values)


def _read_column(name: str, facts: Facts, data: ByteReader) -> Any:
    if name in _IDS:
        return read_ids(facts, data)
    if name in _FLOATS:
        return read_floats(facts, data)
    values = read_integers(facts, data)
    return values.astype(np.uint8) if name in _FLAGS else values


def _read_state(facts: Facts, data: ByteReader) -> TrackState:
    count = sum(map(len, _GROUPS.values()))
    _check(len(facts["columns"]) >= count, "columns are missing")
    _check(len(facts["columns"]) == count, "there is more than was written")
    described = iter(facts["columns"])
    groups = {
        group: [_read_column(name, next(described), data) for name in names]
        for group, names in _GROUPS.items()
    }
    rows = HeldRows(read_table(told, data) for told in facts["tables"])
    _check(data.is_done, "there is more than was written")
    state = TrackState(
        facts["clock_us"],
        ObjectColumns._make(groups["objects"]),
        PairColumns._make(groups["pairs"]),
        SubscriptionFacts._make(groups["subscriptions"]),
        HeldColumns._make([*groups["held"], rows]),
        facts["numbered"],
        facts["notes"],
    )
    for holds, what in _find_facts(state):
        _check(holds, what)
    return state


def _check(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(what)


def _find_facts(state: TrackState) -> Iterator[tuple[bool, str]]:
    """Yield what must hold of a state, so that no walk over it leaves an array."""
    for group in _GROUPS:
        lengths = {len(column) for column in getattr(state, group)}
        yield len(lengths) == 1, f"columns of {group} have {sorted(lengths)} rows"
    objects, pairs, held = state.objects, state.pairs, state.held
    for ids, name in ((objects.ids, "objects"), (state.subscriptions.ids, "subscriptions")):
        yield not ids.null_count and are_increasing(ids), f"ids of {name} are not in order"
    yield _are_places(pairs.objects, objects.ids), "a visit has an object that is not there"
    yield _are_places(held.objects, objects.ids), "a position has an object that is not there"
    is_there = _are_places(pairs.subscriptions, state.subscriptions.ids)
    yield is_there, "a visit has a subscription that is not there"
    order = pairs.objects * (len(state.subscriptions.ids) + 1) + pairs.subscriptions
    yield bool((np.diff(order) > 0).all()), "visits are not in order"
    yield _are_valid(objects.last_ids, objects.flags & KNOWN != 0), "ids of last events are missing"
    yield _are_valid(pairs.enter_ids, pairs.flags & VISITING != 0), "ids of enters are missing"
    yield not held.ids.null_count, "ids of events that wait are missing"
    notes = [*state.notes, *state.notes.values()]
    whole = (state.numbered, 0 if state.clock_us is None else state.clock_us)
    are_told = all(isinstance(n, str) for n in notes) and all(isinstance(n, int) for n in whole)
    yield are_told, "clock or notes are of another type"


def _are_places(places: Positions, ids: pa.Array) -> bool:
    return not len(places) or bool(places.min() >= 0 and places.max() < len(ids))


def _are_valid(ids: pa.Array, is_there: Mask) -> bool:
    return bool((ids.is_valid().to_numpy(zero_copy_only=False) >= is_there).all())
