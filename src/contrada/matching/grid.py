"""The quadtree over a universe, and geometries as lists of its cells (AHS paper, section 3.1).

The cells of an area are interior, as large as they can be, or boundary, of the finest level; those
along a line are interior, except where it ends; a point has one interior cell. A collection is the
union of its members, and what lower members share with higher ones is the higher ones': a line
within an area does not count. What lies outside the universe is drawn to its rim.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray
from shapely import Point
from shapely.geometry.base import BaseGeometry

from contrada.arrays import Box, CellKeys, Geometries, Integers, Positions
from contrada.errors import InvalidInput
from contrada.kernels.cell_lists import code_points, list_points, make_lists, measure
from contrada.kernels.quadtree import LEVEL_MAX
from contrada.limits import OUTLINE_CELLS_MAX
from contrada.matching.paths import Paths, lay_out, lay_out_one
from contrada.matching.universe import read_universe
from contrada.model.geometry import Fault, as_array
from contrada.showing import brief, brief_text

LEVEL = 14
LONGITUDE_LATITUDE = (-180.0, -90.0, 180.0, 90.0)

Prefix = tuple[int, int]  # where a cell starts on the curve, and its level

WHOLE: Prefix = (0, 0)


@dataclass(frozen=True, slots=True)
class CellLists:
    """The cells of some geometries, those of geometry i from `list_starts[i]` on.

    `keys` hold start, level and kind of each cell (see the kernels). A list is sorted, and none
    of its cells lies in another one.
    """

    level: int
    keys: CellKeys
    list_starts: Positions

    def __len__(self) -> int:
        return len(self.list_starts) - 1

    def of(self, number: int) -> CellKeys:
        """Return the keys of one geometry."""
        return self.keys[self.list_starts[number] : self.list_starts[number + 1]]

    def owners(self) -> Positions:
        """Return the number of the geometry that each cell belongs to."""
        return np.repeat(np.arange(len(self)), np.diff(self.list_starts))

    def keep(self, is_kept: NDArray[np.bool_]) -> "CellLists":
        """Return the lists with some of their cells only."""
        counts = np.concatenate([[0], np.cumsum(is_kept)])
        return CellLists(self.level, self.keys[is_kept], counts[self.list_starts])

    @property
    def starts(self) -> Positions:
        """Where each cell starts on the Morton curve of the finest level."""
        return self.keys >> 6

    @property
    def levels(self) -> Integers:
        """The level of each cell."""
        return (self.keys >> 1) & 31

    @property
    def sizes(self) -> Integers:
        """The area of each cell, in cells of the finest level."""
        return np.left_shift(1, 2 * (self.level - self.levels))

    @property
    def kinds(self) -> Integers:
        """Whether each cell is INTERIOR or BOUNDARY."""
        return self.keys & 1

    def areas(self) -> Integers:
        """Return the areas of interior and boundary of each geometry."""
        return measure(self.keys, self.list_starts, self.level)


@dataclass(frozen=True, slots=True)
class Grid:
    """A quadtree of `level` levels over a universe: west, south, east, north."""

    level: int = LEVEL
    universe: Box = LONGITUDE_LATITUDE
    _scale: NDArray[np.float64] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Refuse a level or a universe that cannot be."""
        level: Any = self.level
        if isinstance(level, bool) or not isinstance(level, int) or not 1 <= level <= LEVEL_MAX:
            raise InvalidInput(
                f"the level must be a number from 1 to {LEVEL_MAX}, not {brief(level)}"
            )
        west, south, east, north = read_universe(self.universe)
        object.__setattr__(self, "universe", (west, south, east, north))
        per_x, per_y = 2.0**level / (east - west), 2.0**level / (north - south)
        object.__setattr__(self, "_scale", np.array([west, south, per_x, per_y]))

    @property
    def middle(self) -> tuple[float, float]:
        """The middle of the universe."""
        west, south, east, north = self.universe
        return west + (east - west) / 2, south + (north - south) / 2

    @property
    def sides(self) -> tuple[float, float]:
        """The width and height of the universe."""
        west, south, east, north = self.universe
        return east - west, north - south

    def check(self, geometry: BaseGeometry) -> None:
        """Refuse a geometry whose outline runs through too many cells."""
        self._check(as_array([geometry]))

    def _check(self, geometries: Geometries) -> None:
        for i, fault in self.find_faults(geometries).items():
            raise InvalidInput(f"{fault.message} (value {brief_text(geometries[i], 60)})")

    def find_faults(self, geometries: Geometries) -> dict[int, Fault]:
        """Find the geometries whose outline runs through too many cells, by position."""
        with np.errstate(over="ignore"):  # an infinite length is too long, too
            lengths = shapely.length(geometries) * self._scale[2:].max()
        at = np.flatnonzero(lengths > OUTLINE_CELLS_MAX / 2).tolist()  # as the crow flies
        runs = {i: self._run(geometries[i]) for i in at}
        return {
            i: Fault(
                "too_fine",
                f"the outline runs through about {run:,.0f} cells of level {self.level}, "
                f"more than {OUTLINE_CELLS_MAX:,} (OUTLINE_CELLS_MAX); choose a lower level",
            )
            for i, run in runs.items()
            if run > OUTLINE_CELLS_MAX
        }

    def _run(self, geometry: BaseGeometry) -> float:
        """Return how far an outline runs within the universe, in cells along x and y."""
        paths = lay_out_one(geometry)
        west, south, east, north = self.universe
        within = np.clip(paths.xy, [west, south], [east, north])
        steps = np.abs(np.diff(within, axis=0)) @ self._scale[2:]
        steps[paths.path_starts[1:-1] - 1] = 0  # from path to path
        return float(steps.sum())

    def list_cells(self, geometry: BaseGeometry, prefix: Prefix = WHOLE) -> CellKeys:
        """Return the keys of the cells of one geometry that lie below a prefix."""
        if isinstance(geometry, Point):
            xy = np.array([[shapely.get_x(geometry), shapely.get_y(geometry)]])
            return list_points(xy, self._scale, self.level, *prefix)
        self.check(geometry)
        return self._list(lay_out_one(geometry), prefix).keys

    def locate(self, x: NDArray[np.float64], y: NDArray[np.float64]) -> CellKeys:
        """Return for each point where its cell starts on the curve."""
        return code_points(x, y, self._scale, self.level)

    def decompose(self, geometries: Geometries, prefix: Prefix = WHOLE) -> CellLists:
        """List the cells below a prefix of each geometry; cells larger than it are cut to it.

        Over the prefixes of any complete split the lists have together the cells of the whole.
        """
        self._check(geometries)
        return self._list(lay_out(geometries), prefix)

    def _list(self, paths: Paths, prefix: Prefix) -> CellLists:
        keys, list_starts = make_lists(
            paths.xy,
            paths.path_starts,
            paths.piece_starts,
            paths.dimensions,
            paths.owners,
            paths.ends,
            paths.end_starts,
            paths.count,
            self._scale,
            self.level,
            *prefix,
        )
        return CellLists(self.level, keys, list_starts)
