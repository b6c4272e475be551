"""Files that keep coming, as a streaming DataFrame: each is read as the matcher reads it.

Spark finds the files, and remembers which it has had; a task opens those of a batch with the
readers of `files`, so that a row means what it means everywhere else, and a bad one is named by its
file and line. The columns and their types are fixed when the stream starts.
"""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from contrada.errors import InvalidInput, Unavailable
from contrada.files import Rows, json_lines, read_rows
from contrada.files.arrow_types import decoded_type, is_binary, is_text, storage_type
from contrada.files.crs import CRS84, is_same_crs
from contrada.files.declared_lines import SurveyedLines, read_declared_lines, survey_lines
from contrada.files.geometry_text import to_iso_wkb, to_wkt
from contrada.matching.ids import read_id_column
from contrada.model.event import GEOMETRY
from contrada.model.geometry import BAD_CELL, UNDECODABLE, Fault, read_meant
from contrada.showing import brief, listed
from contrada.spark.crs_metadata import state_crs, state_primary
from contrada.spark.event_files import (
    as_pattern,
    find_mark,
    local_path,
    name_filter,
    refuse_marks,
)
from contrada.spark.frames import DEFAULT_ID, FAULT_TYPE, FILE, SOURCE_FAULT
from contrada.spark.handshake import Handshake
from contrada.spark.task_errors import noting_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_AGE_MAX = "36500d"  # Spark's 7 days would pass over a file that was copied with its old time
_FILE = "path string, modificationTime timestamp, length long, content binary"


@dataclass(frozen=True, slots=True)
class FileColumns:
    """What every file of a stream is read as: columns of Arrow types, and what they mean.

    `id_column` is None where rows are known by their file and number. `geometry` is the column of
    the primary geometry, None where there is none.
    """

    schema: pa.Schema
    id_column: str | None
    geometry: str | None
    crs: str | None

    @classmethod
    def survey(cls, path: str, id_column: str | None) -> "FileColumns":
        """Take them from a file; of lines of JSON, from those that can be read."""
        found: Rows | SurveyedLines
        if has_lines(path):
            found = survey_lines(Path(path), id_column or DEFAULT_ID)
        else:
            found = read_rows(path)
        names = found.schema.names
        named = id_column or (DEFAULT_ID if DEFAULT_ID in names else None)
        if named is not None and named not in names:
            raise InvalidInput(
                f"{path} has no column {named!r} for the id; it has {', '.join(names)}"
            )
        if isinstance(found, Rows):
            found = found.identified(named)
            _tell_texts(found, named)
        fields = []
        for field in found.schema:
            kind = storage_type(field.type)
            if field.name == named:
                kind = read_id_column(pa.nulls(0, kind), f"{path}, column {named!r}").type
            fields.append(pa.field(field.name, _plain_type(kind)))
        geometry = next(iter(found.geometry_columns), None)
        return cls(pa.schema(fields), named, geometry, found.crs)

    def as_json(self) -> dict[str, Any]:
        """Write them, so that a stream that goes on has the same."""
        schema = self.schema.serialize().to_pybytes().hex()
        beside = {"id_column": self.id_column, "geometry": self.geometry, "crs": self.crs}
        return {"schema": schema, **beside}

    @classmethod
    def of(cls, stated: Mapping[str, Any]) -> "FileColumns":
        """Take what was written."""
        schema = pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(stated["schema"])))
        return cls(schema, stated["id_column"], stated["geometry"], stated["crs"])


def read_file_stream(
    spark: "SparkSession", path: str, columns: FileColumns, *, files_max: int | None = None
) -> "DataFrame":
    """Stream the rows of a file, or of those that a folder has or a pattern names, and will have.

    A row has the columns of `columns`, `id` with file and number if it has no id of its own,
    `__fault` where the file shows it to be bad, and else `__file`, with its file and line.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    refuse_marks(path)
    source = spark.readStream.format("binaryFile").schema(_FILE).option("maxFileAge", _AGE_MAX)
    if files_max is not None:
        source = source.option("maxFilesPerTrigger", files_max)
    found = as_pattern(path)
    source = source.option("pathGlobFilter", name_filter(found))
    paths = source.load(found).select("path")  # Spark does not read what is not asked for
    task = ReadFilesTask(Handshake.here(), columns)
    frame = paths.mapInArrow(task, from_arrow_schema(task.schema))
    frame = state_crs(frame, {columns.geometry: columns.crs} if columns.geometry else {})
    return frame if columns.geometry is None else state_primary(frame, columns.geometry)


@dataclass(frozen=True, slots=True)
class ReadFilesTask:
    """The function for `mapInArrow` that reads the files whose names come in."""

    handshake: Handshake
    columns: FileColumns

    @property
    def schema(self) -> pa.Schema:
        """The columns of what is read."""
        fields = list(self.columns.schema)
        if self.columns.id_column is None:
            fields.append(pa.field(DEFAULT_ID, pa.string()))
        own = (pa.field(SOURCE_FAULT, FAULT_TYPE), pa.field(FILE, pa.string()))
        return pa.schema([*fields, *own])

    @noting_errors
    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of files; one that cannot be read is one bad row."""
        self.handshake.check()
        for batch in batches:
            for uri in batch.column(0).to_pylist():
                path = local_path(uri)
                _refuse_doubling(path)
                yield from self._read(path)

    def _read(self, path: str) -> Iterator[pa.RecordBatch]:
        first_row = 0
        try:
            for batch in self._read_lines(path) if has_lines(path) else self._read_rows(path):
                yield batch
                first_row += batch.num_rows
        except Unavailable:
            raise  # the machine is at fault: the file is read again
        except InvalidInput as error:
            if not Path(path).exists():
                raise Unavailable(
                    f"{path}: was taken away before it was read; put it back, and go on"
                ) from error
            yield self._as_bad(path, first_row, error)

    def _read_rows(self, path: str) -> Iterator[pa.RecordBatch]:
        rows = read_rows(path).identified(self.columns.id_column)
        self._check_system(path, rows.crs)
        first_row = 0
        find_line = rows.line_finder()
        for batch, told in rows.judged(self.columns.schema.names):
            fitted, faults = self._fit(batch, told, self._find_geometry(path, rows))
            lines = [find_line(first_row + row) for row in range(batch.num_rows)]
            yield self._finish(fitted, faults, lines, path, first_row)
            first_row += batch.num_rows

    def _find_geometry(self, path: str, rows: Rows) -> str | None:
        """Find the column of a file that is its primary geometry, whatever its name.

        A file without one is refused: all its rows would match nothing, without a word.
        """
        name = self.columns.geometry
        if name is None:
            return None
        found = next(iter(rows.geometry_columns), name)
        if found not in rows.schema.names:
            raise InvalidInput(
                f"{path} has no column of geometries, such as {name!r} in the file with which the "
                f"stream began; it has {listed(rows.schema.names)}"
            )
        return found

    def _read_lines(self, path: str) -> Iterator[pa.RecordBatch]:
        """Read JSON line by line: of a file with a broken one, the others are as good as ever."""
        first_row = 0
        columns = self.columns
        for read in read_declared_lines(Path(path), columns.schema, columns.id_column):
            self._check_system(path, CRS84 if read.has_features else None)
            yield self._finish(read.batch.columns, read.faults, read.lines, path, first_row)
            first_row += len(read.lines)

    def _check_system(self, path: str, system: str | None) -> None:
        known = self.columns.crs
        if known is not None and system is not None and not is_same_crs(system, known):
            raise InvalidInput(f"{path} is in {system:.60}, and the stream began in {known:.60}")

    def _fit(
        self, batch: pa.RecordBatch, told: Mapping[int, Fault], geometry: str | None
    ) -> tuple[list[pa.Array], dict[int, Fault]]:
        """Cast columns to the types with which the stream began; what does not fit is a fault.

        `geometry` is the column that the batch has for that of the stream.
        """
        faults = dict(told)
        fitted = []
        for field in self.columns.schema:
            is_geometry = field.name == self.columns.geometry
            index = batch.schema.get_field_index(geometry if is_geometry else field.name)
            if index < 0:
                fitted.append(pa.nulls(batch.num_rows, field.type))
                continue
            column = batch.column(index)
            if is_geometry:
                column, unread = spell_geometries(column, field.type)
                faults = unread | faults
            array, misfits = fit(column, field.type)
            fitted.append(array)
            for row in misfits:
                shown = brief(column[row].as_py())
                fault = Fault(BAD_CELL, f"{shown} is not {field.type}", f"column {field.name!r}")
                faults.setdefault(row, fault)
        return fitted, faults

    def _finish(
        self,
        columns: Sequence[pa.Array],
        faults: Mapping[int, Fault],
        lines: Sequence[int | None],
        path: str,
        first_row: int,
    ) -> pa.RecordBatch:
        """Add ids where there are none, and what is wrong with rows, with the place of each."""
        count = len(columns[0])
        added = []
        if self.columns.id_column is None:
            numbers = range(first_row, first_row + count)
            added.append(pa.array([f"{path}#{number}" for number in numbers], pa.string()))
        places: list[str | None] = [
            f"{path}, row {first_row + row}" if line is None else f"{path}, line {line}"
            for row, line in enumerate(lines)
        ]
        stated: list[dict[str, str] | None] = [None] * count
        for row, fault in faults.items():
            place = f"{places[row]}, {fault.place}" if fault.place else str(places[row])
            stated[row] = {"code": fault.code, "message": fault.message, "place": place}
            places[row] = None
        arrays = [*columns, *added, pa.array(stated, FAULT_TYPE), pa.array(places, pa.string())]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _as_bad(self, path: str, row: int, error: InvalidInput) -> pa.RecordBatch:
        """Return one bad row for all of a file that could not be read, from some row on."""
        message = error.message.removeprefix(path).removeprefix(":").strip()  # `place` has the path
        fault = {"code": UNDECODABLE, "message": message, "place": f"{path}, from row {row}"}
        values: dict[str, Any] = {SOURCE_FAULT: fault}
        if self.columns.id_column is None or pa.types.is_string(self._id_type()):
            values[self.columns.id_column or DEFAULT_ID] = f"{path}#{row}"
        return pa.RecordBatch.from_pylist([values], schema=self.schema)

    def _id_type(self) -> pa.DataType:
        return self.schema.field(self.columns.id_column or DEFAULT_ID).type


def _tell_texts(rows: Rows, id_column: str | None) -> None:
    """Warn of columns that are text because of a few cells, as they will be for good."""
    for field in rows.schema:
        is_geometry = field.name in rows.geometry_columns
        if is_text(decoded_type(field.type)) and field.name != id_column and not is_geometry:
            why = rows.explain_text(field.name)
            if why is not None:
                warnings.warn(
                    f"{rows.name}: column {field.name!r} is text, and stays so for as long as the "
                    f"stream goes on: {why}; if it is meant as numbers, correct that and begin "
                    "with a new state",
                    stacklevel=3,
                )


def _refuse_doubling(path: str) -> None:
    """Refuse a batch with a name that is a pattern: Spark reads its other files once more."""
    mark = find_mark(path)
    if mark is not None:
        raise InvalidInput(
            f"{path}: has a {mark!r} in its name or in that of a folder, which Spark takes for a "
            "pattern, and reads the other files of the batch twice; rename it, and begin with a "
            "new state and a new folder of matches"
        )


def has_lines(path: str) -> bool:
    """Whether a file is read line by line, by its name."""
    return path.lower().endswith(json_lines.SUFFIXES)


def fit(array: pa.Array, kind: pa.DataType) -> tuple[pa.Array, Sequence[int]]:
    """Cast an array to a type; return it and the rows whose values do not fit, which are null."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if array.type == kind:
        return array, ()
    try:
        return array.cast(kind), ()
    except pa.ArrowException:
        pass
    fitted, misfits = [], []
    for row, value in enumerate(array):
        try:
            fitted.append(value.cast(kind).as_py())
        except pa.ArrowException:
            fitted.append(None)
            misfits.append(row)
    return pa.array(fitted, kind), misfits


def spell_geometries(array: pa.Array, kind: pa.DataType) -> tuple[pa.Array, dict[int, Fault]]:
    """Write geometries in the encoding of a type, WKB or WKT; with them, what cannot be read.

    A cast would take the letters of WKT for WKB.
    """
    has_text = is_text(decoded_type(array.type))
    if has_text == is_text(kind) or not (has_text or is_binary(decoded_type(array.type))):
        return array, {}
    geometries, faults = np.full(len(array), None, object), {}
    for row, value in enumerate(array.to_pylist()):
        read = read_meant(value)
        if isinstance(read, Fault):
            faults[row] = replace(read, place=f"column {GEOMETRY!r}")
        else:
            geometries[row] = read
    return (to_iso_wkb if has_text else to_wkt)(geometries), faults


def _plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type in which Spark takes a column from Python."""
    types = pa.types
    if types.is_dictionary(kind):
        return _plain_type(kind.value_type)
    if types.is_large_string(kind) or types.is_null(kind):
        return pa.string()
    if types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return pa.binary()
    if types.is_unsigned_integer(kind):
        return pa.int64()
    if types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    return pa.float64() if types.is_float16(kind) else kind
