"""What a delivery matched, packed: numbers of subscriptions, or with transitions a list in JSON.

A single number is an integer of SQLite, several are bytes (sorted, four or eight for each), and
what has transitions is a JSON text: which of the three it is says its type.
"""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

Packed = int | bytes | str
_NARROW, _WIDE = np.dtype("<u4"), np.dtype("<u8")


class MatchEntry(NamedTuple):
    """One match: the number of the subscription or row, and the facts of a transition, if any."""

    number: int
    transition: dict[str, Any] | None = None


def pack_numbers(numbers: Sequence[int]) -> Packed:
    """Pack the numbers of what matched, sorted."""
    if len(numbers) == 1:
        return int(numbers[0])
    kind = _NARROW if numbers[-1] <= np.iinfo(_NARROW).max else _WIDE
    return bytes([kind.itemsize]) + np.asarray(numbers, kind).tobytes()


def pack_entries(entries: Sequence[MatchEntry]) -> Packed:
    """Pack matches of which some have a transition."""
    if all(entry.transition is None for entry in entries):
        return pack_numbers([entry.number for entry in entries])
    return json.dumps(
        [[number, transition] for number, transition in entries],
        ensure_ascii=False,
        separators=(",", ":"),
    )


def unpack(packed: Packed) -> list[MatchEntry]:
    """Return what was packed."""
    if isinstance(packed, int):
        return [MatchEntry(packed)]
    if isinstance(packed, str):
        return [MatchEntry(number, transition) for number, transition in json.loads(packed)]
    kind = _NARROW if packed[0] == _NARROW.itemsize else _WIDE
    return [MatchEntry(number) for number in np.frombuffer(packed, kind, offset=1).tolist()]
