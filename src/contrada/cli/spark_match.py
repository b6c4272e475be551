"""`contrada match --spark`: the same command on Spark."""

import argparse
import re
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset
import pyarrow.parquet

from contrada.cli.drawing import MapSketch
from contrada.cli.match import (
    fill,
    load,
    open_bad_rows,
    open_pairs,
    primary_geometry,
    title_of,
    wants_geometry,
)
from contrada.cli.progress import bar, say, spark_jobs
from contrada.cli.report import Report
from contrada.errors import ContradaError, InvalidInput
from contrada.files import Rows, read_rows
from contrada.matcher import Matcher
from contrada.matcher.facade import choose_id_column
from contrada.matching.columns import read_geometries
from contrada.model.event import GEOMETRY
from contrada.model.subscription import Id

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ROW = "__row"
_OUR_ERROR = re.compile(r"^contrada\.errors\.\w+: (.*)", re.MULTILINE)


def match_on_spark(options: argparse.Namespace) -> Report:
    """Match through `contrada.spark.match`; the answer goes to the same files as without Spark."""
    import contrada.spark

    if options.engine != "strtree":
        raise InvalidInput(f"--engine {options.engine} does not go with --spark")
    matcher, events = load(options), read_rows(options.events)
    matcher.run(events, options.event_id)  # refuses what the schema alone can tell
    say(f"starting Spark on {options.spark}")
    spark = contrada.spark.session(options.spark)
    with tempfile.TemporaryDirectory(prefix="contrada-") as folder, our_errors():
        copies = Path(folder)
        source = Source(events, options.events, choose_id_column(events, options.event_id))
        subscriptions = read_rows(options.subscriptions)
        fences = Source(
            subscriptions, options.subscriptions, choose_id_column(subscriptions, options.id)
        )
        answer = contrada.spark.match(
            source.frame(spark, copies / "events.parquet"),
            fences.frame(spark, copies / "subscriptions.parquet"),
            quarantine=options.repair or options.quarantine is not None,
            repair=options.repair,
            keep=[GEOMETRY] if wants_geometry(options.output) else [],
            event_id=source.id_column,
            subscription_id=fences.id_column,
        )
        with spark_jobs(spark, "matching on Spark"):
            answer.write.parquet(str(copies / "matches"))
        report = _collect(options, matcher, source, copies / "matches")
    fill(report, matcher, options)
    return report


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


class Source:
    """A file as a Spark DataFrame: Parquet as it is, every other format through a copy."""

    def __init__(self, rows: Rows, path: str, id_column: str | None) -> None:
        """Take the ids from a column, or else number the rows."""
        self.rows = rows
        self._path = Path(path)
        self._is_numbered = id_column is None
        self.id_column = id_column or _ROW

    def frame(self, spark: "SparkSession", copy: Path) -> "DataFrame":
        """Give the rows as a DataFrame whose geometry column is `geometry`."""
        if not self._is_plain_parquet():
            self._write_copy(copy)
            return spark.read.parquet(str(copy))
        frame = spark.read.parquet(str(self._path))
        return frame.withColumn(_ROW, frame["_metadata.row_index"]) if self._is_numbered else frame

    def _is_plain_parquet(self) -> bool:
        if self._path.suffix not in {".parquet", ".geoparquet"} or not self._path.is_file():
            return False
        schema = pyarrow.parquet.read_schema(self._path)
        if self.rows.geometry_columns not in {(), (GEOMETRY,)}:
            return False
        return GEOMETRY not in schema.names or pa.types.is_binary(schema.field(GEOMETRY).type)

    def _write_copy(self, copy: Path) -> None:
        fields = [_without_nanoseconds(field) for field in self.rows.schema]
        primary = primary_geometry(self.rows)
        names = [GEOMETRY if field.name == primary else field.name for field in fields]
        schema = pa.schema([f.with_name(n) for f, n in zip(fields, names, strict=True)])
        if self._is_numbered:
            schema = schema.append(pa.field(_ROW, pa.int64()))
        first_row = 0
        progress = bar(f"copying {self.rows.name} for Spark", self.rows.count)
        with progress, pyarrow.parquet.ParquetWriter(copy, schema) as writer:
            for batch in self.rows.batches():
                columns = list(batch.columns)
                if self._is_numbered:
                    columns.append(pa.array(range(first_row, first_row + batch.num_rows)))
                table = pa.table(columns, names=schema.names)
                writer.write_table(table.cast(schema, safe=False))
                first_row += batch.num_rows
                progress.update(batch.num_rows)


def _without_nanoseconds(field: pa.Field) -> pa.Field:
    is_fine = pa.types.is_timestamp(field.type) and field.type.unit == "ns"
    return field.with_type(pa.timestamp("us", field.type.tz)) if is_fine else field


def _collect(
    options: argparse.Namespace, matcher: Matcher, source: Source, matches: Path
) -> Report:
    """Write the answer of Spark to the files that were asked for, and count it."""
    report = Report()
    run_ = matcher.run(source.rows, options.event_id)
    sketch = _sketch(options, source) if options.map else None
    matched_ids: set[Id] = set()
    matched_events = []
    with ExitStack() as stack:
        write = open_pairs(stack, options.output, run_.schema, source.rows)
        write_bad = open_bad_rows(stack, options.quarantine)
        for batch in pyarrow.dataset.dataset(matches).to_batches():
            is_pair = batch.column("subscription").is_valid()
            pairs = batch.filter(is_pair)
            write(pairs.drop_columns([c for c in _ANSWER_ONLY if c in pairs.schema.names]))
            bad = batch.filter(pc.invert(is_pair))
            write_bad([(None, *_describe(row)) for row in bad.to_pylist()])
            report.events_left_out += bad.num_rows
            report.matches += pairs.num_rows
            matched_events.append(pairs.column("event").unique())
            matched_ids.update(pairs.column("subscription").unique().to_pylist())
            if sketch is not None:
                sketch.add_pairs(pairs.column("event"), pairs.column("subscription"))
    report.events = sum(batch.num_rows for batch in source.rows.batches())
    report.events_matched = len(
        pa.chunked_array(matched_events, run_.schema.field(0).type).unique()
    )
    report.subscriptions_matched = len(matched_ids)
    if sketch is not None:
        subscriptions = sorted(matcher.freeze(), key=lambda s: s.id)
        sketch.draw(options.map, title_of(options), subscriptions, matched_ids, report)
    return report


_ANSWER_ONLY = ("subscriber", "version", "error")


def _describe(row: dict[str, Any]) -> tuple[str, str]:
    error = row["error"]
    return str(row["event"]), f"{error['place']}: {error['message']}"


def _sketch(options: argparse.Namespace, source: Source) -> MapSketch:
    """Read the events again for the map."""
    sketch = MapSketch(source.rows.count)
    first_row = 0
    for batch in source.rows.batches():
        ids: Any = pa.array(range(first_row, first_row + batch.num_rows))
        if source.id_column != _ROW:
            ids = batch.column(source.id_column)
        name = primary_geometry(source.rows)
        if name in batch.schema.names:
            column = read_geometries(batch.column(name), repair=options.repair)
            sketch.add_events(ids, first_row, column)
        first_row += batch.num_rows
    return sketch
