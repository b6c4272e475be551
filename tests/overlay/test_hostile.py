"""Garbage, replays, strangers, other versions and broken bytes: refused, counted, and harmless.

A *stranger* is a sender that is not a parent or a child of the receiver, and has not just been one.
From a stranger only these may have an effect: `Join` and `Report`, which are open to all and add a
child that is forgotten when it falls silent; `Accept` and `Offer`, if it guesses the number of the
request that they answer; and `Event`, if the receiver is outside the boxes and served by whoever is
the root, or knows the stranger as somebody's deputy. Every other kind is refused, and changes
nothing.
"""

from __future__ import annotations

import json
from collections import defaultdict
from copy import deepcopy
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from contrada.errors import PeerError
from contrada.overlay.boxes import Space, meets
from contrada.overlay.effects import Send
from contrada.overlay.messages import Accept, Entry, Event, Join, Message, PeerId, Refuse
from contrada.overlay.peer import Peer
from contrada.overlay.repeating import Kept
from contrada.overlay.splitting import SPLITS
from contrada.overlay.state import Child, Settings
from contrada.overlay.wire import VERSION, decode, encode
from contrada.simulation.garbage import (
    FOREVER,
    MESSAGE_KINDS,
    NOBODY,
    WILD_NUMBERS,
    WILD_WHOLES,
    Garbage,
    Maker,
)
from contrada.simulation.simulator import Network, Simulator

if TYPE_CHECKING:
    from numpy.random import Generator

    from contrada.overlay.boxes import Box
    from contrada.overlay.effects import Effect


def start(id_: int, filter_: Box, settings: Settings) -> Peer:
    """Start a peer with one filter."""
    return Peer(PeerId(id_), [filter_], settings)


def start_again(peer: Peer) -> Peer:
    """Start a peer that has forgotten all but who it is and what it filters."""
    return Peer(peer.state.id, peer.state.filters, peer.state.settings)


def wants(peer: Peer, box: Box) -> bool:
    """Tell whether a peer should hear of an event."""
    return any(meets(filter_, box) for filter_ in peer.state.filters)


# Overlays to attack

UNIT = Space((0.0, 0.0, 1.0, 1.0))
CALM = Network(delay_max=0.3)
PEERS = 40
HEALING_ROUNDS = 30  # enough to forget a child that never reports, and to ask again for a parent
OPEN = {"Join", "Accept", "Report", "Offer", "Event"}  # a stranger may have an effect with these
CLOSED = [kind for kind in MESSAGE_KINDS if kind.__name__ not in OPEN]


def build(seed: int) -> tuple[Simulator, Generator]:
    """A legal overlay at rest."""
    rng = np.random.default_rng(seed)
    simulator = Simulator(Settings(UNIT, 2, 5), rng, CALM)
    for _ in range(PEERS):
        middle, half = rng.random(2), rng.random(2) * 0.1
        simulator.add((*(middle - half).tolist(), *(middle + half).tolist()))
    assert_legal_within(simulator, 100)
    return simulator, rng


def assert_legal_within(simulator: Simulator, rounds_max: int) -> None:
    """Legal soon, and still legal when everything that was under way has had its effect."""
    for rest in (0, 12):
        simulator.run_rounds(rest)
        assert simulator.run_until_legal(rounds_max) is not None, simulator.find_faults()[:5]


def assert_exact(simulator: Simulator, rng: Generator) -> None:
    """Events reach just those whose filters they meet, once."""
    heard: list[tuple[object, PeerId]] = []
    simulator.on_deliver = lambda id_, event: heard.append((event.payload, id_))
    wanted = []
    for number in range(10):
        box = Maker(rng, 2, simulator.living(), simulator.now).make_box()
        payload = f"event {number}"
        simulator.publish(simulator.living()[number], box, payload)
        wanted += [(payload, i) for i, p in simulator.peers.items() if wants(p, box)]
    simulator.run_rounds(10)
    assert sorted(heard) == sorted(wanted)


def count_refused(peer: Peer) -> int:
    """Count what a peer has refused, of every kind."""
    return peer.refusals.total()


def find_strangers(simulator: Simulator, id_: PeerId) -> list[PeerId]:
    """List who is no parent, deputy or child of a peer and has not just been one, nor the peer."""
    state = simulator.peers[id_].state
    known = {id_, state.parent, state.heir, *state.leaving, *state.formers}
    known.update(child for children in state.levels for child in children)
    return [other for other in (*simulator.living(), NOBODY) if other not in known]


# Strangers


@pytest.mark.parametrize("kind", CLOSED, ids=lambda kind: kind.__name__)
def test_what_a_stranger_may_not_say_is_refused_counted_and_changes_nothing(kind: type) -> None:
    simulator, rng = build(1)
    maker = Maker(rng, 2, simulator.living(), simulator.now)
    for id_, peer in simulator.peers.items():
        before, refused = deepcopy(peer.state), count_refused(peer)
        strangers = find_strangers(simulator, id_)
        for number in range(15):
            effects = peer.receive(
                maker.make_message([kind]), strangers[number % len(strangers)], 1e3
            )
            assert all(isinstance(e, Send) and isinstance(e.message, Refuse) for e in effects)
        assert peer.state == before
        assert count_refused(peer) == refused + 15


@pytest.mark.parametrize("seed", range(4))
def test_whatever_strangers_say_the_overlay_is_soon_legal_and_exact(seed: int) -> None:
    simulator, rng = build(seed)
    maker = Maker(rng, 2, simulator.living(), simulator.now)
    for _ in range(2_000):
        to = simulator.living()[int(rng.integers(PEERS))]
        strangers = find_strangers(simulator, to)
        sender = strangers[int(rng.integers(len(strangers)))]
        simulator.inject(sender, to, make_forgery(maker))
    assert_legal_within(simulator, HEALING_ROUNDS)
    assert_exact(simulator, rng)


def make_forgery(maker: Maker) -> Message:
    """Any message; an event is of a publisher that is not, for nobody can tell a forged one."""
    message = maker.make_message()
    return replace(message, publisher=NOBODY) if isinstance(message, Event) else message


def test_a_join_for_somebody_who_never_reports_is_forgotten() -> None:
    simulator, rng = build(5)
    maker = Maker(rng, 2, [], simulator.now)
    for number in range(100):
        entry = Entry(PeerId(10**9 + number), maker.make_box(), 0)
        simulator.inject(entry.id, simulator.living()[number % PEERS], Join(entry, 0, 1))
    assert_legal_within(simulator, 2 * HEALING_ROUNDS)
    assert_exact(simulator, rng)


def test_no_peer_takes_a_message_from_itself() -> None:
    simulator, rng = build(6)
    maker = Maker(rng, 2, simulator.living(), simulator.now)
    for id_, peer in simulator.peers.items():
        before = deepcopy(peer.state)
        for _ in range(100):
            assert peer.receive(maker.make_message(CLOSED), id_, 1e3) == []
        assert peer.state == before


def test_a_known_sender_that_lies_does_harm_that_heals() -> None:
    simulator, rng = build(7)
    maker = Maker(rng, 2, simulator.living(), simulator.now)
    for _ in range(1_000):
        simulator.inject(maker.make_id(), maker.make_id(), make_forgery(maker))
    assert_legal_within(simulator, 5 * HEALING_ROUNDS)
    assert_exact(simulator, rng)


# Corrupted memories


def list_memories(peer: Peer) -> dict[str, object]:
    """All that a peer remembers, field by field, also of its children; but for its counts."""
    assert vars(peer).keys() == {"state", "refusals", "_published", "_has_left", "_seen", "_kept"}
    parts: list[Any] = [peer.state, peer.state.seeking, peer._seen, peer._kept]
    parts += [peer.state.promise] if peer.state.promise else []
    parts += [child for level in peer.state.levels for child in level.values()]
    named = {f"{type(part).__name__}.{f.name}": part for part in parts for f in fields(part)}
    found = {name: getattr(part, name.split(".")[1]) for name, part in named.items()}
    return {**found, "published": peer._published, "has_left": peer._has_left}


def test_corruption_leaves_nothing_that_a_peer_remembers_as_it_was() -> None:
    rng = np.random.default_rng(1)
    peer = start(0, (0.1, 0.1, 0.2, 0.2), Settings(UNIT, 2, 4))
    maker = Maker(rng, 2, [PeerId(i) for i in range(12)], 50.0)
    seen: dict[str, set[str]] = defaultdict(set)
    for _ in range(60):
        maker.corrupt(peer)
        for name, value in list_memories(peer).items():
            seen[name].add(repr(value))
    constant = {name for name, values in seen.items() if len(values) == 1}
    assert constant == {f"State.{name}" for name in FOREVER}
    assert seen["Child.is_sure"] == {"True", "False"}
    assert {"None", "()"} <= seen["Child.wide"]


@pytest.mark.parametrize("seed", range(4))
def test_corrupted_peers_are_soon_legal_and_exact_and_forget_what_never_was(seed: int) -> None:
    simulator, rng = build(seed)
    garbage = Garbage(simulator, rng)
    for id_ in simulator.living():
        garbage.corrupt(id_)
    garbage.send(100)
    assert_legal_within(simulator, 5 * HEALING_ROUNDS)
    assert all(peer._kept == Kept() for peer in simulator.peers.values())
    assert_exact(simulator, rng)


@pytest.mark.parametrize("seed", range(300))
def test_a_peer_with_garbage_in_memory_fails_at_no_call(seed: int) -> None:
    rng = np.random.default_rng(seed)
    ids = [PeerId(i) for i in range(12)]
    maker = Maker(rng, 2, ids, 50.0)
    peer = start(0, (0.1, 0.1, 0.2, 0.2), Settings(UNIT, 2, 4, str(rng.choice(sorted(SPLITS)))))
    maker.corrupt(peer)
    for number in range(20):
        peer.receive(maker.make_message(), maker.make_id(), 50.0 + number / 40)
    peer.publish(maker.make_box(), None, 51.0)
    peer.tick(51.0, ids[1]) if seed % 2 else peer.leave(51.0)
    for number in range(20):
        peer.receive(maker.make_message(), maker.make_id(), 51.0 + number / 40)


@pytest.mark.parametrize("name", ["heard", "moved", "asked"])
@pytest.mark.parametrize("time", WILD_NUMBERS)
def test_a_time_that_cannot_be_is_mended_by_a_tick(name: str, time: float) -> None:
    peer = start(0, (0.1, 0.1, 0.2, 0.2), Settings(UNIT, 2, 4))
    setattr(peer.state, name, time)
    peer.state.levels = [{}, {PeerId(1): Child((0.0, 0.0, 0.1, 0.1), 0, time)}]
    peer.tick(50.0)
    assert getattr(peer.state, name) <= 50.0
    peer.tick(55.0)
    assert peer.state.levels == [{}], "a child that never reports is forgotten"


@pytest.mark.parametrize("ticket", WILD_WHOLES)
def test_a_peer_finds_a_parent_whatever_its_last_ticket_was(ticket: int) -> None:
    small, large = (start(i, (0.0, 0.0, i / 3, 1.0), Settings(UNIT, 2, 4)) for i in (1, 2))
    small.state.ticket = ticket
    join, _ = small.tick(50.0, large.state.id)
    assert isinstance(join, Send)
    [accept] = large.receive(decode(encode(join.message), 2), small.state.id, 50.1)
    assert isinstance(accept, Send)
    small.receive(accept.message, large.state.id, 50.2)
    assert small.state.parent == large.state.id


# Replays


def record(monkeypatch: pytest.MonkeyPatch) -> list[tuple[PeerId, PeerId, Message]]:
    """Write down who sends what to whom from now on."""
    traffic: list[tuple[PeerId, PeerId, Message]] = []
    receive = Peer.receive

    def listen(peer: Peer, message: Message, sender: PeerId, now: float) -> list[Effect]:
        traffic.append((sender, peer.state.id, message))
        return receive(peer, message, sender, now)

    monkeypatch.setattr(Peer, "receive", listen)
    return traffic


@pytest.mark.parametrize("seed", range(3))
def test_replayed_traffic_does_no_harm_that_lasts(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    traffic = record(monkeypatch)
    simulator, rng = build(seed)
    for id_ in simulator.living()[:5]:
        simulator.publish(id_, (0.2, 0.2, 0.8, 0.8), "first")
    simulator.run_rounds(3)
    monkeypatch.undo()
    heard: list[PeerId] = []
    simulator.on_deliver = lambda id_, _: heard.append(id_)
    for at in rng.permutation(len(traffic)).tolist():
        simulator.inject(*traffic[at])
    simulator.run_rounds(1)
    assert not heard, "an event was delivered again"
    assert_legal_within(simulator, 2 * HEALING_ROUNDS)
    assert_exact(simulator, rng)


@pytest.mark.parametrize("copies", [1, 50])
def test_an_answer_that_comes_again_does_not_part_a_child_from_its_parent(copies: int) -> None:
    settings = Settings(UNIT, 2, 5)
    root, joiner = (start(i, (0.0, 0.0, 1.0, 0.8 - i / 2), settings) for i in (0, 1))
    join, _ = joiner.tick(0.0, root.state.id)
    assert isinstance(join, Send) and isinstance(join.message, Join)
    [accept] = root.receive(join.message, joiner.state.id, 0.1)
    assert isinstance(accept, Send) and isinstance(accept.message, Accept)
    joiner.receive(accept.message, root.state.id, 0.2)
    before = deepcopy(joiner.state)
    for _ in range(copies):
        assert joiner.receive(accept.message, root.state.id, 0.3) == []
    assert joiner.state.parent == before.parent == root.state.id


def test_a_request_that_meets_a_ring_of_parents_goes_round_once_at_most() -> None:
    settings = Settings(UNIT, 2, 5)
    peers = [start(i, (0.0, 0.0, 1.0, 1.0), settings) for i in range(3)]
    for i, peer in enumerate(peers):
        peer.state.parent = PeerId((i + 1) % 3)
    pending: list[tuple[int, Join]] = [(0, Join(Entry(NOBODY, (0.0, 0.0, 1.0, 1.0), 0), 0, 1))]
    hops = 0
    while pending:
        at, join = pending.pop()
        hops += 1
        for effect in peers[at].receive(join, NOBODY, 0.0):
            assert isinstance(effect, Send) and isinstance(effect.message, Join)
            pending.append((effect.to, effect.message))
    assert hops <= len(peers)


# Bytes


def test_messages_of_a_version_from_the_future_are_refused() -> None:
    maker = Maker(np.random.default_rng(1), 2, [PeerId(1)], 0.0)
    for kind in MESSAGE_KINDS:
        row = json.loads(encode(maker.make_message([kind])))
        for version in (VERSION + 1, 0, -1, None, "1", True, [1]):
            with pytest.raises(PeerError, match="version"):
                decode(json.dumps([version, *row[1:], "what the future adds"]).encode(), 2)


STRANGE: list[Any] = [
    *(None, True, -1, 1.5, 10**30, 10**400, -(10**400), "", "inf", "x" * 99, [], {}, [[]]),
    *([0, 0], [1, 1, 0, 0], ["inf", "inf", "-inf", "-inf"], [10**400] * 4, [None] * 4),
    *([0] * 300, [[1, [0, 0, 1, 1], 1]] * 300, {"0": 0}, [[[]] * 60] * 60),
]


@pytest.mark.parametrize("kind", MESSAGE_KINDS, ids=lambda kind: kind.__name__)
def test_a_field_of_any_other_kind_is_refused_or_means_what_it_says(kind: type) -> None:
    maker = Maker(np.random.default_rng(2), 2, [PeerId(1)], 0.0)
    row = json.loads(encode(maker.make_message([kind])))
    for at in range(2, len(row)):
        for strange in STRANGE:
            assert_refused_or_sound(json.dumps([*row[:at], strange, *row[at + 1 :]]).encode())


def test_broken_bytes_are_refused_or_mean_what_they_say() -> None:
    rng = np.random.default_rng(3)
    maker = Maker(rng, 2, [PeerId(1)], 0.0)
    for _ in range(2_000):
        data = bytearray(encode(maker.make_message()))
        for _ in range(int(rng.integers(1, 4))):
            data[int(rng.integers(len(data)))] = int(rng.integers(256))
        assert_refused_or_sound(bytes(data[: int(rng.integers(1, 2 * len(data)))]))
        assert_refused_or_sound(rng.bytes(int(rng.integers(40))))


@pytest.mark.parametrize("payload", ["1e999", "[-1e999]", '{"a":[1e400]}', "NaN", "Infinity"])
def test_a_payload_that_cannot_be_passed_on_is_refused(payload: str) -> None:
    with pytest.raises(PeerError):
        decode(f'[1,"Event",1,1,[0,0,1,1],{payload},0,true]'.encode(), 2)


def assert_refused_or_sound(data: bytes) -> None:
    """Bytes are refused, and in no other way than with `PeerError`, or can be passed on."""
    try:
        message = decode(data, 2)
    except PeerError:
        return
    assert decode(encode(message), 2) == message
