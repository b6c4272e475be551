"""Messages as bytes: a version, the kind of message and its fields, as a JSON array.

What a peer receives may be anything, so reading checks every field, and bounds every length before
it looks inside. JSON has no infinities: sides of boxes that are unbounded are the texts "inf" and
"-inf".

The limits follow from each other: whatever a peer may have to say, another can read and pass on.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from functools import lru_cache
from math import inf, isfinite
from typing import Any, get_args

from contrada.errors import InvalidInput, PeerError
from contrada.overlay.boxes import DIMENSIONS_MAX, Box, is_box
from contrada.overlay.cell_windows import SIDE, Cells
from contrada.overlay.messages import Copy, Entry, Lead, Message, PeerId, Wide
from contrada.overlay.state import CHILDREN_MAX, HEIGHT_MAX, WIDE_MAX

VERSION = 1
PAYLOAD_BYTES_MAX = 2**19
PAYLOAD_DEPTH_MAX = 64  # far less than Python can write, from wherever it is called
_ENTRIES_MAX = CHILDREN_MAX + 1  # of one list: the children of a node, and its leader
_NAMES_MAX = _ENTRIES_MAX * WIDE_MAX  # of wide peers, in all lists of a message
_NUMBER_MAX = 2**63 - 1

# What is longest: of whole numbers 19 digits, of rows of cells 10, of floats 24 characters.
_BOX_BYTES = 2 * DIMENSIONS_MAX * 25 + 2
_NAME_BYTES = _BOX_BYTES + 24
_CELLS_BYTES = SIDE * 11 + 24
_ENTRY_BYTES = _BOX_BYTES + _CELLS_BYTES + 50
WIRE_BYTES_MAX = HEIGHT_MAX * _ENTRIES_MAX * _ENTRY_BYTES + _NAMES_MAX * _NAME_BYTES

_SIDES = {"inf": inf, "-inf": -inf}

Read = Callable[[Any], Any]


def encode(message: Message) -> bytes:
    """Write a message."""
    if isinstance(message, Lead | Copy):
        message = _limit_names(message)
    named = {field.name: getattr(message, field.name) for field in fields(message)}
    values = [value if name == "payload" else _write(value) for name, value in named.items()]
    data = _dump([VERSION, type(message).__name__, *values])
    if len(data) > WIRE_BYTES_MAX:
        raise PeerError(f"a message of {len(data):,} bytes is too long to send")
    return data


def check_payload(payload: Any) -> None:
    """Refuse what an event cannot carry, or what could not be passed on."""
    try:
        data = _dump(payload)
    except (TypeError, ValueError, RecursionError) as fault:
        raise InvalidInput(f"the payload {_show(payload)} is not JSON: {fault}") from None
    if len(data) > PAYLOAD_BYTES_MAX:
        raise InvalidInput(
            f"the payload has {len(data):,} bytes as JSON, more than {PAYLOAD_BYTES_MAX:,}"
        )
    if _is_deep(payload):
        raise InvalidInput(
            f"the payload {_show(payload)} is nested more than {PAYLOAD_DEPTH_MAX} levels deep"
        )


def _is_deep(payload: Any) -> bool:
    layer = [payload]
    for _ in range(PAYLOAD_DEPTH_MAX + 1):
        containers = [value for value in layer if isinstance(value, list | tuple | dict)]
        if not containers:
            return False
        layer = [x for c in containers for x in (c.values() if isinstance(c, dict) else c)]
    return True


def _limit_names(message: Lead | Copy) -> Lead | Copy:
    """Name no wide peers in lists for which there is no room left.

    To those nodes every event goes until they report to their new leader.
    """
    left, lists = _NAMES_MAX, []
    for entries in message.lists:
        count = sum(len(entry.wide) for entry in entries if entry.wide)
        if count <= left:
            left -= count
            lists.append(entries)
        else:
            lists.append(tuple(replace(e, wide=None) if e.wide else e for e in entries))
    return replace(message, lists=tuple(lists))


def _dump(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()


def _show(value: Any, length: int = 60) -> str:
    try:
        return repr(value)[:length]
    except RecursionError:
        return "that is nested so deeply"


def decode(data: bytes, dimensions: int) -> Message:
    """Read a message of an overlay with so many dimensions; refuse whatever is not one."""
    if len(data) > WIRE_BYTES_MAX:
        raise PeerError(
            f"a message of {len(data):,} bytes is too long; the limit is {WIRE_BYTES_MAX:,}"
        )
    try:
        row = json.loads(data, parse_constant=_refuse_constant, parse_float=_read_float)
    except (ValueError, RecursionError) as fault:
        raise PeerError(f"{data[:40]!r} is not a message: {fault}") from None
    if not isinstance(row, list) or len(row) < 2:
        raise PeerError(f"{data[:40]!r} is not a message")
    version, kind, *values = row
    if version != VERSION or isinstance(version, bool):
        raise PeerError(f"a message of version {_show(version, 20)}; this peer speaks {VERSION}")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise PeerError(f"unknown kind of message {_show(kind, 40)}")
    return _read(kind, values, dimensions)


def _read(kind: str, values: list[Any], dimensions: int) -> Message:
    made, names = _KINDS[kind], [field.name for field in fields(_KINDS[kind])]
    if len(values) != len(names):
        raise PeerError(f"{kind} has {len(names)} fields, not {len(values)}")
    readers = _readers(dimensions)
    read = []
    for name, value in zip(names, values, strict=True):
        try:
            read.append(readers[name](value))
        except InvalidInput as fault:
            raise PeerError(f"{kind}: {name} cannot be {_show(value)}: {fault}") from None
        except (TypeError, ValueError, KeyError, OverflowError):
            raise PeerError(f"{kind}: {name} cannot be {_show(value)}") from None
    message: Message = made(*read)
    return message


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number")


def _read_float(text: str) -> float:
    value = float(text)
    if not isfinite(value):
        raise ValueError(f"{text:.20} is not a number")
    return value


def _write(value: Any) -> Any:
    if isinstance(value, Entry | Cells):
        return [_write(getattr(value, field.name)) for field in fields(value)]
    if isinstance(value, tuple):
        return [_write(item) for item in value]
    if isinstance(value, float) and not isfinite(value):
        return "inf" if value > 0 else "-inf"
    return value


@lru_cache(maxsize=DIMENSIONS_MAX)
def _readers(dimensions: int) -> Mapping[str, Read]:
    """Return what reads each field, by its name."""

    def read_box(value: Any) -> Box:
        sides = tuple(
            _SIDES[side] if isinstance(side, str) else float(side)
            for side in _check_list(value, 2 * dimensions)
        )
        box: Box = _check(sides, is_box(sides, dimensions))
        return box

    def read_wide(value: Any) -> Wide | None:
        if value is None:
            return None
        return tuple((_read_id(id_), read_box(box)) for id_, box in _check_list(value, WIDE_MAX))

    def read_entry(value: Any) -> Entry:
        id_, box, count, cells, wide = value
        return Entry(
            _read_id(id_), read_box(box), _read_whole(count), _read_cells(cells), read_wide(wide)
        )

    def read_entries(value: Any) -> tuple[Entry, ...]:
        return tuple(read_entry(item) for item in _check_list(value, _ENTRIES_MAX))

    def read_lists(value: Any) -> tuple[tuple[Entry, ...], ...]:
        return tuple(read_entries(item) for item in _check_list(value, HEIGHT_MAX))

    return {
        "asker": _read_id,
        "above": _read_id,
        "at": lambda value: _check(value, _is_whole(value) and -1 <= value < HEIGHT_MAX),
        "base": _read_level,
        "box": read_box,
        "calm": _read_number,
        "climbed": lambda value: _check(value, _is_whole(value) and -1 <= value < HEIGHT_MAX),
        "count": _read_whole,
        "deputy": _read_id_or_none,
        "entries": read_entries,
        "entry": read_entry,
        "filter": lambda value: None if value is None else read_box(value),
        "gain": _read_number,
        "heir": _read_id_or_none,
        "homes": lambda value: tuple(map(_read_id, _check_list(value, _ENTRIES_MAX))),
        "hops": _read_whole,
        "is_forced": lambda value: _check(value, isinstance(value, bool)),
        "is_gone": lambda value: _check(value, isinstance(value, bool)),
        "is_rising": lambda value: _check(value, isinstance(value, bool)),
        "level": _read_level,
        "lists": read_lists,
        "loss": _read_number,
        "number": _read_whole,
        "parent": _read_id,
        "path": lambda value: tuple(read_entry(x) for x in _check_list(value, HEIGHT_MAX)),
        "payload": _read_payload,
        "publisher": _read_id,
        "siblings": read_entries,
        "ticket": _read_whole,
        "to": _read_id,
    }


def _read_payload(value: Any) -> Any:
    check_payload(value)
    return value


def _read_cells(value: Any) -> Cells | None:
    if value is None:
        return None
    level, x, y, rows = value
    _check_list(rows, SIDE)
    _check(rows, all(map(_is_whole, (level, x, y, *rows))))
    return Cells(level, x, y, tuple(rows))


def _check(value: Any, is_right: bool) -> Any:
    if not is_right:
        raise ValueError
    return value


def _check_list(value: Any, length_max: int) -> list[Any]:
    checked: list[Any] = _check(value, isinstance(value, list) and len(value) <= length_max)
    return checked


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _read_whole(value: Any) -> int:
    return int(_check(value, _is_whole(value) and 0 <= value <= _NUMBER_MAX))


def _read_number(value: Any) -> float:
    number = float(_check(value, isinstance(value, float) or _is_whole(value)))
    return float(_check(number, isfinite(number)))


def _read_id(value: Any) -> PeerId:
    return PeerId(_read_whole(value))


def _read_id_or_none(value: Any) -> PeerId | None:
    return None if value is None else _read_id(value)


def _read_level(value: Any) -> int:
    return int(_check(value, _is_whole(value) and 0 <= value < HEIGHT_MAX))


_KINDS: Mapping[str, Any] = {kind.__name__: kind for kind in get_args(Message)}
