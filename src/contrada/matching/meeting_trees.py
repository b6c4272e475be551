"""Which geometries of subscriptions have a point in common with which events; the larger asks.

Of two geometries GEOS prepares the one that asks, and then looks at every vertex of the other. A
storm track that asks a continent takes milliseconds and keeps megabytes, and so does the next
track; a continent that has been prepared asks a track in microseconds. Either way the answer is
right, which cannot be said of relations other than `intersects`.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray
from shapely import STRtree

from contrada.arrays import Floats, Geometries, Mask, Positions
from contrada.collecting import untrack
from contrada.matching.releasing import GeometryOwner
from contrada.model.contact import PLAIN_VERTICES_MAX, find_meetings

_TREE_MAX = 50_000  # geometries: nobody else can run while a tree is built, for some 20 ms
_COPIED_AT_ONCE = 2_000
EVENTS_MIN = 16  # for fewer it does not pay to prepare an area

_BASE = 16  # vertices of a class: less than so many times as many as its smallest has
_AREAS_MAX = 64  # for each event asked, so that its cost does not follow all that is registered
# Lines and areas: points gain nothing, collections may make GEOS raise.
_MAY_ASK = np.isin(np.arange(-1, 8), (1, 3, 5, 6))
_COLLECTION = 7
_NEVER = -1
_SIZE_MAX = np.iinfo(np.int64).max
_NONE = np.zeros(0, np.int64)
_ONLY = np.zeros(1, np.int64)
_SOMEWHERE = shapely.Point(0, 0)


class BoxTree:
    """An STRtree of geometries, or as many as it takes that each is built in no time.

    The array is theirs: when they go, it is emptied in steps between which others run.
    """

    def __init__(self, geometries: Geometries) -> None:
        """Build the trees now: Shapely leaves it to the first query, in two threads at once."""
        self._owner = GeometryOwner(geometries)
        self._trees: list[STRtree] = []
        order = _ONLY if len(geometries) <= _TREE_MAX else _sort_by_middle(geometries)
        self._ids = [order[i : i + _TREE_MAX] for i in range(0, len(order), _TREE_MAX)]
        for ids in self._ids:
            tree = STRtree(geometries if order is _ONLY else geometries[ids])
            tree.query(_SOMEWHERE)
            self._trees.append(tree)
        self._extents = [_find_extent(tree.geometries) for tree in self._trees]

    def __del__(self) -> None:
        while self._trees:  # before the geometries, which they would keep
            self._trees.pop()

    def query(self, events: Any, predicate: Any = None) -> tuple[Positions, Positions]:
        """Find pairs of an event and a geometry as `STRtree.query` does, in the events' order."""
        if len(self._trees) == 1:
            places, ids = self._trees[0].query(events, predicate=predicate)
            return places, ids
        found = []
        for number, at in self._find_near(shapely.bounds(events)):
            places, own = self._trees[number].query(events[at], predicate=predicate)
            if own.size:
                found.append((at[places], self._ids[number][own]))
        if len(found) < 2:
            return found[0] if found else (_NONE, _NONE)
        places, ids = (np.concatenate(parts) for parts in zip(*found, strict=True))
        order = np.argsort(places, kind="stable")
        return places[order], ids[order]

    def _find_near(self, boxes: Floats) -> Iterator[tuple[int, Positions]]:
        """List the trees that events come near, and which events: one asks few of many trees."""
        if len(boxes) == 1:
            west, south, east, north = boxes[0].tolist()
            for number, (low_x, low_y, high_x, high_y) in enumerate(self._extents):
                if west <= high_x and east >= low_x and south <= high_y and north >= low_y:
                    yield number, _ONLY
            return
        for number, extent in enumerate(np.array(self._extents)):
            is_near = (boxes[:, :2] <= extent[2:]) & (boxes[:, 2:] >= extent[:2])
            at = np.flatnonzero(is_near.all(axis=1))
            if at.size:
                yield number, at


def _sort_by_middle(geometries: Geometries) -> Positions:
    boxes = shapely.bounds(geometries)
    return np.argsort(boxes[:, 0] + boxes[:, 2])


def _find_extent(geometries: Geometries) -> list[float]:
    """Find the box around geometries."""
    extent: list[float] = shapely.total_bounds(geometries).tolist()
    return extent


class MeetingTrees:
    """Geometries of subscriptions, in a tree for each class of sizes."""

    def __init__(self, geometries: Geometries) -> None:
        """Sort geometries by the number of their vertices."""
        sizes = shapely.get_num_coordinates(geometries)
        may_ask = _MAY_ASK[shapely.get_type_id(geometries) + 1]
        levels = np.where(may_ask, np.log2(sizes) // np.log2(_BASE), _NEVER).astype(np.int64)
        self._size = int(sizes.max(initial=1))
        self._classes = [
            _SizeClass(np.flatnonzero(levels == level), geometries, int(level))
            for level in np.unique(levels)
        ]

    def find(self, events: Geometries) -> tuple[Positions, Positions, Mask]:
        """Find all pairs of an event and a geometry that meet, by their places.

        Those of which that is not decided are found, too, and the mask is false for them.
        """
        sizes = shapely.get_num_coordinates(events).astype(np.int64)
        is_large = sizes > PLAIN_VERTICES_MAX // self._size
        sizes = np.where(shapely.get_type_id(events) == _COLLECTION, _SIZE_MAX, sizes)
        found = [size_class.find(events, sizes, is_large) for size_class in self._classes]
        found.append((_NONE, _NONE, np.zeros(0, bool)))
        rows, ids, known = zip(*found, strict=True)
        return np.concatenate(rows), np.concatenate(ids), np.concatenate(known)


class _SizeClass:
    """Geometries of about one size.

    None of them is prepared, so that every call prepares its own: a prepared geometry through
    which two threads ask at once breaks.
    """

    def __init__(self, ids: Positions, geometries: Geometries, level: int) -> None:
        self._ids = ids
        self._geometries = copy_some(geometries, ids)  # which are not prepared
        self._tree = BoxTree(self._geometries)
        # Asking a little larger event is still cheaper, as measured on lines over areas.
        self._size_asking = 0 if level == _NEVER else _BASE ** (level + 2)
        self._asked_min = max(EVENTS_MIN, len(ids) / _AREAS_MAX)

    def find(
        self, events: Geometries, sizes: NDArray[np.int64], is_large: Mask
    ) -> tuple[Positions, Positions, Mask]:
        """Find the pairs that meet, of events that are asked, that ask, and that are too large."""
        is_asked = (sizes < self._size_asking) & ~is_large
        is_asked &= is_asked.sum() >= self._asked_min
        asked, asking = np.flatnonzero(is_asked), np.flatnonzero(~(is_asked | is_large))
        more_places, more_ids = self._tree.query(events[asking], predicate="intersects")
        found = [self._find_large(events, np.flatnonzero(is_large))]
        found.append((asking[more_places], self._ids[more_ids], np.ones(len(more_ids), bool)))
        if asked.size:
            ids, places = STRtree(events[asked]).query(self._geometries, predicate="intersects")
            found.append((asked[places], self._ids[ids], np.ones(len(ids), bool)))
        rows, numbers, known = zip(*found, strict=True)
        return np.concatenate(rows), np.concatenate(numbers), np.concatenate(known)

    def _find_large(self, events: Geometries, at: Positions) -> tuple[Positions, Positions, Mask]:
        """Find the pairs of events that GEOS might not compare in time."""
        places, ids = self._tree.query(events[at])
        rows = at[places]
        meets, known = meet(events[rows], self._geometries[ids], ids)
        may = meets | ~known
        return rows[may], self._ids[ids[may]], known[may]


def copy_some(geometries: Geometries, ids: Positions) -> Geometries:
    """Copy some geometries, in steps between which others run; no copy is prepared."""
    copies = np.empty(len(ids), object)
    for first in range(0, len(ids), _COPIED_AT_ONCE):
        own = slice(first, first + _COPIED_AT_ONCE)
        copies[own] = shapely.force_2d(geometries[ids[own]])
        untrack(copies[own])
    return copies


def meet(events: Geometries, geometries: Geometries, ids: Positions) -> tuple[Mask, Mask]:
    """Whether each pair has a point in common, and whether that is decided.

    Equal ids are of one geometry.
    """
    _, firsts, which, counts = np.unique(
        ids, return_index=True, return_inverse=True, return_counts=True
    )
    sizes, event_sizes = map(shapely.get_num_coordinates, (geometries, events))
    types, event_types = map(shapely.get_type_id, (geometries, events))
    asks = (counts[which] >= EVENTS_MIN) & (sizes > event_sizes)
    asks &= _MAY_ASK[types + 1] & _MAY_ASK[event_types + 1]
    askers = np.full(len(firsts), None, object)
    asking = np.unique(which[asks])
    askers[asking] = shapely.force_2d(geometries[firsts[asking]])  # prepared for this call alone
    shapely.prepare(askers)
    askers, asked = np.where(asks, askers[which], events), np.where(asks, events, geometries)
    return find_meetings(askers, asked)
