"""Geometries as paths: arrays of vertices, in pieces of one dimension, as kernels take them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray
from shapely.geometry.base import BaseGeometry

from contrada.arrays import Geometries, Integers, Positions
from contrada.collecting import untrack
from contrada.model.geometry import as_array

_COLLECTION = 7
_NO_ENDS = np.zeros((0, 2))
_AT_ONCE = 5_000  # geometries that are opened while nobody else can run


@dataclass(frozen=True, slots=True)
class Paths:
    """The rings of areas, parts of lines, and points of `count` geometries.

    Path p has the vertices from `path_starts[p]` on. Piece i has the paths from `piece_starts[i]`
    on, a dimension and an owner; the pieces of an owner come by falling dimension. A piece of
    lines has the end points `ends[end_starts[i] : end_starts[i + 1]]`.
    """

    count: int
    xy: NDArray[np.float64]
    path_starts: Positions
    piece_starts: Positions
    dimensions: Integers
    owners: Positions
    ends: NDArray[np.float64]
    end_starts: Positions


def lay_out(geometries: Geometries) -> Paths:
    """Lay out the paths of geometries; a collection is taken as the union of its members."""
    parts, owners, dimensions = _take_apart(geometries)
    is_polygon = dimensions == 2
    counts = np.where(is_polygon, 1 + shapely.get_num_interior_rings(parts), 1)
    part_of = np.repeat(np.arange(len(parts)), counts)
    paths = parts[part_of]
    if is_polygon.any():
        paths[is_polygon[part_of]] = _open(parts[is_polygon], shapely.get_rings)
    xy, path_of = shapely.get_coordinates(paths, return_index=True)
    is_first = np.ones(len(parts), bool)
    is_first[1:] = (np.diff(owners) != 0) | (np.diff(dimensions) != 0)
    firsts = np.flatnonzero(is_first)
    piece_of = np.cumsum(is_first) - 1
    ends, end_starts = _ends(parts, dimensions, piece_of, len(firsts))
    return Paths(
        len(geometries),
        xy,
        _starts(path_of, len(paths)),
        _starts(piece_of[part_of], len(firsts)),
        dimensions[firsts].astype(np.int64),
        owners[firsts].astype(np.int64),
        ends,
        end_starts,
    )


def lay_out_one(geometry: BaseGeometry) -> Paths:
    """Lay out one geometry, as for many, but faster where it has one dimension."""
    kind = shapely.get_type_id(geometry)
    if kind == _COLLECTION:
        return lay_out(as_array([geometry]))
    dimension = shapely.get_dimensions(geometry)
    ends = _NO_ENDS
    if dimension == 2:
        paths = shapely.get_rings(shapely.get_parts(geometry))
    elif dimension == 1:
        paths = shapely.get_parts(geometry)
        ends = shapely.get_coordinates(shapely.boundary(geometry))
    else:
        paths = as_array([geometry])
    xy, path_of = shapely.get_coordinates(paths, return_index=True)
    return Paths(
        1,
        xy,
        _starts(path_of, len(paths)),
        np.array([0, len(paths)]),
        np.array([dimension], np.int64),
        np.zeros(1, np.int64),
        ends,
        np.array([0, len(ends)]),
    )


def _starts(keys: NDArray[np.int64], count: int) -> Positions:
    """Return where each of `count` keys starts in a sorted list of keys."""
    return np.searchsorted(keys, np.arange(count + 1)).astype(np.int64)


def _take_apart(geometries: Geometries) -> tuple[Geometries, NDArray[np.int64], Positions]:
    """Return the single parts of geometries, the geometry of each, and its dimension.

    Parts come by geometry, and those of a collection by falling dimension.
    """
    is_collection = shapely.get_type_id(geometries) == _COLLECTION
    if not is_collection.any():
        parts = _open(geometries, shapely.get_parts)
        owners = np.repeat(np.arange(len(geometries)), shapely.get_num_geometries(geometries))
        return parts, owners, shapely.get_dimensions(parts).astype(np.int64)
    united = geometries.copy()
    united[is_collection] = [shapely.union_all([g]) for g in geometries[is_collection]]
    parts, owners = shapely.get_parts(united, return_index=True)
    dimensions = shapely.get_dimensions(parts).astype(np.int64)
    order = np.lexsort((-dimensions, owners))
    return parts[order], owners[order], dimensions[order]


def _open(geometries: Geometries, members_of: Callable[..., Any]) -> Geometries:
    """List the members of all geometries, some at a time."""
    pieces = [geometries[:0]]
    for first in range(0, len(geometries), _AT_ONCE):
        pieces.append(members_of(geometries[first : first + _AT_ONCE]))
        untrack(pieces[-1])
    return np.concatenate(pieces)


def _ends(
    parts: Geometries, dimensions: Integers, piece_of: NDArray[np.int64], count: int
) -> tuple[NDArray[np.float64], Positions]:
    """Return the boundary points of the pieces that are lines, by the mod-2 rule over all parts."""
    is_line = dimensions == 1
    if not is_line.any():
        return _NO_ENDS, np.zeros(count + 1, np.int64)
    lines = np.full(count, None, object)
    shapely.multilinestrings(parts[is_line], indices=piece_of[is_line], out=lines)
    ends, owners = shapely.get_coordinates(shapely.boundary(lines), return_index=True)
    return ends, _starts(owners, count)
