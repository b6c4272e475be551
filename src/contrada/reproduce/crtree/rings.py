"""Algorithm 1 without any index: the relations of an event to all regions, by their boundaries."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from contrada.kernels.discretising import CONTAINS, DISJOINT, INSIDE, find_relations
from contrada.matching.table import Ids
from contrada.reproduce.workloads import Regions

_HALF_LENGTH = 2.0  # of the perimeter of the unit square
_ROUNDING = 1e-9


class RingSet:
    """The boundaries of regions in the unit square."""

    def __init__(self, regions: Regions) -> None:
        """Lay the boundaries one after another."""
        self._regions = regions
        self._outlines = shapely.get_exterior_ring(regions)
        self._xy, owners = shapely.get_coordinates(self._outlines, return_index=True)
        self._starts = np.searchsorted(owners, np.arange(len(regions) + 1)).astype(np.int64)
        self._boxes = shapely.bounds(regions)
        self._everything = np.arange(len(regions))
        self._find_some(regions[0], 0, self._everything[:1])  # compiles

    def find(self, event: Any, density: float) -> Ids:
        """Find the relation of an event to every region."""
        return self._find_some(event, density, self._everything)

    def find_by_density(self, event: Any, densities: Sequence[float]) -> Iterator[Ids]:
        """Find the same for several densities, without a walk along boundaries that lie apart.

        Where they are farther from each other than any halo, all points of one are on one side of
        the other, so that Algorithm 1 gives the relation that there is, at every density.
        """
        ring = shapely.get_exterior_ring(event)
        shapely.prepare(ring)
        gaps = self._gaps(event)
        true = self._relations_apart(event, np.flatnonzero(gaps <= 0))
        for density in densities:
            halos = self._halos(event, density) + _ROUNDING
            near = np.flatnonzero(gaps <= halos)
            near = near[shapely.dwithin(ring, self._outlines[near], halos[near])]
            found = true.copy()
            found[near] = self._find_some(event, density, near)
            yield found

    def count_meeting(self, event: Any) -> int:
        """Count the regions whose boxes meet the event's."""
        return int((self._gaps(event) <= 0).sum())

    def _find_some(self, event: Any, density: float, items: Ids) -> Ids:
        per_unit = density / _HALF_LENGTH
        return find_relations(_ring(event), self._xy, self._starts, items, per_unit, True)

    def _gaps(self, event: Any) -> NDArray[np.float64]:
        """Measure how far boxes lie from the event's, along x or y, whichever is more."""
        west, south, east, north = event.bounds
        beyond, before = self._boxes[:, :2] - [east, north], [west, south] - self._boxes[:, 2:]
        return np.asarray(np.maximum(beyond, before).max(axis=1))

    def _relations_apart(self, event: Any, items: Ids) -> Ids:
        """Tell the relations of the regions if no boundary meets the event's."""
        found = np.full(len(self._regions), DISJOINT)
        x, y = self._xy[self._starts[items]].T
        found[items[shapely.contains_xy(event, x, y)]] = CONTAINS
        found[items[shapely.contains_xy(self._regions[items], *_ring(event)[0])]] = INSIDE
        return found

    def _halos(self, event: Any, density: float) -> NDArray[np.float64]:
        """Bound the halo's radius: half the distance of points, which is a whole edge at most."""
        edges = np.maximum(self._longest_edges, _edge_lengths(_ring(event)).max())
        return np.minimum(edges, _HALF_LENGTH / density if density else np.inf) / 2

    @cached_property
    def _longest_edges(self) -> NDArray[np.float64]:
        lengths = _edge_lengths(self._xy)
        lengths[self._starts[1:-1] - 1] = 0  # from ring to ring
        return np.asarray(np.maximum.reduceat(lengths, self._starts[:-1]))


def _ring(region: Any) -> NDArray[np.float64]:
    return shapely.get_coordinates(shapely.get_exterior_ring(region))


def _edge_lengths(xy: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.hypot(*np.diff(xy, axis=0).T))
