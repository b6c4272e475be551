"""How both plans on local Spark grow with the number of subscriptions at the same density.

10,000, 100,000 and 1,000,000 scattered polygons of 12–59 vertices, one to each unit square of a
universe that grows with them; 1,000,000 points over it, `within`, Parquet to Parquet. Each plan and
size has a Spark of its own, so that memory is its own: `peak` is the most that one Python worker
has had resident, staging included, and `private` what it shares with no other process while it
matches. The job takes turns with `identity`, which decodes nothing and writes as many rows; medians
of five; seed 1.

    python benchmarks/spark_scaling.py [--quick] [--sizes 10000 100000 1000000]
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import shapely
from numpy.random import Generator

import contrada.spark
from contrada.pictures.plots import Panel, Series, draw_panels
from contrada.reproduce.reporting import Column
from contrada.reproduce.scenarios import scattered_regions
from memory import MemoryWatch
from reporting import MIB, RESULTS, Report, count, mebibytes, seconds
from spark_jobs import (
    PAIRS,
    Shapes,
    count_rows,
    make_identity,
    points_in,
    start_spark,
    time_in_turns,
    time_once,
    write_answer,
    write_events,
    write_zones,
)

PLANS = ("broadcast", "partitioned")
TARGET = 1.5


@dataclass(frozen=True, slots=True)
class Measured:
    """One plan over one number of subscriptions."""

    plan: str
    size: int
    pairs: int
    staged_bytes: int
    staging_s: float
    identity_s: float
    ours_s: float
    event_us: float
    peak_bytes: int
    private_bytes: int


def main() -> int:
    """Measure all sizes with both plans."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="100,000 points, three runs")
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    options = parser.parse_args()
    points, repeats = (100_000, 3) if options.quick else (1_000_000, 5)
    report = Report("spark_scaling", "pyspark")
    report.say(f"{points:,} points")
    table = report.start_table(
        Column("plan", width_min=11, is_text=True),
        *map(count, ("polygons", "pairs")),
        mebibytes("staged"),
        *map(seconds, ("staging", "identity", "ours")),
        Column("µs/event", format=".2f"),
        *map(mebibytes, ("peak", "private")),
    )
    measured = []
    for one in measure_all(np.random.default_rng(1), options.sizes, points, repeats):
        measured.append(one)
        times = (one.staging_s, one.identity_s, one.ours_s, one.event_us)
        memory = (one.peak_bytes / MIB, one.private_bytes / MIB)
        staged = one.staged_bytes / MIB
        table.add(one.plan, one.size, one.pairs, staged, *times, *memory)
    for plan in PLANS:
        event_us = [one.event_us for one in measured if one.plan == plan]
        work = f"{plan}: time per event from {options.sizes[0]:,} to {options.sizes[-1]:,}"
        report.ask_limit(work, max(event_us) / event_us[0], most=TARGET)
    draw(measured)
    return report.finish()


def measure_all(
    rng: Generator, sizes: Sequence[int], points: int, repeats: int
) -> Iterator[Measured]:
    """Make each set of polygons, and measure both plans over it; they must find as many pairs."""
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            side = int(np.ceil(np.sqrt(size)))
            polygons: Shapes = shapely.transform(scattered_regions(rng, size), lambda xy: xy * side)  # noqa: B023
            events = write_events(
                Path(folder) / "events", points_in(rng, (0, 0, side, side), points)
            )
            zones = write_zones(Path(folder) / "zones.parquet", polygons, "within")
            found = [measure(plan, size, events, zones, points, repeats) for plan in PLANS]
            assert len({one.pairs for one in found}) == 1, found
            yield from found


def measure(plan: str, size: int, events: Path, zones: Path, points: int, repeats: int) -> Measured:
    """Stage, time and weigh one plan in a Spark of its own."""
    out = zones.with_name("out")
    spark = start_spark()
    frame, subscriptions = spark.read.parquet(str(events)), spark.read.parquet(str(zones))
    answers: list[Any] = []
    with MemoryWatch() as before:
        staging_s = time_once(
            lambda: answers.append(contrada.spark.match(frame, subscriptions, plan=plan))
        )
    write_answer(answers[0], out)
    pairs = count_rows(out)
    identity = frame.mapInArrow(make_identity(pairs / points), PAIRS)
    jobs = {
        "identity": lambda: write_answer(identity, out),
        "ours": lambda: write_answer(answers[0], out),
    }
    taken_s = time_in_turns(jobs, repeats)
    with MemoryWatch() as peaks:
        write_answer(answers[0], out)
    staged_bytes = contrada.spark.explain(frame, subscriptions, plan="broadcast").size_bytes
    spark.stop()
    return Measured(
        plan,
        size,
        pairs,
        staged_bytes,
        staging_s,
        taken_s["identity"],
        taken_s["ours"],
        taken_s["ours"] / points * 1e6,
        max(before.worker, peaks.worker),
        peaks.private,
    )


def draw(measured: Sequence[Measured]) -> None:
    """Draw the time of an event and the memory of a worker over the number of subscriptions."""
    panels = []
    for title, values in (
        ("µs per event", [one.event_us for one in measured]),
        ("MiB per Python worker, at most", [one.peak_bytes / MIB for one in measured]),
    ):
        series = []
        for colour, plan in enumerate(PLANS):
            chosen = [(m.size, v) for m, v in zip(measured, values, strict=True) if m.plan == plan]
            x, y = zip(*chosen, strict=True)
            series.append(Series(plan, x, y, colour))
        panels.append(Panel(series, title, is_x_log=True))
    RESULTS.mkdir(exist_ok=True)
    draw_panels(
        RESULTS / "spark_scaling.png",
        panels,
        title="Subscriptions at the same density, local[2]",
        x_label="subscriptions",
        y_label="",
        scale="log",
    )


if __name__ == "__main__":
    sys.exit(main())
