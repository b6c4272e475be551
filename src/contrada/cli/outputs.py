"""The files that `contrada match` writes: pairs, and bad event rows.

What can be refused about them is refused before anything runs.
"""

import argparse
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import shapely
from numpy.typing import NDArray

from contrada.cli.drawing import check_map_path
from contrada.cli.overwriting import refuse_overwriting
from contrada.cli.terminal import stdout_bytes, writing_stdout
from contrada.files import Output, Rows, open_output
from contrada.files.text_writer import CsvWriter
from contrada.matching.columns import keep_readable
from contrada.model.encodings import read_wkts
from contrada.model.event import GEOMETRY

BadRow = tuple[int | None, str | None, str]
BAD_ROWS = pa.schema([("row", pa.int64()), ("id", pa.string()), ("reason", pa.string())])
STDOUT = "-"

Write = Callable[[pa.RecordBatch], None]

_GEOMETRY_BYTES_MAX = 32 * 2**20


def check_outputs(options: argparse.Namespace) -> None:
    """Refuse files that cannot be written, that are inputs as well, or that are asked for twice."""
    outputs = {}
    for name in ("output", "quarantine", "map"):
        path = getattr(options, name)
        if path is None or (name == "output" and path == STDOUT):
            continue
        if name == "map":
            check_map_path(path)
        elif name == "quarantine":
            open_output(path, BAD_ROWS)
        else:
            _open_pairs_file(path, pa.schema([("event", pa.int64())]), None)
        outputs[f"--{name}"] = path
    refuse_overwriting((options.subscriptions, options.events), outputs)


def wants_geometry(path: str | None) -> bool:
    """Tell whether an output carries the events' geometry."""
    return path is not None and Path(path).suffix.lower() == ".geoparquet"


def open_pairs(stack: ExitStack, path: str | None, schema: pa.Schema, crs: str | None) -> Write:
    """Open the output for pairs; give the function that writes a batch of them."""
    return open_answer(stack, path, plain_schema(schema), crs)


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Give the schema of pairs as they are written, of that as which they are found."""
    return pa.schema(
        [
            pa.field("event", schema.field("event").type),
            pa.field("subscription", schema.field("subscription").type.value_type),
        ]
    )


def open_answer(stack: ExitStack, path: str | None, plain: pa.Schema, crs: str | None) -> Write:
    """Open the output for rows of a schema, to which a geometry is added where it has one."""
    if path is None:
        return lambda _: None
    if path == STDOUT:
        return _write_to_stdout(plain)
    output = stack.enter_context(_open_pairs_file(path, plain, crs))
    return output.write


def _write_to_stdout(plain: pa.Schema) -> Write:
    with writing_stdout():
        writer = CsvWriter(stdout_bytes(), plain, None, STDOUT)

    def write(batch: pa.RecordBatch) -> None:
        with writing_stdout():
            writer.write(pa.table(batch))

    return write


def _open_pairs_file(path: str, plain: pa.Schema, crs: str | None) -> Output:
    if not wants_geometry(path):
        return open_output(path, plain)
    schema = plain.append(pa.field(GEOMETRY, pa.binary()))
    return open_output(path, schema, geometry_column=GEOMETRY, crs=crs)


def open_bad_rows(stack: ExitStack, path: str | None) -> Callable[[list[BadRow]], None]:
    """Open the quarantine; give the function that writes bad rows to it."""
    if path is None:
        return lambda _: None
    output = stack.enter_context(open_output(path, BAD_ROWS))

    def write(bad: list[BadRow]) -> None:
        columns = zip(*bad, strict=True) if bad else ((), (), ())
        arrays = [pa.array(c, f.type) for c, f in zip(columns, BAD_ROWS, strict=True)]
        output.write(pa.table(arrays, schema=BAD_ROWS))

    return write


def primary_geometry(rows: Rows) -> str:
    """Name the geometry that is drawn and written for an event."""
    return (
        GEOMETRY if GEOMETRY in rows.schema.names else next(iter(rows.geometry_columns), GEOMETRY)
    )


def with_geometry(
    pairs: pa.RecordBatch, column: pa.Array, rows: NDArray[np.int64]
) -> Iterator[pa.RecordBatch]:
    """Put geometries beside pairs: that of row `rows[i]` of the column beside pair i.

    A large event with many matches is written as often, so the pairs come in pieces.
    """
    wkb = as_wkb(column)
    sizes = pc.fill_null(pc.binary_length(wkb), 0).to_numpy(zero_copy_only=False)[rows]
    pieces = np.cumsum(sizes, dtype=np.int64) // _GEOMETRY_BYTES_MAX
    starts = np.flatnonzero(np.diff(pieces, prepend=-1)).tolist()
    for start, end in pairwise([*starts, len(rows)]):
        geometry = wkb.take(pa.array(rows[start:end])).cast(pa.binary())
        yield pairs.slice(start, end - start).append_column(GEOMETRY, geometry)


def as_wkb(column: pa.Array) -> pa.Array:
    """Give a column of geometries as WKB; what is none, which nobody judged, becomes null."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
        return keep_readable(column)
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return pa.nulls(len(column), pa.binary())
    texts = np.array(column.to_pylist(), object)
    return pa.array(shapely.to_wkb(read_wkts(texts, on_invalid="ignore")), pa.binary())
