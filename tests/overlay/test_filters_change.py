"""A peer of a settled overlay has other filters: more, fewer, wide ones, none, and back again.

What must hold: nobody hears what its filters of that moment do not meet, or hears it twice. Peers
whose filters stay as they are miss nothing, at any time. The one that changes may miss what only
its new filters meet, and for `NEWS_ROUNDS` at most, until those above it know; what its old filters
meet as well it misses only if they or the new ones were wide, for then another serves it. When all
has settled the checker finds no fault, and events reach exactly whom they should.
"""

from __future__ import annotations

from collections import Counter
from copy import deepcopy
from math import inf, nan
from typing import TYPE_CHECKING

import numpy as np
import pytest

from contrada.errors import InvalidInput
from contrada.overlay.boxes import Box, Space, meets
from contrada.overlay.messages import Event, PeerId
from contrada.overlay.state import Settings
from contrada.simulation.simulator import Network, Simulator
from overlay.test_hostile import assert_exact, assert_legal_within, start

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.random import Generator

UNIT = Space((0.0, 0.0, 1.0, 1.0))
PEERS = 40
ROUNDS_MAX = 100
NEWS_ROUNDS = 5  # until all above a peer know its filters
RATE = 40  # events in a round
EVERYWHERE: Box = (-inf, -inf, inf, inf)
SMALL: Box = (0.7, 0.7, 0.75, 0.75)
LARGE: Box = (0.1, 0.05, 0.95, 0.9)
FAR: Box = (0.02, 0.9, 0.06, 0.95)
SLAB: Box = (-inf, 0.7, inf, 0.72)

CHANGES: dict[str, tuple[list[Box], list[Box]]] = {
    "grow": ([SMALL], [LARGE]),
    "become more": ([SMALL], [SMALL, FAR]),
    "shrink": ([LARGE], [SMALL]),
    "become fewer": ([SMALL, FAR], [FAR]),
    "move away": ([SMALL], [FAR]),
    "lose a bound": ([SMALL], [SLAB]),
    "become wide": ([SMALL], [EVERYWHERE]),
    "become wide as well": ([SMALL], [SMALL, EVERYWHERE]),
    "are wide no more": ([EVERYWHERE], [SMALL]),
    "become none": ([SMALL], []),
    "become none of many": ([LARGE, EVERYWHERE], []),
    "are some at last": ([], [SMALL]),
    "are wide at last": ([], [EVERYWHERE]),
}
CROSSING = {"become wide", "are wide no more"}  # all of them, so that another serves the peer
SETTINGS = {
    "full": Settings(UNIT, 2, 5),
    "plain": Settings(UNIT, 2, 5, summaries=False, deputies=False, moving=False),
}


def settle(settings: Settings, filters: Sequence[Box], seed: int) -> tuple[Simulator, Generator]:
    """Make a legal overlay; its peer 0 has these filters, and of the others one in ten is wide."""
    rng = np.random.default_rng(seed)
    simulator = Simulator(settings, rng, Network(delay_max=0.3))
    simulator.add(*filters)
    for number in range(1, PEERS):
        middle, half = rng.random(2), rng.random(2) * 0.1
        box = (*(middle - half).tolist(), *(middle + half).tolist())
        simulator.add(EVERYWHERE if number % 10 == 0 else box)
    assert_legal_within(simulator, ROUNDS_MAX)
    return simulator, rng


def draw_event(rng: Generator) -> Box:
    """A point: in one of the boxes that peer 0 may want, or anywhere."""
    boxes = [SMALL, FAR, (0.0, 0.0, 1.0, 1.0)]
    low, high = np.array(boxes[int(rng.integers(3))]).reshape(2, 2)
    point = (low + rng.random(2) * (high - low)).tolist()
    return (*point, *point)


class Ear:
    """Hears all that is delivered, and that none of it is wrong."""

    def __init__(self, simulator: Simulator) -> None:
        self.heard: Counter[tuple[int, PeerId]] = Counter()
        self._simulator = simulator
        simulator.on_deliver = self.hear

    def hear(self, id_: PeerId, event: Event) -> None:
        assert id_ in find_receivers(self._simulator, event.box), "nobody wanted it there"
        self.heard[event.payload, id_] += 1
        assert self.heard[event.payload, id_] == 1, "delivered twice"


def publish_for_a_while(
    simulator: Simulator, rng: Generator, first: int, last: int
) -> dict[int, Box]:
    """Publish anywhere, from one round to another; the events have numbers in order."""
    boxes = {number: draw_event(rng) for number in range(first * RATE, last * RATE)}
    for number, box in boxes.items():
        simulator.publish(PeerId(int(rng.integers(1, PEERS))), box, number)
        simulator.run_rounds(1 / RATE)
    return boxes


def find_receivers(simulator: Simulator, box: Box) -> list[PeerId]:
    """List whom an event should reach, by the filters that peers were given."""
    return [id_ for id_, given in simulator.filters.items() if any(meets(f, box) for f in given)]


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("change", CHANGES)
def test_when_filters_change_the_overlay_is_soon_legal_and_exact(
    change: str, settings: str
) -> None:
    before, after = CHANGES[change]
    simulator, rng = settle(SETTINGS[settings], before, 1)
    simulator.set_filters(PeerId(0), *after)
    assert_legal_within(simulator, ROUNDS_MAX)
    assert_exact(simulator, rng)
    assert_each_box_is_served(simulator, [*before, *after])


def assert_each_box_is_served(simulator: Simulator, boxes: Sequence[Box]) -> None:
    """An event in a box that peer 0 has or had, and one beside it, reach just who wants them."""
    ear, wanted = Ear(simulator), set()
    events = [*boxes, (0.99, 0.01, 0.99, 0.01), (-5.0, -5.0, -5.0, -5.0)]
    for number, box in enumerate(events):
        simulator.publish(PeerId(number % (PEERS - 1) + 1), box, number)
        wanted |= {(number, id_) for id_ in find_receivers(simulator, box)}
    simulator.run_rounds(10)
    assert set(ear.heard) == wanted


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("change", CHANGES)
def test_while_filters_change_nobody_hears_wrongly_and_the_others_miss_nothing(
    change: str, settings: str
) -> None:
    before, after = CHANGES[change]
    simulator, rng = settle(SETTINGS[settings], before, 2)
    ear = Ear(simulator)
    boxes = publish_for_a_while(simulator, rng, 0, 1)
    simulator.set_filters(PeerId(0), *after)
    boxes |= publish_for_a_while(simulator, rng, 1, NEWS_ROUNDS + 3)
    simulator.run_rounds(6)
    wanted = {(n, id_) for n, box in boxes.items() for id_ in find_receivers(simulator, box)}
    missed = wanted - set(ear.heard)
    assert all(id_ == 0 for _, id_ in missed)
    assert all(number < (1 + NEWS_ROUNDS) * RATE for number, _ in missed)
    if change not in CROSSING:
        assert not any(meets(box, boxes[number]) for number, _ in missed for box in before)


def test_filters_of_all_peers_that_change_again_and_again_come_to_rest() -> None:
    simulator, rng = settle(SETTINGS["full"], [SMALL], 3)
    Ear(simulator)
    lists = [filters for pair in CHANGES.values() for filters in pair]
    for round_ in range(12):
        for id_ in simulator.living():
            if rng.random() < 0.3:
                simulator.set_filters(id_, *lists[int(rng.integers(len(lists)))])
        publish_for_a_while(simulator, rng, round_, round_ + 1)
    assert_legal_within(simulator, ROUNDS_MAX)
    assert_exact(simulator, rng)


def test_a_root_that_has_no_filters_any_more_becomes_a_leaf() -> None:
    simulator, rng = settle(SETTINGS["full"], [LARGE], 4)
    root = next(peer for peer in simulator.peers.values() if peer.state.is_root)
    simulator.set_filters(root.state.id)
    assert_legal_within(simulator, ROUNDS_MAX)
    assert root.state.top == 0 and not root.state.is_root
    assert_exact(simulator, rng)


@pytest.mark.parametrize(
    "broken", [(0.0, 0.0, 1.0), (0.5, 0.5, 0.4, 0.6), (nan, 0.0, 1.0, 1.0), (0, 0, 1, 10**400)]
)
def test_filters_that_cannot_be_are_refused_and_the_old_ones_stay(broken: Box) -> None:
    peer = start(0, SMALL, SETTINGS["full"])
    before = deepcopy(peer.state)
    with pytest.raises(InvalidInput):
        peer.set_filters([LARGE, broken])
    assert peer.state == before
