"""Positions with one object, time and id: they are put in order by id, and one of each stays."""

import numpy as np
import pyarrow as pa

from contrada.arrays import Integers, Mask, Positions
from contrada.deferred import compute as pc
from contrada.transitions.candidates import Candidates
from contrada.transitions.held_rows import HeldRows
from contrada.transitions.position_columns import PositionColumns


def drop_doubles(
    places: Positions,
    candidates: Candidates,
    held: HeldRows,
    positions: PositionColumns | None,
    is_late: Mask,
) -> Positions:
    """Order by id what has one object and time, and keep of doubles the least by order key.

    `places` are candidates in the order of object and time. One that is late, of the candidates
    `is_late`, is kept only where all its doubles are.
    """
    objects, times = candidates.objects[places], candidates.time_us[places]
    is_same = (objects[1:] == objects[:-1]) & (times[1:] == times[:-1])
    if not is_same.any():
        return places
    is_tied = np.append(is_same, False) | np.append(False, is_same)
    at = np.flatnonzero(is_tied)
    groups = np.cumsum(~np.append(False, is_same))[at]
    ranks = _ranks(candidates.ids.take(pa.array(places[at])))
    order = np.lexsort((ranks, groups))
    tied, groups, ranks = places[at][order], groups[order], ranks[order]
    is_double = (groups[1:] == groups[:-1]) & (ranks[1:] == ranks[:-1])
    is_kept = np.ones(len(places), bool)
    if is_double.any():
        assert positions is not None
        doubles = np.flatnonzero(np.append(is_double, False) | np.append(False, is_double))
        names = np.cumsum(~np.append(False, is_double))[doubles]
        keys = _ranks(_order_keys(tied[doubles], candidates, held, positions))
        order = np.lexsort((tied[doubles], keys, is_late[tied[doubles]], names))
        tied[doubles] = tied[doubles][order]
        is_kept[at] = ~np.append(False, is_double)
    ordered = places.copy()
    ordered[at] = tied
    return ordered[is_kept]


def _ranks(values: pa.Array) -> Integers:
    """Return the place of each value among the distinct ones, sorted."""
    if pa.types.is_large_binary(values.type) or pa.types.is_binary(values.type):
        encoded = values.dictionary_encode()
        order = np.asarray(pc.array_sort_indices(encoded.dictionary), np.int64)
        ranks: Integers = np.empty(len(order), np.int64)
        ranks[order] = np.arange(len(order))
        places: Positions = np.asarray(encoded.indices, np.int64)
        return ranks[places]
    return np.asarray(pc.rank(values, tiebreaker="dense"), np.int64)


def _order_keys(
    places: Positions, candidates: Candidates, held: HeldRows, positions: PositionColumns
) -> pa.Array:
    """Ask for the order keys of candidates, those that waited before those that came."""
    order = np.argsort(places, kind="stable")
    split = int(np.searchsorted(places[order], candidates.held_count))
    rows = candidates.batch_rows[places[order[split:]] - candidates.held_count]
    tables = [*held.take(places[order[:split]])[0].tables]
    tables += [positions.rows().take(pa.array(rows))] if len(rows) else []
    pieces = [positions.order_keys(table).cast(pa.large_binary()) for table in tables]
    of_place = np.empty(len(places), np.int64)
    of_place[order] = np.arange(len(places))
    return pa.concat_arrays(pieces).take(pa.array(of_place))
