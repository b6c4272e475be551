"""What others say hides nobody and fills no memory, and garbage is not acted on twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from contrada.overlay.boxes import Space
from contrada.overlay.effects import Send
from contrada.overlay.messages import (
    Dissolve,
    Entry,
    Event,
    Handed,
    Join,
    Leave,
    Moved,
    PeerId,
    Refuse,
    Replaced,
    Report,
    Took,
)
from contrada.overlay.peer import Peer
from contrada.overlay.state import Promise, Settings
from contrada.overlay.wire import decode, encode
from contrada.simulation.simulator import Network, Simulator

if TYPE_CHECKING:
    from collections.abc import Callable

    from contrada.overlay.messages import Message

UNIT = Space((0.0, 0.0, 1.0, 1.0))
CORNER = (0.0, 0.0, 0.01, 0.01)
STRANGER, CHILD, PARENT = PeerId(10**9), PeerId(1), PeerId(2)
MANY = 10_000


def make_leader() -> Peer:
    """A peer that leads one child, and that a parent has accepted."""
    peer = Peer(PeerId(0), [(0.1, 0.1, 0.2, 0.2)], Settings(UNIT, 2, 4))
    peer.state.levels.append({})
    peer.receive(Report(0, Entry(CHILD, (0.4, 0.4, 0.9, 0.9), 0)), CHILD, 0.0)
    peer.state.move_to(PARENT, 0.0)
    return peer


@pytest.mark.parametrize("seed", range(3))
def test_a_join_in_the_name_of_a_child_hides_nothing_below_it(seed: int) -> None:
    rng = np.random.default_rng(seed)
    simulator = Simulator(Settings(UNIT, 2, 5), rng, Network(0.01, 0.05))
    for _ in range(40):
        middle, half = rng.random(2), rng.random(2) * 0.1
        simulator.add((*(middle - half).tolist(), *(middle + half).tolist()))
    assert simulator.run_until_legal(100) is not None
    simulator.run_rounds(20)
    heard: list[PeerId] = []

    def hear(id_: PeerId, event: Event) -> None:
        heard.append(id_)

    simulator.on_deliver = hear
    for peer in list(simulator.peers.values()):
        for level in range(1, peer.state.top + 1):
            for child in peer.state.levels[level]:
                join = Join(Entry(child, CORNER, 0), level - 1, 1, level)
                peer.receive(join, STRANGER, simulator.now)
    elsewhere = (0.02, 0.02, 1.0, 1.0)
    simulator.publish(simulator.living()[0], elsewhere)
    simulator.run_rounds(0.9)
    wanted = [id_ for id_, p in simulator.peers.items() if p.state.wants(elsewhere)]
    assert sorted(heard) == sorted(wanted)


def make_replaced(number: int) -> Message:
    return Replaced(0, Entry(PeerId(100 + number), CORNER, 0))


def make_moved(number: int) -> Message:
    return Moved(1, PeerId(100 + number))


@pytest.mark.parametrize(("sender", "make"), [(CHILD, make_replaced), (PARENT, make_moved)])
def test_a_flood_between_two_ticks_fills_no_memory(
    sender: PeerId, make: Callable[[int], Message]
) -> None:
    peer = make_leader()
    if sender == CHILD:
        peer.receive(Leave(0), CHILD, 0.1)
    for number in range(MANY):
        peer.receive(make(number), sender, 0.2)
    assert sum(peer.refusals.values()) < MANY, "the flood has had an effect"
    assert len(peer.state.leaving) + len(peer.state.formers) < 400


def test_who_is_let_go_last_is_not_forgotten_first() -> None:
    peer = make_leader()
    peer.state.levels = [{} for _ in range(8)]
    for level in range(1, 8):
        for number in range(16):
            entry = Entry(PeerId(100 * level + number), CORNER, 0)
            peer.receive(Report(level - 1, entry), entry.id, 0.0)
    last = list(peer.state.levels[7])
    peer.state.truncate(1, PeerId(3), 0.1)
    peer.tick(0.2)
    assert set(last) <= set(peer.state.leaving)


def test_who_has_no_room_for_a_reporter_does_not_lose_it_elsewhere() -> None:
    peer = make_leader()
    peer.state.levels.append({})
    room = peer.state.settings.children_max
    for number in range(room):
        entry = Entry(PeerId(100 + number), CORNER, 2)
        peer.receive(Report(1, entry), entry.id, 0.0)
    before = dict(peer.state.levels[1])
    peer.receive(Report(1, Entry(CHILD, CORNER, 2)), CHILD, 0.1)
    assert peer.state.levels[1] == before


def test_who_was_let_go_and_came_back_may_hand_over_its_place() -> None:
    peer = make_leader()
    peer.receive(Leave(0), CHILD, 0.1)
    peer.receive(Join(Entry(CHILD, CORNER, 0), 0, 1, 1), STRANGER, 0.2)
    assert CHILD in peer.state.levels[1]
    heir = Entry(PeerId(7), CORNER, 0)
    peer.receive(Replaced(0, heir), CHILD, 0.3)
    assert set(peer.state.levels[1]) == {heir.id}


def test_a_request_in_the_own_name_that_was_never_sent_is_refused() -> None:
    peer = make_leader()
    peer.state.contact, peer.state.ticket, peer.state.asked = PARENT, 5, 0.1
    for ticket in (4, 6):
        assert peer.receive(Join(Entry(PeerId(0), CORNER, 0), 1, ticket), STRANGER, 0.2) == []
    assert peer.refusals["Join"] == 2
    assert (peer.state.contact, peer.state.asked) == (PARENT, 0.1)


def test_who_has_left_hands_events_on_and_does_nothing_else() -> None:
    peer = make_leader()
    peer.receive(Report(0, Entry(PeerId(3), (0.3, 0.3, 0.5, 0.5), 0)), PeerId(3), 0.0)
    peer.leave(0.1)
    event = Event(PARENT, 1, (0.4, 0.4, 0.5, 0.5), None, 0, False)
    assert {e.to for e in peer.receive(event, PARENT, 0.2) if isinstance(e, Send)} == {1, 3}
    event = Event(CHILD, 1, (0.4, 0.4, 0.5, 0.5), None, 0, True)
    rising = {e.to for e in peer.receive(event, CHILD, 0.2) if isinstance(e, Send)}
    assert rising >= {PARENT, PeerId(3)}
    assert peer.receive(Report(0, Entry(PeerId(9), CORNER, 0)), PeerId(9), 0.2) == []
    assert peer.receive(Refuse(0, PARENT), CHILD, 0.2) == []


def test_a_promise_that_names_a_child_twice_is_kept_once() -> None:
    peer = make_leader()
    peer.receive(Report(0, Entry(PeerId(3), CORNER, 0)), PeerId(3), 0.0)
    peer.state.promise = Promise(CHILD, 1, PARENT, (PeerId(3), CHILD, PeerId(3)), True, 0.1)
    peer.receive(Took(1), CHILD, 0.2)
    assert peer.state.levels[1] == {}
    assert set(peer.state.leaving) == {CHILD, PeerId(3)}


@pytest.mark.parametrize("ticket", [-(2**62), -1, 2**53, 2**63 - 1])
def test_whoever_asks_with_a_garbled_number_is_understood(ticket: int) -> None:
    peer = Peer(PeerId(0), [CORNER], Settings(UNIT, 2, 4))
    peer.state.ticket = ticket
    [join] = peer.receive(Join(Entry(CHILD, (0.0, 0.0, 0.5, 0.5), 0), 0, 1), CHILD, 0.1)
    assert isinstance(join, Send)
    assert decode(encode(join.message), 2) == join.message


def test_whoever_gives_up_children_with_garbled_counts_is_understood() -> None:
    peer = make_leader()
    peer.state.levels[1][CHILD].count = -1
    dissolve = Dissolve(1, (Entry(PeerId(7), CORNER, 2),))
    sent = [e for e in peer.receive(dissolve, PARENT, 0.1) if isinstance(e, Send)]
    assert any(isinstance(effect.message, Handed) for effect in sent)
    assert all(decode(encode(effect.message), 2) == effect.message for effect in sent)


def test_a_promise_of_leaves_is_not_kept() -> None:
    peer = make_leader()
    peer.state.levels[0] = dict(peer.state.levels[1])
    peer.state.promise = Promise(CHILD, 0, PARENT, (), True, 0.1)
    assert peer.receive(Took(0), CHILD, 0.2) == []
