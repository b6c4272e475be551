"""The first half of a step: positions are taken in, ordered, and told apart from late ones."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from contrada.arrays import Floats, Mask, Positions
from contrada.deferred import compute as pc
from contrada.kernels.stable_order import sort_stably
from contrada.kernels.track_walk import FELL_SILENT
from contrada.transitions.candidates import Candidates, gather
from contrada.transitions.doubles import drop_doubles
from contrada.transitions.followed import StreamOptions
from contrada.transitions.known_objects import Known
from contrada.transitions.position_columns import PositionColumns
from contrada.transitions.track_state import FAR_PAST, HeldColumns, TrackState

_HALF_WORLD = 180.0  # degrees of longitude


class Segments(NamedTuple):
    """Straight lines from the object's position before to an applied one, where there are such.

    `rows` are the numbers of those applied rows, increasing; both ends are points, and not the
    same one.
    """

    rows: Positions
    x0: Floats
    y0: Floats
    x1: Floats
    y1: Floats


@dataclass(frozen=True, slots=True)
class StepCounts:
    """What became of positions: came + waited = applied + late + repeated + held + no geometry.

    `waited` is how many were held before the batch, `held` how many are after it.
    """

    came: int = 0
    waited: int = 0
    applied: int = 0
    late: int = 0
    repeated: int = 0
    held: int = 0
    without_geometry: int = 0


@dataclass(frozen=True)
class Begun:
    """A batch that was taken in and waits for its matches.

    Its applied rows are numbered: first those of `released`, events that an earlier batch brought
    (one table for each schema that events had, one table after the other), then those rows of this
    batch that `incoming` names, increasing. Whoever matches uses these numbers in `Found`.

    The rest is for `finish`: `applied` and `late` are candidates in the order of object, time and
    id, `numbers` the numbers of `applied`, `held` the positions that wait from now on and
    `newly_held` those candidates among them that came with the batch. Timers run to `due_us`, but
    those of the object `open_place` to its last position.
    """

    released: tuple[pa.Table, ...]
    incoming: Positions
    counts: StepCounts
    clock_us: int | None
    state: TrackState
    options: StreamOptions
    is_whole: bool
    known: Known
    candidates: Candidates
    applied: Positions
    numbers: Positions
    late: Positions
    held: HeldColumns
    newly_held: Positions
    due_us: int
    open_place: int

    @property
    def applied_count(self) -> int:
        """How many rows are to be matched."""
        return len(self.applied)

    @cached_property
    def segments(self) -> Segments:
        """The ways from position to position, which fences may be crossed by."""
        return _make_segments(self)


def begin(
    state: TrackState,
    positions: PositionColumns | None,
    options: StreamOptions,
    *,
    clock_us: int | None = None,
    is_whole: bool = False,
    goes_on: bool = False,
) -> Begun:
    """Take a batch in: the clock moves, and what is due by it is to be matched now.

    The clock is the greatest of `clock_us`, the times of the batch and what it was; without
    positions, timers run alone. With `is_whole` the positions are all that there are (Spark's batch
    mode): nothing is late, `lateness_us` counts as 0, and timers run to the clock, the greatest of
    all times. They may come in pieces then, sorted by object, time, id and order key: with
    `goes_on` the last object of a piece may have more positions in the next one, so its timers run
    to its last position only; all others are done and forgotten. A last piece of None ends it.
    """
    lateness_us = 0 if is_whole else options.lateness_us
    known, candidates = gather(state, positions)
    before = None if is_whole else state.clock_us
    due_before_us = FAR_PAST if before is None else before - lateness_us
    is_repeat, is_late = _judge(known, candidates, due_before_us, options)
    assert not (is_whole and is_late.any()), "pieces of a whole come in order"
    places = np.flatnonzero(~is_repeat)
    places = sort_stably(sort_stably(places, candidates.time_us), candidates.objects)
    places = drop_doubles(places, candidates, state.held.rows, positions, is_late)
    clock = _latest(state.clock_us, clock_us, positions)
    due_us = FAR_PAST if clock is None else clock - lateness_us
    is_due = candidates.time_us[places] <= due_us
    is_late = is_late[places]
    applied, waiting = places[is_due & ~is_late], places[~is_due & ~is_late]
    is_applied = np.zeros(len(candidates.objects), bool)
    is_applied[applied] = True
    chosen = np.flatnonzero(is_applied)
    from_held = int(np.searchsorted(chosen, candidates.held_count))
    counts = StepCounts(
        came=0 if positions is None else len(positions),
        waited=candidates.held_count,
        applied=len(applied),
        late=int(np.count_nonzero(is_late)),
        repeated=len(candidates.objects) - len(places),
        held=len(waiting),
        without_geometry=0 if positions is None else len(positions) - len(candidates.batch_rows),
    )
    return Begun(
        released=state.held.rows.take(chosen[:from_held])[0].tables,
        incoming=candidates.batch_rows[chosen[from_held:] - candidates.held_count],
        counts=counts,
        clock_us=clock,
        state=state,
        options=options,
        is_whole=is_whole,
        known=known,
        candidates=candidates,
        applied=applied,
        numbers=(np.cumsum(is_applied) - 1)[applied],
        late=places[is_late],
        held=_hold(state.held, candidates, waiting, positions),
        newly_held=waiting[waiting >= candidates.held_count],
        due_us=due_us,
        open_place=_find_open(known, candidates) if goes_on and positions is not None else -1,
    )


def _find_open(known: Known, candidates: Candidates) -> int:
    """Return the object that may have more positions; -1 where there was none so far."""
    latest = len(known.objects.ids) - 1  # that of the piece before, if this one has no places
    own = candidates.objects[candidates.held_count :]
    return int(own.max()) if len(own) else latest


def _latest(*clocks: int | PositionColumns | None) -> int | None:
    times = [c for c in clocks if isinstance(c, int)]
    times += [int(c.time_us.max()) for c in clocks if isinstance(c, PositionColumns) and len(c)]
    return max(times, default=None)


def _judge(
    known: Known, candidates: Candidates, due_before_us: int, options: StreamOptions
) -> tuple[Mask, Mask]:
    """Return which candidates repeat the last position, and which others are late."""
    objects, times = candidates.objects, candidates.time_us
    is_late = times < known.objects.horizon_us[objects]
    if options.silence_us is not None:
        is_late |= times < due_before_us - options.silence_us
    is_late[: candidates.held_count] = False
    is_repeat = np.zeros(len(times), bool)
    same = np.flatnonzero(times == known.objects.last_us[objects])
    if len(same):
        ids = candidates.ids.take(pa.array(same))
        last = known.objects.last_ids.take(pa.array(objects[same]))
        is_repeat[same] = pc.equal(ids, last).to_numpy(zero_copy_only=False)
        is_late[same] |= pc.less(ids, last).to_numpy(zero_copy_only=False)
        is_late &= ~is_repeat
    return is_repeat, is_late


def _hold(
    held: HeldColumns, candidates: Candidates, waiting: Positions, positions: PositionColumns | None
) -> HeldColumns:
    """Return the positions that wait, with their events."""
    waiting = np.sort(waiting)
    split = int(np.searchsorted(waiting, candidates.held_count))
    rows = held.rows.take(waiting[:split])[0]
    if positions is not None and split < len(waiting):
        chosen = candidates.batch_rows[waiting[split:] - candidates.held_count]
        rows, places = rows.join(positions.rows().take(pa.array(chosen)))
        waiting = waiting[places]
    return HeldColumns(
        candidates.objects[waiting],
        candidates.time_us[waiting],
        candidates.ids.take(pa.array(waiting)),
        candidates.x[waiting],
        candidates.y[waiting],
        rows,
    )


def _make_segments(begun: Begun) -> Segments:
    """Join positions to those before them, unless silence lies between or they are far apart."""
    places, known = begun.applied, begun.known.objects
    objects, times = begun.candidates.objects[places], begun.candidates.time_us[places]
    x1, y1 = begun.candidates.x[places], begun.candidates.y[places]
    x0, y0, before = np.roll(x1, 1), np.roll(y1, 1), np.roll(times, 1)
    firsts = np.flatnonzero(np.diff(objects, prepend=-1))
    of_firsts = objects[firsts]
    x0[firsts], y0[firsts] = known.x[of_firsts], known.y[of_firsts]
    before[firsts] = np.maximum(known.last_us[of_firsts], FAR_PAST)
    is_way = ~np.isnan(x0) & ~np.isnan(x1) & ((x0 != x1) | (y0 != y1))
    is_way[firsts] &= (known.flags[of_firsts] & FELL_SILENT) == 0
    if begun.options.silence_us is not None:
        is_way &= times - before < begun.options.silence_us
    if begun.options.is_geographic:
        is_way &= np.abs(x1 - x0) <= _HALF_WORLD
    place_of = np.empty(len(places), np.int64)
    place_of[begun.numbers] = np.arange(len(places))
    rows = np.flatnonzero(is_way[place_of])
    chosen = place_of[rows]
    return Segments(rows, x0[chosen], y0[chosen], x1[chosen], y1[chosen])
