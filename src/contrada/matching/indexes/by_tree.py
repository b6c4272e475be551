"""Space by CR-tree: relations of an attribute to literal geometries, and `dwithin`.

The tree of an attribute gives the constraints whose boxes allow them. Constraints on geometries
that lie apart hold without being looked at, if the event is of the right kind at all; so do those
on areas that lie clear of an area's boundary. What is left is open, and an evaluator decides it.
"""

from collections.abc import Callable, Collection, Mapping
from copy import copy
from typing import Protocol

import numpy as np
import shapely
from numpy.typing import NDArray
from shapely import Point, box
from shapely.geometry.base import BaseGeometry

from contrada.arrays import Geometries, Integers, Mask, Positions
from contrada.kernels.rastering import AT_BOUNDARY, IN
from contrada.language import is_satisfied
from contrada.language.distance import is_within, reach
from contrada.matching.columns import GeometryColumn
from contrada.matching.indexes.cr_tree import CRTree, box_needs, may_hold_apart
from contrada.matching.placing import holds_apart, holds_around, place_areas
from contrada.matching.row_relations import locate, make_shapes, pairs_related
from contrada.model.calculus import base_relations
from contrada.model.contact import find_meetings
from contrada.model.crossings import are_entangled
from contrada.model.event import Event
from contrada.model.expression import Attribute, DistanceWithin, Literal, Spatial
from contrada.model.geometry import Fault, as_array, is_area
from contrada.model.relation import Family, Relation, SpatialRelation, egenhofer
from contrada.model.subscription import Constraint
from contrada.threads import once

TestKind = tuple[SpatialRelation | None, bool]  # None stands for `dwithin`

TABLE_1_BASES = (  # in the order of the columns of the CR-tree paper's Table 1
    Relation.DISJOINT,
    Relation.MEETS,
    Relation.OVERLAPS,
    Relation.EQUALS,
    Relation.INSIDE,
    Relation.CONTAINS,
    Relation.COVERS,
    Relation.COVERED_BY,
)
# None is found, as the regions are too entangled: all that may be known is whether they meet.
SOME_BASE, NO_CONTACT, UNKNOWN_BASE = range(len(TABLE_1_BASES), len(TABLE_1_BASES) + 3)


class RelationEvaluator(Protocol):
    """Decides a relation for one event and some of the registered geometries.

    Areas whose boundaries are more than `margin` apart have the relation that they truly have.
    """

    margin: float

    def check(self, relation: SpatialRelation, geometry: BaseGeometry) -> None:
        """Refuse a geometry of a subscription that it cannot evaluate."""

    def find_faults(self, geometries: Geometries) -> dict[int, Fault]:
        """Find the geometries of events that it cannot evaluate, by position."""

    def related(
        self, relation: SpatialRelation, event: BaseGeometry, shapes: "ShapeSet", items: Positions
    ) -> tuple[Mask, Mask]:
        """Whether the event satisfies the relation to each item, and whether that is known."""

    def bases(self, event: BaseGeometry, shapes: "ShapeSet", items: Positions) -> Integers:
        """Find the Egenhofer relation of a region to items that are regions, by `TABLE_1_BASES`."""


class ShapeSet:
    """The geometries of a tree's items."""

    def __init__(self, geometries: list[BaseGeometry]) -> None:
        """Keep the geometries, areas prepared."""
        self.geometries = as_array(geometries)
        self.shapes = make_shapes(self.geometries)

    @once
    def rings(self) -> tuple[NDArray[np.float64], Positions]:
        """The outer ring of each, or of its first part, one after another, and the starts."""
        outlines = shapely.get_exterior_ring(shapely.get_geometry(self.geometries, 0))
        coordinates, owners = shapely.get_coordinates(outlines, return_index=True)
        starts = np.searchsorted(owners, np.arange(len(outlines) + 1)).astype(np.int64)
        return coordinates, starts


class ExactEvaluator:
    """Relations by Shapely."""

    margin = 0.0

    def check(self, relation: SpatialRelation, geometry: BaseGeometry) -> None:
        """Take every geometry."""

    def find_faults(self, geometries: Geometries) -> dict[int, Fault]:  # noqa: ARG002
        """Take every event."""
        return {}

    def related(
        self, relation: SpatialRelation, event: BaseGeometry, shapes: ShapeSet, items: Positions
    ) -> tuple[Mask, Mask]:
        """Decide all items at once; the event comes prepared."""
        is_area = shapes.shapes.is_area[items]
        if isinstance(event, Point) and is_area.all():
            x, y = shapely.get_x(event), shapely.get_y(event)
            holds = locate(relation, shapes.shapes.ready(items), x, y)
            return holds, np.ones(len(items), bool)
        column = GeometryColumn.of(as_array([event]))
        rows = np.zeros(len(items), np.int64)
        return pairs_related(relation, column, rows, shapes.shapes, items)

    def bases(self, event: BaseGeometry, shapes: ShapeSet, items: Positions) -> Integers:
        """Compute matrices only where the regions meet at all, which is far cheaper to see."""
        regions = shapes.shapes.geometries[items]
        found = np.full(len(items), TABLE_1_BASES.index(Relation.DISJOINT), np.int64)
        entangled = are_entangled(np.full(len(items), event, object), regions)
        meets, known = find_meetings(np.full(len(items), event, object), regions)
        found[entangled] = np.where(meets[entangled], SOME_BASE, NO_CONTACT)
        found[entangled & ~known] = UNKNOWN_BASE
        meeting = np.flatnonzero((meets | ~known) & ~entangled)
        matrices = np.asarray(shapely.relate(event, regions[meeting]), object)
        for matrix in set(matrices.tolist()):
            found[meeting[matrices == matrix]] = TABLE_1_BASES.index(egenhofer(matrix))
        return found


class SpaceIndex:
    """Spatial constraints, in one CR-tree for each attribute."""

    def __init__(self, evaluator: RelationEvaluator, split: str = "quadratic") -> None:
        """Start empty."""
        self._evaluator = evaluator
        self._split = split
        self._rows: dict[str, dict[int, Constraint]] = {}
        self._forests: dict[str, _Forest] = {}
        self._lone: dict[int, ShapeSet] = {}

    def take(self, number: int, constraint: Constraint) -> bool:
        """Take relations of an attribute to a literal, and distances that are literals too."""
        name = _attribute(constraint)
        if name is None:
            return False
        if isinstance(constraint.test, Spatial):
            self._evaluator.check(constraint.test.relation, _geometry(constraint.test))
        self._rows.setdefault(name, {})[number] = constraint
        return True

    def describe(self, constraint: Constraint) -> str | None:
        """Name the tree that finds a constraint."""
        name = _attribute(constraint)
        return None if name is None else f"CR-tree of {name}"

    def freeze(self) -> None:
        """Build the trees, constraint by constraint."""
        self._forests = {
            name: _Forest(rows, self._evaluator, self._split) for name, rows in self._rows.items()
        }

    def survey(self, event: Event) -> tuple[list[Positions], Positions]:
        """Find the constraints that hold because all lies apart, and those to look at."""
        satisfied: list[Positions] = []
        near = [np.zeros(0, np.int64)]
        for name, forest in self._forests.items():
            geometry = event.geometry(name)
            if geometry is not None:
                apart, open_ = forest.survey(geometry)
                satisfied += apart
                near += open_
        return satisfied, np.concatenate(near)

    def place(self, event: Event, numbers: Positions) -> tuple[Positions, Positions]:
        """Decide constraints by a grid over the event; give those that hold, and the open ones."""
        satisfied, undecided = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for name, forest in self._forests.items():
            geometry = event.geometry(name)
            if geometry is not None:
                holds, open_ = forest.place(geometry, forest.items(numbers))
                satisfied.append(holds)
                undecided.append(open_)
        return np.concatenate(satisfied), np.concatenate(undecided)

    def decide(self, event: Event, numbers: Positions) -> Positions:
        """Evaluate open constraints; give those that the event satisfies."""
        satisfied = [np.zeros(0, np.int64)]
        for name, forest in self._forests.items():
            geometry = event.prepared(name)
            if geometry is not None:
                satisfied += forest.decide(geometry, forest.items(numbers))
        return np.concatenate(satisfied)

    def is_satisfied(self, number: int, constraint: Constraint, event: Event) -> bool:
        """Decide a constraint that was not taken, by the same evaluator."""
        match constraint.test:
            case Spatial(relation, Attribute(name), Literal(BaseGeometry() as shape)) if not (
                isinstance(self._evaluator, ExactEvaluator)
            ):
                geometry = event.prepared(name)
                if geometry is None or not _is_known(_kind(constraint), is_area(geometry)):
                    return False
                holds, is_known = relation.holds_when_apart(), True
                if box(*geometry.bounds).intersects(box(*shape.bounds)):
                    if number not in self._lone:
                        self._lone[number] = ShapeSet([shape])
                    item = np.zeros(1, np.int64)
                    related = self._evaluator.related(relation, geometry, self._lone[number], item)
                    holds, is_known = (bool(mask[0]) for mask in related)
                return is_known and holds != constraint.is_negated
        return is_satisfied(constraint, event)

    def without(self, numbers: Collection[int]) -> "SpaceIndex":
        """Make an index from whose trees some constraints are deleted."""
        twin = SpaceIndex(self._evaluator, self._split)
        twin._forests = {name: forest.without(numbers) for name, forest in self._forests.items()}
        return twin

    def trees(self) -> dict[str, CRTree]:
        """The tree of each attribute."""
        return {name: forest.tree for name, forest in self._forests.items()}

    def stats(self) -> dict[str, int]:
        """Count the nodes of all trees."""
        return {"nodes": sum(int(tree.arrays[1][1]) for tree in self.trees().values())}


class _Forest:
    """The tree of one attribute; its items are rows of the arrays."""

    def __init__(
        self, rows: Mapping[int, Constraint], evaluator: RelationEvaluator, split: str
    ) -> None:
        self._evaluator = evaluator
        self._numbers = np.fromiter(rows, np.int64, len(rows))
        self._tests = [constraint.test for constraint in rows.values()]
        code_of: dict[TestKind, int] = {}
        codes = (code_of.setdefault(_kind(c), len(code_of)) for c in rows.values())
        self._codes = np.fromiter(codes, np.int64, len(rows))
        self._kinds = list(code_of)
        self._is_distance = np.array([relation is None for relation, _ in self._kinds], bool)
        self._is_regional = np.array([_is_regional(kind) for kind in self._kinds], bool)
        self._holds_of_base = np.array([_base_row(kind) for kind in self._kinds], bool)
        self._holds_around = np.array([_holds(kind, holds_around) for kind in self._kinds], bool)
        self._holds_apart = np.array([_holds(kind, holds_apart) for kind in self._kinds], bool)
        self._shapes = ShapeSet([_geometry(test) for test in self._tests])
        needs = np.array([_needs(kind) for kind in self._kinds], np.uint8)[self._codes]
        apart = np.array([_may_hold_apart(kind) for kind in self._kinds], bool)[self._codes]
        self.tree = CRTree(self._boxes(), needs, apart, split)
        for item in range(len(rows)):
            self.tree.insert(item)
        self.tree.lists()

    def _boxes(self) -> NDArray[np.float64]:
        boxes = shapely.bounds(self._shapes.geometries)
        for item, test in enumerate(self._tests):
            if isinstance(test, DistanceWithin):
                boxes[item] = reach(_geometry(test), _radius_m(test)).bounds
        return np.ascontiguousarray(boxes)

    def items(self, numbers: Positions) -> Positions:
        """Find the items of the constraints that are in this tree."""
        at = np.minimum(np.searchsorted(self._numbers, numbers), len(self._numbers) - 1)
        return np.asarray(at[self._numbers[at] == numbers])

    def survey(self, geometry: BaseGeometry) -> tuple[list[Positions], list[Positions]]:
        """Search the tree: accept what holds of geometries apart; patterns must be looked at."""
        found = self.tree.search(np.array(geometry.bounds))
        near = self._numbers[found.near]
        if not found.far.size:
            return [], [near]
        is_region = is_area(geometry)
        codes = self._codes[found.far]
        is_known = np.array([_is_known(kind, is_region) for kind in self._kinds], bool)
        is_pattern = np.array([_is_pattern(kind) for kind in self._kinds], bool)
        numbers = self._numbers[found.far]
        return [numbers[(is_known & ~is_pattern)[codes]]], [near, numbers[is_pattern[codes]]]

    def place(self, geometry: BaseGeometry, items: Positions) -> tuple[Positions, Positions]:
        """Decide areas clear of the boundary of an event that is an area."""
        codes = self._codes[items]
        places = np.full(len(items), AT_BOUNDARY, np.uint8)
        at = np.flatnonzero(self._shapes.shapes.is_area[items])
        boxes, margin = self._shapes.shapes.boxes, self._evaluator.margin
        places[at] = place_areas(geometry, boxes, items[at], margin)
        is_open = (places == AT_BOUNDARY) | self._is_distance[codes]
        holds = np.where(places == IN, self._holds_around[codes], self._holds_apart[codes])
        return self._numbers[items[holds & ~is_open]], self._numbers[items[is_open]]

    def decide(self, geometry: BaseGeometry, items: Positions) -> list[Positions]:
        """Evaluate items, each kind together; give the constraints that hold."""
        codes = self._codes[items]
        is_regional = self._is_regional[codes]
        satisfied = []
        if is_regional.any():
            satisfied.append(self._decide_regions(geometry, items[is_regional]))
            items, codes = items[~is_regional], codes[~is_regional]
        for code in sorted(set(codes.tolist())):
            relation, is_negated = self._kinds[code]
            chosen = items[codes == code]
            if relation is None:
                satisfied.append(self._numbers[self._decide_distance(geometry, chosen)])
            else:
                holds, known = self._evaluator.related(relation, geometry, self._shapes, chosen)
                satisfied.append(self._numbers[chosen[known & (holds != is_negated)]])
        return satisfied

    def _decide_regions(self, geometry: BaseGeometry, items: Positions) -> Positions:
        """Decide the Egenhofer relations, whichever they are, by the one that there is."""
        if not is_area(geometry):
            return items[:0]
        bases = self._evaluator.bases(geometry, self._shapes, items)
        return np.asarray(self._numbers[items[self._holds_of_base[self._codes[items], bases]]])

    def _decide_distance(self, geometry: BaseGeometry, items: Positions) -> Positions:
        holds = [
            is_within(geometry, self._shapes.geometries[item], _radius_m(self._tests[item])) is True
            for item in items.tolist()
        ]
        return np.asarray(items[np.array(holds, bool)])

    def without(self, numbers: Collection[int]) -> "_Forest":
        twin = copy(self)
        twin.tree = self.tree.copy()
        for item in np.flatnonzero(np.isin(self._numbers, list(numbers))).tolist():
            twin.tree.delete(item)
        twin.tree.lists()
        return twin


def _attribute(constraint: Constraint) -> str | None:
    """Name the attribute in whose tree a constraint is; None where it can be in none."""
    match constraint.test:
        case Spatial(_, Attribute(name), Literal(BaseGeometry())):
            return name
        case DistanceWithin(Attribute(name), Literal(BaseGeometry()), Literal(int() | float())):
            return None if constraint.is_negated else name
    return None


def _kind(constraint: Constraint) -> TestKind:
    test = constraint.test
    return (test.relation if isinstance(test, Spatial) else None), constraint.is_negated


def _needs(kind: TestKind) -> int:
    return 0 if kind[0] is None else box_needs(kind[0], kind[1])


def _may_hold_apart(kind: TestKind) -> bool:
    return kind[0] is not None and may_hold_apart(kind[0], kind[1])


def _holds(kind: TestKind, holds: Callable[[SpatialRelation], bool]) -> bool:
    relation, is_negated = kind
    return relation is not None and holds(relation) != is_negated


def _base_row(kind: TestKind) -> list[bool]:
    """Whether each of `TABLE_1_BASES`, mere contact, its lack and neither satisfy a constraint."""
    relation, is_negated = kind
    if relation is None or not _is_regional(kind):
        return [False] * (UNKNOWN_BASE + 1)
    admitted = base_relations(relation, is_negated)
    contact = [
        relation.meeting is not None and (relation.meeting == meets) != is_negated
        for meets in (True, False)
    ]
    return [*(base in admitted for base in TABLE_1_BASES), *contact, False]


def _is_regional(kind: TestKind) -> bool:
    return kind[0] is not None and kind[0].family is Family.EGENHOFER


def _is_known(kind: TestKind, is_region: bool) -> bool:
    return is_region or not _is_regional(kind)


def _is_pattern(kind: TestKind) -> bool:
    return kind[0] is not None and kind[0].family is Family.PATTERN


def _geometry(test: object) -> BaseGeometry:
    assert isinstance(test, Spatial | DistanceWithin) and isinstance(test.right, Literal)
    assert isinstance(test.right.value, BaseGeometry)
    return test.right.value


def _radius_m(test: object) -> float:
    assert isinstance(test, DistanceWithin) and isinstance(test.radius_m, Literal)
    assert isinstance(test.radius_m.value, int | float)
    return float(test.radius_m.value)
