"""A published set in partitions: what a new version changes of the segments, and what it divides.

The lookup table stays from version to version, and so do segments whose subscriptions do. Only
rows that the version before does not have are brought to their partitions.
"""

import json
import pickle
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from contrada.spark.evaluators import EXACT
from contrada.spark.event_samples import EventSample, read_sample
from contrada.spark.handshake import Handshake
from contrada.spark.known_parts import (
    HeldPart,
    KnownPart,
    join_digests,
    join_known,
    open_known,
    write_held,
)
from contrada.spark.partition_tasks import AssignTask, read_parts
from contrada.spark.partitioned import divide, parts_frame
from contrada.spark.published_sets import Manifest, count_rows, parts_uri
from contrada.spark.row_digests import KnownRows, RowDigests
from contrada.spark.staged_partitions import PublishedPartitions, read_table, write_table
from contrada.spark.staging import BROADCAST_BYTES_MAX, StagedPart, StagedSet
from contrada.spark.subscription_tasks import Subscribed
from contrada.spark.task_errors import noting_errors
from contrada.spark.worker import EventColumns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ROW = "partition int, place string, subscriptions binary"
_PLACED = "partition int, parts string"
_ROWS_MAX = 8_192
_BEYOND_MAX = 0.1  # of all subscriptions: if more lie beyond the table, it is made anew


def wants_partitions(manifest: Manifest, newest: Manifest | None, stated: int | None) -> bool:
    """Whether a version is divided: as the one before, or the first one if it is asked for."""
    if newest is not None:
        return newest.partitions is not None
    size = sum(part.size_bytes for part in manifest.parts)
    return stated is not None or size > BROADCAST_BYTES_MAX


def place(
    spark: "SparkSession",
    uri: str,
    manifest: Manifest,
    newest: Manifest | None,
    count: int | None,
    sample: "DataFrame | None",
) -> PublishedPartitions:
    """Bring the subscriptions of a version to their partitions."""
    at = parts_uri(uri)
    before = None if newest is None else newest.partitions
    if newest is not None and before is not None:
        count = len(before.segments) - 1
        if sample is None:
            gone = _find_gone(spark, at, newest.parts, manifest.parts)
            placed = _place_new(spark, at, manifest, newest.parts, gone, before)
            if not _is_outgrown(placed, manifest):
                return placed
    fresh = _divide(spark, at, manifest, count, sample)
    return _place_new(spark, at, manifest, (), np.zeros((0, 2), np.uint64), fresh)


def _is_outgrown(placed: PublishedPartitions, manifest: Manifest) -> bool:
    """Whether many subscriptions lie beyond the table, and so are met by every event."""
    beyond = count_rows(placed.residual) - manifest.description.broad
    return beyond > _BEYOND_MAX * count_rows(manifest.parts)


def _divide(
    spark: "SparkSession",
    at: str,
    manifest: Manifest,
    count: int | None,
    sample: "DataFrame | None",
) -> PublishedPartitions:
    """Divide the universe by where subscriptions lie and a sample falls; nothing is placed yet."""
    stated = manifest.description
    subscribed = Subscribed(
        StagedSet(at, manifest.parts),
        frozenset(stated.attributes),
        stated.geometries,
        stated.anchored,
        stated.broad,
        stated.bounds,
    )
    if count is None:
        count = int(str(spark.conf.get("spark.sql.shuffle.partitions")))
    table, weights = divide(spark, subscribed, _read_sample(sample, stated.anchored), count)
    return PublishedPartitions(
        write_table(at, table), ((),) * table.partition_count, (), tuple(weights.tolist()), 0.0
    )


def _read_sample(sample: "DataFrame | None", anchored: Sequence[str]) -> EventSample | None:
    if sample is None:
        return None
    return read_sample(sample, sample, anchored, EventColumns((), None, (), repair=False))


def _find_gone(
    spark: "SparkSession", at: str, before: tuple[StagedPart, ...], now: tuple[StagedPart, ...]
) -> RowDigests:
    """Find the digests of rows that a version no longer has."""
    task = GoneTask(Handshake.here(), at, before, now)
    rows = spark.range(0, 1, 1, 1).mapInArrow(task, "digests binary").collect()
    found = b"".join(bytes(row["digests"]) for row in rows)
    return np.frombuffer(found, np.uint64).reshape(-1, 2)


def _place_new(
    spark: "SparkSession",
    at: str,
    manifest: Manifest,
    known: tuple[StagedPart, ...],
    gone: RowDigests,
    before: PublishedPartitions,
) -> PublishedPartitions:
    """Add the rows of a version that are not known to segments, and take out those gone."""
    count = len(before.segments)
    table = read_table(at, before.table)
    unplaced = [part for part in manifest.parts if part.digest not in {k.digest for k in known}]
    assign = AssignTask(at, table, EXACT, is_older=True)
    assigning = AssignNewTask(Handshake.here(), assign, known)
    rows = parts_frame(spark, unplaced).mapInArrow(assigning, _ROW)
    every = spark.range(0, count + 1, 1, 1).selectExpr(
        "CAST(id AS int) AS partition", "'' AS place", "CAST(NULL AS binary) AS subscriptions"
    )
    segments = (*before.segments, before.residual)
    task = PlaceTask(Handshake.here(), at, segments, gone)
    written = (
        rows.union(every)
        .repartitionById(count + 1, "partition")
        .mapInArrow(task, _PLACED)
        .collect()
    )
    placed = {row["partition"]: _parse(row["parts"]) for row in written}
    new = tuple(placed[number] for number in range(count + 1))
    held = sum(count_rows(parts) for parts in new)
    return replace(
        before,
        segments=new[:-1],
        residual=new[-1],
        replication=held / max(1, count_rows(manifest.parts)),
    )


def _parse(text: str) -> tuple[StagedPart, ...]:
    return tuple(StagedPart(**part) for part in json.loads(text))


@dataclass(frozen=True, slots=True)
class GoneTask:
    """The function for `mapInArrow` that finds rows which the parts of a version lack."""

    handshake: Handshake
    uri: str
    before: tuple[StagedPart, ...]
    now: tuple[StagedPart, ...]

    @noting_errors
    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the digests of the rows that are gone, whatever comes in."""
        self.handshake.check()
        for _ in batches:
            pass
        left = KnownRows(join_digests([open_known(self.uri, part) for part in self.now]))
        old = join_digests([open_known(self.uri, part) for part in self.before])
        gone = old[left.find(old) < 0]
        yield pa.RecordBatch.from_pydict({"digests": pa.array([gone.tobytes()], pa.binary())})


@dataclass(frozen=True, slots=True)
class AssignNewTask:
    """The function for `mapInArrow` that sends rows which are not known to their partitions."""

    handshake: Handshake
    assigning: AssignTask
    known: tuple[StagedPart, ...]

    @noting_errors
    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the new subscriptions of some parts, once for each of their partitions."""
        self.handshake.check()
        uri = self.assigning.uri
        opened = [open_known(uri, part) for part in self.known]
        known = KnownRows(join_digests(opened))
        for part in read_parts(batches):
            found = open_known(uri, part)
            is_new = found.is_alive & (known.find(found.digests) < 0)
            new = replace(found, is_alive=is_new).living()
            yield from self._send(new, part.digest)

    def _send(self, part: KnownPart, digest: str) -> Iterator[pa.RecordBatch]:
        lists, rows, partitions = self.assigning.assign(part.columns)
        for partition in np.unique(partitions).tolist():
            own = rows[partitions == partition]
            for first in range(0, len(own), _ROWS_MAX):
                at = own[first : first + _ROWS_MAX]
                chosen = KnownPart(
                    part.columns.take(at), part.digests[at], np.ones(len(at), bool), lists.take(at)
                )
                yield pa.RecordBatch.from_pydict(
                    {
                        "partition": pa.array([partition], pa.int32()),
                        "place": [f"{digest} {first:012}"],
                        "subscriptions": pa.array([pickle.dumps(chosen)], pa.binary()),
                    }
                )


@dataclass(frozen=True, slots=True)
class PlaceTask:
    """The function for `mapInArrow` that writes what is new in one partition.

    `segments[p]` are the parts that partition p has; the last is that of residual subscriptions.
    """

    handshake: Handshake
    uri: str
    segments: tuple[tuple[StagedPart, ...], ...]
    gone: RowDigests

    @noting_errors
    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the parts that the partition of a task has now."""
        self.handshake.check()
        pieces = [row for batch in batches for row in batch.to_pylist()]
        if not pieces:
            return
        partition = pieces[0]["partition"]
        held = self._open_segment(self.segments[partition])
        pieces.sort(key=lambda row: str(row["place"]))  # they come in any order
        new = [
            pickle.loads(row["subscriptions"])  # noqa: S301  our own task's
            for row in pieces
            if row["subscriptions"] is not None
        ]
        if new:
            held.append((None, join_known(new)))
        parts = [asdict(part) for part in write_held(self.uri, held)]
        yield pa.RecordBatch.from_pydict(
            {"partition": pa.array([partition], pa.int32()), "parts": [json.dumps(parts)]}
        )

    def _open_segment(self, parts: Sequence[StagedPart]) -> list[HeldPart]:
        gone = KnownRows(self.gone)
        held: list[HeldPart] = []
        for old in parts:
            part = open_known(self.uri, old)
            is_left = gone.find(part.digests) < 0
            held.append((old, replace(part, is_alive=part.is_alive & is_left)))
        return held
