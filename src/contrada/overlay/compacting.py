"""CHECK_STRUCTURE: nodes with too few children are dissolved (DR-tree paper, Figures 13 and 14).

A parent tells poor children to give theirs to their siblings, those with room that must grow
least. It cannot dissolve its own node, which it fills up instead, from a sibling.
"""

from collections.abc import Sequence

from contrada.overlay.boxes import join
from contrada.overlay.effects import Effects
from contrada.overlay.joining import report_change
from contrada.overlay.messages import Adopt, Dissolve, Entry, Give, Handed, Moved, PeerId
from contrada.overlay.state import State, make_child
from contrada.overlay.structure import add_child, is_bound

_BETTER = 1.1  # times what its children cost elsewhere, a node must cost to be dissolved
_COMPACTION = 3.0  # periods in which the children of a dissolved node find their new parents


def compact(state: State, now: float, out: Effects) -> None:
    """Bring the children of those that have too few to their siblings, at one level at a time."""
    settings = state.settings
    if state.top < 2 or is_bound(state, now):
        return
    if now - state.compacted < _COMPACTION * settings.period:
        return
    for level in range(state.top, 1, -1):
        entries = state.entries(level)
        poor = [entry for entry in entries if entry.count < settings.m]
        if poor and len(entries) > 1:
            state.compacted = now
            if poor == entries[:1]:
                _fill(state, level, entries[0], entries[1:], out)
            else:
                _dissolve(state, level, poor, entries, out)
            return


def _dissolve(
    state: State, level: int, poor: list[Entry], entries: list[Entry], out: Effects
) -> None:
    """Scatter the children of poor nodes, of as many as fit, among the others and the own node."""
    homes = [entries[0], *(entry for entry in entries[1:] if entry not in poor)]
    room = sum(state.settings.M - entry.count for entry in homes)
    leaving = sorted((e for e in poor if e.id != state.id), key=lambda e: (e.count, e.id))
    for number, entry in enumerate(leaving):
        room -= entry.count
        if room >= 0 or number == 0:
            out.send(entry.id, Dissolve(level - 1, tuple(homes)))


def _fill(state: State, level: int, poor: Entry, siblings: list[Entry], out: Effects) -> None:
    """Bring children to this node: all of a sibling's if there is room for them, or some."""
    settings = state.settings
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
    """Find a home for each entry, the sibling with room that must grow least, and the cost."""
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


def take_dissolve(
    state: State, dissolve: Dissolve, sender: PeerId, now: float, out: Effects
) -> bool:
    """Dissolve the top level: all its children, this peer included, go to siblings."""
    level, siblings = dissolve.level, [e for e in dissolve.siblings if e.id != state.id]
    if sender != state.parent or level != state.top or level < 1 or not siblings:
        return False
    if is_bound(state, now):
        return True
    entries = [state.describe(level - 1), *state.entries(level)[1:]]
    homes, cost = _scatter(state, entries, siblings)
    if not dissolve.is_forced and cost * _BETTER >= state.settings.space.cost(state.box(level)):
        return True
    for entry, home in zip(entries, homes, strict=True):
        out.send(entry.id, Moved(level - 1, home))
    out.send(sender, Handed(level, tuple(homes), tuple(entries), True))
    state.truncate(level, homes[0], now)
    return True


def take_give(state: State, give: Give, sender: PeerId, now: float, out: Effects) -> bool:
    """Hand some children to a sibling."""
    if sender != state.parent or give.level != state.top or give.level < 1:
        return False
    given = _give(state, give.level, give.entry, give.count, now, out)
    if given:
        out.send(sender, Handed(give.level, (give.entry.id,) * len(given), given, False))
    return True


def take_handed(state: State, handed: Handed, sender: PeerId, now: float, out: Effects) -> bool:
    """Bring children from one child to another."""
    children = state.children(handed.level + 1)
    is_known = sender in children or sender in state.children(handed.level)  # has come here itself
    if not is_known or not 1 <= handed.level < state.top:
        return False
    if handed.is_gone and sender in children:
        state.release(handed.level + 1, sender, now)
    for home in dict.fromkeys(handed.homes):
        entries = tuple(
            e for e, to in zip(handed.entries, handed.homes, strict=False) if to == home
        )
        if home == state.id:
            _adopt(state, handed.level, entries, now, out)
        elif home in children:
            children[home].expect(entries, state.settings.space, now)
            out.send(home, Adopt(handed.level, entries))
        else:
            for entry in entries:
                if not any(entry.id in below for below in state.levels):
                    state.see_off(entry.id, make_child(entry, now), now)
    report_change(state, now, out)
    return True


def take_adopt(state: State, adopt: Adopt, sender: PeerId, now: float, out: Effects) -> bool:
    """Take in children, as the parent says."""
    if sender != state.parent or adopt.level != state.top or adopt.level < 1:
        return False
    _adopt(state, adopt.level, adopt.entries, now, out)
    report_change(state, now, out)
    return True


def _adopt(state: State, level: int, entries: tuple[Entry, ...], now: float, out: Effects) -> None:
    for entry in entries:
        if entry.id != state.id and entry.id not in state.levels[level]:
            add_child(state, level, entry, now, out)
