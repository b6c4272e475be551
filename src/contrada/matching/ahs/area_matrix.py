"""Relations from area matrices: Table 2 of the AHS paper, for each operator and pair of dimensions.

The matrix decides on the grid, so it is approximate: what comes near counts as touching, and
*within* means covered by the other's cells. Which of the paper's rows apply follows from the
dimensions, and with multi-points a point may also overlap points and cross lines and areas. The
paper has no `covers`, which is `contains` here, and no Egenhofer relations: see `_of_regions`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from contrada.arrays import Integers, Mask
from contrada.model.relation import AreaRule, Relation, SpatialRelation

_LINE = 1


@dataclass(frozen=True, slots=True)
class MatrixPairs:
    """Events and subscriptions' geometries in pairs, with the area matrix of each pair.

    A matrix is a row II, IB, BI, BB, the event's part first. Areas are rows of interior and
    boundary of the whole geometry, in cells of the finest level. If all pairs have one event, its
    dimension is a number and its areas one row.
    """

    event_dimensions: int | Integers
    event_areas: Integers
    dimensions: Integers
    areas: Integers
    matrices: Integers

    @property
    def interiors(self) -> Integers:
        """II of each pair."""
        return self.matrices[:, 0]

    @property
    def boundaries(self) -> Integers:
        """BB of each pair."""
        return self.matrices[:, 3]

    @property
    def shared(self) -> Integers:
        """The sum of each matrix."""
        return np.asarray(self.matrices.sum(axis=1))

    @property
    def is_event_covered(self) -> Mask:
        """Whether the shared area is the whole event."""
        return np.asarray(self.shared == self.event_areas.sum(axis=-1))

    @property
    def is_event_around(self) -> Mask:
        """Whether the shared area is the whole of the subscription's geometry."""
        return np.asarray(self.shared == self.areas.sum(axis=1))

    @property
    def are_alike(self) -> Mask:
        """Whether both geometries have the same dimension."""
        return np.asarray(self.dimensions == self.event_dimensions)


def is_determined(relation: SpatialRelation) -> bool:
    """Whether area matrices decide a relation: all that have a name."""
    return relation.area_rule is not None


def needs_boundary(relation: SpatialRelation, dimension: int) -> bool:
    """Whether a relation to a geometry needs the cells of its boundary (section 3.1)."""
    return relation.area_rule is not AreaRule.CROSSING or dimension != _LINE


def determine(relation: SpatialRelation, pairs: MatrixPairs) -> Mask:
    """Decide for each pair whether the event satisfies the relation to the other geometry."""
    rule = relation.area_rule
    assert rule is not None, relation.name
    holds = _of_regions(rule, pairs) if isinstance(rule, Relation) else _TABLE_2[rule](pairs)
    return np.asarray(holds, bool)


def _equals(pairs: MatrixPairs) -> Any:
    diagonal = pairs.matrices[:, [0, 3]]
    is_same = ((diagonal == pairs.event_areas) & (diagonal == pairs.areas)).all(axis=1)
    return is_same & (pairs.shared == diagonal.sum(axis=1)) & pairs.are_alike


def _disjoint(pairs: MatrixPairs) -> Any:
    return pairs.shared == 0


def _intersects(pairs: MatrixPairs) -> Any:
    return pairs.shared != 0


def _touches(pairs: MatrixPairs) -> Any:
    return (pairs.interiors == 0) & (pairs.shared != 0)


def _within(pairs: MatrixPairs) -> Any:
    return pairs.is_event_covered & (pairs.event_dimensions <= pairs.dimensions)


def _contains(pairs: MatrixPairs) -> Any:
    return pairs.is_event_around & (pairs.event_dimensions >= pairs.dimensions)


def _overlaps(pairs: MatrixPairs) -> Any:
    """Points, lines or areas both; lines must share more than one cell."""
    interior_min = np.where(pairs.dimensions == _LINE, 2, 1)
    is_proper = ~pairs.is_event_covered & ~pairs.is_event_around
    return (pairs.interiors >= interior_min) & is_proper & pairs.are_alike


def _crosses(pairs: MatrixPairs) -> Any:
    """Two lines share one cell; others differ in dimension, and neither is within the other.

    Of a line only the interior counts, since only that is indexed for this operator.
    """
    is_line = pairs.dimensions == _LINE
    shared = np.where(is_line, pairs.matrices[:, 0] + pairs.matrices[:, 2], pairs.shared)
    whole = np.where(is_line, pairs.areas[:, 0], pairs.areas.sum(axis=1))
    is_proper = (shared != pairs.event_areas.sum(axis=-1)) & (shared != whole)
    of_two_kinds = (pairs.interiors != 0) & is_proper & ~pairs.are_alike
    return of_two_kinds | ((pairs.interiors == 1) & is_line & pairs.are_alike)


def _of_regions(relation: Relation, pairs: MatrixPairs) -> Any:
    """Decide an Egenhofer relation, of which exactly one holds for two areas.

    The four facts of `model.relation.egenhofer`, read from the grid: interiors meet where any
    interior cell is shared, since a boundary in it has both sides in it; boundaries meet where
    boundary cells are shared. Two areas of the same cells are equal, thin ones too.
    """
    is_covered, is_around = pairs.is_event_covered, pairs.is_event_around
    is_apart, is_near = pairs.shared == 0, pairs.boundaries != 0
    is_same = is_covered & is_around
    meets = ~is_apart & ~is_same & (pairs.shared == pairs.boundaries)
    is_other = ~is_apart & ~is_same & ~meets
    match relation:
        case Relation.DISJOINT:
            return is_apart
        case Relation.EQUALS:
            return is_same
        case Relation.MEETS:
            return meets
        case Relation.INSIDE:
            return is_other & is_covered & ~is_near
        case Relation.COVERED_BY:
            return is_other & is_covered & is_near
        case Relation.CONTAINS:
            return is_other & is_around & ~is_near
        case Relation.COVERS:
            return is_other & is_around & is_near
        case Relation.OVERLAPS:
            return is_other & ~is_covered & ~is_around


_TABLE_2: Mapping[AreaRule, Callable[[MatrixPairs], Any]] = {
    AreaRule.SAME: _equals,
    AreaRule.APART: _disjoint,
    AreaRule.MEETING: _intersects,
    AreaRule.TOUCHING: _touches,
    AreaRule.OVERLAPPING: _overlaps,
    AreaRule.CROSSING: _crosses,
    AreaRule.COVERED: _within,
    AreaRule.AROUND: _contains,
}
