"""Geometries as paths on the integer grid of one map.

Both kinds of picture draw from the same columns: the page writes them down, the image strokes
them. Nothing here knows colours, labels or files.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import shapely

from contrada.arrays import Box

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

# The longer side of the view with which a map opens, in grid units.
GRID_UNITS = 4_000_000

# A map opens on no less than this share of everything, so that grid units stay countable.
_OPENING_MIN = 1 / 20_000
_OPENING_OF_A_POINT = 1 / 200

# One letter per path: a point, a line, the ring of an area.
POINT_PATH, LINE_PATH, AREA_PATH = "p", "l", "a"
_KIND_OF_TYPE = np.array([POINT_PATH, LINE_PATH, LINE_PATH, AREA_PATH])
_POLYGON_TYPE = 3

# Near the poles one degree of longitude is next to nothing; a map stretched further is a stripe.
_STRETCH_MAX = 6.0


@dataclass(frozen=True, slots=True)
class Frame:
    """The part of the plane that a map shows, and its integer grid.

    A point lies at (x - west) / unit, (y - south) / unit; `width` and `height` are in units, and so
    is `opening`, the west, south, east and north of the view with which the map opens. Where the
    extent could be longitude and latitude it is read so (`is_lonlat`): labels get a
    degree sign, and a unit of y is drawn `stretch` times as long as one of x.
    """

    west: float
    south: float
    unit: float
    width: float
    height: float
    stretch: float
    is_lonlat: bool
    opening: Box


@dataclass(frozen=True, slots=True)
class Outlines:
    """Shapes as columns: `shape_lengths` counts paths per shape, `path_lengths` points per path.

    Exterior rings run counterclockwise and holes clockwise, without the closing point, so that
    the nonzero rule fills overlapping parts and leaves holes open.
    """

    coordinates: NDArray[np.int64]
    path_lengths: NDArray[np.int64]
    path_kinds: NDArray[np.str_]
    shape_lengths: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.shape_lengths)

    def boxes(self, stretch: float) -> NDArray[np.float64]:
        """Return each shape's west, south, east and north, in units of x."""
        if not len(self):
            return np.empty((0, 4))
        path_firsts = starts_of(self.path_lengths)
        shape_firsts = path_firsts[starts_of(self.shape_lengths)]
        lows = np.minimum.reduceat(self.coordinates, shape_firsts, axis=0)
        highs = np.maximum.reduceat(self.coordinates, shape_firsts, axis=0)
        corners: NDArray[np.float64] = np.hstack([lows, highs]).astype(np.float64)
        corners[:, 1::2] *= stretch
        return corners

    def typical_size(self, stretch: float) -> float:
        """Return the median of the longer sides of the shapes' boxes; zero if there are none."""
        boxes = self.boxes(stretch)
        return float(np.median((boxes[:, 2:] - boxes[:, :2]).max(axis=1))) if len(boxes) else 0.0

    def chief_kind(self) -> str:
        """Return the kind of most paths; what has none counts as areas."""
        counts = {
            kind: int((self.path_kinds == kind).sum())
            for kind in (AREA_PATH, LINE_PATH, POINT_PATH)
        }
        return max(counts, key=lambda kind: counts[kind])


def starts_of(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where each of consecutive runs begins."""
    return np.cumsum(lengths) - lengths


def frame_around(
    columns: Sequence[NDArray[np.object_]], opening_boxes: NDArray[np.float64] | None = None
) -> Frame:
    """Return the frame of all drawn geometries, which opens on some boxes, or on everything.

    Where the geometries have no extent, it is one of size one.
    """
    boxes = np.concatenate([np.empty((0, 4)), *(shapely.bounds(column) for column in columns)])
    west, south, east, north = _extent(boxes)
    side = max(east - west, north - south)
    # A side that vanishes beside the coordinates themselves could not be divided into units.
    if side <= 1e-9 * max(abs(west), abs(south), abs(east), abs(north)) or side < 1e-100:
        side = max(1.0, 1e-6 * max(abs(west), abs(south)))
        west, south, east, north = _widened((west, south, east, north), side)
    opening = (west, south, east, north)
    if opening_boxes is not None and len(opening_boxes):
        opening = _opening_around(_extent(opening_boxes), side)
    unit = max(opening[2] - opening[0], opening[3] - opening[1]) / GRID_UNITS
    is_lonlat = west >= -180.5 and east <= 360.5 and south >= -90.5 and north <= 90.5
    shrink = math.cos(math.radians((opening[1] + opening[3]) / 2)) if is_lonlat else 1.0
    return Frame(
        west=west,
        south=south,
        unit=unit,
        width=(east - west) / unit,
        height=(north - south) / unit,
        stretch=1 / max(shrink, 1 / _STRETCH_MAX),
        is_lonlat=is_lonlat,
        opening=(
            (opening[0] - west) / unit,
            (opening[1] - south) / unit,
            (opening[2] - west) / unit,
            (opening[3] - south) / unit,
        ),
    )


def _extent(boxes: NDArray[np.float64]) -> Box:
    if not len(boxes):
        return 0.0, 0.0, 0.0, 0.0
    west, south = (float(low) for low in boxes[:, :2].min(axis=0))
    east, north = (float(high) for high in boxes[:, 2:].max(axis=0))
    return west, south, east, north


def _opening_around(box: Box, whole_side: float) -> Box:
    """Widen a box that is too small to open a map on."""
    side = max(box[2] - box[0], box[3] - box[1])
    if side <= 1e-9 * whole_side:
        return _widened(box, _OPENING_OF_A_POINT * whole_side)
    return _widened(box, _OPENING_MIN * whole_side) if side < _OPENING_MIN * whole_side else box


def _widened(box: Box, side: float) -> Box:
    """Return the square of a side around the middle of a box."""
    x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
    return x - side / 2, y - side / 2, x + side / 2, y + side / 2


@dataclass(frozen=True, slots=True)
class DrawnPaths:
    """Geometries taken apart: each path with its kind and the row of the shape it belongs to."""

    lines: NDArray[np.object_]
    kinds: NDArray[np.str_]
    owners: NDArray[np.intp]
    shape_count: int

    def count_bends(self) -> NDArray[np.int64]:
        """Count the vertices of each path that could be simplified away; points have none."""
        return np.where(self.kinds == POINT_PATH, 0, shapely.get_num_coordinates(self.lines))

    def simplified(self, tolerances: NDArray[np.float64]) -> DrawnPaths:
        """Simplify each path to the tolerance of its shape; zero leaves it as it is."""
        tolerance = tolerances[self.owners]
        chosen = np.flatnonzero((tolerance > 0) & (self.kinds != POINT_PATH))
        lines = self.lines.copy()
        lines[chosen] = shapely.simplify(lines[chosen], tolerance[chosen], preserve_topology=False)
        return DrawnPaths(lines, self.kinds, self.owners, self.shape_count)


def trace_outlines(paths: DrawnPaths, frame: Frame) -> Outlines:
    """Round paths to the grid of `frame`."""
    places, path_of = shapely.get_coordinates(paths.lines, return_index=True)
    corner = np.array([frame.west, frame.south])
    coordinates = np.rint((places - corner) / frame.unit).astype(np.int64)
    needed = _is_needed(coordinates, path_of, paths.kinds)
    return Outlines(
        coordinates=coordinates[needed],
        path_lengths=np.bincount(path_of[needed], minlength=len(paths.lines)),
        path_kinds=paths.kinds,
        shape_lengths=np.bincount(paths.owners, minlength=paths.shape_count),
    )


def paths_of(geometries: NDArray[np.object_]) -> DrawnPaths:
    """Split drawable geometries into points, lines and rings."""
    parts, owners = single_parts(geometries)
    types = shapely.get_type_id(parts)
    is_area = types == _POLYGON_TYPE
    areas = shapely.orient_polygons(parts[is_area])
    rings, area_of = shapely.get_rings(areas, return_index=True)
    kinds = np.concatenate([_KIND_OF_TYPE[types[~is_area]], np.full(len(rings), AREA_PATH)])
    paths = np.concatenate([parts[~is_area], rings])
    path_owners = np.concatenate([owners[~is_area], owners[is_area][area_of]])
    order = np.argsort(path_owners, kind="stable")
    return DrawnPaths(paths[order], kinds[order], path_owners[order], len(geometries))


def single_parts(
    geometries: NDArray[np.object_],
) -> tuple[NDArray[np.object_], NDArray[np.intp]]:
    """Take collections apart, nested ones too, and drop their empty members."""
    parts, owners = geometries, np.arange(len(geometries))
    while np.any(shapely.get_type_id(parts) > _POLYGON_TYPE):
        parts, part_of = shapely.get_parts(parts, return_index=True)
        owners = owners[part_of]
    is_full = ~shapely.is_empty(parts)
    return parts[is_full], owners[is_full]


def _is_needed(
    coordinates: NDArray[np.int64], path_of: NDArray[np.intp], kinds: NDArray[np.str_]
) -> NDArray[np.bool_]:
    """Mark the points to keep: not those that repeat the one before, nor a ring's closing one."""
    count = len(coordinates)
    if not count:
        return np.zeros(0, dtype=np.bool_)
    starts = np.ones(count, dtype=np.bool_)
    starts[1:] = path_of[1:] != path_of[:-1]
    repeats = np.zeros(count, dtype=np.bool_)
    repeats[1:] = np.all(coordinates[1:] == coordinates[:-1], axis=1)
    closes = np.roll(starts, -1) & (kinds[path_of] == AREA_PATH)
    needed: NDArray[np.bool_] = starts | ~(repeats | closes)
    return needed
