"""The periodic checks that make any state legal again (DR-tree paper, section 3.3).

CHECK_MBR is in `State.box`, which is computed from the children; CHECK_PARENT and CHECK_CHILDREN
are reports that get no answer, and children that send none. CHECK_COVER and CHECK_STRUCTURE are
here, with what they make other peers do.
"""

from collections.abc import Sequence

from contrada.overlay import swapping
from contrada.overlay.boxes import join
from contrada.overlay.deputies import replace_child, replace_parent
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
from contrada.overlay.state import Child, State, make_child
from contrada.overlay.structure import (
    add_child,
    bid_farewell,
    hand_over,
    is_bound,
    list_heritage,
    must_split,
    split,
)

_BETTER = 1.1
_COMPACTION = 3.0  # periods in which the children of a dissolved node find their new parents


def check(state: State, now: float, out: Effects) -> None:
    """Run every check once; what changes the structure is done one thing at a time."""
    state.sanitise(now)
    _forget_silent(state, now)
    while state.top > 0 and not state.levels[-1]:
        state.levels.pop()
    _notice_change(state, now)
    if not _split_overfull(state, now, out) and not _yield_to_better(state, now, out):
        _compact(state, now, out)


def _forget_silent(state: State, now: float) -> None:
    """Give up children and a parent that were not heard of for long; deputies take their places."""
    limit = now - state.settings.patience * state.settings.period
    for id_ in [id_ for id_, child in state.leaving.items() if child.heard < limit]:
        del state.leaving[id_]
    for id_ in [id_ for id_, when in state.formers.items() if when < limit]:
        del state.formers[id_]
    for children in state.levels:
        for id_ in [id_ for id_, child in children.items() if child.heard < limit]:
            child = children.pop(id_)
            if child.deputy not in (None, state.id) and child.deputy not in children:
                replace_child(children, child, now)
    if not state.is_root and state.heard < limit:
        replace_parent(state, now)


def _notice_change(state: State, now: float) -> None:
    shape = state.see_shape()
    if shape != state.shape:
        state.shape, state.changed = shape, now


def _split_overfull(state: State, now: float, out: Effects) -> bool:
    for level in range(1, state.top + 1):
        if must_split(state, level):
            split(state, level, now, out)
            return True
    return False


def _yield_to_better(state: State, now: float, out: Effects) -> bool:
    """CHECK_COVER: let a child that covers more than this peer lead in its place."""
    for level in range(1, state.top + 1):
        entries = state.entries(level)
        best = swapping.choose(state, level, entries) or max(entries, key=state.rank)
        if best.id != state.id and state.is_sure(level, best.id):
            hand_over(state, level, best.id, now, out)
            return True
    return False


def _compact(state: State, now: float, out: Effects) -> None:
    """CHECK_STRUCTURE: bring the children of a child that has too few to its siblings."""
    settings = state.settings
    if is_bound(state, now) or now - state.compacted < _COMPACTION * settings.period:
        return
    for level in range(state.top, 1, -1):
        entries = state.entries(level)
        poor = [entry for entry in entries if entry.count < settings.m]
        if poor and len(entries) > 1:
            state.compacted = now
            _help(state, level, min(poor, key=lambda e: (e.count, e.id)), entries, out)
            return


def _help(state: State, level: int, poor: Entry, entries: list[Entry], out: Effects) -> None:
    """Scatter the children of a poor node among its siblings; the own node is filled up instead."""
    settings = state.settings
    siblings = [entry for entry in entries if entry.id != poor.id]
    if poor.id != state.id:
        out.send(poor.id, Dissolve(level - 1, tuple(siblings)))
        return
    growth = settings.space.growth
    fitting = [entry for entry in siblings if entry.count + poor.count <= settings.M]
    if fitting:
        best = min(fitting, key=lambda e: (*growth(poor.box, e.box), e.id))
        out.send(best.id, Dissolve(level - 1, (poor,)))
        return
    rich = max(siblings, key=lambda entry: (entry.count, entry.id))
    out.send(rich.id, Give(level - 1, poor, settings.m - poor.count))


def _scatter(
    state: State, entries: list[Entry], siblings: Sequence[Entry]
) -> tuple[list[PeerId], float]:
    """Find a home for each entry, the sibling with room that must grow least; say what it costs."""
    settings = state.settings
    space, cost = settings.space, settings.space.cost
    boxes = {sibling.id: sibling.box for sibling in siblings}
    counts = {sibling.id: sibling.count for sibling in siblings}
    homes, before = [], sum(map(cost, boxes.values()))
    for entry in entries:
        room = [id_ for id_ in boxes if counts[id_] < settings.M] or list(boxes)
        growths = {id_: space.growth(boxes[id_], entry.box) for id_ in room}
        home = min(room, key=lambda id_: (*growths[id_], id_))
        boxes[home] = join(boxes[home], entry.box)
        counts[home] += 1
        homes.append(home)
    return homes, sum(map(cost, boxes.values())) - before


def _give(
    state: State, level: int, to: Entry, count: int, now: float, out: Effects
) -> tuple[Entry, ...]:
    """Let go of the children that suit a sibling best."""
    growth = state.settings.space.growth
    others = sorted(state.entries(level)[1:], key=lambda e: (*growth(to.box, e.box), e.id))
    spare = max(0, state.count(level) - state.settings.m)
    given = tuple(others[: min(count, spare)])
    for entry in given:
        state.release(level, entry.id, now)
        out.send(entry.id, Moved(level - 1, to.id))
    return given


def depart(state: State, now: float, out: Effects) -> None:
    """Leave in good order: the child that covers most takes over, and the parent is told."""
    state.sanitise(now)
    if state.top > 0 and state.levels[1]:
        best = max(state.entries(1)[1:], key=state.rank)
        lists, above = list_heritage(state, 1, best.id, stays=False)
        out.send(best.id, Lead(1, lists, above))
        bid_farewell(state, 1, best.id, out)
    elif not state.is_root:
        out.send(state.parent, Leave(state.top))
    state.levels = [{}]
    state.parent = state.id


# What others may ask for


def take_leave(state: State, leave: Leave, sender: PeerId, now: float, out: Effects) -> bool:
    """Forget a child that has gone."""
    if sender not in _children(state, leave.level + 1):
        return False
    state.release(leave.level + 1, sender, now)
    return True


def take_moved(state: State, moved: Moved, sender: PeerId, now: float, out: Effects) -> bool:
    """Have another parent, as the old one says."""
    if sender != state.parent or moved.level != state.top or moved.to == state.id:
        return False
    state.move_to(moved.to, now)
    return True


def take_replaced(
    state: State, replaced: Replaced, sender: PeerId, now: float, out: Effects
) -> bool:
    """Let another child take the place of one."""
    children = _children(state, replaced.level + 1)
    if sender not in children:
        return False
    state.release(replaced.level + 1, sender, now)
    entry = replaced.entry
    if entry.id != state.id:
        children[entry.id] = make_child(entry, now)
    state.stay_calm()
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
    """Give up the top level: all children of it, this peer too, go to siblings."""
    level, siblings = dissolve.level, [e for e in dissolve.siblings if e.id != state.id]
    if sender != state.parent or level != state.top or level < 1 or not siblings:
        return False
    if is_bound(state, now):
        return True
    entries = state.entries(level)
    homes, cost = _scatter(state, entries, siblings)
    if not dissolve.is_forced and cost * _BETTER >= state.settings.space.cost(state.box(level)):
        return True
    for entry, home in zip(entries, homes, strict=True):
        out.send(entry.id, Moved(level - 1, home))
    out.send(sender, Handed(level, tuple(homes), tuple(entries), True))
    state.truncate(level, homes[0], now)
    return True


def take_give(state: State, give: Give, sender: PeerId, now: float, out: Effects) -> bool:
    """Give some children to a sibling."""
    if sender != state.parent or give.level != state.top or give.level < 1:
        return False
    given = _give(state, give.level, give.entry, give.count, now, out)
    if given:
        out.send(sender, Handed(give.level, (give.entry.id,) * len(given), given, False))
    return True


def take_handed(state: State, handed: Handed, sender: PeerId, now: float, out: Effects) -> bool:
    """Bring children from one child to another."""
    children = _children(state, handed.level + 1)
    if sender not in children or handed.level < 1:
        return False
    if handed.is_gone:
        state.release(handed.level + 1, sender, now)
    for home in dict.fromkeys(handed.homes):
        entries = tuple(
            e for e, to in zip(handed.entries, handed.homes, strict=False) if to == home
        )
        if home == state.id:
            _adopt(state, handed.level, entries, now, out)
        elif home in children:
            out.send(home, Adopt(handed.level, entries))
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
