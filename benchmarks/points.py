"""Points over polygons: `Matcher.match_many` against a bare Shapely script, in one run.

1,000,000 points, uniform over the layer's box, as an Arrow table of WKB; relation `within`; from
the table to a table of ids. Layers: `fr_communes_paris_basin` (5,702 polygons, a tiling),
`gshhg_shorelines_west` (67,446 polygons, very skewed) and 85,549 scattered polygons of 12 to 59
vertices. The bare script decodes, queries an STRtree, sorts candidates by polygon and asks
`contains_xy` of prepared polygons; tree and prepared polygons are made beforehand for both. Runs
take turns in an order drawn anew each time; medians of five; seed 1.

    python benchmarks/points.py [--points 1000000] [--data ../shared/data] [--repeats 5]

A table and a plot go to `results/points.md` and `results/points.png` beside this file. The exit
code is 1 where the target is missed.
"""

import argparse
import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import shapely

import contrada
from contrada.reproduce.scenarios import scattered_regions
from machine import describe_machine

SCATTERED = "85,549 scattered polygons"
LAYERS = ("fr_communes_paris_basin", "gshhg_shorelines_west", SCATTERED)
TARGET = 1.6
RESULTS = Path(__file__).parent / "results"
CONTENDERS = {"bare": "bare script", "one": "Contrada, 1 thread", "all": "Contrada, all threads"}
COLOURS = {"bare": "#9aa0a6", "one": "#1b6ca8", "all": "#6fb1de"}


@dataclass(frozen=True, slots=True)
class Measured:
    """One layer: points per second of each contender, and the pairs that all of them found."""

    layer: str
    points_per_s: dict[str, float]
    pairs: int

    def ratio(self, contender: str) -> float:
        """Compare a contender with the bare script."""
        return self.points_per_s[contender] / self.points_per_s["bare"]


def main() -> int:
    """Measure both layers; print a table, and write it with a plot."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--points", type=int, default=1_000_000)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    if not options.data.is_dir():
        print(f"skipped: no data layers at {options.data}")
        return 0
    measured = [_measure(layer, options) for layer in LAYERS]
    is_reached = all(m.ratio("one") >= TARGET for m in measured)
    text = _describe(measured, options, is_reached)
    print(text, end="")
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "points.md").write_text(text, encoding="utf-8")
    _plot(RESULTS / "points.png", measured, options)
    print(f"\nwritten: {RESULTS / 'points.md'}, {RESULTS / 'points.png'}")
    return 0 if is_reached else 1


def _measure(layer: str, options: argparse.Namespace) -> Measured:
    print(f"measuring {layer}", file=sys.stderr, flush=True)
    polygons = (
        np.array(scattered_regions(np.random.default_rng(1), 85_549))
        if layer == SCATTERED
        else _polygons(options.data / f"{layer}.parquet")
    )
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
    assert all(_same(answer, answers["bare"]) for answer in answers.values())
    shuffled = random.Random(1)
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(options.repeats):
        for name in shuffled.sample(list(contenders), len(contenders)):
            started = time.perf_counter()
            contenders[name]()
            times[name].append(time.perf_counter() - started)
    rates = {name: options.points / statistics.median(taken) for name, taken in times.items()}
    return Measured(layer, rates, answers["bare"].num_rows)


def _describe(measured: Sequence[Measured], options: argparse.Namespace, is_reached: bool) -> str:
    """Write the machine, the table and the verdict as Markdown."""
    header = f"{'bare':>10} | {'1 thread':>10} | ratio | {'threads':>10} | ratio | {'pairs':>9}"
    lines = [
        f"# {options.points:,} points over polygons",
        "",
        f"{describe_machine('pyarrow')}. Medians of {options.repeats}, in points per second.",
        "",
        f"| {'layer':<25} | {header} |",
        f"| {'-' * 25} | {'-' * 9}: | {'-' * 9}: | ----: | {'-' * 9}: | ----: | {'-' * 8}: |",
    ]
    for m in measured:
        rate = m.points_per_s
        lines.append(
            f"| {m.layer:<25} | {rate['bare']:>10,.0f} | {rate['one']:>10,.0f} "
            f"| {m.ratio('one'):>5.2f} | {rate['all']:>10,.0f} | {m.ratio('all'):>5.2f} "
            f"| {m.pairs:>9,} |"
        )
    verdict = "reached" if is_reached else "MISSED"
    lines += ["", f"Target: 1 thread at {TARGET:.0%} of the bare script or more: {verdict}."]
    return "\n".join([*lines, ""])


def _plot(path: Path, measured: Sequence[Measured], options: argparse.Namespace) -> None:
    """Draw the rates as bars, one group for each layer, with a mark at the target."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    middles, height = np.arange(len(measured)), 0.26
    for position, (name, label) in enumerate(CONTENDERS.items()):
        rates = [m.points_per_s[name] for m in measured]
        places = middles + (position - 1) * height
        bars = axes.barh(places, rates, height * 0.9, label=label, color=COLOURS[name])
        labels = [f"{m.points_per_s[name]:,.0f}  ({m.ratio(name):.2f})" for m in measured]
        axes.bar_label(bars, labels, padding=4, fontsize=8)
    targets = [TARGET * m.points_per_s["bare"] for m in measured]
    axes.vlines(
        targets,
        middles - height / 2,
        middles + height / 2,
        colors="#c62828",
        label=f"target: {TARGET:.0%} of the bare script",
    )
    axes.set_yticks(middles, [m.layer for m in measured])
    axes.invert_yaxis()
    axes.margins(x=0.22)
    axes.set_xlabel("points per second (and ratio to the bare script)")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.set_title(f"{options.points:,} points over polygons, median of {options.repeats}")
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside lower center", ncols=4, fontsize=8, frameon=False)
    figure.savefig(path)


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
