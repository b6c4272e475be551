"""The files that `contrada match` writes: pairs, and bad rows of events and subscriptions.

What can be refused about them is refused before anything runs.
"""

import argparse
from collections.abc import Callable, Collection
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa

from contrada.cli.drawing import check_map_path
from contrada.cli.overwriting import refuse_overwriting
from contrada.cli.remedies import naming
from contrada.cli.terminal import STDOUT, stdout_bytes, writing_stdout
from contrada.files import Output, Rows, open_output
from contrada.files.text_writer import CsvWriter
from contrada.matching.subscribing import HearBad
from contrada.model.event import GEOMETRY
from contrada.model.subscription import Id

BadRow = tuple[int, str | None, str]  # its number, its id, and the reason
BAD_ROWS = pa.schema(
    [("row", pa.int64()), ("line", pa.int64()), ("id", pa.string()), ("reason", pa.string())]
)

Write = Callable[[pa.RecordBatch], None]
FindLine = Callable[[int], int | None]


def check_outputs(options: argparse.Namespace) -> None:
    """Refuse files that cannot be written, that are inputs as well, or that are asked for twice."""
    outputs = {}
    for name in ("output", "quarantine", "quarantine_subscriptions", "map"):
        path = getattr(options, name)
        if path is None or (name == "output" and path == STDOUT):
            continue
        option = f"--{name.replace('_', '-')}"
        with naming(option):
            _check_path(name, path)
        outputs[option] = path
    refuse_overwriting((options.subscriptions, options.events), outputs)


def _check_path(name: str, path: str) -> None:
    if name == "map":
        check_map_path(path)
    elif name.startswith("quarantine"):
        open_output(path, BAD_ROWS)
    else:
        names = ["event", *([GEOMETRY] if wants_geometry(path) else [])]
        _open_pairs_file(path, pa.schema([(name, pa.binary()) for name in names]), None, ())


def wants_geometry(path: str | None) -> bool:
    """Whether an output carries the events' geometry."""
    return path is not None and Path(path).suffix.lower() == ".geoparquet"


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema of pairs as they are written, given that in which they are found."""
    return pa.schema(
        [
            pa.field("event", schema.field("event").type),
            pa.field("subscription", schema.field("subscription").type.value_type),
        ]
    )


def open_answer(
    stack: ExitStack,
    path: str | None,
    schema: pa.Schema,
    crs: str | None,
    geometries: Collection[str] = (),
) -> Write:
    """Open the output for rows of a schema, of which some columns hold geometries as WKB.

    Gives the function that writes a batch.
    """
    if path is None:
        return lambda _: None
    if path == STDOUT:
        return _write_to_stdout(schema, geometries)
    output = stack.enter_context(_open_pairs_file(path, schema, crs, geometries))
    return output.write


def _write_to_stdout(schema: pa.Schema, geometries: Collection[str]) -> Write:
    with writing_stdout():
        writer = CsvWriter(stdout_bytes(), schema, geometries, STDOUT)

    def write(batch: pa.RecordBatch) -> None:
        with writing_stdout():
            writer.write(pa.table(batch))

    return write


def _open_pairs_file(
    path: str, schema: pa.Schema, crs: str | None, geometries: Collection[str]
) -> Output:
    primary = GEOMETRY if wants_geometry(path) else None
    others = [name for name in geometries if name != primary]
    return open_output(path, schema, geometry_column=primary, more_geometries=others, crs=crs)


def open_bad_rows(
    stack: ExitStack, path: str | None, find_line: FindLine
) -> Callable[[list[BadRow]], None]:
    """Open the quarantine; return the function that writes bad rows of a file to it.

    `find_line` finds the line at which a row begins, None where there are no lines.
    """
    if path is None:
        return lambda _: None
    output = stack.enter_context(open_output(path, BAD_ROWS))

    def write(bad: list[BadRow]) -> None:
        described = [(row, find_line(row), id_, reason) for row, id_, reason in sorted(bad)]
        columns = zip(*described, strict=True) if described else ((),) * len(BAD_ROWS)
        arrays = [pa.array(c, f.type) for c, f in zip(columns, BAD_ROWS, strict=True)]
        output.write(pa.table(arrays, schema=BAD_ROWS))

    return write


def hear_bad(bad: list[BadRow]) -> HearBad:
    """Return the function that records the rows that are left out, not those that are mended."""

    def hear(row: int, id_: Id | None, reason: str, is_mended: bool) -> None:
        if not is_mended:
            bad.append((row, None if id_ is None else str(id_), reason))

    return hear


def primary_geometry(rows: Rows) -> str:
    """Name the geometry that is drawn and written for an event."""
    return (
        GEOMETRY if GEOMETRY in rows.schema.names else next(iter(rows.geometry_columns), GEOMETRY)
    )
