"""GeoParquet as DataFrames: what Spark does not read of it is in the footers of the files.

The rows are Spark's own; the coordinate system, the encoding and the covering come from the `geo`
metadata of every file, which the driver reads through pyarrow.
"""

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from contrada.errors import InvalidInput
from contrada.files.crs import is_same_crs
from contrada.files.geoarrow import NATIVE_TYPES
from contrada.files.geometry_columns import (
    GeometryColumn,
    find_geometry_columns,
    geoparquet_metadata,
)
from contrada.matching.grid import Box
from contrada.model.event import GEOMETRY
from contrada.spark.crs import column_of, state_crs
from contrada.spark.uris import open_uri

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_SIDES = ("xmin", "ymin", "xmax", "ymax")
_FOOTERS_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class Covering:
    """The column with the box of every geometry: its name, those of its fields, and their width."""

    column: str
    sides: tuple[str, ...]
    is_single: bool


@dataclass(frozen=True, slots=True)
class Footer:
    """What one file says of its geometries, the primary column first."""

    uri: str
    columns: tuple[GeometryColumn, ...]
    covering: Covering | None

    @property
    def crs(self) -> str | None:
        """The coordinate system of the file; None where it is unknown."""
        return self.columns[0].crs


def read_geoparquet(
    spark: "SparkSession",
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    bbox: Box | None = None,
) -> "DataFrame":
    """Read GeoParquet files or folders, which must be in one coordinate system.

    The columns are those of the files, and `geometry`, the primary one, where they have none of
    this name. Geometry columns state their coordinate system, which `match` compares.

    `bbox` (west, south, east, north; west beyond east crosses the 180° meridian) only prunes: rows
    whose box in the covering column does not meet it are left out, by whole row groups if the
    statistics allow. Without a covering in every file, all rows come.
    """
    names = _names(paths)
    box = None if bbox is None else _check_box(bbox)
    footers = _read_footers(_list_files(spark, names))
    for footer in footers[1:]:
        _refuse_difference(footers[0], footer)
    frame = spark.read.parquet(*names)
    covering = footers[0].covering
    if box is not None and covering and all(footer.covering == covering for footer in footers):
        frame = frame.where(_meets(covering, box))
    frame = state_crs(frame, {column.name: column.crs for column in footers[0].columns})
    if GEOMETRY not in frame.columns:
        frame = frame.withColumn(GEOMETRY, column_of(footers[0].columns[0].name))
    return frame


def _names(paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> list[str]:
    several = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    if not several:
        raise InvalidInput("there is no path to read from")
    return [os.fspath(path) for path in several]


def _check_box(bbox: Sequence[float]) -> Box:
    if len(bbox) != 4 or not all(math.isfinite(side) for side in bbox) or bbox[1] > bbox[3]:
        raise InvalidInput(f"bbox is (west, south, east, north), finite numbers, not {bbox!r}")
    west, south, east, north = map(float, bbox)
    return west, south, east, north


def _list_files(spark: "SparkSession", names: list[str]) -> list[str]:
    """List the files that Spark would read; with a schema in hand it looks into none."""
    from pyspark.errors import PySparkException

    try:
        files = spark.read.schema("geometry binary").parquet(*names).inputFiles()
    except PySparkException as fault:
        raise InvalidInput(f"{', '.join(names)}: cannot be read: {fault}") from fault
    if not files:
        raise InvalidInput(f"{', '.join(names)}: there is no file to read")
    return sorted(files)


def _read_footers(uris: list[str]) -> list[Footer]:
    with ThreadPoolExecutor(min(_FOOTERS_AT_ONCE, len(uris))) as pool:
        return list(pool.map(_read_footer, uris))


def _read_footer(uri: str) -> Footer:
    filesystem, path = open_uri(uri)
    try:
        with filesystem.open_input_file(path) as source, pq.ParquetFile(source) as file:
            # The footer's own metadata: a writer may add to it after the schema is written.
            schema = file.schema_arrow.with_metadata(file.metadata.metadata or {})
    except (pa.ArrowException, OSError) as fault:
        raise InvalidInput(f"{uri}: not a Parquet file: {fault}") from fault
    geo = geoparquet_metadata(schema, uri)
    if not geo:
        raise InvalidInput(
            f'{uri}: has no "geo" metadata, so it is plain Parquet: use spark.read.parquet'
        )
    columns = find_geometry_columns(schema, schema.names, uri)
    primary = geo.get("primary_column")
    if not columns or columns[0].name != primary:
        raise InvalidInput(
            f"{uri}: has no column {primary!r}, which its metadata calls the primary geometry; "
            f"there are {', '.join(schema.names)}"
        )
    for column in columns:
        if column.encoding in NATIVE_TYPES:
            raise InvalidInput(
                f"{uri}: column {column.name!r} has geometries in the encoding "
                f'"{column.encoding}"; on Spark only WKB is read'
            )
    return Footer(uri, tuple(columns), _find_covering(schema, geo["columns"][primary]))


def _find_covering(schema: pa.Schema, stated: Mapping[str, Any]) -> Covering | None:
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


def _refuse_difference(first: Footer, other: Footer) -> None:
    """Refuse a file of which the rows would not be events in the same plane."""
    if first.columns[0].name != other.columns[0].name:
        raise InvalidInput(
            f"{other.uri} has its geometry in column {other.columns[0].name!r}, "
            f"{first.uri} in {first.columns[0].name!r}"
        )
    stated = [crs for crs in (first.crs, other.crs) if crs is not None]
    if len(stated) == 1 or (stated and not is_same_crs(*stated)):
        raise InvalidInput(
            f"{other.uri} is in {_show(other.crs)}, {first.uri} in {_show(first.crs)}; "
            "read them one by one and transform"
        )


def _show(crs: str | None) -> str:
    return "an unknown coordinate system" if crs is None else f"{crs:.60}"


def _meets(covering: Covering, box: Box) -> "Column":
    """Tell which rows have a box that meets another; each comparison is one that Parquet knows."""
    from pyspark.sql import functions

    west, south, east, north = map(functions.lit, box)
    if covering.is_single:
        west, south, east, north = (
            functions.lit(_widened(side, outward)).cast("float")
            for side, outward in zip(box, (-math.inf, -math.inf, math.inf, math.inf), strict=True)
        )
    sides = (column_of(covering.column).getField(name) for name in covering.sides)
    xmin, ymin, xmax, ymax = sides
    starts_before, ends_after = xmin <= east, xmax >= west
    wraps = box[0] > box[2]
    along_x = (starts_before | ends_after) if wraps else (starts_before & ends_after)
    return along_x & (ymin <= north) & (ymax >= south)


def _widened(side: float, outward: float) -> float:
    """Give the next number of single precision, as if a writer had rounded towards us."""
    with np.errstate(over="ignore"):
        return float(np.nextafter(np.float32(side), np.float32(outward)))
