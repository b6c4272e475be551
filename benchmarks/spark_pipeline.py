"""The broadcast plan on local Spark, Parquet to Parquet, beside what no plan avoids and its peers.

- communes: 5,000,000 points over the 5,702 communes of `fr_communes_paris_basin`.
- shorelines: 1,000,000 points over the 67,446 polygons of `gshhg_shorelines_west`.
- scattered: 1,000,000 points over 85,550 scattered polygons of 12–59 vertices.

Each job reads points as WKB from two files and writes pairs. `identity` is a `mapInArrow` that
decodes nothing and writes as many rows; `hand` is the best job that we would write by hand (a tree
and prepared polygons once per worker, `contains_xy`); `Sedona` is Apache Sedona, with the polygons
decoded, cached and broadcast (`make sedona`; left out without it); `1 process` is `match_many` on
the same rows with one thread. Our bound is identity + 1.2 × half of `1 process`.

Jobs take turns in sessions that are warm: the sets are staged and in the workers' hands, as is the
tree of `hand`, which has workers of its own. What staging takes is a column of its own. Medians of
five; seed 1. The layers are looked for in `../shared/data` and left out if absent.

    python benchmarks/spark_pipeline.py [--quick]
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import shapely
from numpy.random import Generator

import contrada
import contrada.spark
from contrada.pictures.plots import Panel, Series, draw_panels
from contrada.reproduce.reporting import Column, Table
from contrada.reproduce.scenarios import scattered_regions
from reporting import RESULTS, Report, count, seconds
from sedona import Sedona, start_sedona
from spark_jobs import (
    PAIRS,
    Shapes,
    Task,
    count_rows,
    make_identity,
    own_workers,
    points_in,
    read_layer,
    start_spark,
    time_in_turns,
    time_once,
    write_answer,
    write_events,
    write_zones,
)

LAYERS = (
    ("communes", "fr_communes_paris_basin", 5_000_000),
    ("shorelines", "gshhg_shorelines_west", 1_000_000),
)
CONTENDERS = ("identity", "ours", "hand", "Sedona", "1 process")


def main() -> int:
    """Run the workloads that can be run here."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a tenth of the points, three runs")
    quick = parser.parse_args().quick
    report = Report("spark_pipeline", "pyarrow", "pyspark")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        sedona = stack.enter_context(start_sedona())
        report.say(f"Sedona: {sedona.versions if sedona else 'left out (make sedona)'}")
        spark = start_spark()
        stack.callback(spark.stop)
        race = Race(spark, sedona, folder, report, repeats=3 if quick else 5)
        for name, points, polygons in workloads(np.random.default_rng(1), 0.1 if quick else 1.0):
            race.run(name, points, polygons)
    draw(race.results)
    return report.finish()


def workloads(rng: Generator, share: float) -> Iterator[tuple[str, Shapes, Shapes]]:
    """Give the workloads: a name, points, and polygons."""
    for name, layer, points in LAYERS:
        polygons = read_layer(layer)
        if polygons is None:
            print(f"{name} left out: there is no {layer}.parquet")
        else:
            box = shapely.total_bounds(polygons)
            yield name, points_in(rng, box, int(points * share)), polygons
    polygons = scattered_regions(rng, 85_550)
    yield "scattered", points_in(rng, (0, 0, 1, 1), int(1_000_000 * share)), polygons


class Race:
    """All contenders over one workload after another; `results` are their seconds."""

    def __init__(
        self, spark: Any, sedona: Sedona | None, folder: Path, report: Report, repeats: int
    ) -> None:
        self._spark, self._sedona = spark, sedona
        self._folder, self._report, self._repeats = folder, report, repeats
        self._table: Table | None = None
        self.results: dict[str, dict[str, float]] = {}

    def run(self, name: str, points: Shapes, polygons: Shapes) -> None:
        """Time all jobs of one workload, one after another, several times."""
        events = write_events(self._folder / f"{name}-events", points)
        zones = write_zones(self._folder / f"{name}-zones.parquet", polygons, "within")
        frame = self._spark.read.parquet(str(events))
        subscriptions = self._spark.read.parquet(str(zones))
        contrada.spark.match(frame, subscriptions)
        staging_s = time_once(lambda: contrada.spark.match(frame, subscriptions))
        answer = contrada.spark.match(frame, subscriptions, plan="broadcast")
        with own_workers(self._spark, "hand"):
            hand = frame.mapInArrow(write_by_hand(str(zones)), PAIRS)
        jobs = {"ours": self._writing("ours", answer), "hand": self._writing("hand", hand)}
        if self._sedona is not None:
            jobs["Sedona"] = self._joining(self._sedona, events, zones)
        pairs = self._count_pairs(jobs)
        with own_workers(self._spark, "identity"):
            identity = frame.mapInArrow(make_identity(pairs / len(points)), PAIRS)
        jobs = {"identity": self._writing("identity", identity), **jobs}
        jobs["1 process"] = matching_alone(events, zones)
        taken_s = time_in_turns(jobs, self._repeats)
        self.results[name] = taken_s
        self._tell(name, len(points), pairs, staging_s)
        self._judge(name, taken_s)

    def _out(self, job: str) -> Path:
        return self._folder / f"out-{job}"

    def _writing(self, job: str, answer: Any) -> Callable[[], object]:
        return lambda: write_answer(answer, self._out(job))

    def _joining(self, sedona: Sedona, events: Path, zones: Path) -> Callable[[], object]:
        return lambda: sedona.join("within", events, zones, self._out("Sedona"))

    def _count_pairs(self, jobs: dict[str, Callable[[], object]]) -> int:
        """Run each job once: all must find as many pairs."""
        for job in jobs.values():
            job()
        found = {job: count_rows(self._out(job)) for job in jobs}
        assert len(set(found.values())) == 1, found
        return found["ours"]

    def _tell(self, name: str, points: int, pairs: int, staging_s: float) -> None:
        if self._table is None:
            self._table = self._report.start_table(
                Column("workload", width_min=10, is_text=True),
                *map(count, ("points", "pairs")),
                *map(seconds, (*CONTENDERS, "staging")),
                count("our rows/s"),
            )
        taken_s = self.results[name]
        cells = [taken_s.get(contender) for contender in CONTENDERS]
        rate = round(points / taken_s["ours"])
        self._table.add(name, points, pairs, *cells, staging_s, rate)

    def _judge(self, name: str, taken_s: dict[str, float]) -> None:
        ours = taken_s["ours"]
        bound = taken_s["identity"] + 1.2 * taken_s["1 process"] / 2
        work = f"{name}: identity + 1.2 × half of one process"
        self._report.ask(work, f"≤ {bound:.2f} s", f"{ours:.2f} s", ours <= bound)
        self._report.ask_ratio(f"{name}: by hand", taken_s["hand"] / ours, least=0.9)
        if "Sedona" in taken_s:
            self._report.ask_ratio(f"{name}: Sedona", taken_s["Sedona"] / ours, least=1.5)


def matching_alone(events: Path, zones: Path) -> Callable[[], object]:
    """Prepare the same work for one process, without Spark and without files."""
    matcher = contrada.Matcher()
    matcher.add_many(pq.read_table(zones))
    rows = pa.concat_tables(pq.read_table(part) for part in sorted(events.glob("*.parquet")))
    return lambda: matcher.match_many(rows, threads=1)


def write_by_hand(path: str) -> Task:
    """Make the task that a careful user would write today."""

    def run_by_hand(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import builtins

        kept: dict[str, Any] = builtins.__dict__.setdefault("_kept_by_hand", {})
        if path not in kept:
            polygons = shapely.from_wkb(pq.read_table(path)["geometry"].to_numpy())
            shapely.prepare(polygons)
            kept[path] = shapely.STRtree(polygons), polygons
        tree, polygons = kept[path]
        for batch in batches:
            points = shapely.from_wkb(batch.column(1).to_numpy(zero_copy_only=False))
            rows, ids = tree.query(points)
            order = np.argsort(ids, kind="stable")
            rows, ids = rows[order], ids[order]
            x, y = shapely.get_x(points)[rows], shapely.get_y(points)[rows]
            holds = shapely.contains_xy(polygons[ids], x, y)
            rows, ids = rows[holds], ids[holds]
            empty = pa.nulls(len(rows), pa.string())
            yield pa.RecordBatch.from_arrays(
                [batch.column(0).take(pa.array(rows)), pa.array(ids), empty, empty],
                ["event", "subscription", "subscriber", "version"],
            )

    return run_by_hand


def draw(results: dict[str, dict[str, float]]) -> None:
    """Draw the seconds of all contenders, workload beside workload."""
    panels = []
    for name, taken_s in results.items():
        found = [contender for contender in CONTENDERS if contender in taken_s]
        series = [
            Series(contender, [place], [taken_s[contender]], place, "none")
            for place, contender in enumerate(found)
        ]
        panels.append(Panel(series, name, names=dict(enumerate(found))))
    RESULTS.mkdir(exist_ok=True)
    draw_panels(
        RESULTS / "spark_pipeline.png",
        panels,
        title="Points over polygons, Parquet to Parquet, local[2]",
        y_label="seconds",
    )


if __name__ == "__main__":
    sys.exit(main())
