"""One step of following positions inside a Spark worker: taken in, matched, decided."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from contrada.arrays import Positions
from contrada.matcher.finding import FollowedSet, PositionPiece
from contrada.matcher.position_intake import make_order_keys
from contrada.matching.ids import read_event_ids
from contrada.spark.chosen_sets import ChosenSet
from contrada.spark.open_sets import derive, estimate_bytes, open_set
from contrada.spark.position_tasks import IS_KNOWN, POSITION_TIME, X, Y
from contrada.spark.transition_answers import FollowTally, TransitionShape
from contrada.spark.transition_options import TransitionOptions
from contrada.transitions.deciding import Step, finish
from contrada.transitions.followed import FollowedSubscriptions, StreamOptions
from contrada.transitions.position_columns import PositionColumns
from contrada.transitions.taking_in import Begun, begin
from contrada.transitions.track_state import TrackState

_HIDDEN = (POSITION_TIME, X, Y, IS_KNOWN)


@dataclass(frozen=True, slots=True)
class TrackStepper:
    """Follows positions through a version of the subscriptions; it keeps nothing itself."""

    options: TransitionOptions
    stream: StreamOptions
    shape: TransitionShape
    event_id: str

    def step(
        self,
        state: TrackState,
        rows: pa.Table | None,
        chosen: ChosenSet,
        clock_us: int | None,
        *,
        is_whole: bool = False,
        goes_on: bool = False,
    ) -> Step:
        """Take judged positions in, and decide what is due; without positions, timers alone."""
        followed, described = self.open(chosen)
        positions = None if rows is None or not rows.num_rows else self._positions(rows)
        begun = begin(
            state, positions, self.stream, clock_us=clock_us, is_whole=is_whole, goes_on=goes_on
        )
        pieces = [*self._release(begun, followed), *self._bring(begun, positions, followed)]
        return finish(begun, described, followed.find(begun, pieces, state))

    def open(self, chosen: ChosenSet) -> tuple[FollowedSet, FollowedSubscriptions]:
        """Open a version, which a worker does once."""
        subscriptions = open_set(chosen.staged)
        asked = self.options.asked

        def make() -> tuple[FollowedSet, FollowedSubscriptions]:
            followed = FollowedSet(subscriptions, asked)
            kind = pa.int64() if self.shape.has_whole_subscribers else pa.string()
            return followed, followed.describe(kind, chosen.version)

        key = ("followed", asked, self.shape.has_whole_subscribers)
        return derive(chosen.staged, key, make, lambda _: estimate_bytes(subscriptions.living()))

    def count_others(self, chosen: ChosenSet) -> tuple[int, int]:
        """Count the subscriptions that are not fences, and all."""
        followed, described = self.open(chosen)
        return followed.count_others(), len(described)

    def _positions(self, rows: pa.Table) -> PositionColumns:
        """Make the columns of positions of packed rows."""
        object_, event = self.options.object, self.event_id
        return PositionColumns(
            read_event_ids(_whole(rows, object_), object_, "events")[0],
            _whole(rows, POSITION_TIME).to_numpy(),
            read_event_ids(_whole(rows, event), event, "events")[0],
            _whole(rows, X).to_numpy(),
            _whole(rows, Y).to_numpy(),
            _whole(rows, IS_KNOWN).to_numpy(zero_copy_only=False),
            lambda: rows.drop_columns(list(_HIDDEN)),
            make_order_keys,
        )

    def _release(self, begun: Begun, followed: FollowedSet) -> Iterator[PositionPiece]:
        """Decode what an earlier batch brought."""
        first = 0
        for table in begun.released:
            numbers = np.arange(first, first + table.num_rows)
            first += table.num_rows
            yield self._decode(table, numbers, followed)

    def _bring(
        self, begun: Begun, positions: PositionColumns | None, followed: FollowedSet
    ) -> Iterator[PositionPiece]:
        """Decode the rows of this batch that are applied at once."""
        if positions is None or not len(begun.incoming):
            return
        released = sum(table.num_rows for table in begun.released)
        rows = positions.rows()
        if len(begun.incoming) < rows.num_rows:
            rows = rows.take(pa.array(begun.incoming))
        yield self._decode(rows, released + np.arange(rows.num_rows), followed)

    def _decode(self, rows: pa.Table, numbers: Positions, followed: FollowedSet) -> PositionPiece:
        objects = read_event_ids(_whole(rows, self.options.object), self.options.object, "events")[
            0
        ]
        return PositionPiece(followed.decode(rows), objects, numbers)


def _whole(rows: pa.Table, name: str) -> pa.Array:
    column = rows.column(name)
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


def tally_step(step: Step, version: str | None, state_bytes: int) -> FollowTally:
    """Count what a step has done."""
    counts, state = step.counts, step.state
    return FollowTally(
        evaluated=counts.came,
        without_geometry=counts.without_geometry,
        waited=counts.waited,
        applied=counts.applied,
        late=counts.late,
        repeated=counts.repeated,
        held=counts.held,
        objects=state.object_count,
        visits=state.visit_count,
        state_bytes=state_bytes,
        version=version,
    )
