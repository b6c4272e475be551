"""States of different objects in one."""

from dataclasses import replace

import numpy as np
import pyarrow as pa

from contrada.arrays import Positions
from contrada.transitions.column_tuples import join_rows, place_rows, take_rows
from contrada.transitions.id_order import find_places, join_ids, merge_ids
from contrada.transitions.track_state import (
    HeldColumns,
    SubscriptionFacts,
    TrackState,
)


def join_states(first: TrackState, second: TrackState) -> TrackState:
    """Return the state of the objects of both, which share none; the later clock counts.

    What both know of a subscription is taken from the second, as are notes.
    """
    ids, *places = merge_ids(first.objects.ids, second.objects.ids)
    objects = place_rows(join_rows(first.objects, second.objects), np.concatenate(places))
    facts, facts_places = _join_facts(first.subscriptions, second.subscriptions)
    both = zip((first.pairs, second.pairs), places, facts_places, strict=True)
    moved = [
        pairs._replace(objects=at[pairs.objects], subscriptions=of[pairs.subscriptions])
        for pairs, at, of in both
    ]
    pairs = join_rows(*moved)
    order = np.lexsort((pairs.subscriptions, pairs.objects))
    clocks = [state.clock_us for state in (first, second) if state.clock_us is not None]
    return replace(
        second,
        clock_us=max(clocks, default=None),
        objects=objects._replace(ids=ids),
        pairs=take_rows(pairs, order),
        subscriptions=facts,
        held=_join_held(first.held, second.held, *places),
        numbered=max(first.numbered, second.numbered),
    )


def _join_facts(
    first: SubscriptionFacts, second: SubscriptionFacts
) -> tuple[SubscriptionFacts, tuple[Positions, Positions]]:
    shared = find_places(second.ids, first.ids)
    own = np.flatnonzero(shared < 0)
    mine = take_rows(first, own)
    ids, own_places, second_places = merge_ids(mine.ids, second.ids)
    both = place_rows(join_rows(mine, second), np.concatenate([own_places, second_places]))
    first_places = np.empty(len(shared), np.int64)
    first_places[own] = own_places
    first_places[shared >= 0] = second_places[shared[shared >= 0]]
    return both._replace(ids=ids), (first_places, second_places)


def _join_held(
    first: HeldColumns, second: HeldColumns, places: Positions, second_places: Positions
) -> HeldColumns:
    rows, order = first.rows, np.arange(len(first.time_us))
    for table in second.rows.tables:
        rows, moved = rows.join(table)
        order = np.append(order, np.arange(len(order), len(order) + table.num_rows))[moved]
    return HeldColumns(
        np.concatenate([places[first.objects], second_places[second.objects]])[order],
        np.concatenate([first.time_us, second.time_us])[order],
        join_ids(first.ids, second.ids).take(pa.array(order)),
        np.concatenate([first.x, second.x])[order],
        np.concatenate([first.y, second.y])[order],
        rows,
    )
