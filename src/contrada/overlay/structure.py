"""Changes of a node's children: adding one, and splitting a node that has too many."""

from contrada.overlay.boxes import join_all
from contrada.overlay.effects import Effects
from contrada.overlay.messages import Entry, Grown, Lead, Moved, PeerId
from contrada.overlay.splitting import SPLITS
from contrada.overlay.state import Child, State


def add_child(state: State, level: int, entry: Entry, now: float, out: Effects) -> PeerId:
    """Add a child to the node at a level; give who is its parent after a split, if there is one."""
    state.levels[level][entry.id] = Child(entry.box, entry.count, now)
    if state.count(level) <= state.settings.M:
        return state.id
    leader, moved = split(state, level, now, out)
    return leader if entry.id in moved else state.id


def split(state: State, level: int, now: float, out: Effects) -> tuple[PeerId, set[PeerId]]:
    """Divide an overfull node; give the leader of the other half, and whom it leads."""
    settings = state.settings
    groups = SPLITS[settings.split](state.entries(level), settings.m, settings.space)
    others = next(g for g in groups if all(entry.id != state.id for entry in g))
    leader = max(others, key=state.rank)
    led = tuple(entry for entry in others if entry is not leader)
    for entry in others:
        del state.levels[level][entry.id]
    for entry in led:
        out.send(entry.id, Moved(level - 1, leader.id))
    half = Entry(leader.id, join_all(entry.box for entry in others), len(others))
    if level < state.top:
        out.send(leader.id, Lead(level, (led,), state.id))
        add_child(state, level + 1, half, now, out)
    elif not state.is_root:
        out.send(leader.id, Lead(level, (led,), state.parent))
        out.send(state.parent, Grown(level, half))
    else:
        _create_root(state, level, half, led, now, out)
    return leader.id, {entry.id for entry in led}


def _create_root(
    state: State, level: int, half: Entry, led: tuple[Entry, ...], now: float, out: Effects
) -> None:
    """Put a root above two halves: the one that covers more (DR-tree paper, Figure 6)."""
    mine = state.entry(level)
    if state.rank(mine) > state.rank(half):
        out.send(half.id, Lead(level, (led,), state.id))
        state.levels.append({half.id: Child(half.box, half.count, now)})
    else:
        out.send(half.id, Lead(level, (led, (mine,)), None))
        state.parent = half.id
        state.heard = state.moved = now
