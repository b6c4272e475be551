"""All that is remembered of objects from one batch to the next: columns, never an object each."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from contrada.arrays import Floats, Integers, Mask, Positions, RowBits
from contrada.kernels.track_walk import VISITING
from contrada.transitions.column_tuples import filter_rows, take_rows
from contrada.transitions.held_rows import HeldRows
from contrada.transitions.id_order import find_places, ids_like

FAR_PAST = -(2**62)  # before all times


class ObjectColumns(NamedTuple):
    """The objects, sorted by id, each once; whoever has something waiting is one, too.

    Of an object that is KNOWN, `last_us` and `last_ids` are time and event id of the position that
    was applied last, and `horizon_us` is that time or the moment of a later timer; otherwise
    NO_MOMENT and null. `x` and `y` are that position, NaN if it was not a point. FELL_SILENT: its
    silence came.
    """

    ids: pa.Array
    last_us: Integers
    last_ids: pa.Array
    horizon_us: Integers
    x: Floats
    y: Floats
    flags: RowBits


class PairColumns(NamedTuple):
    """Objects and the subscriptions that they visit, or have left or crossed not long ago.

    `objects` and `subscriptions` are places in their columns, by which the pairs are sorted.
    `change_us` is the last enter or exit, of a VISITING pair the enter; `cross_us` the last cross;
    NO_MOMENT where there was none. `enter_ids` are the events of the enters, null without a visit.
    DWELT: the visit has had its dwell.
    """

    objects: Positions
    subscriptions: Positions
    change_us: Integers
    cross_us: Integers
    enter_ids: pa.Array
    flags: RowBits


class SubscriptionFacts(NamedTuple):
    """Of the subscriptions in pairs, sorted by id: what was known when a version last had them."""

    ids: pa.Array
    subscribers: pa.Array
    cooldown_us: Integers
    kinds: RowBits


class HeldColumns(NamedTuple):
    """Positions that wait until they are due, in no order; `rows` are their events.

    `objects` are places in the column of objects.
    """

    objects: Positions
    time_us: Integers
    ids: pa.Array
    x: Floats
    y: Floats
    rows: HeldRows


@dataclass(frozen=True, slots=True)
class TrackState:
    """What is known of any number of objects after a batch; never changed, only replaced.

    `clock_us` is the greatest time so far, None before the first position. `numbered` counts
    positions that got a number for an id. `notes` are settings of the caller's, kept along.
    """

    clock_us: int | None
    objects: ObjectColumns
    pairs: PairColumns
    subscriptions: SubscriptionFacts
    held: HeldColumns
    numbered: int = 0
    notes: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def empty(cls) -> "TrackState":
        """Return the state before the first position."""
        none = pa.array([], pa.large_string())
        places, times = np.zeros(0, np.int64), np.zeros(0, np.int64)
        x, flags = np.zeros(0), np.zeros(0, np.uint8)
        return cls(
            None,
            ObjectColumns(none, times, none, times, x, x, flags),
            PairColumns(places, places, times, times, none, flags),
            SubscriptionFacts(none, none, times, flags),
            HeldColumns(places, times, none, x, x, HeldRows()),
        )

    @property
    def object_count(self) -> int:
        """How many objects are remembered."""
        return len(self.objects.ids)

    @property
    def visit_count(self) -> int:
        """How many visits go on."""
        return len(self.find_visits())

    def find_visits(self) -> Positions:
        """Return the places of the pairs that are in a visit."""
        return np.flatnonzero(self.pairs.flags & VISITING)

    @property
    def held_count(self) -> int:
        """How many positions wait."""
        return len(self.held.time_us)

    @property
    def nbytes(self) -> int:
        """How many bytes the columns have in memory."""
        columns = (*self.objects, *self.pairs, *self.subscriptions, *self.held)
        return sum(column.nbytes for column in columns)

    def with_clock(self, clock_us: int | None) -> "TrackState":
        """Return the same objects with another clock."""
        return replace(self, clock_us=clock_us)

    def take(self, objects: pa.Array) -> "TrackState":
        """Return the state of some objects alone, those that are here; the clock is the same."""
        places = find_places(self.objects.ids, ids_like(objects, self.objects.ids))
        is_taken = np.zeros(self.object_count, bool)
        is_taken[places[places >= 0]] = True
        return self.only(is_taken)

    def pick(self, places: Positions) -> "TrackState":
        """Return the state of a few objects alone, at increasing places, without what is held."""
        starts, ends = (
            np.searchsorted(self.pairs.objects, places, side) for side in ("left", "right")
        )
        owners = np.repeat(np.arange(len(places)), ends - starts)
        rows = np.arange(len(owners)) - np.repeat(np.cumsum(ends - starts) - ends, ends - starts)
        pairs = take_rows(self.pairs, rows)
        used, subscriptions = np.unique(pairs.subscriptions, return_inverse=True)
        return replace(
            self,
            objects=take_rows(self.objects, places),
            pairs=pairs._replace(objects=owners, subscriptions=subscriptions),
            subscriptions=take_rows(self.subscriptions, used),
            held=_taken(self.held, places[:0]),
        )

    def only(self, is_taken: Mask) -> "TrackState":
        """Return the state of those objects alone, chosen by place."""
        if is_taken.all():
            return self
        places = np.cumsum(is_taken) - 1
        objects = filter_rows(self.objects, is_taken)
        pairs = filter_rows(self.pairs, is_taken[self.pairs.objects])
        rows = np.flatnonzero(is_taken[self.held.objects])
        held = self.held if len(rows) == self.held_count else _taken(self.held, rows)
        return replace(
            self,
            objects=objects,
            pairs=pairs._replace(objects=places[pairs.objects]),
            held=held._replace(objects=places[held.objects]),
        )._with_used_facts()

    def _with_used_facts(self) -> "TrackState":
        """Return the same without subscriptions that no pair has."""
        is_used = np.zeros(len(self.subscriptions.ids), bool)
        is_used[self.pairs.subscriptions] = True
        if is_used.all():
            return self
        places = np.cumsum(is_used) - 1
        pairs = self.pairs._replace(subscriptions=places[self.pairs.subscriptions])
        return replace(self, pairs=pairs, subscriptions=filter_rows(self.subscriptions, is_used))

    def without(self, objects: pa.Array) -> "TrackState":
        """Return the state without some objects."""
        places = find_places(self.objects.ids, ids_like(objects, self.objects.ids))
        is_taken = np.ones(self.object_count, bool)
        is_taken[places[places >= 0]] = False
        return self.only(is_taken)


def _taken(held: HeldColumns, rows: Positions) -> HeldColumns:
    return HeldColumns(
        held.objects[rows],
        held.time_us[rows],
        held.ids.take(pa.array(rows)),
        held.x[rows],
        held.y[rows],
        held.rows.take(rows)[0],
    )
