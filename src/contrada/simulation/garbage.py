"""Well-typed garbage for everything that a peer remembers, and for what is under way.

Values are made from the annotations of the messages and of the memories, so that a new kind of
message or a new field is covered as soon as it exists.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import fields, replace
from functools import cache
from math import inf, nan
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin, get_type_hints

from contrada.errors import PeerError
from contrada.overlay.boxes import Space
from contrada.overlay.cell_windows import Cells, cover
from contrada.overlay.messages import Event, Message, PeerId
from contrada.overlay.repeating import Kept
from contrada.overlay.spreading import Seen
from contrada.overlay.state import State
from contrada.overlay.wire import decode, encode

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.random import Generator

    from contrada.overlay.boxes import Box
    from contrada.overlay.peer import Peer
    from contrada.simulation.simulator import Simulator

MESSAGE_KINDS: tuple[type, ...] = get_args(Message)
LINKS = tuple(kind for kind in MESSAGE_KINDS if kind is not Event)
FOREVER = {"id", "filter", "filters", "is_wide", "settings"}  # what no corruption touches
NOBODY = PeerId(10**9)
WILD_WHOLES = [-1, -(2**62), 47, 10**6, 2**63 - 1]
WILD_NUMBERS = [nan, inf, -inf, -1e18, 1e18]


def make_box(rng: Generator, dimensions: int = 2) -> Box:
    """A box anywhere in and around the unit cube."""
    sides = (rng.random(2 * dimensions) * 2 - 0.5).tolist()
    lows, highs = sides[:dimensions], sides[dimensions:]
    return (*map(min, lows, highs), *map(max, lows, highs))


class Maker:
    """Makes garbage that speaks of some peers, and of one that never was.

    Events in corrupted memories are of that one: its numbers are nobody else's, and garbage that
    named an event to come would hide it. As numbers grow with the time, no other is likely to.
    """

    def __init__(self, rng: Generator, dimensions: int, ids: Sequence[PeerId], now: float) -> None:
        self._rng, self._dimensions, self._now = rng, dimensions, now
        self._ids = [*ids, NOBODY]
        space = Space((0.0,) * dimensions + (1.0,) * dimensions)
        self._simple: dict[Any, Callable[[], Any]] = {
            PeerId: self.make_id,
            tuple[float, ...]: self.make_box,
            Cells: lambda: cover(self.make_box(), space),
            bool: lambda: bool(rng.random() < 0.5),
            int: self._make_whole,
            float: self._make_number,
            bytes: lambda: rng.bytes(int(rng.integers(0, 9))),
            str: lambda: str(rng.choice(["", "a", "inf"])),
            NoneType: lambda: None,
            Any: lambda: None,
        }

    def corrupt(self, peer: Peer) -> None:
        """Overwrite all that a peer remembers, except who it is and its filters."""
        hints = _get_hints(State)
        for name in sorted(hints.keys() - FOREVER):
            setattr(peer.state, name, self.make(hints[name]))
        peer._published, peer._has_left = self.make(int), self.make(bool)
        peer._kept, peer._seen = self.make(Kept), self.make(Seen)
        peer._kept.handled = deque(
            replace(handled, event=replace(handled.event, publisher=NOBODY))
            for handled in peer._kept.handled
        )
        peer._seen.reaches = OrderedDict(
            ((NOBODY, number), reach) for (_, number), reach in peer._seen.reaches.items()
        )

    def make_message(self, kinds: Sequence[type] = MESSAGE_KINDS) -> Message:
        """Make a message of some kinds that comes through the wire."""
        while True:
            message: Message = self.make(kinds[int(self._rng.integers(len(kinds)))])
            try:
                return decode(encode(message), self._dimensions)
            except PeerError:
                continue

    def make_id(self) -> PeerId:
        """Make an id."""
        return self._ids[int(self._rng.integers(len(self._ids)))]

    def make_box(self) -> Box:
        """Make a box in and around the unit cube; some are flat, some unbounded."""
        k, rng = self._dimensions, self._rng
        box = make_box(rng, k)
        if rng.random() < 0.1:
            box = box[:k] * 2
        if rng.random() < 0.1:
            box = (-inf, *box[1:-1], inf)
        return box

    def make(self, type_: Any) -> Any:
        """Make any value of a type."""
        make = self._simple.get(type_)
        if make is not None:
            return make()
        origin, arguments = _take_apart(type_)
        if origin in (UnionType, Union):
            return self.make(arguments[int(self._rng.integers(len(arguments)))])
        if origin in (dict, OrderedDict):
            pairs = range(self._rng.integers(0, 7))
            return origin((self.make(arguments[0]), self.make(arguments[1])) for _ in pairs)
        if origin is tuple and arguments[-1] is not Ellipsis:
            return tuple(self.make(argument) for argument in arguments)
        if origin in (list, tuple, set, frozenset, deque):
            return origin(self.make(arguments[0]) for _ in range(self._make_length()))
        hints = _get_hints(type_)
        return type_(*[self.make(hints[f.name]) for f in fields(type_) if f.init])

    def _make_length(self) -> int:
        rng = self._rng
        return 60 if rng.random() < 0.02 else int(rng.integers(0, 6))

    def _make_whole(self) -> int:
        rng = self._rng
        return int(rng.choice(WILD_WHOLES)) if rng.random() < 0.1 else int(rng.integers(0, 9))

    def _make_number(self) -> float:
        rng = self._rng
        if rng.random() < 0.1:
            return float(rng.choice(WILD_NUMBERS))
        return float(self._now + rng.normal() * rng.choice([1, 10, 100]))


class Garbage:
    """Garbage for the peers of a simulation, and for what is under way between them."""

    def __init__(self, simulator: Simulator, rng: Generator) -> None:
        dimensions = simulator.settings.space.dimensions
        self._simulator = simulator
        self._maker = Maker(rng, dimensions, simulator.living(), simulator.now)

    def corrupt(self, id_: PeerId) -> None:
        """Overwrite all that a peer remembers, except who it is and its filters; and its timer."""
        self._maker.corrupt(self._simulator.peers[id_])
        self._simulator.retime(id_)

    def send(self, count: int) -> None:
        """Put messages under way that nobody has sent."""
        for _ in range(count):
            self._simulator.inject(
                self._maker.make_id(), self._maker.make_id(), self.make_message()
            )

    def make_message(self) -> Message:
        """Make a message of any kind but an event."""
        return self._maker.make_message(LINKS)


@cache
def _take_apart(type_: Any) -> tuple[Any, tuple[Any, ...]]:
    return get_origin(type_), get_args(type_)


@cache
def _get_hints(type_: type) -> dict[str, Any]:
    return get_type_hints(type_)
