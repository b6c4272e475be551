"""The covering of GeoParquet: a column with the box of every geometry, by which files are pruned.

Spark evaluates the comparisons on rows and skips row groups by their statistics. The footers have
the same statistics, so that what is skipped is known before anything runs.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from contrada.arrays import Box
from contrada.spark.crs_metadata import column_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_SIDES = ("xmin", "ymin", "xmax", "ymax")
_KEY = "row_groups"


@dataclass(frozen=True, slots=True)
class Covering:
    """The column with the box of every geometry: its name, those of its fields, and their width."""

    column: str
    sides: tuple[str, ...]
    is_single: bool

    def widened(self, box: Box) -> Box:
        """Return the box to compare with; for sides of single precision the next larger one.

        A writer may have rounded the sides towards us.
        """
        if not self.is_single:
            return box
        with np.errstate(over="ignore"):
            west, south, east, north = map(np.float32, box)
            low = [float(np.nextafter(side, np.float32(-np.inf))) for side in (west, south)]
            high = [float(np.nextafter(side, np.float32(np.inf))) for side in (east, north)]
        return low[0], low[1], high[0], high[1]


@dataclass(frozen=True, slots=True)
class RowGroups:
    """How many row groups files have, and how many of them a box leaves to be read."""

    total: int
    left: int
    rows: int
    rows_left: int
    first_file: str
    has_covering: bool

    def __str__(self) -> str:
        if not self.has_covering:
            return f"all {self.total:,} are read: the files have no covering in common"
        return (
            f"{self.left:,} of {self.total:,} are read, "
            f"with {self.rows_left:,} of {self.rows:,} rows; the others are outside bbox"
        )


def find_covering(schema: pa.Schema, stated: Mapping[str, Any]) -> Covering | None:
    """Find the covering of the primary column; one that is not as it should be prunes nothing.

    Boxes are planar here. A file whose own box wraps at the 180° meridian may have rows whose
    boxes do, and none of them is used.
    """
    try:
        if _wraps(stated.get("bbox")):
            return None
        paths = stated["covering"]["bbox"]
        (column,) = {paths[side][0] for side in _SIDES}
        names = tuple(str(paths[side][1]) for side in _SIDES)
        kinds = {schema.field(column).type.field(name).type for name in names}
        (is_single,) = {{pa.float32(): True, pa.float64(): False}[kind] for kind in kinds}
    except (KeyError, IndexError, TypeError, ValueError, AttributeError):
        return None
    return Covering(column, names, is_single)


def _wraps(bbox: Sequence[float] | None) -> bool:
    return bbox is not None and bbox[0] > bbox[len(bbox) // 2]


def meets(covering: Covering, box: Box) -> "Column":
    """Which rows have a box that meets another; each comparison is one that Parquet knows."""
    from pyspark.sql import functions

    kind = "float" if covering.is_single else "double"
    west, south, east, north = (functions.lit(side).cast(kind) for side in covering.widened(box))
    sides = (column_of(covering.column).getField(name) for name in covering.sides)
    xmin, ymin, xmax, ymax = sides
    starts_before, ends_after = xmin <= east, xmax >= west
    wraps = box[0] > box[2]
    along_x = (starts_before | ends_after) if wraps else (starts_before & ends_after)
    return along_x & (ymin <= north) & (ymax >= south)


def count_row_groups(
    metadata: pq.FileMetaData, covering: Covering | None, box: Box, uri: str
) -> RowGroups:
    """Count the row groups of a file that may have a row whose box meets another, and their rows.

    Spark skips the others by the same statistics, and may skip pages of those that are left.
    """
    rows = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
    left = rows
    if covering is not None:
        kept = _may_meet(metadata, covering, box)
        left = [count for count, is_kept in zip(rows, kept, strict=True) if is_kept]
    return RowGroups(len(rows), len(left), sum(rows), sum(left), uri, covering is not None)


def _may_meet(metadata: pq.FileMetaData, covering: Covering, box: Box) -> Iterator[bool]:
    west, south, east, north = covering.widened(box)
    names = [metadata.schema.column(i).path for i in range(metadata.num_columns)]
    numbers = [names.index(f"{covering.column}.{side}") for side in covering.sides]
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        least_x, least_y, most_x, most_y = (
            _extreme(group.column(number), is_least)
            for number, is_least in zip(numbers, (True, True, False, False), strict=True)
        )
        starts_before, ends_after = least_x <= east, most_x >= west
        wraps = box[0] > box[2]
        along_x = (starts_before or ends_after) if wraps else (starts_before and ends_after)
        yield along_x and least_y <= north and most_y >= south


def _extreme(column: pq.ColumnChunkMetaData, is_least: bool) -> float:
    """Return the least or greatest value of a column; NaN where there are only nulls.

    A column without statistics may have any value.
    """
    statistics = column.statistics
    if statistics is not None and statistics.has_min_max:
        return float(statistics.min if is_least else statistics.max)
    if statistics is not None and statistics.has_null_count and not statistics.num_values:
        return math.nan
    return -math.inf if is_least else math.inf


def add_up(counts: Iterable[RowGroups], has_covering: bool) -> RowGroups:
    """Add up the row groups of files; without a covering in common all of them are read."""
    each = list(counts)
    total, rows = sum(one.total for one in each), sum(one.rows for one in each)
    left, rows_left = sum(one.left for one in each), sum(one.rows_left for one in each)
    if not has_covering:
        left, rows_left = total, rows
    return RowGroups(total, left, rows, rows_left, each[0].first_file, has_covering)


def state_row_groups(frame: "DataFrame", column: str, groups: RowGroups) -> "DataFrame":
    """Let a column state the row groups that it is read from, besides its coordinate system."""
    metadata = {**(frame.schema[column].metadata or {}), _KEY: asdict(groups)}
    return frame.withColumn(column, column_of(column).alias(column, metadata=metadata))


def stated_row_groups(frame: "DataFrame") -> RowGroups | None:
    """Return the row groups that a column says it is read from; None where none does.

    Spark keeps the metadata of a field in files that it writes; whoever reads those learns nothing.
    """
    stated = [field.metadata[_KEY] for field in frame.schema if _KEY in (field.metadata or {})]
    groups = RowGroups(**stated[0]) if stated else None
    if groups is None or groups.first_file not in frame.inputFiles():
        return None
    return groups
