"""How events travel: up to the root, and from every node on the way down to whom they may concern.

An event goes down a link if it meets the box of the subtree, and its cells if they are known. Peers
that hang outside the boxes are served by the root, or by the lowest node that knows too many of
them to tell its parent.
"""

from collections import OrderedDict
from dataclasses import replace

from contrada.overlay import swapping
from contrada.overlay.boxes import meets
from contrada.overlay.effects import Deliver, Effects
from contrada.overlay.messages import Event, PeerId
from contrada.overlay.state import HEIGHT_MAX, WIDE_MAX, State

_SEEN_MAX = 4_096


class Seen:
    """The last events that a peer has handled; one that comes again is none."""

    def __init__(self) -> None:
        """Start without any."""
        self._keys: OrderedDict[tuple[PeerId, int], None] = OrderedDict()

    def add(self, event: Event) -> bool:
        """Note an event; False if it was noted before."""
        key = event.publisher, event.number
        if key in self._keys:
            return False
        self._keys[key] = None
        if len(self._keys) > _SEEN_MAX:
            self._keys.popitem(last=False)
        return True


def may_send(state: State, event: Event, sender: PeerId) -> bool:
    """Tell whether an event comes from where one can come from."""
    if event.is_rising:
        is_child = any(sender in children for children in state.levels)
        return is_child or sender in state.leaving
    return state.is_wide or sender == state.parent or sender in state.formers


def spread(state: State, event: Event, sender: PeerId | None, out: Effects) -> None:
    """Deliver an event, and pass it on: down where it may concern somebody, and up if it rises."""
    swapping.remember(state, event.box)
    if state.wants(event.box):
        out.append(Deliver(event))
    is_rising = sender is None or event.is_rising
    highest = state.top if is_rising else min(event.level, state.top)
    _send_down(state, event, sender, highest, out)
    if highest == state.top:
        _serve_wide(state, event, sender, out)
    if is_rising and not state.is_root:
        out.send(state.parent, replace(event, level=state.top, is_rising=True))


def _send_down(
    state: State, event: Event, sender: PeerId | None, highest: int, out: Effects
) -> None:
    space = state.settings.space
    for level in range(highest, 0, -1):
        for id_, child in state.levels[level].items():
            if id_ != sender and child.meets(event.box, space):
                out.send(id_, replace(event, level=level - 1, is_rising=False))
    for id_, child in state.leaving.items():
        if id_ != sender and child.meets(event.box, space):
            out.send(id_, replace(event, level=HEIGHT_MAX - 1, is_rising=False))


def _serve_wide(state: State, event: Event, sender: PeerId | None, out: Effects) -> None:
    wide = state.wide(state.top)
    if state.is_root or len(wide) > WIDE_MAX:
        for id_, box in wide:
            if id_ not in (sender, event.publisher) and meets(box, event.box):
                out.send(id_, replace(event, level=0, is_rising=False))
