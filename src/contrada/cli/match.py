"""`contrada match`: a file of events against a file of subscriptions."""

import argparse
import time
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa

from contrada.cli.drawing import MapSketch
from contrada.cli.drawn_events import EventReader
from contrada.cli.outputs import (
    STDOUT,
    BadRow,
    check_outputs,
    open_bad_rows,
    open_pairs,
    primary_geometry,
    wants_geometry,
    with_geometry,
)
from contrada.cli.pair_counts import PairCounts
from contrada.cli.progress import bar, require_tqdm, saying
from contrada.cli.report import Report
from contrada.cli.terminal import one_line, say, show
from contrada.errors import InvalidInput
from contrada.files import Rows, read_rows
from contrada.matcher import Matcher
from contrada.matcher.run import MatchedBatch, choose_id_column
from contrada.matching.engines import ENGINES
from contrada.model.event import GEOMETRY, paths_of
from contrada.model.subscription import Id
from contrada.showing import listed


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
    parser.add_argument("--id", metavar="COLUMN", help="column of subscription ids (default: id)")
    parser.add_argument("--event-id", metavar="COLUMN", help="column of event ids (default: id)")
    parser.add_argument("--threads", type=int, metavar="N", help="default: one for each core")
    parser.add_argument("--repair", action="store_true", help="mend invalid geometries")
    parser.add_argument(
        "--strict", action="store_true", help="refuse constraints on columns that no event has"
    )
    parser.add_argument("--quarantine", metavar="FILE", help="write bad event rows here and go on")
    parser.add_argument("--map", metavar="FILE", help="draw the result: .html (offline) or .png")
    parser.add_argument("--json", action="store_true", help="end stdout with one JSON object")
    parser.add_argument("--spark", metavar="MASTER", help="run on Spark, e.g. 'local[*]'")
    _add_spark_options(parser.add_argument_group("with --spark"))
    parser.set_defaults(run=run)


def _add_spark_options(group: Any) -> None:
    group.add_argument(
        "--plan",
        choices=("auto", "broadcast", "partitioned"),
        help="subscriptions to every worker, or to their part of the map",
    )
    group.add_argument(
        "--evaluator", choices=("exact", "area"), help="area: the AHS paper's approximate answer"
    )
    group.add_argument(
        "--keep",
        action="append",
        metavar="COLUMN",
        help="a column of the events to write beside the pairs; may be given several times",
    )
    group.add_argument(
        "--counts", action="store_true", help="write each event with its number of matches, n"
    )
    group.add_argument("--explain", action="store_true", help="say which plan is taken and why")
    add_conf(group)


def add_conf(parser: Any) -> None:
    """Let the user set what Spark has settings for."""
    parser.add_argument(
        "--conf",
        action="append",
        metavar="KEY=VALUE",
        help="a setting of Spark, e.g. spark.contrada.staging=file:///shared; may be given "
        "several times",
    )


def run(options: argparse.Namespace) -> None:
    """Match, write, draw and report."""
    started = time.monotonic()
    if options.threads is not None and options.threads < 1:
        raise InvalidInput(f"--threads {options.threads}: must be at least 1")
    require_tqdm()
    check_outputs(options)
    _check_together(options)
    if options.spark is not None:
        from contrada.cli.spark_match import match_on_spark

        report = match_on_spark(options)
    else:
        report = match_here(options)
    report.seconds = time.monotonic() - started
    to_stdout = options.output == STDOUT
    show(report, on_stderr=to_stdout or options.json)
    if options.json:
        show(report.as_json())


def _check_together(options: argparse.Namespace) -> None:
    """Refuse options that mean nothing beside the others."""
    if options.spark is None:
        for name in ("plan", "evaluator", "keep", "counts", "explain", "conf"):
            if getattr(options, name):
                raise InvalidInput(f"--{name} goes with --spark")
    elif options.threads is not None:
        raise InvalidInput(
            f"--threads {options.threads} does not go with --spark; "
            f"try --spark 'local[{options.threads}]'"
        )
    if options.counts and options.map is not None:
        raise InvalidInput("--map does not go with --counts, which finds no pairs to draw")


def match_here(options: argparse.Namespace) -> Report:
    """Match in this process, batch by batch."""
    matcher, rows = load(options)
    report = Report()
    bad: list[BadRow] = []

    def hear(row: int, id_: Id | None, reason: str) -> None:
        if not reason.startswith("mended: "):
            bad.append((row, None if id_ is None else str(id_), reason))

    run_ = matcher.run(rows, options.event_id, options.repair, options.quarantine is not None, hear)
    counts = PairCounts(len(matcher))
    sketch = MapSketch(counts) if options.map else None
    with ExitStack() as stack:
        write = open_pairs(stack, options.output, run_.schema, rows.crs or matcher.crs)
        write_bad = open_bad_rows(stack, options.quarantine)
        with bar("matching", rows.count, "events") as progress:
            for matched in run_.matched(options.threads):
                pairs = run_.as_pairs(matched)
                for piece in _pieces(pairs, matched, rows, options.output):
                    write(piece)
                write_bad(bad)
                bad.clear()
                _count(report, matched, counts)
                if sketch is not None:
                    sketch.add_batch(matched, primary_geometry(rows))
                progress.update(matched.events.batch.length)
        report.events_matched = counts.events_matched
        report.subscriptions_matched = counts.subscriptions_matched
        fill(report, matcher, options)
        if sketch is not None:
            draw(sketch, matcher, rows, report, options)
    return report


def load(options: argparse.Namespace) -> tuple[Matcher, Rows]:
    """Open the events and read the subscriptions."""
    matcher = Matcher(options.engine)
    with saying(f"reading events from {options.events}"):
        rows = read_rows(options.events)
    if wants_geometry(options.output) and primary_geometry(rows) not in rows.schema.names:
        raise InvalidInput(
            f"{options.output}: {rows.name} has no geometry to write there; write .parquet instead"
        )
    with saying(f"reading subscriptions from {options.subscriptions}"):
        matcher.add_many(options.subscriptions, id=options.id, repair=options.repair)
    _note_unknown(matcher, rows, options.strict)
    return matcher, rows


def _note_unknown(matcher: Matcher, rows: Rows, strict: bool) -> None:
    """Say which attributes no event can have, or refuse them: likely a name that is misspelt."""
    known = {*rows.schema.names, *([GEOMETRY] if rows.geometry_columns else [])}
    names = sorted(matcher.freeze().attributes)
    unknown = [repr(name) for name in names if known.isdisjoint(paths_of(name))]
    if unknown:
        message = (
            f"subscriptions speak of {', '.join(unknown)}, which no event has; "
            f"{rows.name} has {listed(rows.schema.names)}"
        )
        if strict:
            raise InvalidInput(message)
        say(f"note: {one_line(message)}")


def fill(report: Report, matcher: Matcher, options: argparse.Namespace) -> None:
    """Take the figures that the matcher kept, and name the files."""
    stats = matcher.stats()
    report.subscriptions = stats["subscriptions"]
    for name, count in report.figures().items():
        if name.endswith(("mended", "left_out")) and count is not None:
            setattr(report, name, count + stats[name])
    for name in ("output", "quarantine", "map"):
        path = getattr(options, name)
        if path and path != STDOUT:
            report.files[name] = path


def draw(
    sketch: MapSketch,
    matcher: Matcher,
    rows: Rows,
    report: Report,
    options: argparse.Namespace,
) -> None:
    """Draw the map of a run, named after its files."""
    title = f"{Path(options.events).stem} over {Path(options.subscriptions).stem}"
    frozen = matcher.freeze()
    read = {path for name in frozen.attributes for path in paths_of(name)}
    id_column = choose_id_column(rows, options.event_id)
    summary = {
        name: getattr(report, name.replace(" ", "_"))
        for name in ("subscriptions", "events", "matches", "events matched")
    }
    with saying(f"drawing {options.map}"):
        geometry = primary_geometry(rows)
        reader = EventReader(rows, id_column, geometry, first=read, repair=options.repair)
        subscriptions = sorted(frozen, key=lambda subscription: subscription.id)
        sketch.draw(options.map, title, subscriptions, reader, summary)


def _pieces(
    pairs: pa.RecordBatch, matched: MatchedBatch, rows: Rows, output: str | None
) -> Iterable[pa.RecordBatch]:
    if not wants_geometry(output):
        return [pairs]
    column = matched.events.batch.column(primary_geometry(rows))
    assert column is not None, "refused by load"
    return with_geometry(pairs, column, matched.rows)


def _count(report: Report, matched: MatchedBatch, counts: PairCounts) -> None:
    report.events += matched.events.batch.length
    report.matches += len(matched.rows)
    counts.add(matched.events.first_row + matched.rows, matched.ranks)
