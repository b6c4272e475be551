"""The periodic checks that make any state legal again (DR-tree paper, section 3.3).

CHECK_MBR is in `State.box`, which is computed from the children; CHECK_PARENT and CHECK_CHILDREN
are reports that get no answer, and children that send none. CHECK_COVER is here, CHECK_STRUCTURE
in `compacting`, with what they make other peers do.
"""

from contrada.overlay import swapping
from contrada.overlay.compacting import compact
from contrada.overlay.deputies import is_silent, replace_child, replace_parent
from contrada.overlay.effects import Effects
from contrada.overlay.joining import report
from contrada.overlay.messages import (
    Grown,
    Lead,
    Leave,
    Moved,
    PeerId,
    Replaced,
)
from contrada.overlay.sanitising import sanitise
from contrada.overlay.state import State, make_child
from contrada.overlay.structure import (
    add_child,
    bid_farewell,
    hand_over,
    list_heritage,
    must_split,
    split,
)


def check(state: State, now: float, out: Effects) -> None:
    """Run every check once on a sane memory; the structure is changed one thing at a time."""
    _forget_silent(state, now, out)
    while state.top > 0 and not state.levels[-1]:
        state.levels.pop()
    _notice_change(state, now)
    if not _split_overfull(state, now, out) and not _yield_to_better(state, now, out):
        compact(state, now, out)


def _forget_silent(state: State, now: float, out: Effects) -> None:
    """Drop children and a parent that have been silent for long; deputies take their places."""
    limit = now - state.settings.patience * state.settings.period
    for id_ in [id_ for id_, child in state.leaving.items() if child.heard < limit]:
        del state.leaving[id_]
    for id_ in [id_ for id_, when in state.formers.items() if when < limit]:
        del state.formers[id_]
    if state.bridge not in state.formers:
        state.bridge = None
    for children in state.levels:
        for id_ in [id_ for id_, child in children.items() if child.heard < limit]:
            child = children.pop(id_)
            if child.deputy not in (None, state.id) and child.deputy not in children:
                replace_child(state, children, child, now)
    if not state.is_root and state.heard < limit:
        replace_parent(state, now, out)


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


def depart(state: State, now: float, out: Effects) -> None:
    """Leave in good order: the child that covers most takes over, and the parent is told."""
    sanitise(state, now)
    if state.top > 0 and state.levels[1]:
        best = max(state.entries(1)[1:], key=lambda e: (state.is_sure(1, e.id), *state.rank(e)))
        lists, above = list_heritage(state, 1, best.id, stays=False)
        out.send(best.id, Lead(1, lists, above))
        bid_farewell(state, 1, best.id, out)
        state.truncate(1, best.id, now)
    elif not state.is_root:
        out.send(state.parent, Leave(state.top))


# What others may ask for


def take_leave(state: State, leave: Leave, sender: PeerId, now: float, out: Effects) -> bool:
    """Forget a child that has gone."""
    if sender not in state.children(leave.level + 1):
        return False
    state.release(leave.level + 1, sender, now)
    return True


def take_moved(state: State, moved: Moved, sender: PeerId, now: float, out: Effects) -> bool:
    """Change the parent, on the word of the old one, of one before it, or of its deputy."""
    is_alone = not state.is_root and is_silent(state, state.heard, now)
    is_heir = is_alone and sender == state.heir == moved.to
    was_parent = sender == state.bridge or state.formers.get(sender) == state.moved
    if not is_heir and not was_parent and sender != state.parent:
        return False
    if moved.level != state.top or moved.to == state.id:
        return False
    if is_heir:
        state.heir = None
    state.move_to(moved.to, now)
    report(state, now, out)
    return True


def take_replaced(
    state: State, replaced: Replaced, sender: PeerId, now: float, out: Effects
) -> bool:
    """Replace one child by another."""
    children, entry = state.children(replaced.level + 1), replaced.entry
    if sender in children:
        state.release(replaced.level + 1, sender, now)
        if entry.id != state.id:
            add_child(state, replaced.level + 1, entry, now, out)
        state.stay_calm()
        return True
    if sender not in state.leaving or entry.id in (state.id, *children):
        return False
    state.see_off(entry.id, make_child(entry, now), state.leaving[sender].heard)
    if replaced.level >= state.top:
        out.send(entry.id, Moved(replaced.level, state.parent))
    return True


def take_grown(state: State, grown: Grown, sender: PeerId, now: float, out: Effects) -> bool:
    """Take in the other half of a child that was split."""
    if sender not in state.children(grown.level + 1) or grown.entry.id == state.id:
        return False
    add_child(state, grown.level + 1, grown.entry, now, out)
    return True
