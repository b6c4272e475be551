"""Figure 4: the worst case. Regions are large, so that boxes keep few of them apart."""

from collections.abc import Sequence

import shapely

from contrada.matching.indexes.by_tree import ExactEvaluator
from contrada.pictures.plots import Line, Panel, Series
from contrada.reproduce.crtree.measuring import (
    Cost,
    CountingEvaluator,
    Subjects,
    index_alone,
    index_pair,
    mean_ms,
)
from contrada.reproduce.crtree.paper import (
    FIGURE_4_DENSITY,
    PREDICATES,
    SPEEDUP_OVER_INTERSECTION,
)
from contrada.reproduce.crtree.plan import CrtreeRun
from contrada.reproduce.crtree.rings import RingSet
from contrada.reproduce.reporting import (
    Column,
    Table,
    compare,
    say_title,
    write_ms,
    write_percent,
    write_spread,
    write_times,
)
from contrada.reproduce.scenarios import Regions, synthetic_regions

INTERSECTION_SCAN, EXACT_SCAN, DISCRETE_SCAN, DISCRETE_TREE, EXACT_TREE = CURVES = (
    "intersection, scan",
    "exact, scan",
    "Algorithm 1, scan",
    "Algorithm 1, CR-tree",
    "exact, CR-tree",
)
_LINES: tuple[Line, ...] = ("dotted", "solid", "solid", "dashed", "dashed")
_STYLES: dict[str, Line] = {"plain": "solid", "simplified": "dashed"}
_COLOURS = (2, 0, 1, 1, 0)
_DRAWN_ONLY = "The paper draws its curves; its text states no times, so there is none to put here."


def figure_4a(run: CrtreeRun) -> dict[str, float]:
    """Measure scans and trees over the number of constraints; return the last row's ms by curve."""
    say_title(
        run.reporter,
        f"Figure 4a: N large regions, scenario 1, D = {FIGURE_4_DENSITY:,}; ms per event",
    )
    table = Table(
        run.reporter, [Column("N", format=",", width_min=6), *(Column(name) for name in CURVES)]
    )
    rng = run.generator(1)
    rows: list[dict[str, float]] = []
    with run.reporter.watch("Figure 4a", len(run.plan.sizes)) as step:
        for size in run.plan.sizes:
            regions = synthetic_regions(rng, size)
            events = synthetic_regions(rng, run.plan.event_count)
            tree = index_alone(rng, regions, CountingEvaluator(FIGURE_4_DENSITY))
            exact_tree = index_alone(rng, regions, ExactEvaluator())
            scans = _scan(regions, events)
            trees = [tree.cost(events).ms, exact_tree.cost(events).ms]
            rows.append(dict(zip(CURVES, [*scans, *trees], strict=True)))
            table.add(size, *map(write_ms, rows[-1].values()))
            step()
    _compare_4a(run, rows[-1])
    series = [
        Series(name, run.plan.sizes, [row[name] for row in rows], colour, line)
        for name, colour, line in zip(CURVES, _COLOURS, _LINES, strict=True)
    ]
    run.draw(
        "figure-4a.png",
        [Panel(series)],
        title="Figure 4a: matching time over the number of constraints, worst case",
        note=_DRAWN_ONLY,
        x_label="constraints (N)",
        y_label="ms per event",
    )
    return rows[-1]


def _scan(regions: Regions, events: Subjects) -> list[float]:
    """Time the three scans: GEOS for intersection, GEOS for the relation, Algorithm 1."""
    rings = RingSet(regions)
    return [
        mean_ms(lambda event: shapely.intersects(event, regions), events),
        mean_ms(lambda event: shapely.relate(event, regions), events),
        rings.mean_ms(events, FIGURE_4_DENSITY),
    ]


def _compare_4a(run: CrtreeRun, last: dict[str, float]) -> None:
    found = last[INTERSECTION_SCAN] / last[DISCRETE_SCAN]
    compare(
        run.reporter,
        f"the text on Figure 4a (ours: N = {run.plan.sizes[-1]:,})",
        [
            (
                "Algorithm 1 is faster than exact polygon intersection, both as a scan",
                f"about {SPEEDUP_OVER_INTERSECTION}×",
                f"{write_times(found)} (below 1: it is slower)"
                if found < 1
                else write_times(found),
            ),
            (
                "the CR-tree is faster than the scan, both with Algorithm 1",
                "yes",
                write_times(last[DISCRETE_SCAN] / last[DISCRETE_TREE]),
            ),
            ("ms per event", None, "in the table"),
        ],
    )


def figure_4b(run: CrtreeRun) -> None:
    """Measure a few predicates of two-constraint filters, as they are and simplified."""
    say_title(
        run.reporter,
        f"Figure 4b: N large regions in 5, 15 or 25 predicates, scenario 2, "
        f"D = {FIGURE_4_DENSITY:,}",
    )
    table = Table(
        run.reporter,
        [
            Column("N", format=",", width_min=6),
            Column("predicates"),
            *(Column(name, "ms per event") for name in ("plain", "simplified")),
            *(Column(name, "relations per event", ",.0f") for name in ("plain", "simplified")),
            Column("constraints kept"),
        ],
    )
    rng = run.generator(2)
    costs: dict[int, list[tuple[Cost, Cost]]] = {count: [] for count in PREDICATES}
    steps = sum(min(count, size // 2) for size in run.plan.sizes for count in PREDICATES)
    with run.reporter.watch("Figure 4b", steps) as step:
        for size in run.plan.sizes:
            regions = synthetic_regions(rng, size)
            events = synthetic_regions(rng, run.plan.event_count)
            for count in PREDICATES:
                pair = index_pair(rng, regions, count, FIGURE_4_DENSITY, step)
                plain, simplified = pair.plain.cost(events), pair.simplified.cost(events)
                costs[count].append((plain, simplified))
                ms = write_ms(plain.ms), write_ms(simplified.ms)
                relations = plain.relations, simplified.relations
                table.add(size, str(count), *ms, *relations, write_percent(pair.kept))
    _compare_4b(run, costs)
    _draw_4b(run, costs)


def _compare_4b(run: CrtreeRun, costs: dict[int, list[tuple[Cost, Cost]]]) -> None:
    sizes = run.plan.sizes
    growth = [[row[-1][which].ms / row[0][which].ms for row in costs.values()] for which in (0, 1)]
    gains = [plain.ms / simplified.ms for row in costs.values() for plain, simplified in row]
    compare(
        run.reporter,
        f"the text on Figure 4b (ours: from N = {sizes[0]:,} to {sizes[-1]:,}, "
        f"{write_times(sizes[-1] / sizes[0])} as many)",
        [
            ("plain: times flatten as predicates grow", "yes", _growing(growth[0])),
            ("simplified: they flatten sooner", "yes", _growing(growth[1])),
            ("the simplifier makes matching faster", "yes", write_spread(gains)),
            ("ms per event", None, "in the table"),
        ],
    )


def _growing(ratios: Sequence[float]) -> str:
    return f"times grow {write_spread(ratios)}"


def _draw_4b(run: CrtreeRun, costs: dict[int, list[tuple[Cost, Cost]]]) -> None:
    series = []
    for colour, (count, row) in enumerate(costs.items()):
        for which, (name, line) in enumerate(_STYLES.items()):
            ms = [pair[which].ms for pair in row]
            label = f"{count} predicates, {name}"
            series.append(Series(label, run.plan.sizes, ms, colour, line))
    run.draw(
        "figure-4b.png",
        [Panel(series)],
        title="Figure 4b: predicates of many filters, with and without the simplifier",
        note=_DRAWN_ONLY,
        x_label="constraints (N)",
        y_label="ms per event",
    )
