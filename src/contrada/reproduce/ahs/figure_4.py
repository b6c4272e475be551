"""Figure 4: one point is asked for WITHIN of ever more copies of one city (section 5.1).

Beside the AHS model stands the way of filter and refinement: PostGIS where there is one, and GEOS,
on which PostGIS is built, in this process.
"""

from collections.abc import Callable, Sequence

import numpy as np
import shapely
from numpy.typing import NDArray
from shapely import Point, Polygon

from contrada.arrays import Geometries, Positions
from contrada.kernels.cell_lists import measure
from contrada.matching.ahs.area_matrix import MatrixPairs, determine
from contrada.matching.ahs.cell_index import CellIndex, index_cells
from contrada.matching.grid import Grid
from contrada.model.geometry import as_array
from contrada.model.relation import RELATIONS
from contrada.pictures.plots import Line, Panel, Series
from contrada.reproduce.ahs.paper import GROWTH_OF_POSTGIS, PAPER_LEVEL
from contrada.reproduce.ahs.plan import AhsRun
from contrada.reproduce.ahs.postgis import find_postgis, time_postgis
from contrada.reproduce.ahs.shapes import CENTRE, CITY_VERTICES, make_city
from contrada.reproduce.ahs.timing import median_us, write_us
from contrada.reproduce.reporting import Column, Table, compare, say_prose, say_title, write_times

OURS, PLAIN_MODEL, PREPARED, GEOS, POSTGIS = (
    "AHS, equal geometries once",
    "AHS, as in the paper",
    "GEOS, prepared",
    "GEOS",
    "PostGIS",
)
_POLYGON = 2

Curves = dict[str, list[float]]


def figure_4(run: AhsRun) -> dict[str, float]:
    """Measure the latency over the number of copies; return each curve's ns per subscription."""
    say_title(run.reporter, "Figure 4: a point WITHIN so many copies of one city; µs per event")
    city, point = make_city(run.generator(4)), Point(CENTRE)
    postgis = find_postgis()
    theirs = _time_postgis(run, postgis, city, point)
    names = [OURS, PLAIN_MODEL, PREPARED, GEOS] + ([POSTGIS] if theirs else [])
    table = Table(
        run.reporter,
        [Column("copies", format=",", width_min=7), *(Column(name, width_min=7) for name in names)],
    )
    curves: Curves = {name: [] for name in names}
    with run.reporter.watch("Figure 4", len(run.plan.copies)) as step:
        for row, count in enumerate(run.plan.copies):
            queries = _make_queries(Grid(PAPER_LEVEL), as_array([city] * count), point)
            times = [_time(query, count, run.plan.query_repeats) for query in queries]
            times += theirs[row : row + 1]
            for name, us in zip(names, times, strict=True):
                curves[name].append(us)
            table.add(count, *map(write_us, times))
            step()
    slopes = {name: _slope(run.plan.copies, us) for name, us in curves.items()}
    table.add("ns each", *(f"{slope:,.1f}" for slope in slopes.values()))
    _say_postgis(run, postgis if theirs else None)
    _compare(run, slopes)
    _draw(run, curves)
    return slopes


def _time_postgis(run: AhsRun, postgis: str | None, city: Polygon, point: Point) -> list[float]:
    if postgis is None:
        return []
    with run.reporter.watch("PostGIS", 1) as step:
        times = time_postgis(city, point, run.plan.copies)
        step()
    return times


def _make_queries(
    grid: Grid, cities: Geometries, point: Point
) -> tuple[Callable[[], Positions], ...]:
    """Make the queries, which return the subscriptions they find; indexes are built here."""
    once, plain = index_cells(grid, cities), index_cells(grid, cities, deduplicate=False)
    tree, copies, prepared = shapely.STRtree(cities), _copy(cities), _copy(cities)
    shapely.prepare(prepared)
    return (
        lambda: find_within(grid, once, point),
        lambda: find_within(grid, plain, point),
        lambda: _refine(tree, prepared, point),
        lambda: _refine(tree, copies, point),
    )


def _copy(geometries: Geometries) -> Geometries:
    """Copy geometries one by one: a copy that is prepared leaves the others as they are."""
    copied: Geometries = shapely.from_wkb(shapely.to_wkb(geometries))
    return copied


def find_within(grid: Grid, index: CellIndex, point: Point) -> Positions:
    """Find the polygons that a point is within, by the standalone AHS model."""
    keys = grid.list_cells(point)
    matches = index.match(keys)
    which, items = index.items_of(matches.shapes)
    pairs = MatrixPairs(
        0,
        measure(keys, np.array([0, len(keys)]), grid.level)[0],
        np.full(len(matches.shapes), _POLYGON),
        index.areas[matches.shapes],
        matches.matrices,
    )
    return items[determine(RELATIONS["within"], pairs)[which]]


def _refine(tree: shapely.STRtree, polygons: Geometries, point: Point) -> Positions:
    candidates: NDArray[np.int64] = tree.query(point)
    return candidates[shapely.contains(polygons[candidates], point)]


def _time(query: Callable[[], Positions], count: int, repeats: int) -> float:
    assert len(query()) == count
    return median_us(query, repeats)


def _slope(sizes: Sequence[int], us: Sequence[float]) -> float:
    """Return by how many ns a query grows with each subscription."""
    if len(sizes) < 2:
        return 0.0
    return float(np.polyfit(sizes, us, 1)[0] * 1e3)


def _say_postgis(run: AhsRun, postgis: str | None) -> None:
    run.reporter.say("")
    if postgis is None:
        say_prose(
            run.reporter,
            "PostGIS is not installed here: psql finds no database that has it (PGHOST, PGDATABASE "
            "and PGUSER say where to look). GEOS, its library, stands in for it without its costs "
            "of parsing, planning and rows.",
        )
    else:
        say_prose(
            run.reporter,
            f"PostGIS {postgis}: time as psql sees it, a temporary table with a GiST index, median "
            "of five.",
        )


def _compare(run: AhsRun, slopes: dict[str, float]) -> None:
    peer = POSTGIS if POSTGIS in slopes else GEOS
    claims = [
        (f"the plain model grows more slowly than {peer}", slopes[peer] / slopes[PLAIN_MODEL]),
        (f"with equal geometries once, more slowly than {peer}", slopes[peer] / slopes[OURS]),
        ("with equal geometries once, more slowly than plain", slopes[PLAIN_MODEL] / slopes[OURS]),
    ]
    stated = (f"{GROWTH_OF_POSTGIS} (PostGIS)", None, None)
    compare(
        run.reporter,
        f"growth from {run.plan.copies[0]:,} to {run.plan.copies[-1]:,} copies",
        [
            (claim, paper, write_times(ratio) if ratio > 0 else "flat")
            for (claim, ratio), paper in zip(claims, stated, strict=True)
        ],
    )


def _round_names(sizes: Sequence[int]) -> dict[float, str]:
    """Name some places of a logarithmic axis."""
    round_ones = (1_000, 2_000, 5_000, 10_000)
    return {float(n): f"{n:,}" for n in sorted({sizes[0], *round_ones}) if n <= sizes[-1]}


def _draw(run: AhsRun, curves: Curves) -> None:
    lines: dict[str, Line] = {PLAIN_MODEL: "dashed", PREPARED: "dotted"}
    colours = {OURS: 0, PLAIN_MODEL: 0, PREPARED: 1, GEOS: 1, POSTGIS: 2}
    series = [
        Series(name, run.plan.copies, us, colours[name], lines.get(name, "solid"))
        for name, us in curves.items()
    ]
    run.draw(
        "figure-4.png",
        [Panel(series, names=_round_names(run.plan.copies), is_x_log=True)],
        title="Figure 4: one point WITHIN many copies of one city",
        note=f"A city of {CITY_VERTICES} vertices. The paper's text states no times.",
        x_label="subscriptions",
        y_label="µs per event",
        scale="log",
    )
