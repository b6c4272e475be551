"""Algorithm 1 without any index: the relations of an event to all regions, by their boundaries."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from contrada.arrays import Integers, Positions
from contrada.kernels.discretising import CONTAINS, DISJOINT, INSIDE, OVERLAPS, find_relations
from contrada.reproduce.crtree.measuring import Subjects, mean_ms
from contrada.reproduce.scenarios import Regions
from contrada.threads import once

Coordinates = NDArray[np.float64]

_HALF_LENGTH = 2.0  # of the perimeter of the unit square
_ROUNDING = 1e-9
_CLEARLY = 1 + 1e-9
_VERTICES_MANY = 1_000
_POINTS_PER_EDGE = 16


class RingSet:
    """The boundaries of regions in the unit square."""

    def __init__(self, regions: Regions) -> None:
        """Lay the boundaries one after another."""
        self._regions = regions
        self._outlines = shapely.get_exterior_ring(regions)
        self._xy, owners = shapely.get_coordinates(self._outlines, return_index=True)
        self._starts = np.searchsorted(owners, np.arange(len(regions) + 1)).astype(np.int64)
        self._boxes = shapely.bounds(regions)
        self._lengths = shapely.length(regions)
        self._everything = np.arange(len(regions))
        self._find_some(regions[0], 0, self._everything[:1])  # compiles

    def find(self, event: Any, density: float) -> Positions:
        """Find the relation of an event to every region."""
        return self._find_some(event, density, self._everything)

    def mean_ms(self, events: Subjects, density: float) -> float:
        """Return the time that the relations of one event take."""
        return mean_ms(lambda event: self.find(event, density), events)

    def find_by_density(self, event: Any, densities: Sequence[float]) -> Iterator[Positions]:
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
            found[near] = self._find_close(event, density, near, halos[near])
            yield found

    def _find_close(
        self, event: Any, density: float, items: Positions, halos: Coordinates
    ) -> Positions:
        """Find the relations to regions whose boundaries come close to the event's.

        Where some points of the event's boundary lie on either side of a longer one, clear of its
        halo, they overlap, whatever the other points say: long boundaries then need no walk.
        """
        found = np.full(len(items), OVERLAPS)
        points = _some_points(_ring(event), density / _HALF_LENGTH)
        is_open = np.ones(len(items), bool)
        for at in np.flatnonzero(self._lengths[items] > event.length * _CLEARLY):
            region, outline = self._regions[items[at]], self._outlines[items[at]]
            if shapely.get_num_points(outline) > _VERTICES_MANY:
                shapely.prepare([region, outline])
                clear = points[~shapely.dwithin(outline, points, halos[at])]
                is_inside = shapely.contains(region, clear)
                is_open[at] = is_inside.all() or not is_inside.any()
        found[is_open] = self._find_some(event, density, items[is_open])
        return found

    def count_meeting(self, event: Any) -> int:
        """Count the regions whose boxes meet the event's."""
        return int((self._gaps(event) <= 0).sum())

    def _find_some(self, event: Any, density: float, items: Positions) -> Positions:
        per_unit = density / _HALF_LENGTH
        return find_relations(_ring(event), self._xy, self._starts, items, per_unit, True)

    def _gaps(self, event: Any) -> Coordinates:
        """Measure how far boxes lie from the event's, along x or y, whichever is more."""
        west, south, east, north = event.bounds
        beyond, before = self._boxes[:, :2] - [east, north], [west, south] - self._boxes[:, 2:]
        return np.asarray(np.maximum(beyond, before).max(axis=1))

    def _relations_apart(self, event: Any, items: Positions) -> Integers:
        """Return the relations of the regions if no boundary meets the event's."""
        found = np.full(len(self._regions), DISJOINT)
        x, y = self._xy[self._starts[items]].T
        found[items[shapely.contains_xy(event, x, y)]] = CONTAINS
        found[items[shapely.contains_xy(self._regions[items], *_ring(event)[0])]] = INSIDE
        return found

    def _halos(self, event: Any, density: float) -> Coordinates:
        """Bound the halo's radius: half the distance of points, which is a whole edge at most."""
        edges = np.maximum(self._longest_edges, _edge_lengths(_ring(event)).max())
        return np.asarray(np.minimum(edges, _HALF_LENGTH / density if density else np.inf) / 2)

    @once
    def _longest_edges(self) -> Coordinates:
        lengths = _edge_lengths(self._xy)
        lengths[self._starts[1:-1] - 1] = 0  # from ring to ring
        return np.asarray(np.maximum.reduceat(lengths, self._starts[:-1]))


def _some_points(ring: Coordinates, per_unit: float) -> Regions:
    """Return some of the points that Algorithm 1 examines on each edge."""
    points = []
    for start, end in pairwise(ring):
        steps = int(np.hypot(*(end - start)) * per_unit) + 1
        chosen = np.unique(np.linspace(0, steps - 1, _POINTS_PER_EDGE).astype(int))
        points.append(start + (end - start) * chosen[:, None] / steps)
    return np.asarray(shapely.points(np.concatenate(points)))


def _ring(region: Any) -> Coordinates:
    return shapely.get_coordinates(shapely.get_exterior_ring(region))


def _edge_lengths(xy: Coordinates) -> Coordinates:
    return np.asarray(np.hypot(*np.diff(xy, axis=0).T))
