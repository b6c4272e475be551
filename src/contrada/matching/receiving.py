"""Events from the rows of a table: decoded, judged, and bad rows set aside."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from contrada.arrays import Positions
from contrada.errors import Remedy
from contrada.matching.arrow_values import as_values, find_column, find_rows
from contrada.matching.columns import (
    EventBatch,
    GeometryColumn,
    read_geometries,
    read_geometry_values,
)
from contrada.matching.engine import FindFaults, find_no_faults
from contrada.matching.ids import read_event_ids
from contrada.matching.subscribing import NOTHING_TOLD, place_fault
from contrada.model.event import GEOMETRY
from contrada.model.geometry import Fault


@dataclass(frozen=True, slots=True)
class ReceivedEvents:
    """A batch of events: the good rows ready to match, the bad and the mended ones by row."""

    batch: EventBatch
    ids: pa.Array
    first_row: int
    bad: dict[int, Fault]
    mended: dict[int, Fault]

    def good_rows(self) -> Positions:
        """List the rows that are not bad."""
        return np.delete(np.arange(self.batch.length), list(self.bad))

    def count_without_geometry(self) -> int:
        """Count the good rows that have no geometry where a subscription reads one."""
        return int(np.count_nonzero(self.batch.lack_geometry()[self.good_rows()]))


def receive(
    batch: pa.RecordBatch,
    first_row: int,
    *,
    geometry_attributes: Collection[str],
    geometry_columns: Sequence[str],
    id_column: str | None,
    name: str,
    repair: bool,
    find_more_faults: FindFaults = find_no_faults,
    told: Mapping[int, Fault] = NOTHING_TOLD,
) -> ReceivedEvents:
    """Decode a batch and find its bad rows: what they match must not count.

    What no subscription reads as a geometry is not judged. `find_more_faults` judges what one
    reads, once it is sound. `told` has rows that their file knows to be bad.
    """
    columns = {field.name: batch.column(i) for i, field in enumerate(batch.schema)}
    if GEOMETRY not in columns and geometry_columns:
        columns[GEOMETRY] = columns[geometry_columns[0]]  # the primary one, whatever its name
    meant = {GEOMETRY, *geometry_columns[:1]}
    geometries: dict[str, GeometryColumn] = {}
    bad = dict(told)
    mended: dict[int, Fault] = {}
    for attribute in sorted(geometry_attributes):
        found = _read_geometries(columns, attribute, repair, attribute in meant)
        if found is None:
            continue
        values, column = found
        geometries[attribute] = column
        mended |= column.mended
        column.set_aside(find_more_faults)
        for row, fault in _place_faults(column, attribute, values):
            bad.setdefault(row, fault)
    ids, too_large = _read_ids(batch, columns, first_row, id_column, name)
    bad = too_large | bad
    for row in np.flatnonzero(ids.is_null().to_numpy(zero_copy_only=False)).tolist():
        bad.setdefault(row, Fault("null_id", "the id is missing", f"column {id_column!r}"))
    events = EventBatch(columns, batch.num_rows, geometries)
    return ReceivedEvents(events, ids, first_row, bad, mended)


def _read_geometries(
    columns: dict[str, pa.Array], attribute: str, repair: bool, is_meant: bool
) -> tuple[pa.Array | list[Any], GeometryColumn] | None:
    """Decode an attribute; None where no column can have it."""
    array = find_column(columns, attribute)
    if array is not None:
        place = f"column {attribute!r}"
        return array, read_geometries(array, place, repair=repair, is_meant=is_meant)
    values = find_rows(columns, attribute)
    if values is None:
        return None
    return values, read_geometry_values(values, repair=repair, is_meant=is_meant)


def _place_faults(
    column: GeometryColumn, attribute: str, values: pa.Array | list[Any]
) -> Iterator[tuple[int, Fault]]:
    """Yield the faults of rows with their values; one that rows share is placed once."""
    placed: dict[int, Fault] = {}
    for row, fault in column.faults.items():
        lead = row if column.leads is None else int(column.leads[row])
        if lead not in placed:
            placed[lead] = place_fault(fault, attribute, _one(values, row))
        yield row, placed[lead]


def _one(values: pa.Array | list[Any], row: int) -> Any:
    return as_values(values.slice(row, 1))[0] if isinstance(values, pa.Array) else values[row]


def _read_ids(
    batch: pa.RecordBatch,
    columns: dict[str, pa.Array],
    first_row: int,
    id_column: str | None,
    name: str,
) -> tuple[pa.Array, dict[int, Fault]]:
    if id_column is None:
        return pa.array(np.arange(first_row, first_row + batch.num_rows, dtype=np.int64)), {}
    return read_event_ids(columns[id_column], id_column, name)


def find_remedies(fault: Fault) -> list[Remedy]:
    """Name the options that would help with a bad event."""
    remedies = {"invalid": [Remedy.REPAIR], "null_id": [Remedy.EVENT_ID]}.get(fault.code, [])
    return [*remedies, Remedy.QUARANTINE_EVENTS]
