"""Events that come as a list, or alone, as the rows of a table.

Each column is of one type where its values are, else a union of several. A geometry is WKB, judged
when it is written; what Arrow cannot hold is null, as is any value that no test can read.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import shapely
from shapely.geometry.base import BaseGeometry

from contrada.errors import InvalidInput
from contrada.matching.columns import GeometryColumn, read_geometry_values
from contrada.matching.subscribing import place_fault
from contrada.model.event import GEOMETRY, Event, as_python, find_value, read_event
from contrada.model.geometry import BAD_CELL, Fault

_ID = "id"
_ARROW_ERRORS = (pa.ArrowException, OverflowError, TypeError, ValueError)


class ListedEvents:
    """A list of events as one batch of rows; `faults` are by row, and so is what was `mended`."""

    def __init__(
        self, events: Sequence[Any], geometry_attributes: Collection[str], repair: bool
    ) -> None:
        """Read events; the geometries that somebody reads are judged."""
        self.faults: dict[int, Fault] = {}
        self.mended: dict[int, Fault] = {}
        self._events = [self._read(row, item) for row, item in enumerate(events)]
        self._repair = repair
        names = dict.fromkeys(name for event in self._events for name in event.names())
        judged = {name for name in (GEOMETRY, *geometry_attributes) if "." not in name}
        columns = {
            name: self._geometries(name) if name in judged else self._column(name)
            for name in [*names, *(sorted(judged - names.keys()))]
        }
        self.batch = pa.RecordBatch.from_pydict(columns)

    def _read(self, row: int, item: Any) -> Event:
        try:
            return read_event(item, place=f"row {row}")
        except InvalidInput as error:
            self.faults[row] = Fault(BAD_CELL, error.message.removeprefix(f"row {row}: "))
            return Event({})

    @property
    def has_ids(self) -> bool:
        """Whether an event has an id, be it null."""
        return any(event.id is not None or _ID in event.attributes for event in self._events)

    def ids(self) -> list[Any]:
        """List the ids of the events."""
        return [event.value(_ID) if event.id is None else event.id for event in self._events]

    def values(self, name: str) -> list[Any]:
        """List the values of an attribute, or of a dotted path."""
        return [event.value(name) for event in self._events]

    def _geometries(self, name: str) -> pa.Array:
        values = [find_value(event.attributes, name) for event in self._events]
        column = read_geometry_values(values, repair=self._repair, is_meant=name == GEOMETRY)
        self.mended |= column.mended
        for row, fault in column.faults.items():
            self.faults.setdefault(row, place_fault(fault, name, values[row]))
        return write_geometries(column)

    def _column(self, name: str) -> pa.Array:
        values = [_plain(event.attributes.get(name)) for event in self._events]
        try:
            return pa.array(values)
        except _ARROW_ERRORS:
            return _make_union(values)


def write_geometries(column: GeometryColumn) -> pa.Array:
    """Write geometries as WKB: flat, least byte first."""
    shapes = column.take(np.arange(len(column.x)))
    return pa.array(shapely.to_wkb(shapes, output_dimension=2, byte_order=1), pa.binary())


def _plain(value: Any) -> Any:
    value = as_python(value)
    if isinstance(value, BaseGeometry):
        return shapely.to_wkb(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value


def _make_union(values: list[Any]) -> pa.Array:
    """Make a column of values of several types; a null is one of the first."""
    kinds: dict[str, list[Any]] = {}
    codes, offsets = np.zeros(len(values), np.int8), np.zeros(len(values), np.int32)
    for row, value in enumerate(values):
        try:
            name = str(pa.array([value]).type)
        except _ARROW_ERRORS:
            name, value = "null", None  # noqa: PLW2901
        members = kinds.setdefault(name, [])
        codes[row], offsets[row] = list(kinds).index(name), len(members)
        members.append(value)
    children = [pa.array(members) for members in kinds.values()]
    return pa.UnionArray.from_dense(pa.array(codes), pa.array(offsets), children)
