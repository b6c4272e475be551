"""The broadcast plan on local Spark, Parquet to Parquet, beside what no plan avoids and its peers.

- communes: 5,000,000 points over the 13,000 or so communes of `fr_communes_paris_basin`.
- scattered: 1,000,000 points over 85,550 scattered polygons of 12–59 vertices.
- shorelines: 1,000,000 points over `gshhg_shorelines_west`.

Each job reads points as WKB and writes pairs. `identity` is a `mapInArrow` that decodes nothing and
writes as many rows; `hand` is the best job that we would write by hand (a tree and prepared
polygons once per worker, `contains_xy`); `one process` is `match_many` on the same rows with one
thread. The bound of a job is identity + 1.2 × half of `one process`. Runs alternate; medians; seed
1; a session that is warm. The layers are looked for in `../shared/data` and left out if absent.

    python benchmarks/spark_pipeline.py [--quick]
"""

import argparse
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import shapely
from numpy.random import Generator
from numpy.typing import NDArray

import contrada
import contrada.spark
from contrada.reproduce.workloads import scattered_regions

DATA = Path(__file__).parents[2] / "shared" / "data"
PAIRS = "event long, subscription long, subscriber string, version string"


def main() -> int:
    """Run the workloads that can be run here."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the points, three runs")
    quick = parser.parse_args().quick
    spark = contrada.spark.session("local[2]")
    print(f"Python {platform.python_version()}, Spark {spark.version}, {platform.machine()}")
    rng = np.random.default_rng(1)
    share = 0.1 if quick else 1.0
    print(f"{'':12}{'points':>10}{'pairs':>10}", *(f"{n:>12}" for n in COLUMNS), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for name, points, polygons in workloads(rng, share):
            run(spark, Path(folder), name, points, polygons, repeats=3 if quick else 5)
    spark.stop()
    return 0


COLUMNS = ("identity s", "ours s", "hand s", "1 process s", "of bound", "of hand", "rows/s")


def workloads(
    rng: Generator, share: float
) -> Iterator[tuple[str, NDArray[np.float64], NDArray[np.object_]]]:
    """Give the workloads: a name, points, and polygons."""
    for name, layer, count in (
        ("communes", "fr_communes_paris_basin", 5_000_000),
        ("shorelines", "gshhg_shorelines_west", 1_000_000),
    ):
        path = DATA / f"{layer}.parquet"
        if path.is_file():
            polygons = shapely.from_wkb(pq.read_table(path)["geometry"].to_numpy())
            polygons = shapely.make_valid(polygons)
            yield name, points_in(rng, shapely.total_bounds(polygons), int(count * share)), polygons
        else:
            print(f"{name:12} left out: there is no {layer}.parquet")
    polygons = scattered_regions(rng, 85_550)
    yield "scattered", points_in(rng, (0, 0, 1, 1), int(1_000_000 * share)), polygons


def points_in(rng: Generator, box: Any, count: int) -> NDArray[np.float64]:
    """Scatter points over a box."""
    west, south, east, north = box
    return np.column_stack([rng.uniform(west, east, count), rng.uniform(south, north, count)])


def run(
    spark: Any,
    folder: Path,
    name: str,
    points: NDArray[np.float64],
    polygons: NDArray[np.object_],
    repeats: int,
) -> None:
    """Time all jobs of one workload, one after another, several times."""
    events = write_points(folder / f"{name}-events", points)
    table = pa.table(
        {
            "id": np.arange(len(polygons)),
            "geometry": shapely.to_wkb(polygons).tolist(),
            "relation": ["within"] * len(polygons),
        }
    )
    zones = folder / f"{name}-zones.parquet"
    pq.write_table(table, zones)
    frame, subscriptions = spark.read.parquet(str(events)), spark.read.parquet(str(zones))
    matcher = contrada.Matcher()
    matcher.add_many(table)
    answer = contrada.spark.match(frame, subscriptions)
    hand = frame.mapInArrow(hand_written(str(zones)), PAIRS)
    pairs = write(answer, folder / "out")
    assert write(hand, folder / "out") == pairs
    identity = frame.mapInArrow(identity_of(pairs / len(points)), PAIRS)
    alone = pa.concat_tables(pq.read_table(part) for part in sorted(events.glob("*.parquet")))
    jobs: dict[str, Callable[[], object]] = {
        "identity": lambda: write(identity, folder / "out"),
        "ours": lambda: write(answer, folder / "out"),
        "hand": lambda: write(hand, folder / "out"),
        "alone": lambda: matcher.match_many(alone, threads=1),
    }
    s = alternate(jobs, repeats)
    bound = s["identity"] + 1.2 * s["alone"] / 2
    cells = [s["identity"], s["ours"], s["hand"], s["alone"], s["ours"] / bound]
    print(
        f"{name:12}{len(points):>10,}{pairs:>10,}",
        *(f"{cell:>12.2f}" for cell in (*cells, s["hand"] / s["ours"])),
        f"{len(points) / s['ours']:>12,.0f}",
        flush=True,
    )


def alternate(jobs: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Time jobs in turns; give the median of each."""
    taken: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(repeats):
        for name, job in jobs.items():
            started = time.perf_counter()
            job()
            taken[name].append(time.perf_counter() - started)
    return {name: statistics.median(times) for name, times in taken.items()}


def write_points(path: Path, points: NDArray[np.float64]) -> Path:
    """Write points as WKB, in two files."""
    path.mkdir()
    for part, rows in enumerate(np.array_split(np.arange(len(points)), 2)):
        wkb = np.asarray(shapely.to_wkb(shapely.points(points[rows])))
        geometry = pa.array(wkb.tolist(), pa.binary())
        pq.write_table(pa.table({"id": rows, "geometry": geometry}), path / f"{part}.parquet")
    return path


def write(answer: Any, path: Path) -> int:
    """Write an answer as Parquet; give the number of rows."""
    answer.write.mode("overwrite").parquet(str(path))
    return sum(pq.read_metadata(part).num_rows for part in path.glob("*.parquet"))


def identity_of(ratio: float) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Make a job that only answers: so many rows for each row that comes in."""

    def run_identity(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            ids = batch.column(0)
            at = pa.array(np.arange(int(len(ids) * ratio)) % max(1, len(ids)))
            taken = ids.take(at)
            empty = pa.nulls(len(at), pa.string())
            yield pa.RecordBatch.from_arrays(
                [taken, taken, empty, empty], ["event", "subscription", "subscriber", "version"]
            )

    return run_identity


def hand_written(path: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Make the job that a careful user would write today."""

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


if __name__ == "__main__":
    sys.exit(main())
