"""How much a peer remembers: its entries, one for each peer that it knows about, and bytes."""

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from contrada.overlay.messages import Entry
from contrada.overlay.peer import Peer
from contrada.overlay.state import Child, Settings


@dataclass(frozen=True, slots=True)
class Memory:
    """Entries and bytes of one peer, without what all peers share."""

    entries: int
    bytes: int


def measure_memory(peer: Peer) -> Memory:
    """Walk through all that a peer refers to, each thing once."""
    seen: set[int] = set()
    entries = size = 0
    pending: list[Any] = [peer]
    while pending:
        thing = pending.pop()
        if id(thing) in seen or isinstance(thing, Settings | type) or callable(thing):
            continue
        seen.add(id(thing))
        size += sys.getsizeof(thing)
        entries += isinstance(thing, Child)
        entries += isinstance(thing, Entry) and thing.id != peer.state.id
        pending.extend(_parts(thing))
    return Memory(entries, size)


def _parts(thing: Any) -> Iterable[Any]:
    if isinstance(thing, dict):
        return [*thing.keys(), *thing.values()]
    if isinstance(thing, list | tuple | set | frozenset):
        return thing
    names = [name for kind in type(thing).__mro__ for name in getattr(kind, "__slots__", ())]
    own = [getattr(thing, name) for name in names if hasattr(thing, name)]
    return [*own, *vars(thing).values()] if hasattr(thing, "__dict__") else own
