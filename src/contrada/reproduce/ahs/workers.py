"""Figures 5 and 6: what 1 to 256 simulated workers take to index and to match one geometry.

As in the paper (section 5.2), each worker is in charge of one cell of a level, they run one after
another, and the one that takes longest is what counts. The geometry is event and subscription.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from shapely.geometry.base import BaseGeometry

from contrada.arrays import Integers
from contrada.kernels.cell_lists import measure
from contrada.matching.ahs.cell_index import index_cells
from contrada.matching.grid import Grid, Prefix
from contrada.model.geometry import as_array
from contrada.reproduce.ahs.paper import (
    LINE_LENGTH_MAX_KM,
    PAPER_LEVEL,
    POLYGON_SHARE_MAX,
    WORKER_LEVELS,
)
from contrada.reproduce.ahs.plan import AhsRun
from contrada.reproduce.ahs.shapes import random_line, random_point, random_polygon
from contrada.reproduce.ahs.timing import least_us

WORKER_COUNTS = tuple(4**level for level in WORKER_LEVELS)
_LINE_LENGTH_MIN_KM, _POLYGON_SHARE_MIN = 10, 1e-6


@dataclass(frozen=True, slots=True)
class SplitCost:
    """What the slowest of some workers takes, the most cells that one of them has, and the sum of
    all workers' area matrices."""

    worker_count: int
    cell_count_max: int
    index_us: float
    match_us: float
    matrix: Integers


@dataclass(frozen=True, slots=True)
class Subject:
    """A geometry of a size in area units, which are cells of the finest level, and its splits."""

    kind: str
    size: int
    cell_count: int
    splits: tuple[SplitCost, ...]

    def gain(self, step: str) -> float:
        """Return how many times faster a step is with the most workers than with one."""
        times = self.times(step)
        return times[0] / times[-1]

    @property
    def spread(self) -> float:
        """How many times fewer cells than all the fullest worker has, with the most workers."""
        return self.cell_count / self.splits[-1].cell_count_max

    def times(self, step: str) -> list[float]:
        """Return the µs of "index" or "match" by number of workers."""
        return [s.index_us if step == "index" else s.match_us for s in self.splits]


def measure_workers(run: AhsRun) -> list[Subject]:
    """Index and match points, lines and polygons of many sizes."""
    geometries = list(_make_geometries(run))
    grid = Grid(PAPER_LEVEL)
    _measure(grid, *geometries[-1], 1)  # compiles
    subjects = []
    with run.reporter.watch("Figures 5 and 6", len(geometries)) as step:
        for kind, geometry in geometries:
            subjects.append(_measure(grid, kind, geometry, run.plan.worker_repeats))
            step()
    return subjects


def _make_geometries(run: AhsRun) -> Iterator[tuple[str, BaseGeometry]]:
    """Make geometries with sizes spread evenly over their decades, up to the paper's largest."""
    rng = run.generator(5)
    for _ in range(run.plan.point_count):
        yield "point", random_point(rng)
    for km in np.geomspace(_LINE_LENGTH_MIN_KM, LINE_LENGTH_MAX_KM, run.plan.shape_count):
        yield "line", random_line(rng, float(km))
    for share in np.geomspace(_POLYGON_SHARE_MIN, POLYGON_SHARE_MAX, run.plan.shape_count):
        yield "polygon", random_polygon(rng, float(share))


def _measure(grid: Grid, kind: str, geometry: BaseGeometry, repeats: int) -> Subject:
    keys = grid.list_cells(geometry)
    areas = measure(keys, np.array([0, len(keys)]), grid.level)[0]
    splits = tuple(split(grid, geometry, level, repeats) for level in WORKER_LEVELS)
    whole = [areas[0], 0, 0, areas[1]]  # of a geometry with itself
    assert all((part.matrix == whole).all() for part in splits)
    return Subject(kind, int(areas.sum()), len(keys), splits)


def split(grid: Grid, geometry: BaseGeometry, level: int, repeats: int) -> SplitCost:
    """Let workers in charge of the cells of a level index and match a geometry with itself."""
    cell_count_max, index_us, match_us = 0, 0.0, 0.0
    matrix = np.zeros(4, np.int64)
    for prefix in _prefixes(grid, level):
        index = index_cells(grid, as_array([geometry]), prefix=prefix)
        keys, us = least_us(partial(grid.list_cells, geometry, prefix), repeats)
        cell_count_max, index_us = max(cell_count_max, len(keys)), max(index_us, us)
        matches, us = least_us(partial(index.match, keys), repeats)
        match_us = max(match_us, us)
        matrix += matches.matrices.sum(axis=0)
    return SplitCost(4**level, cell_count_max, index_us, match_us, matrix)


def _prefixes(grid: Grid, level: int) -> list[Prefix]:
    size = 4 ** (grid.level - level)
    return [(number * size, level) for number in range(4**level)]
