"""Events through an overlay in virtual time: who handled each, who delivered it, who should have.

Receivers are found from filters alone; nothing here asks the overlay who should receive.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from contrada.overlay.boxes import Box
from contrada.overlay.messages import Event, PeerId
from contrada.simulation.simulator import Simulator
from contrada.simulation.workloads import Array

Point = tuple[float, ...]
_WAVE = 200  # events under way at once: fewer than a peer remembers
_QUIET_ROUNDS = 2  # without a word of an event; no message is under way for more than one
_ROUNDS_MAX = 200


@dataclass(slots=True)
class Published:
    """An event: a delivery is listed as often as it was made; the publisher has handled it."""

    point: Point
    publisher: PeerId
    received: list[PeerId] = field(default_factory=list)
    visited: set[PeerId] = field(default_factory=set)


@dataclass(slots=True)
class Score:
    """How well events have reached those who want them, counted in pairs of event and peer.

    A false positive is a living peer without a match, other than the publisher, that handles an
    event; `visits` leave the publisher out, too.
    """

    matches: int = 0
    missed: int = 0
    doubled: int = 0
    unwanted: int = 0
    false_positives: int = 0
    visits: int = 0


def publish(
    simulator: Simulator,
    points: list[Point],
    publishers: list[PeerId],
    on_wave: Callable[[int], object],
) -> list[Published]:
    """Publish events, some at once, and wait until no peer speaks of them any more."""
    published = [Published(*pair) for pair in zip(points, publishers, strict=True)]

    def note_visit(id_: PeerId, event: Event) -> None:
        published[event.payload].visited.add(id_)

    def note_delivery(id_: PeerId, event: Event) -> None:
        published[event.payload].received.append(id_)

    simulator.on_visit, simulator.on_deliver = note_visit, note_delivery
    for first in range(0, len(published), _WAVE):
        wave = published[first : first + _WAVE]
        for number, event in enumerate(wave, first):
            event.visited.add(event.publisher)
            simulator.publish(event.publisher, (*event.point, *event.point), number)
        _wait(simulator, wave)
        on_wave(len(wave))
    return published


def _wait(simulator: Simulator, wave: list[Published]) -> None:
    said, quiet = -1, 0
    for _ in range(_ROUNDS_MAX):
        simulator.run_rounds(1)
        now = count_event_messages(simulator) + sum(len(event.visited) for event in wave)
        quiet = quiet + 1 if now == said else 0
        said = now
        if quiet >= _QUIET_ROUNDS:
            return


def count_event_messages(simulator: Simulator) -> int:
    """Count the messages with events since the start."""
    return simulator.traffic.by_kind.get("Event", 0)


def score(published: list[Published], filters: Mapping[PeerId, Box]) -> Score:
    """Compare what was delivered and handled with the filters of the living."""
    ids = np.array(list(filters))
    boxes = np.array(list(filters.values()))
    total = Score()
    for event in published:
        wanted = set(ids[contain(boxes, event.point)].tolist())
        times = Counter(event.received)
        visited = event.visited - {event.publisher}
        total.matches += len(wanted)
        total.missed += len(wanted - times.keys())
        total.unwanted += len(times.keys() - wanted)
        total.doubled += sum(times.values()) - len(times)
        total.visits += len(visited)
        total.false_positives += len((visited & filters.keys()) - wanted)
    return total


def contain(boxes: Array, point: Sequence[float] | Array) -> NDArray[np.bool_]:
    """Which boxes contain a point: rows of lows, then highs; an edge belongs to its box."""
    k = len(point)
    is_inside = (boxes[:, :k] <= point) & (point <= boxes[:, k:])
    found: NDArray[np.bool_] = np.all(is_inside, axis=1)
    return found
