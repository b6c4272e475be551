"""A crash takes along what was sent to the peer that crashed: the deputy gets it once more.

A peer keeps the last events that it has handled, and who sent them. When it first finds its parent
or a child silent, it sends the deputy what it has sent to the silent one since that was last heard
of; and a deputy does then what its leader may have left undone. Whoever gets an event twice drops
it.
"""

from collections import deque
from dataclasses import dataclass, field, replace
from math import inf
from sys import getsizeof
from typing import Any

from contrada.overlay.boxes import is_box
from contrada.overlay.deputies import is_silent
from contrada.overlay.effects import Effects
from contrada.overlay.messages import Event, PeerId
from contrada.overlay.spreading import serve_for_leader
from contrada.overlay.state import HEIGHT_MAX, State

_KEPT_MAX = 1_024
_BYTES_MAX = 2**24  # of all payloads that are kept
_NUMBER_MAX = 2**63 - 1
_UNDER_WAY = 1.0  # periods for which a message may have been under way when a peer was last heard


@dataclass(frozen=True, slots=True)
class Handled:
    """An event, when and from whom it came, how far it was to be spread, and its payload's size."""

    event: Event
    sender: PeerId | None
    reach: int
    at: float
    size_bytes: int


@dataclass(slots=True)
class Kept:
    """The events that may have to be sent once more: the last ones, of twice the patience.

    They are bounded in number and by the size of their payloads. Garbage is forgotten like all
    else: what comes from the future at the next tick, the rest when it is old.
    """

    handled: deque[Handled] = field(default_factory=deque)
    silent: dict[PeerId, float] = field(default_factory=dict)  # who was, and when last heard
    size_bytes: int = 0  # of all payloads

    def keep(self, event: Event, sender: PeerId | None, reach: int, now: float) -> None:
        """Keep an event that has just been spread."""
        size_bytes = weigh(event.payload)
        self.handled.append(Handled(event, sender, reach, now, size_bytes))
        self.size_bytes += size_bytes
        while self.handled and (len(self.handled) > _KEPT_MAX or self.size_bytes > _BYTES_MAX):
            self.size_bytes -= self.handled.popleft().size_bytes

    def repeat(self, state: State, now: float, out: Effects) -> None:
        """Send what neighbours may have missed that are silent now, and were not before."""
        self._forget(state, now)
        self.repeat_up(state, now, out)
        self._repeat_down(state, now, out)

    def _forget(self, state: State, now: float) -> None:
        """Forget what is old, and what is not of the past; all of it if there are no deputies."""
        settings = state.settings
        oldest = now - 2 * settings.patience * settings.period if settings.deputies else inf
        if self.handled or self.size_bytes:
            self.handled = deque(h for h in self.handled if oldest <= h.at <= now)
            self.size_bytes = sum(h.size_bytes for h in self.handled)
        if self.silent:
            self.silent = {id_: at for id_, at in self.silent.items() if oldest < at <= now}

    def repeat_up(self, state: State, now: float, out: Effects) -> None:
        """Send what the parent may have missed if it is silent, before another takes its place."""
        if state.is_root or not self._falls_silent(state, state.parent, state.heard, now):
            return
        for handled in self._since(state.heard, state):
            event, is_rising = handled.event, handled.reach == HEIGHT_MAX
            if handled.sender == state.parent:
                continue
            if is_rising and state.heir not in (None, handled.sender):
                out.send(state.heir, replace(event, level=state.top, is_rising=True))
            if state.copy is not None:
                serve_for_leader(state, state.copy, event, handled.sender, is_rising, out)

    def _repeat_down(self, state: State, now: float, out: Effects) -> None:
        space = state.settings.space
        for level, children in enumerate(state.levels[1 : state.top + 1], start=1):
            for id_, child in children.items():
                heir = child.deputy
                if heir is None or not self._falls_silent(state, id_, child.heard, now):
                    continue
                for handled in self._since(child.heard, state):
                    is_for_it = level <= handled.reach and child.meets(handled.event.box, space)
                    if is_for_it and handled.sender not in (id_, heir):
                        out.send(heir, replace(handled.event, level=level - 1, is_rising=False))

    def _falls_silent(self, state: State, id_: PeerId, heard: float, now: float) -> bool:
        if not self.handled or not is_silent(state, heard, now) or self.silent.get(id_) == heard:
            return False
        self.silent[id_] = heard
        return True

    def _since(self, heard: float, state: State) -> list[Handled]:
        begin = heard - _UNDER_WAY * state.settings.period
        k = state.settings.space.dimensions
        return [h for h in self.handled if h.at >= begin and _is_sound(h.event, k)]


def weigh(payload: Any) -> int:
    """Estimate the bytes of memory that a payload takes; of one that is too large, some."""
    total, pending = 0, [payload]
    while pending and total <= _BYTES_MAX:
        value = pending.pop()
        total += getsizeof(value)
        kind = type(value)
        if kind is dict:
            pending += value
            pending += value.values()
        elif kind is list or kind is tuple:
            pending += value
    return total


def _is_sound(event: Event, dimensions: int) -> bool:
    """Whether some peer could have sent an event."""
    return is_box(event.box, dimensions) and 0 <= event.number <= _NUMBER_MAX
