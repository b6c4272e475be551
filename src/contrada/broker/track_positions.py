"""Which events of a batch are positions, of what and when."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from contrada.arrays import Integers, Mask, Positions
from contrada.broker.spelt_ids import spell_event_id, spell_given, spell_id
from contrada.broker.transition_bodies import TrackingSettings, write_duration
from contrada.matching.arrow_values import as_values, find_column, find_rows
from contrada.matching.moments import read_moment_us, read_moments

_ID = "id"


@dataclass(frozen=True, slots=True, eq=False)
class TimedRows:
    """The rows of a batch that are positions; objects and ids of events are spelt."""

    rows: Positions
    objects: pa.Array
    time_us: Integers
    ids: pa.Array
    given: int  # how many positions had no id and were given a number
    timeless: int  # how many rows have an object, but no time that can be read


def find_ahead(batch: pa.RecordBatch, settings: TrackingSettings, now_us: int) -> dict[int, str]:
    """Find the positions whose time is too far ahead of the broker's clock, and say so of each.

    One wrong clock would fire all timers and make all others late.
    """
    objects, time_us, is_timed = _read(batch, settings)
    ahead = np.flatnonzero(is_timed & (time_us > now_us + settings.ahead_us)).tolist()
    allowed = write_duration(settings.ahead_us)
    return {
        row: f"{settings.time}: the time is {(int(time_us[row]) - now_us) / 1e6:,.0f} s ahead of "
        f"the broker's clock; {allowed} are allowed"
        for row in ahead
        if objects[row] is not None
    }


def read_positions(batch: pa.RecordBatch, settings: TrackingSettings, given: int) -> TimedRows:
    """Find the positions of a batch; those without an id are numbered from `given` on."""
    objects, time_us, is_timed = _read(batch, settings)
    rows = [row for row in np.flatnonzero(is_timed).tolist() if objects[row] is not None]
    named = sum(name is not None for name in objects)
    own = _values(batch, _ID)
    ids, count = [], 0
    for row in rows:
        if own is None or own[row] is None:
            ids.append(spell_given(given + count))
            count += 1
        else:
            ids.append(spell_event_id(own[row]))
    return TimedRows(
        np.array(rows, np.int64),
        pa.array([objects[row] for row in rows], pa.large_string()),
        time_us[rows] if rows else time_us[:0],
        pa.array(ids, pa.large_string()),
        count,
        named - len(rows),
    )


def _read(
    batch: pa.RecordBatch, settings: TrackingSettings
) -> tuple[list[str | None], Integers, Mask]:
    """Read the object of each row, its time, and whether it has one."""
    count = batch.num_rows
    values = _values(batch, settings.object)
    if values is None:
        return [None] * count, np.zeros(count, np.int64), np.zeros(count, bool)
    objects = [None if value is None else spell_id(value) for value in values]
    column = find_column(_columns(batch), settings.time)
    if column is not None:
        time_us, faults = read_moments(column, settings.time)
        is_timed = np.ones(count, bool)
        is_timed[list(faults)] = False
        return objects, time_us, is_timed
    times = [None if v is None else read_moment_us(v) for v in _values(batch, settings.time) or ()]
    is_timed = np.array([isinstance(time, int) for time in times] or [False] * count, bool)
    found = [time if isinstance(time, int) else 0 for time in times] or [0] * count
    return objects, np.array(found, np.int64), is_timed


def _columns(batch: pa.RecordBatch) -> dict[str, pa.Array]:
    return dict(zip(batch.schema.names, batch.columns, strict=True))


def _values(batch: pa.RecordBatch, name: str) -> list[Any] | None:
    """Return the values of an attribute row by row; None where no row has it."""
    columns = _columns(batch)
    column = find_column(columns, name)
    return find_rows(columns, name) if column is None else as_values(column)
