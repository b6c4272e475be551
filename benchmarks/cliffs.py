"""What lies beside the usual path of the default engine, against plain scripts, in one run.

- `ranges`: 1,000 filters `speed > a`, each true for half a percent of 65,536 rows; NumPy, with the
  pairs in order;
- `patterns`: 20 filters `LIKE 'ship-…%'` on 65,536 rows; PyArrow, with the pairs in order;
- `disjoint`: one point and every one of 58,733 block groups; Shapely on prepared polygons, with the
  sorted list of ids;
- `regions`: one polygon and 58,733 Egenhofer relations, `ehDisjoint` among them; full relations by
  Shapely;
- `single`: events with one point each over 58,733 block groups with a range each, one call an
  event; Shapely's tree asked by hand, with the check of the range.

Indexes are made beforehand. Runs take turns in an order drawn anew each time (seed 1); medians.

    python benchmarks/cliffs.py [--data ../shared/data] [--repeats 5]

What is asked: a third of the speed of the plain script. The table goes to `results/cliffs.txt`
beside this file. The exit code is 1 where a target is missed.
"""

import argparse
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import shapely
from numpy.typing import NDArray

import contrada
from contrada.reproduce.reporting import Column
from reporting import Report, ratio, seconds

ROWS, RANGES, PATTERNS, EVENTS = 65_536, 1_000, 20, 2_000
EGENHOFER = ("ehDisjoint", "ehMeet", "ehOverlap", "ehInside", "ehContains")
LEAST = 1 / 3

Contenders = tuple[Callable[[], Any], Callable[[], Any]]  # Contrada, and the plain script


def main() -> int:
    """Measure all cases; print a table and what was reached, and write them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    if not options.data.is_dir():
        print(f"skipped: no data layers at {options.data}")
        return 0
    report = Report("cliffs", "pyarrow", "shapely")
    table = report.start_table(
        Column("case", width_min=10, is_text=True),
        seconds("contrada"),
        seconds("plain"),
        ratio("plain/contrada"),
    )
    polygons = pq.read_table(options.data / "us_block_groups_2000.parquet")["geometry"]
    for name, contenders in make_cases(polygons):
        ours, plain = measure(contenders, options.repeats)
        table.add(name, ours, plain, plain / ours)
        report.ask_ratio(f"{name}: Contrada to the plain script", plain / ours, least=LEAST)
    return report.finish()


def measure(contenders: Contenders, repeats: int) -> tuple[float, float]:
    """Give the median times, after a run of each that compares the answers."""
    ours, plain = (run() for run in contenders)
    assert all(np.array_equal(a, b) for a, b in zip(ours, plain, strict=True))
    times: list[list[float]] = [[], []]
    order = random.Random(1)
    for _ in range(repeats):
        for which in order.sample((0, 1), 2):
            started = time.perf_counter()
            contenders[which]()
            times[which].append(time.perf_counter() - started)
    return statistics.median(times[0]), statistics.median(times[1])


def make_cases(polygons: pa.ChunkedArray) -> Iterator[tuple[str, Contenders]]:
    """Make the cases one after the other."""
    yield "ranges", make_ranges()
    yield "patterns", make_patterns()
    yield "disjoint", make_disjoint(polygons)
    yield "regions", make_regions(polygons)
    yield "single", make_single(polygons)


def make_ranges() -> Contenders:
    """Many filters on a number."""
    rng = np.random.default_rng(1)
    speeds = rng.uniform(0, 100, ROWS)
    bounds = np.quantile(speeds, 0.995) + rng.uniform(0, 0.01, RANGES)
    filters = [f"speed > {bound!r}" for bound in bounds.tolist()]
    match = match_table(filters, pa.table({"speed": speeds}))
    return match, lambda: in_order([np.flatnonzero(speeds > bound) for bound in bounds])


def make_patterns() -> Contenders:
    """Some filters on a text."""
    numbers = np.random.default_rng(2).integers(0, 100_000, ROWS)
    names = pa.array([f"ship-{number:05}" for number in numbers.tolist()])
    prefixes = [f"ship-{number:03}" for number in range(PATTERNS)]
    match = match_table([f"name LIKE '{p}%'" for p in prefixes], pa.table({"name": names}))
    return match, lambda: in_order(
        [np.flatnonzero(pc.starts_with(names, p).to_numpy(zero_copy_only=False)) for p in prefixes]
    )


def match_table(filters: list[str], table: pa.Table) -> Callable[[], list[Any]]:
    """Make a matcher of filters; give what matches the table on one thread."""
    matcher = contrada.Matcher()
    matcher.add_many(pa.table({"id": np.arange(len(filters)), "filter": filters}))

    def match() -> list[Any]:
        found = matcher.match_many(table, threads=1)
        return [found["event"].to_numpy(), found["subscription"].to_numpy()]

    return match


def in_order(rows_of: list[NDArray[np.int64]]) -> list[Any]:
    """Write down pairs in the order of rows, then of filters."""
    rows = np.concatenate(rows_of)
    filters = np.repeat(np.arange(len(rows_of)), [len(rows) for rows in rows_of])
    order = np.lexsort((filters, rows))
    return [rows[order], filters[order]]


def make_disjoint(polygons: pa.ChunkedArray) -> Contenders:
    """One point, and all polygons that it does not meet."""
    shapes, point = shapely.from_wkb(polygons.to_numpy()), shapely.Point(-105, 39.7)
    shapely.prepare(shapes)
    matcher = match_polygons(polygons, relation=["disjoint"] * len(shapes))
    ids = np.arange(len(shapes))

    def by_hand() -> list[int]:
        found: list[int] = ids[shapely.disjoint(shapes, point)].tolist()
        return found

    return lambda: matcher.match({"geometry": point}), by_hand


def make_regions(polygons: pa.ChunkedArray) -> Contenders:
    """One polygon and Egenhofer relations of all kinds."""
    shapes, event = shapely.from_wkb(polygons.to_numpy()), shapely.box(-105.2, 39.5, -104.6, 39.9)
    names = [EGENHOFER[number % len(EGENHOFER)] for number in range(len(shapes))]
    matcher = match_polygons(polygons, relation=names)
    expected: list[Any] = matcher.match({"geometry": event})

    def relate() -> list[Any]:
        shapely.relate(event, shapes)
        return expected  # the matrices alone: what follows from them is not timed

    return lambda: matcher.match({"geometry": event}), relate


def make_single(polygons: pa.ChunkedArray) -> Contenders:
    """Events one by one, each a point with a number."""
    rng = np.random.default_rng(3)
    shapes = shapely.from_wkb(polygons.to_numpy())
    shapely.prepare(shapes)
    bounds = rng.uniform(0, 100, len(shapes)).round(1)
    matcher = match_polygons(polygons, where=[f"speed > {bound!r}" for bound in bounds.tolist()])
    tree = shapely.STRtree(shapes)
    points: Any = shapely.points(rng.uniform([-110, 32], [-90, 45], (EVENTS, 2)))
    events = [{"geometry": point, "speed": 50.0} for point in points]

    def by_hand() -> list[list[int]]:
        found = (tree.query(event["geometry"], "intersects") for event in events)
        return [np.sort(near[bounds[near] < 50.0]).tolist() for near in found]

    return lambda: [matcher.match(event) for event in events], by_hand


def match_polygons(polygons: pa.ChunkedArray, **columns: list[str]) -> contrada.Matcher:
    """Make a matcher of polygons, ready to be asked."""
    matcher = contrada.Matcher()
    matcher.add_many(pa.table({"geometry": polygons, **columns}))
    matcher.stats()
    return matcher


if __name__ == "__main__":
    sys.exit(main())
