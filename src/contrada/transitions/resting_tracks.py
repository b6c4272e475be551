"""What is known of many objects, most of which rest while positions of a few come in.

A step takes time in proportion to the objects of its state. So only those go into it of which there
are positions, and stay out until so many are out that all are joined again; whatever concerns all
objects, such as another version or a timer of one that rests, takes them all.
"""

from dataclasses import dataclass, replace

import numpy as np

from contrada.arrays import Mask, Positions
from contrada.transitions.id_order import find_places
from contrada.transitions.joined_states import join_states
from contrada.transitions.position_columns import PositionColumns
from contrada.transitions.track_state import TrackState

_RESTING_MIN = 1_000  # fewer objects are not worth the trouble
_SHARE_MIN = 8  # a batch of more than one in so many objects takes them all
_OUT_FACTOR = 8  # joining all costs about as much as so many steps with their root out


@dataclass(frozen=True, slots=True)
class LentTracks:
    """The state for a step: of all objects, or of a few that have been taken from those at rest."""

    state: TrackState
    taken: Positions | None


@dataclass(frozen=True, slots=True)
class RestingTracks:
    """All objects in two parts: `moving`, and those of `resting` that are not `is_out`.

    Whatever is held belongs to objects that move. At the clock `timer_us` something happens to
    objects at rest, though nothing comes in; None means never.
    """

    moving: TrackState
    resting: TrackState
    is_out: Mask
    timer_us: int | None = None

    @classmethod
    def of(cls, state: TrackState, timer_us: int | None = None) -> "RestingTracks":
        """Let all objects rest that can, if they are many."""
        has_held = np.zeros(state.object_count, bool)
        has_held[state.held.objects] = True
        if state.object_count < max(_RESTING_MIN, 2 * int(np.count_nonzero(has_held))):
            none = TrackState.empty()
            return cls(state, none, np.zeros(0, bool))
        resting = state.only(~has_held)
        is_out = np.zeros(resting.object_count, bool)
        return cls(state.only(has_held), resting, is_out, timer_us)

    @property
    def object_count(self) -> int:
        """How many objects are remembered."""
        resting = self.resting.object_count - int(np.count_nonzero(self.is_out))
        return self.moving.object_count + resting

    @property
    def visit_count(self) -> int:
        """How many visits go on."""
        owners = self.resting.pairs.objects[self.resting.find_visits()]
        return self.moving.visit_count + int(np.count_nonzero(~self.is_out[owners]))

    @property
    def nbytes(self) -> int:
        """How many bytes the columns have in memory."""
        return self.moving.nbytes + self.resting.nbytes

    def whole(self) -> TrackState:
        """Return the state of all objects."""
        if not len(self.is_out):
            return self.moving
        return join_states(self.resting.only(~self.is_out), self.moving)

    def lend(self, positions: PositionColumns | None, *, is_same_version: bool) -> LentTracks:
        """Return the state for a step with some positions, of as few objects as it takes."""
        if not len(self.is_out):
            return LentTracks(self.moving, None)
        places = self._find_few(positions) if is_same_version else None
        if places is None:
            return LentTracks(self.whole(), None)
        taken = places[~self.is_out[places]]
        return LentTracks(join_states(self.resting.pick(taken), self.moving), taken)

    def _find_few(self, positions: PositionColumns | None) -> Positions | None:
        """Return where those at rest are of whom there are positions; None if all are concerned."""
        if positions is None or not len(positions):
            return np.zeros(0, np.int64)
        clock_us = max(int(positions.time_us.max()), self.moving.clock_us or 0)
        if self.timer_us is not None and clock_us >= self.timer_us:
            return None
        known = self.resting.objects
        if positions.objects.type != known.ids.type or positions.ids.type != known.last_ids.type:
            return None
        distinct = positions.objects.unique()
        if len(distinct) * _SHARE_MIN > len(known.ids):
            return None
        places = find_places(known.ids, distinct)
        return np.sort(places[places >= 0])

    def take_back(
        self, lent: LentTracks, state: TrackState, timer_us: int | None
    ) -> "RestingTracks":
        """Return all objects after a step; `timer_us` is when something happens to those in it."""
        if lent.taken is None:
            return RestingTracks.of(state, timer_us)
        is_out = self.is_out.copy()
        is_out[lent.taken] = True
        after = replace(self, moving=state, is_out=is_out)
        moved = state.object_count - len(np.unique(state.held.objects))
        if moved * moved <= _OUT_FACTOR * len(is_out):
            return after
        timers = [timer for timer in (self.timer_us, timer_us) if timer is not None]
        return RestingTracks.of(after.whole(), min(timers, default=None))
