"""Events that come as objects, asked as if they were the rows of a table.

No column is made of them: a value stays what it is, so that a test has of it what it has of a
single event, however odd it is beside those of the others. What costs something is paid for the
attributes that somebody asks for.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from shapely.geometry.base import BaseGeometry

from contrada.arrays import Mask
from contrada.matching.columns import Codes, EventBatch, GeometryColumn, read_geometry_values
from contrada.matching.engine import FindFaults
from contrada.matching.receiving import ReceivedEvents
from contrada.matching.subscribing import place_fault
from contrada.model.event import GEOMETRY, Event, find_value, paths_of
from contrada.model.expression_parts import INT_MAX, INT_MIN
from contrada.model.geometry import Fault


class EventObjects(EventBatch):
    """Events side by side, with their geometries decoded."""

    def __init__(self, events: Sequence[Event], geometries: Mapping[str, GeometryColumn]) -> None:
        """Wrap events; `geometries` are all that anybody may ask for."""
        super().__init__({}, len(events), geometries)
        self.events = events
        self._names = frozenset(name for event in events for name in event.names())
        self._objects: dict[str, list[Any]] = {}

    def lacks(self, name: str) -> bool:
        """Whether no event can have an attribute."""
        return self._names.isdisjoint(paths_of(name))

    def names(self) -> Collection[str]:
        """List the names of all attributes."""
        return self._names

    def values(self, name: str) -> list[Any]:
        """The values of an attribute, or of a dotted path."""
        if name not in self._objects:
            self._objects[name] = [event.value(name) for event in self.events]
        return self._objects[name]

    def numbers(self, name: str) -> tuple[NDArray[Any], Mask] | None:
        """Numbers of one kind that fit 64 bits; None where there is anything else."""
        if name not in self._numbers:
            self._numbers[name] = _find_numbers(self.values(name))
        return self._numbers[name]

    def codes(self, name: str) -> Codes | None:
        """Texts by their distinct values; None where there is anything else."""
        if name not in self._codes:
            self._codes[name] = _find_codes(self.values(name))
        return self._codes[name]

    def mended(self, row: int) -> Iterator[tuple[str, BaseGeometry | None]]:
        """Yield the geometries of an event that were mended, by attribute."""
        for name, column in self._geometries.items():
            if row in column.mended:
                yield name, column.one(row)

    def row(self, row: int) -> Event:
        """One of the events, with the geometries that were decoded."""
        event = self.events[row]
        geometries = {name: column.one(row) for name, column in self._geometries.items()}
        return Event(
            event.attributes,
            id=event.id,
            geometries=geometries,
            place=f"row {row}",
            is_settled=True,
        )


def _find_numbers(values: Sequence[Any]) -> tuple[NDArray[Any], Mask] | None:
    kinds = set(map(type, values)) - {type(None)}
    kind: type[np.generic]
    if kinds == {int}:
        if any(value is not None and not INT_MIN <= value <= INT_MAX for value in values):
            return None
        kind = np.int64
    elif kinds == {float}:
        kind = np.float64
    else:
        return None
    found = np.array([0 if value is None else value for value in values], kind)
    is_known = np.array([value is not None for value in values], bool)
    return found, is_known & ~np.isnan(found)


def _find_codes(values: Sequence[Any]) -> Codes | None:
    if not set(map(type, values)) <= {str, type(None)}:
        return None
    distinct = list(dict.fromkeys(value for value in values if value is not None))
    places = {value: place for place, value in enumerate(distinct)} | {None: -1}
    return Codes(np.array([places[value] for value in values], np.int64), distinct)


def receive_objects(
    events: Sequence[Event],
    ids: pa.Array,
    geometry_attributes: Collection[str],
    *,
    repair: bool,
    find_more_faults: FindFaults,
    told: Mapping[int, Fault],
) -> ReceivedEvents:
    """Decode the geometries of events and find the bad ones, as `receive` does with a table."""
    geometries: dict[str, GeometryColumn] = {}
    bad, mended = dict(told), dict[int, Fault]()
    for name in sorted(geometry_attributes):
        values = [find_value(event.attributes, name) for event in events]
        column = read_geometry_values(values, repair=repair, is_meant=name == GEOMETRY)
        column.set_aside(find_more_faults)
        for row, fault in column.faults.items():
            bad.setdefault(row, place_fault(fault, name, values[row]))
        mended |= column.mended
        geometries[name] = column
    mended = {row: fault for row, fault in mended.items() if row not in bad}
    return ReceivedEvents(EventObjects(events, geometries), ids, 0, bad, mended)
