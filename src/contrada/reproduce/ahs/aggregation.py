"""How many cells the quadtree, equal geometries and aggregation save (section 3.1)."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from contrada.arrays import Geometries
from contrada.matching.ahs.cell_index import index_cells
from contrada.matching.grid import Grid
from contrada.model.geometry import as_array
from contrada.pictures.plots import Panel, Series
from contrada.reproduce.ahs.paper import PAPER_LEVEL
from contrada.reproduce.ahs.plan import AhsRun
from contrada.reproduce.ahs.shapes import CENTRE, make_city
from contrada.reproduce.reporting import Column, Table, say_title

_COUNTRY = np.array([10.0, 6.0])  # degrees
_CITIES, _SPREAD = 20, 0.1
_SCALE_MIN, _SCALE_MAX = 0.2, 1.0

Middles = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Saving:
    """Cells of some subscriptions: of the finest level, in their lists, and what is stored.

    `postings` are the cells in the lists of different geometries, `cells` are the distinct ones.
    """

    workload: str
    count: int
    area: int
    listed: int
    postings: int
    cells: int


def aggregate(run: AhsRun) -> list[Saving]:
    """Count cells before and after aggregation; print and draw them."""
    say_title(run.reporter, "Ours: cells saved by aggregation, before and after")
    table = Table(
        run.reporter,
        [
            Column("polygons the size of towns", is_text=True, width_min=30),
            Column("number", format=",", width_min=6),
            Column("finest level", format=",", width_min=12),
            Column("quadtree", format=",", width_min=10),
            Column("equal once", format=",", width_min=10),
            Column("aggregated", format=",", width_min=10),
            Column("shared by", format=".1f"),
            Column("saved", format=".0%"),
        ],
    )
    savings = []
    sizes = run.plan.aggregated
    with run.reporter.watch("aggregation", len(sizes) * len(_WORKLOADS)) as step:
        for name, make in _WORKLOADS.items():
            for count in sizes:
                saving = count_cells(Grid(PAPER_LEVEL), name, make(run.generator(10), count))
                savings.append(saving)
                step()
                if count == sizes[-1]:
                    table.add(*_write(saving))
    _draw(run, savings)
    return savings


def _write(saving: Saving) -> tuple[object, ...]:
    counts = (saving.area, saving.listed, saving.postings, saving.cells)
    shared = saving.listed / saving.cells
    return (saving.workload, saving.count, *counts, shared, 1 - saving.cells / saving.listed)


def count_cells(grid: Grid, workload: str, geometries: Geometries) -> Saving:
    """Index geometries and count their cells."""
    index = index_cells(grid, geometries)
    stats = index.stats()
    area = int(index.areas.sum(axis=1) @ np.diff(index.item_starts))
    counts = (stats["cells_listed"], stats["postings"], stats["cells"])
    return Saving(workload, len(geometries), area, *counts)


def _spread(rng: Generator, count: int) -> Geometries:
    """Scatter towns evenly over a country."""
    return _make(rng, CENTRE + (rng.random((count, 2)) - 0.5) * _COUNTRY)


def _gather(rng: Generator, count: int) -> Geometries:
    """Gather towns around few cities."""
    cities = CENTRE + (rng.random((_CITIES, 2)) - 0.5) * _COUNTRY
    return _make(rng, cities[np.arange(count) % _CITIES] + rng.normal(0, _SPREAD, (count, 2)))


def _repeat(rng: Generator, count: int) -> Geometries:
    """Repeat few cities."""
    cities = _make(rng, CENTRE + (rng.random((_CITIES, 2)) - 0.5) * _COUNTRY)
    return cities[np.arange(count) % _CITIES]


def _make(rng: Generator, middles: Middles) -> Geometries:
    scales = np.exp(rng.uniform(np.log(_SCALE_MIN), np.log(_SCALE_MAX), len(middles)))
    return as_array([make_city(rng, *place) for place in zip(middles, scales, strict=True)])


_WORKLOADS: dict[str, Callable[[Generator, int], Geometries]] = {
    "scattered over a country": _spread,
    f"gathered around {_CITIES} cities": _gather,
    f"copies of {_CITIES} cities": _repeat,
}


def _draw(run: AhsRun, savings: list[Saving]) -> None:
    panels = []
    for name in _WORKLOADS:
        mine = [saving for saving in savings if saving.workload == name]
        sizes = [saving.count for saving in mine]
        panels.append(
            Panel(
                [
                    Series("of the finest level", sizes, [s.area for s in mine], 2, "dashed"),
                    Series("in lists (quadtree)", sizes, [s.listed for s in mine], 1),
                    Series("aggregated: distinct", sizes, [s.cells for s in mine], 0),
                    Series("equal geometries once", sizes, [s.postings for s in mine], 3, "dotted"),
                ],
                name,
                names={float(size): f"{size:,}" for size in sizes},
                is_x_log=True,
            )
        )
    run.draw(
        "aggregation.png",
        panels,
        title="Cells saved by the quadtree, by equal geometries, and by aggregation",
        note="Polygons the size of towns, in a country of 10° by 6°.",
        x_label="subscriptions",
        y_label="cells",
        scale="log",
    )
