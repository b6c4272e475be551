"""From any state the overlay becomes legal, and in a legal state nobody misses an event."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

import numpy as np
import pytest

from contrada.overlay.boxes import Space, meets
from contrada.overlay.messages import Entry, Join, PeerId, Report
from contrada.overlay.peer import Peer
from contrada.overlay.state import Settings
from contrada.simulation.garbage import Garbage, make_box
from contrada.simulation.simulator import Network, Simulator

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.random import Generator

    from contrada.overlay.boxes import Box
    from contrada.overlay.messages import Event, PeerId

UNIT = Space((0.0, 0.0, 1.0, 1.0))
ROUNDS_MAX = 150


def make_filter(rng: Generator) -> Box:
    """A box of up to a tenth of the universe; one in eight is much larger."""
    middle = rng.random(2)
    half = rng.random(2) * (0.05 if rng.random() < 0.875 else 0.4)
    return (*(middle - half).tolist(), *(middle + half).tolist())


def make_simulator(rng: Generator, peers: int) -> Simulator:
    """Peers with settings and a network by chance; nobody has said anything yet."""
    m = int(rng.integers(2, 5))
    split = str(rng.choice(["linear", "quadratic", "rstar"]))
    settings = Settings(UNIT, m, 2 * m + int(rng.integers(0, 4)), split)
    network = Network(
        delay_max=float(rng.uniform(0.1, 0.9)),
        loss=float(rng.choice([0.0, 0.02, 0.1])),
        duplication=float(rng.choice([0.0, 0.1])),
    )
    simulator = Simulator(settings, rng, network)
    for _ in range(peers):
        simulator.add(make_filter(rng))
    return simulator


def assert_legal_soon(simulator: Simulator, seed: int) -> None:
    simulator.network = Network(delay_max=0.5)
    rounds = simulator.run_until_legal(ROUNDS_MAX)
    assert rounds is not None, (
        f"seed {seed}: {len(simulator.living())} peers are not legal after {ROUNDS_MAX} rounds: "
        f"{simulator.find_faults()[:5]}"
    )


def count_peers(rng: Generator) -> int:
    return int(rng.integers(5, 65))


@pytest.mark.parametrize("block", range(4))
def test_peers_that_join_at_once_become_one_legal_tree(block: int) -> None:
    for seed in range(block * 25, block * 25 + 25):
        rng = np.random.default_rng(seed)
        assert_legal_soon(make_simulator(rng, count_peers(rng)), seed)


@pytest.mark.parametrize("block", range(4))
def test_crashes_and_departures_are_healed(block: int) -> None:
    for seed in range(block * 25, block * 25 + 25):
        rng = np.random.default_rng(seed)
        simulator = make_simulator(rng, count_peers(rng))
        simulator.run_rounds(30)
        chosen = rng.permutation(simulator.living())[: len(simulator.living()) // 3]
        for number, id_ in enumerate(chosen.tolist()):
            simulator.leave(id_) if number % 2 else simulator.crash(id_)
            simulator.run_rounds(float(rng.random()))
        assert_legal_soon(simulator, seed)


@pytest.mark.parametrize("block", range(4))
def test_garbage_in_memories_and_channels_is_healed(block: int) -> None:
    for seed in range(block * 25, block * 25 + 25):
        rng = np.random.default_rng(seed)
        simulator = make_simulator(rng, count_peers(rng))
        simulator.run_rounds(float(rng.uniform(0, 40)))
        garbage = Garbage(simulator, rng)
        share = float(rng.choice([0.1, 0.5, 1.0]))
        for id_ in simulator.living():
            if rng.random() < share:
                garbage.corrupt(id_)
        garbage.send(int(rng.integers(0, 100)))
        assert_legal_soon(simulator, seed)


@pytest.mark.parametrize("seed", range(6))
def test_a_network_that_was_cut_in_two_becomes_one_tree_again(seed: int) -> None:
    rng = np.random.default_rng(seed)
    simulator = make_simulator(rng, 40)
    simulator.run_rounds(30)
    simulator.is_cut = lambda a, b: a % 2 != b % 2
    simulator.run_rounds(40)
    assert simulator.find_faults()
    simulator.is_cut = lambda _a, _b: False
    assert_legal_soon(simulator, seed)


@pytest.mark.parametrize("seed", range(10))
def test_in_a_legal_state_an_event_reaches_just_those_whose_filters_it_meets(seed: int) -> None:
    rng = np.random.default_rng(seed)
    simulator = make_simulator(rng, 60)
    assert_legal_soon(simulator, seed)
    simulator.run_rounds(10)  # what was lost before may yet have its effect
    assert_legal_soon(simulator, seed)
    simulator.network = Network(delay_max=0.05, delay_min=0.01)
    heard: list[PeerId] = []

    def hear(id_: PeerId, _: Event) -> None:
        heard.append(id_)

    simulator.on_deliver = hear
    for number in range(40):
        heard.clear()
        box = make_box(rng) if number % 2 else (*(point := rng.random(2).tolist()), *point)
        publisher = simulator.living()[int(rng.integers(60))]
        simulator.publish(publisher, box)
        simulator.run_rounds(3)
        wanted = [id_ for id_, peer in simulator.peers.items() if meets(peer.state.filter, box)]
        assert sorted(heard) == sorted(wanted)


def test_the_same_seed_gives_the_same_run() -> None:
    def run() -> tuple[int, list[str]]:
        rng = np.random.default_rng(5)
        simulator = make_simulator(rng, 50)
        simulator.run_rounds(25)
        return simulator.traffic.messages, [repr(peer.state) for peer in simulator.peers.values()]

    assert run() == run()


def test_filters_may_have_whole_numbers_for_sides() -> None:
    settings = Settings(Space((0.0, 0.0, 100.0, 100.0)), 2, 4)
    simulator = Simulator(settings, np.random.default_rng(1))
    for x in range(12):
        simulator.add((7 * x, 3, 7 * x + 9, 11))
    assert_legal_soon(simulator, 1)
    simulator.run_rounds(60)
    assert_legal_soon(simulator, 1)


@pytest.mark.parametrize("swapping", [False, True])
@pytest.mark.parametrize("seed", [0, 2, 3, 4])  # in all of them leaders change
def test_no_event_is_lost_while_children_move_and_leaders_change(seed: int, swapping: bool) -> None:
    rng = np.random.default_rng(seed)
    simulator = Simulator(Settings(UNIT, 2, 5, swapping=swapping), rng)
    for _ in range(80):
        simulator.add(make_filter(rng))
    assert_legal_soon(simulator, seed)
    leads = simulator.traffic.by_kind["Lead"]
    places = rng.random((3, 2))  # few, so that swapping has a reason
    heard: list[tuple[int, PeerId]] = []
    wanted: list[tuple[int, PeerId]] = []

    def hear(id_: PeerId, event: Event) -> None:
        heard.append((event.payload, id_))

    simulator.on_deliver = hear
    for number in range(400):
        x, y = (places[number % 3] + rng.normal(size=2) * 0.02).tolist()
        publisher = simulator.living()[int(rng.integers(80))]
        simulator.publish(publisher, (x, y, x, y), number)
        simulator.run_rounds(0.1)
        peers = simulator.peers.values()
        wanted += [(number, p.state.id) for p in peers if meets(p.state.filter, (x, y, x, y))]
    simulator.run_rounds(5)
    assert simulator.traffic.by_kind["Lead"] > leads
    assert sorted(heard) == sorted(wanted)


def publish_while_the_root_is_silent(simulator: Simulator, box: Box) -> list[PeerId]:
    """Crash the root, publish before anybody has taken its place, and say who hears it."""
    simulator.crash(next(id_ for id_, peer in simulator.peers.items() if peer.state.is_root))
    simulator.run_rounds(2)
    simulator.network = Network(0.01, 0.02)
    heard: list[PeerId] = []
    simulator.on_deliver = lambda id_, _event: heard.append(id_)
    simulator.publish(simulator.living()[7], box)
    simulator.run_rounds(0.2)
    assert not any(peer.state.is_root for peer in simulator.peers.values())
    return heard


def test_a_deputy_serves_before_its_leader_is_given_up() -> None:
    rng = np.random.default_rng(5)
    simulator = Simulator(Settings(UNIT, 4, 10), rng)
    for _ in range(60):
        simulator.add(make_filter(rng))
    assert_legal_soon(simulator, 5)
    simulator.run_rounds(120)
    heard = publish_while_the_root_is_silent(simulator, UNIT.universe)
    assert sorted(heard) == sorted(simulator.living())


EVERYWHERE = (-inf, -inf, inf, inf)


def come_to_rest(simulator: Simulator) -> None:
    """Wait until children have found their places."""
    for _ in range(60):
        before = {id_: peer.state.see_shape() for id_, peer in simulator.peers.items()}
        simulator.run_rounds(20)
        if before == {id_: peer.state.see_shape() for id_, peer in simulator.peers.items()}:
            return
    pytest.fail("children move for ever")


@pytest.mark.parametrize("stop", [Simulator.crash, Simulator.leave])
@pytest.mark.parametrize("level", [1, 3])
@pytest.mark.parametrize("seed", range(3))
def test_who_goes_takes_no_event_along(
    seed: int, level: int, stop: Callable[[Simulator, PeerId], None]
) -> None:
    rng = np.random.default_rng(seed)
    simulator = Simulator(Settings(UNIT, 3, 6), rng)
    for number in range(100):
        simulator.add(EVERYWHERE if number % 25 == 0 else make_filter(rng))
    assert_legal_soon(simulator, seed)
    come_to_rest(simulator)
    gone = next(id_ for id_, peer in simulator.peers.items() if peer.state.top == level)
    others = [id_ for id_ in simulator.living() if id_ != gone]
    heard: list[tuple[int, PeerId]] = []
    wanted: list[tuple[int, PeerId]] = []

    def hear(id_: PeerId, event: Event) -> None:
        heard.append((event.payload, id_))

    simulator.on_deliver = hear
    for number in range(160):  # from two periods before it goes to six after that
        if number == 40:
            stop(simulator, gone)
        point = rng.random(2).tolist()
        box = (*point, *point)
        simulator.publish(others[int(rng.integers(len(others)))], box, number)
        wanted += [(number, id_) for id_ in others if simulator.peers[id_].state.wants(box)]
        simulator.run_rounds(0.05)
    simulator.run_rounds(6)
    assert sorted(pair for pair in heard if pair[1] != gone) == sorted(wanted)


def test_what_was_said_of_a_wide_peer_long_ago_hides_nothing_of_its_filter() -> None:
    peer = Peer(PeerId(0), [], Settings(UNIT, 2, 4))
    peer.state.levels.append({})
    for id_, box in ((1, EVERYWHERE), (2, (0.5, 0.5, 0.6, 0.6))):
        entry = Entry(PeerId(id_), (0.0, 0.0, 1.0, 1.0), 0, None, ((PeerId(7), box),))
        peer.receive(Report(0, entry), entry.id, 0.5)
    peer.state.release(1, PeerId(2), 0.5)
    assert peer.state.named_wide(1) == {PeerId(7): EVERYWHERE}


@pytest.mark.parametrize("wide", [6, 150])  # more than a node can name
def test_events_reach_wide_filters_and_whoever_is_below_their_peers(wide: int) -> None:
    rng = np.random.default_rng(wide)
    simulator = Simulator(Settings(UNIT, 2, 4), rng)
    for number in range(2 * wide + 40):
        point = (*(at := rng.random(2).tolist()), *at)
        if number < wide:
            simulator.add(EVERYWHERE, *([point] if number % 2 else []))
        else:
            simulator.add(point)
        if number % 20 == 0:
            simulator.run_rounds(1)
    assert_legal_soon(simulator, wide)
    simulator.run_rounds(10)
    heard: list[PeerId] = []
    simulator.on_deliver = lambda id_, _event: heard.append(id_)
    for number in range(20):
        heard.clear()
        ids = simulator.living()
        box = simulator.peers[ids[-1 - number]].state.filter
        simulator.publish(ids[int(rng.integers(len(ids)))], box)
        simulator.run_rounds(3)
        wanted = [id_ for id_, peer in simulator.peers.items() if peer.state.wants(box)]
        assert sorted(heard) == sorted(wanted)


def test_a_deputy_of_the_root_serves_wide_filters() -> None:
    rng = np.random.default_rng(2)
    simulator = Simulator(Settings(UNIT, 4, 10), rng)
    for number in range(60):
        simulator.add(EVERYWHERE if number % 10 == 0 else make_filter(rng))
    assert_legal_soon(simulator, 2)
    simulator.run_rounds(60)
    heard = publish_while_the_root_is_silent(simulator, (0.5, 0.5, 0.5, 0.5))
    assert {id_ for id_, peer in simulator.peers.items() if peer.state.is_wide} <= set(heard)


def test_a_node_turns_strangers_away_when_it_is_full() -> None:
    settings = Settings(UNIT, 2, 5)
    peer = Peer(PeerId(0), [UNIT.universe], settings)
    for number in range(1, 1_000):
        entry = Entry(PeerId(number), (0.1, 0.1, 0.2, 0.2), 0)
        peer.receive(Join(entry, 0, 1), entry.id, 0.5)
        peer.receive(Report(0, entry), entry.id, 0.5)
    assert all(len(children) <= settings.children_max for children in peer.state.levels)
    assert len(peer.state.leaving) <= settings.children_max
