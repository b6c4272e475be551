"""Memory of a match on local Spark that finds nearly everything: `disjoint`, up to 10^8 pairs.

10,000 `disjoint` subscriptions to scattered polygons; 1,000 and then 10,000 points, so 10^7 and
10^8 pairs less some thousands. Each kind of answer goes to Parquet, pairs also to nowhere (`noop`);
each job has a Spark of its own, with 4 GiB for its Java. Memory is bounded if ten times the pairs
take no more of it: the peaks of one Python worker, of the driver's Python and of its Java are
reported, and those of the worker are asked for and drawn over time.

    python benchmarks/spark_disjoint.py [--quick]
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import shapely
from numpy.random import Generator

import contrada.spark
from contrada.pictures.plots import Panel, Series, draw_panels
from contrada.reproduce.reporting import Column, Table
from contrada.reproduce.scenarios import scattered_regions
from memory import MemoryWatch, Peaks
from reporting import MIB, RESULTS, Report, count, mebibytes, seconds
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

POLYGONS = 10_000
PLANS = ("broadcast", "partitioned")
OUTPUTS = (("counts", "Parquet"), ("pairs", "noop"), ("pairs", "Parquet"))
TARGET = 1.2


@dataclass(frozen=True, slots=True)
class Work:
    """Events and subscriptions in files, and how many pairs they have."""

    events: Path
    zones: Path
    event_count: int
    pairs: int


def main() -> int:
    """Run all jobs with both plans, first few events and then ten times as many."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a tenth of the events")
    sizes = (100, 1_000) if parser.parse_args().quick else (1_000, 10_000)
    report = Report("spark_disjoint", "pyspark")
    table = report.start_table(
        *(Column(name, width_min=11, is_text=True) for name in ("plan", "output", "to")),
        *map(count, ("events", "pairs")),
        seconds("job"),
        *map(mebibytes, ("worker", "private", "driver", "Java")),
    )
    rng = np.random.default_rng(1)
    polygons = scattered_regions(rng, POLYGONS)
    peaks: dict[tuple[str, str, str], list[Peaks]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for size in sizes:
            work = prepare(rng, Path(folder), polygons, size)
            for job in [(plan, *output) for plan in PLANS for output in OUTPUTS]:
                peaks.setdefault(job, []).append(run(*job, work, table))
    for job, (few, many) in peaks.items():
        plan, output, sink = job
        work_name = f"{plan}, {output} to {sink}: a worker's memory for ten times the pairs"
        report.ask_limit(work_name, many.worker / few.worker, most=TARGET)
    draw(peaks)
    return report.finish()


def prepare(rng: Generator, folder: Path, polygons: Shapes, size: int) -> Work:
    """Write points and polygons, and count their pairs without us."""
    zones = write_zones(folder / "zones.parquet", polygons, "disjoint")
    points = points_in(rng, (0, 0, 1, 1), size)
    events = write_events(folder / f"events-{size}", points)
    met = shapely.STRtree(polygons).query(points, predicate="intersects").shape[1]
    return Work(events, zones, size, size * len(polygons) - met)


def run(plan: str, output: str, sink: str, work: Work, table: Table) -> Peaks:
    """Run one job in a Spark of its own; give what memory it took."""
    out = work.zones.with_name("out")
    spark = start_spark()
    frame, zones = spark.read.parquet(str(work.events)), spark.read.parquet(str(work.zones))
    with MemoryWatch() as peaks:
        answer = contrada.spark.match(frame, zones, plan=plan, output=output)
        if sink == "noop":
            taken_s = time_once(answer.write.format("noop").mode("overwrite").save)
        else:
            taken_s = time_once(lambda: write_answer(answer, out))
            found = count_rows(out) if output == "pairs" else sum_counts(out)
            assert found == work.pairs, (found, work.pairs)
    assert contrada.spark.counts(answer).evaluated == work.event_count
    spark.stop()
    memory = [size / MIB for size in (peaks.worker, peaks.private, peaks.driver, peaks.java)]
    table.add(plan, output, sink, work.event_count, work.pairs, taken_s, *memory)
    return peaks


def sum_counts(path: Path) -> int:
    """Add up the matches of all events."""
    return int(pc.sum(pq.read_table(path, columns=["n"])["n"]).as_py())


def draw(peaks: dict[tuple[str, str, str], list[Peaks]]) -> None:
    """Draw the memory of the largest worker over time, job beside job."""
    RESULTS.mkdir(exist_ok=True)
    for plan in PLANS:
        draw_panels(
            RESULTS / f"spark_disjoint_{plan}.png",
            [
                Panel(
                    [as_series(found, number) for number, found in enumerate(both)],
                    f"{output} to {to}",
                )
                for (of, output, to), both in peaks.items()
                if of == plan
            ],
            title=f"Memory of a Python worker for `disjoint`, plan {plan}",
            x_label="seconds",
            y_label="MiB resident",
        )


def as_series(peaks: Peaks, number: int) -> Series:
    """Make a line of what a worker had."""
    samples = peaks.samples
    x: Sequence[float] = [sample.at_s for sample in samples]
    y: Sequence[float] = [sample.worker / MIB for sample in samples]
    return Series(("few events", "ten times as many")[number], x, y, number, marker="")


if __name__ == "__main__":
    sys.exit(main())
