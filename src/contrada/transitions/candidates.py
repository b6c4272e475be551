"""What a step may apply: positions that waited and those that came, with all objects."""

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from contrada.arrays import Floats, Integers, Positions
from contrada.transitions.id_order import as_ids, ids_like, join_ids
from contrada.transitions.known_objects import Known, know_objects
from contrada.transitions.position_columns import PositionColumns
from contrada.transitions.track_state import TrackState


class Candidates(NamedTuple):
    """Positions that waited, then those of the batch that have a geometry, as columns.

    `objects` are places among all objects of the step; `batch_rows` are rows of the batch.
    """

    objects: Positions
    time_us: Integers
    ids: pa.Array
    x: Floats
    y: Floats
    held_count: int
    batch_rows: Positions


def gather(state: TrackState, positions: PositionColumns | None) -> tuple[Known, Candidates]:
    """Bring those who waited and those who came together, with all objects."""
    held = state.held
    if positions is None:
        known = know_objects(state.objects, state.objects.ids[:0])
        none = np.zeros(0, np.int64)
        return known, Candidates(
            held.objects, held.time_us, held.ids, held.x, held.y, len(held.time_us), none
        )
    rows = np.flatnonzero(positions.has_geometry)
    objects, ids = as_ids(positions.objects), as_ids(positions.ids)
    times, x, y = positions.time_us, positions.x, positions.y
    if len(rows) < len(positions):
        chosen = pa.array(rows)
        objects, ids = objects.take(chosen), ids.take(chosen)
        times, x, y = times[rows], x[rows], y[rows]
    known = know_objects(state.objects, objects)
    last_ids = state.objects.last_ids
    if last_ids.null_count < len(last_ids):
        ids = ids_like(ids, last_ids, "ids of events")
    return known, Candidates(
        np.concatenate([known.places_before[held.objects], known.places]),
        np.concatenate([held.time_us, times]),
        join_ids(held.ids, ids, "ids of events"),
        np.concatenate([held.x, x]),
        np.concatenate([held.y, y]),
        len(held.time_us),
        rows,
    )
