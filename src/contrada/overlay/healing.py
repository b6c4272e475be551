"""The periodic checks that make any state legal again (DR-tree paper, section 3.3).

CHECK_MBR is in `State.box`, which is computed from the children; CHECK_PARENT and CHECK_CHILDREN
are reports that get no answer, and children that send none. CHECK_COVER and CHECK_STRUCTURE are
here, with what they make other peers do.
"""

from contrada.overlay.effects import Effects
from contrada.overlay.messages import (
    Adopt,
    Dissolve,
    Entry,
    Give,
    Grown,
    Handed,
    Lead,
    Leave,
    Moved,
    PeerId,
    Replaced,
)
from contrada.overlay.state import HEIGHT_MAX, Child, State
from contrada.overlay.structure import add_child, split


def check(state: State, now: float, out: Effects) -> None:
    """Run every check once; what changes the structure is done one thing at a time."""
    state.sanitise(now)
    _forget_silent(state, now)
    if state.is_root:
        while state.top > 0 and not state.levels[-1]:
            state.levels.pop()
    if not _split_overfull(state, now, out) and not _yield_to_better(state, now, out):
        _compact(state, out)


def _forget_silent(state: State, now: float) -> None:
    """Give up children and a parent that were not heard of for long."""
    limit = now - state.settings.patience * state.settings.period
    for children in state.levels:
        for id_ in [id_ for id_, child in children.items() if child.heard < limit]:
            del children[id_]
    if not state.is_root and state.heard < limit:
        state.parent = state.id
        state.asked = -1e9


def _split_overfull(state: State, now: float, out: Effects) -> bool:
    for level in range(1, state.top + 1):
        if state.count(level) > state.settings.M:
            split(state, level, now, out)
            return True
    return False


def _yield_to_better(state: State, now: float, out: Effects) -> bool:
    """CHECK_COVER: let a child that covers more than this peer lead in its place."""
    for level in range(1, state.top + 1):
        entries = state.entries(level)
        best = max(entries, key=state.rank)
        if best.id != state.id:
            _hand_over(state, level, best.id, now, out, stays=True)
            return True
    return False


def _hand_over(
    state: State, base: int, to: PeerId, now: float, out: Effects, *, stays: bool
) -> None:
    """Let a child be the node of all levels from `base` on (Adjust_Parent, corrected)."""
    lists = []
    for level in range(base, state.top + 1):
        others = [entry for entry in state.entries(level)[1:] if entry.id != to]
        for entry in others:
            out.send(entry.id, Moved(level - 1, to))
        if level == base and stays:
            others.append(state.entry(level - 1))
        lists.append(tuple(others))
    out.send(to, Lead(base, tuple(lists), None if state.is_root else state.parent))
    if not state.is_root:
        top = state.entry(state.top)
        out.send(state.parent, Replaced(state.top, Entry(to, top.box, top.count)))
    state.truncate(base, to if stays else state.id, now)


def _compact(state: State, out: Effects) -> None:
    """CHECK_STRUCTURE: bring a child with too few children together with a sibling."""
    settings = state.settings
    for level in range(state.top, 1, -1):
        entries = state.entries(level)
        poor = [entry for entry in entries if entry.count < settings.m]
        if poor and len(entries) > 1:
            _help(state, level, min(poor, key=lambda e: (e.count, e.id)), entries, out)
            return


def _help(state: State, level: int, poor: Entry, entries: list[Entry], out: Effects) -> None:
    settings = state.settings
    siblings = [entry for entry in entries if entry.id != poor.id]
    fitting = [entry for entry in siblings if entry.count + poor.count <= settings.M]
    if fitting:
        growth = settings.space.growth
        best = min(fitting, key=lambda e: (*growth(e.box, poor.box), e.id))
        stays, goes = _elect(state, poor, best)
        out.send(goes.id, Dissolve(level - 1, stays.id))
        return
    rich = max(siblings, key=lambda entry: (entry.count, entry.id))
    if rich.id == state.id:
        entries_given = _give(state, level - 1, poor, settings.m - poor.count, out)
        out.send(poor.id, Adopt(level - 1, entries_given))
    else:
        out.send(rich.id, Give(level - 1, poor, settings.m - poor.count))


def _elect(state: State, a: Entry, b: Entry) -> tuple[Entry, Entry]:
    """Choose who of two siblings leads both: the parent itself, or who covers more."""
    is_a = a.id == state.id or (b.id != state.id and state.rank(a) > state.rank(b))
    return (a, b) if is_a else (b, a)


def _give(state: State, level: int, to: Entry, count: int, out: Effects) -> tuple[Entry, ...]:
    """Let go of the children that suit a sibling best."""
    growth = state.settings.space.growth
    others = sorted(state.entries(level)[1:], key=lambda e: (*growth(to.box, e.box), e.id))
    spare = max(0, state.count(level) - state.settings.m)
    given = tuple(others[: min(count, spare)])
    for entry in given:
        del state.levels[level][entry.id]
        out.send(entry.id, Moved(level - 1, to.id))
    return given


def depart(state: State, now: float, out: Effects) -> None:
    """Leave in good order: the child that covers most takes over, and the parent is told."""
    if state.top > 0 and state.levels[1]:
        best = max(state.entries(1)[1:], key=state.rank)
        _hand_over(state, 1, best.id, now, out, stays=False)
    elif not state.is_root:
        out.send(state.parent, Leave(state.top))
    state.levels = [{}]
    state.parent = state.id


# What others may ask for


def take_leave(state: State, leave: Leave, sender: PeerId) -> bool:
    """Forget a child that has gone."""
    children = _children(state, leave.level + 1)
    return children.pop(sender, None) is not None


def take_lead(state: State, lead: Lead, sender: PeerId, now: float) -> bool:
    """Be the node of more levels, as the parent says."""
    if sender != state.parent or lead.base != state.top + 1 or not lead.lists:
        return False
    if lead.base + len(lead.lists) > HEIGHT_MAX:
        return False
    for entries in lead.lists:
        state.levels.append({e.id: Child(e.box, e.count, now) for e in entries if e.id != state.id})
    state.parent = state.id if lead.above is None else lead.above
    state.heard = state.moved = now
    return True


def take_moved(state: State, moved: Moved, sender: PeerId, now: float) -> bool:
    """Have another parent, as the old one says."""
    if sender != state.parent or moved.level != state.top or moved.to == state.id:
        return False
    state.parent = moved.to
    state.heard = state.moved = now
    return True


def take_replaced(state: State, replaced: Replaced, sender: PeerId, now: float) -> bool:
    """Let another child take the place of one."""
    children = _children(state, replaced.level + 1)
    if sender not in children:
        return False
    del children[sender]
    entry = replaced.entry
    if entry.id != state.id:
        children[entry.id] = Child(entry.box, entry.count, now)
    return True


def take_grown(state: State, grown: Grown, sender: PeerId, now: float, out: Effects) -> bool:
    """Take in the other half of a child that was split."""
    if sender not in _children(state, grown.level + 1) or grown.entry.id == state.id:
        return False
    add_child(state, grown.level + 1, grown.entry, now, out)
    return True


def take_dissolve(
    state: State, dissolve: Dissolve, sender: PeerId, now: float, out: Effects
) -> bool:
    """Give up the top level: all children of it, this peer too, go to a sibling."""
    level = dissolve.level
    if sender != state.parent or level != state.top or level < 1 or dissolve.into == state.id:
        return False
    entries = state.entries(level)
    for entry in entries[1:]:
        out.send(entry.id, Moved(level - 1, dissolve.into))
    out.send(sender, Handed(level, dissolve.into, tuple(entries), True))
    state.truncate(level, dissolve.into, now)
    return True


def take_give(state: State, give: Give, sender: PeerId, out: Effects) -> bool:
    """Give some children to a sibling."""
    if sender != state.parent or give.level != state.top or give.level < 1:
        return False
    given = _give(state, give.level, give.entry, give.count, out)
    if given:
        out.send(sender, Handed(give.level, give.entry.id, given, False))
    return True


def take_handed(state: State, handed: Handed, sender: PeerId, now: float, out: Effects) -> bool:
    """Bring children from one child to another."""
    children = _children(state, handed.level + 1)
    if sender not in children:
        return False
    if handed.is_gone:
        del children[sender]
    if handed.to == state.id:
        _adopt(state, handed.level, handed.entries, now, out)
    elif handed.to in children:
        out.send(handed.to, Adopt(handed.level, handed.entries))
    return True


def take_adopt(state: State, adopt: Adopt, sender: PeerId, now: float, out: Effects) -> bool:
    """Take in children, as the parent says."""
    if sender != state.parent or adopt.level != state.top or adopt.level < 1:
        return False
    _adopt(state, adopt.level, adopt.entries, now, out)
    return True


def _adopt(state: State, level: int, entries: tuple[Entry, ...], now: float, out: Effects) -> None:
    for entry in entries:
        if entry.id != state.id:
            add_child(state, level, entry, now, out)


def _children(state: State, level: int) -> dict[PeerId, Child]:
    return state.levels[level] if 1 <= level <= state.top else {}
