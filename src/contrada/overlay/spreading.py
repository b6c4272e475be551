"""How events travel: up to the root, and from every node on the way down to whom they may concern.

An event goes down a link if it meets the box of the subtree, and its cells if they are known. Peers
that hang outside the boxes are served by the root, or by the lowest node that knows too many of
them to name to its parent.

Events should outlive a change of hands. Who has a new parent sends what rises also the old way, by
its *bridge*, until the new parent has answered; who has let a child go passes on to it. And while a
leader is silent its deputy serves in its place, by its copy, long before it leads.
"""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from contrada.overlay import swapping
from contrada.overlay.boxes import Box, meets
from contrada.overlay.deputies import is_silent
from contrada.overlay.effects import Effects
from contrada.overlay.messages import Copy, Event, PeerId
from contrada.overlay.state import HEIGHT_MAX, State, make_child, name_wide

_SEEN_MAX = 65_536  # at most 16 MB
_NAMING = 2.5  # periods after which a parent serves the wide peers that have been named to it


@dataclass(slots=True)
class Seen:
    """The last events that a peer has handled, and how far it has spread each.

    Neighbours may repeat what they have handled within twice the patience. A peer that handles more
    events than `_SEEN_MAX` in that time (9,000 a second, with a period of one) may deliver one
    twice.
    """

    reaches: OrderedDict[tuple[PeerId, int], int] = field(default_factory=OrderedDict)

    def note(self, event: Event, reach: int) -> int | None:
        """Note an event that is to be spread so far; return how far it was before, if at all."""
        key = event.publisher, event.number
        before = self.reaches.get(key)
        self.reaches[key] = reach if before is None else max(before, reach)
        while len(self.reaches) > _SEEN_MAX:
            self.reaches.popitem(last=False)
        return before


def find_reach(state: State, event: Event, sender: PeerId | None) -> int:
    """Return how far to spread an event: up as well, or down from a level."""
    is_rising = sender is None or event.is_rising
    return HEIGHT_MAX if is_rising else min(event.level, state.top)


def may_send(state: State, event: Event, sender: PeerId) -> bool:
    """Whether an event comes from where one can come from."""
    copy = state.copy
    if not event.is_rising:
        above = {state.parent, state.heir, *state.formers}
        if copy is not None:
            above.add(copy.above)
        if state.promise is not None:
            above.add(state.promise.to)  # who leads already may know it first
        return state.is_wide or sender in above
    if sender == state.parent or sender in state.leaving or sender in state.formers:
        return True
    if any(sender in children for children in state.levels):
        return True
    is_led = copy is not None and any(e.id == sender for entries in copy.lists for e in entries)
    return is_led or any(c.deputy == sender for below in state.levels for c in below.values())


def spread(
    state: State, event: Event, sender: PeerId | None, reach: int, now: float, out: Effects
) -> None:
    """Pass an event on: down where it may concern somebody, and up if it reaches so far."""
    swapping.remember(state, event.box)
    is_rising, highest = reach == HEIGHT_MAX, min(reach, state.top)
    spared = (sender, state.bridge, state.parent) if is_rising else (sender,)
    _send_down(state, event, spared, highest, now, out)
    crosses = is_rising and sender == state.parent  # it was sent when this peer was above
    if highest == state.top:
        _serve_wide(state, event, sender, crosses, now, out)
    is_alone = not state.is_root and is_silent(state, state.heard, now)
    if is_rising:
        above = [state.parent, state.bridge, state.heir if is_alone else None]
        _send_up(state, event, sender, [*above, *(state.formers if crosses else ())], out)
    if is_alone and state.copy is not None:
        serve_for_leader(state, state.copy, event, sender, is_rising, out)


def _send_up(
    state: State, event: Event, sender: PeerId | None, above: list[PeerId | None], out: Effects
) -> None:
    rising = replace(event, level=state.top, is_rising=True)
    for id_ in dict.fromkeys(above):
        if id_ is not None and id_ != sender:
            out.send(id_, rising)


def _send_down(
    state: State,
    event: Event,
    spared: tuple[PeerId | None, ...],
    highest: int,
    now: float,
    out: Effects,
) -> None:
    space, passed_on = state.settings.space, replace(event, level=HEIGHT_MAX - 1, is_rising=False)
    is_led_by_others = False
    for level in range(highest, 0, -1):
        falling = replace(event, level=level - 1, is_rising=False)
        for id_, child in state.levels[level].items():
            if id_ not in spared and child.meets(event.box, space):
                out.send(id_, falling)
                is_led_by_others |= not child.is_sure
                if child.deputy is not None and is_silent(state, child.heard, now):
                    out.send(child.deputy, falling)
    for id_, child in state.leaving.items():
        if id_ not in spared and child.meets(event.box, space):
            out.send(id_, passed_on)
    if is_led_by_others:
        for id_ in state.formers:
            if id_ not in spared:
                out.send(id_, passed_on)


def serve_for_leader(
    state: State, copy: Copy, event: Event, sender: PeerId | None, is_rising: bool, out: Effects
) -> None:
    """Do what the parent would do if it were not silent."""
    top = min(len(copy.lists), HEIGHT_MAX - 1)
    lists = [entry for entries in copy.lists for entry in entries]
    highest = top if is_rising else min(event.level, top)
    for level in range(highest, 0, -1):
        falling = replace(event, level=level - 1, is_rising=False)
        for entry in copy.lists[level - 1]:
            child = make_child(entry, 0.0)
            if entry.id != sender and child.meets(event.box, state.settings.space):
                out.send(entry.id, falling)
    if copy.above == state.id:
        _send_wide(name_wide(entry.wide for entry in lists), event, sender, out)
    elif is_rising and copy.above != sender:
        out.send(copy.above, replace(event, level=top, is_rising=True))


def _serve_wide(
    state: State, event: Event, sender: PeerId | None, crosses: bool, now: float, out: Effects
) -> None:
    """Serve the wide peers, unless the parent does, to whom all of them have been named."""
    was_root = state.bridge == state.id  # and no parent has answered since
    is_named = now - state.crowded > _NAMING * state.settings.period
    if state.is_root or was_root or crosses or not is_named or state.wide(state.top) is None:
        _send_wide(state.named_wide(state.top), event, sender, out)


def _send_wide(
    wide: Mapping[PeerId, Box], event: Event, sender: PeerId | None, out: Effects
) -> None:
    for id_, box in wide.items():
        if id_ not in (sender, event.publisher) and meets(box, event.box):
            out.send(id_, replace(event, level=HEIGHT_MAX - 1, is_rising=False))
