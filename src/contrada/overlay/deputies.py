"""Inner state is replicated, so that one crash cuts nobody off (beyond the DR-tree paper).

Every leader names a *deputy*, the child of its lowest level that covers most, and sends it copies
of all its lists. Its children and its parent know who that is. As soon as the leader is silent,
events go by way of the deputy (`spreading`). When it is silent for too long, each of them turns to
the deputy by itself: the deputy leads by its copy, the children report to it, and the parent puts
it in the leader's place. If that fails, they are healed like any others.
"""

from contrada.overlay.effects import Effects
from contrada.overlay.messages import Copy, PeerId
from contrada.overlay.state import HEIGHT_MAX, Child, State, make_child
from contrada.overlay.structure import list_heritage

_TRUST = 2.0  # periods of patience that a new neighbour has less: it may have crashed as well


def send_copy(state: State, out: Effects) -> None:
    """Choose a deputy, and tell it what it would lead."""
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


def replace_parent(state: State, now: float) -> None:
    """Do without a parent that is silent: lead in its place, or turn to who does."""
    heir, copy = state.heir, state.copy
    state.heir = state.copy = None
    if not state.settings.deputies or heir is None:
        state.be_root()
    elif heir != state.id:
        _turn_to(state, heir, now)
    elif copy is not None and state.top == 0:
        dead = state.parent
        for entries in copy.lists:
            others = [e for e in entries if e.id not in (state.id, dead)]
            heard = now - _TRUST * state.settings.period
            state.levels.append({e.id: make_child(e, heard) for e in others})
        _turn_to(state, copy.above, now)
        state.heir = copy.heir
    else:
        state.be_root()


def _turn_to(state: State, parent: PeerId, now: float) -> None:
    state.move_to(parent, now)
    state.heard -= _TRUST * state.settings.period


def replace_child(state: State, children: dict[PeerId, Child], child: Child, now: float) -> None:
    """Put the deputy of a child that is silent in its place."""
    if child.deputy is not None:
        heard = now - _TRUST * state.settings.period
        children[child.deputy] = Child(child.box, child.count, heard, child.cells, child.wide)
