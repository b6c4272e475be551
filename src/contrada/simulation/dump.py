"""The states of all peers and what became of each event, as JSON that a stranger can check.

Same run, same bytes. A peer that crashed has no levels; a root is its own parent; lists of ids are
sorted; those who `visited` an event have handled it, its publisher among them.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from contrada.overlay.boxes import Box
from contrada.overlay.messages import PeerId
from contrada.overlay.state import Settings
from contrada.simulation.checker import PeerView
from contrada.simulation.publishing import Published


def write_dump(
    settings: Settings,
    filters: Mapping[PeerId, Box],
    states: Mapping[PeerId, PeerView],
    events: Iterable[Published],
) -> bytes:
    """Write one JSON object, a line for each peer and event; who has no state is not alive."""
    peers = [_describe_peer(id_, filters[id_], states.get(id_)) for id_ in sorted(filters)]
    return (
        f'{{"m": {settings.m}, "M": {settings.M}, "peers": [{_write_rows(peers)}], '
        f'"events": [{_write_rows(map(_describe_event, events))}]}}\n'
    ).encode()


def _write_rows(rows: Iterable[dict[str, Any]]) -> str:
    return ",".join(f"\n{json.dumps(row, allow_nan=False)}" for row in rows)


def _describe_peer(id_: PeerId, filter_: Box, state: PeerView | None) -> dict[str, Any]:
    levels = [] if state is None else state.levels
    return {
        "id": id_,
        "alive": state is not None,
        "filter": list(filter_),
        "levels": [
            {
                "level": level,
                "parent": node.parent,
                "children": sorted(node.children),
                "mbr": list(node.box),
            }
            for level, node in enumerate(levels)
        ],
    }


def _describe_event(event: Published) -> dict[str, Any]:
    return {
        "point": list(event.point),
        "publisher": event.publisher,
        "received": sorted(event.received),
        "visited": sorted(event.visited),
    }
