"""Relations of geometries, evaluated by Shapely on arrays of pairs.

Geometries come tidied, valid and not empty; None stands for unknown. The named OGC relations use
Shapely's own functions, all others the DE-9IM matrix and the relation's patterns.
"""

import numpy as np
import shapely
from numpy.typing import NDArray
from shapely.geometry.base import BaseGeometry

from contrada.arrays import Geometries
from contrada.model.contact import find_meetings
from contrada.model.crossings import are_entangled
from contrada.model.geometry import are_areas, as_array
from contrada.model.relation import Family, SpatialRelation


def related(
    relation: SpatialRelation, a: Geometries, b: Geometries
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Whether each pair satisfies the relation, and whether that is decided.

    It is not where the two meet at too many places, unless one contact decides the relation and
    that can be found. A geometry of which the relation cannot be asked at all does not satisfy it.
    """
    if relation.meeting is not None:
        known = are_known(relation, a) & are_known(relation, b)
        meets, decided = find_meetings(a, b)
        return known & decided & (meets == relation.meeting), decided
    decided = ~are_entangled(a, b)
    if decided.all():
        return _related(relation, a, b), decided
    result = np.zeros(len(a), bool)
    result[decided] = _related(relation, a[decided], b[decided])
    return result, decided


def _related(relation: SpatialRelation, a: Geometries, b: Geometries) -> NDArray[np.bool_]:
    if relation.predicate is not None:
        return np.asarray(getattr(shapely, relation.predicate)(a, b), bool)
    known = are_known(relation, a) & are_known(relation, b)
    result = np.zeros(len(a), bool)
    pairs = np.flatnonzero(known)
    if relation.family is Family.EGENHOFER:
        meets, decided = find_meetings(a[pairs], b[pairs])  # far cheaper than relate
        pairs = pairs[meets | ~decided]
    matrices = np.asarray(shapely.relate(a[pairs], b[pairs]), object)
    dimensions = np.stack([shapely.get_dimensions(a[pairs]), shapely.get_dimensions(b[pairs])], 1)
    for row in {(m, *d) for m, d in zip(matrices, map(tuple, dimensions.tolist()), strict=True)}:
        if relation.admits(row[0], row[1:]):
            same = (matrices == row[0]) & (dimensions == row[1:]).all(axis=1)
            result[pairs[same]] = True
    return result


def are_known(relation: SpatialRelation, geometries: Geometries) -> NDArray[np.bool_]:
    """Which geometries the relation can be asked of at all."""
    if relation.family is Family.EGENHOFER:
        return are_areas(geometries)
    return ~(shapely.is_missing(geometries) | shapely.is_empty(geometries))


def relates(
    relation: SpatialRelation, a: BaseGeometry | None, b: BaseGeometry | None
) -> bool | None:
    """Whether one pair satisfies the relation; None where that is unknown."""
    if a is None or b is None:
        return None
    left, right = as_array([a]), as_array([b])
    if not (are_known(relation, left)[0] and are_known(relation, right)[0]):
        return None
    holds, decided = related(relation, left, right)
    return bool(holds[0]) if decided[0] else None
