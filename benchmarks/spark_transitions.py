"""Micro-batches of `contrada.spark.transitions`, against the same processor that only counts.

10,000 fences, tiles of a side of one; objects that move by about one tile a batch, so that they
enter, leave and cross; all kinds, 64 shards, `local[2]`. Batches of 50,000 and 500,000 positions,
all new, of as many objects as a tenth of them; the sink writes nothing. `counting` reads, judges,
packs and groups the same positions, and its processor counts the rows of a shard and keeps eight
bytes. Times are `addBatch` in the progress of the query; both take turns in runs of eight batches,
the first three of which are not counted; medians of three runs, seed 1.

The last table has a million objects in the state: the time of a batch of 50,000 positions, and the
bytes of the state.

    python benchmarks/spark_transitions.py [--quick]

What is asked: 1.5 times the time of `counting` or less with 50,000 positions, and twice that with
500,000. `--quick` has a fiftieth of the positions and objects, runs once and asks nothing.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import shapely

import contrada.spark
from contrada.reproduce.reporting import Column
from contrada.spark import shard_processing
from contrada.spark.position_tasks import read_packed
from contrada.spark.shard_processing import ShardProcessor, ShardRows
from contrada.spark.transition_answers import FollowTally
from micro_batches import (
    SETTINGS,
    WARM_UPS,
    BatchTime,
    has_rows,
    median_ms,
    read_batches,
    run_in_turns,
)
from reporting import Report, count, mebibytes, ratio
from spark_jobs import start_spark

SIDE = 100  # tiles in a row
BATCHES, REPEATS, SHARDS = 8, 3, 64
SIZES = {50_000: 1.5, 500_000: 2.0}  # positions of a batch, and what is asked
RESIDENTS, RESIDENT_POSITIONS = 1_000_000, 50_000
OBJECTS_SHARE = 10  # an object has so many positions in a batch
AGE_S = 86_400  # how old the first position is
FOLLOW, COUNTING = "follow", "counting"


class CountingProcessor(ShardProcessor):
    """The same processor, of which only the rows of a shard are counted."""

    def _follow(
        self,
        shard: int,  # noqa: ARG002
        brought: ShardRows,
    ) -> tuple[list[bytes], FollowTally]:
        assert self._state is not None
        rows = read_packed(brought.packed)
        found = 0 if rows is None else rows.num_rows
        kept = self._state.get()
        before = 0 if kept is None else int.from_bytes(kept[0], "little")
        self._state.update(((before + found).to_bytes(8, "little"),))
        return [], FollowTally(evaluated=found, applied=found, state_bytes=8)


def main() -> int:
    """Measure; print tables and what was reached, and write them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a fiftieth of all, once")
    options = parser.parse_args()
    divisor = 50 if options.quick else 1
    report = Report("spark_transitions", "pyspark")
    spark = start_spark(SETTINGS)
    with tempfile.TemporaryDirectory(prefix="transitions-") as name:
        folder = Path(name)
        contrada.spark.publish(spark.createDataFrame(make_tiles()), folder / "tiles", lead=0)
        compare(report, spark, folder, divisor, 1 if options.quick else REPEATS)
        fill(report, spark, folder, divisor)
    return report.finish()


def make_tiles() -> pa.Table:
    """Make the fences."""
    x, y = np.divmod(np.arange(SIDE * SIDE), SIDE)
    tiles = shapely.to_wkb(shapely.box(x, y, x + 1, y + 1))
    return pa.table({"id": np.arange(SIDE * SIDE), "geometry": tiles})


def write_positions(folder: Path, begin_us: int, objects: list[np.ndarray[Any, Any]]) -> Path:
    """Write batches of positions, each of two files; times go on from one to the next."""
    folder.mkdir()
    rng = np.random.default_rng(1)
    homes = rng.uniform(2, SIDE - 2, (max(int(o.max()) for o in objects) + 1, 2))
    first = 0
    for batch, own in enumerate(objects):
        ids = first + np.arange(len(own))
        first += len(own)
        table = pa.table(
            {
                "id": ids,
                "object_id": own,
                "time": pa.array(begin_us + 1_000 * ids, pa.timestamp("us", "UTC")),
                "geometry": shapely.to_wkb(
                    shapely.points(homes[own] + rng.uniform(-1, 1, (len(own), 2)))
                ),
            }
        )
        for part in range(2):
            rows = table.take(pa.array(np.arange(part, len(own), 2)))
            pq.write_table(rows, folder / f"{batch:04}-{part}.parquet")
    return folder


def begin_of() -> int:
    """Return when the first position was, so that none is in the future."""
    return (int(time.time()) - AGE_S) * 1_000_000


def make_job(
    spark: Any, events: Path, tiles: Path, processor: type[ShardProcessor]
) -> Callable[[int], Any]:
    """Return a run of all batches by a processor."""

    def run(_: int) -> list[BatchTime]:
        return [step for step, _ in run_all(spark, events, tiles, processor)]

    return run


def run_all(
    spark: Any, events: Path, tiles: Path, processor: type[ShardProcessor]
) -> list[tuple[BatchTime, int]]:
    """Run all batches; return the time of each, and the bytes of the state after it."""
    before = shard_processing.ShardProcessor
    shard_processing.ShardProcessor = processor  # type: ignore[misc]
    try:
        answer = contrada.spark.transitions(read_batches(spark, events), str(tiles), shards=SHARDS)
    finally:
        shard_processing.ShardProcessor = before  # type: ignore[misc]
    with tempfile.TemporaryDirectory(prefix="checkpoint-") as checkpoint:
        writer = answer.writeStream.format("noop").option("checkpointLocation", checkpoint)
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        return [read_step(progress) for progress in query.recentProgress if has_rows(progress)]


def read_step(progress: Any) -> tuple[BatchTime, int]:
    """Read what Spark says of a batch."""
    stated = json.loads(progress.json)
    rows = stated.get("observedMetrics", {}).values()
    held = sum(row.get("state_bytes") or 0 for row in rows)
    return BatchTime(stated["durationMs"]["addBatch"], None), held


def compare(report: Report, spark: Any, folder: Path, divisor: int, repeats: int) -> None:
    """Compare batches of two sizes with the processor that only counts."""
    table = report.start_table(
        Column("addBatch, median", width_min=18, is_text=True),
        *map(count, ("positions", "objects")),
        *(Column(f"{name} [ms]") for name in (COUNTING, FOLLOW)),
        ratio(f"{FOLLOW}/{COUNTING}"),
    )
    for size, most in SIZES.items():
        positions = size // divisor
        objects = np.arange(positions) % (positions // OBJECTS_SHARE)
        events = write_positions(folder / f"events-{size}", begin_of(), [objects] * BATCHES)
        jobs = {
            name: make_job(spark, events, folder / "tiles", processor)
            for name, processor in ((COUNTING, CountingProcessor), (FOLLOW, ShardProcessor))
        }
        runs = run_in_turns(jobs, repeats)
        times = {
            name: statistics.median(median_ms(run) for run in of_job)
            for name, of_job in runs.items()
        }
        found = times[FOLLOW] / times[COUNTING]
        known = len(np.unique(objects))
        table.add("64 shards", positions, known, *map(round, times.values()), found)
        if divisor == 1:
            report.ask_limit(f"{positions:,} positions a batch", found, most=most)


def fill(report: Report, spark: Any, folder: Path, divisor: int) -> None:
    """Fill the state with objects, and time batches over it."""
    table = report.start_table(
        Column("resident objects", width_min=18, is_text=True),
        *map(count, ("objects", "positions")),
        Column("a batch [ms]"),
        mebibytes("state"),
    )
    residents, positions = RESIDENTS // divisor, RESIDENT_POSITIONS // divisor
    rng = np.random.default_rng(2)
    some = [rng.integers(0, residents, positions) for _ in range(BATCHES)]
    batches = [np.arange(residents), *some]
    events = write_positions(folder / "resident", begin_of(), batches)
    steps = run_all(spark, events, folder / "tiles", ShardProcessor)
    times = [step.add_batch_ms for step, _ in steps[1 + WARM_UPS :]]
    median, held = round(statistics.median(times)), steps[-1][1]
    table.add("64 shards", residents, positions, median, held / 2**20)


if __name__ == "__main__":
    sys.exit(main())
