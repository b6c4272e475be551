"""Inner state is replicated, so that one crash cuts nobody off (beyond the DR-tree paper).

Every leader names a *deputy*, the child of its lowest level that covers most, and sends it copies
of all its lists. Its children and its parent know who that is. As soon as the leader is silent,
events go by way of the deputy (`spreading`). When it is silent for too long, each of them turns to
the deputy by itself; the first to do so makes the deputy lead by its copy, which tells the others.
The parent puts it in the leader's place. If that fails, they are healed like any others.
"""

from contrada.overlay.effects import Effects
from contrada.overlay.messages import Copy, Moved, PeerId
from contrada.overlay.state import HEIGHT_MAX, Child, State, make_child
from contrada.overlay.structure import list_heritage

SILENCE = 1.5  # periods after which a deputy is asked as well
TRUST = 2.0  # periods of patience that a new neighbour has less: it may have crashed as well


def send_copy(state: State, out: Effects) -> None:
    """Choose a deputy, and send it what it would lead."""
    state.choose_deputy()
    deputy = state.deputy
    if deputy is not None:
        lists, above = list_heritage(state, 1, deputy, stays=False)
        out.send(deputy, Copy(lists, above, None if state.is_root else state.heir))


def take_copy(state: State, copy: Copy, sender: PeerId, now: float, out: Effects) -> bool:
    """Keep what the parent would leave behind."""
    if sender != state.parent or state.top > 0 or not 0 < len(copy.lists) < HEIGHT_MAX:
        return False
    state.copy = copy
    return True


def is_silent(state: State, heard: float, now: float) -> bool:
    """Whether a neighbour should have been heard from since."""
    return now - heard > SILENCE * state.settings.period


def step_in(state: State, asker: PeerId, level: int, now: float, out: Effects) -> None:
    """Lead as soon as another child of a silent parent asks for it: that one has waited longer."""
    copy = state.copy
    if copy is None or state.heir != state.id or not state.settings.deputies:
        return
    if state.is_root or state.top > 0 or not is_silent(state, state.heard, now):
        return
    if level < len(copy.lists) and any(entry.id == asker for entry in copy.lists[level]):
        replace_parent(state, now, out)


def replace_parent(state: State, now: float, out: Effects) -> None:
    """Replace a parent that is silent: lead in its place, or turn to whoever does."""
    heir, copy = state.heir, state.copy
    state.heir = state.copy = None
    if not state.settings.deputies or heir is None:
        state.be_root()
    elif heir != state.id:
        _turn_to(state, heir, now)
    elif copy is not None and state.top == 0:
        dead, heard = state.parent, now - TRUST * state.settings.period
        for level, entries in enumerate(copy.lists[: HEIGHT_MAX - 1]):
            others = [e for e in entries if e.id not in (state.id, dead)]
            state.levels.append({e.id: make_child(e, heard) for e in others})
            for entry in others:
                out.send(entry.id, Moved(level, state.id))
        _turn_to(state, copy.above, now)
        state.heir = copy.heir
    else:
        state.be_root()


def _turn_to(state: State, parent: PeerId, now: float) -> None:
    state.move_to(parent, now)
    state.heard -= TRUST * state.settings.period


def replace_child(state: State, children: dict[PeerId, Child], child: Child, now: float) -> None:
    """Put the deputy of a child that is silent in its place."""
    if child.deputy is not None:
        heard = now - TRUST * state.settings.period
        children[child.deputy] = Child(child.box, child.count, heard, child.cells, child.wide)
