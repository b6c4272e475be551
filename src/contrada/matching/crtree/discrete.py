"""The evaluator `discrete`: Algorithm 1 of the CR-tree paper, approximate by design.

It knows regions of one part without holes, and nothing else: a hole that the event covers, or a
second part, would give a wrong relation, so both are refused. Points and lines are not regions;
relations of theirs are decided exactly.
"""

from contextlib import suppress
from typing import Any

import numpy as np
import shapely
from shapely.geometry.base import BaseGeometry

from contrada.arrays import Box, Geometries, Integers, Mask, Positions
from contrada.errors import InvalidInput
from contrada.flags import check_flags
from contrada.kernels.discretising import find_relations
from contrada.limits import BOUNDARY_POINTS_MAX, DENSITY_MAX
from contrada.matching.grid import LONGITUDE_LATITUDE
from contrada.matching.indexes.by_tree import TABLE_1_BASES, ExactEvaluator, ShapeSet
from contrada.matching.universe import read_real, read_universe
from contrada.model.calculus import base_relations
from contrada.model.geometry import Fault, are_areas, as_array, is_area
from contrada.model.relation import Family, SpatialRelation
from contrada.showing import brief, brief_text

DENSITY = 2_000.0
_LENGTH_MAX = 1e150  # of one boundary: squares of longer ones are no numbers


class DiscreteEvaluator:
    """Boundaries as points: `density` of them in half the perimeter of the universe."""

    def __init__(
        self,
        density: float = DENSITY,
        universe: Box = LONGITUDE_LATITUDE,
        halo: bool = True,
    ) -> None:
        """Choose how many points, and whether each has a halo of half their distance."""
        west, south, east, north = read_universe(universe)
        density = _read_density(density)
        check_flags(halo=halo)
        self._points_per_unit = density / (east - west + north - south)
        self.margin = 0.5 / self._points_per_unit if density else np.inf  # the halo at its widest
        self._halo = halo
        self._exact = ExactEvaluator()

    def check(self, relation: SpatialRelation, geometry: BaseGeometry) -> None:
        """Refuse what Algorithm 1 cannot decide."""
        if relation.family is Family.PATTERN:
            raise InvalidInput(
                f"the discrete evaluator does not support DE-9IM patterns ({relation.name})"
            )
        fault = self.find_faults(as_array([geometry])).get(0)
        if fault is not None:
            raise InvalidInput(f"{fault.message} (value {brief_text(geometry, 60)})")

    def find_faults(self, geometries: Geometries) -> dict[int, Fault]:
        """Find the regions that Algorithm 1 cannot decide, or not soon, by position."""
        at = np.flatnonzero(are_areas(geometries))
        if not at.size:
            return {}  # most events are points
        regions = geometries[at]
        parts = shapely.get_num_geometries(regions)
        holes = shapely.get_num_interior_rings(shapely.get_geometry(regions, 0))
        with np.errstate(all="ignore"):
            lengths = shapely.length(regions)
            points = lengths * self._points_per_unit + shapely.get_num_coordinates(regions)
        is_short = (lengths <= _LENGTH_MAX) & (points <= BOUNDARY_POINTS_MAX)
        return {
            int(at[i]): _explain(regions[i], int(parts[i]), int(holes[i]), lengths[i], points[i])
            for i in np.flatnonzero((parts > 1) | (holes > 0) | ~is_short)
        }

    def related(
        self, relation: SpatialRelation, event: BaseGeometry, shapes: ShapeSet, items: Positions
    ) -> tuple[Mask, Mask]:
        """Decide regions by Algorithm 1, everything else exactly."""
        if not is_area(event):
            return self._exact.related(relation, event, shapes, items)
        regions = shapes.shapes.is_area[items]
        holds, known = np.zeros(len(items), bool), np.ones(len(items), bool)
        rest = items[~regions]
        if rest.size:
            holds[~regions], known[~regions] = self._exact.related(relation, event, shapes, rest)
        found = self.bases(event, shapes, items[regions])
        wanted = [
            code
            for code, base in enumerate(TABLE_1_BASES)
            if base in base_relations(relation, False)
        ]
        holds[regions] = np.isin(found, wanted)
        return holds, known

    def bases(self, event: BaseGeometry, shapes: ShapeSet, items: Positions) -> Integers:
        """Find the relation of a region to each item by Algorithm 1."""
        rings, starts = shapes.rings
        ring = shapely.get_coordinates(shapely.get_exterior_ring(shapely.get_geometry(event, 0)))
        return find_relations(ring, rings, starts, items, self._points_per_unit, self._halo)


def _read_density(density: Any) -> float:
    with suppress(TypeError, ValueError, OverflowError):
        number = read_real(density)
        if number == 0 or 1 <= number <= DENSITY_MAX:
            return number
    raise InvalidInput(
        f"the density must be 0 or a number from 1 to {DENSITY_MAX:,}, not {brief(density)}"
    )


def _explain(region: BaseGeometry, parts: int, holes: int, length: float, points: float) -> Fault:
    """Explain why a region cannot be decided."""
    if parts > 1 or holes > 0:
        what = f"of {parts} parts" if parts > 1 else f"with {holes} hole{'s' * (holes > 1)}"
        return Fault(
            "undecidable",
            "the discrete evaluator takes regions of one part without holes, "
            f"not a {region.geom_type} {what}",
        )
    if not length <= _LENGTH_MAX:
        return Fault(
            "undecidable",
            f"the discrete evaluator takes boundaries of up to {_LENGTH_MAX}, not one that is "
            f"{length:.3g} long",
        )
    return Fault(
        "undecidable",
        f"the boundary has {round(points):,.15g} points at this density, but the discrete "
        f"evaluator takes at most {BOUNDARY_POINTS_MAX:,} (BOUNDARY_POINTS_MAX); choose a universe "
        "that fits your coordinates, or a lower density",
    )
