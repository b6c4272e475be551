"""Trees of anchors: the spatial constraints through which `strtree` finds filters.

The anchors of an attribute are in one tree for each OGC relation or pattern, one for `dwithin`, and
one for all Egenhofer relations: two regions have exactly one of these, so that it is looked for
once.
"""

from collections.abc import Collection, Iterable
from typing import Any, Protocol

import numpy as np
import shapely
from shapely.geometry.base import BaseGeometry
from shapely.strtree import BinaryPredicate

from contrada.arrays import Floats, Geometries, Integers, Mask, Positions
from contrada.kernels.compiling import Patience
from contrada.kernels.packed_tree import PackedTree, find_points, pack_boxes
from contrada.kernels.rastering import AT_BOUNDARY, IN
from contrada.language.distance import is_within, point_distances_m, reach
from contrada.language.spatial import related
from contrada.limits import PAIR_CONTACTS_MAX
from contrada.matching.columns import GeometryColumn
from contrada.matching.constraint_columns import ConstraintColumns, Head
from contrada.matching.meeting_trees import EVENTS_MIN, BoxTree, MeetingTrees, meet
from contrada.matching.placing import find_broad, holds_around, place_on, place_pairs
from contrada.matching.releasing import GeometryOwner
from contrada.matching.row_relations import (
    Shapes,
    locate,
    make_shapes,
    pairs_related,
    unpack_shapes,
)
from contrada.model.contact import PLAIN_VERTICES_MAX, find_meetings
from contrada.model.crossings import are_entangled
from contrada.model.expression import Attribute, DistanceWithin, Literal, Spatial
from contrada.model.geometry import are_areas, as_array, is_area
from contrada.model.packed_geometries import PackedGeometries
from contrada.model.relation import (
    EGENHOFER_NAMES,
    RELATIONS,
    Family,
    Relation,
    SpatialRelation,
    egenhofer,
)
from contrada.model.subscription import Constraint
from contrada.threads import once

DISTANCE = "dwithin"

_patience = Patience(400_000)  # points: to load kernels takes about as long as GEOS for so many
_POINTS_AT_ONCE = 2_048  # for fewer, the walk of a kernel does not pay
_TREE_PREDICATES = frozenset(BinaryPredicate.__members__)  # what a tree can be asked
_EGENHOFER = {name: code for code, name in enumerate(EGENHOFER_NAMES.values())}
_CODES = {relation: _EGENHOFER[name] for relation, name in EGENHOFER_NAMES.items()}
# What each asks of boxes: nothing (0), the event's in the area's (1), around it (2), both (3).
_NEEDS = np.array(
    [
        RELATIONS[name].keeps_inside() + 2 * RELATIONS[name].keeps_around()
        for name in EGENHOFER_NAMES.values()
    ]
)


class AnchorTree(Protocol):
    """Some anchors of one attribute, in one tree."""

    attribute: str

    def find(self, column: GeometryColumn) -> tuple[Positions, Positions]:
        """Find all pairs of row and anchor that hold."""

    def find_one(self, geometry: BaseGeometry) -> Positions:
        """Find the anchors that hold of one geometry."""

    def made(self) -> Iterable[str]:
        """Name what has been made since somebody asked for it."""

    def prepare(self, asked: Collection[str]) -> None:
        """Make now what bears one of some names."""


_LATER = ("_meeting_trees", "_packed")  # of a tree of relations: many sets never need them


class _RelationTree:
    """Anchors of one relation to literal geometries."""

    def __init__(
        self,
        attribute: str,
        relation: SpatialRelation,
        numbers: Positions,
        shapes: Shapes,
    ) -> None:
        self.attribute, self._numbers, self._shapes = attribute, numbers, shapes
        self._relation, self._name = relation, f"{relation.name} {attribute}"
        self._is_dear = _is_dear(relation)
        self._is_nested = relation.keeps_inside() or relation.keeps_around()
        self._has_areas_only = bool(shapes.is_area.all())
        self._size = int(shapes.sizes.max(initial=0))
        self._tree = BoxTree(self._shapes.geometries)

    @once
    def _meeting_trees(self) -> MeetingTrees:
        """Make what points do not need."""
        return MeetingTrees(self._shapes.geometries)

    def made(self) -> Iterable[str]:
        return (f"{part} {self._name}" for part in _LATER if part in self.__dict__)

    def prepare(self, asked: Collection[str]) -> None:
        for part in _LATER:
            if f"{part} {self._name}" in asked:
                assert getattr(self, part) is not None

    def find(self, column: GeometryColumn) -> tuple[Positions, Positions]:
        points = self._find_points(column)
        others = self._find_others(column)
        rows, ids = (np.concatenate([a, b]) for a, b in zip(points, others, strict=True))
        return rows, self._numbers[ids]

    def find_one(self, geometry: BaseGeometry) -> Positions:
        if is_area(geometry):
            return self._numbers[self._find_around(geometry)]
        if not isinstance(geometry, shapely.Point):
            return self.find(GeometryColumn.of(as_array([geometry])))[1]
        ids: Positions = self._tree.query(as_array([geometry]))[1]  # quicker than for a scalar
        if not ids.size:
            return ids
        if not (self._has_areas_only or self._shapes.is_area[ids].all()):
            return self.find(GeometryColumn.of(as_array([geometry])))[1]
        x, y = shapely.get_x(geometry), shapely.get_y(geometry)
        return self._numbers[ids[locate(self._relation, self._shapes.ready(ids), x, y)]]

    def _find_around(self, event: BaseGeometry) -> Positions:
        """Find what holds of one area: most of what it meets lies in it, clear of its boundary."""
        ids: Positions = self._tree.query(as_array([event]))[1]
        ids = ids[self._may_hold(shapely.bounds(as_array([event])), ids)]
        if not ids.size:
            return ids
        places = np.full(len(ids), AT_BOUNDARY, np.uint8)
        areas = np.flatnonzero(self._shapes.is_area[ids])
        places[areas] = place_on(event, self._shapes.boxes, self._shapes.sizes, ids[areas])
        inside = ids[places == IN] if holds_around(self._relation) else ids[:0]
        near = ids[places == AT_BOUNDARY]
        geometries = self._shapes.geometries[near]
        holds, _ = related(self._relation, np.full(len(near), event), geometries)
        return np.concatenate([inside, near[holds]])

    def _find_points(self, column: GeometryColumn) -> tuple[Positions, Positions]:
        at = np.flatnonzero(column.is_point)
        if not at.size:
            return at, at
        places, ids = self._around(column.x[at], column.y[at])
        rows = at[places]
        holds, _ = pairs_related(self._relation, column, rows, self._shapes, ids)
        return rows[holds], ids[holds]

    def _around(self, x: Floats, y: Floats) -> tuple[Positions, Positions]:
        """Find the boxes around points, one area's points together: it stays in cache."""
        if len(x) >= _POINTS_AT_ONCE and _patience.is_spent(len(x)):
            return find_points(self._packed, x, y)
        places, ids = self._tree.query(shapely.points(x, y))
        order = np.argsort(ids, kind="stable")
        return places[order], ids[order]

    @once
    def _packed(self) -> PackedTree:
        """Make the tree that needs no object for a point."""
        return pack_boxes(self._shapes.boxes)

    def _find_others(self, column: GeometryColumn) -> tuple[Positions, Positions]:
        at = np.flatnonzero(~shapely.is_missing(column.shapes))
        if not at.size:
            return at, at
        rows, ids, at = find_broad(column, at, self._tree)
        rows, ids = self._leave_nested(column, rows, ids)
        holds, _ = pairs_related(self._relation, column, rows, self._shapes, ids)
        more_rows, more_ids = self._find_narrow(column, at)
        return np.concatenate([rows[holds], more_rows]), np.concatenate([ids[holds], more_ids])

    def _find_narrow(self, column: GeometryColumn, at: Positions) -> tuple[Positions, Positions]:
        """Find the pairs of events that have few candidates, or are not areas."""
        if not at.size:
            return at, at
        shapes = column.prepared(at)
        predicate = self._find_predicate(shapes)
        if self._is_nested:
            places, ids = self._tree.query(shapes)
            is_decided = False
        elif self._is_dear and at.size >= EVENTS_MIN:
            places, ids, known = self._meeting_trees.find(shapes)
            is_decided = self._relation.predicate == "intersects"
            if is_decided:
                places, ids = places[known], ids[known]
        else:
            places, ids = self._tree.query(shapes, predicate=predicate)
            is_decided = predicate is not None
        rows = at[places]
        if is_decided:
            return rows, ids
        rows, ids = self._leave_nested(column, rows, ids)
        holds, _ = pairs_related(self._relation, column, rows, self._shapes, ids)
        return rows[holds], ids[holds]

    def _leave_nested(
        self, column: GeometryColumn, rows: Positions, ids: Positions
    ) -> tuple[Positions, Positions]:
        """Leave the pairs of which one box lies in the other as the relation needs it."""
        if not self._is_nested:
            return rows, ids
        may = self._may_hold(column.boxes()[rows], ids)
        return rows[may], ids[may]

    def _may_hold(self, events: Floats, ids: Positions) -> Mask:
        """Which anchors may hold of events, as far as boxes tell."""
        may = np.ones(len(ids), bool)
        if self._relation.keeps_inside():
            may &= _lie_in(events, self._shapes.boxes[ids])
        if self._relation.keeps_around():
            may &= _lie_in(self._shapes.boxes[ids], events)
        return may

    def _find_predicate(self, events: Geometries) -> Any:
        """Name what the tree can decide itself, unless some pair may be too entangled for it."""
        size = int(shapely.get_num_coordinates(events).max()) * self._size
        is_meeting = self._relation.meeting is not None
        is_safe = size <= (PLAIN_VERTICES_MAX if is_meeting else PAIR_CONTACTS_MAX)
        predicate = self._relation.predicate
        return predicate if is_safe and predicate in _TREE_PREDICATES else None


def _is_dear(relation: SpatialRelation) -> bool:
    """Whether pairs whose boxes meet are dear to decide without prepared geometries.

    Measured: they are for patterns, and for lines to areas unless one must hold the other.
    """
    keeps_within = relation.keeps_inside() or relation.keeps_around()
    return relation.predicate is None or (not keeps_within and bool(relation.patterns[1, 2]))


class _RegionTree:
    """Anchors of Egenhofer relations to literal areas; `_anchors` has the number of each."""

    def __init__(
        self,
        attribute: str,
        codes: Integers,
        numbers: Positions,
        which: Positions,
        geometries: PackedGeometries,
    ) -> None:
        """Take anchors: the code of each one's relation, and which of the geometries it has."""
        self.attribute = attribute
        is_area = geometries.are_areas()[which]  # of what is none every such relation is unknown
        distinct, of_shape = np.unique(which[is_area], return_inverse=True)
        self._anchors = np.full((len(distinct), len(_EGENHOFER)), -1, np.int64)
        self._anchors[of_shape, codes[is_area]] = numbers[is_area]
        self._needs = np.stack([(self._anchors[:, n == _NEEDS] >= 0).any(axis=1) for n in range(4)])
        self._shapes = make_shapes(geometries.shapes(distinct), are_fresh=True)
        self._tree = BoxTree(self._shapes.geometries)
        self._trees = MeetingTrees(self._shapes.geometries)

    def made(self) -> Iterable[str]:
        return ()

    def prepare(self, asked: Collection[str]) -> None:
        pass  # all is there

    def find(self, column: GeometryColumn) -> tuple[Positions, Positions]:
        at = np.flatnonzero(are_areas(column.shapes))
        rows, ids, at = find_broad(column, at, self._tree)
        may = self._may_be_found(column.boxes()[rows], ids)
        rows, ids = rows[may], ids[may]
        places = place_pairs(column, rows, self._shapes.boxes, self._shapes.sizes, ids)
        around = self._anchors[ids[places == IN], _CODES[Relation.CONTAINS]]
        is_open = np.flatnonzero(places == AT_BOUNDARY)
        events = column.prepared(rows[is_open])
        meets, known = meet(events, self._shapes.geometries[ids[is_open]], ids[is_open])
        met = is_open[meets | ~known]
        more_places, more_ids, _ = self._trees.find(column.prepared(at))
        near_rows = np.concatenate([rows[met], at[more_places]])
        near_ids = np.concatenate([ids[met], more_ids])
        found_rows, near = self._relate(column, near_rows, near_ids)
        found_rows = np.concatenate([rows[places == IN], found_rows])
        numbers = np.concatenate([around, near])
        return found_rows[numbers >= 0], numbers[numbers >= 0]

    def _relate(
        self, column: GeometryColumn, rows: Positions, ids: Positions
    ) -> tuple[Positions, Positions]:
        """Find the anchor of the relation that each pair has; -1 where there is none."""
        may = self._may_be_found(column.boxes()[rows], ids)
        rows, ids = rows[may], ids[may]
        entangled = are_entangled(column.shapes[rows], self._shapes.geometries[ids])
        rows, ids = rows[~entangled], ids[~entangled]
        codes = _relate_regions(column.shapes[rows], self._shapes.geometries[ids])
        return rows, self._anchors[ids, codes]

    def _may_be_found(self, events: Floats, ids: Positions) -> Mask:
        """Which pairs may have a relation that some anchor asks for, as far as boxes tell."""
        areas = self._shapes.boxes[ids]
        is_inside = _lie_in(events, areas)
        is_around = _lie_in(areas, events)
        either, inside, around, both = self._needs[:, ids]
        return np.asarray(
            either | (inside & is_inside) | (around & is_around) | (both & is_inside & is_around)
        )

    def find_one(self, geometry: BaseGeometry) -> Positions:
        event = as_array([geometry])
        if not are_areas(event)[0]:
            return np.zeros(0, np.int64)
        ids = self._tree.query(event)[1]
        ids = ids[self._may_be_found(shapely.bounds(event), ids)]
        places = place_on(geometry, self._shapes.boxes, self._shapes.sizes, ids)
        around = self._anchors[ids[places == IN], _CODES[Relation.CONTAINS]]
        ids = ids[places == AT_BOUNDARY]
        meets, known = find_meetings(np.full(len(ids), geometry), self._shapes.geometries[ids])
        ids = ids[meets | ~known]
        ids = ids[~are_entangled(np.full(len(ids), geometry), self._shapes.geometries[ids])]
        near = self._anchors[ids, _relate_regions(geometry, self._shapes.geometries[ids])]
        numbers = np.concatenate([around, near])
        return numbers[numbers >= 0]


def _lie_in(boxes: Floats, others: Floats) -> Mask:
    is_low, is_high = boxes[:, :2] >= others[:, :2], boxes[:, 2:] <= others[:, 2:]
    return np.asarray(is_low.all(axis=1) & is_high.all(axis=1))


def _relate_regions(events: Geometries | BaseGeometry, areas: Geometries) -> Positions:
    """Find the code of each pair's relation."""
    matrices = np.asarray(shapely.relate(events, areas), object)
    codes = np.empty(len(matrices), np.int64)
    for matrix in set(matrices):
        codes[matrices == matrix] = _CODES[egenhofer(matrix)]
    return codes


class _DistanceTree:
    """Anchors of `dwithin` with a literal geometry and a literal distance."""

    def __init__(self, attribute: str, numbers: Positions, tests: Iterable[DistanceWithin]) -> None:
        self.attribute, self._numbers = attribute, numbers
        self._shapes, reaches = np.empty((2, len(numbers)), object)
        self._radii = np.empty(len(numbers))
        for place, test in enumerate(tests):
            self._shapes[place] = _geometry(test.right)
            self._radii[place] = _radius_m(test.radius_m)
            reaches[place] = reach(self._shapes[place], _radius_m(test.radius_m))
        self._is_point = shapely.get_type_id(self._shapes) == 0
        self._x, self._y = shapely.get_x(self._shapes), shapely.get_y(self._shapes)
        self._owner, self._tree = GeometryOwner(self._shapes), BoxTree(reaches)

    def made(self) -> Iterable[str]:
        return ()

    def prepare(self, asked: Collection[str]) -> None:
        pass  # all is there

    def find(self, column: GeometryColumn) -> tuple[Positions, Positions]:
        at = np.flatnonzero(column.is_known)
        geometries = column.prepared(at)
        places, ids = self._tree.query(geometries, predicate="intersects")
        rows = at[places]
        holds = np.zeros(len(rows), bool)
        both_points = column.is_point[rows] & self._is_point[ids]
        pairs = np.flatnonzero(both_points)
        holds[pairs] = self._points_within(column, rows[pairs], ids[pairs])
        for i in np.flatnonzero(~both_points).tolist():
            radius_m = float(self._radii[ids[i]])
            holds[i] = is_within(geometries[places[i]], self._shapes[ids[i]], radius_m) is True
        return rows[holds], self._numbers[ids[holds]]

    def find_one(self, geometry: BaseGeometry) -> Positions:
        return self.find(GeometryColumn.of(as_array([geometry])))[1]

    def _points_within(self, column: GeometryColumn, rows: Positions, ids: Positions) -> Mask:
        """Decide pairs of points all at once; those off the globe are unknown."""
        x, y = column.x[rows], column.y[rows]
        on_globe = (abs(x) <= 180) & (abs(y) <= 90)
        x, y = np.where(on_globe, x, 0.0), np.where(on_globe, y, 0.0)
        distances = point_distances_m(x, y, self._x[ids], self._y[ids])
        return np.asarray(on_globe & (distances <= self._radii[ids]), bool)


def _geometry(side: object) -> BaseGeometry:
    assert isinstance(side, Literal) and isinstance(side.value, BaseGeometry)
    return side.value


def _radius_m(side: object) -> float:
    assert isinstance(side, Literal) and isinstance(side.value, int | float)
    return float(side.value)


def make_trees(constraints: ConstraintColumns, anchors: Positions) -> list[AnchorTree]:
    """Put anchors into trees."""
    members: dict[tuple[str, str], list[Head]] = {}
    for head in constraints.heads(anchors):
        test = head.constraint.test
        assert isinstance(test, Spatial | DistanceWithin) and isinstance(test.left, Attribute)
        members.setdefault((test.left.name, _kind(test)), []).append(head)
    return [
        _make_tree(attribute, kind, heads, constraints)
        for (attribute, kind), heads in members.items()
    ]


def _kind(test: Spatial | DistanceWithin) -> str:
    """Name what one tree holds."""
    if isinstance(test, DistanceWithin):
        return DISTANCE
    is_egenhofer = test.relation.family is Family.EGENHOFER
    return Family.EGENHOFER.value if is_egenhofer else test.relation.name


def _make_tree(
    attribute: str, kind: str, heads: list[Head], constraints: ConstraintColumns
) -> AnchorTree:
    numbers = np.concatenate([head.numbers for head in heads])
    if kind == DISTANCE:
        taken = constraints.take(numbers)
        tests = (test for c in taken if isinstance(test := c.test, DistanceWithin))
        return _DistanceTree(attribute, numbers, tests)
    geometries = np.concatenate([head.operands[:, 0] for head in heads])
    relations = [test.relation for h in heads if isinstance(test := h.constraint.test, Spatial)]
    if kind == Family.EGENHOFER.value:
        codes = [_EGENHOFER[relation.name] for relation in relations]
        codes_of = np.repeat(np.array(codes), [len(head.numbers) for head in heads])
        return _RegionTree(attribute, codes_of, numbers, geometries, constraints.pools.geometries)
    shapes = unpack_shapes(constraints.pools.geometries, geometries)
    return _RelationTree(attribute, relations[0], numbers, shapes)


def describe_anchor(constraint: Constraint) -> str:
    """Name the tree that finds an anchor."""
    test = constraint.test
    assert isinstance(test, Spatial | DistanceWithin) and isinstance(test.left, Attribute)
    relation = test.relation.name if isinstance(test, Spatial) else DISTANCE
    return f"STRtree of {test.left.name}, {relation}"
