"""Parquet and GeoParquet: one file, or a folder of part files as Spark writes them."""

import os
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pyarrow as pa

from contrada.deferred import parquet as pq
from contrada.errors import InvalidInput, blame, is_of_machine
from contrada.files.arrow import lay_out
from contrada.files.arrow_types import check_names
from contrada.files.crs import is_same_crs
from contrada.files.expanding import cut_rows
from contrada.files.geometry_columns import warn_of_edges
from contrada.files.parquet_footer import as_source, read_footer
from contrada.files.parquet_sizes import plan_reading
from contrada.files.regular_files import check_regular
from contrada.files.rows import Rows
from contrada.showing import listed

SUFFIXES = (".parquet", ".geoparquet")
NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True, slots=True)
class TablePart:
    """One file of a table, and the values that its folders state for all of its rows."""

    path: Path
    partition: dict[str, str | None]


def read_parquet(path: Path, name: str, *, batch_rows: int, columns: Sequence[str] | None) -> Rows:
    """Read a Parquet file, or all the part files below a folder in the order of their names."""
    parts = _find_parts(path, name)
    partition = _partition_schema(parts, name)
    schema, count = _read_footers(parts, name)
    for field in partition:
        if field.name in schema.names:
            raise InvalidInput(
                f'{name}: column "{field.name}" is both in files and in folder names'
            )
        schema = schema.append(field)
    table = _Table(name, parts, partition, schema, count, batch_rows)
    warn_of_edges(lay_out(schema, columns, name).geometries, name)
    return _read_columns(table, columns)


@dataclass(frozen=True, slots=True)
class _Table:
    """What the footers of all parts say; they are read once."""

    name: str
    parts: list[TablePart]
    partition: pa.Schema
    schema: pa.Schema
    count: int
    batch_rows: int


def _read_columns(table: _Table, columns: Sequence[str] | None) -> Rows:
    layout = lay_out(table.schema, columns, table.name)
    own, in_folders = set(layout.schema.names), set(table.partition.names)
    wanted = [column for column in layout.schema.names if column not in in_folders]
    stated = [field for field in table.partition if field.name in own]

    def read_parts() -> Iterator[pa.RecordBatch]:
        for part in table.parts:
            place = _place(part, table.parts, table.name)
            for batch in _read_part(part, wanted, table.batch_rows, place):
                yield from layout.arrange(_with_partition(batch, part, stated))

    def narrow(names: Sequence[str], _: Set[str]) -> Rows:
        return _read_columns(table, names)

    facts = (table.name, layout.schema, layout.geometry_columns, layout.crs, table.count)
    return Rows(*facts, table.batch_rows, read_parts, narrow)


def _find_parts(path: Path, name: str) -> list[TablePart]:
    if not path.is_dir():
        return [TablePart(path, {})]
    parts = [
        TablePart(file, _partition_values(file.relative_to(path))) for file in list_parts(path)
    ]
    for part in parts:
        check_regular(part.path, f"{name}: {part.path.relative_to(path)}")
    if not parts:
        raise InvalidInput(f"{name}: the folder has no .parquet file")
    return parts


def list_parts(folder: Path) -> list[Path]:
    """List the files below a folder that are read as one table, in the order of their names.

    Links are followed. One that leads nowhere, or to a folder or file that is read anyway, is
    refused: rows would be missing, or be there twice.
    """
    found: list[Path] = []
    seen: dict[str, Path] = {}
    for place, folders, names in os.walk(folder, onerror=_refuse_folder, followlinks=True):
        path = Path(place)
        twin = seen.setdefault(os.path.realpath(path), path)
        if twin != path:
            raise InvalidInput(f"{path}: is the same folder as {twin}, reached through a link")
        folders[:] = sorted(name for name in folders if not _is_hidden(name))
        for name in names:
            if not _is_hidden(name):
                _check_link(path / name)
        found += [path / name for name in names]
    parts = sorted(path for path in found if is_part_name(path.relative_to(folder)))
    _refuse_twins(parts)
    return parts


def _refuse_twins(parts: list[Path]) -> None:
    """Refuse a link to a file that is among the parts, too, under its own name or another link."""
    links = {path: os.path.realpath(path) for path in parts if path.is_symlink()}
    if not links:
        return
    seen = {os.path.realpath(path): path for path in parts if path not in links}
    for path, real in links.items():
        twin = seen.setdefault(real, path)
        if twin != path:
            raise InvalidInput(f"{path}: is the same file as {twin}, reached through a link")


def _refuse_folder(fault: OSError) -> None:
    """Refuse a folder that cannot be listed: `os.walk` would pass it over."""
    raise blame(fault, f"{fault.filename}: cannot be read: {fault.strerror}") from fault


def _check_link(path: Path) -> None:
    try:
        path.stat()
    except OSError as fault:
        raise blame(fault, f"{path}: is a broken link: {fault.strerror}") from fault


def is_part_name(inside: Path) -> bool:
    """Whether a file of this name, seen from a folder, is read with the folder."""
    return inside.suffix.lower() in SUFFIXES and not any(map(_is_hidden, inside.parts))


def _is_hidden(name: str) -> bool:
    return name.startswith(("_", "."))


def _partition_values(inside: Path) -> dict[str, str | None]:
    """Read the values in folder names such as `day=2024-05-01`, as Spark's partitionBy has them."""
    values = {}
    for folder in inside.parts[:-1]:
        key, equals, text = folder.partition("=")
        if equals:
            values[unquote(key)] = None if text == NULL_PARTITION else unquote(text)
    return values


def _partition_schema(parts: list[TablePart], name: str) -> pa.Schema:
    """Find the columns that folder names state: 64-bit integers if all are, otherwise text."""
    keys = list(parts[0].partition)
    for part in parts:
        if list(part.partition) != keys:
            raise InvalidInput(
                f"{name}: {part.path.name} is in folders that are named differently from those of "
                "the other files"
            )
    fields = []
    for key in keys:
        texts = pa.array([part.partition[key] for part in parts], pa.string())
        fields.append(pa.field(key, pa.int64() if _are_integers(texts) else pa.string()))
    return pa.schema(fields)


def _are_integers(texts: pa.Array) -> bool:
    """Whether every text is the one spelling of a 64-bit integer, so that nothing is lost."""
    try:
        return bool(texts.cast(pa.int64()).cast(pa.string()).equals(texts))
    except pa.ArrowInvalid:
        return False


def _read_footers(parts: list[TablePart], name: str) -> tuple[pa.Schema, int]:
    """Read the common schema, and the number of rows of all parts."""
    schema: pa.Schema | None = None
    count = 0
    for part in parts:
        try:
            part_count = read_footer(part.path, _place(part, parts, name)).rows
            with pq.ParquetFile(as_source(part.path)) as file:
                # The footer's own metadata: a writer may add to it after the schema is written.
                part_schema = file.schema_arrow.with_metadata(file.metadata.metadata or {})
            check_names(part_schema, _place(part, parts, name))
        except (pa.ArrowException, OSError, UnicodeDecodeError) as fault:
            what = "cannot be read" if is_of_machine(fault) else "not a Parquet file"
            raise blame(fault, f"{_place(part, parts, name)}: {what}: {fault}") from fault
        schema = schema or part_schema
        if _columns(part_schema) != _columns(schema):
            raise InvalidInput(
                f"{name}: {part.path.name} does not have the columns of {parts[0].path.name}: "
                f"{_differences(part_schema, schema)}"
            )
        _check_geometries(part_schema, schema, part, parts, name)
        count += part_count
    assert schema is not None
    return schema, count


def _check_geometries(
    own: pa.Schema, first: pa.Schema, part: TablePart, parts: list[TablePart], name: str
) -> None:
    """Refuse a part whose geometries are in another coordinate system, or other columns."""
    if own.metadata == first.metadata:
        return
    ours, theirs = lay_out(own, None, _place(part, parts, name)), lay_out(first, None, name)
    place = f"{name}: {part.path.name}"
    if not any(geometry.edges for geometry in theirs.geometries):
        warn_of_edges(ours.geometries, place)
    if ours.geometry_columns != theirs.geometry_columns:
        raise InvalidInput(
            f"{place} has geometries in {listed(ours.geometry_columns) or 'no column'}, "
            f"{parts[0].path.name} in {listed(theirs.geometry_columns) or 'none'}"
        )
    systems = [layout.crs or "no stated coordinate system" for layout in (ours, theirs)]
    is_same = ours.crs == theirs.crs or (
        ours.crs is not None and theirs.crs is not None and is_same_crs(ours.crs, theirs.crs)
    )
    if not is_same:
        raise InvalidInput(
            f"{place} is in {systems[0]:.60}, {parts[0].path.name} in {systems[1]:.60}; "
            "reproject one of them"
        )


def _place(part: TablePart, parts: list[TablePart], name: str) -> str:
    return name if len(parts) == 1 else f"{name}: {part.path.name}"


def _differences(a: pa.Schema, b: pa.Schema) -> str:
    different = set(_columns(a)) ^ set(_columns(b))
    return ", ".join(sorted(different)) or "the same in another order"


def _columns(schema: pa.Schema) -> list[str]:
    return [f"{field.name}: {field.type}" for field in schema]


def _read_part(
    part: TablePart, wanted: list[str], batch_rows: int, place: str
) -> Iterator[pa.RecordBatch]:
    footer = read_footer(part.path, place)
    if not wanted:
        for first in range(0, footer.rows, batch_rows):
            rows = min(batch_rows, footer.rows - first)
            yield pa.RecordBatch.from_struct_array(pa.nulls(rows, pa.struct([])))
        return
    with pq.ParquetFile(as_source(part.path)) as file:
        facts, schema = file.metadata, file.schema_arrow
    plan = plan_reading(part.path, facts, footer, wanted, batch_rows, place)
    received = 0
    # A buffer would keep all it has read.
    with pq.ParquetFile(
        as_source(part.path), metadata=facts, pre_buffer=False, read_dictionary=plan.packed
    ) as file:
        for batch in _iterate(file, plan.rows, wanted, len(footer.group_rows)):
            received += batch.num_rows
            yield from _unpack(batch, schema) if plan.packed else [batch]
    if received != footer.rows:
        raise InvalidInput(f"{place}: has {received:,} rows, but its footer states {footer.rows:,}")


def _iterate(
    file: "pq.ParquetFile", rows: int, wanted: list[str], groups: int
) -> Iterator[pa.RecordBatch]:
    """Yield some columns in batches; those of several row groups in one where Arrow can do so.

    It joins no dictionaries that are inside structs or lists.
    """
    parts = (file.schema_arrow.field(name).type for name in wanted)
    if not any(_has_inner_dictionary(kind) for kind in parts):
        yield from file.iter_batches(rows, columns=wanted, use_threads=False)
        return
    for group in range(groups):
        yield from file.iter_batches(rows, row_groups=[group], columns=wanted, use_threads=False)


def _has_inner_dictionary(kind: pa.DataType) -> bool:
    inside = [kind.field(i).type for i in range(kind.num_fields)]
    return any(pa.types.is_dictionary(part) or _has_inner_dictionary(part) for part in inside)


def _unpack(batch: pa.RecordBatch, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a batch with the types of the file, where some are in dictionaries."""
    for piece, _ in cut_rows(batch, batch.schema.names):
        rows = pa.array(np.arange(piece.num_rows))
        columns = []
        for name, column in zip(piece.schema.names, piece.columns, strict=True):
            kind = schema.field(name).type
            is_same = column.type == kind or pa.types.is_dictionary(column.type)
            # Else only what lies in lists of this piece is cast.
            columns.append(column if is_same else column.take(rows).cast(kind))
        yield pa.RecordBatch.from_arrays(columns, piece.schema.names)


def _with_partition(
    batch: pa.RecordBatch, part: TablePart, stated: list[pa.Field]
) -> pa.RecordBatch:
    for field in stated:
        value = pa.scalar(part.partition[field.name], pa.string()).cast(field.type)
        batch = batch.append_column(field, pa.repeat(value, batch.num_rows))
    return batch
