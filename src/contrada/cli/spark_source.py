"""Files as Spark DataFrames: Parquet as it is where Spark can read it, all else through a copy.

A copy has only the columns that the run needs, in types that Spark has.
"""

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from contrada.cli.outputs import BadRow, primary_geometry
from contrada.cli.progress import bar
from contrada.cli.spark_start import is_one_machine
from contrada.deferred import compute as pc
from contrada.deferred import parquet as pq
from contrada.errors import InvalidInput, Remedy, Unavailable
from contrada.files import Rows
from contrada.files.parquet import SUFFIXES as PARQUET_SUFFIXES
from contrada.matcher.match_run import choose_id_column
from contrada.matching.ids import read_event_ids, read_id_column
from contrada.model.event import GEOMETRY
from contrada.model.geometry import Fault

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROW = "__row"
# Spark tells no case of letters apart, and its answer has columns that ours has not.
_ANSWER_COLUMNS = frozenset({"event", "subscription", "subscriber", "version", "n", "error"})


class Source:
    """A file as a DataFrame with the columns `id_column`, `geometry`, `ROW` and those wanted.

    `rows` are the same rows for this process. `bad` are those that the file itself shows to be bad:
    they are found when it is copied, and refused, or with `quarantine` left out.
    """

    def __init__(
        self,
        rows: Rows,
        path: str,
        id_column: str | None,
        remedy: Remedy,
        wanted: Collection[str],
        kept: Collection[str] = (),
        quarantine: bool = False,
        refuse_before: Callable[[int], object] = lambda _: None,
        is_changed: bool = False,
    ) -> None:
        """Take the ids from a column, or else number the rows.

        `remedy` is the option that names the column of ids. Before a bad row is refused,
        `refuse_before` may refuse one that comes before it. `is_changed` says that the rows are
        no longer as they are in the file.
        """
        chosen = choose_id_column(rows, id_column, remedy)
        rows = rows.identified(chosen)
        self.id_column = chosen or ROW
        self._quarantine, self._refuse_before = quarantine, refuse_before
        self._is_changed = is_changed
        self._read = {self.id_column, *wanted}
        self.bad: list[BadRow] = []
        self._path = Path(path)
        self._primary = primary_geometry(rows)
        needed = {self.id_column, self._primary, *wanted}
        self._needed = [field for field in rows.schema if field.name in needed]
        self.rows = rows.narrowed([n for n in rows.schema.names if n in {*needed, *kept}])
        self._hidden = {
            f"__kept{i}": name
            for i, name in enumerate(kept)
            if name not in needed or not _travels_openly(rows.schema.field(name))
        }
        hidden = {name: alias for alias, name in self._hidden.items()}
        self.carried = {name: hidden.get(name, name) for name in kept}
        for name in self._hidden.values():
            self._carried_type(name)

    def frame(self, spark: "SparkSession", copy: Path) -> "DataFrame":
        """Return the rows as a DataFrame; `copy` is where a copy may go."""
        from pyspark.sql import functions

        from contrada.spark.crs_metadata import column_of

        if is_one_machine(spark) and self._is_plain_parquet():
            # Spark reads a path as a pattern, and not every name; a link has a plain one.
            copy.symlink_to(os.path.realpath(self._path))
            frame = spark.read.parquet(str(copy))
            frame = frame.withColumn(ROW, functions.col("_metadata.row_index"))
            frame = self._with_primary(frame)
            return frame.withColumns({a: column_of(name) for a, name in self._hidden.items()})
        self._write_copy(copy)
        return self._with_primary(spark.read.parquet(str(copy)))

    def _with_primary(self, frame: "DataFrame") -> "DataFrame":
        """Let Spark know which column is the geometry under its own name, too."""
        from contrada.spark.crs_metadata import state_primary

        stated = next(iter(self.rows.geometry_columns), None)
        return state_primary(frame, stated) if stated in frame.columns else frame

    def names_in_file(self, columns: Collection[str]) -> tuple[str, ...]:
        """Return the names that columns of the DataFrame have in the file; `ROW` has none."""
        own = self._hidden | {GEOMETRY: self._primary}
        names = (own.get(name, name) for name in columns if name != ROW)
        return tuple(dict.fromkeys(names))

    def _is_plain_parquet(self) -> bool:
        """Whether Spark reads the file itself exactly as we do."""
        if self._path.suffix.lower() not in PARQUET_SUFFIXES:
            return False
        if self._is_changed or not self._path.is_file() or self._primary != GEOMETRY:
            return False
        schema = pq.read_schema(self._path)
        if GEOMETRY in schema.names and not pa.types.is_binary(schema.field(GEOMETRY).type):
            return False
        # Spark has no integers of 64 bits without a sign.
        if self.id_column in schema.names and pa.types.is_uint64(schema.field(self.id_column).type):
            return False
        for name in self.carried:
            if not schema.field(name).type == self._carried_type(name) == self._type_of(name):
                return False
        has_own_names = len({name.lower() for name in schema.names}) == len(schema.names)
        return has_own_names and all(_spark_type(field.type) == field.type for field in schema)

    def _write_copy(self, copy: Path) -> None:
        schema = self._copy_schema()
        first_row = 0
        progress = bar(f"copying {self.rows.name} for Spark", self.rows.count)
        with progress, blaming_copy(copy), pq.ParquetWriter(copy, schema) as writer:
            for batch, told in self.rows.judged(self._read):
                too_large: dict[int, Fault] = {}
                columns = {field.name: batch.column(field.name) for field in self._needed}
                if self.id_column in columns:
                    ids = columns[self.id_column]
                    ids, too_large = read_event_ids(ids, self.id_column, self.rows.name)
                    columns[self.id_column] = ids
                if self._primary in columns:
                    columns[GEOMETRY] = columns[self._primary]
                for alias, name in self._hidden.items():
                    columns[alias] = batch.column(name).cast(self._carried_type(name), safe=False)
                columns[ROW] = pa.array(range(first_row, first_row + batch.num_rows))
                table = pa.table([columns[name] for name in schema.names], names=schema.names)
                bad = self._judge(too_large | told, columns)
                kept = pc.invert(pc.is_in(columns[ROW], pa.array(bad, pa.int64())))
                writer.write_table(table.filter(kept).cast(schema, safe=False))
                first_row += batch.num_rows
                progress.update(batch.num_rows)

    def _judge(self, told: Mapping[int, Fault], columns: Mapping[str, pa.Array]) -> list[int]:
        """Refuse bad rows, or return their numbers."""
        ids, rows = columns[self.id_column], columns[ROW].to_pylist()
        bad = [(row, rows[row]) for row in told]
        for place, row in bad:
            if not self._quarantine:
                self._refuse_before(row)
                error = told[place].as_error([Remedy.QUARANTINE_EVENTS])
                raise error.within(self.rows.place(row))
            id_ = ids[place].as_py()
            self.bad.append((row, None if id_ is None else str(id_), str(told[place])))
        return [row for _, row in bad]

    def _copy_schema(self) -> pa.Schema:
        """Name the columns of the copy, with their types; the primary geometry has two names."""
        kinds = {field.name: field.type for field in self._needed}
        if self._primary in kinds:
            kinds[GEOMETRY] = kinds[self._primary]
        if self.id_column in kinds:
            kinds[self.id_column] = read_id_column(pa.nulls(0, kinds[self.id_column]), "").type
        fields = []
        for name, kind in kinds.items():
            known = _spark_type(kind)
            if known is None:
                raise InvalidInput(
                    f"{self.rows.name}: column {name!r} is of type {kind}, which Spark cannot read"
                )
            fields.append(pa.field(name, known))
        fields += [pa.field(a, self._carried_type(name)) for a, name in self._hidden.items()]
        return pa.schema([*fields, pa.field(ROW, pa.int64())])

    def _type_of(self, name: str) -> pa.DataType:
        return self.rows.schema.field(name).type

    def _carried_type(self, name: str) -> pa.DataType:
        return find_carried_type(self.rows, name)


def find_carried_type(rows: Rows, name: str) -> pa.DataType:
    """Find the type in which Spark carries a kept column and returns it as it was."""
    kind = rows.schema.field(name).type
    known = _carried_type(kind)
    if known is None:
        raise InvalidInput(
            f"--keep {name}: in {rows.name} it is of type {kind}, which Spark cannot carry"
        )
    return known


def restore(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Restore the type that a kept column had before Spark."""
    return pa.nulls(len(array), kind) if pa.types.is_null(kind) else array.cast(kind)


def _travels_openly(field: pa.Field) -> bool:
    """Whether a column that Spark has anyway can be kept under its own name."""
    is_taken = field.name.lower() in _ANSWER_COLUMNS
    return not is_taken and _carried_type(field.type) == field.type


def _carried_type(kind: pa.DataType) -> pa.DataType | None:
    types = pa.types
    if (
        types.is_time64(kind)
        or types.is_duration(kind)
        or (types.is_timestamp(kind) and kind.unit == "ns")
    ):
        return pa.int64()
    if types.is_time32(kind):
        return pa.int32()
    return pa.string() if types.is_decimal256(kind) or types.is_null(kind) else _spark_type(kind)


def _spark_type(kind: pa.DataType) -> pa.DataType | None:
    """Return the type in which Spark can read a column from Parquet; None where there is none."""
    types = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return kind.storage_type
    if types.is_timestamp(kind) and kind.unit == "ns":
        return pa.timestamp("us", kind.tz)
    if types.is_float16(kind):
        return pa.float32()
    if types.is_time(kind) or types.is_duration(kind) or types.is_decimal256(kind):
        return None
    if types.is_struct(kind):
        return _spark_struct(kind)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_dictionary(kind):
        inner = _spark_type(kind.value_type)
        if inner is None or inner == kind.value_type:
            return None if inner is None else kind
        return inner if types.is_dictionary(kind) else pa.list_(inner)
    return kind


@contextmanager
def blaming_copy(copy: Path) -> Iterator[None]:
    """Explain where there was no room for a copy: the user has named another file."""
    try:
        yield
    except OSError as fault:
        raise Unavailable(
            f"{copy.parent}: a copy for Spark cannot be written there: {fault}; "
            "set TMPDIR, or on a cluster spark.contrada.staging, to another folder"
        ) from fault


def _spark_struct(kind: pa.DataType) -> pa.DataType | None:
    inside = [_spark_type(field.type) for field in kind]
    if not inside or any(inner is None for inner in inside):
        return None
    return pa.struct([field.with_type(inner) for field, inner in zip(kind, inside, strict=True)])
