"""Subscriptions from a DataFrame: tasks judge the rows and stage them; the driver learns little.

What comes back to the driver is a line for each part, and the first bad rows with their count. Bad
rows of subscriptions always fail the call: whoever subscribes wants to know.
"""

import pickle
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import shapely

from contrada.arrays import Box, Geometries
from contrada.errors import BAD_ROWS_SHOWN_MAX, BadRows, InvalidInput, Remedy
from contrada.matcher.column_files import load_columns, save_columns
from contrada.matching.id_columns import are_repeated
from contrada.matching.mismatches import Mismatch, find_mismatches, join_mismatches
from contrada.matching.subscribing import SubscriptionRows, read_subscriptions
from contrada.matching.subscription_columns import SubscriptionColumns
from contrada.model.expression import DistanceWithin, attributes, geometry_attributes
from contrada.model.subscription import Id
from contrada.spark.evaluators import Evaluator
from contrada.spark.frames import has_whole_ids
from contrada.spark.handshake import Handshake
from contrada.spark.joined_parts import PART, as_row, write_joined
from contrada.spark.known_parts import SeenRows
from contrada.spark.row_digests import ROW_DIGESTS
from contrada.spark.staging import StagedPart, StagedSet, fetch, put, staging_uri
from contrada.spark.task_errors import noting_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PART_ROWS_MAX = 100_000
_IDS_MAX = 65_536
_NAME = "subscriptions"
_ON_SPARK = {Remedy.SUBSCRIPTION_ID: Remedy.SPARK_SUBSCRIPTION_ID}
_LINES = (
    "digest string, count long, size_bytes long, broad long, attributes array<string>, "
    "geometries array<string>, anchored array<string>, bounds array<double>, "
    "mismatches binary, has_distances boolean, "
    "rows long, unchanged long, seen binary, "
    "bad long, faults long, reasons array<string>, remedies array<string>"
)


@dataclass(frozen=True, slots=True)
class Subscribed:
    """A staged set, and what planning must know of it.

    `attributes` are what constraints read, `geometries` those that they read as geometries, and
    `anchored` those by which subscriptions are found in space. `broad` counts the subscriptions
    that an event may satisfy wherever it lies; the others are anchored within `bounds`: west,
    south, east, north. `mismatches` are columns of events that hold other values than they are
    compared with; `has_distances` tells whether a subscription asks for a distance.
    """

    staged: StagedSet
    attributes: frozenset[str]
    geometries: tuple[str, ...]
    anchored: tuple[str, ...]
    broad: int
    bounds: Box | None
    mismatches: tuple[Mismatch, ...] = ()
    has_distances: bool = False


@dataclass(frozen=True, slots=True)
class StageTask:
    """The function for `mapInArrow`: judge rows of subscriptions and write them to the URI.

    With `known`, the parts of a published version, rows that these have are left as they are, and
    the others are written with their digests.
    """

    handshake: Handshake
    uri: str
    columns: tuple[str, ...]
    id_column: str
    repair: bool
    evaluator: Evaluator
    event_schema: pa.Schema
    known: tuple[StagedPart, ...] | None = None

    @noting_errors
    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield a line for each part, and one for all rows with what is wrong with them."""
        self.handshake.check()
        faults = StageFaults()
        rows = SubscriptionRows()
        reader = self.evaluator.reader()
        seen = None if self.known is None else SeenRows(self.uri, self.known)
        first_row = 0
        for numbered in batches:
            batch = numbered.rename_columns(list(self.columns))
            if seen is not None:
                batch = seen.leave_out(batch, self.id_column, self.repair)
            read_subscriptions(
                batch,
                first_row,
                _NAME,
                reader=reader,
                geometry_columns=(),
                id_column=self.id_column,
                repair=self.repair,
                on_bad=None,
                on_refused=faults.add,
                rows=rows,
            )
            first_row += batch.num_rows
            if rows.count >= PART_ROWS_MAX:
                yield self.stage(rows.columns, faults, seen)
                rows = SubscriptionRows()
        if rows.count:
            yield self.stage(rows.columns, faults, seen)
        yield faults.as_line(
            first_row,
            unchanged=0 if seen is None else seen.count,
            seen=None if seen is None else seen.as_bits(),
        )

    def stage(
        self, subscriptions: SubscriptionColumns, faults: "StageFaults", seen: SeenRows | None
    ) -> pa.RecordBatch:
        """Write a part; return its line, and add what cannot be served to the faults."""
        is_repeated = are_repeated(subscriptions.ids.array, from_end=True)
        if is_repeated.any():
            faults.add_repeated(Counter(subscriptions.ids.array.to_pylist()))
            subscriptions = subscriptions.take(np.flatnonzero(~is_repeated))
        subscriptions = self._choose_served(subscriptions, faults)
        anchors = self.evaluator.engine().list_anchors(subscriptions)
        if seen is None:
            part = write_part(self.uri, subscriptions)
        else:
            beside = {ROW_DIGESTS: seen.digests_of(subscriptions.ids.array)}
            part = write_joined(self.uri, subscriptions, beside)
        skeletons = subscriptions.expressions.skeletons
        tests = subscriptions.table.constraints.tests.skeletons
        return _as_line(
            digest=part.digest,
            count=part.count,
            size_bytes=part.size_bytes,
            broad=int(anchors.is_broad.sum()),
            geometries=sorted({name for s in skeletons for name in geometry_attributes(s)}),
            anchored=sorted(anchors.attributes),
            bounds=bounds_of(anchors.shapes),
            attributes=sorted({name for s in skeletons for name in attributes(s)}),
            mismatches=pickle.dumps(find_mismatches(subscriptions, self.event_schema)),
            has_distances=any(isinstance(test, DistanceWithin) for test in tests),
        )

    def _choose_served(
        self, subscriptions: SubscriptionColumns, faults: "StageFaults"
    ) -> SubscriptionColumns:
        """Return those that the evaluator can serve; count the others."""
        check = self.evaluator.engine().check
        if check is None:
            return subscriptions
        served = []
        for position, subscription in enumerate(subscriptions):
            try:
                check(subscription)
                served.append(position)
            except InvalidInput as error:
                faults.add_refused(subscription.id, error.message)
        return subscriptions.take(np.array(served, np.int64))


def write_part(uri: str, subscriptions: SubscriptionColumns) -> StagedPart:
    """Write subscriptions as one part of a staged set."""
    with tempfile.TemporaryDirectory(prefix="contrada-part-") as folder:
        path = Path(folder) / "part"
        save_columns(path, subscriptions, {})
        return put(uri, path, len(subscriptions))


def bounds_of(shapes: Geometries) -> list[float] | None:
    """Return the box of all shapes: west, south, east, north; None where there are none."""
    return np.asarray(shapely.total_bounds(shapes)).tolist() if len(shapes) else None


def subscribe(
    frame: "DataFrame",
    columns: Sequence[str],
    id_: str,
    repair: bool,
    evaluator: Evaluator,
    event_schema: pa.Schema,
) -> Subscribed:
    """Stage a DataFrame of subscriptions that has just these columns; refuse bad rows."""
    spark = frame.sparkSession
    reading = tuple(columns), id_, repair, evaluator, event_schema
    task = StageTask(Handshake.here(), staging_uri(spark), *reading)
    lines = run_staging(frame, task)
    parts = [line for line in lines if line["digest"] is not None]
    staged = StagedSet(task.uri, list_parts(lines), evaluator)
    if len(parts) > 1:
        rows = sum(line["rows"] or 0 for line in lines)
        _refuse_repeated(spark, staged, has_whole_ids(frame, id_, _NAME), rows)
    return describe_staged(staged, lines)


def describe_staged(staged: StagedSet, lines: Sequence[dict[str, Any]]) -> Subscribed:
    """Bring together what the lines of tasks say of the parts of a set."""
    parts = [line for line in lines if line["digest"] is not None]
    return Subscribed(
        staged,
        frozenset(_names(parts, "attributes")),
        tuple(_names(parts, "geometries")),
        tuple(_names(parts, "anchored")),
        sum(line["broad"] for line in parts),
        join_bounds([line["bounds"] for line in parts if line["bounds"] is not None]),
        tuple(join_mismatches(one for line in parts for one in _load(line["mismatches"]))),
        any(line["has_distances"] for line in parts),
    )


def run_staging(frame: "DataFrame", task: StageTask) -> list[dict[str, Any]]:
    """Stage a DataFrame of subscriptions; refuse bad rows, and return the lines of the tasks."""
    numbered = frame.toDF(*(f"column{i}" for i in range(len(task.columns))))
    lines: list[dict[str, Any]] = numbered.mapInArrow(task, _LINES).toArrow().to_pylist()
    refuse_faults(lines, sum((line["rows"] or 0) + (line["unchanged"] or 0) for line in lines))
    return lines


def list_parts(lines: Sequence[dict[str, Any]]) -> tuple[StagedPart, ...]:
    """List the parts that tasks have written."""
    return tuple(
        StagedPart(line["digest"], line["count"], line["size_bytes"])
        for line in lines
        if line["digest"] is not None
    )


def _load(mismatches: bytes) -> list[Mismatch]:
    found: list[Mismatch] = pickle.loads(mismatches)  # noqa: S301  our own task's
    return found


def _names(parts: Sequence[dict[str, Any]], column: str) -> list[str]:
    return sorted({name for line in parts for name in line[column]})


def join_bounds(bounds: Sequence[Sequence[float]]) -> Box | None:
    """Return the box of several boxes."""
    if not bounds:
        return None
    sides = np.array(bounds)
    west, south = sides[:, :2].min(axis=0).tolist()
    east, north = sides[:, 2:].max(axis=0).tolist()
    return west, south, east, north


def refuse_faults(lines: Sequence[dict[str, Any]], rows: int) -> None:
    """Refuse the bad rows that the lines of tasks tell of, among all."""
    bad, faults = (sum(line[name] or 0 for line in lines) for name in ("bad", "faults"))
    if faults:
        reasons = [reason for line in lines for reason in line["reasons"] or ()]
        remedies = [Remedy[name] for line in lines for name in line["remedies"] or ()]
        raise BadRows(_summary(bad, rows), reasons, faults, remedies)


def _summary(bad: int, rows: int) -> str:
    return f"{_NAME}: {bad:,} of {rows:,} cannot be used"


def refuse_ids(repeated: Sequence[tuple[Id, int]], rows: int) -> None:
    """Refuse subscriptions of which several have one id."""
    if repeated:
        reasons = [f"subscription {id_!r}: {count} rows have this id" for id_, count in repeated]
        bad = sum(count - 1 for _, count in repeated)
        raise BadRows(_summary(bad, rows), reasons, len(reasons), [Remedy.SPARK_SUBSCRIPTION_ID])


def _refuse_repeated(spark: "SparkSession", staged: StagedSet, is_whole: bool, rows: int) -> None:
    """Look for an id that several parts have."""
    from pyspark.sql import functions

    parts = spark.createDataFrame([as_row(part) for part in staged.parts], PART)
    kind = "long" if is_whole else "string"
    ids = parts.repartition(len(staged.parts)).mapInArrow(_IdTask(staged.uri), f"id {kind}")
    repeated = ids.groupBy("id").count().where("count > 1")
    counts = functions.count("*").alias("ids"), functions.sum("count").alias("rows")
    found = repeated.agg(*counts).first()
    if found is not None and found["ids"]:
        first = repeated.orderBy("id").limit(BAD_ROWS_SHOWN_MAX).collect()
        reasons = [f"subscription {row['id']!r}: {row['count']} rows have this id" for row in first]
        summary = _summary(found["rows"] - found["ids"], rows)
        raise BadRows(summary, reasons, found["ids"], [Remedy.SPARK_SUBSCRIPTION_ID])


@dataclass(frozen=True, slots=True)
class _IdTask:
    """The function for `mapInArrow` that lists the ids of parts."""

    uri: str

    @noting_errors
    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                ids = load_columns(fetch(self.uri, StagedPart(**row))).ids.array
                for first in range(0, len(ids), _IDS_MAX):
                    piece = ids.slice(first, _IDS_MAX)
                    kind = piece.type if pa.types.is_int64(piece.type) else pa.string()
                    yield pa.RecordBatch.from_pydict({"id": piece.cast(kind)})


class StageFaults:
    """The first reasons why rows were refused, how many there are, and how many rows were."""

    def __init__(self) -> None:
        self.count = self.rows = 0
        self.shown: list[str] = []
        self.remedies: set[Remedy] = set()

    def add(self, _: int, id_: Id | None, error: InvalidInput) -> None:
        """Count a row; the row's number means nothing here, its id does."""
        self._add(f"subscription {id_!r}, {error.message}")
        self.remedies |= {_ON_SPARK.get(remedy, remedy) for remedy in error.remedies}

    def add_refused(self, id_: Id, reason: str) -> None:
        """Count a subscription that the evaluator cannot serve."""
        self._add(f"subscription {id_!r}: {reason}")

    def add_repeated(self, ids: Counter[Id]) -> None:
        """Count the rows of ids that several have, all but one of each."""
        for id_, count in ids.items():
            if count > 1:
                self._add(f"subscription {id_!r}: {count} rows have this id", count - 1)
        self.remedies.add(Remedy.SPARK_SUBSCRIPTION_ID)

    def as_line(self, rows: int, **more: Any) -> pa.RecordBatch:
        """Write the line of a task that has had some rows."""
        return _as_line(
            rows=rows,
            bad=self.rows,
            faults=self.count,
            reasons=self.shown,
            remedies=sorted(remedy.name for remedy in self.remedies),
            **more,
        )

    def _add(self, reason: str, rows: int = 1) -> None:
        self.count += 1
        self.rows += rows
        if len(self.shown) < BAD_ROWS_SHOWN_MAX:
            self.shown.append(reason)


def _as_line(**values: Any) -> pa.RecordBatch:
    schema = pa.schema(
        [
            ("digest", pa.string()),
            ("count", pa.int64()),
            ("size_bytes", pa.int64()),
            ("broad", pa.int64()),
            ("attributes", pa.list_(pa.string())),
            ("geometries", pa.list_(pa.string())),
            ("anchored", pa.list_(pa.string())),
            ("bounds", pa.list_(pa.float64())),
            ("mismatches", pa.binary()),
            ("has_distances", pa.bool_()),
            ("rows", pa.int64()),
            ("unchanged", pa.int64()),
            ("seen", pa.binary()),
            ("bad", pa.int64()),
            ("faults", pa.int64()),
            ("reasons", pa.list_(pa.string())),
            ("remedies", pa.list_(pa.string())),
        ]
    )
    return pa.RecordBatch.from_pylist([values], schema=schema)
