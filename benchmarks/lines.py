"""Lines over real polygons: `Matcher.match_many` against `geopandas.sjoin`, in one run.

Relation `intersects`, all pairs, from an Arrow table of WKB to pairs of row numbers:

- `ibtracs_storm_tracks` (4,732 lines) over `gshhg_shorelines_west` (67,446 polygons, the largest of
  111,436 vertices), `us_block_groups_2000` (58,733) and `nws_counties` (3,284);
- `osm_lines_andorra` (8,328 lines) over `osm_natural_andorra_malta` (12,456 polygons).

`sjoin` is what a person writes first, lines on the left; `turned` has the polygons on the left, so
that these are prepared, which is the best of it here and not for every pair of layers. Geometries
are made valid beforehand, and so are the index of the polygons and the matcher. Runs take turns in
an order drawn anew each time (seed 1); medians of five.

    python benchmarks/lines.py [--data ../shared/data] [--repeats 5]

What is asked: one thread as fast as `sjoin`; two faster than one where there is a second of work,
which needs two cores that nobody else uses; at most 2 GB more memory than before the match. The
table goes to `results/lines.txt` beside this file. The exit code is 1 where a target is missed.
"""

import argparse
import random
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import geopandas
import pyarrow as pa
import pyarrow.parquet as pq
import shapely

import contrada
from contrada.reproduce.reporting import Column
from memory import MemoryWatch
from reporting import MIB, Report, count, mebibytes, ratio, seconds

LAYERS = (
    ("gshhg_shorelines_west", "ibtracs_storm_tracks", 2_381),
    ("us_block_groups_2000", "ibtracs_storm_tracks", 9_890),
    ("nws_counties", "ibtracs_storm_tracks", 5_738),
    ("osm_natural_andorra_malta", "osm_lines_andorra", 10_604),
)
RISE_MIB_MAX = 2e9 / MIB
SJOIN, TURNED, ONE, TWO = "sjoin", "turned", "1 thread", "2 threads"

Pairs = set[tuple[int, int]]


def main() -> int:
    """Measure all layers; print a table and what was reached, and write them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    if not options.data.is_dir():
        print(f"skipped: no data layers at {options.data}")
        return 0
    report = Report("lines", "geopandas", "pyarrow")
    table = report.start_table(
        Column("subscriptions", width_min=25, is_text=True),
        Column("events", width_min=20, is_text=True),
        count("pairs"),
        *map(seconds, (SJOIN, TURNED, ONE, TWO)),
        *(ratio(f"{other}/{ONE}") for other in (SJOIN, TURNED)),
        *(mebibytes(f"+{contender}") for contender in (SJOIN, TWO)),
    )
    for subscriptions, events, pairs in LAYERS:
        times, rises = measure(options, subscriptions, events, pairs)
        ratios = [times[other] / times[ONE] for other in (SJOIN, TURNED)]
        table.add(subscriptions, events, pairs, *times.values(), *ratios, rises[SJOIN], rises[TWO])
        work = f"{events} over {subscriptions}"
        report.ask_ratio(f"{work}: {ONE} to {SJOIN}", ratios[0], least=1)
        rise = max(rises[ONE], rises[TWO])
        asked, reached = f"≤ {RISE_MIB_MAX:,.0f} MiB", f"{rise:,.0f} MiB"
        report.ask(f"{work}: rise in memory", asked, reached, rise <= RISE_MIB_MAX)
        if times[ONE] >= 1:
            report.ask_ratio(f"{work}: {TWO} to {ONE}", times[ONE] / times[TWO], least=1.2)
    return report.finish()


def measure(
    options: argparse.Namespace, subscriptions: str, events: str, pairs: int
) -> tuple[dict[str, float], dict[str, float]]:
    """Give the median time of each contender, and by how many MiB its first run made this grow."""
    contenders = make_contenders(
        read_valid(options.data / f"{subscriptions}.parquet"),
        read_valid(options.data / f"{events}.parquet"),
    )
    rises, answers = {}, {}
    for name, run in contenders.items():  # warms up, and checks
        with MemoryWatch() as peaks:
            answers[name] = run()
        rises[name] = (peaks.driver - peaks.samples[0].driver) / MIB
    assert all(answer == answers[SJOIN] for answer in answers.values())
    assert len(answers[SJOIN]) == pairs
    times: dict[str, list[float]] = {name: [] for name in contenders}
    order = random.Random(1)
    for _ in range(options.repeats):
        for name in order.sample(list(contenders), len(contenders)):
            started = time.perf_counter()
            contenders[name]()
            times[name].append(time.perf_counter() - started)
    return {name: statistics.median(taken) for name, taken in times.items()}, rises


def make_contenders(polygons: Any, lines: Any) -> dict[str, Callable[[], Pairs]]:
    """Give what each contender does with the lines; all polygons are ready."""
    table = pa.table({"geometry": pa.array(shapely.to_wkb(lines), pa.binary())})
    frame = geopandas.GeoDataFrame(geometry=polygons)
    frame.sindex.query(shapely.Point(0, 0))
    matcher = contrada.Matcher()
    matcher.add_many(pa.table({"geometry": pa.array(shapely.to_wkb(polygons), pa.binary())}))
    matcher.stats()

    def decode() -> geopandas.GeoDataFrame:
        return geopandas.GeoDataFrame(geometry=shapely.from_wkb(table["geometry"].to_numpy()))

    def join() -> Pairs:
        found = geopandas.sjoin(decode(), frame)
        return set(zip(found.index.tolist(), found["index_right"].tolist(), strict=True))

    def join_turned() -> Pairs:
        found = geopandas.sjoin(frame, decode())
        return set(zip(found["index_right"].tolist(), found.index.tolist(), strict=True))

    def match(threads: int) -> Pairs:
        found = matcher.match_many(table, threads=threads)
        return set(zip(*(found[name].to_pylist() for name in found.column_names), strict=True))

    return {SJOIN: join, TURNED: join_turned, ONE: lambda: match(1), TWO: lambda: match(2)}


def read_valid(path: Path) -> Any:
    """Read the geometries of a layer, made valid, without the empty ones."""
    shapes = shapely.make_valid(shapely.from_wkb(pq.read_table(path)["geometry"].to_numpy()))
    return shapes[~shapely.is_empty(shapes)]


if __name__ == "__main__":
    sys.exit(main())
