"""Changes of who leads whom: adding a child, splitting a node, handing one over.

In a split or a hand-over nobody gives up children before their new leader has said that it leads
them: a peer *promises* a lead, and keeps all it has until that is confirmed. One promise is open
at a time; one that is not confirmed is forgotten.
"""

from dataclasses import replace

from contrada.overlay.boxes import join_all
from contrada.overlay.effects import Effects
from contrada.overlay.messages import Entry, Grown, Lead, Moved, PeerId, Replaced, Took
from contrada.overlay.splitting import SPLITS
from contrada.overlay.state import HEIGHT_MAX, Promise, State, make_child, unite_wide

_PROMISE = 2.0  # periods that a confirmation may take
_SHARE = 0.4  # of the children of a node far too full that go to either half


def add_child(state: State, level: int, entry: Entry, now: float, out: Effects) -> bool:
    """Add a child to the node at a level, if there is room.

    One that is a child already has its own word for how it is; others can only add to that.
    """
    children = state.levels[level]
    if entry.id in children:
        children[entry.id].widen(entry, state.settings.space)
        return True
    if len(children) >= state.settings.children_max:
        return False
    children[entry.id] = make_child(entry, now)
    state.leaving.pop(entry.id, None)
    if must_split(state, level):
        split(state, level, now, out)
    return True


def must_split(state: State, level: int) -> bool:
    """Whether a node has too many children, and enough of them would obey."""
    most = state.settings.M
    count = state.count(level)
    if count <= most:
        return False
    sure = sum(child.is_sure for child in state.levels[level].values())
    return 2 * sure > most or count > 2 * most


def split(state: State, level: int, now: float, out: Effects) -> None:
    """Promise one half of an overfull node to one of that half."""
    if is_bound(state, now):
        return
    settings = state.settings
    entries = state.entries(level)
    least = max(settings.m, int(_SHARE * len(entries)))
    groups = SPLITS[settings.split](entries, least, settings.space)
    others = next(g for g in groups if all(entry.id != state.id for entry in g))
    leader = max(others, key=lambda e: (state.is_sure(level, e.id), *state.rank(e)))
    led = tuple(entry for entry in others if entry is not leader)
    lists: tuple[tuple[Entry, ...], ...] = (led,)
    above = state.id if level < state.top else state.parent
    if level == state.top and state.is_root:
        mine = _rest(state, level, {entry.id for entry in others})
        if state.rank(_half(leader.id, others)) > state.rank(mine):
            lists, above = (led, (mine,)), leader.id
    ids = tuple(entry.id for entry in led)
    _promise(state, Promise(leader.id, level, above, ids, True, now), lists, out)


def hand_over(state: State, base: int, to: PeerId, now: float, out: Effects) -> None:
    """Promise a child the node of all levels from `base` on (Adjust_Parent, corrected)."""
    if is_bound(state, now):
        return
    lists, above = list_heritage(state, base, to, stays=True)
    _promise(state, Promise(to, base, above, (), False, now), lists, out)


def list_heritage(
    state: State, base: int, to: PeerId, *, stays: bool
) -> tuple[tuple[tuple[Entry, ...], ...], PeerId]:
    """List the children that a child would lead in this peer's place, and its parent."""
    lists = []
    for level in range(base, state.top + 1):
        others = [entry for entry in state.entries(level)[1:] if entry.id != to]
        if level == base and stays:
            others.append(state.describe(level - 1))
        lists.append(tuple(others))
    return tuple(lists), to if state.is_root else state.parent


def take_lead(state: State, lead: Lead, sender: PeerId, now: float, out: Effects) -> bool:
    """Become the node of more levels, as the parent says."""
    if sender != state.parent or lead.base != state.top + 1 or not lead.lists:
        return False
    if lead.base + len(lead.lists) > HEIGHT_MAX:
        return False
    if is_bound(state, now) and state.promise is not None and not state.promise.is_split:
        return True  # all levels of this peer are promised to another
    for entries in lead.lists:
        state.levels.append({e.id: make_child(e, now) for e in entries if e.id != state.id})
    state.move_to(lead.above, now)
    state.stay_calm()
    out.send(sender, Took(lead.base))
    return True


def take_took(state: State, took: Took, sender: PeerId, now: float, out: Effects) -> bool:
    """Release what a child has confirmed to lead."""
    promise = state.promise
    if promise is None or sender != promise.to or took.base != promise.base:
        return False
    state.promise = None
    level = promise.base
    if sender not in state.children(level):
        return False
    if promise.is_split:
        _give_half(state, promise, now, out)
    else:
        _give_all(state, promise, now, out)
    return True


def is_bound(state: State, now: float) -> bool:
    """Whether a promise is open."""
    promise = state.promise
    return promise is not None and now - promise.since < _PROMISE * state.settings.period


def _promise(
    state: State, promise: Promise, lists: tuple[tuple[Entry, ...], ...], out: Effects
) -> None:
    state.promise = promise
    out.send(promise.to, Lead(promise.base, lists, promise.above))


def _give_half(state: State, promise: Promise, now: float, out: Effects) -> None:
    level, leader = promise.base, promise.to
    led = [i for i in dict.fromkeys(promise.ids) if i in state.levels[level] and i != leader]
    for id_ in led:
        out.send(id_, Moved(level - 1, leader))
    moved = [(id_, state.release(level, id_, now)) for id_ in (leader, *led)]
    half = _half(leader, [child.entry(id_) for id_, child in moved])
    above = state.id if level < state.top else state.parent
    if above == state.id and promise.above == leader:
        above = leader
    _correct(promise, level, above, out)
    if above not in (state.id, leader):
        out.send(above, Grown(level, half))
        return
    state.leaving.pop(leader, None)
    if above == leader:
        state.move_to(leader, now)
    elif level < state.top:
        add_child(state, level + 1, half, now, out)
    elif level + 1 < HEIGHT_MAX:
        state.levels.append({leader: make_child(half, now)})


def _give_all(state: State, promise: Promise, now: float, out: Effects) -> None:
    base, to = promise.base, promise.to
    _correct(promise, state.top, to if state.is_root else state.parent, out)
    bid_farewell(state, base, to, out)
    state.truncate(base, to, now)
    state.stay_calm()
    state.recent.clear()


def _correct(promise: Promise, level: int, above: PeerId, out: Effects) -> None:
    """Inform the new leader of its parent, if that has changed since it was promised."""
    if above != promise.above:
        out.send(promise.to, Moved(level, above))


def bid_farewell(state: State, base: int, to: PeerId, out: Effects) -> None:
    """Inform the children of all levels from `base` on, and the parent, who leads from now on."""
    for level in range(base, state.top + 1):
        for id_ in state.levels[level]:
            if id_ != to:
                out.send(id_, Moved(level - 1, to))
    if not state.is_root:
        top = state.describe(state.top)
        out.send(state.parent, Replaced(state.top, replace(top, id=to)))


def _half(leader: PeerId, entries: list[Entry]) -> Entry:
    box = join_all(entry.box for entry in entries)
    return Entry(leader, box, len(entries), None, unite_wide(entry.wide for entry in entries))


def _rest(state: State, level: int, gone: set[PeerId]) -> Entry:
    others = [entry for entry in state.entries(level)[1:] if entry.id not in gone]
    return _half(state.id, [state.describe(level - 1), *others])
