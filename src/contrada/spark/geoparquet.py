"""GeoParquet as DataFrames: what Spark does not read of it is in the footers of the files.

The rows are Spark's own; the coordinate system, the encoding and the covering come from the `geo`
metadata of every file, which the driver reads through pyarrow.
"""

import math
import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from contrada.arrays import Box
from contrada.errors import InvalidInput, Unavailable, blame, is_of_machine
from contrada.files.crs import is_same_crs
from contrada.files.geoarrow import NATIVE_TYPES
from contrada.files.geometry_columns import (
    GeometryField,
    find_geometry_columns,
    geoparquet_metadata,
    warn_of_edges,
)
from contrada.files.parquet_footer import read_open_footer
from contrada.model.event import GEOMETRY
from contrada.spark.box_columns import (
    Covering,
    RowGroups,
    add_up,
    count_row_groups,
    find_covering,
    meets,
    state_row_groups,
)
from contrada.spark.crs_metadata import column_of, state_crs, state_primary
from contrada.spark.gateway import find_cause
from contrada.spark.uris import is_remote, open_uri

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FOOTERS_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class Footer:
    """What one file says of its geometries, the primary column first.

    `row_groups` are counted where a box is asked for.
    """

    uri: str
    columns: tuple[GeometryField, ...]
    covering: Covering | None
    row_groups: RowGroups | None

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

    Unlike `spark.read.parquet` it reads the `geo` metadata of the files: geometry columns state
    their coordinate system, which `match` compares. The columns are those of the files, and
    `geometry`, the primary one, where they have none of this name.

    `bbox` (west, south, east, north; west beyond east crosses the 180° meridian) only prunes: rows
    whose box in the covering column does not meet it are left out, by whole row groups if the
    statistics allow; `explain` shows how many. Without a covering in every file, all rows come.

    Raises `InvalidInput` for a path that does not exist, a file that is not GeoParquet or not WKB,
    files in different coordinate systems, and a `bbox` that is not four finite numbers;
    `Unavailable` for a path that may not be read or a server that does not answer.

    >>> places = spark.createDataFrame([(1, "POINT(5 1)")], "id long, geometry string")
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     contrada.spark.write_geoparquet(places, f"{folder}/places", crs="EPSG:4326")
    ...     contrada.spark.read_geoparquet(spark, f"{folder}/places").columns
    1
    ['id', 'geometry']
    """
    names = _names(paths)
    box = None if bbox is None else _check_box(bbox)
    footers = _read_footers(_list_files(spark, names), box)
    for footer in footers[1:]:
        _refuse_difference(footers[0], footer)
    curved = [footer for footer in footers if any(column.edges for column in footer.columns)]
    if curved:
        warn_of_edges(curved[0].columns, curved[0].uri)
    frame = spark.read.parquet(*names)
    covering = _common_covering(footers)
    if box is not None and covering is not None:
        frame = frame.where(meets(covering, box))
    frame = state_crs(frame, {column.name: column.crs for column in footers[0].columns})
    primary = footers[0].columns[0].name
    frame = state_primary(frame, primary)
    if box is not None:
        groups = add_up((f.row_groups for f in footers if f.row_groups), covering is not None)
        frame = state_row_groups(frame, primary, groups)
    if GEOMETRY not in frame.columns:
        frame = frame.withColumn(GEOMETRY, column_of(primary))
    return frame


def _common_covering(footers: Sequence[Footer]) -> Covering | None:
    """Return the covering that all files share; None where one has another or none."""
    covering = footers[0].covering
    return covering if all(footer.covering == covering for footer in footers) else None


def _names(paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> list[str]:
    several = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    if not several:
        raise InvalidInput("there is no path to read from")
    return [os.fspath(path) for path in several]


def _check_box(bbox: Sequence[float]) -> Box:
    if len(bbox) != 4 or not all(math.isfinite(side) for side in bbox) or bbox[1] > bbox[3]:
        raise InvalidInput(f"bbox must be (west, south, east, north), finite numbers, not {bbox!r}")
    west, south, east, north = map(float, bbox)
    return west, south, east, north


def _list_files(spark: "SparkSession", names: list[str]) -> list[str]:
    """List the files that Spark would read; with a schema in hand it looks into none."""
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    try:
        files = spark.read.schema("geometry binary").parquet(*names).inputFiles()
    except (PySparkException, Py4JJavaError) as fault:
        kind = InvalidInput if _is_wrong_path(fault) else Unavailable
        cause = str(fault) if isinstance(fault, PySparkException) else find_cause("", str(fault))
        raise kind(f"{', '.join(names)}: cannot be read: {cause}") from fault
    if not files:
        raise InvalidInput(f"{', '.join(names)}: there is no file to read")
    return sorted(files)


def _is_wrong_path(fault: Exception) -> bool:
    """Whether Spark finds nothing at a path, or cannot read it as one; else it cannot get there."""
    from pyspark.errors import IllegalArgumentException, ParseException, PySparkException

    if isinstance(fault, IllegalArgumentException | ParseException):
        return True
    return isinstance(fault, PySparkException) and fault.getCondition() == "PATH_NOT_FOUND"


def _read_footers(uris: list[str], box: Box | None) -> list[Footer]:
    with ThreadPoolExecutor(min(_FOOTERS_AT_ONCE, len(uris))) as pool:
        return list(pool.map(_read_footer, uris, repeat(box)))


def _read_footer(uri: str, box: Box | None) -> Footer:
    filesystem, path = open_uri(uri)
    try:
        with filesystem.open_input_file(path) as source:
            read_open_footer(source, uri)
            file = pq.ParquetFile(source)
            metadata = file.metadata
            # The footer's own metadata: a writer may add to it after the schema is written.
            schema = file.schema_arrow.with_metadata(metadata.metadata or {})
    except (pa.ArrowException, OSError) as fault:
        is_far = is_remote(uri)
        what = "cannot be read" if is_of_machine(fault, is_far) else "not a Parquet file"
        raise blame(fault, f"{uri}: {what}: {fault}", is_remote=is_far) from fault
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
            f"the columns are {', '.join(schema.names)}"
        )
    for column in columns:
        if column.encoding in NATIVE_TYPES:
            raise InvalidInput(
                f"{uri}: column {column.name!r} has geometries in the encoding "
                f'"{column.encoding}"; on Spark only WKB is read'
            )
    covering = find_covering(schema, geo["columns"][primary])
    groups = None if box is None else count_row_groups(metadata, covering, box, uri)
    return Footer(uri, tuple(columns), covering, groups)


def _refuse_difference(first: Footer, other: Footer) -> None:
    """Refuse a file whose rows would not be events in the same plane."""
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
