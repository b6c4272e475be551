"""What `match` adds to a micro-batch of a stream, and a new version to the first batch it meets.

Polygons of 36 vertices with a range each (`Stars`), 85,550 of them, published; micro-batches of
1,000 points near their middles, in two files, of which about half match; the sink writes nothing.
`identity` is a `mapInArrow` that decodes nothing and answers with as many rows and the same
columns. Times are `addBatch` in the progress of the query.

- batches: both take turns in runs of 23 batches, the first three of which are not counted.
- first: the first batch of a query whose Python workers are new, the sets in no cache.
- switches: the first batch that meets a version in which 1 % of the rows, or all, have changed,
  over the median of the batches before it in the same run.
- million: the plan `partitioned` over 1,000,000 polygons of five vertices.

Medians of five; seed 1.

    python benchmarks/streams.py [--quick] [--parts batches first switches million]
"""

import argparse
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import shapely
from numpy.random import Generator

import contrada.spark
from contrada.reproduce.reporting import Column, Table
from micro_batches import (
    SETTINGS,
    WARM_UPS,
    BatchTime,
    median_ms,
    read_batches,
    run_batches,
    run_in_turns,
    write_batches,
)
from reporting import Report, count
from spark_jobs import PAIRS, make_identity, own_workers, start_spark
from subscription_cases import (
    FAST,
    POLYGONS,
    RADIUS,
    SMALL_POLYGONS,
    SMALL_VERTICES,
    VERTICES,
    Stars,
)

PARTS = ("batches", "first", "switches", "million")
POINTS, BATCHES, SWITCH_BATCHES = 1_000, 23, 120
PARTITIONS = 4
LEAD_S = 8
ADDED_MAX_MS, FIRST_ADDED_MAX_MS, SWITCH_MAX_MS = 30, 3_000, 500


def main() -> int:
    """Measure the parts that are asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a tenth of the polygons, three runs")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    options = parser.parse_args()
    is_whole = set(options.parts) == set(PARTS)
    report = Report("streams" if is_whole else "_".join(["streams", *options.parts]), "pyspark")
    bench = Bench(report, divisor=10 if options.quick else 1, repeats=3 if options.quick else 5)
    for part in options.parts:
        getattr(bench, f"run_{part}")()
    return report.finish()


class Bench:
    """The parts of the benchmark, each in a Spark of its own."""

    def __init__(self, report: Report, divisor: int, repeats: int) -> None:
        self._report, self._repeats, self._divisor = report, repeats, divisor

    def run_batches(self) -> None:
        """Compare micro-batches of both plans with identity."""
        table = self._start_batches()
        size = POLYGONS // self._divisor
        for plan in ("broadcast", "partitioned"):
            with setting(size, VERTICES, plan) as one:
                ours, identity = self._run_plan(table, one)
            if plan == "broadcast":
                work = f"a batch of {POINTS:,} points over {size:,} subscriptions, {plan}"
                self._ask_added(work, ours - identity, ADDED_MAX_MS)

    def run_million(self) -> None:
        """Compare micro-batches over many small polygons with identity."""
        table = self._start_batches()
        with setting(SMALL_POLYGONS // self._divisor, SMALL_VERTICES, "partitioned") as one:
            self._run_plan(table, one)

    def _start_batches(self) -> Table:
        return self._report.start_table(
            Column("addBatch, median", width_min=18, is_text=True),
            *map(count, ("polygons", "pairs")),
            *map(milliseconds, ("identity", "ours", "added")),
        )

    def _run_plan(self, table: Table, one: "Setting") -> tuple[float, float]:
        runs = run_in_turns(one.jobs(lambda _: ""), self._repeats)
        medians = {
            name: statistics.median(median_ms(run) for run in of_job)
            for name, of_job in runs.items()
        }
        ours, identity = medians["ours"], medians["identity"]
        table.add(one.plan, one.size, one.pairs, identity, ours, ours - identity)
        return ours, identity

    def run_first(self) -> None:
        """Compare the first batch of queries with new workers."""
        size = POLYGONS // self._divisor
        table = self._report.start_table(
            Column("first batch", width_min=18, is_text=True),
            count("polygons"),
            *map(milliseconds, ("identity", "ours", "added")),
        )
        with setting(size, VERTICES, "broadcast", batches=3) as one:
            runs = run_in_turns(one.jobs(lambda turn: f"-{turn}"), self._repeats)
        medians = {
            name: statistics.median(run[0].add_batch_ms for run in of_job)
            for name, of_job in runs.items()
        }
        ours, identity = medians["ours"], medians["identity"]
        table.add(one.plan, size, identity, ours, ours - identity)
        self._ask_added(f"the first batch over {size:,}", ours - identity, FIRST_ADDED_MAX_MS)

    def run_switches(self) -> None:
        """Time the batch that meets a new version."""
        size = POLYGONS // self._divisor
        table = self._report.start_table(
            Column("switch", width_min=18, is_text=True),
            *map(count, ("polygons", "changed")),
            *map(milliseconds, ("median", "switching", "added", "most")),
        )
        with setting(size, VERTICES, "broadcast", SWITCH_BATCHES) as one:
            for share, repeats in ((0.01, self._repeats), (1.0, (self._repeats + 1) // 2)):
                found = [one.switch(share) for _ in range(repeats)]
                before, switching = np.median(np.array(found), axis=0).tolist()
                added = [after - usual for usual, after in found]
                cells = (before, switching, statistics.median(added), max(added))
                table.add(one.plan, size, round(size * share), *cells)
                if share < 1:
                    work = f"the batch that switches version, {share:.0%} of {size:,} changed"
                    self._ask_added(work, statistics.median(added), SWITCH_MAX_MS)

    def _ask_added(self, work: str, added_ms: float, most_ms: int) -> None:
        reached = f"+ {added_ms:.0f} ms"
        self._report.ask(work, f"≤ + {most_ms:,} ms", reached, added_ms <= most_ms)


class Setting:
    """A published set, a stream of points over it, and how many pairs a batch has."""

    def __init__(
        self, spark: Any, folder: Path, stars: Stars, rng: Generator, plan: str, batches: int
    ) -> None:
        """Publish the polygons, and write the batches."""
        self.plan, self.size = plan, len(stars.shapes)
        self._spark, self._folder, self._stars, self._rng = spark, folder, stars, rng
        self._uri = str(folder / "published")
        self._publish(None)
        events = write_batches(folder / "events", make_events(rng, stars), batches)
        self._stream = read_batches(spark, events)
        batch = spark.read.parquet(str(events / "0000-*.parquet"))
        self.pairs = contrada.spark.match(batch, self._uri, plan=plan).count()

    def jobs(
        self, name_workers: Callable[[int], str]
    ) -> dict[str, Callable[[int], list[BatchTime]]]:
        """Make the two jobs that take turns; their workers are their own."""
        identity = make_identity(self.pairs / POINTS)

        def run_ours(turn: int) -> list[BatchTime]:
            with own_workers(self._spark, f"ours{name_workers(turn)}"):
                return run_batches(contrada.spark.match(self._stream, self._uri, plan=self.plan))

        def run_identity(turn: int) -> list[BatchTime]:
            with own_workers(self._spark, f"identity{name_workers(turn)}"):
                return run_batches(self._stream.mapInArrow(identity, PAIRS))

        return {"identity": run_identity, "ours": run_ours}

    def switch(self, share: float) -> tuple[float, float]:
        """Publish a changed version for later, and run batches until it holds.

        Returns the median of batches before, and what the first batch with the version takes.
        """
        self._change(share)
        version = self._publish(LEAD_S)
        batches = self.jobs(lambda _: "")["ours"](0)
        is_new = [batch.version == version for batch in batches]
        assert any(is_new[WARM_UPS + 1 :]), "the batches have ended before the version held"
        at = is_new.index(True)
        assert at > WARM_UPS, "the version held before the batches"
        return median_ms(batches[:at]), float(batches[at].add_batch_ms)

    def _change(self, share: float) -> None:
        """Draw some of the polygons anew."""
        rows = self._rng.choice(self.size, round(self.size * share), replace=False)
        fresh = Stars(self._rng, len(rows), VERTICES)
        self._stars.shapes[rows] = fresh.shapes
        self._stars.bounds[rows] = fresh.bounds

    def _publish(self, lead_s: int | None) -> str:
        path = self._folder / "zones.parquet"
        zones = {
            "id": np.arange(self.size),
            "geometry": self._stars.wkb(),
            "where": self._stars.ranges(),
        }
        pq.write_table(pa.table(zones), path)
        frame = self._spark.read.parquet(str(path))
        count_ = PARTITIONS if self.plan == "partitioned" else None
        lead = 2 if lead_s is None else lead_s
        return contrada.spark.publish(frame, self._uri, partitions=count_, lead=lead)


@contextmanager
def setting(size: int, vertices: int, plan: str, batches: int = BATCHES) -> Iterator[Setting]:
    """Start a Spark, and publish so many polygons in it."""
    rng = np.random.default_rng(1)
    spark = start_spark(SETTINGS)
    try:
        with tempfile.TemporaryDirectory() as folder:
            yield Setting(spark, Path(folder), Stars(rng, size, vertices), rng, plan, batches)
    finally:
        spark.stop()


def make_events(rng: Generator, stars: Stars) -> pa.Table:
    """Scatter points around the middles of some polygons, some faster than ranges ask."""
    near = stars.middles[rng.choice(len(stars.middles), POINTS)]
    points = shapely.points(near + rng.uniform(-RADIUS, RADIUS, (POINTS, 2)))
    wkb = pa.array(shapely.to_wkb(points), pa.binary())
    speeds = rng.uniform(0, FAST, POINTS)
    return pa.table({"id": np.arange(POINTS), "geometry": wkb, "speed": speeds})


def milliseconds(name: str) -> Column:
    """Make a column of milliseconds."""
    return Column(f"{name} ms", format=",.0f", width_min=8)


if __name__ == "__main__":
    sys.exit(main())
