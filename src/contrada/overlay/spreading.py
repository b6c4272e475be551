"""How events travel: up to the root, and from every node on the way down to whom they may concern.

An event goes down a link if it meets the box of the subtree, and its cells if they are known. Peers
that hang outside the boxes are served by the root, or by the lowest node that knows too many of
them to tell its parent.

No event is lost because a node changes hands. Who has a new parent sends what rises also the old
way, by its *bridge*, until the new parent has answered; who has let a child go passes on to it. And
while a leader is silent its deputy serves in its place, by its copy, long before it leads.
"""

from collections import OrderedDict
from dataclasses import replace

from contrada.overlay import swapping
from contrada.overlay.boxes import meets
from contrada.overlay.effects import Deliver, Effects
from contrada.overlay.messages import Copy, Event, PeerId
from contrada.overlay.state import HEIGHT_MAX, WIDE_MAX, State, make_child

SILENCE = 1.5  # periods after which a deputy is asked as well
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
    copy = state.copy
    if not event.is_rising:
        is_above = sender in (state.parent, state.heir) or sender in state.formers
        return state.is_wide or is_above or (copy is not None and sender == copy.above)
    if sender == state.parent or sender in state.leaving:
        return True
    if any(sender in children for children in state.levels):
        return True
    is_led = copy is not None and any(e.id == sender for entries in copy.lists for e in entries)
    return is_led or any(c.deputy == sender for below in state.levels for c in below.values())


def spread(state: State, event: Event, sender: PeerId | None, now: float, out: Effects) -> None:
    """Deliver an event, and pass it on: down where it may concern somebody, and up if it rises."""
    swapping.remember(state, event.box)
    if state.wants(event.box):
        out.append(Deliver(event))
    is_rising = sender is None or event.is_rising
    highest = state.top if is_rising else min(event.level, state.top)
    known = (sender, state.bridge, state.parent) if is_rising else (sender,)
    _send_down(state, event, known, highest, now, out)
    if highest == state.top:
        _serve_wide(state, event, sender, out)
    is_alone = not state.is_root and _is_silent(state.heard, state, now)
    if is_rising:
        rising = replace(event, level=state.top, is_rising=True)
        above = [state.parent, state.bridge, state.heir if is_alone else None]
        for id_ in dict.fromkeys(above):
            if id_ is not None and id_ != sender:
                out.send(id_, rising)
    if is_alone and state.copy is not None:
        _serve_for_leader(state, state.copy, event, sender, is_rising, out)


def _send_down(
    state: State,
    event: Event,
    known: tuple[PeerId | None, ...],
    highest: int,
    now: float,
    out: Effects,
) -> None:
    space, passed_on = state.settings.space, replace(event, level=HEIGHT_MAX - 1, is_rising=False)
    is_led_by_others = False
    for level in range(highest, 0, -1):
        falling = replace(event, level=level - 1, is_rising=False)
        for id_, child in state.levels[level].items():
            if id_ not in known and child.meets(event.box, space):
                out.send(id_, falling)
                is_led_by_others |= not child.is_sure
                if child.deputy is not None and _is_silent(child.heard, state, now):
                    out.send(child.deputy, falling)
    for id_, child in state.leaving.items():
        if id_ not in known and child.meets(event.box, space):
            out.send(id_, passed_on)
    if is_led_by_others:
        for id_ in state.formers:
            if id_ not in known:
                out.send(id_, passed_on)


def _serve_for_leader(
    state: State, copy: Copy, event: Event, sender: PeerId | None, is_rising: bool, out: Effects
) -> None:
    """Do what the parent would do if it were not silent."""
    top = min(len(copy.lists), HEIGHT_MAX - 1)
    highest = top if is_rising else min(event.level, top)
    for level in range(highest, 0, -1):
        falling = replace(event, level=level - 1, is_rising=False)
        for entry in copy.lists[level - 1]:
            child = make_child(entry, 0.0)
            if entry.id != sender and child.meets(event.box, state.settings.space):
                out.send(entry.id, falling)
    if is_rising and copy.above != sender:
        out.send(copy.above, replace(event, level=top, is_rising=True))


def _is_silent(heard: float, state: State, now: float) -> bool:
    return now - heard > SILENCE * state.settings.period


def _serve_wide(state: State, event: Event, sender: PeerId | None, out: Effects) -> None:
    wide = state.wide(state.top)
    if state.is_root or len(wide) > WIDE_MAX:
        for id_, box in wide:
            if id_ not in (sender, event.publisher) and meets(box, event.box):
                out.send(id_, replace(event, level=0, is_rising=False))
