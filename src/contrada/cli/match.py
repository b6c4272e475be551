"""`contrada match`: a file of events against a file of subscriptions."""

import argparse
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv

from contrada.cli.drawing import MapSketch, check_map_path
from contrada.cli.progress import bar, say
from contrada.cli.report import Report
from contrada.files import Rows, open_output, read_rows
from contrada.matcher import ENGINES, Matcher
from contrada.matcher.run import MatchedBatch
from contrada.model.event import GEOMETRY
from contrada.model.subscription import Id

BadRow = tuple[int | None, str, str]
BAD_ROWS = pa.schema([("row", pa.int64()), ("id", pa.string()), ("reason", pa.string())])
Write = Callable[[pa.RecordBatch], None]


def add_parser(commands: Any) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "match",
        help="match events against subscriptions",
        description="Match each event of a file against the subscriptions of another. Files are "
        "GeoParquet, GeoJSON, newline-delimited GeoJSON, FlatGeobuf, GeoPackage or CSV.",
    )
    parser.add_argument("subscriptions", metavar="SUBSCRIPTIONS", help="one subscription a row")
    parser.add_argument("events", metavar="EVENTS", help="one event a row")
    parser.add_argument(
        "-o",
        "--output",
        metavar="OUT",
        help="where the pairs go: .parquet, .geoparquet (with the events' geometry), .csv, .jsonl, "
        "or - for CSV on stdout",
    )
    parser.add_argument("--engine", default="strtree", help=f"{', '.join(ENGINES)}")
    parser.add_argument("--spark", metavar="MASTER", help="run on Spark, e.g. 'local[*]'")
    parser.add_argument("--id", metavar="COLUMN", help="column of subscription ids (default: id)")
    parser.add_argument("--event-id", metavar="COLUMN", help="column of event ids (default: id)")
    parser.add_argument("--threads", type=int, metavar="N", help="default: one for each core")
    parser.add_argument("--repair", action="store_true", help="mend invalid geometries")
    parser.add_argument("--quarantine", metavar="FILE", help="write bad event rows here and go on")
    parser.add_argument("--map", metavar="FILE", help="draw the result: .html (offline) or .png")
    parser.add_argument("--json", action="store_true", help="end stdout with one JSON object")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Match, write, draw and report."""
    started = time.monotonic()
    if options.map:
        check_map_path(options.map)
    if options.spark is not None:
        from contrada.cli.spark_match import match_on_spark

        report = match_on_spark(options)
    else:
        report = match_here(options)
    report.seconds = time.monotonic() - started
    to_stdout = options.output == "-"
    print(report, file=sys.stderr if to_stdout or options.json else sys.stdout)
    if options.json:
        print(report.as_json())


def match_here(options: argparse.Namespace) -> Report:
    """Match in this process, batch by batch."""
    matcher, report = load(options), Report()
    rows = read_rows(options.events)
    bad: list[BadRow] = []
    run_ = matcher.run(
        rows,
        options.event_id,
        options.repair,
        options.quarantine is not None,
        lambda row, id_, reason: bad.append((row, str(id_), reason)),
    )
    sketch = MapSketch(rows.count) if options.map else None
    matched_ids: set[Id] = set()
    with ExitStack() as stack:
        write = open_pairs(stack, options.output, run_.schema, rows)
        write_bad = open_bad_rows(stack, options.quarantine)
        progress = stack.enter_context(bar("matching", rows.count, "events"))
        for matched in run_.matched(options.threads):
            pairs = run_.as_pairs(matched)
            if wants_geometry(options.output):
                pairs = _with_geometry(pairs, matched, rows)
            write(pairs)
            write_bad(bad)
            bad.clear()
            _count(report, matched, pairs, matched_ids)
            if sketch is not None:
                geometry = matched.events.batch.geometry(primary_geometry(rows))
                sketch.add_events(matched.events.ids, matched.events.first_row, geometry)
                sketch.add_pairs(pairs.column(0), pairs.column(1))
            progress.update(matched.events.batch.length)
    fill(report, matcher, options)
    report.subscriptions_matched = len(matched_ids)
    if sketch is not None:
        subscriptions = sorted(matcher.freeze(), key=lambda s: s.id)
        sketch.draw(options.map, title_of(options), subscriptions, matched_ids, report)
    return report


def load(options: argparse.Namespace) -> Matcher:
    """Read the subscriptions."""
    matcher = Matcher(options.engine)
    say(f"reading subscriptions from {options.subscriptions}")
    matcher.add_many(options.subscriptions, id=options.id, repair=options.repair)
    return matcher


def fill(report: Report, matcher: Matcher, options: argparse.Namespace) -> None:
    """Take the figures that the matcher kept, and name the files."""
    stats = matcher.stats()
    report.subscriptions = stats["subscriptions"]
    for name in report.figures():
        if name.endswith(("mended", "left_out")):
            setattr(report, name, getattr(report, name) + stats[name])
    for name in ("output", "quarantine", "map"):
        path = getattr(options, name)
        if path and path != "-":
            report.files[name] = path


def title_of(options: argparse.Namespace) -> str:
    """Name a map after its files."""
    return f"{Path(options.events).stem} over {Path(options.subscriptions).stem}"


def primary_geometry(rows: Rows) -> str:
    """Name the geometry that is drawn and written for an event."""
    return (
        GEOMETRY if GEOMETRY in rows.schema.names else next(iter(rows.geometry_columns), GEOMETRY)
    )


def wants_geometry(path: str | None) -> bool:
    """Tell whether an output carries the events' geometry."""
    return path is not None and Path(path).suffix.lower() == ".geoparquet"


def open_pairs(stack: ExitStack, path: str | None, schema: pa.Schema, rows: Rows) -> Write:
    """Open the output for pairs; give the function that writes a batch of them."""
    if path is None:
        return lambda _: None
    fields = [
        pa.field("event", schema.field("event").type),
        pa.field("subscription", schema.field("subscription").type.value_type),
    ]
    if path == "-":
        writer = stack.enter_context(pyarrow.csv.CSVWriter(sys.stdout.buffer, pa.schema(fields)))
        return lambda batch: writer.write(pa.table(batch.select([0, 1])).cast(pa.schema(fields)))
    with_geometry = wants_geometry(path)
    if with_geometry:
        fields.append(pa.field(GEOMETRY, pa.binary()))
    output = stack.enter_context(
        open_output(
            path,
            pa.schema(fields),
            geometry_column=GEOMETRY if with_geometry else None,
            crs=rows.crs,
        )
    )
    return lambda batch: output.write(batch.select(range(len(fields))))


def open_bad_rows(stack: ExitStack, path: str | None) -> Callable[[list[BadRow]], None]:
    """Open the quarantine; give the function that writes bad rows to it."""
    if path is None:
        return lambda _: None
    output = stack.enter_context(open_output(path, BAD_ROWS))

    def write(bad: list[BadRow]) -> None:
        rows = [row for row in bad if not row[2].startswith("mended: ")]
        columns = zip(*rows, strict=True) if rows else ((), (), ())
        output.write(
            pa.table(
                [pa.array(c, f.type) for c, f in zip(columns, BAD_ROWS, strict=True)],
                schema=BAD_ROWS,
            )
        )

    return write


def _with_geometry(pairs: pa.RecordBatch, matched: MatchedBatch, rows: Rows) -> pa.RecordBatch:
    """Put the events' geometry beside the pairs."""
    column = matched.events.batch.column(primary_geometry(rows))
    if column is None or not (
        pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type)
    ):
        shapes = matched.events.batch.geometry(primary_geometry(rows)).take(matched.rows)
        import shapely

        geometry = pa.array(shapely.to_wkb(shapes), pa.binary())
    else:
        geometry = column.take(pa.array(matched.rows)).cast(pa.binary())
    return pairs.append_column(GEOMETRY, geometry)


def _count(
    report: Report, matched: MatchedBatch, pairs: pa.RecordBatch, matched_ids: set[Id]
) -> None:
    report.events += matched.events.batch.length
    report.matches += len(matched.rows)
    report.events_matched += len(np.unique(matched.rows))
    matched_ids.update(pairs.column(1).unique().to_pylist())
