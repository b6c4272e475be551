"""`contrada match`: a file of events against a file of subscriptions."""

import argparse
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from contrada.cli.apart import box_of_subscriptions
from contrada.cli.drawing import MapSketch, is_page
from contrada.cli.drawn_events import EventReader
from contrada.cli.inputs import name_layers, read_file
from contrada.cli.keep_option import Keeping, check_keep, read_wanted
from contrada.cli.match_options import NEED_SPARK, add_match_parser
from contrada.cli.notes import (
    HasSystem,
    note_outcome,
    note_unknown,
    note_unstated,
    refuse_mismatches,
)
from contrada.cli.outputs import (
    BadRow,
    check_outputs,
    hear_bad,
    open_answer,
    open_bad_rows,
    plain_schema,
    primary_geometry,
    wants_geometry,
)
from contrada.cli.pair_counts import PairCounts
from contrada.cli.progress import bar, require_tqdm, saying
from contrada.cli.report import RARE, MatchReport, RunReport
from contrada.cli.subscription_file import SubscriptionFile, open_subscriptions
from contrada.cli.terminal import STDOUT, show
from contrada.cli.track_options import check_track_options
from contrada.errors import InvalidInput, Remedy
from contrada.files import Rows
from contrada.matcher import Matcher
from contrada.matcher.inside import freeze, plan_run
from contrada.matcher.match_run import MatchedBatch, choose_id_column
from contrada.model.event import paths_of


def add_parser(commands: Any, summary: str) -> None:
    """Describe the command."""
    add_match_parser(commands, summary).set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Match, write, draw and report."""
    started = time.monotonic()
    if options.threads is not None and options.threads < 1:
        raise InvalidInput(f"--threads {options.threads}: must be at least 1")
    require_tqdm()
    name_layers(options)
    check_outputs(options)
    _check_together(options)
    check_track_options(options)
    if options.spark is not None:
        from contrada.cli.spark_match import match_on_spark

        report: RunReport = match_on_spark(options)
    else:
        report = match_here(options)
    report.seconds = time.monotonic() - started
    to_stdout = options.output == STDOUT
    show(report, on_stderr=to_stdout or options.json)
    if options.json:
        show(report.as_json())


def _check_together(options: argparse.Namespace) -> None:
    """Refuse options that mean nothing together with the others."""
    if options.spark is None:
        for name in getattr(options, NEED_SPARK):
            if getattr(options, name):
                raise InvalidInput(f"--{name} needs --spark")
    elif options.threads is not None:
        raise InvalidInput(
            f"--threads {options.threads} cannot be combined with --spark; "
            f"try --spark 'local[{options.threads}]'"
        )
    if options.keep and options.output is None and not is_page(options.map):
        raise InvalidInput(
            f"--keep {options.keep[0]} needs -o, which writes it beside the pairs, "
            "or --map FILE.html, which shows it"
        )
    if options.counts and options.map is not None:
        raise InvalidInput("--map cannot be combined with --counts, which finds no pairs to draw")


def match_here(options: argparse.Namespace) -> RunReport:
    """Match in this process: pairs, or what becomes of objects."""
    with saying(f"reading subscriptions from {options.subscriptions}"):
        subscriptions = open_subscriptions(options)
    rows = open_events(options)
    matcher = Matcher(options.engine)
    with saying(f"reading subscriptions from {options.subscriptions}"):
        subscriptions.add_to(matcher, options)
    note_misfits(options, matcher, subscriptions.rows, rows)
    if not options.transitions:
        return match_pairs(options, matcher, rows, subscriptions)
    from contrada.cli.track_match import match_transitions

    with ExitStack() as stack:
        subscriptions.write_bad(stack, options.quarantine_subscriptions)
        return match_transitions(options, matcher, rows, stack)


def match_pairs(
    options: argparse.Namespace,
    matcher: Matcher,
    rows: Rows,
    subscriptions: SubscriptionFile,
) -> MatchReport:
    """Match batch by batch, and write the pairs."""
    report = MatchReport()
    bad: list[BadRow] = []
    hear = hear_bad(bad)
    kept = read_wanted(options).events.values()
    is_lenient = options.quarantine is not None
    run_ = plan_run(matcher, rows, options.event_id, options.repair, is_lenient, hear, kept)
    keeping = Keeping(options, run_)
    schema = keeping.schema(plain_schema(run_.schema))
    counts = PairCounts(len(matcher))
    sketch = MapSketch(counts, keeping.describe_subscriptions()) if options.map else None
    with ExitStack() as stack:
        crs = rows.crs or matcher.crs
        write = open_answer(stack, options.output, schema, crs, keeping.geometries)
        write_bad = open_bad_rows(stack, options.quarantine, rows.line_finder())
        subscriptions.write_bad(stack, options.quarantine_subscriptions)
        with bar("matching", rows.count, "events") as progress:
            for matched in run_.matched(options.threads):
                pairs = run_.as_pairs(matched)
                events = keeping.events.beside(matched)
                for piece in keeping.pieces(pairs, events, matched.ranks, schema):
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
    find_box = partial(box_of_subscriptions, freeze(matcher), primary_geometry(rows))
    note_outcome(report, find_box, rows)
    return report


def open_events(options: argparse.Namespace) -> Rows:
    """Open the file of events; refuse it if it lacks what is to be written of it."""
    with saying(f"reading events from {options.events}"):
        rows = read_file(options, "events")
    if wants_geometry(options.output) and primary_geometry(rows) not in rows.schema.names:
        raise InvalidInput(
            f"{options.output}: {rows.name} has no geometry to write there; write .parquet instead"
        )
    check_keep(options, rows)
    return rows


def note_misfits(
    options: argparse.Namespace, matcher: Matcher, subscriptions: HasSystem, events: Rows
) -> None:
    """Note, or with `--strict` refuse, what subscriptions ask for and events do not have."""
    note_unstated(matcher, subscriptions, events)
    note_unknown(matcher, events, options.strict)
    if options.strict:
        refuse_mismatches(matcher, events)


def fill(report: MatchReport, matcher: Matcher, options: argparse.Namespace) -> None:
    """Take the figures that the matcher kept, and name the files."""
    stats = matcher.stats()
    report.subscriptions = stats["subscriptions"] + stats["subscriptions_left_out"]
    for name, count in report.figures().items():
        if name.endswith(RARE) and count is not None:
            setattr(report, name, count + stats[name])
    for name in ("output", "quarantine", "quarantine_subscriptions", "map"):
        path = getattr(options, name)
        if path and path != STDOUT:
            report.files[name] = path


def draw(
    sketch: MapSketch,
    matcher: Matcher,
    rows: Rows,
    report: MatchReport,
    options: argparse.Namespace,
) -> None:
    """Draw the map of a run, named after its files."""
    title = f"{Path(options.events).stem} over {Path(options.subscriptions).stem}"
    frozen = freeze(matcher)
    read = {path for name in frozen.attributes for path in paths_of(name)}
    first = read.union(read_wanted(options).events.values())
    id_column = choose_id_column(rows, options.event_id, Remedy.EVENT_ID)
    summary = {
        name: getattr(report, name.replace(" ", "_"))
        for name in ("subscriptions", "events", "matches", "events matched")
    }
    with saying(f"drawing {options.map}"):
        geometry = primary_geometry(rows)
        known = rows.identified(id_column)
        reader = EventReader(known, id_column, geometry, first=first, repair=options.repair)
        subscriptions = sorted(frozen, key=lambda subscription: subscription.id)
        sketch.draw(options.map, title, subscriptions, reader, summary)


def _count(report: MatchReport, matched: MatchedBatch, counts: PairCounts) -> None:
    report.events += matched.events.batch.length
    report.matches += len(matched.rows)
    counts.add(matched.events.first_row + matched.rows, matched.ranks)
