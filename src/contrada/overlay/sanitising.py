"""Throws out of a memory what no peer could have written, wherever it came from."""

from typing import Any

from contrada.overlay.boxes import is_box
from contrada.overlay.messages import PeerId
from contrada.overlay.state import (
    DUE_MAX,
    FORMERS_MAX,
    HEIGHT_MAX,
    JUDGED_EVENTS_MAX,
    LEAVING_MAX,
    TICKET_MAX,
    Child,
    State,
)


def sanitise(state: State, now: float) -> None:
    """Leave only what some peer could have written; times do not lie in the future."""
    levels: Any = state.levels
    if not isinstance(levels, list) or not levels:
        state.levels = [{}]
    del state.levels[HEIGHT_MAX:]
    state.levels[0] = {}
    for children in state.levels:
        _sanitise_children(state, children, state.settings.children_max, now)
    _sanitise_children(state, state.leaving, LEAVING_MAX, now)
    state.heard, state.moved = _past(state.heard, now), _past(state.moved, now)
    state.asked, state.compacted = _past(state.asked, now), _past(state.compacted, now)
    state.changed, state.calm = _past(state.changed, now), max(0.0, state.calm)
    state.crowded = _past(state.crowded, now)
    state.ticket = state.ticket if 0 <= state.ticket < TICKET_MAX else 0
    state.redirects = max(0, state.redirects)
    for id_ in list(state.formers)[:-FORMERS_MAX]:
        del state.formers[id_]
    for id_, when in state.formers.items():
        state.formers[id_] = _past(when, now)
    del state.recent[:-JUDGED_EVENTS_MAX]
    if state.promise is not None:
        state.promise.since = _past(state.promise.since, now)
    seeking = state.seeking
    seeking.asked, seeking.offered = _past(seeking.asked, now), _past(seeking.offered, now)
    seeking.ticket = seeking.ticket if 0 <= seeking.ticket < TICKET_MAX else 0
    seeking.turn = max(0, seeking.turn)


def _sanitise_children(state: State, children: dict[PeerId, Child], most: int, now: float) -> None:
    dimensions = state.settings.space.dimensions
    for number, (id_, child) in enumerate(list(children.items())):
        is_sound = id_ != state.id and _is_sound(child, dimensions)
        if not is_sound or number >= most:
            del children[id_]
        else:
            child.heard = _past(child.heard, now)
            child.calm = max(0.0, child.calm)
            child.due_since = _past(child.due_since, now)
            child.due = [e for e in child.due[-DUE_MAX:] if is_box(e.box, dimensions)]


def _past(time: float, now: float) -> float:
    """Return a time, or now if it lies in the future or is not one."""
    return time if time <= now else now


def _is_sound(child: Child, dimensions: int) -> bool:
    return is_box(child.box, dimensions) and child.count >= 0
