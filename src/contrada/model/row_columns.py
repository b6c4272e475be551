"""The columns of a subscription's row: stated here, and nowhere else."""

from collections.abc import Collection
from enum import Enum
from typing import NamedTuple

import pyarrow as pa

from contrada.model.event import GEOMETRY

DEFAULT_RELATION = "intersects"
IDS_OF_BOTH_KINDS = pa.dense_union([pa.field("integer", pa.int64()), pa.field("text", pa.string())])
_IDS = (pa.int64(), pa.string())


class Holds(Enum):
    """What the cells of a column are."""

    ID = "an integer or a text"
    PREDICATE = "CQL2 as text or JSON"
    SHAPE = "a geometry"
    RELATION = "the name of a relation"
    NAME = "a text"


class RowColumn(NamedTuple):
    """One column by name, with its Arrow types in a snapshot of rows.

    `is_beside_geometry` says that it goes with a geometry, not a filter; `default` is what a cell
    that is empty stands for there, if it stands for anything.
    """

    name: str
    holds: Holds
    types: tuple[pa.DataType, ...] = (pa.string(),)
    is_beside_geometry: bool = False
    default: str | None = None


ROW_COLUMNS = (  # in the order in which snapshots have them
    RowColumn("id", Holds.ID, _IDS),
    RowColumn("filter", Holds.PREDICATE),
    RowColumn(GEOMETRY, Holds.SHAPE, (pa.binary(),)),
    RowColumn("relation", Holds.RELATION, is_beside_geometry=True, default=DEFAULT_RELATION),
    RowColumn("attribute", Holds.NAME, is_beside_geometry=True, default=GEOMETRY),
    RowColumn("where", Holds.PREDICATE, is_beside_geometry=True),
    RowColumn("subscriber", Holds.ID, (*_IDS, IDS_OF_BOTH_KINDS)),
)
BESIDE_GEOMETRY = tuple(column for column in ROW_COLUMNS if column.is_beside_geometry)
DEFAULTS = {column.name: column.default for column in ROW_COLUMNS if column.default is not None}
_NEEDED = ("filter", GEOMETRY)  # one of them, in a row and so in a table
NEEDED_COLUMNS = " or ".join(map(repr, _NEEDED))


def can_subscribe(names: Collection[str]) -> bool:
    """Whether a row of a table with these columns can be a subscription."""
    return not set(_NEEDED).isdisjoint(names)


def columns_that_hold(*kinds: Holds) -> tuple[str, ...]:
    """Name the columns whose cells are of some kinds."""
    return tuple(column.name for column in ROW_COLUMNS if column.holds in kinds)
