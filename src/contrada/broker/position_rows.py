"""The positions of a batch as the room of transitions takes them, and those that waited."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from contrada.arrays import Positions
from contrada.broker.event_geometries import write_geometries_of
from contrada.broker.feature_columns import make_rows
from contrada.broker.fence_search import PieceEvents
from contrada.broker.object_table import HeldPosition
from contrada.broker.sent_features import FEATURE_ID, PROPERTIES
from contrada.broker.spelt_ids import is_given
from contrada.broker.step_states import WAITING_NUMBER, number_rows
from contrada.broker.track_positions import TimedRows, read_positions
from contrada.broker.transition_bodies import TrackingSettings
from contrada.matching.columns import EventBatch
from contrada.matching.receiving import receive
from contrada.matching.segments import SubscriptionSet
from contrada.model.event import GEOMETRY
from contrada.transitions.position_columns import PositionColumns
from contrada.transitions.taking_in import Begun


@dataclass(frozen=True, slots=True, eq=False)
class PositionBatch:
    """The positions among the events of a batch; each has a number, should it have to wait."""

    timed: TimedRows
    rows: pa.RecordBatch
    features: Sequence[bytes]
    events: EventBatch
    first_number: int

    @classmethod
    def read(
        cls,
        rows: pa.RecordBatch,
        features: Sequence[bytes],
        settings: TrackingSettings,
        subscriptions: SubscriptionSet,
        given: int,
        first_number: int,
    ) -> "PositionBatch":
        """Find the positions of a batch."""
        timed = read_positions(rows, settings, given)
        return cls(timed, rows, features, decode_rows(rows, subscriptions), first_number)

    def __len__(self) -> int:
        return len(self.timed.rows)

    @property
    def given(self) -> int:
        """How many were given a number for an id."""
        return self.timed.given

    @property
    def clock_us(self) -> int:
        """The greatest time."""
        return int(self.timed.time_us.max())

    def names(self) -> set[str]:
        """Return the objects, spelt."""
        return set(self.timed.objects.to_pylist())

    def columns(self, held: Mapping[int, HeldPosition]) -> PositionColumns:
        """Return the positions as columns; what waits is known by its number."""
        place, rows = self.events.geometry(GEOMETRY), self.timed.rows

        def order_keys(table: pa.Table) -> pa.Array:
            numbers = table.column(WAITING_NUMBER).to_pylist()
            features = [self._feature(number, held) for number in numbers]
            geometries = [json.loads(feature).get(GEOMETRY) for feature in features]
            shapes = write_geometries_of(geometries)[0].to_pylist()
            keys = [(shape or b"") + b"\0" + f for shape, f in zip(shapes, features, strict=True)]
            return pa.array(keys, pa.large_binary())

        return PositionColumns(
            self.timed.objects,
            self.timed.time_us,
            self.timed.ids,
            place.x[rows],
            place.y[rows],
            place.is_known[rows],
            lambda: number_rows(range(self.first_number, self.first_number + len(rows))),
            order_keys,
        )

    def _feature(self, number: int, held: Mapping[int, HeldPosition]) -> bytes:
        waits = held.get(number)
        return self.features[self._row(number)] if waits is None else waits.feature

    def _row(self, number: int) -> int:
        return int(self.timed.rows[number - self.first_number])

    def position(self, number: int) -> HeldPosition:
        """Return a position that has to wait."""
        at, row = number - self.first_number, self._row(number)
        place = self.events.geometry(GEOMETRY)
        return HeldPosition(
            self.timed.objects[at].as_py(),
            int(self.timed.time_us[at]),
            self.timed.ids[at].as_py(),
            float(place.x[row]),
            float(place.y[row]),
            self.features[row],
        )

    def take(self, at: Positions, subscriptions: SubscriptionSet) -> EventBatch:
        """Return the events of some positions."""
        if len(at) == self.rows.num_rows:
            return self.events
        return decode_rows(self.rows.take(pa.array(self.timed.rows[at])), subscriptions)


def decode_applied(
    begun: Begun,
    batch: PositionBatch | None,
    held: Mapping[int, HeldPosition],
    subscriptions: SubscriptionSet,
) -> list[PieceEvents]:
    """Decode what is applied: positions that waited, then those of the batch."""
    numbers = [
        number for table in begun.released for number in table.column(WAITING_NUMBER).to_pylist()
    ]
    pieces = []
    if numbers:
        waited = [held[number] for number in numbers]
        rows = read_features([one.feature for one in waited], [one.id for one in waited])
        pieces.append(PieceEvents(decode_rows(rows, subscriptions), 0))
    if batch is not None and len(begun.incoming):
        pieces.append(PieceEvents(batch.take(begun.incoming, subscriptions), len(numbers)))
    return pieces


def read_features(features: Sequence[bytes], ids: Sequence[str]) -> pa.RecordBatch:
    """Make rows of Features that were judged when they came, with the spelt ids of the events.

    An id that is in the text alone, as that of a CloudEvent, is no attribute.
    """
    parsed = [json.loads(feature) for feature in features]
    own = [
        None if is_given(id_) else feature.get(FEATURE_ID)
        for feature, id_ in zip(parsed, ids, strict=True)
    ]
    wkb, faults = write_geometries_of([feature.get(GEOMETRY) for feature in parsed])
    assert not faults, faults
    return make_rows(wkb, own, [feature.get(PROPERTIES) or {} for feature in parsed])


def decode_rows(rows: pa.RecordBatch, subscriptions: SubscriptionSet) -> EventBatch:
    """Decode what subscriptions read of events; what cannot be read is unknown."""
    return receive(
        rows,
        0,
        geometry_attributes={GEOMETRY, *subscriptions.geometry_attributes},
        geometry_columns=[GEOMETRY] if GEOMETRY in rows.schema.names else [],
        id_column=None,
        name="positions",
        repair=False,
        find_more_faults=subscriptions.find_event_faults,
    ).batch
