"""The evaluator `discrete`: Algorithm 1 of the CR-tree paper, approximate by design.

It knows regions of one part without holes, and nothing else: a hole that the event covers, or a
second part, would give a wrong relation, so both are refused. Points and lines are not regions;
relations of theirs are decided exactly.
"""

import numpy as np
import shapely
from numpy.typing import NDArray
from shapely import Polygon
from shapely.geometry.base import BaseGeometry

from contrada.errors import InvalidInput
from contrada.kernels.discretising import find_relations
from contrada.matching.indexes.space import BASES, ExactEvaluator, ShapeSet
from contrada.matching.table import Ids
from contrada.model.calculus import base_relations
from contrada.model.geometry import is_area
from contrada.model.relation import Family, SpatialRelation

DENSITY = 2_000.0
LONGITUDE_LATITUDE = (-180.0, -90.0, 180.0, 90.0)


class DiscreteEvaluator:
    """Boundaries as points: `density` of them in half the perimeter of the universe."""

    def __init__(
        self,
        density: float = DENSITY,
        universe: tuple[float, float, float, float] = LONGITUDE_LATITUDE,
        halo: bool = True,
    ) -> None:
        """Choose how many points, and whether each has a halo of half their distance."""
        west, south, east, north = universe
        if not (west < east and south < north):
            raise InvalidInput(f"the universe {universe} must be west, south, east, north")
        if not density >= 0:
            raise InvalidInput(f"the density must be a number >= 0, not {density!r}")
        self._points_per_unit = density / (east - west + north - south)
        self.margin = 0.5 / self._points_per_unit if density else np.inf  # the halo at its widest
        self._halo = halo
        self._exact = ExactEvaluator()

    def check(self, relation: SpatialRelation, geometry: BaseGeometry) -> None:
        """Refuse what Algorithm 1 cannot decide."""
        if relation.family is Family.PATTERN:
            raise InvalidInput(f"the discrete evaluator has no DE-9IM patterns: {relation.name}")
        _check_simple(geometry)

    def related(
        self, relation: SpatialRelation, event: BaseGeometry, shapes: ShapeSet, items: Ids
    ) -> NDArray[np.bool_]:
        """Decide regions by Algorithm 1, everything else exactly."""
        if not is_area(event):
            return self._exact.related(relation, event, shapes, items)
        regions = shapes.shapes.is_area[items]
        holds = np.zeros(len(items), bool)
        rest = items[~regions]
        if rest.size:
            holds[~regions] = self._exact.related(relation, event, shapes, rest)
        found = self.bases(event, shapes, items[regions])
        wanted = [
            code for code, base in enumerate(BASES) if base in base_relations(relation, False)
        ]
        holds[regions] = np.isin(found, wanted)
        return holds

    def bases(self, event: BaseGeometry, shapes: ShapeSet, items: Ids) -> Ids:
        """Find the relation of a region to each item by Algorithm 1."""
        _check_simple(event)
        rings, starts = shapes.rings
        ring = shapely.get_coordinates(shapely.get_exterior_ring(event))
        return find_relations(ring, rings, starts, items, self._points_per_unit, self._halo)


def _check_simple(geometry: BaseGeometry) -> None:
    is_simple = isinstance(geometry, Polygon) and shapely.get_num_interior_rings(geometry) == 0
    if is_area(geometry) and not is_simple:
        raise InvalidInput(
            f"the discrete evaluator takes regions of one part without holes, not {geometry!s:.60}"
        )
