"""Geometries as cell lists: points, lines and areas, and what is made of several of these.

A geometry comes as pieces of one dimension each, the highest first; a piece has paths: the rings of
an area, the parts of a line, or runs of points. A cell list is disjoint and sorted.
"""

import numpy as np

from contrada.arrays import Floats
from contrada.kernels.boxtree import BoxRow, Ints
from contrada.kernels.compiling import kernel
from contrada.kernels.covering import cover
from contrada.kernels.quadtree import (
    BOUNDARY,
    INTERIOR,
    code_of,
    grown,
    make_edges,
    make_key,
    scale,
    size_of,
    start_of,
)

_POINT, _AREA = 0, 2


@kernel
def make_lists(
    xy: Floats,
    path_starts: Ints,
    piece_starts: Ints,
    dimensions: Ints,
    owners: Ints,
    ends: Floats,
    end_starts: Ints,
    count: int,
    grid: BoxRow,
    level: int,
    prefix_start: int,
    prefix_level: int,
) -> tuple[Ints, Ints]:
    """Make the cell lists of `count` geometries: keys in a row, and where each list starts.

    Piece i has the paths from `piece_starts[i]` on, belongs to geometry `owners[i]`, and ends in
    the points `ends[end_starts[i] : end_starts[i + 1]]` if it is a line. Only cells below the
    prefix are listed, larger ones cut to it.
    """
    keys = np.empty(256, np.int64)
    list_starts = np.zeros(count + 1, np.int64)
    filled = 0
    piece = 0
    for geometry in range(count):
        while piece < len(owners) and owners[piece] == geometry:
            paths = path_starts[piece_starts[piece] : piece_starts[piece + 1] + 1]
            rim = ends[end_starts[piece] : end_starts[piece + 1]]
            found = _make_list(
                xy, paths, dimensions[piece], rim, grid, level, prefix_start, prefix_level
            )
            if filled > list_starts[geometry]:
                found = _join(keys[list_starts[geometry] : filled], found, level)
                filled = list_starts[geometry]
            while filled + len(found) > len(keys):
                keys = grown(keys)
            keys[filled : filled + len(found)] = found
            filled += len(found)
            piece += 1
        list_starts[geometry + 1] = filled
    return keys[:filled], list_starts


@kernel
def _make_list(
    xy: Floats,
    path_starts: Ints,
    dimension: int,
    ends: Floats,
    grid: BoxRow,
    level: int,
    prefix_start: int,
    prefix_level: int,
) -> Ints:
    """Make the cell list of one piece."""
    if dimension == _POINT:
        points = xy[path_starts[0] : path_starts[-1]]
        return list_points(points, grid, level, prefix_start, prefix_level)
    edges, slack = make_edges(xy, path_starts, grid, level)
    keys = cover(edges, slack, level, dimension == _AREA, prefix_start, prefix_level)
    for i in range(len(ends)):
        u = scale(ends[i, 0], grid[0], grid[2], level)
        v = scale(ends[i, 1], grid[1], grid[3], level)
        _mark(keys, make_key(code_of(u, v, level), level, INTERIOR))
    return keys


@kernel
def _mark(keys: Ints, key: int) -> None:
    """Turn a cell of the list into a boundary cell; one that the prefix leaves out is not there."""
    at = np.searchsorted(keys, key)
    if at < len(keys) and keys[at] == key:
        keys[at] |= BOUNDARY


@kernel
def code_points(x: Floats, y: Floats, grid: BoxRow, level: int) -> Ints:
    """Return for each point the cell of the finest level in which it lies."""
    codes = np.empty(len(x), np.int64)
    for i in range(len(x)):
        u = scale(x[i], grid[0], grid[2], level)
        v = scale(y[i], grid[1], grid[3], level)
        codes[i] = code_of(u, v, level)
    return codes


@kernel
def list_points(
    points: Floats, grid: BoxRow, level: int, prefix_start: int, prefix_level: int
) -> Ints:
    """Make the cell list of points: the cells in which they lie, each once."""
    prefix_end = prefix_start + (1 << (2 * (level - prefix_level)))
    keys = np.empty(len(points), np.int64)
    count = 0
    for i in range(len(points)):
        u = scale(points[i, 0], grid[0], grid[2], level)
        v = scale(points[i, 1], grid[1], grid[3], level)
        code = code_of(u, v, level)
        if prefix_start <= code < prefix_end:
            keys[count] = make_key(code, level, INTERIOR)
            count += 1
    if count < 2:
        return keys[:count]
    keys = np.sort(keys[:count])
    distinct = 1
    for i in range(1, count):
        if keys[i] != keys[distinct - 1]:
            keys[distinct] = keys[i]
            distinct += 1
    return keys[:distinct]


@kernel
def _join(upper: Ints, lower: Ints, level: int) -> Ints:
    """Join the list of a piece of lower dimension: what the higher one covers already stays so."""
    joined = np.empty(len(upper) + len(lower), np.int64)
    count = i = 0
    covered_end = -1
    for key in lower:
        while i < len(upper) and start_of(upper[i]) <= start_of(key):
            joined[count] = upper[i]
            covered_end = start_of(upper[i]) + size_of(upper[i], level)
            count, i = count + 1, i + 1
        if start_of(key) >= covered_end:
            joined[count] = key
            count += 1
    joined[count : count + len(upper) - i] = upper[i:]
    return joined[: count + len(upper) - i]


@kernel
def measure(keys: Ints, list_starts: Ints, level: int) -> Ints:
    """Return the areas of interior and boundary of each list, in cells of the finest level."""
    areas = np.zeros((len(list_starts) - 1, 2), np.int64)
    for geometry in range(len(areas)):
        for i in range(list_starts[geometry], list_starts[geometry + 1]):
            areas[geometry, keys[i] & 1] += size_of(keys[i], level)
    return areas
