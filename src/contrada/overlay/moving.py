"""Children move to parents that need grow less for them.

A tree that many peers build at once, or that has just been healed, overlaps much. So a parent in
calm looks for a better place for the child that makes its box large: the request goes up to the
root, collecting what the boxes would be without the child, and down again as if the child were
joining. A child moves only if the boxes of all nodes then cost less together, and only between
parents that stay within their numbers of children; so moving comes to an end. Who has found no
better place for any child does not ask again before its children or their boxes are others.
"""

from collections.abc import Iterator
from dataclasses import replace
from operator import eq

from contrada.overlay.boxes import Box, join, join_all
from contrada.overlay.effects import Effects
from contrada.overlay.joining import report_change
from contrada.overlay.messages import Dissolve, Entry, Moved, Offer, PeerId, Seek
from contrada.overlay.state import State, make_child

_CALM = 3.0  # periods without a change in the tree
_WAIT = 2.0  # periods between two requests
_HOLD = 1.0  # periods until those above a new parent know
_PRICE = 0.1  # of a move, as a share of what the parent's box costs


def seek(state: State, now: float, out: Effects) -> None:
    """Now and then look for a better place for a child."""
    period, seeking = state.settings.period, state.seeking
    if seeking.home is not None:
        if now - seeking.offered >= _HOLD * period:
            _release(state, seeking.home, now, out)
        return
    if not state.settings.moving or state.top == 0:
        return
    if state.calm_everywhere(now) < _CALM * period:
        return
    if now - seeking.asked < _WAIT * period or state.see_places() == seeking.done:
        return
    seeking.asked = now
    candidates = sorted(_candidates(state), reverse=True)
    superfluous = sorted(_superfluous(state), reverse=True)
    turn = seeking.turn
    seeking.turn += 1
    if turn < len(candidates):
        _, level, id_ = candidates[turn]
        _ask(state, level, id_, now, out)
    elif turn < len(candidates) + len(superfluous):
        _, level, id_ = superfluous[turn - len(candidates)]
        siblings = tuple(e for e in state.entries(level) if e.id != id_)
        out.send(id_, Dissolve(level - 1, siblings, False))
    else:
        seeking.turn, seeking.done = 0, state.see_places()


def _ask(state: State, level: int, id_: PeerId, now: float, out: Effects) -> None:
    seeking, child = state.seeking, state.levels[level][id_]
    seeking.ticket += 1
    seeking.level, seeking.child = level, id_
    price = _PRICE * state.settings.space.cost(state.box(level))
    request = Seek(state.id, seeking.ticket, child.entry(id_), level - 1, (), -price)
    _rise(state, request, level, id_, None, now, out)


def take_seek(state: State, request: Seek, sender: PeerId, now: float, out: Effects) -> bool:
    """Pass a request on, or offer a place."""
    if request.at >= 0:
        if sender != state.parent or not request.level < request.at <= state.top:
            return False
        _descend(state, request, request.at, now, out)
        return True
    level = request.level + 1 + len(request.path)
    if not request.path or not level <= state.top or sender not in state.levels[level]:
        return False
    _rise(state, request, level, sender, request.path[-1].box, now, out)
    return True


def take_offer(state: State, offer: Offer, sender: PeerId, now: float, out: Effects) -> bool:
    """Note who takes the child; it goes when all above the new parent know."""
    seeking = state.seeking
    if offer.ticket != seeking.ticket or seeking.home is not None:
        return False
    seeking.home, seeking.offered = sender, now
    return True


def _release(state: State, home: PeerId, now: float, out: Effects) -> None:
    """Let the child go; what comes for it yet is passed on."""
    seeking = state.seeking
    level, id_ = seeking.level, seeking.child
    seeking.home = None
    if id_ is None or not 1 <= level <= state.top or id_ not in state.levels[level]:
        return
    if state.count(level) <= state.settings.m or home == state.id:
        return
    state.release(level, id_, now)
    out.send(id_, Moved(level - 1, home))
    seeking.turn = 0
    state.stay_calm()
    report_change(state, now, out)


def _candidates(state: State) -> Iterator[tuple[float, int, PeerId]]:
    """List the children without which a box would be smaller, and by how much."""
    cost = state.settings.space.cost
    for level in range(1, state.top + 1):
        if state.count(level) <= state.settings.m:
            continue
        box = state.box(level)
        before = cost(box)
        for id_, child in state.levels[level].items():
            if any(map(eq, child.box, box)):
                gain = before - cost(_box_without(state, level, level, id_, None))
                if gain > 0:
                    yield gain, level, id_


def _superfluous(state: State) -> Iterator[tuple[float, int, PeerId]]:
    """List the children whose own children would find room with their siblings, and how large."""
    settings = state.settings
    least = 2 if state.is_root else settings.m
    for level in range(2, state.top + 1):
        if state.count(level) <= (least if level == state.top else settings.m):
            continue
        room = sum(settings.M - entry.count for entry in state.entries(level))
        for id_, child in state.levels[level].items():
            if room - (settings.M - child.count) >= child.count:
                yield settings.space.cost(child.box), level, id_


def _box_without(state: State, level: int, at: int, id_: PeerId, instead: Box | None) -> Box:
    """Return the box of a node if a child at some level had another box, or were not there."""
    boxes = [
        child.box
        for below in range(1, level + 1)
        for other, child in state.levels[below].items()
        if below != at or other != id_
    ]
    return join_all([state.filter, *boxes] if instead is None else [state.filter, *boxes, instead])


def _rise(
    state: State,
    request: Seek,
    at: int,
    id_: PeerId,
    instead: Box | None,
    now: float,
    out: Effects,
) -> None:
    """Add the nodes of this peer from a level on to the path; at the root turn downwards."""
    cost = state.settings.space.cost
    path, gain = list(request.path), request.gain
    for level in range(at, state.top + 1):
        box = _box_without(state, level, at, id_, instead)
        path.append(Entry(state.id, box, state.count(level)))
        gain += cost(state.box(level)) - cost(box)
    request = replace(request, path=tuple(path), gain=gain)
    if not state.is_root:
        out.send(state.parent, request)
        return
    root = path[-1].box
    loss = cost(join(root, request.entry.box)) - cost(root)
    _descend(state, replace(request, loss=loss), state.top, now, out)


def _descend(state: State, request: Seek, level: int, now: float, out: Effects) -> None:
    """Go down as a joiner would, into the nodes as they would be without the child."""
    space = state.settings.space
    joiner, lowest, loss = request.entry, request.level + 1, request.loss
    while level > lowest:
        entries = [_without(request, level - 1, entry) for entry in state.entries(level)]
        if level - 1 == lowest:
            most = state.settings.M
            entries = [e for e in entries if e.count < most or e.id == request.asker]
            if not entries:
                return
        best = min(entries, key=lambda e: (*space.growth(e.box, joiner.box), e.count, e.id))
        loss += space.cost(join(best.box, joiner.box)) - space.cost(best.box)
        if loss >= request.gain:
            return
        level -= 1
        if best.id != state.id:
            out.send(best.id, replace(request, loss=loss, at=level))
            return
    _offer(state, request, level, now, out)


def _without(request: Seek, level: int, entry: Entry) -> Entry:
    place = level - request.level - 1
    on_path = request.path[place] if 0 <= place < len(request.path) else None
    return on_path if on_path is not None and on_path.id == entry.id else entry


def _offer(state: State, request: Seek, level: int, now: float, out: Effects) -> None:
    joiner = request.entry
    is_here = state.id in (request.asker, joiner.id) or joiner.id in state.levels[level]
    if not is_here and state.count(level) < state.settings.M and _may_offer(state, request, now):
        state.levels[level][joiner.id] = make_child(joiner, now)
        state.leaving.pop(joiner.id, None)
        state.stay_calm()
        out.send(request.asker, Offer(request.ticket))
        report_change(state, now, out)


def _may_offer(state: State, request: Seek, now: float) -> bool:
    """Whether no request of this peer is open; of two peers that ask, the lesser gives way.

    Each of two moves may be a gain where both are a loss.
    """
    seeking = state.seeking
    if seeking.home is not None:
        return False
    if now - seeking.asked >= _WAIT * state.settings.period:
        return True
    if request.asker < state.id:
        return False
    seeking.ticket += 1  # the own request is void
    return True
