"""How even the partitioned plan is on very uneven data: `gshhg_shorelines_west` on local Spark.

1,000,000 points over 67,446 polygons, `within`; `uniform` points lie anywhere in the layer's box,
`shore` points within 0.5° of a vertex, so where polygons are many. 4 (what a local session has), 16
and 64 partitions. `weight` is the heaviest partition by its mean, as `contrada.spark.explain` tells
it beforehand; `task` is the longest matching task by the mean of all, as Spark's event log tells it
afterwards, in the last of three runs. `replication` is in how many partitions a polygon lives.

    python benchmarks/spark_partitions.py [--quick]
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import shapely
from numpy.random import Generator

import contrada.spark
from contrada.reproduce.reporting import Column
from reporting import Report, count, ratio, seconds
from spark_jobs import (
    Shapes,
    count_rows,
    points_in,
    read_layer,
    start_spark,
    time_once,
    write_answer,
    write_events,
    write_zones,
)

LAYER = "gshhg_shorelines_west"
PARTITIONS = (4, 16, 64)
RUNS = 3
TARGET = 1.3


@dataclass(frozen=True, slots=True)
class Measured:
    """One division; `label` is the description of its last job in the event log."""

    label: str
    points: str
    partitions: int
    weight: float
    replication: float
    pairs: int
    staging_s: float
    job_s: float


def main() -> int:
    """Divide the layer, match, and look into the log."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a tenth of the points")
    points = 100_000 if parser.parse_args().quick else 1_000_000
    report = Report("spark_partitions", "pyspark")
    polygons = read_layer(LAYER)
    if polygons is None:
        report.say(f"left out: there is no {LAYER}.parquet")
        return 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        measured = list(measure_all(folder, polygons, points))
        taken_ms = read_task_times(folder / "log")
    report.say(f"{points:,} points")
    table = report.start_table(
        Column("points", width_min=8, is_text=True),
        count("partitions"),
        *map(ratio, ("weight", "replication")),
        count("pairs"),
        *map(seconds, ("staging", "job")),
        *(Column(f"task ms, {which}", format=",.0f") for which in ("mean", "longest")),
        ratio("task"),
    )
    for one in measured:
        mean, longest = np.mean(taken_ms[one.label]), max(taken_ms[one.label])
        first = (one.points, one.partitions, one.weight, one.replication, one.pairs)
        table.add(*first, one.staging_s, one.job_s, mean, longest, longest / mean)
        work = f"{one.points}, {one.partitions} partitions: the heaviest by the mean weight"
        report.ask_limit(work, one.weight, most=TARGET)
    return report.finish()


def measure_all(folder: Path, polygons: Shapes, count: int) -> Iterator[Measured]:
    """Run all divisions in one session that keeps a log; a layer has as many pairs each time."""
    rng = np.random.default_rng(1)
    (folder / "log").mkdir()
    spark = start_spark(
        {
            "spark.eventLog.enabled": "true",
            "spark.eventLog.compress": "false",
            "spark.eventLog.rolling.enabled": "false",
            "spark.eventLog.dir": (folder / "log").as_uri(),
        }
    )
    zones = spark.read.parquet(str(write_zones(folder / "zones.parquet", polygons, "within")))
    for name, points in (
        ("uniform", points_in(rng, shapely.total_bounds(polygons), count)),
        ("shore", points_near(rng, polygons, count)),
    ):
        events = spark.read.parquet(str(write_events(folder / name, points)))
        found = [measure(spark, name, events, zones, folder / "out", n) for n in PARTITIONS]
        assert len({one.pairs for one in found}) == 1, found
        yield from found
    spark.stop()


def points_near(rng: Generator, polygons: Shapes, count: int) -> Shapes:
    """Scatter points around vertices."""
    vertices = shapely.get_coordinates(polygons)
    chosen = vertices[rng.integers(0, len(vertices), count)]
    return np.asarray(shapely.points(chosen + rng.uniform(-0.5, 0.5, chosen.shape)))


def measure(spark: Any, name: str, events: Any, zones: Any, out: Path, partitions: int) -> Measured:
    """Divide into so many partitions, and match a few times."""
    spark.conf.set("spark.sql.shuffle.partitions", str(partitions))
    plan = contrada.spark.explain(events, zones, plan="partitioned").partitions
    assert plan is not None
    weights = plan.loads[: plan.table.outside]
    answers: list[Any] = []
    staging_s = time_once(
        lambda: answers.append(contrada.spark.match(events, zones, plan="partitioned"))
    )
    label = f"{name} {partitions}"
    for run in range(1, RUNS + 1):
        spark.sparkContext.setJobDescription(label if run == RUNS else None)
        job_s = time_once(lambda: write_answer(answers[0], out))
    spark.sparkContext.setJobDescription(None)
    weight = float(weights.max() / weights.mean())
    pairs = count_rows(out)
    return Measured(label, name, partitions, weight, plan.replication, pairs, staging_s, job_s)


def read_task_times(folder: Path) -> dict[str, list[float]]:
    """Read how many ms the tasks of each described job's last stage ran; those without rows not."""
    labels: dict[int, str] = {}
    taken: dict[str, dict[int, list[float]]] = {}
    (log,) = folder.iterdir()
    for line in log.read_text().splitlines():
        event = json.loads(line)
        if event["Event"] == "SparkListenerJobStart":
            label = event["Properties"].get("spark.job.description")
            if label is not None:
                labels |= dict.fromkeys(event["Stage IDs"], label)
        elif event["Event"] == "SparkListenerTaskEnd" and event["Stage ID"] in labels:
            metrics = event["Task Metrics"]
            if metrics["Shuffle Read Metrics"]["Total Records Read"]:
                stages = taken.setdefault(labels[event["Stage ID"]], {})
                run_ms = float(metrics["Executor Run Time"])
                stages.setdefault(event["Stage ID"], []).append(run_ms)
    return {label: stages[max(stages)] for label, stages in taken.items()}


if __name__ == "__main__":
    sys.exit(main())
