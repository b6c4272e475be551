"""The second half of a step: what matched becomes rows and the next state."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from contrada.arrays import Integers, Mask, Positions
from contrada.kernels.stable_order import sort_stably
from contrada.kernels.track_walk import (
    ALWAYS_LATER,
    BITS,
    BY_CLOCK,
    BY_VERSION,
    CHANGE,
    CROSSED,
    ENTERED,
    NEXT_TIMER,
    RANK,
    ROW_CODE,
    ROW_EVENT,
    ROW_OBJECT,
    ROW_RANK,
    ROW_TIME,
    SLOT_WIDTH,
    Hits,
    PairTerms,
    Tracks,
    Walked,
    walk_tracks,
)
from contrada.transitions.followed import CROSS_KIND, DWELL_KIND, NO_DWELL, FollowedSubscriptions
from contrada.transitions.id_order import find_places, ids_like, join_ids
from contrada.transitions.next_state import remember
from contrada.transitions.taking_in import Begun, StepCounts
from contrada.transitions.track_state import TrackState
from contrada.transitions.transition_rows import TransitionRows


class RowRanks(NamedTuple):
    """Pairs of an applied row's number and a subscription's rank, sorted by both, each once."""

    rows: Positions
    ranks: Positions

    @classmethod
    def none(cls) -> "RowRanks":
        """Return no pairs."""
        return cls(np.zeros(0, np.int64), np.zeros(0, np.int64))


@dataclass(frozen=True, slots=True)
class Found:
    """What whoever matches has found of the applied rows of a batch.

    `matched`: the predicate is true. `near`: the subscription is a fence with hysteresis, the row
    is within that of it, and its other constraints are true; rows that match may be among them or
    not. `met`: the subscription is a fence that has `cross` among its kinds, the row has a segment
    that meets it, and its other constraints are true of the row.
    """

    matched: RowRanks
    near: RowRanks
    met: RowRanks

    @classmethod
    def nothing(cls) -> "Found":
        """Return what is found where there are no rows."""
        return cls(RowRanks.none(), RowRanks.none(), RowRanks.none())


@dataclass(frozen=True, slots=True)
class Step:
    """A batch that was decided.

    `changed` are the objects whose state is another one now, or gone. `next_timer_us` is the least
    clock at which something happens though nothing comes in: a timer, or a position that waits; it
    is None where there is no such clock.
    """

    rows: TransitionRows
    state: TrackState
    changed: pa.Array
    next_timer_us: int | None
    counts: StepCounts


def finish(begun: Begun, followed: FollowedSubscriptions, found: Found) -> Step:
    """Decide a batch: end visits to subscriptions that are gone, run timers, apply positions."""
    facts = begun.state.subscriptions
    ranks = find_places(followed.ids, ids_like(facts.ids, followed.ids, "ids of subscriptions"))
    tracks = _tracks_of(begun)
    slots = _slots_of(begun, ranks)
    rows, kept, counters = walk_tracks(
        tracks,
        Walked(*_columns_of(begun, begun.applied), begun.numbers),
        Walked(*_columns_of(begun, begun.late), begun.late),
        slots,
        _hits_of(found, begun.applied_count),
        _terms_of(begun, followed),
        begun.options.silence_us or 0,
        begun.due_us,
    )
    state, is_changed = remember(begun, followed, ranks, tracks, kept)
    next_us = int(counters[NEXT_TIMER])
    if len(begun.held.time_us):
        next_us = min(next_us, int(begun.held.time_us.min()))
    lateness_us = 0 if begun.is_whole else begun.options.lateness_us
    changed = begun.known.objects.ids.filter(pa.array(is_changed))
    next_timer_us = next_us + lateness_us if next_us < ALWAYS_LATER else None
    return Step(_rows_of(begun, followed, rows), state, changed, next_timer_us, begun.counts)


def _own(values: Integers) -> Integers:
    """Return values as an array of the one kind for which kernels are compiled."""
    return np.require(values, np.int64, ["C", "W"])


def _tracks_of(begun: Begun) -> Tracks:
    objects = begun.known.objects
    count = len(objects.ids)
    of_applied, of_late = (
        begun.candidates.objects[places] for places in (begun.applied, begun.late)
    )
    end = np.full(count, begun.due_us)
    if begun.open_place >= 0:
        mine = begun.candidates.time_us[begun.applied[of_applied == begun.open_place]]
        end[begun.open_place] = mine.max(initial=objects.last_us[begun.open_place])
    return Tracks(
        objects.last_us.copy(),
        objects.horizon_us.copy(),
        objects.flags.copy(),
        np.zeros(count, np.uint8),
        end,
        _starts_of(of_applied, count),
        _starts_of(of_late, count),
        _starts_of(begun.known.places_before[begun.state.pairs.objects], count),
    )


def _starts_of(sorted_places: Positions, count: int) -> Positions:
    """Return where the entries of each place begin, and the end of the last."""
    starts = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(sorted_places, minlength=count), out=starts[1:])
    return starts


def _columns_of(begun: Begun, places: Positions) -> tuple[Integers, Positions]:
    return begun.candidates.time_us[places], _own(places)


def _slots_of(begun: Begun, ranks: Positions) -> Integers:
    """Write the pairs of the state as slots; the events of their enters follow the candidates."""
    pairs = begun.state.pairs
    slots = np.empty((len(pairs.objects), SLOT_WIDTH), np.int64)
    of_pairs = ranks[pairs.subscriptions]
    slots[:, RANK] = np.where(of_pairs >= 0, of_pairs, -1 - pairs.subscriptions)
    slots[:, CHANGE], slots[:, CROSSED] = pairs.change_us, pairs.cross_us
    slots[:, BITS] = pairs.flags
    slots[:, ENTERED] = len(begun.candidates.objects) + np.arange(len(slots))
    return slots


def _hits_of(found: Found, count: int) -> Hits:
    columns: list[Integers] = []
    for pairs in (found.matched, found.near, found.met):
        columns += [_starts_of(pairs.rows, count), _own(pairs.ranks)]
    return Hits(*columns)


def _terms_of(begun: Begun, followed: FollowedSubscriptions) -> PairTerms:
    facts = begun.state.subscriptions
    kinds = np.where(followed.is_fence, followed.kinds, followed.kinds & ~np.uint8(CROSS_KIND))
    return PairTerms(
        _own(followed.cooldown_us),
        _own(np.where(followed.kinds & DWELL_KIND, followed.dwell_us, NO_DWELL)),
        kinds.astype(np.uint8),
        _own(facts.cooldown_us),
        np.require(facts.kinds, np.uint8, ["C", "W"]),
    )


def _rows_of(begun: Begun, followed: FollowedSubscriptions, rows: Integers) -> TransitionRows:
    """Put rows in the order of time and name what they are about."""
    order = sort_stably(np.arange(len(rows)), np.ascontiguousarray(rows[:, ROW_TIME]))
    rows = rows[order]
    ranks, events = rows[:, ROW_RANK], rows[:, ROW_EVENT]
    ids, subscribers = followed.ids, followed.subscribers
    is_gone = ranks < -1
    if is_gone.any():
        facts = begun.state.subscriptions
        ids = join_ids(ids, facts.ids)
        subscribers = join_ids(subscribers, facts.subscribers, "subscribers")
        ranks = np.where(is_gone, len(followed) - 2 - ranks, ranks)
    event_ids = join_ids(begun.candidates.ids, begun.state.pairs.enter_ids, "ids of events")
    codes = rows[:, ROW_CODE]
    return TransitionRows(
        rows[:, ROW_OBJECT].astype(np.int32),
        begun.known.objects.ids,
        ranks.astype(np.int32),
        ids,
        subscribers,
        (codes & (BY_CLOCK - 1)).astype(np.int8),
        np.ascontiguousarray(rows[:, ROW_TIME]),
        _take(event_ids, events, events >= 0),
        followed.version,
        (codes // BY_CLOCK).astype(np.int8),
    )


def _take(ids: pa.Array, places: Positions, is_there: Mask) -> pa.Array:
    """Take ids, null where there is none."""
    return ids.take(pa.array(places) if is_there.all() else pa.array(places, mask=~is_there))


assert BY_VERSION == 2 * BY_CLOCK
