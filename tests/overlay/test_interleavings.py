"""Messages of a few peers in every order, lost and doubled: the peers become legal all the same.

For the search, time goes in rounds: all peers tick, then all messages of the round and those that
they cause are delivered. What the checks compare are differences of times with fixed limits, so a
state is told by its ages up to the greatest limit, and the states between rounds are finitely many.

**Exhausted**, for the plain protocol with three peers, m = 2 and M = 4: whatever can come of three
peers that know nothing of each other (2,500 to 3,400 states between rounds, up to 660,000
deliveries), and of twelve corrupted memories (40 to 22,000 states, up to 4,800,000 deliveries), in
every order of delivery and with every answer of the oracle; in `make soak` also with one message
lost or doubled anywhere. The searches end because they find no new state, not at some depth. In
whatever order, the peers come to rest within `ROUNDS_MAX` rounds: to states that are legal, that
only such states follow, and in which events are delivered exactly.

**Not exhausted**: messages that outlive their round, peers that tick at different rates, several
faults, and more than three peers (so no splits: they need five). These are left to random walks
with three to five peers, all of the protocol switched on, in which any pending message may be
delivered, lost, doubled or left lying at any time, while any peer ticks.
"""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from itertools import product
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from contrada.overlay.boxes import Box, Space
from contrada.overlay.effects import Deliver, Effect, Send
from contrada.overlay.messages import Message, PeerId
from contrada.overlay.peer import Peer
from contrada.overlay.sanitising import sanitise
from contrada.overlay.state import Child, Promise, Seeking, Settings, State
from contrada.simulation.checker import OverlayFault, find_faults
from contrada.simulation.garbage import FOREVER, Maker
from contrada.simulation.simulator import look
from overlay.test_hostile import start, start_again, wants
from overlay.test_stabilising_soak import make_blocks, name_block, replayable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.random import Generator

UNIT = Space((0.0, 0.0, 1.0, 1.0))
PLAIN = Settings(UNIT, 2, 4, summaries=False, deputies=False, moving=False)
STATES_MAX = 200_000  # more are a sign of a time that does not age
ROUNDS_MAX = 30  # of three peers, in the worst order
REST_ROUNDS = 12  # longer than patience, grace and a request to join take
SEEDS_OFTEN = 400  # of the walks in `make test`; more are for `make soak`
AGE_MAX = 7.0  # beyond every limit of the protocol, in periods
SPANS = {"calm"}  # lengths of time; every other float of a memory is a time

Mail = tuple[PeerId, PeerId, Message]  # sender, receiver, message
Frozen = tuple[Any, ...]  # the memory of a peer, with ages for times
World = tuple[int, ...]  # the numbers of all memories
Mails = tuple[int, ...]  # the numbers of the messages under way, in order

PROBES: list[Box] = [(0.1, 0.1, 0.1, 0.1), (0.45, 0.45, 0.5, 0.5), (-inf, -inf, inf, inf)]

FILTERS: dict[str, list[Box]] = {
    "apart": [(0.0, 0.0, 0.1, 0.1), (0.4, 0.4, 0.6, 0.6), (0.8, 0.8, 0.9, 0.9)],
    "nested": [(0.4, 0.4, 0.5, 0.5), (0.2, 0.2, 0.7, 0.7), (0.0, 0.0, 1.0, 1.0)],
    "equal": [(0.2, 0.2, 0.4, 0.4)] * 3,
    "flat": [(0.1, 0.1, 0.1, 0.1), (-inf, 0.5, inf, 0.5), (0.1, 0.1, 0.1, 0.1)],
}


# Memories as values


def freeze(value: Any, now: float) -> Any:
    """Make a value of a memory: times become ages, and none is older than all limits."""
    if isinstance(value, float):
        return max(value - now, -AGE_MAX)
    if isinstance(value, dict):
        return (dict, *((key, freeze(value[key], now)) for key in sorted(value)))
    if isinstance(value, list):
        return (list, *(freeze(item, now) for item in value))
    kind: type = type(value)
    if kind in (State, Child, Promise, Seeking):
        return (kind, *(freeze_field(value, name, now) for name in get_names(kind)))
    return value


def freeze_field(value: Any, name: str, now: float) -> Any:
    inner = getattr(value, name)
    if name == "sent":
        return None  # so that all is told at once, and memories differ less
    return inner if name in SPANS else freeze(inner, now)


def thaw(frozen: Any, now: float) -> Any:
    """Make a memory of a value again."""
    if isinstance(frozen, float):
        assert frozen <= 0.0, "a time lies in the future"
        return frozen + now
    if not isinstance(frozen, tuple) or not frozen or not isinstance(frozen[0], type):
        return frozen
    kind, *items = frozen
    if kind is dict:
        return {key: thaw(item, now) for key, item in items}
    if kind is list:
        return [thaw(item, now) for item in items]
    return kind(*(thaw_field(*pair, now) for pair in zip(get_names(kind), items, strict=True)))


def thaw_field(name: str, item: Any, now: float) -> Any:
    return item if name in SPANS else thaw(item, now)


@cache
def get_names(kind: type) -> list[str]:
    return [f.name for f in fields(kind) if kind is not State or f.name not in FOREVER]


def load(peer: Peer, frozen: Frozen, now: float) -> Peer:
    """Give a peer a memory."""
    for name, item in zip(get_names(State), frozen[1:], strict=True):
        setattr(peer.state, name, thaw_field(name, item, now))
    return peer


# Every order


class Book:
    """Numbers for values: the same for the same, so that worlds are compared and kept cheaply."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._numbers: dict[Any, int] = {}

    def number(self, value: Any) -> int:
        if value not in self._numbers:
            self._numbers[value] = len(self.values)
            self.values.append(value)
        return self._numbers[value]


class Search:
    """All states between rounds that can be reached, and which follows which without a fault.

    A world is a number for each memory. What a peer does depends on its own memory alone, so each
    tick and each delivery to a memory is done only once.
    """

    def __init__(self, filters: Sequence[Box]) -> None:
        self._peers = [start(i, box, PLAIN) for i, box in enumerate(filters)]
        self._memories, self._mails = Book(), Book()
        self._ticked: dict[tuple[int, int, PeerId], tuple[int, list[int]]] = {}
        self._received: dict[tuple[int, int], tuple[int, list[int]]] = {}
        self._ended: dict[tuple[int, int], int] = {}
        self.following: dict[World, set[World]] = {}
        self.steps = 0

    def look_now(self) -> World:
        """Give the memories as they are at the beginning."""
        return tuple(self._note(peer, 0.0) for peer in self._peers)

    def corrupt(self, rng: Generator) -> None:
        """Put garbage into all memories, down to what the first tick would leave of it.

        What peers remember of events is no part of a world, and stays empty.
        """
        maker = Maker(rng, 2, [peer.state.id for peer in self._peers], 0.0)
        for index, peer in enumerate(self._peers):
            maker.corrupt(peer)
            sanitise(peer.state, 0.0)
            self._peers[index] = start_again(peer)
            self._peers[index].state = peer.state

    def run(self, world: World, faults: int) -> None:
        """Find all that can come of a state when so many messages may be lost or doubled."""
        seen: set[tuple[World, int]] = set()
        pending = [(world, faults), (world, 0)]
        while pending:
            step = pending.pop()
            if step in seen:
                continue
            seen.add(step)
            assert len(seen) <= STATES_MAX
            for after, left in self._play_round(*step):
                pending += [(after, left), (after, 0)]

    def _play_round(self, world: World, faults: int) -> set[tuple[World, int]]:
        """Let all tick, with every answer of the oracle, and deliver in every order."""
        ids = [peer.state.id for peer in self._peers]
        ends: set[tuple[World, int]] = set()
        seen: set[tuple[World, Mails, int]] = set()
        for contacts in product(*([other for other in ids if other != id_] for id_ in ids)):
            pairs = [self._tick(*each) for each in zip(ids, world, contacts, strict=True)]
            mails = [mail for _, sent in pairs for mail in sent]
            ticked = tuple(after for after, _ in pairs)
            self._deliver(ticked, tuple(sorted(mails)), faults, seen, ends)
        if not faults:
            self.following[world] = {after for after, _ in ends}
        return ends

    def _deliver(
        self,
        ticked: World,
        mails: Mails,
        faults: int,
        seen: set[tuple[World, Mails, int]],
        ends: set[tuple[World, int]],
    ) -> None:
        pending = [(ticked, mails, faults)]
        while pending:
            step = pending.pop()
            if step in seen:
                continue
            seen.add(step)
            world, mails, left = step
            if not mails:
                ends.add((tuple(self._end_round(*each) for each in enumerate(world)), left))
                continue
            for at, mail in enumerate(mails):
                if at and mails[at - 1] == mail:
                    continue
                rest = (*mails[:at], *mails[at + 1 :])
                after, sent = self._receive(world, mail)
                pending.append((after, tuple(sorted((*rest, *sent))), left))
                if left:
                    pending.append((world, rest, left - 1))
                    pending.append((after, tuple(sorted((*mails, *sent))), left - 1))

    def _tick(self, id_: PeerId, memory: int, contact: PeerId) -> tuple[int, list[int]]:
        key = id_, memory, contact
        if key not in self._ticked:
            peer = self._load(id_, memory, 0.0)
            sent = self._post(id_, peer.tick(0.0, contact))
            self._ticked[key] = self._note(peer, 0.5), sent
        return self._ticked[key]

    def _receive(self, world: World, mail: int) -> tuple[World, list[int]]:
        self.steps += 1
        sender, to, message = self._mails.values[mail]
        if to >= len(world):
            return world, []
        key = world[to], mail
        if key not in self._received:
            peer = self._load(to, world[to], 0.5)
            sent = self._post(to, peer.receive(message, sender, 0.5))
            self._received[key] = self._note(peer, 0.5), sent
        after, sent = self._received[key]
        return (*world[:to], after, *world[to + 1 :]), sent

    def _end_round(self, index: int, memory: int) -> int:
        """Let half a period pass; no message is under way that has a ticket."""
        key = index, memory
        if key not in self._ended:
            peer = self._load(index, memory, 0.5)
            peer.state.ticket = 0
            self._ended[key] = self._note(peer, 1.0)
        return self._ended[key]

    def _load(self, index: int, memory: int, now: float) -> Peer:
        return load(self._peers[index], self._memories.values[memory], now)

    def _note(self, peer: Peer, now: float) -> int:
        return self._memories.number(freeze(peer.state, now))

    def _post(self, sender: PeerId, effects: Iterable[Effect]) -> list[int]:
        return [self._mails.number(mail) for mail in post(sender, effects)]

    def load_all(self, world: World) -> list[Peer]:
        """Give all peers their memories."""
        return [self._load(index, memory, 0.0) for index, memory in enumerate(world)]

    def is_legal(self, world: World) -> bool:
        return not find_faults_of(self.load_all(world), PLAIN)

    def find_rest(self) -> set[World]:
        """Find the states that are legal and that only such states follow."""
        rest = {world for world in self.following if self.is_legal(world)}
        while leaving := {world for world in rest if not self.following[world] <= rest}:
            rest -= leaving
        return rest

    def count_rounds(self, rest: set[World]) -> float:
        """Count the rounds to rest in the worst order; without an end if orders can prevent it."""
        rounds: dict[World, float] = dict.fromkeys(rest, 0.0)
        open_ = set(self.following) - rest
        while ready := {world for world in open_ if self.following[world] <= rounds.keys()}:
            for world in ready:
                rounds[world] = 1 + max(rounds[after] for after in self.following[world])
            open_ -= ready
        return inf if open_ else max(rounds.values())

    def find_lost(self, goal: set[World]) -> set[World]:
        """Find the states from which no order of messages leads to the goal."""
        before: dict[World, set[World]] = {world: set() for world in self.following}
        for world, after in self.following.items():
            for other in after:
                before[other].add(world)
        found, pending = set(goal), list(goal)
        while pending:
            new = before[pending.pop()] - found
            found |= new
            pending.extend(new)
        return set(self.following) - found

    def assert_exact(self, world: World) -> None:
        """In this state an event from any peer reaches just those whose filters it meets."""
        for publisher, box in product(range(len(self._peers)), PROBES):
            assert_delivered(self.load_all(world), publisher, box)


def post(sender: PeerId, effects: Iterable[Effect]) -> list[Mail]:
    return [(sender, e.to, e.message) for e in effects if isinstance(e, Send)]


def find_faults_of(peers: Iterable[Peer], settings: Settings) -> list[OverlayFault]:
    views = {peer.state.id: look(peer) for peer in peers}
    return find_faults(views, settings.m, settings.M, UNIT.universe)


def assert_delivered(peers: Sequence[Peer], publisher: int, box: Box) -> None:
    heard: list[PeerId] = []
    mails: list[Mail] = []

    def do(id_: PeerId, effects: Iterable[Effect]) -> None:
        effects = list(effects)
        heard.extend(id_ for effect in effects if isinstance(effect, Deliver))
        mails.extend(post(id_, effects))

    do(peers[publisher].state.id, peers[publisher].publish(box, None, 0.5))
    while mails:
        sender, to, message = mails.pop()
        if to < len(peers):  # garbage may yet name others
            do(to, peers[to].receive(message, sender, 0.5))
    wanted = [peer.state.id for peer in peers if wants(peer, box)]
    assert sorted(heard) == wanted


def assert_all_orders_lead_to_rest(search: Search, faults: int) -> None:
    search.run(search.look_now(), faults)
    rest = search.find_rest()
    assert not search.find_lost(rest)
    assert search.count_rounds(rest) <= ROUNDS_MAX
    for world in rest:
        search.assert_exact(world)


@pytest.mark.parametrize(
    "filters",
    [pytest.param(name, marks=[pytest.mark.soak] * (name != "nested")) for name in FILTERS],
)
def test_in_every_order_of_messages_three_new_peers_come_to_rest(filters: str) -> None:
    assert_all_orders_lead_to_rest(Search(FILTERS[filters]), 0)


@pytest.mark.soak
@pytest.mark.parametrize("filters", FILTERS)
def test_in_every_order_with_any_message_lost_or_doubled_they_come_to_rest(filters: str) -> None:
    assert_all_orders_lead_to_rest(Search(FILTERS[filters]), 1)


@pytest.mark.parametrize(
    "seed", [pytest.param(n, marks=[pytest.mark.soak] * (n not in (2, 4))) for n in range(12)]
)
def test_in_every_order_of_messages_three_corrupted_peers_come_to_rest(seed: int) -> None:
    search = Search(list(FILTERS.values())[seed % len(FILTERS)])
    search.corrupt(np.random.default_rng(seed))
    assert_all_orders_lead_to_rest(search, 0)


# Random walks


class Walk:
    """A few peers and their mail, in the hands of a scheduler that means no good."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = np.random.default_rng(seed)
        self.now = 0.0
        self.settings = Settings(UNIT, 2, 4)
        filters = FILTERS[str(rng.choice(sorted(FILTERS)))]
        count = int(rng.integers(3, 6))
        self.peers = [start(i, filters[i % 3], self.settings) for i in range(count)]
        self.mails: list[Mail] = []
        if rng.random() < 0.5:
            maker = Maker(rng, 2, [peer.state.id for peer in self.peers], 0.0)
            for peer in self.peers:
                maker.corrupt(peer)

    def wander(self, steps: int) -> None:
        """Do anything in any order; mail may lie for long, and be overtaken."""
        for _ in range(steps):
            choice = self.rng.random()
            if not self.mails or choice < 0.15:
                self.now += float(self.rng.choice([0.05, 0.3, 1.0])) / len(self.peers)
                self.tick(int(self.rng.integers(len(self.peers))))
            elif choice < 0.9:
                self.deliver(self.draw())
            elif choice < 0.95:
                self.draw()
            else:
                mail = self.draw()
                self.mails.append(mail)
                self.deliver(mail)

    def play_round(self) -> None:
        """Let everybody tick, and all mail arrive, in any order."""
        self.now += 0.5
        for index in range(len(self.peers)):
            self.tick(index)
        self.now += 0.5
        while self.mails:
            self.deliver(self.draw())

    def tick(self, index: int) -> None:
        others = [peer.state.id for peer in self.peers if peer.state.id != index]
        contact = others[int(self.rng.integers(len(others)))]
        self.mails += post(PeerId(index), self.peers[index].tick(self.now, contact))

    def draw(self) -> Mail:
        return self.mails.pop(int(self.rng.integers(len(self.mails))))

    def deliver(self, mail: Mail) -> None:
        sender, to, message = mail
        if to < len(self.peers):
            self.mails += post(to, self.peers[to].receive(message, sender, self.now))

    def rests_within(self, rounds_max: int) -> bool:
        legal = 0
        for _ in range(rounds_max + REST_ROUNDS):
            self.play_round()
            legal = 0 if find_faults_of(self.peers, self.settings) else legal + 1
            if legal > REST_ROUNDS:
                return True
        return False


@pytest.mark.parametrize(
    "seeds",
    [
        pytest.param(seeds, marks=[pytest.mark.soak] * (seeds[0] >= SEEDS_OFTEN))
        for seeds in make_blocks(range(10_000))
    ],
    ids=name_block,
)
def test_after_a_walk_through_any_orders_peers_come_to_rest(seeds: list[int]) -> None:
    for seed in seeds:
        with replayable(seed):
            walk = Walk(seed)
            walk.wander(int(walk.rng.integers(0, 400)))
            is_at_rest = walk.rests_within(4 * ROUNDS_MAX)
            assert is_at_rest, find_faults_of(walk.peers, walk.settings)
            for publisher, box in product(range(len(walk.peers)), PROBES):
                assert_delivered(walk.peers, publisher, box)
