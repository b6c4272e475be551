"""GeoParquet out of DataFrames: each task writes a file, the driver puts all in place at once."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import pyarrow as pa

from contrada.errors import InvalidInput, read_line, write_line
from contrada.files.crs import is_same_crs, spell_given_crs
from contrada.model.event import GEOMETRY
from contrada.spark.crs_metadata import stated_crs
from contrada.spark.drafts import DraftFolder
from contrada.spark.frames import with_wkb
from contrada.spark.handshake import Handshake
from contrada.spark.part_files import FileShape, PartFile
from contrada.spark.task_errors import noting_errors, raising_noted_errors
from contrada.spark.uris import as_uri

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MODES = ("error", "overwrite")
_LINES = "name string, rows long, error string"
_TYPES = ("binary", "string", "geometry", "geography")


@dataclass(frozen=True, slots=True)
class WriteTask:
    """The function for `mapInArrow`: write the rows of a task to one file of a draft.

    A row that cannot be written is reported and not raised, since it would fail again.
    """

    handshake: Handshake
    draft: DraftFolder
    shape: FileShape

    @noting_errors
    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield a line with the name of the file and its rows; none where there are no rows."""
        from pyspark import TaskContext

        self.handshake.check()
        context = TaskContext.get()
        assert context is not None, "a task runs on a worker"
        filled = (batch for batch in batches if batch.num_rows)
        first = next(filled, None)
        if first is None:
            return
        error = None
        try:
            name, rows = self.write(chain([first], filled), context.partitionId())
        except InvalidInput as fault:
            name, rows, error = "", 0, write_line(fault)
        yield pa.RecordBatch.from_pydict(
            {"name": [name], "rows": [rows], "error": pa.array([error], pa.string())}
        )

    def write(self, batches: Iterable[pa.RecordBatch], number: int) -> tuple[str, int]:
        """Write a file; return its name and the number of its rows."""
        with PartFile(self.draft, self.shape, number) as part:
            part.begin()
            for batch in batches:
                part.write(batch.rename_columns(self.shape.schema.names))
        return part.name, part.rows


def write_geoparquet(
    frame: "DataFrame",
    path: str | os.PathLike[str],
    *,
    geometry: str = GEOMETRY,
    crs: str | None = None,
    mode: str = "error",
) -> int:
    """Write a folder of GeoParquet files, one for each partition, and return the number of rows.

    Unlike `frame.write.parquet` it writes the `geo` metadata, which `read_geoparquet` and other
    programs look for. `geometry` names the column of WKB, WKT or Spark's own geometries; nulls stay
    null. `crs` defaults to what the column states, and is unknown where it states nothing. The
    folder appears whole or not at all; mode "error" refuses one that exists, "overwrite" replaces
    it.

    Raises `InvalidInput` for a stream, a column that is missing or cannot be written, a `crs` that
    contradicts the column, a bad geometry, and a folder that exists already; `Unavailable` if the
    folder cannot be written: the disk is full, or the server does not answer.

    >>> places = spark.createDataFrame([(1, "POINT(5 1)")], "id long, geometry string")
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     contrada.spark.write_geoparquet(places, f"{folder}/places", crs="EPSG:4326")
    1
    """
    name = os.fspath(path)
    _check(frame, geometry, mode)
    system = _choose_crs(frame, geometry, crs, name)
    plain = with_wkb(frame, frame.columns, name)
    shape = FileShape.of(plain, geometry, system, name)
    draft = DraftFolder.begin(as_uri(name), replace=mode == "overwrite")
    try:
        task = WriteTask(Handshake.here(), draft, shape)
        with raising_noted_errors():
            written = _run(plain, task) or [task.write([], 0)]
        draft.finish([name for name, _ in written])
    except BaseException:
        draft.discard()
        raise
    return sum(rows for _, rows in written)


def _check(frame: "DataFrame", geometry: str, mode: str) -> None:
    if not hasattr(frame, "isStreaming"):
        raise InvalidInput(f"only a DataFrame can be written, not {type(frame).__name__}")
    if frame.isStreaming:
        raise InvalidInput("a stream cannot be written as a whole; pass a batch DataFrame")
    if mode not in _MODES:
        raise InvalidInput(f"mode {mode!r} is unknown; choose one of {', '.join(_MODES)}")
    for name, count in Counter(frame.columns).items():
        if count > 1:
            raise InvalidInput(f"{count} columns are named {name!r}; a file can have one")
    if geometry not in frame.columns:
        raise InvalidInput(
            f"there is no column {geometry!r} to take geometries from; "
            f"the columns are {', '.join(frame.columns)}"
        )
    kind = frame.schema[geometry].dataType
    if not kind.typeName().startswith(_TYPES):
        raise InvalidInput(
            f"column {geometry!r} is of type {kind.simpleString()}; geometries are binary (WKB), "
            "string (WKT), or of the type geometry"
        )


def _choose_crs(frame: "DataFrame", geometry: str, given: str | None, name: str) -> str | None:
    stated, wanted = stated_crs(frame, geometry), spell_given_crs(given, name)
    if stated is not None and wanted is not None and not is_same_crs(stated, wanted):
        raise InvalidInput(
            f"{name}: column {geometry!r} is in {stated:.60}, not in {wanted:.60}; "
            "transform it first"
        )
    return wanted or stated


def _run(frame: "DataFrame", task: WriteTask) -> list[tuple[str, int]]:
    # PySpark's mapInArrow takes no column with a dot or a backtick in its name.
    numbered = frame.toDF(*(f"column{i}" for i in range(len(frame.columns))))
    lines = numbered.mapInArrow(task, _LINES).collect()
    for line in lines:
        error = None if line["error"] is None else read_line(line["error"])
        if error is not None:
            raise error
    return [(line["name"], line["rows"]) for line in lines]
