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

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

# The longer side of a map, in grid units.
GRID_UNITS = 50_000

# One letter per path: a point, a line, the ring of an area.
POINT, LINE, AREA = "p", "l", "a"
_KIND_OF_TYPE = np.array([POINT, LINE, LINE, AREA])
_POLYGON_TYPE = 3

# Near the poles one degree of longitude is next to nothing; a map stretched further is a stripe.
_STRETCH_MAX = 6.0


@dataclass(frozen=True, slots=True)
class Frame:
    """The part of the plane that a map shows, and its integer grid.

    A point lies at (x - west) / unit, (y - south) / unit; `width` and `height` are in units.
    Where the extent could be longitude and latitude it is read so (`is_lonlat`): labels get a
    degree sign, and a unit of y is drawn `stretch` times as long as one of x.
    """

    west: float
    south: float
    unit: float
    width: float
    height: float
    stretch: float
    is_lonlat: bool


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
        """Give each shape's west, south, east and north, in units of x."""
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
        """Give the median of the longer sides of the shapes' boxes; zero if there are none."""
        boxes = self.boxes(stretch)
        return float(np.median((boxes[:, 2:] - boxes[:, :2]).max(axis=1))) if len(boxes) else 0.0

    def chief_kind(self) -> str:
        """Give the kind of most paths; what has none counts as areas."""
        counts = {kind: int((self.path_kinds == kind).sum()) for kind in (AREA, LINE, POINT)}
        return max(counts, key=lambda kind: counts[kind])


def starts_of(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Give where each of consecutive runs begins."""
    return np.cumsum(lengths) - lengths


def frame_around(columns: Sequence[NDArray[np.object_]]) -> Frame:
    """Give the frame of all drawn geometries; where they have no extent, one of size one."""
    boxes = np.concatenate([np.empty((0, 4)), *(shapely.bounds(column) for column in columns)])
    if not len(boxes):
        boxes = np.zeros((1, 4))
    west, south = (float(low) for low in boxes[:, :2].min(axis=0))
    east, north = (float(high) for high in boxes[:, 2:].max(axis=0))
    side = max(east - west, north - south)
    # A side that vanishes beside the coordinates themselves could not be divided into units.
    if side <= 1e-9 * max(abs(west), abs(south), abs(east), abs(north)) or side < 1e-100:
        side = max(1.0, 1e-6 * max(abs(west), abs(south)))
        west, east = west - side / 2, west + side / 2
        south, north = south - side / 2, south + side / 2
    unit = side / GRID_UNITS
    is_lonlat = west >= -180.5 and east <= 360.5 and south >= -90.5 and north <= 90.5
    shrink = math.cos(math.radians((south + north) / 2)) if is_lonlat else 1.0
    return Frame(
        west=west,
        south=south,
        unit=unit,
        width=(east - west) / unit,
        height=(north - south) / unit,
        stretch=1 / max(shrink, 1 / _STRETCH_MAX),
        is_lonlat=is_lonlat,
    )


def trace_outlines(
    geometries: NDArray[np.object_], frame: Frame, tolerance_units: float
) -> Outlines:
    """Simplify drawable geometries to `tolerance_units` and round them to the grid of `frame`."""
    paths, kinds, owners = _paths_of(geometries)
    simple = shapely.simplify(paths, tolerance_units * frame.unit, preserve_topology=False)
    places, path_of = shapely.get_coordinates(simple, return_index=True)
    corner = np.array([frame.west, frame.south])
    coordinates = np.rint((places - corner) / frame.unit).astype(np.int64)
    needed = _is_needed(coordinates, path_of, kinds)
    return Outlines(
        coordinates=coordinates[needed],
        path_lengths=np.bincount(path_of[needed], minlength=len(paths)),
        path_kinds=kinds,
        shape_lengths=np.bincount(owners, minlength=len(geometries)),
    )


def _paths_of(
    geometries: NDArray[np.object_],
) -> tuple[NDArray[np.object_], NDArray[np.str_], NDArray[np.intp]]:
    """Split geometries into points, lines and rings: each with its kind and its owner's row."""
    parts, owners = _single_parts(geometries)
    types = shapely.get_type_id(parts)
    is_area = types == _POLYGON_TYPE
    areas = shapely.orient_polygons(parts[is_area])
    rings, area_of = shapely.get_rings(areas, return_index=True)
    kinds = np.concatenate([_KIND_OF_TYPE[types[~is_area]], np.full(len(rings), AREA)])
    paths = np.concatenate([parts[~is_area], rings])
    path_owners = np.concatenate([owners[~is_area], owners[is_area][area_of]])
    order = np.argsort(path_owners, kind="stable")
    return paths[order], kinds[order], path_owners[order]


def _single_parts(
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
    closes = np.roll(starts, -1) & (kinds[path_of] == AREA)
    needed: NDArray[np.bool_] = starts | ~(repeats | closes)
    return needed
