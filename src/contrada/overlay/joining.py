"""How a peer finds its parent and keeps it: reports, answers to them, and joining.

Joining begins at any node, climbs to the root, and comes down to the node above the joiner's
level that must grow least (DR-tree paper, Figure 8). A joiner brings all that is below it.
"""

from contrada.overlay.boxes import join
from contrada.overlay.effects import Effects
from contrada.overlay.messages import Accept, Entry, Join, Leave, PeerId, Refuse, Report
from contrada.overlay.state import HEIGHT_MAX, State
from contrada.overlay.structure import add_child

_GRACE = 2.0  # periods in which a new parent may not know yet
_JOIN_PATIENCE = 6.0  # periods that a request may take
_HOPS_MAX = 4 * HEIGHT_MAX


def keep_in_touch(state: State, now: float, contact: PeerId | None, out: Effects) -> None:
    """Report to the parent; a root asks the contact for one."""
    if not state.is_root:
        out.send(state.parent, Report(state.top, state.box(state.top), state.count(state.top)))
        return
    is_free = now - state.asked >= _JOIN_PATIENCE * state.settings.period
    if is_free and contact is not None and contact != state.id:
        ask(state, contact, now, out)


def ask(state: State, contact: PeerId, now: float, out: Effects) -> None:
    """Ask a peer for a parent."""
    state.ticket += 1
    state.asked = now
    out.send(contact, Join(state.entry(state.top), state.top, state.ticket))


def take_report(state: State, report: Report, sender: PeerId, now: float, out: Effects) -> bool:
    """Refresh what is known of a child; refuse who is none."""
    level = report.level + 1
    child = state.levels[level].get(sender) if 1 <= level <= state.top else None
    if child is None:
        out.send(sender, Refuse(report.level))
        return False
    child.box, child.count, child.heard = report.box, report.count, now
    out.send(sender, Accept(report.level, state.id))
    return True


def take_accept(state: State, accept: Accept, sender: PeerId, now: float, out: Effects) -> bool:
    """Hear from the parent, or be given one that was asked for."""
    if sender == state.parent and accept.ticket == 0 and not state.is_root:
        if accept.level != state.top:
            return False
        state.heard = now
        return True
    is_asked = accept.ticket == state.ticket and accept.ticket > 0
    if is_asked and state.is_root and accept.level == state.top and accept.parent != state.id:
        state.parent = accept.parent
        state.heard = state.moved = now
        state.asked = -1e9
        return True
    if accept.ticket > 0:
        out.send(sender, Leave(accept.level))
    return False


def take_refuse(state: State, refuse: Refuse, sender: PeerId, now: float) -> bool:
    """Become a root, unless the parent is so new that it may not know yet."""
    if sender != state.parent or refuse.level != state.top:
        return False
    if now - state.moved >= _GRACE * state.settings.period:
        state.parent = state.id
        state.asked = -1e9
    return True


def take_join(state: State, request: Join, now: float, out: Effects) -> bool:
    """Pass a request on towards its place, or take the joiner in."""
    joiner = request.entry
    if joiner.id == state.id or request.hops >= _HOPS_MAX:
        return joiner.id == state.id
    if request.at >= 0:
        if not 1 <= request.at <= state.top or request.at <= request.level:
            return False
        _descend(state, request, request.at, now, out)
    elif not state.is_root:
        out.send(state.parent, _moved(request, -1))
    elif state.top > request.level:
        _descend(state, request, state.top, now, out)
    elif state.top < request.level or state.rank(joiner) > state.rank(state.entry(state.top)):
        ask(state, joiner.id, now, out)
    else:
        state.levels.append({})
        _take_in(state, request, state.top, now, out)
    return True


def _descend(state: State, request: Join, level: int, now: float, out: Effects) -> None:
    """Walk down to the level above the joiner, always into the child that must grow least."""
    while level > request.level + 1:
        best = _choose(state, level, request.entry)
        if best != state.id:
            child = state.levels[level][best]
            child.box = join(child.box, request.entry.box)
            out.send(best, _moved(request, level - 1))
            return
        level -= 1
    _take_in(state, request, level, now, out)


def _choose(state: State, level: int, joiner: Entry) -> PeerId:
    growth = state.settings.space.growth
    return min(
        state.entries(level),
        key=lambda entry: (*growth(entry.box, joiner.box), entry.count, entry.id),
    ).id


def _take_in(state: State, request: Join, level: int, now: float, out: Effects) -> None:
    joiner = request.entry
    parent = add_child(state, level, joiner, now, out)
    out.send(joiner.id, Accept(request.level, parent, request.ticket))


def _moved(request: Join, at: int) -> Join:
    return Join(request.entry, request.level, request.ticket, at, request.hops + 1)
