"""Polygons whose rings come so close to each other that GEOS could not judge them in time.

GEOS compares the rings of a polygon pair by pair where their boxes meet, and so it does with the
runs of a boundary, which are its edges as long as they go in one direction. Each is a matter of
nanoseconds, but a few hundred kilobytes may hold a billion of them. Ordinary polygons have few
rings or few neighbours to each, as a handful of samples shows; only the others are counted.
"""

import math
from hashlib import shake_128
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray
from shapely.geometry.base import BaseGeometry

from contrada.limits import RING_PAIRS_MAX, RUN_PAIRS_MAX, VERTEX_PAIRS_MAX
from contrada.model.crossings import Edges, edges_of, near_pairs, rings_of

_COLLECTION = 7
_AREAS = (3, 6)
_SAMPLES, _OTHERS = 64, 2_048
_PAIRS_EACH = 100  # for each ring or run: a large polygon may have so many, and more than a limit
_FEW_TOGETHER = 8  # rings at one point, as on a map
_RINGS_MIN = math.isqrt(2 * VERTEX_PAIRS_MAX)  # fewer rings or runs cannot be too many pairs
_RUNS_MIN = math.isqrt(2 * RUN_PAIRS_MAX)
_COORDINATES_MIN = min(4 * _RINGS_MIN, _RUNS_MIN)
_MULTIPLIERS = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F], np.uint64)


def find_crowds(geometries: NDArray[np.object_]) -> dict[int, str]:
    """Find the geometries that are too crowded, by position, and what each has too much of.

    Coordinates are finite.
    """
    is_large = shapely.get_num_coordinates(geometries) > _COORDINATES_MIN
    if not is_large.any():
        return {}
    is_area = np.isin(shapely.get_type_id(geometries), (*_AREAS, _COLLECTION))
    found = {int(i): _find_crowd(geometries[i]) for i in np.flatnonzero(is_large & is_area)}
    return {i: what for i, what in found.items() if what is not None}


def _find_crowd(geometry: BaseGeometry) -> str | None:
    is_collection = shapely.get_type_id(geometry) == _COLLECTION
    members = shapely.get_parts(geometry) if is_collection else [geometry]
    for member in members:
        if shapely.get_type_id(member) in _AREAS:
            what = _find_crowd_of_rings(rings_of(member))
            if what is not None:
                return what
    return None


def _find_crowd_of_rings(rings: NDArray[np.object_]) -> str | None:
    xy, owners = shapely.get_coordinates(rings, return_index=True)
    if len(rings) > _RINGS_MIN and _count_vertex_pairs(xy, owners) > VERTEX_PAIRS_MAX:
        return (
            f"more than {VERTEX_PAIRS_MAX:,} pairs of its rings share a vertex (VERTEX_PAIRS_MAX)"
        )
    if _are_too_many(_diagonals(rings), RING_PAIRS_MAX):
        what = f"{RING_PAIRS_MAX:,} pairs of its rings have boxes that meet"
        return f"more than {what} (RING_PAIRS_MAX)"
    if len(xy) > _RUNS_MIN and _are_too_many(runs_of(xy, owners), RUN_PAIRS_MAX):
        what = f"{RUN_PAIRS_MAX:,} pairs of runs of its rings have boxes that meet"
        return f"more than {what} (RUN_PAIRS_MAX)"
    return None


def _diagonals(rings: NDArray[np.object_]) -> Edges:
    return np.asarray(shapely.bounds(rings), float)


def runs_of(xy: NDArray[np.float64], owners: NDArray[np.int64]) -> Edges:
    """Return the first and last point of each run: a run lies in the box of both."""
    is_edge = owners[1:] == owners[:-1]
    east, north = xy[1:, 0] >= xy[:-1, 0], xy[1:, 1] >= xy[:-1, 1]
    is_start = is_edge.copy()
    is_start[1:] &= (east[1:] != east[:-1]) | (north[1:] != north[:-1]) | ~is_edge[:-1]
    is_end = is_edge.copy()
    is_end[:-1] &= is_start[1:] | ~is_edge[1:]
    return np.hstack([xy[:-1][is_start], xy[1:][is_end]])


def _are_too_many(edges: Edges, most: int) -> bool:
    """Whether too many pairs have boxes that meet, also for the number of edges."""
    count = len(edges)
    if count * (count - 1) // 2 <= most:
        return False
    most = max(most, _PAIRS_EACH * count)
    if _estimate_pairs(edges) < most / 2:
        return False
    found = 0
    for first, _ in near_pairs(edges):
        found += len(first)
        if found > most:
            return True
    return False


def _estimate_pairs(edges: Edges) -> float:
    """Estimate how many pairs have boxes that meet from samples that nobody can foresee."""
    count = len(edges)
    content = np.ascontiguousarray(edges).view(np.uint64).sum(axis=0, dtype=np.uint64)
    numbers = shake_128(content.tobytes()).digest(8 * (_SAMPLES + _OTHERS))
    chosen = edges[np.frombuffer(numbers, np.uint64) % np.uint64(count)]
    meets = np.ones((_SAMPLES, _OTHERS), bool)
    for axis in (chosen[:, ::2], chosen[:, 1::2]):
        low, high = axis.min(axis=1), axis.max(axis=1)
        meets &= low[:_SAMPLES, None] <= high[_SAMPLES:]
        meets &= high[:_SAMPLES, None] >= low[_SAMPLES:]
    return float(meets.mean()) * count * (count - 1) / 2


def have_crowded_ends(lines: NDArray[np.object_]) -> bool:
    """Whether too many edges of lines meet in one point; equal ones count once."""
    if shapely.get_num_coordinates(lines).sum() <= _RINGS_MIN:
        return False
    edges, _ = edges_of(lines)
    if not len(edges):
        return False
    ends = np.vstack([edges[:, :2], edges[:, 2:]])
    others = np.vstack([edges[:, 2:], edges[:, :2]])
    return _count_vertex_pairs(ends, _keys(others)) > VERTEX_PAIRS_MAX


def _count_vertex_pairs(xy: NDArray[np.float64], owners: NDArray[Any]) -> int:
    """Count the pairs of owners that share a vertex, where more than a few others do."""
    keys = _keys(xy)
    values, times = _tally(np.sort(keys))
    crowded = values[times > _FEW_TOGETHER]
    if not crowded.size:
        return 0
    is_there = np.isin(keys, crowded)
    pairs = np.column_stack([keys[is_there], owners[is_there].astype(np.uint64)])
    together = _tally(np.unique(pairs, axis=0)[:, 0])[1]
    together = together[together > _FEW_TOGETHER]
    return int((together * (together - 1) // 2).sum())


def _keys(xy: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Number the points; two different ones hardly ever get the same number."""
    plain = np.ascontiguousarray(xy + 0.0)  # -0 is 0
    mixed = plain.view(np.uint64) * _MULTIPLIERS
    mixed ^= mixed >> np.uint64(29)
    return np.asarray(mixed[:, 0] * _MULTIPLIERS[1] + mixed[:, 1], np.uint64)


def _tally(ordered: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    return ordered[starts], np.diff(starts, append=len(ordered))
