"""Section 5 of the CR-tree paper: Figures 4a, 4b and 5, the error of Algorithm 1, and Table 3.

The paper's machine was an Intel i5 of 2011 and its code C++; ours is whatever this runs on, with
Numba. Times are milliseconds for one event, each the mean over several events.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import shapely
from numpy.random import Generator
from numpy.typing import NDArray

from contrada.errors import InvalidInput
from contrada.kernels.discretising import find_relations
from contrada.matching.discrete import DiscreteEvaluator
from contrada.matching.forwarding import ForwardingIndex
from contrada.matching.indexes.space import Evaluator, ExactEvaluator
from contrada.matching.simplify import simplify
from contrada.model.event import Event
from contrada.model.expression import And, Attribute, Expression, Literal, Or, Spatial
from contrada.model.relation import RELATIONS, egenhofer
from contrada.model.subscription import Constraint, Filter, Predicate, Subscription
from contrada.pictures.plots import draw_lines
from contrada.reproduce.workloads import (
    KINDS,
    Regions,
    event_region,
    into_unit_square,
    scattered_regions,
    synthetic_regions,
)

_UNIVERSE = (0.0, 0.0, 1.0, 1.0)
_HALF_LENGTH = 2.0  # of the unit square
_EGENHOFER = [name for name in RELATIONS if name.startswith("eh")]
_CODES = "disjoint meets overlaps equals inside contains covers coveredBy".split()
_LAYERS = {
    "gshhg_shorelines_west": "Vegetation in southern California",
    "osm_natural_andorra_malta": "Natural features in Rhône-Alpes",
    "london_buildings": "Buildings in central London",
}
# Table 3: CR-tree disabled, enabled (scenario 1); simplifier disabled, enabled (scenario 2).
_PAPER: dict[str, dict[str, tuple[float, ...]]] = {
    "gshhg_shorelines_west": {
        "A": (1841, 73, 67, 0.18),
        "B": (4000, 89, 78, 0.54),
        "C": (1512, 7, 4.4, 0.12),
    },
    "osm_natural_andorra_malta": {
        "A": (951, 108, 59, 1.4),
        "B": (1323, 93, 169, 6.4),
        "C": (851, 7, 72, 0.53),
    },
    "london_buildings": {
        "A": (59, 1.4, 0.95, 0.75),
        "B": (169, 6.4, 5, 1.24),
        "C": (72, 0.53, 0.32, 0.05),
    },
}
_SIZES = {
    "gshhg_shorelines_west": 85_550,
    "osm_natural_andorra_malta": 17_048,
    "london_buildings": 4_170,
}

Say = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class Plan:
    """How much to measure."""

    sizes: tuple[int, ...]
    events: int
    density_pairs: int
    densities: tuple[int, ...]
    share_of_layers: float


FULL = Plan(
    (1_000, 2_500, 5_000, 10_000), 10, 20_000, (0, 500, 1_000, 2_000, 4_000, 8_000, 12_000), 1.0
)
QUICK = Plan((500, 1_000, 2_000), 3, 2_000, (0, 1_000, 2_000, 4_000, 12_000), 0.05)


def reproduce(folder: Path, plan: Plan, data: Path | None, say: Say, seed: int = 1) -> None:
    """Run all experiments; print tables through `say`, draw figures into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    _figure_4a(rng, plan, folder, say)
    _figure_4b(rng, plan, folder, say)
    _errors(rng, plan, folder, say)
    layers = {name: _layer(rng, name, plan, data) for name in _LAYERS}
    say(f"\nlayers: {'generated, as many polygons as the paper had' if data is None else data}")
    _figure_5(rng, plan, layers, folder, say)
    _table_3(rng, plan, layers, say)


def _figure_4a(rng: Generator, plan: Plan, folder: Path, say: Say) -> None:
    """Scan by exact relation, scan by Algorithm 1, Algorithm 1 in the CR-tree (D = 2000)."""
    say("\nFigure 4a: worst case, large regions, one constraint each; ms an event")
    say(f"{'N':>8}{'exact scan':>12}{'Algorithm 1':>13}{'CR-tree':>10}")
    series: dict[str, tuple[list[float], list[float]]] = {
        name: ([], []) for name in ("exact scan", "Algorithm 1, scan", "Algorithm 1, CR-tree")
    }
    for size in plan.sizes:
        regions = synthetic_regions(rng, size)
        events = list(synthetic_regions(rng, plan.events))
        rings, starts = _rings(regions)
        index = _index(rng, regions, DiscreteEvaluator(2_000, _UNIVERSE))
        times = [
            _mean_ms(partial(_relate_all, regions), events),
            _mean_ms(partial(_find_all, rings, starts, 2_000), events),
            _mean_ms(partial(_match, index), events),
        ]
        for (xs, ys), ms in zip(series.values(), times, strict=True):
            xs.append(size)
            ys.append(ms)
        say(f"{size:>8}{times[0]:>12.2f}{times[1]:>13.2f}{times[2]:>10.2f}")
    draw_lines(
        folder / "figure-4a.png",
        series,
        title="Figure 4a: matching time over the number of constraints",
        x_label="constraints",
        y_label="ms an event",
    )


def _figure_4b(rng: Generator, plan: Plan, folder: Path, say: Say) -> None:
    """Constraints over 5, 15 and 25 predicates of two-constraint filters, simplified or not."""
    say("\nFigure 4b: N constraints in a few predicates; ms an event, plain / simplified")
    say(f"{'N':>8}" + "".join(f"{f'{p} predicates':>20}" for p in (5, 15, 25)))
    series: dict[str, tuple[list[float], list[float]]] = {}
    for size in plan.sizes:
        row = f"{size:>8}"
        regions = synthetic_regions(rng, size)
        events = list(synthetic_regions(rng, plan.events))
        for count in (5, 15, 25):
            plain, simple = _scenario_2(
                rng, regions, count, events, DiscreteEvaluator(2_000, _UNIVERSE)
            )
            for name, ms in ((f"{count} predicates", plain), (f"{count}, simplified", simple)):
                xs, ys = series.setdefault(name, ([], []))
                xs.append(size)
                ys.append(ms)
            row += f"{plain:>11.2f} / {simple:<6.2f}"
        say(row)
    draw_lines(
        folder / "figure-4b.png",
        series,
        title="Figure 4b: predicates of many filters, with and without the simplifier",
        x_label="constraints",
        y_label="ms an event",
    )


def _errors(rng: Generator, plan: Plan, folder: Path, say: Say) -> None:
    """Compare Algorithm 1 with the exact relation, by density."""
    say("\nThe error of Algorithm 1 (the paper: 0.089 % at D = 2000, about 0.015 % at 12000)")
    say(f"{'D':>8}{'wrong %':>10}")
    side = int(np.sqrt(plan.density_pairs))
    regions, events = synthetic_regions(rng, side), synthetic_regions(rng, side)
    rings, starts = _rings(regions)
    exact = np.array(
        [[_CODES.index(str(egenhofer(str(m)))) for m in shapely.relate(e, regions)] for e in events]
    )
    shares = []
    for density in plan.densities:
        found = np.array([_find_all(rings, starts, density, event) for event in events])
        shares.append(float((found != exact).mean() * 100))
        say(f"{density:>8}{shares[-1]:>10.3f}")
    draw_lines(
        folder / "error.png",
        {"wrong relations": ([float(d) for d in plan.densities], shares)},
        title="The error of Algorithm 1 by point density",
        x_label="points in half the universe's perimeter (D)",
        y_label="% of pairs",
    )


def _figure_5(
    rng: Generator, plan: Plan, layers: dict[str, Regions], folder: Path, say: Say
) -> None:
    """Count how many matches change from density D to D + 10000."""
    say("\nFigure 5: matches that differ between D and D + 10000, % of constraints")
    densities = (0, 10_000, 20_000, 30_000)
    say(f"{'layer':<28}{'type':>5}" + "".join(f"{d:>9}" for d in densities))
    series: dict[str, tuple[list[float], list[float]]] = {}
    for name, regions in layers.items():
        label = _LAYERS[name].split()[0].lower()
        relations = rng.integers(0, 8, len(regions))
        rings, starts = _rings(regions)
        for kind in KINDS:
            events = [event_region(rng, kind) for _ in range(plan.events)]
            matched = [
                np.array([_find_all(rings, starts, d, event) == relations for event in events])
                for d in (*densities, 40_000)
            ]
            gains = [float((a != b).mean() * 100) for a, b in pairwise(matched)]
            series[f"{label}, {kind}"] = ([float(d) for d in densities], gains)
            say(f"{label:<28}{kind:>5}" + "".join(f"{gain:>9.4f}" for gain in gains))
    draw_lines(
        folder / "figure-5.png",
        series,
        title="Figure 5: incremental precision gain",
        x_label="D",
        y_label="% of constraints",
    )


def _table_3(rng: Generator, plan: Plan, layers: dict[str, Regions], say: Say) -> None:
    """Average matching times; D = 10000. Each cell: the paper's / ours."""
    say("\nTable 3: ms an event, the paper's / ours (D = 10000; the last column: exact evaluator)")
    columns = ("scan", "CR-tree", "plain", "simplified")
    say(
        f"{'layer':<28}{'N':>7}{'type':>5}"
        + "".join(f"{c:>18}" for c in columns)
        + f"{'exact':>10}"
    )
    for name, regions in layers.items():
        label = _LAYERS[name].split()[0].lower()
        discrete = _index(rng, regions, DiscreteEvaluator(10_000, _UNIVERSE))
        exact = _index(rng, regions, ExactEvaluator())
        rings, starts = _rings(regions)
        for kind in KINDS:
            events = [event_region(rng, kind) for _ in range(plan.events)]
            ours = [
                _mean_ms(partial(_find_all, rings, starts, 10_000), events),
                _mean_ms(partial(_match, discrete), events),
                *_scenario_2(rng, regions, 25, events, DiscreteEvaluator(10_000, _UNIVERSE)),
            ]
            exact_ms = _mean_ms(partial(_match, exact), events)
            cells = "".join(
                f"{paper:>9g} /{mine:>7.2f}"
                for paper, mine in zip(_PAPER[name][kind], ours, strict=True)
            )
            say(f"{label:<28}{len(regions):>7}{kind:>5}{cells}{exact_ms:>10.2f}")
    say("")
    for name, paper in _LAYERS.items():
        label = paper.split()[0].lower()
        say(f"{label}: the paper's «{paper}», {_SIZES[name]:,} polygons; with --data our {name}")
    say(
        "Data, machine and language differ from the paper's: compare the shape of the columns.\n"
        "Where the shape differs: the exact relation (GEOS) is faster than Algorithm 1 here.\n"
        "Regions clear of the event's boundary are decided by a grid, which the paper does not\n"
        "have. In scenario 2 relations are computed only while they can still find a predicate, so\n"
        "that the simplifier has little left to save: what remains is the fixed cost of an event."
    )


def _scenario_2(
    rng: Generator, regions: Regions, count: int, events: Sequence[Any], evaluator: Evaluator
) -> tuple[float, float]:
    """Time predicates of two-constraint filters, as they are and simplified."""
    predicates = list(_predicates(rng, regions, count))
    simpler = [simplify(predicate)[0] for predicate in predicates]
    times = []
    for chosen in (predicates, simpler):
        subscriptions = [Subscription(i, p, i) for i, p in enumerate(chosen)]
        index = ForwardingIndex(subscriptions, evaluator)
        times.append(_mean_ms(partial(_match, index), events))
    return times[0], times[1]


def _predicates(rng: Generator, regions: Regions, count: int) -> Iterator[Predicate]:
    constraints = [_constraint(rng, region) for region in regions]
    filters = [Filter(tuple(constraints[i : i + 2])) for i in range(0, len(constraints) - 1, 2)]
    for part in range(count):
        mine = tuple(filters[part::count])
        tree: Expression = Or(tuple(And(tuple(c.test for c in f.constraints)) for f in mine))
        yield Predicate(tree, mine)


def _constraint(rng: Generator, region: Any) -> Constraint:
    name = _EGENHOFER[int(rng.integers(0, len(_EGENHOFER)))]
    return Constraint(Spatial(RELATIONS[name], Attribute("g"), Literal(region)))


def _index(rng: Generator, regions: Regions, evaluator: Evaluator) -> ForwardingIndex:
    """Index one constraint a predicate, with relations at random."""
    subscriptions = []
    for number, region in enumerate(regions):
        constraint = _constraint(rng, region)
        subscriptions.append(
            Subscription(number, Predicate(constraint.test, (Filter((constraint,)),)))
        )
    return ForwardingIndex(subscriptions, evaluator)


def _match(index: ForwardingIndex, event: Any) -> NDArray[np.int64]:
    return index.find(Event({"g": event}), index.everything)


def _relate_all(regions: Regions, event: Any) -> Any:
    return shapely.relate(event, regions)


def _find_all(
    rings: NDArray[np.float64], starts: NDArray[np.int64], density: float, event: Any
) -> NDArray[np.int64]:
    """Run Algorithm 1 on every ring."""
    items = np.arange(len(starts) - 1)
    return find_relations(_ring(event), rings, starts, items, density / _HALF_LENGTH, True)


def _mean_ms(run: Callable[[Any], Any], events: Sequence[Any]) -> float:
    run(events[0])  # compiles, and fills caches
    started = time.perf_counter()
    for event in events:
        run(event)
    return (time.perf_counter() - started) / len(events) * 1e3


def _layer(rng: Generator, name: str, plan: Plan, data: Path | None) -> Regions:
    """Read a layer, or scatter as many polygons as the paper's data set has."""
    if data is None:
        return scattered_regions(rng, int(_SIZES[name] * plan.share_of_layers))
    path = data / f"{name}.parquet"
    if not path.is_file():
        raise InvalidInput(f"{data}: there is no {path.name}")
    regions = into_unit_square(shapely.from_wkb(pq.read_table(path)["geometry"].to_numpy()))
    keep = max(1, int(len(regions) * plan.share_of_layers))
    return regions[rng.permutation(len(regions))[:keep]]


def _rings(regions: Regions) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    outlines = shapely.get_exterior_ring(regions)
    coordinates, owners = shapely.get_coordinates(outlines, return_index=True)
    return coordinates, np.searchsorted(owners, np.arange(len(outlines) + 1)).astype(np.int64)


def _ring(region: Any) -> NDArray[np.float64]:
    return shapely.get_coordinates(shapely.get_exterior_ring(region))
