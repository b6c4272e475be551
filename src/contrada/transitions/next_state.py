"""What a step leaves behind: the state for the next one, without what nobody can ask for."""

import numpy as np
import pyarrow as pa

from contrada.arrays import Integers, Mask, Positions
from contrada.deferred import compute as pc
from contrada.kernels.track_walk import (
    BITS,
    CHANGE,
    CROSSED,
    ENTERED,
    KNOWN,
    OWNER,
    RANK,
    VISITING,
    Tracks,
)
from contrada.transitions.followed import FollowedSubscriptions
from contrada.transitions.id_order import join_ids, merge_ids
from contrada.transitions.taking_in import Begun
from contrada.transitions.track_state import (
    ObjectColumns,
    PairColumns,
    SubscriptionFacts,
    TrackState,
)


def remember(
    begun: Begun,
    followed: FollowedSubscriptions,
    ranks: Positions,
    tracks: Tracks,
    slots: Integers,
) -> tuple[TrackState, Mask]:
    """Return the state after a walk, and which objects of the step have changed.

    `ranks` are those of the subscriptions that the state knew, `slots` what the walk has left.
    """
    before = begun.state
    facts, subscriptions = _facts_of(before.subscriptions, followed, ranks, slots[:, RANK])
    owners = slots[:, OWNER]
    entered = np.where(slots[:, BITS] & VISITING, slots[:, ENTERED], -1)
    ids = join_ids(begun.candidates.ids, before.pairs.enter_ids, "ids of events")
    order = np.lexsort((subscriptions, owners))
    pairs = PairColumns(
        owners[order],
        subscriptions[order],
        slots[order, CHANGE],
        slots[order, CROSSED],
        ids.take(pa.array(entered[order], mask=entered[order] < 0)),
        slots[order, BITS].astype(np.uint8),
    )
    state = TrackState(
        begun.clock_us,
        _objects_of(begun, tracks),
        pairs,
        facts,
        begun.held,
        before.numbered,
        before.notes,
    )
    is_changed = _find_changed(begun, tracks)
    told_anew = _find_told_anew(before, followed, ranks)
    is_changed[begun.known.places_before[before.pairs.objects[told_anew]]] = True
    return state.only(_find_kept(begun, state)), is_changed


def _facts_of(
    before: SubscriptionFacts, followed: FollowedSubscriptions, ranks: Positions, used: Positions
) -> tuple[SubscriptionFacts, Positions]:
    """Return the facts of subscriptions in use, and the place of each use among them."""
    is_used = np.zeros(len(followed), bool)
    is_used[used[used >= 0]] = True
    is_gone = np.zeros(len(before.ids), bool)
    is_gone[-1 - used[used < 0]] = True
    living, gone = np.flatnonzero(is_used), np.flatnonzero(is_gone)
    ids, living_places, gone_places = merge_ids(
        followed.ids.take(pa.array(living)), before.ids.take(pa.array(gone))
    )
    order = np.argsort(np.concatenate([living_places, gone_places]))
    subscribers = join_ids(
        followed.subscribers.take(pa.array(living)),
        before.subscribers.take(pa.array(gone)),
        "subscribers",
    )
    facts = SubscriptionFacts(
        ids,
        subscribers.take(pa.array(order)),
        np.concatenate([followed.cooldown_us[living], before.cooldown_us[gone]])[order],
        np.concatenate([followed.kinds[living], before.kinds[gone]])[order],
    )
    place_of_living, place_of_gone = np.empty(len(followed), np.int64), np.empty_like(ranks)
    place_of_living[living], place_of_gone[gone] = living_places, gone_places
    places = np.empty(len(used), np.int64)
    places[used >= 0] = place_of_living[used[used >= 0]]
    places[used < 0] = place_of_gone[-1 - used[used < 0]]
    return facts, places


def _objects_of(begun: Begun, tracks: Tracks) -> ObjectColumns:
    """Return the objects as they are after their last positions."""
    objects, starts = begun.known.objects, tracks.position_starts
    moved = np.flatnonzero(starts[1:] > starts[:-1])
    last = begun.applied[starts[1:][moved] - 1]
    x, y = objects.x.copy(), objects.y.copy()
    x[moved], y[moved] = begun.candidates.x[last], begun.candidates.y[last]
    is_known = (tracks.bits & KNOWN) != 0
    source = np.where(is_known, len(begun.candidates.ids) + np.arange(len(x)), -1)
    source[moved] = np.where(is_known[moved], last, -1)
    x[~is_known] = y[~is_known] = np.nan
    ids = join_ids(begun.candidates.ids, objects.last_ids, "ids of events")
    last_ids = ids.take(pa.array(source, mask=source < 0))
    return ObjectColumns(objects.ids, tracks.last, last_ids, tracks.horizon, x, y, tracks.bits)


def _find_kept(begun: Begun, state: TrackState) -> Mask:
    """Return which objects are to be remembered; of a whole only the one that goes on is."""
    if begun.is_whole:
        is_open: Mask = np.arange(state.object_count) == begun.open_place
        return is_open
    is_kept: Mask = state.objects.flags != 0
    is_kept[state.pairs.objects] = True
    is_kept[state.held.objects] = True
    return is_kept


def _find_changed(begun: Begun, tracks: Tracks) -> Mask:
    """Return which objects are another way than before, or have something new that waits."""
    is_changed: Mask = tracks.is_changed != 0
    is_changed[begun.candidates.objects[begun.newly_held]] = True
    return is_changed


def _find_told_anew(
    before: TrackState, followed: FollowedSubscriptions, ranks: Positions
) -> Positions:
    """Return the pairs whose subscription has another subscriber or other terms than before."""
    facts, living = before.subscriptions, np.flatnonzero(ranks >= 0)
    if not len(living):
        return living
    at = ranks[living]
    were = facts.subscribers.take(pa.array(living))
    are = followed.subscribers.take(pa.array(at))
    is_same = pc.equal(were.cast(pa.large_string()), are.cast(pa.large_string()))
    is_none = pc.and_(were.is_null(), are.is_null())
    is_other = ~pc.fill_null(pc.or_kleene(is_same, is_none), False).to_numpy(zero_copy_only=False)
    is_other |= facts.cooldown_us[living] != followed.cooldown_us[at]
    is_other |= facts.kinds[living] != followed.kinds[at]
    is_told = np.zeros(len(ranks), bool)
    is_told[living[is_other]] = True
    return np.flatnonzero(is_told[before.pairs.subscriptions])
