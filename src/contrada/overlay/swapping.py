"""Reorganisation by observed false positives (DR-tree paper, section 3.2, the second situation).

Where a few places see most events, the peer that covers most need not be the best leader. A peer
remembers the last events that it handled, and lets a child lead whose filter meets many more of
them than its own. This replaces the rule of cover, which would exchange the two again, and which
holds only for peers that have handled no event. Who has let a child lead forgets its events, so
that without new ones leaders come to rest.
"""

from contrada.overlay.boxes import Box, meets
from contrada.overlay.messages import Entry
from contrada.overlay.state import JUDGED_EVENTS_MAX, State

_RECENT_MIN = 16
_BETTER, _MORE = 1.25, 8  # times as many of the remembered events, and so many more


def remember(state: State, box: Box) -> None:
    """Note an event that this peer handles."""
    if state.settings.swapping:
        state.recent.append(box)
        del state.recent[:-JUDGED_EVENTS_MAX]


def choose(state: State, level: int, entries: list[Entry]) -> Entry | None:
    """Choose who is to lead by the last events, this peer if they are few; None without any."""
    if not state.settings.swapping or not state.recent:
        return None
    best = entries[0]
    if len(state.recent) < _RECENT_MIN:
        return best
    mine = sum(meets(state.filter, box) for box in state.recent)
    most = max(mine * _BETTER, mine + _MORE)
    for entry in entries[1:]:
        filter_ = state.levels[level][entry.id].filter
        if filter_ is not None:
            hits = sum(meets(filter_, box) for box in state.recent)
            if hits > most:
                best, most = entry, hits
    return best
