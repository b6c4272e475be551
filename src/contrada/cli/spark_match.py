"""`contrada match --spark`: the same command on Spark."""

import argparse
import heapq
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from contrada.arrays import Positions
from contrada.cli.drawing import MapSketch
from contrada.cli.inputs import refuse_missing
from contrada.cli.keep_option import Keeping, read_wanted
from contrada.cli.match import draw, fill, note_misfits, open_events
from contrada.cli.match_options import SPARK_CHOICES
from contrada.cli.notes import note_outcome
from contrada.cli.outputs import (
    BadRow,
    open_answer,
    open_bad_rows,
    plain_schema,
    primary_geometry,
)
from contrada.cli.pair_counts import PairCounts
from contrada.cli.progress import spark_jobs
from contrada.cli.report import MatchReport
from contrada.cli.spark_source import ROW, Source, find_carried_type, restore
from contrada.cli.spark_start import (
    check_master,
    our_errors,
    our_log,
    read_conf,
    shared_folder,
    start,
)
from contrada.cli.spark_subscriptions import stage_file
from contrada.cli.terminal import say
from contrada.deferred import compute as pc
from contrada.deferred import parquet as pq
from contrada.errors import InvalidInput, Remedy
from contrada.files import Rows
from contrada.matcher import Matcher
from contrada.matcher.inside import freeze, plan_run
from contrada.matcher.keeping import KeptSide, resolve
from contrada.matcher.match_run import MatchRun
from contrada.matching.engines import DEFAULT_ENGINE
from contrada.matching.writing import as_wkb
from contrada.model.event import paths_of
from contrada.model.subscription import Id
from contrada.spark_options import SparkOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from contrada.spark import EventCounts
    from contrada.spark.match import StagedSubscriptions

_MATCHES = "matches"
_ANSWER_ROWS, _ANSWER_ROWS_IF_WIDE = 65_536, 1_024
_N = pa.field("n", pa.int64())
_NO_RANKS: Positions = np.zeros(0, np.int64)


def match_on_spark(options: argparse.Namespace) -> MatchReport:
    """Match through `contrada.spark.match`; the answer goes to the same files as without Spark."""
    if options.engine != DEFAULT_ENGINE:
        raise InvalidInput(f"--engine {options.engine} cannot be combined with --spark")
    check_master("--spark", options.spark)
    config = read_conf(options.conf)
    refuse_missing(options)
    events = open_events(options)
    for column in read_wanted(options).events.values():
        find_carried_type(events, resolve(column, events))  # before Spark starts
    with our_log():
        say(f"starting Spark on {options.spark}")
        spark = start(options.spark, config, "starting Spark")
        with tempfile.TemporaryDirectory(prefix="contrada-", dir=shared_folder(spark)) as folder:
            return _match(spark, options, events, Path(folder))


def _match(
    spark: "SparkSession", options: argparse.Namespace, events: Rows, folder: Path
) -> MatchReport:
    """Match with the help of a folder that all machines reach."""
    with our_errors(), spark_jobs(spark, f"reading {options.subscriptions} on Spark"):
        subscriptions = stage_file(spark, options, events, folder)
    matcher = subscriptions.matcher
    note_misfits(options, matcher, subscriptions.survey, events)
    run = _plan_run(matcher, events, options)
    keeping = Keeping(options, run)
    source = _open_source(options, events, matcher, run, keeping)
    with our_errors(run):
        counts = _run(spark, options, source, subscriptions.staged, folder)
        report = MatchReport(
            events=counts.events + len(source.bad),
            events_left_out=counts.set_aside + len(source.bad),
            events_mended=counts.mended,
            events_without_geometry=counts.without_geometry,
        )
        with ExitStack() as stack:
            subscriptions.write_bad(stack, options.quarantine_subscriptions)
            _collect(options, matcher, source, events, folder / _MATCHES, run, keeping, report)
    find_box = partial(subscriptions.find_box, spark, primary_geometry(events))
    note_outcome(report, find_box, events)
    return report


def _open_source(
    options: argparse.Namespace, events: Rows, matcher: Matcher, run: MatchRun, keeping: Keeping
) -> Source:
    """Take of the events what subscriptions read and what is kept."""
    return Source(
        events,
        options.events,
        options.event_id,
        Remedy.EVENT_ID,
        {path for name in freeze(matcher).attributes for path in paths_of(name)},
        list(dict.fromkeys(keeping.events.columns.values())),
        quarantine=options.repair or options.quarantine is not None,
        refuse_before=run.refuse_bad_before,
    )


def _run(
    spark: "SparkSession",
    options: argparse.Namespace,
    source: Source,
    subscriptions: "StagedSubscriptions",
    folder: Path,
) -> "EventCounts":
    """Let Spark write the answer into a folder; return its counts, which must add up."""
    import contrada.spark
    from contrada.spark.explain import explain_job
    from contrada.spark.match import plan_match

    events = source.frame(spark, folder / "events.parquet")
    stated = {name: getattr(options, name) for name in SPARK_CHOICES}
    wanted = SparkOptions(
        **{name: value for name, value in stated.items() if value is not None},
        quarantine=options.repair or options.quarantine is not None,
        repair=options.repair,
        strict=False,  # `note_misfits` has looked
        keep=[*dict.fromkeys(source.carried.values()), *_kept(options)],
        output="counts" if options.counts else "pairs",
        event_id=source.id_column,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # it has been said already
        job = plan_match(events, subscriptions, wanted, ROW)
    with spark_jobs(spark, "planning on Spark"):
        plan = explain_job(job, events) if options.explain else None
        answer = job.run()
    if plan is not None:
        say(str(replace(plan, columns=source.names_in_file(plan.columns))))
    with spark_jobs(spark, "matching on Spark"):
        answer.write.parquet(str(folder / _MATCHES))
    return contrada.spark.counts(answer)


def _plan_run(matcher: Matcher, events: Rows, options: argparse.Namespace) -> MatchRun:
    """Plan a run in this process, which is as strict as Spark's, and does not start.

    It refuses events whose id or coordinate system will not do.
    """
    kept = read_wanted(options).events.values()
    return plan_run(matcher, events, options.event_id, options.repair, kept=kept)


def _kept(options: argparse.Namespace) -> list[str]:
    """Name what Spark carries along besides the columns that are written."""
    return [] if options.counts and options.quarantine is None else [ROW]


def _collect(
    options: argparse.Namespace,
    matcher: Matcher,
    source: Source,
    events: Rows,
    matches: Path,
    run: MatchRun,
    keeping: Keeping,
    report: MatchReport,
) -> None:
    """Write the answer of Spark to the files that were asked for, and count it."""
    counts = PairCounts(len(matcher) if options.map else 0)
    sketch = MapSketch(counts, keeping.describe_subscriptions()) if options.map else None
    matched: set[Id] = set()
    is_counted = bool(options.counts)
    pairs = plain_schema(run.schema)
    schema = keeping.schema([pairs.field(0), _N if is_counted else pairs.field(1)])
    with ExitStack() as stack:
        crs = source.rows.crs or matcher.crs
        write = open_answer(stack, options.output, schema, crs, keeping.geometries)
        write_bad = open_bad_rows(stack, options.quarantine, source.rows.line_finder())
        all_bad: list[pa.RecordBatch] = []
        for batch in _read_answer(matches, not keeping.is_slim):
            is_good = batch.column(schema.names[1]).is_valid()
            good, bad = batch.filter(is_good), batch.filter(pc.invert(is_good))
            for piece in _pieces(good, source, keeping, schema, options.repair):
                write(piece)
            if options.quarantine is not None:
                all_bad.append(bad.select([ROW, "event", "error"]))
            if is_counted:
                report.matches += pc.sum(good.column("n")).as_py() or 0
                report.events_matched += pc.sum(pc.greater(good.column("n"), 0)).as_py() or 0
                continue
            report.matches += good.num_rows
            rows = good.column(ROW).to_numpy()
            matched.update(good.column("subscription").unique().to_pylist())
            ranks = _find_ranks(good.column("subscription"), matcher) if sketch else _NO_RANKS
            counts.add(rows, ranks)
            if sketch is not None:
                sketch.add_pairs(rows, ranks)
        for described in _in_order(source.bad, all_bad):
            write_bad(described)
        if not is_counted:
            report.events_matched = counts.events_matched
        report.subscriptions_matched = None if is_counted else len(matched)
        fill(report, matcher, options)
        if sketch is not None:
            draw(sketch, matcher, events, report, options)


def _find_ranks(subscriptions: pa.Array, matcher: Matcher) -> Positions:
    """Find the ranks of subscriptions, by which a map knows them."""
    ids = freeze(matcher).ids.cast(subscriptions.type)
    return np.asarray(pc.index_in(subscriptions, ids).to_numpy(), np.int64)


def _read_answer(matches: Path, is_wide: bool) -> Iterator[pa.RecordBatch]:
    """Read what Spark wrote, a bounded piece at a time."""
    rows_max = _ANSWER_ROWS_IF_WIDE if is_wide else _ANSWER_ROWS
    for part in sorted(matches.glob("*.parquet")):
        with pq.ParquetFile(part, pre_buffer=False, coerce_int96_timestamp_unit="us") as file:
            yield from file.iter_batches(rows_max)


def _pieces(
    answer: pa.RecordBatch, source: Source, keeping: Keeping, schema: pa.Schema, repair: bool
) -> Iterator[pa.RecordBatch]:
    """Put what is kept beside the pairs, or counts, of an answer."""
    columns = {}
    for name, own in keeping.events.columns.items():
        array = answer.column(source.carried[own])
        if name in keeping.events.geometries:
            columns[name] = _as_distinct_wkb(array, repair)
        else:
            columns[name] = restore(array, schema.field(name).type)
    pairs = answer.select(schema.names[:2])
    ranks = np.zeros(0, np.int64) if schema.names[1] == "n" else keeping.ranks_of(pairs.column(1))
    return keeping.pieces(pairs, (KeptSide(columns), np.arange(len(pairs))), ranks, schema)


def _as_distinct_wkb(array: pa.Array, repair: bool) -> pa.Array:
    """Return geometries as WKB, decoding each once: an event comes as often as it matches."""
    if pa.types.is_struct(array.type):
        return as_wkb(array, repair=repair)
    encoded = array.dictionary_encode()
    return as_wkb(encoded.dictionary, repair=repair).take(encoded.indices)


def _in_order(told: list[BadRow], found: list[pa.RecordBatch]) -> Iterator[list[BadRow]]:
    """Yield the bad rows of the file and those that Spark found, by row, in pieces."""
    pieces = pa.Table.from_batches(found).sort_by(ROW).to_batches(_ANSWER_ROWS) if found else []
    described = (_describe(row) for piece in pieces for row in piece.to_pylist())
    in_order = heapq.merge(sorted(told), described)
    while piece := list(islice(in_order, _ANSWER_ROWS)):
        yield piece


def _describe(row: dict[str, Any]) -> BadRow:
    error, id_ = row["error"], row["event"]
    reason = f"{error['place']}: {error['message']}"
    return row[ROW], None if id_ is None else str(id_), reason
