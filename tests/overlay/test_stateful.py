"""Whatever befalls a small overlay: it stays within bounds, and heals when it is left alone.

Hypothesis chooses what happens to one to eight peers: they come, leave, crash, start again with an
empty memory or have garbage in it; messages are lost, doubled, delayed, cut off, or made up. What
holds always is checked all along; at the end the network is well, and the overlay must become legal
within `ROUNDS_MAX` rounds, stay so, and bring every event to exactly its receivers.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import settings as limits
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from contrada.overlay.boxes import Box, Space
from contrada.overlay.messages import Event, Message, PeerId
from contrada.overlay.peer import Peer
from contrada.overlay.splitting import SPLITS
from contrada.overlay.state import HEIGHT_MAX, Settings
from contrada.overlay.wire import decode, encode
from contrada.simulation.garbage import NOBODY, Maker
from contrada.simulation.simulator import Network, Simulator
from overlay.test_hostile import start_again, wants

if TYPE_CHECKING:
    from contrada.overlay.effects import Effect

PEERS_MAX = 8
ROUNDS_MAX = 150
REST_ROUNDS = 12  # longer than patience, grace and a request to join take
CHILDREN_MAX = 64
MESSAGES_MAX = 400  # of a peer in a round, the worst storm of garbage included

lows = st.sampled_from([0.0, 0.25, 0.5, -inf])
sides = st.sampled_from([0.0, 0.25, 0.5, inf])
boxes = st.builds(
    lambda x, y, width, height: (x, y, high(x, width), high(y, height)), lows, lows, sides, sides
)
indexes = st.integers(0, PEERS_MAX - 1)
seeds = st.integers(0, 2**32 - 1)


def high(low: float, side: float) -> float:
    return side if low == -inf else low + side


def is_bounded(peer: Peer) -> bool:
    levels = peer.state.levels
    return 1 <= len(levels) <= HEIGHT_MAX and all(len(c) <= CHILDREN_MAX for c in levels)


class Overlay(RuleBasedStateMachine):
    """A simulated overlay, and who has heard what."""

    @initialize(
        seed=seeds,
        spare=st.integers(0, 1),
        split=st.sampled_from(sorted(SPLITS)),
        filters=st.lists(boxes, min_size=2, max_size=PEERS_MAX),
    )
    def begin(self, seed: int, spare: int, split: str, filters: list[Box]) -> None:
        self.rng = np.random.default_rng(seed)
        settings = Settings(Space((0.0, 0.0, 1.0, 1.0)), 2, 4 + spare, split)
        self.simulator = Simulator(settings, self.rng, Network(delay_max=0.5))
        self.simulator.on_deliver = self.hear
        self.heard: Counter[tuple[PeerId, int, PeerId, int]] = Counter()
        self.lives: Counter[PeerId] = Counter()
        self.boxes: list[Box] = []
        for filter_ in filters:
            self.add(filter_)

    # What befalls it

    @precondition(lambda self: len(self.simulator.peers) < PEERS_MAX)
    @rule(filter_=boxes)
    def add(self, filter_: Box) -> None:
        self.tap(self.simulator.peers[self.simulator.add(filter_)])

    @precondition(lambda self: len(self.simulator.peers) > 1)
    @rule(index=indexes)
    def leave(self, index: int) -> None:
        self.simulator.leave(self.choose(index))

    @precondition(lambda self: len(self.simulator.peers) > 1)
    @rule(index=indexes)
    def crash(self, index: int) -> None:
        self.simulator.crash(self.choose(index))

    @rule(index=indexes)
    def restart(self, index: int) -> None:
        """Begin again with an empty memory."""
        id_ = self.choose(index)
        self.lives[id_] += 1
        peer = start_again(self.simulator.peers[id_])
        self.simulator.peers[id_] = peer
        self.tap(peer)

    @rule(index=indexes)
    def corrupt(self, index: int) -> None:
        id_ = self.choose(index)
        self.lives[id_] += 1  # it forgets what it has heard
        self.make_maker().corrupt(self.simulator.peers[id_])

    @rule(count=st.integers(1, 20))
    def litter(self, count: int) -> None:
        """Put garbage into the channels; a forged event is of nobody, for who could tell it."""
        maker = self.make_maker()
        for _ in range(count):
            message = maker.make_message()
            if isinstance(message, Event):
                message = replace(message, publisher=NOBODY)
            self.simulator.inject(maker.make_id(), maker.make_id(), message)

    @rule(parts=st.integers(1, 3))
    def cut(self, parts: int) -> None:
        """Cut the network into parts; one part is a whole network."""
        self.simulator.is_cut = lambda a, b: a % parts != b % parts

    @rule(
        loss=st.sampled_from([0.0, 0.1, 0.5]),
        duplication=st.sampled_from([0.0, 0.5]),
        delay_max=st.sampled_from([0.1, 0.9, 3.0]),
    )
    def disturb(self, loss: float, duplication: float, delay_max: float) -> None:
        self.simulator.network = Network(delay_max=delay_max, loss=loss, duplication=duplication)

    @rule(rounds=st.sampled_from([0.1, 0.5, 1.0, 3.0, 10.0]))
    def wait(self, rounds: float) -> None:
        before = self.simulator.traffic.messages
        self.simulator.run_rounds(rounds)
        sent = self.simulator.traffic.messages - before
        assert sent <= MESSAGES_MAX * len(self.simulator.peers) * (rounds + 1)

    @rule(index=indexes, box=boxes)
    def publish(self, index: int, box: Box) -> None:
        self.simulator.publish(self.choose(index), box, len(self.boxes))
        self.boxes.append(box)

    # What holds always

    @invariant()
    def nobody_hears_an_event_twice(self) -> None:
        assert all(times == 1 for times in self.heard.values()), self.heard

    def hear(self, id_: PeerId, event: Event) -> None:
        assert wants(self.simulator.peers[id_], event.box)
        self.heard[id_, self.lives[id_], event.publisher, event.number] += 1

    def tap(self, peer: Peer) -> None:
        """Look at whatever a peer takes in, and at what a tick leaves behind."""
        tick, receive = peer.tick, peer.receive

        def tapped_tick(now: float, contact: PeerId | None = None) -> list[Effect]:
            effects = tick(now, contact)
            assert not any(peer.state.id in children for children in peer.state.levels)
            assert not peer.state.levels[0]
            assert is_bounded(peer)
            return effects

        def tapped_receive(message: Message, sender: PeerId, now: float) -> list[Effect]:
            assert decode(encode(message), 2) == message
            was_bounded = is_bounded(peer)
            effects = receive(message, sender, now)
            assert is_bounded(peer) or not was_bounded, message
            return effects

        peer.tick, peer.receive = tapped_tick, tapped_receive  # type: ignore[method-assign]

    # The end

    def teardown(self) -> None:
        """Leave it alone: it becomes legal, stays so, and is exact."""
        if not hasattr(self, "simulator"):
            return
        simulator = self.simulator
        self.cut(1)
        simulator.network = Network(delay_max=0.5)
        assert self.is_at_rest_within(ROUNDS_MAX), simulator.find_faults()
        heard: list[tuple[int, PeerId]] = []
        simulator.on_deliver = lambda id_, event: heard.append((event.payload, id_))
        wanted = []
        for number, publisher in enumerate(simulator.living()):
            box = simulator.peers[publisher].state.filters[0]
            simulator.publish(publisher, box, number)
            wanted += [(number, id_) for id_, p in simulator.peers.items() if wants(p, box)]
        simulator.run_rounds(6)
        assert sorted(heard) == sorted(wanted)

    def is_at_rest_within(self, rounds_max: int) -> bool:
        legal = 0
        for _ in range(rounds_max + REST_ROUNDS):
            legal = 0 if self.simulator.find_faults() else legal + 1
            if legal > REST_ROUNDS:
                return True
            self.simulator.run_rounds(1)
        return False

    def choose(self, index: int) -> PeerId:
        living = sorted(self.simulator.peers)
        return living[index % len(living)]

    def make_maker(self) -> Maker:
        return Maker(self.rng, 2, self.simulator.living(), self.simulator.now)


def test_a_small_overlay_heals_whatever_befalls_it() -> None:
    run_state_machine_as_test(Overlay, settings=limits(stateful_step_count=30))


@pytest.mark.soak
def test_a_small_overlay_heals_whatever_befalls_it_in_many_more_stories() -> None:
    run_state_machine_as_test(Overlay, settings=limits(stateful_step_count=50))
