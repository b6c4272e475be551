"""What planning must know of the subscriptions of a version, and whether events have it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from contrada.arrays import Box
from contrada.files.crs import is_same_crs
from contrada.language.expecting import Kinds, ValueKind
from contrada.matcher.inside import describe_projected
from contrada.matching.mismatches import find_unmet
from contrada.spark.frames import has_path

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


@dataclass(frozen=True, slots=True)
class SetDescription:
    """What planning must know of the subscriptions of a version; see `Subscribed`."""

    attributes: tuple[str, ...]
    geometries: tuple[str, ...]
    anchored: tuple[str, ...]
    broad: int
    bounds: Box | None
    has_distances: bool
    expectations: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @classmethod
    def of(cls, stated: Mapping[str, Any]) -> "SetDescription":
        """Take a description out of JSON."""
        lists = {name: tuple(stated[name]) for name in ("attributes", "geometries", "anchored")}
        expectations = tuple((name, tuple(kinds)) for name, kinds in stated["expectations"])
        bounds = None if stated["bounds"] is None else tuple(stated["bounds"])
        others = {name: stated[name] for name in ("broad", "has_distances")}
        return cls(**lists, **others, bounds=bounds, expectations=expectations)  # type: ignore[arg-type]

    def expected_kinds(self) -> frozenset[tuple[str, Kinds]]:
        """Return which kinds of values the subscriptions expect of attributes."""
        found = [
            (name, frozenset(ValueKind[k] for k in kinds)) for name, kinds in self.expectations
        ]
        return frozenset(found)

    def asks_no_more_than(self, other: "SetDescription") -> bool:
        """Whether all events that have what the other set asks of them have what this one asks."""
        return (
            {*self.attributes} <= {*other.attributes}
            and {*self.expectations} <= {*other.expectations}
            and self.has_distances <= other.has_distances
        )

    def find_lacking(self, schema: "StructType") -> list[str]:
        """List the attributes that subscriptions read and events of a schema cannot have."""
        return [name for name in self.attributes if not has_path(schema, name)]

    def describe_unmet(self, columns: pa.Schema, system: str | None, version: str) -> list[str]:
        """Describe what events have otherwise: kinds of values, and coordinates for distances."""
        unmet = find_unmet(self.expected_kinds(), columns)
        found = [
            f"events: column {name!r} holds {kind.value}, and subscriptions of version {version} "
            "compare it with something else, which is never true"
            for name, kind in sorted(unmet.items())
        ]
        return found + (describe_projected("events", system) if self.has_distances else [])


@dataclass(frozen=True, slots=True)
class StreamEvents:
    """What the events of a stream have, by which it passes over versions that are not for it.

    `columns` tells what kind of values each column holds, and `system` the coordinate system that
    one of them states. No stream takes a version in another system; a strict one takes none that
    asks for more than its events have.
    """

    schema: "StructType"
    columns: pa.Schema
    system: str | None
    is_strict: bool

    def find_faults(self, wanted: SetDescription, crs: str | None, version: str) -> list[str]:
        """Describe why a version cannot be taken."""
        lacking = [
            f"version {version} reads {name!r}, which no event has"
            for name in (wanted.find_lacking(self.schema) if self.is_strict else ())
        ]
        return [*lacking, *self.find_unfit(wanted, crs, version)]

    def find_unfit(self, wanted: SetDescription, crs: str | None, version: str) -> list[str]:
        """Describe why a version cannot be taken, but for the columns that events lack."""
        faults = self._compare_system(crs, version)
        if not self.is_strict:
            return faults
        return faults + wanted.describe_unmet(self.columns, crs or self.system, version)

    def _compare_system(self, crs: str | None, version: str) -> list[str]:
        """Describe another coordinate system of a version than that of the events."""
        if crs is None or self.system is None or is_same_crs(crs, self.system):
            return []
        return [f"version {version} is in {crs:.60}, and the events are in {self.system:.60}"]
