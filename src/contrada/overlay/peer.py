"""A peer of the DR-tree as a state machine without I/O.

`receive` and `tick` return what is to be done: messages to send, events to deliver. Whoever drives
a peer gives the time, calls `tick` once a period, and names another peer (the paper's oracle) that
a root may ask to find the rest of the tree.

Rules. A peer obeys only its parent; it lets only its children speak for their place. Whoever is no
child of the one it reports to, or has no answer for long, becomes a root with all below it, and
asks to join again. Of two roots the lower, then the one that covers less, joins the other.
"""

from collections import OrderedDict
from typing import Any

from contrada.overlay import healing, joining
from contrada.overlay.boxes import Box, meets
from contrada.overlay.effects import Deliver, Effect, Effects
from contrada.overlay.messages import (
    Accept,
    Adopt,
    Dissolve,
    Event,
    Give,
    Grown,
    Handed,
    Join,
    Lead,
    Leave,
    Message,
    Moved,
    PeerId,
    Refuse,
    Replaced,
    Report,
)
from contrada.overlay.state import Settings, State

_SEEN_MAX = 4_096


class Peer:
    """One member of the overlay."""

    def __init__(self, id_: PeerId, filter_: Box, settings: Settings) -> None:
        """Begin alone."""
        self.state = State(id_, filter_, settings)
        self.refused = 0
        self._published = 0
        self._seen: OrderedDict[tuple[PeerId, int], None] = OrderedDict()

    def tick(self, now: float, contact: PeerId | None = None) -> list[Effect]:
        """Run every check once; a root asks the contact for a parent."""
        out = Effects(self.state.id)
        healing.check(self.state, now, out)
        joining.keep_in_touch(self.state, now, contact, out)
        return out.list

    def receive(self, message: Message, sender: PeerId, now: float) -> list[Effect]:
        """Take a message; one that the sender may not send is counted and changes nothing."""
        out = Effects(self.state.id)
        if not self._handle(message, sender, now, out):
            self.refused += 1
        return out.list

    def publish(self, box: Box, payload: Any = None) -> list[Effect]:
        """Send an event to all whose filters meet its box."""
        self._published += 1
        out = Effects(self.state.id)
        state = self.state
        event = Event(state.id, self._published, box, payload, state.top, False)
        self._spread(event, None, out)
        return out.list

    def leave(self, now: float) -> list[Effect]:
        """Depart in good order: another takes over what this peer led."""
        out = Effects(self.state.id)
        healing.depart(self.state, now, out)
        return out.list

    def _handle(self, message: Message, sender: PeerId, now: float, out: Effects) -> bool:
        state = self.state
        match message:
            case Report():
                return joining.take_report(state, message, sender, now, out)
            case Accept():
                return joining.take_accept(state, message, sender, now, out)
            case Refuse():
                return joining.take_refuse(state, message, sender, now)
            case Join():
                return joining.take_join(state, message, now, out)
            case Leave():
                return healing.take_leave(state, message, sender)
            case Lead():
                return healing.take_lead(state, message, sender, now)
            case Moved():
                return healing.take_moved(state, message, sender, now)
            case Replaced():
                return healing.take_replaced(state, message, sender, now)
            case Grown():
                return healing.take_grown(state, message, sender, now, out)
            case Dissolve():
                return healing.take_dissolve(state, message, sender, now, out)
            case Give():
                return healing.take_give(state, message, sender, out)
            case Handed():
                return healing.take_handed(state, message, sender, now, out)
            case Adopt():
                return healing.take_adopt(state, message, sender, now, out)
            case Event():
                return self._take_event(message, sender, out)

    def _take_event(self, event: Event, sender: PeerId, out: Effects) -> bool:
        key = (event.publisher, event.number)
        if key in self._seen:
            return False
        self._spread(event, sender, out)
        return True

    def _spread(self, event: Event, sender: PeerId | None, out: Effects) -> None:
        """Deliver, and pass on: down to children that the event meets, and up if it is rising."""
        self._remember(event)
        state = self.state
        if meets(state.filter, event.box):
            out.append(Deliver(event))
        is_rising = sender is None or event.is_rising
        highest = state.top if is_rising else min(event.level, state.top)
        for level in range(highest, 0, -1):
            for id_, child in state.levels[level].items():
                if id_ != sender and meets(child.box, event.box):
                    out.send(id_, _at(event, level - 1, False))
        if is_rising and not state.is_root:
            out.send(state.parent, _at(event, state.top, True))

    def _remember(self, event: Event) -> None:
        self._seen[event.publisher, event.number] = None
        if len(self._seen) > _SEEN_MAX:
            self._seen.popitem(last=False)


def _at(event: Event, level: int, is_rising: bool) -> Event:
    return Event(event.publisher, event.number, event.box, event.payload, level, is_rising)
