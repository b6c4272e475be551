"""Peers in virtual time: a seeded network that delays, loses, doubles and reorders messages.

Same seed, same run. Peers are driven only through `tick`, `receive`, `publish` and `leave`, as the
real network does; what the simulator alone can do is crash, corrupt and look.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any

from numpy.random import Generator

from contrada.overlay.boxes import Box
from contrada.overlay.effects import Deliver, Effect, Send, Wake
from contrada.overlay.messages import Event, Message, PeerId
from contrada.overlay.peer import Peer
from contrada.overlay.state import Child, Settings
from contrada.simulation.checker import LevelView, OverlayFault, PeerView, bound, find_faults
from contrada.simulation.gaps import Link, find_gaps

_LINGERING = 3.0  # periods for which a peer that has left still takes messages


@dataclass(frozen=True, slots=True)
class Network:
    """What happens to messages: delays in periods, and the shares that are lost or doubled."""

    delay_min: float = 0.05
    delay_max: float = 0.25
    loss: float = 0.0
    duplication: float = 0.0
    inbox_max: int = 10_000  # messages that wait for one peer; more are lost


@dataclass(slots=True)
class Traffic:
    """Counts since the start; `overflown` are lost since too many wait for their receiver."""

    messages: int = 0
    overflown: int = 0
    by_kind: dict[str, int] = field(default_factory=dict)


class Simulator:
    """Some peers and the messages between them."""

    def __init__(self, settings: Settings, rng: Generator, network: Network | None = None) -> None:
        """Start without peers."""
        self.settings, self.network = settings, network or Network()
        self.now = 0.0
        self.peers: dict[PeerId, Peer] = {}
        self.filters: dict[PeerId, tuple[Box, ...]] = {}
        self.traffic = Traffic()
        self.choose_contact: Callable[[PeerId], PeerId | None] = self._choose_contact
        self.is_cut: Callable[[PeerId, PeerId], bool] = lambda _a, _b: False
        self.on_deliver: Callable[[PeerId, Event], object] = lambda _id, _event: None
        self.on_visit: Callable[[PeerId, Event], object] = lambda _id, _event: None
        self._rng = rng
        self._queue: list[tuple[float, int, PeerId, PeerId, Message | None]] = []
        self._number = self._pushed = 0
        self._living: list[PeerId] = []
        self._place: dict[PeerId, int] = {}
        self._ticked: set[PeerId] = set()
        self._timers: dict[PeerId, int] = {}
        self._waiting: Counter[PeerId] = Counter()
        self._departed: dict[PeerId, tuple[Peer, float]] = {}  # and until when they linger

    def add(self, *filters: Box) -> PeerId:
        """Start a peer; it ticks from now on, at a phase of its own."""
        id_ = PeerId(self._number)
        self._number += 1
        self.peers[id_], self.filters[id_] = Peer(id_, filters, self.settings), filters
        self._place[id_] = len(self._living)
        self._living.append(id_)
        self._push_tick(id_, self.now)
        return id_

    def set_filters(self, id_: PeerId, *filters: Box) -> None:
        """Change the filters of a peer."""
        self.peers[id_].set_filters(filters)
        self.filters[id_] = filters

    def crash(self, id_: PeerId) -> None:
        """Stop a peer without notice."""
        del self.peers[id_], self.filters[id_]
        place, last = self._place.pop(id_), self._living.pop()
        if last != id_:
            self._living[place] = last
            self._place[last] = place

    def leave(self, id_: PeerId) -> None:
        """Let a peer depart in good order; it lingers, to pass on what still comes for it."""
        peer = self.peers[id_]
        self._do(id_, peer.leave(self.now))
        self.crash(id_)
        for other, (_, until) in list(self._departed.items()):
            if until < self.now:
                del self._departed[other]
        self._departed[id_] = peer, self.now + _LINGERING * self.settings.period

    def publish(self, id_: PeerId, box: Box, payload: Any = None) -> None:
        """Let a peer publish an event."""
        self._do(id_, self.peers[id_].publish(box, payload, self.now))

    def inject(self, sender: PeerId, to: PeerId, message: Message) -> None:
        """Put a message into the network, as if a peer had sent it."""
        self._send(sender, to, message)

    def retime(self, id_: PeerId) -> None:
        """Let a peer's timer run out at any time within three periods."""
        self._push_tick(id_, self.now + self._rng.random() * 3 * self.settings.period)

    def run(self, until: float) -> None:
        """Let virtual time pass."""
        while self._queue and self._queue[0][0] <= until:
            self.now, number, sender, to, message = heappop(self._queue)
            if message is not None:
                self._waiting[to] -= 1
                self._deliver(sender, to, message)
            elif to in self.peers and number == self._timers[to]:
                self._do(to, self.peers[to].tick(self.now, self.choose_contact(to)))
        self.now = until

    def _deliver(self, sender: PeerId, to: PeerId, message: Message) -> None:
        peer = self.peers.get(to)
        if peer is None:
            self._linger(sender, to, message)
            return
        if isinstance(message, Event):
            self.on_visit(to, message)
        self._do(to, peer.receive(message, sender, self.now))

    def _linger(self, sender: PeerId, to: PeerId, message: Message) -> None:
        """Let a peer that has left take a message; it delivers nothing and does not tick."""
        peer, until = self._departed.get(to, (None, self.now))
        if peer is not None and self.now <= until:
            effects = peer.receive(message, sender, self.now)
            self._do(to, (effect for effect in effects if isinstance(effect, Send)))

    def run_rounds(self, rounds: float) -> None:
        """Let so many periods pass."""
        self.run(self.now + rounds * self.settings.period)

    def run_until_legal(self, rounds_max: int) -> int | None:
        """Run until the state is legal; return the rounds it took, None if they were too few."""
        for rounds in range(rounds_max + 1):
            if not self.find_faults():
                return rounds
            self.run_rounds(1)
        return None

    def living(self) -> list[PeerId]:
        """List the living peers."""
        return list(self._living)

    def find_faults(self) -> list[OverlayFault]:
        """List what is illegal in the states of the living; or else what parents do not know."""
        settings = self.settings
        faults = find_faults(
            self.see(),
            settings.m,
            settings.M,
            settings.space.universe,
            by_cover=not settings.swapping,
        )
        return faults or find_gaps(self._list_links(), self.filters, settings.space.universe)

    def see(self) -> dict[PeerId, PeerView]:
        """Look at all living peers."""
        return {id_: look(peer, self.filters[id_]) for id_, peer in self.peers.items()}

    def _list_links(self) -> dict[PeerId, Link]:
        """List what parents remember of their children, in a tree."""
        return {
            id_: _describe_link(above, child)
            for above, peer in self.peers.items()
            for level in range(1, peer.state.top + 1)
            for id_, child in peer.state.children(level).items()
        }

    def _choose_contact(self, id_: PeerId) -> PeerId | None:
        """Act as the oracle: name some other living peer that can be reached."""
        if len(self._living) < 2:
            return None
        other = self._living[int(self._rng.random() * len(self._living))]
        return None if other == id_ or self.is_cut(id_, other) else other

    def _do(self, id_: PeerId, effects: Iterable[Effect]) -> None:
        for effect in effects:
            match effect:
                case Send(to, message):
                    self._send(id_, to, message)
                case Deliver(event):
                    self.on_deliver(id_, event)
                case Wake(at):
                    self._wake(id_, at)

    def _wake(self, id_: PeerId, at: float) -> None:
        """Schedule the tick of a peer; the first one at random, so that each has its own phase."""
        if id_ not in self._ticked:
            self._ticked.add(id_)
            at = self.now + self._rng.random() * (at - self.now)
        self._push_tick(id_, at)

    def _push_tick(self, id_: PeerId, at: float) -> None:
        self._push(at, id_, id_, None)
        self._timers[id_] = self._pushed

    def _send(self, sender: PeerId, to: PeerId, message: Message) -> None:
        network, traffic = self.network, self.traffic
        traffic.messages += 1
        name = type(message).__name__
        traffic.by_kind[name] = traffic.by_kind.get(name, 0) + 1
        if self.is_cut(sender, to) or (network.loss and self._rng.random() < network.loss):
            return
        copies = 2 if network.duplication and self._rng.random() < network.duplication else 1
        for _ in range(copies):
            if self._waiting[to] >= network.inbox_max:
                traffic.overflown += 1
                continue
            self._waiting[to] += 1
            delay = network.delay_min + self._rng.random() * (network.delay_max - network.delay_min)
            self._push(self.now + delay * self.settings.period, sender, to, message)

    def _push(self, at: float, sender: PeerId, to: PeerId, message: Message | None) -> None:
        self._pushed += 1
        heappush(self._queue, (at, self._pushed, sender, to, message))


def _describe_link(parent: PeerId, child: Child) -> Link:
    cells = child.cells
    window = None if cells is None else (cells.level, cells.x, cells.y, cells.rows)
    return Link(parent, window, child.wide)


def look(peer: Peer, filters: Sequence[Box] | None = None) -> PeerView:
    """See a peer from the outside; the filters that it was given, or says it was.

    One whose memory has no levels is a leaf, as it will find at its next call.
    """
    state = peer.state
    given = state.filters if filters is None else filters
    levels = tuple(
        LevelView(
            state.parent if level == max(state.top, 0) else state.id,
            (state.id, *state.children(level)) if level else (),
            state.box(level),
            tuple((id_, child.box) for id_, child in state.children(level).items()),
        )
        for level in range(max(state.top, 0) + 1)
    )
    return PeerView(state.id, bound(given, state.settings.space.universe), levels)
