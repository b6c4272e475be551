"""`contrada match --spark`: the same command on Spark."""

import argparse
import tempfile
import warnings
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from contrada.cli.drawing import MapSketch
from contrada.cli.match import draw, fill, load
from contrada.cli.outputs import (
    BadRow,
    open_answer,
    open_bad_rows,
    plain_schema,
    wants_geometry,
    with_geometry,
)
from contrada.cli.pair_counts import PairCounts
from contrada.cli.progress import spark_jobs
from contrada.cli.report import Report
from contrada.cli.spark_source import ROW, Source
from contrada.cli.spark_start import (
    check_master,
    our_errors,
    our_log,
    read_conf,
    shared_folder,
    start,
    without_copy,
)
from contrada.cli.terminal import say
from contrada.errors import InvalidInput
from contrada.files import Rows, read_rows
from contrada.matcher import Matcher
from contrada.matching.engines import DEFAULT_ENGINE
from contrada.matching.subscribing import SUBSCRIPTION_COLUMNS
from contrada.model.event import GEOMETRY, paths_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from contrada.spark import EventCounts

_MATCHES = "matches"
_ANSWER_ROWS, _ANSWER_ROWS_WITH_GEOMETRY = 65_536, 1_024


def match_on_spark(options: argparse.Namespace) -> Report:
    """Match through `contrada.spark.match`; the answer goes to the same files as without Spark."""
    if options.engine != DEFAULT_ENGINE:
        raise InvalidInput(f"--engine {options.engine} does not go with --spark")
    check_master("--spark", options.spark)
    config = read_conf(options.conf)
    matcher, events = load(options)
    schema = _plan_answer(matcher, events, options)
    read = {path for name in matcher.freeze().attributes for path in paths_of(name)}
    source = Source(events, options.events, options.event_id, read | set(options.keep or ()))
    subscriptions = read_rows(options.subscriptions)
    rows = Source(subscriptions, options.subscriptions, options.id, SUBSCRIPTION_COLUMNS)
    with our_errors(), our_log():
        say(f"starting Spark on {options.spark}")
        spark = start(options.spark, config, "starting Spark")
        with tempfile.TemporaryDirectory(prefix="contrada-", dir=shared_folder(spark)) as folder:
            counts = _run(spark, options, source, rows, Path(folder))
            report = Report(
                events=counts.events,
                events_left_out=counts.set_aside,
                events_mended=counts.mended,
            )
            _collect(options, matcher, events, Path(folder) / _MATCHES, schema, report)
    return report


def _run(
    spark: "SparkSession",
    options: argparse.Namespace,
    source: Source,
    rows: Source,
    folder: Path,
) -> "EventCounts":
    """Let Spark write the answer into a folder; give its counts, which must come out even."""
    import contrada.spark

    frames = (
        source.frame(spark, folder / "events.parquet"),
        rows.frame(spark, folder / "subscriptions.parquet"),
    )
    wanted: dict[str, Any] = {
        "quarantine": options.repair or options.quarantine is not None,
        "repair": options.repair,
        "plan": options.plan or "auto",
        "evaluator": options.evaluator or "exact",
        "keep": _kept(options),
        "output": "counts" if options.counts else "pairs",
        "event_id": source.id_column,
        "subscription_id": rows.id_column,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # `load` has said it already
        if options.explain:
            with spark_jobs(spark, "planning on Spark"):
                plan = contrada.spark.explain(*frames, **wanted)
            say(str(plan))
        with spark_jobs(spark, "reading subscriptions on Spark"):
            answer = contrada.spark.match(*frames, **wanted)
    with spark_jobs(spark, "matching on Spark"):
        answer.write.parquet(str(folder / _MATCHES))
    return contrada.spark.counts(answer)


def _plan_answer(matcher: Matcher, events: Rows, options: argparse.Namespace) -> pa.Schema:
    """Give the schema of the pairs; refuse events whose id or reference system will not do.

    It plans a run in this process, which is as strict as Spark's, and does not start it.
    """
    for name in options.keep or ():
        if name not in events.schema.names:
            raise InvalidInput(f"--keep {name}: {events.name} has {', '.join(events.schema.names)}")
    return plain_schema(matcher.run(events, options.event_id).schema)


def _kept(options: argparse.Namespace) -> list[str]:
    """Name the columns of events that Spark carries along, each once."""
    kept = list(options.keep or ())
    kept += [GEOMETRY] if wants_geometry(options.output) else []
    kept += [] if options.counts and options.quarantine is None else [ROW]
    return list(dict.fromkeys(kept))


def _collect(
    options: argparse.Namespace,
    matcher: Matcher,
    events: Rows,
    matches: Path,
    schema: pa.Schema,
    report: Report,
) -> None:
    """Write the answer of Spark to the files that were asked for, and count it."""
    counts = PairCounts(len(matcher))
    sketch = MapSketch(counts) if options.map else None
    ids = pa.array(matcher.freeze().ids, schema.field("subscription").type)
    schema = _written_schema(options, matches, schema)
    is_counted = "n" in schema.names
    with ExitStack() as stack:
        write = open_answer(stack, options.output, schema, events.crs or matcher.crs)
        write_bad = open_bad_rows(stack, options.quarantine)
        for batch in _read_answer(matches, wants_geometry(options.output)):
            is_good = batch.column(schema.names[1]).is_valid()
            good, bad = batch.filter(is_good), batch.filter(pc.invert(is_good))
            for piece in _pieces(good, schema.names, options.output):
                write(piece)
            if options.quarantine is not None:
                write_bad([_describe(row) for row in bad.to_pylist()])
            if is_counted:
                report.matches += pc.sum(good.column("n")).as_py() or 0
                report.events_matched += pc.sum(pc.greater(good.column("n"), 0)).as_py() or 0
                continue
            report.matches += good.num_rows
            rows = good.column(ROW).to_numpy()
            ranks = pc.index_in(good.column("subscription"), ids).to_numpy().astype(np.int64)
            counts.add(rows, ranks)
            if sketch is not None:
                sketch.add_pairs(rows, ranks)
        if not is_counted:
            report.events_matched = counts.events_matched
        report.subscriptions_matched = None if is_counted else counts.subscriptions_matched
        fill(report, matcher, options)
        if sketch is not None:
            draw(sketch, matcher, events, report, options)


def _written_schema(options: argparse.Namespace, matches: Path, pairs: pa.Schema) -> pa.Schema:
    """Give the schema of what is written: pairs or counts, and what is kept, as Spark has it."""
    found = pyarrow.parquet.read_schema(min(matches.glob("*.parquet")))
    added = {GEOMETRY} if wants_geometry(options.output) else set()
    names = [name for name in dict.fromkeys(options.keep or ()) if name not in added]
    first = [pairs.field("event"), found.field("n") if options.counts else pairs.field(1)]
    return pa.schema([*first, *(found.field(name).remove_metadata() for name in names)])


def _read_answer(matches: Path, with_geometry: bool) -> Iterator[pa.RecordBatch]:
    """Read what Spark wrote, a bounded piece at a time."""
    rows_max = _ANSWER_ROWS_WITH_GEOMETRY if with_geometry else _ANSWER_ROWS
    for part in sorted(matches.glob("*.parquet")):
        with pyarrow.parquet.ParquetFile(part, pre_buffer=False) as file:
            yield from file.iter_batches(rows_max)


def _pieces(
    answer: pa.RecordBatch, names: list[str], output: str | None
) -> Iterable[pa.RecordBatch]:
    plain = answer.select(names)
    if not wants_geometry(output):
        return [plain]
    return with_geometry(plain, answer.column(GEOMETRY), np.arange(len(answer)))


def _describe(row: dict[str, Any]) -> BadRow:
    error, id_ = row["error"], row["event"]
    reason = without_copy(f"{error['place']}: {error['message']}")
    return row[ROW], None if id_ is None else str(id_), reason
