"""The distributed AHS model of section 4 with two workers in one process, timed by stages.

The master selects workers with a lookup table and sends them the event; each indexes the event
below its prefixes and matches it with its part of the subscription's cells; the master sums the
partial matrices and determines the relation. Workers run one after another, and count with their
mean, as in the paper (section 5.4).
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np
import shapely
from shapely.geometry.base import BaseGeometry

from contrada.arrays import Integers
from contrada.kernels.cell_lists import measure
from contrada.matching.ahs.area_matrix import MatrixPairs, determine
from contrada.matching.ahs.cell_index import index_cells
from contrada.matching.grid import Grid, Prefix
from contrada.matching.lookup import LookupTable, Weights, make_lookup_table, weigh
from contrada.model.geometry import as_array
from contrada.model.relation import SpatialRelation
from contrada.reproduce.ahs.paper import WORKER_COUNT
from contrada.reproduce.ahs.timing import Watch

TABLE_LEVEL = 12  # the finest at which the two workers' parts are told apart


@dataclass(frozen=True, slots=True)
class Stages:
    """The µs of each stage of one query."""

    overhead: float
    index: float
    match: float
    determine: float

    @property
    def total(self) -> float:
        """Sum the stages."""
        return self.overhead + self.index + self.match + self.determine


@dataclass(frozen=True, slots=True)
class Answer:
    """Whether the relation holds, from which matrix and areas of the event, and what it took."""

    holds: bool
    matrix: Integers
    event_areas: Integers
    stages: Stages


class Cluster:
    """A master and two workers that hold the cells of one subscription."""

    def __init__(self, grid: Grid, subscription: BaseGeometry) -> None:
        """Share the subscription's cells out among the workers."""
        self._grid = grid
        shapes = as_array([subscription])
        self._dimension = np.array([shapely.get_dimensions(subscription)], np.int64)
        self._areas = grid.decompose(shapes).areas()
        weights = _weigh(grid, subscription)
        fair = weights.total() / WORKER_COUNT
        self._table = make_lookup_table(grid.universe, weights, WORKER_COUNT, theta=fair / 2)
        self._prefixes = _as_prefixes(self._table, grid.level)
        self._indexes = [index_cells(grid, shapes, prefix=prefix) for prefix in self._prefixes]

    def ask(self, event: BaseGeometry, relation: SpatialRelation) -> Answer:
        """Run one query end to end."""
        master, receiving, index, match, last = (Watch() for _ in range(5))
        selected = master.run(lambda: self._select(event))
        message = master.run(lambda: shapely.to_wkb(event))
        partial = []
        for prefixes in selected.values():
            received = receiving.run(lambda: shapely.from_wkb(message))
            partial += [self._work(received, prefix, index, match) for prefix in prefixes]
        summed = master.run(lambda: np.sum(partial, axis=0))
        pairs = self._pair(event, summed)
        holds = last.run(lambda: bool(determine(relation, pairs)[0]))
        share = 1 / len(selected)
        stages = Stages(
            master.us + receiving.us * share, index.us * share, match.us * share, last.us
        )
        return Answer(holds, summed[:4], summed[4:], stages)

    def _select(self, event: BaseGeometry) -> dict[int, list[int]]:
        """Return the selected workers, each with those of its prefixes that the event touches."""
        cells = self._table.grid().decompose(as_array([event]))
        selected: dict[int, list[int]] = {}
        for prefix in self._table.select(cells).prefixes.tolist():
            selected.setdefault(self._table.replicas[prefix][0], []).append(prefix)
        return selected

    def _work(self, event: BaseGeometry, prefix: int, index: Watch, match: Watch) -> Integers:
        """Return a partial matrix, and the areas of the event's interior and boundary there."""
        keys = index.run(lambda: self._grid.list_cells(event, self._prefixes[prefix]))
        areas = index.run(lambda: measure(keys, np.array([0, len(keys)]), self._grid.level)[0])
        matrices = match.run(lambda: self._indexes[prefix].match(keys)).matrices
        return np.concatenate([matrices.sum(axis=0), areas])

    def _pair(self, event: BaseGeometry, summed: Integers) -> MatrixPairs:
        dimension = int(shapely.get_dimensions(event))
        return MatrixPairs(dimension, summed[4:], self._dimension, self._areas, summed[None, :4])


def _weigh(grid: Grid, subscription: BaseGeometry) -> Weights:
    """Weigh the table's cells by how many of the subscription's they hold or lie in."""
    shift = 2 * (grid.level - TABLE_LEVEL)
    codes = grid.decompose(as_array([subscription])).starts >> shift
    return weigh(TABLE_LEVEL, Counter(codes.tolist()), {})


def _as_prefixes(table: LookupTable, level: int) -> list[Prefix]:
    """Return the table's prefixes as cells of a finer grid."""
    starts = table.starts << 2 * (level - table.level)
    return list(zip(starts.tolist(), table.levels.tolist(), strict=True))
