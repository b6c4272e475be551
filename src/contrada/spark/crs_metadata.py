"""What geometry columns of DataFrames state in their fields' metadata: their coordinate system.

One of them may state that it is the primary one. What a column states stays with it through
select, filter and join; a computed column states nothing.
"""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from contrada.errors import InvalidInput
from contrada.files.crs import is_same_crs, spell_crs
from contrada.model.event import GEOMETRY

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_KEY, _PRIMARY = "crs", "primary"
_NATIVE = re.compile(r"geo(?:metry|graphy)\(((?!SRID:)[^,)]+).*\)")  # how Spark spells its types


def state_crs(frame: "DataFrame", systems: Mapping[str, str | None]) -> "DataFrame":
    """Let columns state their coordinate systems; those that are unknown are left as they are."""
    stated = {name: {_KEY: crs} for name, crs in systems.items() if crs is not None}
    return frame.select(
        *(column_of(name).alias(name, metadata=stated.get(name)) for name in frame.columns)
    )


def state_primary(frame: "DataFrame", column: str) -> "DataFrame":
    """Let a column state that it holds the geometry of each row, whatever its name."""
    metadata = {**(frame.schema[column].metadata or {}), _PRIMARY: True}
    return frame.withColumn(column, column_of(column).alias(column, metadata=metadata))


def stated_primary(frame: "DataFrame") -> str | None:
    """Find the column that states it is the primary geometry; None where none does."""
    return next((f.name for f in frame.schema if (f.metadata or {}).get(_PRIMARY)), None)


def column_of(name: str) -> "Column":
    """Return the column of this very name, which may have dots and backticks."""
    from pyspark.sql import functions

    return functions.col("`" + name.replace("`", "``") + "`")


def stated_crs(frame: "DataFrame", column: str) -> str | None:
    """Return the coordinate system that a column states, in its metadata or by Spark's own type."""
    field = frame.schema[column]
    native = _NATIVE.fullmatch(str(field.dataType.jsonValue()))
    stated = (field.metadata or {}).get(_KEY, native and native[1])
    return spell_crs(stated, f"column {column!r}")


def refuse_two_systems(
    events: "DataFrame", subscriptions: "DataFrame", sample: "DataFrame | None" = None
) -> str | None:
    """Return the one coordinate system of geometries that meet, if any states it; refuse two."""
    places = [("events", events, name) for name in dict.fromkeys(events.columns)]
    if sample is not None:
        places += [("sample", sample, name) for name in dict.fromkeys(sample.columns)]
    if GEOMETRY in subscriptions.columns:
        places.insert(0, ("subscriptions", subscriptions, GEOMETRY))
    first, first_crs = "", None
    for whose, frame, name in places:
        crs, place = stated_crs(frame, name), f"{whose}, column {name!r}"
        if crs is None:
            continue
        if first_crs is not None and not is_same_crs(crs, first_crs):
            raise InvalidInput(
                f"{first} is in {first_crs:.60}, {place} in {crs:.60}; "
                "transform one of them, or leave it out"
            )
        if first_crs is None:
            first, first_crs = place, crs
    return first_crs


def refuse_other_system(events: "DataFrame", crs: str | None, whose: str) -> str | None:
    """Return the one coordinate system of events and of a published set; refuse two."""
    first, first_crs = whose, crs
    for name in dict.fromkeys(events.columns):
        stated = stated_crs(events, name)
        if stated is None:
            continue
        place = f"events, column {name!r}"
        if first_crs is not None and not is_same_crs(stated, first_crs):
            raise InvalidInput(
                f"{first} is in {first_crs:.60}, {place} in {stated:.60}; "
                "transform one of them, or leave it out"
            )
        if first_crs is None:
            first, first_crs = place, stated
    return first_crs
