"""One worker's share of the distributed AHS model (AHS paper, section 4), in its four stages.

Index: each filter has an anchor, a relation that its area matrix decides; the anchors' cells in
the share's part of the universe are aggregated. Match: an event's cells in the same part yield a
partial matrix for every anchor that they touch. Aggregate: partial matrices of one event and
anchor are summed, over shares that together have the universe once. Determine: the sums decide. The
other constraints of a filter are decided where they are first met, since a share has predicates and
events whole.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import shapely
from numpy.typing import NDArray
from shapely.geometry.base import BaseGeometry

from contrada.arrays import Integers, Positions
from contrada.matching.ahs.area_matrix import MatrixPairs, determine, needs_boundary
from contrada.matching.ahs.by_cells import AreaIndex, CellReader, is_by_area
from contrada.matching.ahs.cell_index import CellIndex, index_cells
from contrada.matching.columns import EventBatch, GeometryColumn
from contrada.matching.grid import CellLists, Grid
from contrada.matching.indexes.cr_tree import may_hold_apart
from contrada.matching.lookup import LookupTable
from contrada.model.expression import Attribute, Literal, Spatial
from contrada.model.geometry import as_array, is_area
from contrada.model.relation import RELATIONS, Family, SpatialRelation
from contrada.model.subscription import Constraint, Filter, Subscription

NUMBERS = 12  # a partial matrix and what decides over it, as a row

IsMine = Callable[[Positions, Integers], NDArray[np.bool_]]  # of some events, and for each a prefix

_RELATIONS = tuple(RELATIONS.values())
_CODES = {relation: code for code, relation in enumerate(_RELATIONS)}


@dataclass(frozen=True, slots=True)
class AreaAnchor:
    """The constraint of a filter whose matrix decides, and the constraints besides it."""

    attribute: str
    relation: SpatialRelation
    is_negated: bool
    geometry: BaseGeometry
    rest: tuple[Constraint, ...]

    @property
    def code(self) -> int:
        """Write the relation, and whether it is negated, as a number."""
        return 2 * _CODES[self.relation] + self.is_negated


def find_area_anchor(filter_: Filter) -> AreaAnchor | None:
    """Choose the smallest geometry that an event must share cells with; None if there is none."""
    constraints = filter_.constraints
    best: AreaAnchor | None = None
    for i, constraint in enumerate(constraints):
        found = _read(constraint, constraints[:i] + constraints[i + 1 :])
        if found and (best is None or _extent(found.geometry) < _extent(best.geometry)):
            best = found
    return best


def _read(constraint: Constraint, rest: tuple[Constraint, ...]) -> AreaAnchor | None:
    test, is_negated = constraint.test, constraint.is_negated
    if not is_by_area(test) or may_hold_apart(test.relation, is_negated):
        return None
    match test:
        case Spatial(relation, Attribute(name), Literal(BaseGeometry() as geometry)):
            return AreaAnchor(name, relation, is_negated, geometry, rest)
    return None


def _extent(geometry: BaseGeometry) -> float:
    west, south, east, north = geometry.bounds
    return float(east - west + north - south)


def find_area_anchors(subscription: Subscription) -> list[AreaAnchor] | None:
    """Return the anchor of each filter of a subscription; None where some filter has none."""
    found = []
    for filter_ in subscription.predicate.filters:
        anchor = find_area_anchor(filter_)
        if anchor is None:
            return None
        found.append(anchor)
    return found


@dataclass(frozen=True, slots=True)
class PartialMatrices:
    """Partial matrices: of which row of the events, and of which subscription by position.

    `numbers` has for each the filter's place in its subscription, the code of the relation, the
    event's dimension and areas of interior and boundary, those of the anchor, and the matrix.
    """

    rows: Positions
    positions: Positions
    numbers: Integers


class AreaShare:
    """The anchors of subscriptions that all have some, with their cells in a part of a table."""

    def __init__(
        self, subscriptions: Sequence[Subscription], table: LookupTable, partition: int
    ) -> None:
        """Index the cells of the prefixes that a partition is in charge of."""
        self._table, self._grid = table, table.grid()
        is_here = np.array([partition in chosen for chosen in table.replicas], bool)
        members: dict[str, list[tuple[int, int, AreaAnchor]]] = {}
        for position, subscription in enumerate(subscriptions):
            for place, anchor in enumerate(find_area_anchors(subscription) or ()):
                members.setdefault(anchor.attribute, []).append((position, place, anchor))
        self._sheets = {
            name: _AttributeAnchors(rows, self._grid, lambda lists: self._cut(lists, is_here))
            for name, rows in members.items()
        }

    def match(self, events: EventBatch, good: Positions, is_mine: IsMine) -> PartialMatrices:
        """Match the cells of some rows, as far as they lie in prefixes that are mine."""
        found = [
            self._match(events, name, sheet, good, is_mine) for name, sheet in self._sheets.items()
        ]
        none = np.zeros(0, np.int64)
        return PartialMatrices(
            np.concatenate([none, *(partial.rows for partial in found)]),
            np.concatenate([none, *(partial.positions for partial in found)]),
            np.concatenate([none.reshape(0, NUMBERS), *(partial.numbers for partial in found)]),
        )

    def _match(
        self,
        events: EventBatch,
        name: str,
        sheet: "_AttributeAnchors",
        good: Positions,
        is_mine: IsMine,
    ) -> PartialMatrices:
        column = events.geometry(name)
        rows = good[column.is_known[good]]
        lists = self._grid.decompose(column.take(rows))
        cut, prefixes = self._table.cut(lists)
        cut = cut.keep(is_mine(rows[cut.owners()], prefixes))
        return sheet.match(events, rows, _Shapes.of(column, rows, lists), cut)

    def _cut(self, lists: CellLists, is_here: NDArray[np.bool_]) -> CellLists:
        cut, prefixes = self._table.cut(lists)
        return cut.keep(is_here[prefixes])


@dataclass(frozen=True, slots=True)
class _Shapes:
    """What determining asks of whole events: a row of dimension and areas, and who is a region."""

    numbers: Integers
    is_region: NDArray[np.bool_]

    @staticmethod
    def of(column: GeometryColumn, rows: Positions, lists: CellLists) -> "_Shapes":
        shapes = column.take(rows)
        dimensions = shapely.get_dimensions(shapes).astype(np.int64)
        is_region = np.array([is_area(shape) for shape in shapes], bool)
        return _Shapes(np.column_stack([dimensions, lists.areas()]), is_region)


class _AttributeAnchors:
    """The anchors of one attribute."""

    def __init__(
        self,
        rows: Sequence[tuple[int, int, AreaAnchor]],
        grid: Grid,
        cut: Callable[[CellLists], CellLists],
    ) -> None:
        anchors = [anchor for _, _, anchor in rows]
        self._positions = np.array([position for position, _, _ in rows], np.int64)
        self._is_egenhofer = np.array([a.relation.family is Family.EGENHOFER for a in anchors])
        self._has_rest = np.array([bool(anchor.rest) for anchor in anchors])
        geometries = as_array([anchor.geometry for anchor in anchors])
        dimensions = shapely.get_dimensions(geometries).astype(np.int64)
        relations = [anchor.relation for anchor in anchors]
        needs = np.array(list(map(needs_boundary, relations, dimensions.tolist())), bool)
        self._index: CellIndex = index_cells(grid, geometries, needs_boundary=needs, cut=cut)
        places = np.array([place for _, place, _ in rows], np.int64)
        codes = np.array([anchor.code for anchor in anchors], np.int64)
        self._said = np.column_stack([places, codes])
        shape_of = np.empty(len(rows), np.int64)
        shape_of[self._index.items] = np.repeat(
            np.arange(len(self._index.areas)), np.diff(self._index.item_starts)
        )
        self._numbers = np.column_stack([dimensions, self._index.areas[shape_of]])
        distinct = dict.fromkeys(c for anchor in anchors for c in anchor.rest)
        number_of = {constraint: number for number, constraint in enumerate(distinct)}
        self._rest_of = [[(number_of[c], c) for c in anchor.rest] for anchor in anchors]
        self._rest = AreaIndex(CellReader(grid))

    def match(
        self, events: EventBatch, rows: Positions, shapes: _Shapes, cut: CellLists
    ) -> PartialMatrices:
        """Match cells event by event; drop what the rest of a filter rules out."""
        pairs: list[tuple[Positions, Positions, Positions]] = []
        for at in np.flatnonzero(np.diff(cut.list_starts)).tolist():
            matches = self._index.match(cut.of(at))
            which, items = self._index.items_of(matches.shapes)
            pairs.append((np.full(len(items), at), items, matches.matrices[which]))
        none = np.zeros(0, np.int64)
        events_at = np.concatenate([none, *(at for at, _, _ in pairs)])
        items = np.concatenate([none, *(items for _, items, _ in pairs)])
        matrices = np.concatenate([none.reshape(0, 4), *(found for _, _, found in pairs)])
        is_open = ~self._is_egenhofer[items] | shapes.is_region[events_at]
        is_open[is_open] = self._keep(events, rows[events_at[is_open]], items[is_open])
        events_at, items = events_at[is_open], items[is_open]
        numbers = np.column_stack(
            [self._said[items], shapes.numbers[events_at], self._numbers[items], matrices[is_open]]
        )
        return PartialMatrices(rows[events_at], self._positions[items], numbers)

    def _keep(self, events: EventBatch, rows: Positions, items: Positions) -> NDArray[np.bool_]:
        """Which pairs satisfy the rest of the filter."""
        holds = np.ones(len(items), bool)
        to_check = np.flatnonzero(self._has_rest[items])
        event_of = {row: events.row(row) for row in np.unique(rows[to_check]).tolist()}
        for at in to_check.tolist():
            event = event_of[int(rows[at])]
            holds[at] = all(
                self._rest.is_satisfied(number, constraint, event)
                for number, constraint in self._rest_of[items[at]]
            )
        return holds


def add_up(keys: Integers, numbers: Integers) -> tuple[Integers, Integers]:
    """Aggregate: sum the matrices of equal keys; return a position of each key, and the sums."""
    _, firsts, groups = np.unique(keys, return_index=True, return_inverse=True)
    sums = numbers[firsts].copy()
    for column in range(NUMBERS - 4, NUMBERS):
        sums[:, column] = np.bincount(groups, numbers[:, column], len(firsts))
    return firsts.astype(np.int64), sums


def decide(numbers: Integers) -> NDArray[np.bool_]:
    """Determine: which sums satisfy their relation."""
    holds = np.zeros(len(numbers), bool)
    for code in np.unique(numbers[:, 1]).tolist():
        at = numbers[:, 1] == code
        some = numbers[at]
        pairs = MatrixPairs(some[:, 2], some[:, 3:5], some[:, 5], some[:, 6:8], some[:, 8:12])
        holds[at] = determine(_RELATIONS[code // 2], pairs) != bool(code % 2)
    return holds
