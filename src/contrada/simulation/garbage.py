"""Well-typed garbage for everything that a peer remembers, and for what is under way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from contrada.overlay.cells import cover
from contrada.overlay.messages import (
    Accept,
    Adopt,
    Copy,
    Dissolve,
    Entry,
    Give,
    Grown,
    Handed,
    Join,
    Lead,
    Leave,
    Moved,
    Offer,
    PeerId,
    Refuse,
    Replaced,
    Report,
    Seek,
    Took,
)
from contrada.overlay.state import Promise, Seeking, make_child
from contrada.simulation.workloads import UNIT

if TYPE_CHECKING:
    from numpy.random import Generator

    from contrada.overlay.boxes import Box
    from contrada.overlay.cells import Cells
    from contrada.overlay.messages import Message
    from contrada.overlay.state import Child
    from contrada.simulation.simulator import Simulator


def make_box(rng: Generator) -> Box:
    """A box anywhere in and around the unit square."""
    sides = rng.random(4) * 2 - 0.5
    lows, highs = sides[:2].tolist(), sides[2:].tolist()
    return (*map(min, lows, highs), *map(max, lows, highs))


class Garbage:
    """Makes garbage that speaks of the peers of a simulation, and of one that never was."""

    def __init__(self, simulator: Simulator, rng: Generator) -> None:
        self._simulator, self._rng = simulator, rng
        self._ids = [*simulator.living(), PeerId(10**9)]

    def corrupt(self, id_: PeerId) -> None:
        """Overwrite all that a peer remembers, except its filter."""
        rng, now = self._rng, self._simulator.now
        state = self._simulator.peers[id_].state
        state.levels = [self._children(now) for _ in range(int(rng.integers(1, 7)))]
        state.parent = self._id()
        state.heard, state.moved, state.asked = self._times(3)
        state.compacted, state.changed, state.calm = self._times(3)
        state.crowded = self._times(1)[0]
        state.ticket, state.redirects = rng.integers(0, 100, 2).tolist()
        state.contact, state.heir, state.sent = self._id(), self._id(), self._entry()
        state.deputy, state.bridge = self._id(), self._id()
        state.copy = Copy((self._entries(), self._entries()), self._id(), self._id())
        state.leaving, state.formers = self._children(now), {self._id(): self._times(1)[0]}
        level, turn, ticket = rng.integers(0, 6, 3).tolist()
        since, asked, offered = self._times(3)
        state.promise = Promise(self._id(), level, self._id(), (self._id(),), turn < 3, since)
        state.seeking = Seeking(ticket, level, self._id(), turn, asked, ticket, self._id(), offered)
        self._simulator.retime(id_)

    def _times(self, count: int) -> list[float]:
        times: list[float] = (self._simulator.now + self._rng.normal(size=count) * 100).tolist()
        return times

    def send(self, count: int) -> None:
        """Put messages under way that nobody has sent."""
        for _ in range(count):
            self._simulator.inject(self._id(), self._id(), self.make_message())

    def _children(self, now: float) -> dict[PeerId, Child]:
        rng, children = self._rng, {}
        for _ in range(int(rng.integers(0, 7))):
            child = make_child(self._entry(), float(now + rng.normal() * 5))
            child.due, child.due_since = list(self._entries()), self._times(1)[0]
            children[self._id()] = child
        return children

    def _id(self) -> PeerId:
        return self._ids[int(self._rng.integers(len(self._ids)))]

    def _entry(self) -> Entry:
        rng = self._rng
        wide = tuple((self._id(), make_box(rng)) for _ in range(int(rng.integers(0, 2))))
        return Entry(self._id(), make_box(rng), int(rng.integers(0, 12)), self._cells(), wide)

    def _cells(self) -> Cells | None:
        """Cells of some other box."""
        return cover(make_box(self._rng), UNIT) if self._rng.random() < 0.5 else None

    def _entries(self) -> tuple[Entry, ...]:
        return tuple(self._entry() for _ in range(int(self._rng.integers(0, 5))))

    def make_message(self) -> Message:
        """Make a message of any kind but an event."""
        rng = self._rng
        level, number = int(rng.integers(0, 6)), int(rng.integers(0, 9))
        lists = tuple(self._entries() for _ in range(int(rng.integers(0, 4))))
        kinds: list[Any] = [
            lambda: Report(level, self._entry(), number, self._id(), make_box(rng)),
            lambda: Accept(level, self._id(), number),
            lambda: Refuse(level, self._id()),
            lambda: Join(self._entry(), level, number, int(rng.integers(-1, 6))),
            lambda: Leave(level),
            lambda: Lead(level, lists, self._id()),
            lambda: Took(level),
            lambda: Copy(lists, self._id(), self._id()),
            lambda: Moved(level, self._id()),
            lambda: Replaced(level, self._entry()),
            lambda: Grown(level, self._entry()),
            lambda: Dissolve(level, self._entries(), number < 4),
            lambda: Give(level, self._entry(), number),
            lambda: Handed(level, (self._id(),) * number, self._entries(), number < 4),
            lambda: Adopt(level, self._entries()),
            lambda: Seek(self._id(), number, self._entry(), level, self._entries(), rng.random()),
            lambda: Offer(number),
        ]
        message: Message = kinds[int(rng.integers(len(kinds)))]()
        return message
