"""What the benchmarks of streams share: runs of micro-batches, and what Spark says of each."""

import json
import random
import statistics
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from contrada.spark.version_names import name_version

WARM_UPS = 3  # batches at the beginning of a run that are not counted
FILES = 2  # of a batch: one for each core
SETTINGS = {"spark.sql.streaming.numRecentProgressUpdates": "1000"}
_DONE = "contrada_out_"  # how the counts of a batch are named in its progress


@dataclass(frozen=True, slots=True)
class BatchTime:
    """One micro-batch: its time in `addBatch`, and the version that its events met, if any."""

    add_batch_ms: int
    version: str | None


def write_batches(folder: Path, events: pa.Table, count: int) -> Path:
    """Write the same events as so many batches, each of two files."""
    folder.mkdir()
    for batch in range(count):
        for part, rows in enumerate(np.array_split(np.arange(len(events)), FILES)):
            pq.write_table(events.take(pa.array(rows)), folder / f"{batch:04}-{part}.parquet")
    return folder


def read_batches(spark: Any, folder: Path) -> Any:
    """Return the stream of what `write_batches` has written."""
    schema = spark.read.parquet(str(folder)).schema
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", FILES)
    return reader.parquet(str(folder))


def run_batches(answer: Any) -> list[BatchTime]:
    """Run all batches of a stream that are there, into nothing."""
    with tempfile.TemporaryDirectory(prefix="checkpoint-") as checkpoint:
        writer = answer.writeStream.format("noop").option("checkpointLocation", checkpoint)
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        return [read_time(progress) for progress in query.recentProgress if has_rows(progress)]


def has_rows(progress: Any) -> bool:
    """Whether a batch has been run."""
    return bool(progress.numInputRows)


def read_time(progress: Any) -> BatchTime:
    """Read what Spark says of a batch."""
    stated = json.loads(progress.json)
    versions = [
        row.get("version_high")
        for name, row in stated.get("observedMetrics", {}).items()
        if name.startswith(_DONE)
    ]
    version = versions[0] if versions else None
    name = None if version is None else name_version(version)
    return BatchTime(stated["durationMs"]["addBatch"], name)


def median_ms(batches: list[BatchTime]) -> float:
    """Return the median of batches, without those at the beginning."""
    return statistics.median(batch.add_batch_ms for batch in batches[WARM_UPS:])


def run_in_turns(
    jobs: Mapping[str, Callable[[int], list[BatchTime]]], repeats: int
) -> dict[str, list[list[BatchTime]]]:
    """Run jobs with the number of the turn, in an order drawn anew for each; the first warms up."""
    shuffled = random.Random(1)
    runs: dict[str, list[list[BatchTime]]] = {name: [] for name in jobs}
    for turn in range(repeats + 1):
        for name in shuffled.sample([*jobs], len(jobs)):
            run = jobs[name](turn)
            if turn:
                runs[name].append(run)
    return runs
