"""A crash takes along what was sent to the peer that crashed: the deputy gets it once more.

A peer keeps the last events that it has handled, and who sent them. When it first finds its parent
or a child silent, it sends the deputy what it has sent to the silent one since that was last heard
of; and a deputy does then what its leader may have left undone. Whoever gets an event twice drops
it.
"""

from collections import deque
from dataclasses import dataclass, replace

from contrada.overlay.deputies import is_silent
from contrada.overlay.effects import Effects
from contrada.overlay.messages import Event, PeerId
from contrada.overlay.spreading import serve_for_leader
from contrada.overlay.state import HEIGHT_MAX, State

_KEPT_MAX = 1_024
_UNDER_WAY = 1.0  # periods for which a message may have been under way when a peer was last heard


@dataclass(frozen=True, slots=True)
class _Handled:
    """An event, when and from whom it came, and how far it was to be spread."""

    event: Event
    sender: PeerId | None
    reach: int
    at: float


class Kept:
    """The events that may have to be sent once more: the last ones, of twice the patience."""

    def __init__(self) -> None:
        """Start without any."""
        self._events: deque[_Handled] = deque(maxlen=_KEPT_MAX)
        self._silent: dict[PeerId, float] = {}  # who was found silent, and when it was last heard

    def keep(self, event: Event, sender: PeerId | None, reach: int, now: float) -> None:
        """Keep an event that has just been spread."""
        self._events.append(_Handled(event, sender, reach, now))

    def repeat(self, state: State, now: float, out: Effects) -> None:
        """Send what neighbours may have missed that are silent now, and were not before."""
        oldest = now - 2 * state.settings.patience * state.settings.period
        while self._events and self._events[0].at < oldest:
            self._events.popleft()
        self._silent = {id_: heard for id_, heard in self._silent.items() if heard > oldest}
        self.repeat_up(state, now, out)
        self._repeat_down(state, now, out)

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
        if not self._events or not is_silent(state, heard, now) or self._silent.get(id_) == heard:
            return False
        self._silent[id_] = heard
        return True

    def _since(self, heard: float, state: State) -> list[_Handled]:
        begin = heard - _UNDER_WAY * state.settings.period
        return [handled for handled in self._events if handled.at >= begin]
