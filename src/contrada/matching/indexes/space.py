"""Space by CR-tree: relations of an attribute to literal geometries, and `dwithin`.

The tree of an attribute gives the constraints whose boxes allow them; an evaluator decides those.
Constraints on geometries that lie apart hold without being looked at, if the event is of the
right kind at all.
"""

from collections.abc import Collection
from functools import cached_property
from typing import Protocol

import numpy as np
import shapely
from numpy.typing import NDArray
from shapely import Point
from shapely.geometry.base import BaseGeometry

from contrada.language.distance import is_within, reach
from contrada.matching.columns import GeometryColumn
from contrada.matching.crtree import CRTree, box_needs, may_hold_apart
from contrada.matching.space import locate, make_shapes, pairs_related
from contrada.matching.table import Ids
from contrada.model.event import Event
from contrada.model.expression import Attribute, DistanceWithin, Literal, Spatial
from contrada.model.geometry import as_array, is_area
from contrada.model.relation import Family, SpatialRelation
from contrada.model.subscription import Constraint

Kind = tuple[SpatialRelation | None, bool]  # None stands for `dwithin`


class Evaluator(Protocol):
    """Decides a relation for one event and some of the registered geometries."""

    def check(self, relation: SpatialRelation, geometry: BaseGeometry) -> None:
        """Refuse a geometry of a subscription that it cannot evaluate."""

    def related(
        self, relation: SpatialRelation, event: BaseGeometry, shapes: "ShapeSet", items: Ids
    ) -> NDArray[np.bool_]:
        """Tell for each item whether the event satisfies the relation to it."""


class ShapeSet:
    """The geometries of a tree's items."""

    def __init__(self, geometries: list[BaseGeometry]) -> None:
        """Keep the geometries, areas prepared."""
        self.geometries = as_array(geometries)
        self.shapes = make_shapes(self.geometries)

    @cached_property
    def rings(self) -> tuple[NDArray[np.float64], Ids]:
        """Give the outer rings one after another, and where each begins; none for other kinds."""
        outlines = shapely.get_exterior_ring(self.geometries)
        coordinates, owners = shapely.get_coordinates(outlines, return_index=True)
        starts = np.searchsorted(owners, np.arange(len(outlines) + 1)).astype(np.int64)
        return coordinates, starts


class ExactEvaluator:
    """Relations by Shapely."""

    def check(self, relation: SpatialRelation, geometry: BaseGeometry) -> None:
        """Take every geometry."""

    def related(
        self, relation: SpatialRelation, event: BaseGeometry, shapes: ShapeSet, items: Ids
    ) -> NDArray[np.bool_]:
        """Decide all items at once; the event comes prepared."""
        is_area = shapes.shapes.is_area[items]
        if isinstance(event, Point) and is_area.all():
            x, y = shapely.get_x(event), shapely.get_y(event)
            return locate(relation, shapes.shapes.geometries[items], x, y)
        column = GeometryColumn.of(as_array([event]))
        holds, _ = pairs_related(
            relation, column, np.zeros(len(items), np.int64), shapes.shapes, items
        )
        return holds


class SpaceIndex:
    """Spatial constraints, in one CR-tree for each attribute."""

    def __init__(self, evaluator: Evaluator, split: str = "quadratic") -> None:
        """Start empty."""
        self._evaluator = evaluator
        self._split = split
        self._rows: dict[str, list[tuple[int, Constraint]]] = {}
        self._forests: dict[str, _Forest] = {}

    def take(self, number: int, constraint: Constraint) -> bool:
        """Take relations of an attribute to a literal, and distances that are literals too."""
        match constraint.test:
            case Spatial(relation, Attribute(name), Literal(BaseGeometry() as geometry)):
                self._evaluator.check(relation, geometry)
            case DistanceWithin(
                Attribute(name), Literal(BaseGeometry()), Literal(int() | float())
            ) if not constraint.is_negated:
                pass
            case _:
                return False
        self._rows.setdefault(name, []).append((number, constraint))
        return True

    def freeze(self) -> None:
        """Build the trees, constraint by constraint."""
        self._forests = {
            name: _Forest(rows, self._evaluator, self._split) for name, rows in self._rows.items()
        }

    def satisfied(self, event: Event) -> list[Ids]:
        """Search the tree of each geometry that the event has."""
        found = []
        for name, forest in self._forests.items():
            geometry = event.geometry(name)
            if geometry is not None:
                found += forest.satisfied(geometry)
        return found

    def without(self, numbers: Collection[int]) -> "SpaceIndex":
        """Give an index from whose trees some constraints are deleted."""
        twin = SpaceIndex(self._evaluator, self._split)
        twin._forests = {name: forest.without(numbers) for name, forest in self._forests.items()}
        return twin

    def trees(self) -> dict[str, CRTree]:
        """Give the tree of each attribute."""
        return {name: forest.tree for name, forest in self._forests.items()}


class _Forest:
    """The tree of one attribute; its items are rows of the arrays."""

    def __init__(
        self, rows: list[tuple[int, Constraint]], evaluator: Evaluator, split: str
    ) -> None:
        self._evaluator = evaluator
        self._numbers = np.array([number for number, _ in rows], np.int64)
        self._tests = [constraint.test for _, constraint in rows]
        kinds = [_kind(constraint) for _, constraint in rows]
        self._kinds = list(dict.fromkeys(kinds))
        code_of = {kind: code for code, kind in enumerate(self._kinds)}
        self._codes = np.array([code_of[kind] for kind in kinds], np.int64)
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

    def satisfied(self, geometry: BaseGeometry) -> list[Ids]:
        found = self.tree.search(np.array(geometry.bounds))
        is_region = is_area(geometry)
        return [
            self._numbers[items]
            for items in (
                *self._decide(geometry, found.near, is_region),
                *self._decide_apart(geometry, found.far, is_region),
            )
        ]

    def _decide(self, geometry: BaseGeometry, items: Ids, is_region: bool) -> list[Ids]:
        """Evaluate the items, those of one kind together."""
        found: list[Ids] = []
        if not items.size:
            return found
        codes = self._codes[items]
        for code in np.unique(codes).tolist():
            relation, is_negated = self._kinds[code]
            chosen = items[codes == code]
            if relation is None:
                found.append(self._decide_distance(geometry, chosen))
            elif is_region or relation.family is not Family.EGENHOFER:
                holds = self._evaluator.related(relation, geometry, self._shapes, chosen)
                found.append(chosen[holds != is_negated])
        return found

    def _decide_apart(self, geometry: BaseGeometry, items: Ids, is_region: bool) -> list[Ids]:
        """Accept what holds of geometries apart; only patterns must be evaluated."""
        if not items.size:
            return []
        codes = self._codes[items]
        is_known = np.array([_is_known(kind, is_region) for kind in self._kinds], bool)
        is_pattern = np.array([_is_pattern(kind) for kind in self._kinds], bool)
        accepted = items[is_known[codes] & ~is_pattern[codes]]
        return [accepted, *self._decide(geometry, items[is_pattern[codes]], is_region)]

    def _decide_distance(self, geometry: BaseGeometry, items: Ids) -> Ids:
        holds = [
            is_within(geometry, self._shapes.geometries[item], _radius_m(self._tests[item])) is True
            for item in items.tolist()
        ]
        return np.asarray(items[np.array(holds, bool)])

    def without(self, numbers: Collection[int]) -> "_Forest":
        twin = _Forest.__new__(_Forest)
        for name in ("_evaluator", "_numbers", "_tests", "_kinds", "_codes", "_shapes"):
            setattr(twin, name, getattr(self, name))
        twin.tree = self.tree.copy()
        for item in np.flatnonzero(np.isin(self._numbers, list(numbers))).tolist():
            twin.tree.delete(item)
        twin.tree.lists()
        return twin


def _kind(constraint: Constraint) -> Kind:
    test = constraint.test
    return (test.relation if isinstance(test, Spatial) else None), constraint.is_negated


def _needs(kind: Kind) -> int:
    return 0 if kind[0] is None else box_needs(kind[0], kind[1])


def _may_hold_apart(kind: Kind) -> bool:
    return kind[0] is not None and may_hold_apart(kind[0], kind[1])


def _is_known(kind: Kind, is_region: bool) -> bool:
    return is_region or kind[0] is None or kind[0].family is not Family.EGENHOFER


def _is_pattern(kind: Kind) -> bool:
    return kind[0] is not None and kind[0].family is Family.PATTERN


def _geometry(test: object) -> BaseGeometry:
    assert isinstance(test, Spatial | DistanceWithin) and isinstance(test.right, Literal)
    assert isinstance(test.right.value, BaseGeometry)
    return test.right.value


def _radius_m(test: object) -> float:
    assert isinstance(test, DistanceWithin) and isinstance(test.radius_m, Literal)
    assert isinstance(test.radius_m.value, int | float)
    return float(test.radius_m.value)
