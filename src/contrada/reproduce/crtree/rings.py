"""Algorithm 1 without any index: the relations of an event to all regions, by their boundaries."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from contrada.kernels.discretising import CONTAINS, DISJOINT, INSIDE, find_relations
from contrada.matching.table import Ids
from contrada.reproduce.crtree.measuring import Events, mean_ms
from contrada.reproduce.workloads import Regions

Coordinates = NDArray[np.float64]
Box = tuple[float, float, float, float]

_HALF_LENGTH = 2.0  # of the perimeter of the unit square
_ROUNDING = 1e-9
_VERTICES_MANY = 1_000


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

    def mean_ms(self, events: Events, density: float) -> float:
        """Give the time that the relations of one event take."""
        return mean_ms(lambda event: self.find(event, density), events)

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
            halos: Any = self._halos(event, density) + _ROUNDING
            near = np.flatnonzero(gaps <= halos)
            near = near[shapely.dwithin(ring, self._outlines[near], halos[near])]
            found = true.copy()
            found[near] = self._find_cropped(event, density, near)
            yield found

    def _find_cropped(self, event: Any, density: float, items: Ids) -> Ids:
        """Find the relations to some regions, without the far parts of long boundaries."""
        if not density:
            return self._find_some(event, density, items)
        is_long = self._starts[items + 1] - self._starts[items] > _VERTICES_MANY
        found = np.empty(len(items), np.int64)
        found[~is_long] = self._find_some(event, density, items[~is_long])
        for at in np.flatnonzero(is_long):
            ring = self._xy[self._starts[items[at]] : self._starts[items[at] + 1]]
            cropped = _crop(ring, event.bounds, _HALF_LENGTH / density)
            if _edge_lengths(cropped).sum() > event.length:  # still the longer one of the two
                ring = cropped
            found[at] = _find(event, density, ring, np.array([0, len(ring)]), np.zeros(1, int))[0]
        return found

    def count_meeting(self, event: Any) -> int:
        """Count the regions whose boxes meet the event's."""
        return int((self._gaps(event) <= 0).sum())

    def _find_some(self, event: Any, density: float, items: Ids) -> Ids:
        return _find(event, density, self._xy, self._starts, items)

    def _gaps(self, event: Any) -> Coordinates:
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

    def _halos(self, event: Any, density: float) -> Coordinates:
        """Bound the halo's radius: half the distance of points, which is a whole edge at most."""
        edges = np.maximum(self._longest_edges, _edge_lengths(_ring(event)).max())
        return np.asarray(np.minimum(edges, _HALF_LENGTH / density if density else np.inf) / 2)

    @cached_property
    def _longest_edges(self) -> Coordinates:
        lengths = _edge_lengths(self._xy)
        lengths[self._starts[1:-1] - 1] = 0  # from ring to ring
        return np.asarray(np.maximum.reduceat(lengths, self._starts[:-1]))


def _find(event: Any, density: float, xy: Coordinates, starts: Ids, items: Ids) -> Ids:
    return find_relations(_ring(event), xy, starts, items, density / _HALF_LENGTH, True)


def _crop(ring: Coordinates, box: Box, margin: float) -> Coordinates:
    """Shorten a boundary where it runs beyond one side of a box, by more than the margin.

    What lies there is too far to meet a point of the box, and whether a ray from such a point
    crosses it an even number of times depends on its ends alone: they stay.
    """
    west, south, east, north = box
    x, y = ring.T
    beyond = [x < west - margin, x > east + margin, y < south - margin, y > north + margin]
    side = np.select(beyond, [1, 2, 3, 4], 0)
    runs_on = (side[1:] == side[:-1]) & (side[1:] > 0)
    is_within_run = np.zeros(len(ring), bool)
    is_within_run[1:-1] = runs_on[:-1] & runs_on[1:]
    return ring[~is_within_run]


def _ring(region: Any) -> Coordinates:
    return shapely.get_coordinates(shapely.get_exterior_ring(region))


def _edge_lengths(xy: Coordinates) -> Coordinates:
    return np.asarray(np.hypot(*np.diff(xy, axis=0).T))
