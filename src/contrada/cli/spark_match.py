"""`contrada match --spark`: the same command on Spark."""

import argparse
import logging
import re
import tempfile
import warnings
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from contrada.cli.drawing import MapSketch
from contrada.cli.match import draw, fill, load
from contrada.cli.outputs import (
    BadRow,
    open_bad_rows,
    open_pairs,
    primary_geometry,
    wants_geometry,
    with_geometry,
)
from contrada.cli.progress import say, spark_jobs
from contrada.cli.report import Report
from contrada.cli.spark_source import ROW, Source
from contrada.errors import ContradaError, InvalidInput
from contrada.files import Rows, read_rows
from contrada.matcher import Matcher
from contrada.matching.columns import read_geometries
from contrada.matching.engines import DEFAULT_ENGINE
from contrada.model.event import GEOMETRY, paths_of
from contrada.model.subscription import Id

_OUR_ERROR = re.compile(r"^contrada\.errors\.\w+: (.*)", re.MULTILINE)
_MASTER = re.compile(r"local(\[(\d+|\*)(, *\d+)?\])?|local-cluster\[.+\]|(spark|k8s)://.+|yarn")
_ANSWER_ROWS, _ANSWER_ROWS_WITH_GEOMETRY = 65_536, 1_024


def match_on_spark(options: argparse.Namespace) -> Report:
    """Match through `contrada.spark.match`; the answer goes to the same files as without Spark."""
    import contrada.spark
    from contrada.spark.frames import SUBSCRIPTION_COLUMNS

    if options.engine != DEFAULT_ENGINE:
        raise InvalidInput(f"--engine {options.engine} does not go with --spark")
    check_master("--spark", options.spark)
    matcher, events = load(options)
    schema = _plan_answer(matcher, events, options)
    read = {path for name in matcher.freeze().attributes for path in paths_of(name)}
    source = Source(events, options.events, options.event_id, read)
    subscriptions = read_rows(options.subscriptions)
    fences = Source(subscriptions, options.subscriptions, options.id, SUBSCRIPTION_COLUMNS)
    say(f"starting Spark on {options.spark}")
    with tempfile.TemporaryDirectory(prefix="contrada-") as folder, our_errors(), our_log():
        spark = contrada.spark.session(options.spark)
        copies = Path(folder)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # `load` has said it already
            answer = contrada.spark.match(
                source.frame(spark, copies / "events.parquet"),
                fences.frame(spark, copies / "subscriptions.parquet"),
                quarantine=options.repair or options.quarantine is not None,
                repair=options.repair,
                plan=options.plan or "auto",
                keep=_kept(options),
                event_id=source.id_column,
                subscription_id=fences.id_column,
            )
        with spark_jobs(spark, "matching on Spark"):
            answer.write.parquet(str(copies / "matches"))
        contrada.spark.counts(answer)  # raises if a row is not accounted for
        return _collect(options, matcher, source, copies / "matches", schema)


def check_master(option: str, master: str) -> None:
    """Refuse what cannot be a master of Spark, at which Spark itself would print a traceback."""
    if not _MASTER.fullmatch(master):
        raise InvalidInput(f"{option} {master} is no master of Spark; try 'local[*]'")


def _plan_answer(matcher: Matcher, events: Rows, options: argparse.Namespace) -> pa.Schema:
    """Give the schema of the pairs; refuse events whose id or reference system will not do.

    It plans a run in this process, which is as strict as Spark's, and does not start it.
    """
    return matcher.run(events, options.event_id).schema


def _kept(options: argparse.Namespace) -> list[str]:
    kept = [GEOMETRY] if wants_geometry(options.output) else []
    return kept if options.quarantine is None else [*kept, ROW]


@contextmanager
def our_errors() -> Iterator[None]:
    """Turn the traceback of a Spark worker back into the one line that the user needs."""
    try:
        yield
    except Exception as error:
        found = _OUR_ERROR.findall(str(error))
        if not found or isinstance(error, ContradaError):
            raise
        raise InvalidInput(found[-1]) from None


@contextmanager
def our_log() -> Iterator[None]:
    """Show what we log and nothing else: Py4J logs an interrupt with several tracebacks."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("contrada: %(message)s"))
    handler.addFilter(logging.Filter("contrada"))
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)


def _collect(
    options: argparse.Namespace, matcher: Matcher, source: Source, matches: Path, schema: pa.Schema
) -> Report:
    """Write the answer of Spark to the files that were asked for, and count it."""
    report = Report()
    sketch = _sketch(options, source) if options.map else None
    matched_ids: set[Id] = set()
    matched_events = []
    with ExitStack() as stack:
        write = open_pairs(stack, options.output, schema, source.rows.crs or matcher.crs)
        write_bad = open_bad_rows(stack, options.quarantine)
        for batch in _read_answer(matches, wants_geometry(options.output)):
            is_pair = batch.column("subscription").is_valid()
            pairs, bad = batch.filter(is_pair), batch.filter(pc.invert(is_pair))
            for piece in _pieces(pairs, options.output):
                write(piece)
            if options.quarantine is not None:
                write_bad([_describe(row) for row in bad.to_pylist()])
            report.events_left_out += bad.num_rows
            report.matches += pairs.num_rows
            matched_events.append(pairs.column("event").unique())
            matched_ids.update(pairs.column("subscription").unique().to_pylist())
            if sketch is not None:
                sketch.add_pairs(pairs.column("event"), pairs.column("subscription"))
        report.events = _count_events(source)
        report.events_mended = None if options.repair else 0
        every = pa.chunked_array(matched_events, schema.field("event").type)
        report.events_matched = len(every.unique())
        report.subscriptions_matched = len(matched_ids)
        fill(report, matcher, options)
        if sketch is not None:
            draw(sketch, matcher, matched_ids, report, options)
    return report


def _read_answer(matches: Path, with_geometry: bool) -> Iterator[pa.RecordBatch]:
    """Read what Spark wrote, a bounded piece at a time."""
    rows_max = _ANSWER_ROWS_WITH_GEOMETRY if with_geometry else _ANSWER_ROWS
    for part in sorted(matches.glob("*.parquet")):
        with pyarrow.parquet.ParquetFile(part, pre_buffer=False) as file:
            yield from file.iter_batches(rows_max)


def _pieces(pairs: pa.RecordBatch, output: str | None) -> Iterable[pa.RecordBatch]:
    plain = pairs.select(["event", "subscription"])
    if not wants_geometry(output):
        return [plain]
    return with_geometry(plain, pairs.column(GEOMETRY), np.arange(len(pairs)))


def _count_events(source: Source) -> int:
    if source.rows.count is not None:
        return source.rows.count
    return sum(batch.num_rows for batch in source.rows.batches())


def _describe(row: dict[str, Any]) -> BadRow:
    error, id_ = row["error"], row["event"]
    reason = f"{error['place']}: {error['message']}"
    return row[ROW], None if id_ is None else str(id_), reason


def _sketch(options: argparse.Namespace, source: Source) -> MapSketch:
    """Read the events again for the map."""
    sketch = MapSketch(source.rows.count)
    name = primary_geometry(source.rows)
    first_row = 0
    for batch in source.rows.batches():
        ids: Any = pa.array(range(first_row, first_row + batch.num_rows))
        if source.id_column != ROW:
            ids = batch.column(source.id_column)
        if name in batch.schema.names:
            column = read_geometries(batch.column(name), repair=options.repair)
            sketch.add_events(ids, first_row, column)
        first_row += batch.num_rows
    return sketch
