"""Where edges of geometries are, so that what comes near to none of them is known at once.

A way whose end lies outside a geometry meets it only where it meets an edge, and a point outside is
near only where it is near to an edge. Each geometry comes with a distance that counts as near to
it, in metres of longitude and latitude; 0 asks for what touches it.
"""

from dataclasses import dataclass

import numpy as np
import shapely

from contrada.arrays import Floats, Mask, Positions
from contrada.kernels.edge_search import (
    CUT,
    cut_runs,
    find_boxes,
    find_passed,
    measure_gaps,
)
from contrada.kernels.packed_tree import PackedTree, pack_boxes
from contrada.model.packed_geometries import PackedGeometries
from contrada.threads import once

_DEGREE_M_MIN = 110_570.0  # no degree of latitude is shorter
_FLAT_M_MAX, _FLAT_LATITUDE_MAX = 20_000.0, 80.0  # where a flat map is true enough
_RADIUS_M_MIN = 6_335_000.0
_UNSURE_M = 0.01
_NOWHERE = (np.nan,) * 4
_NONE = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class EdgePairs:
    """Pairs of a row and a geometry, each once: certain, or still to be decided."""

    rows: Positions
    geometries: Positions
    is_sure: Mask


class EdgeIndex:
    """The edges of geometries, cut into runs with a box around each and all that is near to it."""

    def __init__(self, geometries: PackedGeometries, radii_m: Floats) -> None:
        """Take geometries, and the distance that counts as near to each; both may repeat."""
        self._geometries, self._radii_m = geometries, radii_m
        rings, firsts, lasts, boxes = cut_runs(geometries.coordinates, geometries.vertices)
        of_parts = np.repeat(np.arange(len(geometries)), np.diff(geometries.parts))
        owners = np.repeat(of_parts, np.diff(geometries.rings))[rings]
        whole = geometries.collections  # whose edges nobody has listed
        bounds = shapely.bounds(geometries.shapes(whole)).reshape(-1, 4)
        none = np.full(len(whole), -1)
        self._owner = np.concatenate([owners, whole])
        self._first, self._last = (np.concatenate([ends, none]) for ends in (firsts, lasts))
        self._boxes = np.concatenate([boxes, bounds])

    @once
    def _tree(self) -> tuple[PackedTree, Positions]:
        """The boxes around what is near to runs, and the run of each: one that wraps has two."""
        radii_m = self._radii_m[self._owner]
        boxes, runs = _widen(self._boxes, radii_m)
        if not len(boxes):
            boxes, runs = np.array([_NOWHERE]), np.zeros(1, np.int64)
        return pack_boxes(boxes), runs

    @once
    def _touched(self) -> tuple[Positions, Positions]:
        """The first and last vertex of each run in the tree, -1 where more than a touch counts."""
        _, runs = self._tree
        is_touched = self._radii_m[self._owner[runs]] == 0
        return np.where(is_touched, self._first[runs], -1), self._last[runs]

    def find_passed(self, ways: Floats) -> EdgePairs:
        """Find the pairs of a way and a geometry that may be touched or near.

        A way is x and y of both ends, or NaN. Sure are those of which a way and an edge have a
        point in common that is an end of neither; ways that lie inside a geometry altogether need
        not be among the pairs.
        """
        if not len(self._owner):
            return EdgePairs(_NONE, _NONE, np.zeros(0, bool))
        (tree, runs), ends = self._tree, self._touched
        coordinates = self._geometries.coordinates
        rows, found, met = find_passed(tree, np.ascontiguousarray(ways), *ends, coordinates)
        return self._pair(rows, self._owner[runs[found]], met == CUT)

    def find_near(self, boxes: Floats) -> tuple[Positions, Positions]:
        """Find the pairs of a box and a geometry that may be near, each once."""
        rows, runs = self._find(boxes)
        found = self._pair(rows, self._owner[runs], np.zeros(len(rows), bool))
        return found.rows, found.geometries

    def find_near_points(self, x: Floats, y: Floats) -> EdgePairs:
        """Find the pairs of a point and a geometry that are near or may be; NaN is never near."""
        rows, runs = self._find(np.stack([x, y, x, y], axis=1))
        radii_m, latitude = self._radii_m[self._owner[runs]], abs(y[rows])
        reach = radii_m / _DEGREE_M_MIN * 8 + 1e-9  # a degree of longitude is at most so short
        is_flat = (radii_m <= _FLAT_M_MAX) & (latitude <= _FLAT_LATITUDE_MAX)
        is_flat &= (abs(x[rows]) + reach < 180) & (self._first[runs] >= 0)
        gaps = np.zeros(len(rows))
        at = np.flatnonzero(is_flat)
        of = runs[at]
        gaps[at] = measure_gaps(
            x[rows[at]],
            y[rows[at]],
            self._first[of],
            self._last[of],
            self._geometries.coordinates,
        )
        slack = _slack_m(radii_m, latitude)
        is_sure = is_flat & (gaps <= radii_m - slack)
        may = is_sure | ~is_flat | (gaps <= radii_m + slack)
        return self._pair(rows[may], self._owner[runs[may]], is_sure[may])

    def _find(self, boxes: Floats) -> tuple[Positions, Positions]:
        """Find the pairs of a box and a run around which its own box meets it; some come again."""
        tree, runs = self._tree
        rows, found = find_boxes(tree, np.ascontiguousarray(boxes))
        return rows, runs[found]

    def _pair(self, rows: Positions, geometries: Positions, is_sure: Mask) -> EdgePairs:
        """Bring together what was found of each pair: one that is sure makes it so."""
        count = max(len(self._geometries), 1)
        keys, numbers = np.unique(rows * count + geometries, return_inverse=True)
        are_sure = np.zeros(len(keys), bool)
        are_sure[numbers[is_sure]] = True
        return EdgePairs(*np.divmod(keys, count), are_sure)


def _slack_m(radii_m: Floats, latitude: Floats) -> Floats:
    """Bound how much a flat map is wrong about such distances at such latitudes.

    To the north and the south of the point, degrees of longitude are of another length.
    """
    away = 1.1 * radii_m / _RADIUS_M_MIN
    steepest = np.tan(np.minimum(np.radians(latitude) + away, 1.5))
    return np.asarray(radii_m * 1.5 * (steepest + 0.02) * away + _UNSURE_M)


def _widen(boxes: Floats, radii_m: Floats) -> tuple[Floats, Positions]:
    """Widen boxes by distances; what reaches over 180° has another box on the other side."""
    widened, runs = boxes.copy(), np.arange(len(boxes))
    far = np.flatnonzero(radii_m > 0)
    west, south, east, north = boxes[far].T
    rise = radii_m[far] / _DEGREE_M_MIN + 1e-9
    south, north = south - rise, north + rise
    cosine = np.cos(np.radians(np.minimum(np.maximum(abs(south), abs(north)), 89.9999)))
    spread = radii_m[far] / (_DEGREE_M_MIN * cosine) * 1.01 + 1e-9
    is_round = (south <= -90) | (north >= 90) | (east - west + 2 * spread >= 360)
    west, east = np.where(is_round, -180, west - spread), np.where(is_round, 180, east + spread)
    widened[far] = np.stack([west, south, east, north], axis=1)
    beyond_west, beyond_east = far[west < -180], far[east > 180]
    again = [widened[beyond_west] + [360, 0, 360, 0], widened[beyond_east] - [360, 0, 360, 0]]
    return np.concatenate([widened, *again]), np.concatenate([runs, beyond_west, beyond_east])
