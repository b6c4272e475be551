"""The state of a few objects for a step of the room of transitions, from their records and back."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from contrada.arrays import Integers
from contrada.broker.fence_book import Fence
from contrada.broker.object_records import (
    UNKNOWN,
    ObjectRecord,
    PairRecord,
)
from contrada.broker.object_table import HeldPosition
from contrada.kernels.track_walk import ALWAYS_LATER, DWELT, KNOWN, NO_MOMENT, VISITING
from contrada.transitions.followed import ALL_KINDS, DWELL_KIND, NO_DWELL
from contrada.transitions.held_rows import HeldRows
from contrada.transitions.track_state import (
    HeldColumns,
    ObjectColumns,
    PairColumns,
    SubscriptionFacts,
    TrackState,
)

WAITING_NUMBER = "number"  # the column of rows that wait: what they are lies elsewhere
_TEXT = pa.large_string()


class StepObject(NamedTuple):
    """An object that goes into a step: its spelt id, and its record if there is one."""

    name: str
    record: ObjectRecord | None


def make_state(
    objects: Sequence[StepObject],
    held: Mapping[int, HeldPosition],
    terms: Mapping[str, Fence],
    clock_us: int | None,
) -> TrackState:
    """Make the state of objects, sorted by id; `terms` are those of pairs as they are known."""
    records = [UNKNOWN if one.record is None else one.record for one in objects]
    is_known = [bool(record.bits & KNOWN) for record in records]
    keys = sorted({pair.key for record in records for pair in record.pairs})
    places = {key: place for place, key in enumerate(keys)}
    pairs = [
        (owner, places[pair.key], pair)
        for owner, record in enumerate(records)
        for pair in record.pairs
    ]
    pairs.sort(key=lambda pair: pair[:2])
    visiting = [pair.bits & VISITING for _, _, pair in pairs]
    return TrackState(
        clock_us,
        ObjectColumns(
            pa.array([one.name for one in objects], _TEXT),
            _whole([record.last_us for record in records]),
            pa.array(
                [r.last_id if known else None for r, known in zip(records, is_known, strict=True)],
                _TEXT,
            ),
            _whole([record.horizon_us for record in records]),
            np.array([record.x for record in records], np.float64),
            np.array([record.y for record in records], np.float64),
            np.array([record.bits for record in records], np.uint8),
        ),
        PairColumns(
            _whole([owner for owner, _, _ in pairs]),
            _whole([place for _, place, _ in pairs]),
            _whole([pair.change_us for _, _, pair in pairs]),
            _whole([pair.cross_us for _, _, pair in pairs]),
            pa.array(["" if is_in else None for is_in in visiting], _TEXT),
            np.array([pair.bits for _, _, pair in pairs], np.uint8),
        ),
        SubscriptionFacts(
            pa.array(keys, _TEXT),
            pa.nulls(len(keys), _TEXT),
            _whole([terms[key].terms.cooldown_us if key in terms else 0 for key in keys]),
            np.array(
                [terms[key].terms.kinds if key in terms else ALL_KINDS for key in keys], np.uint8
            ),
        ),
        _make_held(objects, held),
    )


def _whole(values: Sequence[int]) -> Integers:
    return np.array(values, np.int64)


def _make_held(objects: Sequence[StepObject], held: Mapping[int, HeldPosition]) -> HeldColumns:
    places = {one.name: place for place, one in enumerate(objects)}
    positions = list(held.values())
    return HeldColumns(
        _whole([places[position.object] for position in positions]),
        _whole([position.time_us for position in positions]),
        pa.array([position.id for position in positions], _TEXT),
        np.array([position.x for position in positions], np.float64),
        np.array([position.y for position in positions], np.float64),
        HeldRows([number_rows(list(held))]),
    )


def number_rows(numbers: Sequence[int]) -> pa.Table:
    """Make rows of numbers, by which those that wait are found again."""
    return pa.table({WAITING_NUMBER: pa.array(numbers, pa.int64())})


def read_state(
    state: TrackState, fences: Mapping[str, Fence]
) -> dict[str, tuple[ObjectRecord | None, list[int]]]:
    """Return the record of each object of a state, and the numbers of its positions that wait.

    A subscription that is not among `fences` has ended: nothing is kept of it.
    """
    pairs, objects = state.pairs, state.objects
    keys = state.subscriptions.ids.to_pylist()
    own: dict[int, list[PairRecord]] = {}
    columns = (pairs.objects, pairs.subscriptions, pairs.flags, pairs.change_us, pairs.cross_us)
    for owner, place, *facts in zip(*(column.tolist() for column in columns), strict=True):
        if keys[place] in fences:
            own.setdefault(owner, []).append(PairRecord(keys[place], *facts))
    names = objects.ids.to_pylist()
    found: dict[str, tuple[ObjectRecord | None, list[int]]] = {}
    facts_of = zip(
        objects.flags.tolist(), objects.last_us.tolist(), objects.horizon_us.tolist(),
        objects.x.tolist(), objects.y.tolist(), objects.last_ids.to_pylist(), strict=True,
    )  # fmt: skip
    for place, (bits, last_us, horizon_us, x, y, last_id) in enumerate(facts_of):
        mine = tuple(own.get(place, ()))
        if not bits & KNOWN:
            found[names[place]] = None, []
            continue
        dwell_us, cooled_us = _find_moments(mine, fences)
        found[names[place]] = (
            ObjectRecord(bits, last_us, horizon_us, dwell_us, cooled_us, x, y, last_id, mine), []
        )  # fmt: skip
    numbers = [
        n for table in state.held.rows.tables for n in table.column(WAITING_NUMBER).to_pylist()
    ]
    for owner, number in zip(state.held.objects.tolist(), numbers, strict=True):
        found[names[owner]][1].append(number)
    return found


def _find_moments(pairs: Sequence[PairRecord], fences: Mapping[str, Fence]) -> tuple[int, int]:
    """Return the moment of the next dwell, and that at which all cooldowns are over."""
    dwell_us, cooled_us = ALWAYS_LATER, NO_MOMENT
    for pair in pairs:
        terms = fences[pair.key].terms
        if not pair.bits & VISITING:
            cooled_us = max(cooled_us, max(pair.change_us, pair.cross_us) + terms.cooldown_us)
        elif terms.dwell_us != NO_DWELL and terms.kinds & DWELL_KIND and not pair.bits & DWELT:
            dwell_us = min(dwell_us, pair.change_us + terms.dwell_us)
    return dwell_us, cooled_us
