"""Space by cells: relations of an attribute to literal geometries, by the AHS model's matrices.

All named relations are decided by one matching of the event's cells, nothing stays open. What the
model does not have (DE-9IM patterns, `dwithin`) is left to the CR-tree, and is exact.
"""

from collections.abc import Collection, Mapping
from copy import copy
from dataclasses import dataclass
from typing import TypeGuard

import numpy as np
import shapely
from numpy.typing import NDArray
from shapely.geometry.base import BaseGeometry

from contrada.arrays import CellKeys, Integers, Positions
from contrada.kernels.area_matrices import relate_lists
from contrada.kernels.cell_lists import measure
from contrada.language import is_satisfied
from contrada.matching.ahs.area_matrix import MatrixPairs, determine, is_determined, needs_boundary
from contrada.matching.ahs.cell_index import index_cells
from contrada.matching.grid import Grid
from contrada.matching.indexes.by_tree import ExactEvaluator, SpaceIndex
from contrada.matching.indexes.cr_tree import CRTree, may_hold_apart
from contrada.model.event import Event
from contrada.model.expression import Attribute, Expression, Literal, Spatial
from contrada.model.geometry import as_array, is_area
from contrada.model.relation import Family
from contrada.model.subscription import Constraint


@dataclass(frozen=True, slots=True)
class CellShape:
    """A geometry as its cells: AHS_PUB of the paper, if it is an event's."""

    geometry: BaseGeometry
    dimension: int
    is_region: bool
    keys: CellKeys
    areas: Integers  # of interior and boundary


class CellReader:
    """Makes cells of geometries, and remembers those of the latest: an event is asked for often."""

    def __init__(self, grid: Grid) -> None:
        """Choose the grid."""
        self.grid = grid
        self._latest: CellShape | None = None

    def read_event(self, geometry: BaseGeometry) -> CellShape:
        """The cells of an event's geometry."""
        latest = self._latest
        if latest is None or latest.geometry is not geometry:
            latest = self._latest = self.read(geometry)
        return latest

    def read(self, geometry: BaseGeometry) -> CellShape:
        """Find the cells of a geometry."""
        keys = self.grid.list_cells(geometry)
        areas = measure(keys, np.array([0, len(keys)]), self.grid.level)[0]
        dimension = int(shapely.get_dimensions(geometry))
        return CellShape(geometry, dimension, is_area(geometry), keys, areas)


class AreaIndex:
    """Spatial constraints in one aggregated structure of cells for each attribute."""

    def __init__(self, reader: CellReader) -> None:
        """Start empty."""
        self._reader = reader
        self._exact = SpaceIndex(ExactEvaluator())
        self._rows: dict[str, dict[int, Constraint]] = {}
        self._sheets: dict[str, _AttributeCells] = {}
        self._lone: dict[int, CellShape] = {}

    def take(self, number: int, constraint: Constraint) -> bool:
        """Take relations of an attribute to a literal, and distances that are literals too."""
        if not is_by_area(constraint.test):
            return self._exact.take(number, constraint)
        self._rows.setdefault(_name(constraint), {})[number] = constraint
        return True

    def describe(self, constraint: Constraint) -> str | None:
        """Name the cells, or the tree, that find a constraint."""
        if is_by_area(constraint.test):
            return f"cells of {_name(constraint)}"
        return self._exact.describe(constraint)

    def freeze(self) -> None:
        """Aggregate the cells of each attribute's geometries."""
        self._exact.freeze()
        self._sheets = {
            name: _AttributeCells(rows, self._reader.grid) for name, rows in self._rows.items()
        }

    def survey(self, event: Event) -> tuple[list[Positions], Positions]:
        """Find the constraints that an event satisfies; only the CR-tree's are yet to look at."""
        satisfied, near = self._exact.survey(event)
        for name, sheet in self._sheets.items():
            geometry = event.geometry(name)
            if geometry is not None:
                satisfied = satisfied + sheet.survey(self._reader.read_event(geometry))
        return satisfied, near

    def place(self, event: Event, numbers: Positions) -> tuple[Positions, Positions]:
        """Decide what a grid over the event can; give those that hold, and the open ones."""
        return self._exact.place(event, numbers)

    def decide(self, event: Event, numbers: Positions) -> Positions:
        """Evaluate open constraints; give those that the event satisfies."""
        return self._exact.decide(event, numbers)

    def is_satisfied(self, number: int, constraint: Constraint, event: Event) -> bool:
        """Decide one constraint that was not taken, by the same matrices."""
        test = constraint.test
        if not is_by_area(test):
            return is_satisfied(constraint, event)
        geometry = event.geometry(_name(constraint))
        if geometry is None:
            return False
        subject = self._reader.read_event(geometry)
        if test.relation.family is Family.EGENHOFER and not subject.is_region:
            return False
        if number not in self._lone:
            self._lone[number] = self._reader.read(_geometry(constraint))
        return relate_shapes(test, subject, self._lone[number], self._reader.grid.level) != (
            constraint.is_negated
        )

    def without(self, numbers: Collection[int]) -> "AreaIndex":
        """Make an index that does not find some constraints; their cells stay."""
        twin = copy(self)
        twin._exact = self._exact.without(numbers)
        twin._sheets = {name: sheet.without(numbers) for name, sheet in self._sheets.items()}
        return twin

    def trees(self) -> dict[str, CRTree]:
        """The CR-trees of what is exact."""
        return self._exact.trees()

    def stats(self) -> dict[str, int]:
        """Count nodes of trees, and cells before and after aggregation."""
        counts = self._exact.stats()
        for sheet in self._sheets.values():
            for name, count in sheet.index.stats().items():
                counts[name] = counts.get(name, 0) + count
        return counts


class _AttributeCells:
    """The cells of one attribute's constraints, which are items by position."""

    def __init__(self, rows: Mapping[int, Constraint], grid: Grid) -> None:
        constraints = list(rows.values())
        tests = [c.test for c in constraints if isinstance(c.test, Spatial)]
        relations = [test.relation for test in tests]
        self._numbers = np.fromiter(rows, np.int64, len(rows))
        self._relations = list(dict.fromkeys(relations))
        code_of = {relation: code for code, relation in enumerate(self._relations)}
        self._codes = np.array([code_of[relation] for relation in relations], np.int64)
        self._is_egenhofer = np.array([r.family is Family.EGENHOFER for r in relations], bool)
        self._is_negated = np.array([c.is_negated for c in constraints], bool)
        self._is_alive = np.ones(len(rows), bool)
        negated = self._is_negated.tolist()
        self._set_apart(np.flatnonzero(list(map(may_hold_apart, relations, negated))))
        geometries = as_array([_geometry(constraint) for constraint in constraints])
        dimensions = shapely.get_dimensions(geometries).astype(np.int64)
        needs = np.array(list(map(needs_boundary, relations, dimensions.tolist())), bool)
        self.index = index_cells(grid, geometries, needs_boundary=needs)
        self._dimensions = dimensions[self.index.items[self.index.item_starts[:-1]]]

    def _set_apart(self, items: Positions) -> None:
        """Remember the constraints that hold of whatever lies apart, and where each is listed."""
        self._apart = items
        self._apart_rank = np.full(len(self._numbers), -1)
        self._apart_rank[items] = np.arange(len(items))

    def survey(self, event: CellShape) -> list[Positions]:
        """Match the event's cells; what is not touched is satisfied if it may lie apart."""
        matches = self.index.match(event.keys)
        which, items = self.index.items_of(matches.shapes)
        pairs = MatrixPairs(
            event.dimension,
            event.areas,
            self._dimensions[matches.shapes],
            self.index.areas[matches.shapes],
            matches.matrices,
        )
        holds = np.zeros(len(items), bool)
        codes = self._codes[items]
        for code in sorted(set(codes.tolist())):
            at = codes == code
            holds[at] = determine(self._relations[code], pairs)[which[at]]
        holds = (holds != self._is_negated[items]) & self._is_known(event, items)
        rank = self._apart_rank[items]
        found = items[holds & (rank < 0) & self._is_alive[items]]
        return [self._numbers[found], *self._survey_apart(event, rank[~holds & (rank >= 0)])]

    def _survey_apart(self, event: CellShape, failed: Positions) -> list[Positions]:
        """The constraints that may hold apart, but for some that do not."""
        if not self._apart.size:
            return []
        holds = self._is_known(event, self._apart)
        holds[failed] = False
        return [self._numbers[self._apart[holds]]]

    def _is_known(self, event: CellShape, items: Positions) -> NDArray[np.bool_]:
        """Which constraints can be asked of the event: Egenhofer's take regions only."""
        return ~self._is_egenhofer[items] | event.is_region

    def without(self, numbers: Collection[int]) -> "_AttributeCells":
        twin = copy(self)
        twin._is_alive = self._is_alive & ~np.isin(self._numbers, list(numbers))
        twin._set_apart(self._apart[twin._is_alive[self._apart]])
        return twin


def is_by_area(test: Expression) -> TypeGuard[Spatial]:
    """Whether area matrices decide a test: a named relation of an attribute to a literal."""
    match test:
        case Spatial(relation, Attribute(), Literal(BaseGeometry())):
            return is_determined(relation)
    return False


def relate_shapes(test: Spatial, event: CellShape, shape: CellShape, level: int) -> bool:
    """Whether one pair satisfies a relation, by its area matrix."""
    pairs = MatrixPairs(
        event.dimension,
        event.areas,
        np.array([shape.dimension]),
        shape.areas[None],
        relate_lists(event.keys, shape.keys, level)[None],
    )
    return bool(determine(test.relation, pairs)[0])


def _name(constraint: Constraint) -> str:
    test = constraint.test
    assert isinstance(test, Spatial) and isinstance(test.left, Attribute)
    return test.left.name


def _geometry(constraint: Constraint) -> BaseGeometry:
    test = constraint.test
    assert isinstance(test, Spatial) and isinstance(test.right, Literal)
    assert isinstance(test.right.value, BaseGeometry)
    return test.right.value
