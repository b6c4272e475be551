"""The columns of a subscription's row: stated here, and nowhere else."""

from enum import Enum
from typing import NamedTuple

from contrada.model.event import GEOMETRY


class Holds(Enum):
    """What the cells of a column are."""

    ID = "an integer or a text"
    PREDICATE = "CQL2 as text or JSON"
    SHAPE = "a geometry"
    NAME = "a text"


class RowColumn(NamedTuple):
    """One column by name; `is_beside_geometry` says that it goes with a geometry, not a filter."""

    name: str
    holds: Holds
    is_beside_geometry: bool = False


ROW_COLUMNS = (  # in the order in which snapshots have them
    RowColumn("id", Holds.ID),
    RowColumn("filter", Holds.PREDICATE),
    RowColumn(GEOMETRY, Holds.SHAPE),
    RowColumn("relation", Holds.NAME, is_beside_geometry=True),
    RowColumn("attribute", Holds.NAME, is_beside_geometry=True),
    RowColumn("where", Holds.PREDICATE, is_beside_geometry=True),
    RowColumn("subscriber", Holds.ID),
)


def columns_that_hold(*kinds: Holds) -> tuple[str, ...]:
    """Name the columns whose cells are of some kinds."""
    return tuple(column.name for column in ROW_COLUMNS if column.holds in kinds)
