"""What Spark itself costs: one event and a thousand against the same subscriptions, as jobs.

Where the paper has its own master and workers we have Spark, and it costs more than a network does.
"""

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import pyarrow as pa
import shapely
from numpy.random import Generator

from contrada.arrays import Geometries
from contrada.matcher import Matcher
from contrada.reproduce.ahs.load import make_skewed
from contrada.reproduce.ahs.paper import OVERHEAD
from contrada.reproduce.ahs.plan import AhsRun
from contrada.reproduce.reporting import Column, Table, say_prose, say_title, write_ms

SUBSCRIPTIONS = 1_000
_EVENT_COUNTS = (1, 1_000)
_JOBS = 5


def measure_spark(run: AhsRun, master: str | None, simulated_us: float) -> None:
    """Time jobs of `contrada.spark.match`; without a master, explain how to."""
    say_title(run.reporter, "Ours: what Spark costs")
    if master is None:
        say_prose(
            run.reporter,
            "Not measured: `contrada reproduce ahs --spark 'local[2]'` times whole jobs of Spark "
            "beside the simulated workers.",
        )
        return
    table = Table(
        run.reporter,
        [
            Column("events", format=","),
            Column("matches", format=","),
            Column(f"{master}, ms per job", width_min=20),
            Column("in this process, ms"),
        ],
    )
    rng = run.generator(12)
    shapes = make_skewed(rng, SUBSCRIPTIONS)
    with run.reporter.watch(f"Spark on {master}", len(_EVENT_COUNTS)) as step:
        for count in _EVENT_COUNTS:
            points = _make_points(rng, shapes, count)
            table.add(count, *_time_both(master, shapes, points))
            step()
    say_prose(
        run.reporter,
        f"{SUBSCRIPTIONS:,} polygons, exact; the median of {_JOBS} warm jobs, each with all that a "
        "job does: subscriptions are checked and staged, tasks are started, the answer is fetched. "
        f"The simulated workers of Figures 7 to 9 add at most {simulated_us:,.0f} µs to an event, "
        f"the paper's network {OVERHEAD}: Spark is for many events at a time.",
    )


def _make_points(rng: Generator, shapes: Geometries, count: int) -> Geometries:
    """Make points in polygons drawn at random."""
    points: Geometries = shapely.point_on_surface(shapes[rng.integers(0, len(shapes), count)])
    return points


def _time_both(master: str, shapes: Geometries, points: Geometries) -> tuple[int, str, str]:
    """Return the matches, and the ms of a Spark job and of a matcher, both from tables."""
    import contrada.spark

    spark = contrada.spark.session(master)
    events, subscriptions = _as_table(points), _as_table(shapes)
    frames = spark.createDataFrame(events), spark.createDataFrame(subscriptions)
    found, spark_ms = _time(lambda: contrada.spark.match(*frames).toArrow())
    matcher = Matcher()
    matcher.add_many(subscriptions)
    expected, ms = _time(lambda: matcher.match_many(events, threads=1))
    assert found.num_rows == expected.num_rows
    return found.num_rows, write_ms(spark_ms), write_ms(ms)


def _as_table(geometries: Geometries) -> pa.Table:
    ids = pa.array(range(len(geometries)), pa.int64())
    return pa.table({"id": ids, "geometry": pa.array(shapely.to_wkb(geometries), pa.binary())})


def _time(job: Callable[[], Any]) -> tuple[Any, float]:
    """Return the result and the median ms by the clock, after a job that warms up."""
    job()
    times = []
    for _ in range(_JOBS):
        started = time.perf_counter()
        result = job()
        times.append(time.perf_counter() - started)
    return result, median(times) * 1e3
