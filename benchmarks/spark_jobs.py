"""What the benchmarks on Spark share: a session, layers, files, and jobs that take turns."""

import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import shapely
from numpy.random import Generator
from numpy.typing import NDArray

import contrada.spark

Shapes = NDArray[np.object_]
Task = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

PAIRS = "event long, subscription long, subscriber string, version string"
_DATA = Path(__file__).parents[2] / "shared" / "data"
_WARM_UPS = 2  # the first jobs of a kind find a cold Java
_WAIT_MAX_S = 45.0  # Spark ends Python workers that were idle for a minute, and all that they keep
_WORKERS = "BENCHMARK_WORKERS"  # workers with different environments are different processes


def start_spark(settings: Mapping[str, str] | None = None) -> Any:
    """Start our Spark, or give the one that runs; as much memory as its peer has."""
    fixed = {"spark.driver.memory": "4g"}
    return contrada.spark.session("local[2]", config=fixed | dict(settings or {}))


def read_layer(name: str) -> Shapes | None:
    """Read the polygons of a layer, mended; None where the layer is not here."""
    path = _DATA / f"{name}.parquet"
    if not path.is_file():
        return None
    shapes: Shapes = shapely.make_valid(shapely.from_wkb(pq.read_table(path)["geometry"]))
    return shapes[~shapely.is_empty(shapes)]


def points_in(rng: Generator, box: Any, count: int) -> Shapes:
    """Scatter points over a box."""
    west, south, east, north = box
    x, y = rng.uniform(west, east, count), rng.uniform(south, north, count)
    return np.asarray(shapely.points(x, y))


def write_events(path: Path, shapes: Shapes) -> Path:
    """Write geometries with a number each as WKB, in two files: one for each core."""
    path.mkdir()
    for part, rows in enumerate(np.array_split(np.arange(len(shapes)), 2)):
        pq.write_table(as_table(rows, shapes[rows]), path / f"{part}.parquet")
    return path


def as_table(ids: NDArray[np.int64], shapes: Shapes, **columns: Any) -> pa.Table:
    """Make a table of ids, WKB, and more columns."""
    wkb = pa.array(np.asarray(shapely.to_wkb(shapes)).tolist(), pa.binary())
    return pa.table({"id": ids, "geometry": wkb, **columns})


def write_zones(path: Path, shapes: Shapes, relation: str) -> Path:
    """Write one subscription for each geometry, all with one relation."""
    pq.write_table(
        as_table(np.arange(len(shapes)), shapes, relation=[relation] * len(shapes)), path
    )
    return path


def write_answer(answer: Any, path: Path) -> None:
    """Run a job, into a folder of Parquet."""
    answer.write.mode("overwrite").parquet(str(path))


def count_rows(path: Path) -> int:
    """Count the rows of a folder of Parquet."""
    return sum(pq.read_metadata(part).num_rows for part in path.glob("*.parquet"))


def time_once(job: Callable[[], object]) -> float:
    """Give the seconds that a job takes."""
    started = time.perf_counter()
    job()
    return time.perf_counter() - started


def time_in_turns(jobs: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Time jobs that take turns, after some turns that warm up; give the median of each.

    A job that others have kept waiting for long runs once more before it is timed.
    """
    ended: dict[str, float] = {}
    taken: dict[str, list[float]] = {name: [] for name in jobs}
    for turn in range(_WARM_UPS + repeats):
        for name, job in jobs.items():
            if turn >= _WARM_UPS and time.perf_counter() - ended.get(name, 0) > _WAIT_MAX_S:
                job()
            taken_s = time_once(job)
            ended[name] = time.perf_counter()
            if turn >= _WARM_UPS:
                taken[name].append(taken_s)
    return {name: statistics.median(times) for name, times in taken.items()}


@contextmanager
def own_workers(spark: Any, name: str) -> Iterator[None]:
    """Give the tasks that are made in a block Python workers that run nothing else.

    What other tasks keep in a worker slows it down: Python's collector goes through all of it.
    """
    environment = spark.sparkContext.environment
    environment[_WORKERS] = name
    try:
        yield
    finally:
        del environment[_WORKERS]


def make_identity(ratio: float) -> Task:
    """Make a task that only answers: so many rows for each row that comes in."""

    def run_identity(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            ids = batch.column(0)
            at = pa.array(np.arange(round(len(ids) * ratio)) % max(1, len(ids)))
            taken = ids.take(at)
            empty = pa.nulls(len(at), pa.string())
            yield pa.RecordBatch.from_arrays(
                [taken, taken, empty, empty], ["event", "subscription", "subscriber", "version"]
            )

    return run_identity
