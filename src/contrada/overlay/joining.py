"""How a peer finds its parent and keeps it: reports, answers to them, and joining.

Joining begins at any node, climbs to the root, and comes down to the node above the joiner's
level that must grow least (DR-tree paper, Figure 8). A joiner brings all that is below it.
"""

from dataclasses import replace

from contrada.overlay.deputies import TRUST, step_in
from contrada.overlay.effects import Effects
from contrada.overlay.messages import Accept, Entry, Join, Leave, PeerId, Refuse, Report
from contrada.overlay.state import HEIGHT_MAX, NEVER, TICKET_MAX, Child, State
from contrada.overlay.structure import add_child, is_bound

_REDIRECTS_MAX = 8
_GRACE = 1.5  # periods in which a peer may not know yet of what has changed
_JOIN_PATIENCE = 2.5  # periods that a request may take
_TICKETS_OPEN = 8  # requests whose answers are awaited: who is asked by many asks many
_HOPS_MAX = HEIGHT_MAX
_RING_MAX = 8  # hops among peers that wait for each other


def keep_in_touch(state: State, now: float, contact: PeerId | None, out: Effects) -> None:
    """Report to the parent; a root asks the contact for one."""
    if not state.is_root:
        report(state, now, out)
        return
    is_free = now - state.asked >= _JOIN_PATIENCE * state.settings.period
    if is_free and contact is not None and contact != state.id:
        ask(state, contact, now, out)


def report(state: State, now: float, out: Effects) -> None:
    """Report the topmost node to the parent."""
    state.sent = state.describe(state.top)
    if state.sent.wide is None:
        state.crowded = now
    calm, deputy = state.calm_below(now), state.deputy
    out.send(state.parent, Report(state.top, state.sent, calm, deputy, state.filter))


def report_change(state: State, now: float, out: Effects) -> None:
    """Report to the parent at once if the topmost node differs from the last report."""
    if not state.is_root and state.describe(state.top) != state.sent:
        report(state, now, out)


def ask(state: State, contact: PeerId, now: float, out: Effects) -> None:
    """Ask a peer for a parent."""
    state.ticket = state.ticket + 1 if 0 <= state.ticket < TICKET_MAX else 1
    state.asked, state.contact = now, contact
    out.send(contact, Join(state.describe(state.top), state.top, state.ticket))


def take_report(state: State, told: Report, sender: PeerId, now: float, out: Effects) -> bool:
    """Refresh what is known of a child, and take in who is not known as one."""
    level, entry = told.level + 1, told.entry
    if level > state.top:
        step_in(state, sender, told.level, now, out)
    if level > state.top:
        out.send(sender, Refuse(told.level, state.parent))
        return False
    child = state.levels[level].get(sender)
    if child is None:
        child = _take_over(state, level, Entry(sender, entry.box, entry.count), now, out)
    if child is None:
        return False
    for other, children in enumerate(state.levels):
        if other != level:
            children.pop(sender, None)
    before = child.box, child.cells, child.wide
    child.box, child.count, child.cells, child.wide = (
        entry.box,
        entry.count,
        entry.cells,
        entry.wide,
    )
    if now - child.due_since > _GRACE * state.settings.period:
        child.due.clear()
    for due in child.due:  # this report may be older
        child.widen(due, state.settings.space)
    is_news = (child.box, child.cells, child.wide) != before
    child.calm, child.deputy, child.filter = told.calm, told.deputy, told.filter
    child.heard, child.is_sure = now, True
    out.send(sender, Accept(told.level, state.id, 0, state.calm_everywhere(now), state.deputy))
    if is_news:
        report_change(state, now, out)
    return True


def _take_over(state: State, level: int, entry: Entry, now: float, out: Effects) -> Child | None:
    """Adopt one that reports as a child but is not known as one, unless it has just been let go."""
    gone = state.leaving.get(entry.id)
    if gone is not None and now - gone.heard < _GRACE * state.settings.period:
        return None
    is_in = add_child(state, level, entry, now, out)
    return state.levels[level][entry.id] if is_in else None


def take_accept(state: State, accept: Accept, sender: PeerId, now: float, out: Effects) -> bool:
    """Take note of the parent, or get one that was asked for."""
    if sender == state.parent and accept.ticket == 0 and not state.is_root:
        if accept.level != state.top:
            return False
        state.heard, state.calm, state.redirects = now, accept.calm, 0
        state.heir, state.bridge = accept.deputy, None
        if state.heir != state.id:
            state.copy = None
        return True
    is_asked = accept.ticket > 0 and 0 <= state.ticket - accept.ticket < _TICKETS_OPEN
    if is_asked and state.is_root and accept.level == state.top and accept.parent != state.id:
        state.move_to(accept.parent, now)
        state.asked = NEVER
        return True
    is_known = accept.parent == state.parent and accept.level == state.top
    if accept.ticket > 0 and not is_known:
        out.send(sender, Leave(accept.level))
    return False


def take_refuse(state: State, refuse: Refuse, sender: PeerId, now: float, out: Effects) -> bool:
    """Turn to the parent's parent; but not back to a former one, whose deputy may not know yet."""
    if sender != state.parent or refuse.level != state.top:
        return False
    is_new = now - state.moved < _GRACE * state.settings.period
    if refuse.above == state.id or (is_new and refuse.above in state.formers):
        return True
    if refuse.above == sender or state.redirects >= _REDIRECTS_MAX:
        state.be_root()
        return True
    state.redirects += 1
    state.turn_from(sender, now)
    state.heir = state.copy = None
    state.parent, state.heard = refuse.above, now - TRUST * state.settings.period
    report(state, now, out)
    return True


def take_join(state: State, request: Join, sender: PeerId, now: float, out: Effects) -> bool:
    """Pass a request on towards its place, or take the joiner in."""
    joiner = request.entry
    if joiner.id == state.id:
        return _take_back(state, request)
    if request.hops >= _HOPS_MAX:
        return False
    if request.at >= 0:
        if request.level >= min(request.at, state.top):
            return False  # back to the root it would only come here again
        _descend(state, request, min(request.at, state.top), now, out)
    elif not state.is_root:
        if request.climbed >= state.top:
            return False
        out.send(state.parent, _moved(request, -1, state.top))
    elif (contact := _asked(state, request, now)) is not None and contact != joiner.id:
        out.send(contact, _moved(request, -1))
    elif state.top > request.level:
        _descend(state, request, state.top, now, out)
    elif state.top < request.level or state.rank(joiner) > state.rank(state.entry(state.top)):
        ask(state, joiner.id, now, out)
    elif not is_bound(state, now) and state.top + 1 < HEIGHT_MAX:
        state.levels.append({})
        _take_in(state, request, state.top, now, out)
    return True


def _take_back(state: State, request: Join) -> bool:
    """See that the last request to join has led nowhere but here."""
    if request.ticket != state.ticket:
        return False
    state.contact = None  # all on the way back here ask each other
    if state.top > 0:
        state.asked = NEVER  # the contact was below
    return True


def _asked(state: State, request: Join, now: float) -> PeerId | None:
    """Return whom a lone peer is waiting for to find it a parent, and who may know of one."""
    is_waiting = now - state.asked < _JOIN_PATIENCE * state.settings.period
    return state.contact if state.top == 0 and is_waiting and request.hops < _RING_MAX else None


def _descend(state: State, request: Join, level: int, now: float, out: Effects) -> None:
    """Walk down to the level above the joiner, always into the child that must grow least."""
    while level > request.level + 1:
        best = _choose(state, level, request.entry)
        if best != state.id:
            state.levels[level][best].widen(request.entry, state.settings.space)
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
    if add_child(state, level, joiner, now, out):
        out.send(joiner.id, Accept(request.level, state.id, request.ticket))
        report_change(state, now, out)


def _moved(request: Join, at: int, climbed: int = -1) -> Join:
    return replace(request, at=at, hops=request.hops + 1, climbed=climbed)
