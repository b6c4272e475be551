"""Which geometries of subscriptions have a point in common with which events; the larger asks.

Of two geometries GEOS prepares the one that asks, and then looks at every vertex of the other. A
storm track that asks a continent takes milliseconds and keeps megabytes, and so does the next
track; a continent that has been prepared asks a track in microseconds. Either way the answer is
right, which cannot be said of relations other than `intersects`.
"""

from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray
from shapely import STRtree

from contrada.arrays import Geometries, Positions

_TREE_MAX = 100_000  # geometries: nobody else can run while a tree is built, for some 40 ms
EVENTS_MIN = 16  # for fewer it does not pay to prepare an area

_BASE = 16  # vertices of a class: less than so many times as many as its smallest has
_AREAS_MAX = 64  # for each event asked, so that its cost does not follow all that is registered
# Lines and areas: points gain nothing, collections may make GEOS raise.
_MAY_ASK = np.isin(np.arange(-1, 8), (1, 3, 5, 6))
_COLLECTION = 7
_NEVER = -1
_SIZE_MAX = np.iinfo(np.int64).max
_NONE = np.zeros(0, np.int64)


class TreeRow:
    """Trees from west to east, since one tree of very many geometries is built without a break."""

    def __init__(self, geometries: Geometries) -> None:
        """Sort geometries by their middles, and build the trees now (see `build_tree`)."""
        boxes = shapely.bounds(geometries)
        order = np.argsort(boxes[:, 0] + boxes[:, 2])
        self._ids = [order[i : i + _TREE_MAX] for i in range(0, len(order), _TREE_MAX)]
        self._trees = [_build_one(geometries[ids]) for ids in self._ids]

    def query(self, events: Any, predicate: Any = None) -> tuple[Positions, Positions]:
        """Find pairs of an event and a geometry as `STRtree.query` does, in the events' order."""
        found = []
        for ids, tree in zip(self._ids, self._trees, strict=True):
            places, own = tree.query(events, predicate=predicate)
            if own.size:
                found.append((places, ids[own]))
        if len(found) < 2:
            return found[0] if found else (_NONE, _NONE)
        places, items = (np.concatenate(parts) for parts in zip(*found, strict=True))
        order = np.argsort(places, kind="stable")
        return places[order], items[order]


BoxTree = STRtree | TreeRow


def build_tree(geometries: Geometries) -> BoxTree:
    """Make a tree, or a row of them, and build it now: GEOS would when two threads ask, perhaps."""
    return TreeRow(geometries) if len(geometries) > _TREE_MAX else _build_one(geometries)


def _build_one(geometries: Geometries) -> STRtree:
    tree = STRtree(geometries)
    tree.query(shapely.Point(0, 0))
    return tree


class MeetingTrees:
    """Geometries of subscriptions, in a tree for each class of sizes."""

    def __init__(self, geometries: Geometries) -> None:
        """Sort geometries by the number of their vertices."""
        sizes = shapely.get_num_coordinates(geometries)
        may_ask = _MAY_ASK[shapely.get_type_id(geometries) + 1]
        levels = np.where(may_ask, np.log2(sizes) // np.log2(_BASE), _NEVER).astype(np.int64)
        self._classes = [
            _SizeClass(np.flatnonzero(levels == level), geometries, int(level))
            for level in np.unique(levels)
        ]

    def find(self, events: Geometries) -> tuple[Positions, Positions]:
        """Find all pairs of an event and a geometry that meet, by their places."""
        sizes = shapely.get_num_coordinates(events).astype(np.int64)
        sizes = np.where(shapely.get_type_id(events) == _COLLECTION, _SIZE_MAX, sizes)
        found = [size_class.find(events, sizes) for size_class in self._classes]
        none = np.zeros(0, np.int64)
        rows = np.concatenate([none, *(pairs[0] for pairs in found)])
        return rows, np.concatenate([none, *(pairs[1] for pairs in found)])


class _SizeClass:
    """Geometries of about one size.

    None of them is prepared, so that every call prepares its own: a prepared geometry through
    which two threads ask at once breaks.
    """

    def __init__(self, ids: Positions, geometries: Geometries, level: int) -> None:
        self._ids = ids
        self._geometries = shapely.force_2d(geometries[ids])  # a copy that is not prepared
        self._tree = build_tree(self._geometries)
        # Asking a little larger event is still cheaper, as measured on lines over areas.
        self._size_asking = 0 if level == _NEVER else _BASE ** (level + 2)
        self._asked_min = max(EVENTS_MIN, len(ids) / _AREAS_MAX)

    def find(self, events: Geometries, sizes: NDArray[np.int64]) -> tuple[Positions, Positions]:
        """Find the pairs that meet, of events that are asked and of events that ask."""
        is_asked = sizes < self._size_asking
        is_asked &= is_asked.sum() >= self._asked_min
        asked, asking = np.flatnonzero(is_asked), np.flatnonzero(~is_asked)
        more_places, more_ids = self._tree.query(events[asking], predicate="intersects")
        if not asked.size:
            return asking[more_places], self._ids[more_ids]
        ids, places = STRtree(events[asked]).query(self._geometries, predicate="intersects")
        rows = np.concatenate([asked[places], asking[more_places]])
        return rows, self._ids[np.concatenate([ids, more_ids])]


def meet(events: Geometries, geometries: Geometries, ids: Positions) -> NDArray[np.bool_]:
    """Whether each pair has a point in common; equal ids are of one geometry."""
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
    meets = np.zeros(len(events), bool)
    meets[asks] = shapely.intersects(askers[which[asks]], events[asks])
    meets[~asks] = shapely.intersects(events[~asks], geometries[~asks])
    return meets
