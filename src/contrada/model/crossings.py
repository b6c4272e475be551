"""How often edges meet, those of one geometry or of two, counted up to a limit.

What GEOS does with a geometry takes the square of such meetings, or more: lines that cross each
other a few hundred times each keep it busy for minutes, though they are a few kilobytes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import shapely
from numpy.typing import NDArray
from shapely.geometry.base import BaseGeometry

from contrada.arrays import Geometries
from contrada.limits import (
    PAIR_BOXES_MAX,
    PAIR_CONTACTS_MAX,
    PAIR_MEMBERS_MAX,
    PAIR_PARTS_MAX,
)

_CONTACTS_PER_VERTEX, _BOXES_PER_VERTEX = (
    10,
    100,
)  # are no trouble: the cost is in proportion to the size
_COLLECTION = 7
_QUERIES_AT_ONCE = 4_096
_PAIRS_AT_ONCE = 2**18

Edges = NDArray[np.float64]  # n × 4: x and y of both ends
Pairs = tuple[NDArray[np.int64], NDArray[np.int64]]


def rings_of(geometry: BaseGeometry) -> NDArray[np.object_]:
    """List the rings and lines of a geometry, which has been tidied and so is nested once."""
    parts = shapely.get_parts(shapely.get_parts(geometry))
    is_polygon = shapely.get_type_id(parts) == 3
    return np.concatenate([shapely.get_rings(parts[is_polygon]), parts[~is_polygon]])


@dataclass(frozen=True, slots=True)
class Meetings:
    """Pairs of edges: those that cross, those that have any contact, those whose boxes meet."""

    crossings: int = 0
    contacts: int = 0
    pairs: int = 0

    def exceed(self, most: "Meetings") -> bool:
        """Whether any of the counts exceeds its limit."""
        return (
            self.crossings > most.crossings
            or self.contacts > most.contacts
            or self.pairs > most.pairs
        )


def count_meetings(rings: NDArray[np.object_], most: Meetings) -> Meetings:
    """Count the pairs of edges that meet, until there are too many.

    An edge crosses another in the inside of both. Neighbours in a ring have no contact where they
    join, unless one goes back on the other.
    """
    edges, owners = edges_of(rings)
    columns = np.ascontiguousarray(edges.T)
    found = Meetings()
    for first, second in near_pairs(edges):
        sides = _compare([c[first] for c in columns], [c[second] for c in columns])
        met = np.flatnonzero(sides <= 0)
        goes_on = _are_neighbours(edges, owners, first[met], second[met])
        found = Meetings(
            found.crossings + int((sides < 0).sum()),
            found.contacts + len(met) - int(goes_on.sum()),
            found.pairs + len(first),
        )
        if found.exceed(most):
            break
    return found


def are_entangled(a: Geometries, b: Geometries) -> NDArray[np.bool_]:
    """Which pairs meet at so many places, or in so many parts, that GEOS would take minutes.

    Two outlines of one coast meet at each of their vertices, and may.
    """
    vertices = [shapely.get_num_coordinates(side).astype(np.int64) for side in (a, b)]
    found = np.zeros(len(a), bool)
    for i in np.flatnonzero(vertices[0] * vertices[1] > PAIR_CONTACTS_MAX).tolist():
        size = int(vertices[0][i] + vertices[1][i])
        contacts_max = max(PAIR_CONTACTS_MAX, _CONTACTS_PER_VERTEX * size)
        boxes_max = max(PAIR_BOXES_MAX, _BOXES_PER_VERTEX * size)
        most = Meetings(0, contacts_max, boxes_max)
        found[i] = _have_too_many_parts(a[i], b[i]) or _meet_too_often(a[i], b[i], most)
    return found


def _have_too_many_parts(a: BaseGeometry, b: BaseGeometry) -> bool:
    """Whether GEOS would compare too many parts of one geometry with parts of the other."""
    is_loose = _COLLECTION in (shapely.get_type_id(a), shapely.get_type_id(b))
    return _count_parts(a, b) * _count_parts(b, a) > (
        PAIR_MEMBERS_MAX if is_loose else PAIR_PARTS_MAX
    )


def _count_parts(geometry: BaseGeometry, other: BaseGeometry) -> int:
    """Count the rings and lines of a geometry whose boxes meet the box of another."""
    west, south, east, north = shapely.bounds(other)
    boxes = shapely.bounds(rings_of(geometry))
    meet = (boxes[:, :2] <= [east, north]) & (boxes[:, 2:] >= [west, south])
    return int(meet.all(axis=1).sum())


def _meet_too_often(a: BaseGeometry, b: BaseGeometry, most: Meetings) -> bool:
    """Count the pairs of an edge of each, those that may have a contact and those with near boxes.

    Whether edges cross or touch is all one here.
    """
    ours, theirs = _edges_in(a, b), _edges_in(b, a)
    if len(ours) * len(theirs) <= most.contacts:
        return False
    lines = [np.asarray(shapely.linestrings(e.reshape(-1, 2, 2)), object) for e in (ours, theirs)]
    tree = shapely.STRtree(lines[1])
    found = Meetings()
    for first, second in query_in_steps(tree, lines[0], len(theirs)):
        touches = _compare([*ours[first].T], [*theirs[second].T]) <= 0
        contacts = found.contacts + int(touches.sum())
        found = Meetings(0, contacts, found.pairs + len(first))
        if found.exceed(most):
            return True
    return False


def _edges_in(geometry: BaseGeometry, other: BaseGeometry) -> Edges:
    """Return the edges of a geometry whose boxes meet the box of another."""
    edges, _ = edges_of(rings_of(geometry))
    west, south, east, north = shapely.bounds(other)
    low, high = np.minimum(edges[:, :2], edges[:, 2:]), np.maximum(edges[:, :2], edges[:, 2:])
    return edges[((low <= [east, north]) & (high >= [west, south])).all(axis=1)]


def edges_of(rings: NDArray[np.object_]) -> tuple[Edges, NDArray[np.int64]]:
    """Return the edges of all rings, and the ring of each; edges without length are left out."""
    xy, owners = shapely.get_coordinates(rings, return_index=True)
    edges = np.hstack([xy[:-1], xy[1:]])
    is_edge = (owners[:-1] == owners[1:]) & (xy[:-1] != xy[1:]).any(axis=1)
    return edges[is_edge], owners[:-1][is_edge]


def near_pairs(edges: Edges) -> Iterator[Pairs]:
    """Yield the pairs of edges whose boxes meet, each once, as many at a time as fit."""
    if not len(edges):
        return
    lines = np.asarray(shapely.linestrings(edges.reshape(-1, 2, 2)), object)
    for first, second in query_in_steps(shapely.STRtree(lines), lines, len(lines)):
        each_once = first < second
        yield first[each_once], second[each_once]


def query_in_steps(tree: shapely.STRtree, lines: NDArray[np.object_], size: int) -> Iterator[Pairs]:
    """Yield the pairs of lines and members of a tree whose boxes meet, not too many at a time."""
    start, step = 0, min(_QUERIES_AT_ONCE, max(1, _PAIRS_AT_ONCE // size))
    while start < len(lines):
        first, second = tree.query(lines[start : start + step])
        yield first + start, second
        start += step
        few = len(first) < _PAIRS_AT_ONCE // 4
        step = min(_QUERIES_AT_ONCE, 4 * step) if few else max(1, step // 4)


def _are_neighbours(
    edges: Edges, owners: NDArray[np.int64], first: NDArray[np.int64], second: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Which pairs follow each other in one ring and go on, not back, from where they join."""
    a, b = edges[first], edges[second]
    follows = (a[:, 2:] == b[:, :2]).all(axis=1)
    precedes = (b[:, 2:] == a[:, :2]).all(axis=1)
    along, onward = a[:, 2:] - a[:, :2], b[:, 2:] - b[:, :2]
    with np.errstate(all="ignore"):
        goes_back = (_cross(along, onward) == 0) & ((along * onward).sum(axis=1) < 0)
    is_one_ring = owners[first] == owners[second]
    return np.asarray(is_one_ring & (follows ^ precedes) & ~goes_back, bool)


def _compare(
    left: Sequence[NDArray[np.float64]], right: Sequence[NDArray[np.float64]]
) -> NDArray[np.float64]:
    """Return -1 where edges cross, 0 where they may touch, 1 where they do not meet.

    As far as doubles can decide, and for edges whose boxes meet.
    """
    with np.errstate(all="ignore"):  # products of huge coordinates are no numbers
        return np.maximum(_sides(left, right), _sides(right, left))


def _sides(
    edges: Sequence[NDArray[np.float64]], others: Sequence[NDArray[np.float64]]
) -> NDArray[np.float64]:
    """Multiply the sides of an edge on which the ends of another lie: negative if they differ."""
    x, y, end_x, end_y = edges
    along_x, along_y = end_x - x, end_y - y
    first = along_x * (others[1] - y) - along_y * (others[0] - x)
    last = along_x * (others[3] - y) - along_y * (others[2] - x)
    return np.asarray(np.sign(first) * np.sign(last), float)


def _cross(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0], float)
