"""How long local Spark takes to stage a million polygons, and workers to open them.

1,000,000 squares of five vertices, one to each unit square, `within`, as WKB in Parquet. `staging`
is the call of `match`, in a Spark of its own for each plan, whose Java has run one small job;
1,000,000 points over the squares are matched once, and no time is taken of that. Then two Python
workers that have opened a set of one open the whole, as tasks do before their engine builds an
index, and read all of it: `opened` is the longer time until all columns are there, `mapped` what
both have of the file in memory, `PSS` the same with each page shared out among those who have it.
Seed 1.

    python benchmarks/spark_staging.py [--quick]
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import shapely

import contrada.spark
from contrada.reproduce.reporting import Column
from contrada.spark.joined_parts import join_parts
from contrada.spark.match import plan_match
from contrada.spark.staging import StagedSet
from contrada.spark_options import SparkOptions
from reporting import MIB, Report, count, mebibytes, seconds
from spark_jobs import (
    Shapes,
    count_rows,
    points_in,
    start_spark,
    time_once,
    write_answer,
    write_events,
    write_zones,
)

STAGING_MAX_S = {"broadcast": 25.0, "partitioned": 50.0}
OPENING_MAX_S = 0.5
WORKERS = 2
_OPENED = "seconds double, mapped long, shared long"


def main() -> int:
    """Stage with both plans, then open what was staged."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a tenth of the squares and points")
    size = 100_000 if parser.parse_args().quick else 1_000_000
    report = Report("spark_staging", "pyspark")
    table = report.start_table(
        Column("plan", width_min=11, is_text=True),
        *map(count, ("polygons", "pairs")),
        seconds("staging"),
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rng = np.random.default_rng(1)
        side = int(np.ceil(np.sqrt(size)))
        events = write_events(folder / "events", points_in(rng, (0, 0, side, side), size))
        zones = write_zones(folder / "zones.parquet", squares(rng, size, side), "within")
        for plan, most_s in STAGING_MAX_S.items():
            staging_s, pairs = stage(plan, events, zones)
            table.add(plan, size, pairs, staging_s)
            work = f"{plan}: staging {size:,} polygons"
            report.ask(work, f"≤ {most_s:.0f} s", f"{staging_s:.1f} s", staging_s <= most_s)
        opened = open_in_workers(events, zones, folder)
    columns = (seconds("opened"), *map(mebibytes, ("file", "mapped", "PSS")))
    table = report.start_table(*columns)
    sizes = (opened.file_bytes, opened.mapped_bytes, opened.shared_bytes)
    table.add(opened.opened_s, *(one / MIB for one in sizes))
    work = f"a worker opens {size:,} polygons"
    reached = f"{opened.opened_s:.2f} s"
    report.ask(work, f"≤ {OPENING_MAX_S} s", reached, opened.opened_s <= OPENING_MAX_S)
    copies = opened.shared_bytes / opened.file_bytes
    report.ask_limit(f"copies of the file that {WORKERS} workers have in memory", copies, most=1.1)
    return report.finish()


def squares(rng: np.random.Generator, size: int, side: int) -> Shapes:
    """Scatter squares, one inside of each unit square."""
    west, south = np.divmod(np.arange(size), side) + rng.uniform(0.1, 0.3, (2, size))
    return np.asarray(shapely.box(west, south, west + 0.5, south + 0.5))


def stage(plan: str, events: Path, zones: Path) -> tuple[float, int]:
    """Stage with a plan in a Spark of its own; return the seconds, and how many pairs there are."""
    spark = start_spark()
    frame, subscriptions = spark.read.parquet(str(events)), spark.read.parquet(str(zones))
    assert subscriptions.count() > 0
    answers: list[Any] = []
    staging_s = time_once(
        lambda: answers.append(contrada.spark.match(frame, subscriptions, plan=plan))
    )
    out = zones.with_name("out")
    write_answer(answers[0], out)
    spark.stop()
    return staging_s, count_rows(out)


@dataclass(frozen=True, slots=True)
class Opened:
    """What workers need to open one set: the longest time, and the memory of all together."""

    opened_s: float
    file_bytes: int
    mapped_bytes: int
    shared_bytes: int


def open_in_workers(events: Path, zones: Path, folder: Path) -> Opened:
    """Stage as the plan "broadcast" does, and let two workers open the set at the same time."""
    spark = start_spark()
    frame, subscriptions = spark.read.parquet(str(events)), spark.read.parquet(str(zones))
    one, staged = (
        join_parts(spark, plan_match(frame, rows, SparkOptions()).subscribed.staged)
        for rows in (subscriptions.limit(1), subscriptions)
    )
    (folder / "met").mkdir()
    task = make_opening(one, staged, str(folder / "met"))
    rows = spark.range(0, WORKERS, 1, WORKERS).mapInArrow(task, _OPENED).collect()
    spark.stop()
    return Opened(
        max(row["seconds"] for row in rows),
        staged.size_bytes,
        sum(row["mapped"] for row in rows),
        sum(row["shared"] for row in rows),
    )


def make_opening(first: StagedSet, staged: StagedSet, meeting_place: str) -> Any:
    """Make the function for `mapInArrow` that opens a set, and waits until all have done so."""
    (part,) = staged.parts
    file_name, workers, columns = part.file_name, WORKERS, ["seconds", "mapped", "shared"]

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import os
        import re
        import time
        from pathlib import Path

        from contrada.matcher.column_files import list_columns
        from contrada.spark.open_sets import open_rows

        for _ in batches:
            pass
        open_rows(first)  # which loads what a worker needs for any set
        list(staged.fetch())  # the first on a machine copies and verifies the file
        started = time.perf_counter()
        opened = open_rows(staged)
        opened_s = time.perf_counter() - started
        for column in list_columns(opened.living()).values():
            np.count_nonzero(column.reshape(-1)[::64])  # every page of it
        place = Path(meeting_place)
        (place / f"{os.getpid()}").touch()
        deadline = time.monotonic() + 60
        while len(list(place.iterdir())) < workers and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(1)
        maps = Path("/proc/self/smaps").read_text().split("VmFlags")
        own = [entry for entry in maps if file_name in entry]
        sums = [
            sum(int(n) for entry in own for n in re.findall(rf"^{name}: +(\d+)", entry, re.M))
            for name in ("Rss", "Pss")
        ]
        assert len(opened)
        values = [opened_s, *(1024 * kib for kib in sums)]
        yield pa.RecordBatch.from_pydict({n: [v] for n, v in zip(columns, values, strict=True)})

    return run


if __name__ == "__main__":
    sys.exit(main())
