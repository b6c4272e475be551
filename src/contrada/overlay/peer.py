"""A peer of the DR-tree as a state machine without I/O.

`receive` and `tick` return what is to be done: messages to send, events to deliver, and when to
call `tick` again. Whoever drives a peer gives the time, and names another peer (the paper's oracle)
that a root may ask to find the rest of the tree.

Rules. A peer obeys only its parent, and only its children speak for their places. What a peer says
of its own parent is true: whoever reports to a node that has the level above becomes its child.
Who gets no answer for long turns to the deputy of its parent, or becomes a root with all below it
and asks to join again. Of two roots the lower, then the one that covers less, joins the other.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from contrada.errors import InvalidInput
from contrada.overlay import compacting, deputies, healing, joining, moving, spreading, structure
from contrada.overlay.boxes import Box, is_box
from contrada.overlay.effects import Deliver, Effect, Effects, Wake
from contrada.overlay.messages import (
    Accept,
    Adopt,
    Copy,
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
    Offer,
    PeerId,
    Refuse,
    Replaced,
    Report,
    Seek,
    Took,
)
from contrada.overlay.repeating import Kept
from contrada.overlay.sanitising import sanitise
from contrada.overlay.state import PEER_FILTERS_MAX, Settings, State
from contrada.overlay.wire import check_payload

_NUMBER_MAX = 2**53


class Peer:
    """One member of the overlay.

    `refusals` counts the messages that had no effect, by kind: their senders may not send them, or
    they came again.
    """

    def __init__(self, id_: PeerId, filters: Iterable[Box], settings: Settings) -> None:
        """Begin alone."""
        self.state = State(id_, _check(filters, settings), settings)
        self.refusals: Counter[str] = Counter()
        self._published = 0
        self._has_left = False
        self._seen = spreading.Seen()
        self._kept = Kept()

    def set_filters(self, filters: Iterable[Box]) -> None:
        """Change the filters; the parent hears of it at the next tick."""
        self.state.set_filters(_check(filters, self.state.settings))

    def tick(self, now: float, contact: PeerId | None = None) -> list[Effect]:
        """Run every check once; a root asks the contact for a parent."""
        state, out = self.state, Effects(self.state.id)
        self._has_left = False
        sanitise(state, now)
        self._kept.repeat(state, now, out)
        healing.check(state, now, out)
        deputies.send_copy(state, out)
        joining.keep_in_touch(state, now, contact, out)
        moving.seek(state, now, out)
        out.append(Wake(now + state.settings.period))
        return out.list

    def receive(self, message: Message, sender: PeerId, now: float) -> list[Effect]:
        """Take a message; one that the sender may not send is counted and changes nothing.

        If the parent has fallen silent, events are repeated first: the message may bring another.
        """
        out = self._begin(now)
        if sender != self.state.parent and not self._has_left:
            self._kept.repeat_up(self.state, now, out)
        if sender == self.state.id or not self._handle(message, sender, now, out):
            self.refusals[type(message).__name__] += 1
        return out.list

    def publish(self, box: Box, payload: Any, now: float) -> list[Effect]:
        """Send an event to all whose filters meet its box."""
        state, out = self.state, self._begin(now)
        if not is_box(box, state.settings.space.dimensions):
            raise InvalidInput(f"the event's box cannot be {box!r:.100}")
        box = _as_floats(box)
        check_payload(payload)
        before = self._published if 0 <= self._published < _NUMBER_MAX else 0
        self._published = max(before + 1, int(now * 1e6))  # also after a restart
        self._pass_on(
            Event(state.id, self._published, box, payload, state.top, False), None, now, out
        )
        return out.list

    def leave(self, now: float) -> list[Effect]:
        """Depart in good order: another takes over what this peer led.

        Whoever drives it should give it for some periods what still arrives, without a tick: it
        hands on the events that were under way. A tick makes it join again.
        """
        out = Effects(self.state.id)
        healing.depart(self.state, now, out)
        self._has_left = True
        return out.list

    def _begin(self, now: float) -> Effects:
        if not self.state.levels:
            sanitise(self.state, now)
        return Effects(self.state.id)

    def _handle(self, message: Message, sender: PeerId, now: float, out: Effects) -> bool:
        if isinstance(message, Event):
            return self._take_event(message, sender, now, out)
        if self._has_left:
            return False
        return _HANDLERS[type(message)](self.state, message, sender, now, out)

    def _take_event(self, event: Event, sender: PeerId, now: float, out: Effects) -> bool:
        is_allowed = spreading.may_send(self.state, event, sender)
        return is_allowed and self._pass_on(event, sender, now, out)

    def _pass_on(self, event: Event, sender: PeerId | None, now: float, out: Effects) -> bool:
        """Deliver an event that is new, and spread one that has not been spread so far."""
        reach = spreading.find_reach(self.state, event, sender)
        before = self._seen.note(event, reach)
        if before is not None and before >= reach:
            return False
        if before is None and self.state.wants(event.box):
            out.append(Deliver(event))
        spreading.spread(self.state, event, sender, reach, now, out)
        if self.state.settings.deputies:
            self._kept.keep(event, sender, reach, now)
        return True


def _check(filters: Iterable[Box], settings: Settings) -> tuple[Box, ...]:
    checked = tuple(filters)
    dimensions = settings.space.dimensions
    if len(checked) > PEER_FILTERS_MAX:
        raise InvalidInput(
            f"a peer may have at most {PEER_FILTERS_MAX} filters, not {len(checked):,}"
        )
    for box in checked:
        if not is_box(box, dimensions) or any(
            box[i] > box[i + dimensions] for i in range(dimensions)
        ):
            raise InvalidInput(f"a filter of {dimensions} dimensions cannot be {box!r:.100}")
    return tuple(_as_floats(box) for box in checked)


def _as_floats(box: Box) -> Box:
    try:
        return tuple(map(float, box))
    except OverflowError:
        raise InvalidInput(f"a side of the box is too long for a float: {box!r:.100}") from None


_HANDLERS: Mapping[type, Callable[[State, Any, PeerId, float, Effects], bool]] = {
    Accept: joining.take_accept,
    Adopt: compacting.take_adopt,
    Copy: deputies.take_copy,
    Dissolve: compacting.take_dissolve,
    Give: compacting.take_give,
    Grown: healing.take_grown,
    Handed: compacting.take_handed,
    Join: joining.take_join,
    Lead: structure.take_lead,
    Leave: healing.take_leave,
    Moved: healing.take_moved,
    Offer: moving.take_offer,
    Refuse: joining.take_refuse,
    Replaced: healing.take_replaced,
    Report: joining.take_report,
    Seek: moving.take_seek,
    Took: structure.take_took,
}
