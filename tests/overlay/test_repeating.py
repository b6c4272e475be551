"""What a neighbour may have missed before it fell silent goes to its deputy, once."""

from __future__ import annotations

from collections import deque
from math import inf, nan
from typing import TYPE_CHECKING, Any

import pytest

from contrada.overlay.boxes import Space
from contrada.overlay.effects import Deliver, Effect, Effects, Send
from contrada.overlay.messages import Accept, Copy, Entry, Event, Moved, PeerId, Report
from contrada.overlay.peer import Peer
from contrada.overlay.repeating import Handled, Kept
from contrada.overlay.state import Child, Settings

if TYPE_CHECKING:
    from collections.abc import Iterable

SETTINGS = Settings(Space((0.0, 0.0, 1.0, 1.0)), 2, 4)
EVERYWHERE = (0.05, 0.05, 0.95, 0.95)
HERE, THERE = (0.2, 0.2, 0.2, 0.2), (0.8, 0.8, 0.8, 0.8)
AROUND_HERE = (0.1, 0.1, 0.3, 0.3)
CHILD, PARENT, DEPUTY, SIBLING = map(PeerId, (1, 2, 3, 4))


def list_events(effects: Iterable[Effect], to: PeerId) -> list[object]:
    """List the payloads of the events that are sent to a peer."""
    sends = [effect for effect in effects if isinstance(effect, Send) and effect.to == to]
    return [send.message.payload for send in sends if isinstance(send.message, Event)]


def make_leader() -> Peer:
    """A root with a child that was last heard of at 0, and has a deputy."""
    peer = Peer(PeerId(0), [EVERYWHERE], SETTINGS)
    child = Child(AROUND_HERE, 3, 0.0, is_sure=True, deputy=DEPUTY)
    peer.state.levels = [{}, {}, {CHILD: child}]
    return peer


def make_child(heir: PeerId) -> Peer:
    """A leaf that has last heard of its parent at 0, and of who is its deputy."""
    peer = Peer(PeerId(0), [AROUND_HERE], SETTINGS)
    peer.state.move_to(PARENT, 0.0)
    peer.receive(Accept(0, PARENT, 0, 0.0, heir), PARENT, 0.0)
    return peer


def make_deputy() -> Peer:
    """A leaf that is its parent's deputy: it knows of a sibling, and of nobody above."""
    peer = make_child(PeerId(0))
    entries = (Entry(SIBLING, AROUND_HERE, 0),)
    peer.receive(Copy((entries,), PeerId(0), None), PARENT, 0.0)
    return peer


def test_a_silent_child_s_deputy_gets_what_is_for_the_child_once() -> None:
    peer = make_leader()
    peer.publish(HERE, "before", -2.0)
    peer.publish(HERE, "here", 0.5)
    peer.publish(THERE, "there", 0.6)
    assert list_events(peer.tick(1.0), DEPUTY) == []
    assert list_events(peer.tick(2.0), DEPUTY) == ["here"]
    assert list_events(peer.tick(3.0), DEPUTY) == []


def test_a_child_that_is_heard_of_again_is_not_repeated_for() -> None:
    peer = make_leader()
    peer.publish(HERE, "here", 0.5)
    peer.receive(Report(1, Entry(CHILD, AROUND_HERE, 3), 0.0, DEPUTY), CHILD, 1.0)
    assert list_events(peer.tick(2.0), DEPUTY) == []


def test_a_silent_parent_s_deputy_gets_what_has_risen() -> None:
    peer = make_child(DEPUTY)
    peer.publish(THERE, "there", 0.5)
    assert list_events(peer.tick(1.0), DEPUTY) == []
    assert list_events(peer.tick(2.0), DEPUTY) == ["there"]


def test_a_deputy_that_leads_before_its_tick_has_repeated_first() -> None:
    peer = make_child(DEPUTY)
    peer.publish(THERE, "there", 0.5)
    effects = peer.receive(Moved(0, DEPUTY), DEPUTY, 1.9)
    assert list_events(effects, DEPUTY) == ["there"]
    assert peer.state.parent == DEPUTY


def test_while_the_parent_is_heard_of_its_deputy_moves_nobody() -> None:
    peer = make_child(DEPUTY)
    peer.receive(Moved(0, DEPUTY), DEPUTY, 1.0)
    assert peer.state.parent == PARENT
    assert peer.refusals["Moved"] == 1


def test_a_deputy_does_what_its_silent_leader_may_have_left_undone() -> None:
    peer = make_deputy()
    peer.publish(HERE, "here", 0.5)
    peer.publish(THERE, "there", 0.6)
    assert list_events(peer.tick(2.0), SIBLING) == ["here"]


def test_the_first_sibling_to_ask_makes_the_deputy_of_a_silent_leader_lead() -> None:
    peer = make_deputy()
    report = Report(0, Entry(SIBLING, AROUND_HERE, 0))
    peer.receive(report, SIBLING, 1.0)
    assert peer.state.parent == PARENT
    peer.receive(report, PeerId(9), 2.0)
    assert peer.state.parent == PARENT
    peer.receive(report, SIBLING, 2.0)
    assert peer.state.is_root
    assert list(peer.state.children(1)) == [SIBLING]


def test_no_more_is_kept_than_a_thousand_events() -> None:
    peer = make_leader()
    for number in range(3_000):
        peer.publish(HERE, number, 0.5)
    assert list_events(peer.tick(2.0), DEPUTY) == list(range(3_000 - 1_024, 3_000))


@pytest.mark.parametrize("payload", ["x" * 2**19, [[]] * 2**14, {"a": ["x" * 2**18, "é" * 2**18]}])
def test_no_more_is_kept_than_16_mebibytes_of_payloads(payload: Any) -> None:
    kept = Kept()
    for number in range(100):
        kept.keep(Event(CHILD, number, HERE, payload, 0, True), None, 0, 0.5)
    assert 1 <= len(kept.handled) <= 32
    assert kept.handled[-1].event.number == 99
    kept.repeat(make_leader().state, 8.0, Effects(PeerId(0)))
    assert kept == Kept()


@pytest.mark.parametrize("time", [inf, -inf, nan, 1e18, 50.0, 3.0])
def test_what_is_kept_from_a_time_that_cannot_be_is_forgotten(time: float) -> None:
    peer = make_leader()
    event = Event(CHILD, 1, THERE, "garbage", 0, True)
    garbage = [Handled(event, None, 0, at, -(2**62)) for at in (time, 1.0, time)]
    peer._kept = Kept(deque(garbage), {CHILD: time, SIBLING: time}, 2**62)
    for now in range(1, 12):
        peer.tick(float(now))
    assert peer._kept == Kept()


def test_garbage_that_no_peer_could_have_sent_is_not_repeated() -> None:
    peer = make_leader()
    for number, box in ((-1, HERE), (1, HERE[:3]), (2, HERE), (2**63, HERE)):
        event = Event(CHILD, number, box, number, 0, True)
        peer._kept.handled.append(Handled(event, None, 9, 0.5, 0))
    assert list_events(peer.tick(2.0), DEPUTY) == [2]


def test_an_event_that_is_repeated_after_many_others_is_not_delivered_twice() -> None:
    peer = make_child(DEPUTY)
    first = Event(SIBLING, 1, HERE, "first", 0, False)
    delivered = []
    for event in (first, *(Event(SIBLING, n, HERE, n, 0, False) for n in range(2, 20_000)), first):
        delivered += [e for e in peer.receive(event, PARENT, 0.5) if isinstance(e, Deliver)]
    assert len(delivered) == 19_999


def test_what_a_child_was_told_to_adopt_counts_until_it_must_have_arrived() -> None:
    peer = make_leader()
    child, space = peer.state.levels[2][CHILD], SETTINGS.space
    child.expect([Entry(PeerId(8), THERE, 0)], space, 0.5)
    report = Report(1, Entry(CHILD, AROUND_HERE, 3), 0.0, DEPUTY)
    peer.receive(report, CHILD, 1.0)
    assert child.meets(THERE, space)
    peer.receive(report, CHILD, 2.5)
    assert not child.meets(THERE, space)
