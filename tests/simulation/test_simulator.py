"""The simulator: what becomes of those who leave, of full inboxes, and what the checker sees."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

from contrada.overlay.boxes import Space
from contrada.overlay.cell_windows import cover
from contrada.overlay.messages import Entry, Event, Join, PeerId
from contrada.overlay.state import Settings
from contrada.simulation.checker import OverlayFault, bound
from contrada.simulation.gaps import Link, find_gaps
from contrada.simulation.simulator import Network, Simulator

UNIT = Space((0.0, 0.0, 1.0, 1.0))
EVERYWHERE = (-inf, -inf, inf, inf)
SMALL, LARGE = (0.1, 0.1, 0.2, 0.2), (0.1, 0.1, 0.6, 0.6)


def build(seed: int, *, wide: int = 0) -> Simulator:
    """A legal overlay of forty peers at rest, some of them with filters that are wide."""
    rng = np.random.default_rng(seed)
    simulator = Simulator(Settings(UNIT, 2, 5), rng, Network(delay_max=0.3))
    for number in range(40):
        middle, half = rng.random(2), rng.random(2) * 0.05
        box = (*(middle - half).tolist(), *(middle + half).tolist())
        simulator.add(*[EVERYWHERE] * (number < wide), box)
    assert simulator.run_until_legal(100) is not None
    simulator.run_rounds(20)
    assert simulator.run_until_legal(100) is not None
    return simulator


def find_root(simulator: Simulator) -> PeerId:
    return next(id_ for id_, peer in simulator.peers.items() if peer.state.is_root)


# Those who leave


@pytest.mark.parametrize("seed", range(6))
def test_events_under_way_when_a_leader_leaves_reach_everybody_else(seed: int) -> None:
    simulator = build(seed)
    root = find_root(simulator)
    others = [id_ for id_ in simulator.living() if id_ != root]
    heard: list[tuple[int, PeerId]] = []
    simulator.on_deliver = lambda id_, event: heard.append((event.payload, id_))
    for number, id_ in enumerate(others):
        simulator.publish(id_, EVERYWHERE, number)
        simulator.run_rounds(0.05)
        if number == len(others) // 2:
            simulator.leave(root)
    simulator.run_rounds(10)
    wanted = [(number, id_) for number in range(len(others)) for id_ in others]
    assert sorted(pair for pair in heard if pair[1] != root) == sorted(wanted)


def test_who_has_left_takes_messages_for_three_periods_and_is_not_seen_any_more() -> None:
    simulator = build(1)
    root = find_root(simulator)
    peer, heard, taken = simulator.peers[root], [], []
    simulator.on_deliver = lambda id_, _: heard.append(id_)
    simulator.leave(root)
    assert root not in simulator.living()
    assert root not in simulator.see()
    for _ in range(60):
        seen = len(peer._seen.reaches)
        event = Event(PeerId(10**9), int(simulator.now * 1e6), EVERYWHERE, None, 0, False)
        simulator.inject(peer.state.parent, root, event)
        simulator.run_rounds(0.5)
        taken.append(len(peer._seen.reaches) > seen)
    assert taken == [True] * 6 + [False] * 54
    assert root not in heard


def test_nobody_becomes_the_child_of_who_has_left() -> None:
    simulator = build(2)
    root = find_root(simulator)
    simulator.leave(root)
    newcomer = simulator.add(SMALL)
    simulator.inject(newcomer, root, Join(Entry(newcomer, SMALL, 0), 0, 1))
    simulator.run_rounds(2)
    assert simulator.peers[newcomer].state.parent != root


# Full inboxes


def test_messages_that_find_an_inbox_full_are_counted() -> None:
    simulator = Simulator(Settings(UNIT), np.random.default_rng(1), Network(inbox_max=3))
    id_ = simulator.add(SMALL)
    for _ in range(5):
        simulator.inject(PeerId(9), id_, Join(Entry(PeerId(9), SMALL, 0), 0, 1))
    assert simulator.traffic.overflown == 2


# What the checker sees


def test_a_peer_that_has_another_filter_than_it_was_given_is_at_fault() -> None:
    simulator = build(3)
    id_ = next(id_ for id_, peer in simulator.peers.items() if peer.state.top == 0)
    simulator.peers[id_].set_filters([SMALL])
    assert OverlayFault("the box of the leaf is not the filter", id_) in simulator.find_faults()


def test_filters_are_bounded_by_those_that_are_not_wide() -> None:
    assert bound([SMALL, EVERYWHERE, (0.5, 0.0, 0.6, 0.6)], UNIT.universe) == (0.1, 0.0, 0.6, 0.6)
    assert bound([EVERYWHERE], UNIT.universe) == (inf, inf, -inf, -inf)
    assert bound([], UNIT.universe) == (inf, inf, -inf, -inf)


def test_a_child_of_which_too_few_cells_are_remembered_is_found() -> None:
    simulator = build(4)
    above = simulator.peers[find_root(simulator)].state
    id_, child = next(iter(above.levels[above.top].items()))
    child.cells = cover((0.0, 0.0, 0.001, 0.001), UNIT)
    faults = simulator.find_faults()
    assert faults
    assert {fault.peer for fault in faults} == {above.id}
    assert all(str(fault).startswith(f"{above.id}: knows ") for fault in faults)
    assert any(f" below {id_}, " in fault.message for fault in faults)
    child.wide = None
    assert simulator.find_faults() == []


def test_garbage_below_the_levels_that_count_is_not_taken_for_links() -> None:
    simulator = build(4)
    root = simulator.peers[find_root(simulator)].state
    leaf = next(peer.state for peer in simulator.peers.values() if peer.state.top == 0)
    leaf.levels[0] = dict(root.levels[root.top])
    assert simulator.find_faults() == []


@pytest.mark.parametrize("id_", [PeerId(0), PeerId(1), PeerId(2)])
def test_a_wide_peer_that_is_not_named_on_some_link_above_is_found(id_: PeerId) -> None:
    simulator, at = build(5, wide=3), id_
    while not (state := simulator.peers[at].state).is_root:
        child = simulator.peers[state.parent].state.levels[state.top + 1][at]
        before, child.wide = child.wide, ((id_, LARGE),)
        words = f"knows {id_} below {at}, but not its filter {EVERYWHERE}"
        assert simulator.find_faults()[0] == OverlayFault(words, state.parent)
        child.wide = before
        at = state.parent
    assert simulator.find_faults() == []


@pytest.mark.parametrize("seed", range(5))
def test_gaps_are_found_just_where_some_event_in_a_filter_would_not_be_sent(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(30):
        lows, sides = rng.random(2) * 1.4 - 0.2, rng.random(2) * rng.choice([0.01, 0.3])
        box = (*lows.tolist(), *(lows + sides).tolist())
        other = (*(lows + sides * 0.3).tolist(), *(lows + sides * rng.choice([0.6, 1])).tolist())
        cells = cover(other if rng.random() < 0.7 else box, UNIT)
        assert cells is not None
        window = (cells.level, cells.x, cells.y, cells.rows)
        links = {PeerId(1): Link(PeerId(0), window, ())}
        steps = np.linspace(0, 1, 40)
        points = [(lows + sides * (x, y)).tolist() for x in steps for y in steps]
        is_missed = not all(cells.meets((*point, *point), UNIT) for point in points)
        assert bool(find_gaps(links, {PeerId(1): [box]}, UNIT.universe)) == is_missed
