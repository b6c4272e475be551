"""Points over real polygons: `Matcher.match_many` against a bare Shapely script, in one run.

1,000,000 points, uniform over the layer's box, as an Arrow table of WKB; relation `within`; from
the table to a table of ids. Layers: `fr_communes_paris_basin` (5,702 polygons, a tiling) and
`gshhg_shorelines_west` (67,446 polygons, very skewed). The bare script decodes, queries an
STRtree, sorts candidates by polygon and asks `contains_xy` of prepared polygons; tree and prepared
polygons are made beforehand for both. Runs alternate; medians of five; seed 1.

    python benchmarks/points.py [--points 1000000] [--data ../shared/data] [--repeats 5]
"""

import argparse
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import shapely

import contrada

LAYERS = ("fr_communes_paris_basin", "gshhg_shorelines_west")
TARGET = 0.7


def main() -> int:
    """Measure both layers and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=1_000_000)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    if not options.data.is_dir():
        print(f"skipped: no data layers at {options.data}")
        return 0
    print(_machine())
    columns = f"{'bare':>12}{'1 thread':>12}{'ratio':>8}{'threads':>12}{'ratio':>8}{'pairs':>10}"
    print(f"{'layer':<26}{columns}")
    is_reached = True
    for layer in LAYERS:
        is_reached &= _measure(layer, options)
    verdict = "reached" if is_reached else "MISSED"
    print(f"target: 1 thread at >= {TARGET:.0%} of the bare script: {verdict}")
    return 0


def _machine() -> str:
    geos = shapely.geos_version_string
    versions = f"shapely {shapely.__version__}, GEOS {geos}, pyarrow {pa.__version__}"
    return f"Python {platform.python_version()}, {versions}, {platform.machine()}"


def _measure(layer: str, options: argparse.Namespace) -> bool:
    polygons = _polygons(options.data / f"{layer}.parquet")
    events = _points(polygons, options.points)
    bare = _BareScript(polygons)
    matcher = contrada.Matcher()
    matcher.add_many(
        pa.table(
            {"geometry": shapely.to_wkb(polygons).tolist(), "relation": ["within"] * len(polygons)}
        )
    )
    contenders: dict[str, Callable[[], pa.Table]] = {
        "bare": lambda: bare.match(events),
        "one": lambda: matcher.match_many(events, threads=1),
        "all": lambda: matcher.match_many(events),
    }
    answers = {name: run() for name, run in contenders.items()}  # warms up, and checks
    pairs = answers["bare"].num_rows
    assert all(_same(answer, answers["bare"]) for answer in answers.values())
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(options.repeats):
        for name, run in contenders.items():
            started = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - started)
    rate = {name: options.points / statistics.median(taken) for name, taken in times.items()}
    one, all_ = rate["one"] / rate["bare"], rate["all"] / rate["bare"]
    print(
        f"{layer:<26}{rate['bare']:>10,.0f}/s{rate['one']:>10,.0f}/s{one:>8.2f}"
        f"{rate['all']:>10,.0f}/s{all_:>8.2f}{pairs:>10,}"
    )
    return bool(one >= TARGET)


def _polygons(path: Path) -> Any:
    shapes = shapely.make_valid(shapely.from_wkb(pq.read_table(path)["geometry"].to_numpy()))
    return shapes[~shapely.is_empty(shapes)]


def _points(polygons: Any, count: int) -> pa.Table:
    west, south, east, north = shapely.total_bounds(polygons)
    rng = np.random.default_rng(1)
    xy = np.column_stack([rng.uniform(west, east, count), rng.uniform(south, north, count)])
    wkb = shapely.to_wkb(shapely.points(xy))
    return pa.table({"geometry": pa.array(wkb, pa.binary())})


class _BareScript:
    """What a person with Shapely and NumPy would write for this job, and no other."""

    def __init__(self, polygons: Any) -> None:
        self._polygons = polygons
        shapely.prepare(self._polygons)
        self._tree = shapely.STRtree(self._polygons)

    def match(self, events: pa.Table) -> pa.Table:
        points = shapely.from_wkb(events["geometry"].to_numpy())
        x, y = shapely.get_x(points), shapely.get_y(points)
        rows, ids = self._tree.query(points)
        order = np.argsort(ids, kind="stable")
        rows, ids = rows[order], ids[order]
        inside = shapely.contains_xy(self._polygons[ids], x[rows], y[rows])
        rows, ids = rows[inside], ids[inside]
        order = np.lexsort([ids, rows])
        return pa.table({"event": rows[order], "subscription": ids[order]})


def _same(a: pa.Table, b: pa.Table) -> bool:
    columns = ("event", "subscription")
    return all(a[c].to_pylist() == b[c].to_pylist() for c in columns)


if __name__ == "__main__":
    sys.exit(main())
