"""The CR-tree: an R-tree of spatial constraints on one attribute (CR-tree paper, section 4.1).

Items are constraints by number, each with the box of its geometry. What a search must know of a
constraint follows from its patterns: whether a pair without a common point may satisfy it (then
it is in the lists of the nodes above it), and whether one box must lie in the other.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from contrada.kernels.boxtree import Ints, Tree, delete, insert
from contrada.kernels.searching import EVENT_AROUND, EVENT_WITHIN, make_lists, search
from contrada.model.relation import Family, SpatialRelation

NODE_MAX, NODE_MIN = 16, 6
_SPARE_NODES = 1024
SPLIT_WEIGHTS = {"quadratic": 0.0, "constraint": 0.5}


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What a search gives: items to evaluate, items that lie apart, and nodes visited."""

    near: Ints
    far: Ints
    visited: int


class CRTree:
    """Constraints by number, in nodes of `NODE_MIN` to `NODE_MAX` entries.

    Invariants: a node's box is the smallest around its entries; all leaves are at one level; only
    the root may be underfull, and an inner root has two entries or more.
    """

    def __init__(
        self,
        boxes: NDArray[np.float64],
        needs: NDArray[np.uint8],
        apart: NDArray[np.bool_],
        split: str = "quadratic",
    ) -> None:
        """Make an empty tree for items that are numbered by the rows of the arrays."""
        self._boxes, self._needs, self._apart = boxes, needs, apart
        self._weight = SPLIT_WEIGHTS[split]
        self._tree = _make_arrays(_SPARE_NODES)
        self._state = np.array([0, 1, -1], np.int64)
        self._lists: tuple[Ints, Ints, Ints] | None = None

    @property
    def arrays(self) -> tuple[Tree, Ints]:
        """The arrays of the tree and its state, for checkers and pictures."""
        return self._tree, self._state

    def insert(self, item: int) -> None:
        """Insert an item."""
        self._make_room()
        insert(
            self._tree,
            self._state,
            item,
            self._boxes[item],
            int(self._needs[item]),
            0,
            NODE_MIN,
            NODE_MAX,
            self._weight,
        )
        self._lists = None

    def delete(self, item: int) -> bool:
        """Delete an item; tell whether it was there."""
        self._make_room()
        self._lists = None
        return bool(
            delete(
                self._tree,
                self._state,
                item,
                self._boxes[item],
                NODE_MIN,
                NODE_MAX,
                self._weight,
            )
        )

    def copy(self) -> "CRTree":
        """Make a tree that may be changed without changing this one."""
        twin = CRTree.__new__(CRTree)
        twin._boxes, twin._needs, twin._apart = self._boxes, self._needs, self._apart
        twin._weight = self._weight
        count, level, parent, child, box, kind = self._tree
        twin._tree = (
            count.copy(),
            level.copy(),
            parent.copy(),
            child.copy(),
            box.copy(),
            kind.copy(),
        )
        twin._state = self._state.copy()
        twin._lists = self._lists
        return twin

    def lists(self) -> tuple[Ints, Ints, Ints]:
        """List the items that may hold apart in walking order, and each node's range of them."""
        if self._lists is None:
            order = np.empty(int(self._apart.sum()), np.int64)
            first, last = make_lists(self._tree, self._state, self._apart, order)
            self._lists = (order[: last[self._state[0]]], first, last)
        return self._lists

    def search(self, box: NDArray[np.float64]) -> SearchResult:
        """Find what an event with this box may satisfy."""
        found = search(self._tree, self._state, box, self._needs, self._apart, *self.lists())
        return SearchResult(*found)

    def _make_room(self) -> None:
        if self._state[1] + _SPARE_NODES > len(self._tree[0]):
            bigger = _make_arrays(2 * len(self._tree[0]) + _SPARE_NODES)
            for old, new in zip(self._tree, bigger, strict=True):
                new[: len(old)] = old
            self._tree = bigger


def _make_arrays(nodes: int) -> Tree:
    room = NODE_MAX + 1
    return (
        np.zeros(nodes, np.int64),
        np.zeros(nodes, np.int64),
        np.full(nodes, -1, np.int64),
        np.zeros((nodes, room), np.int64),
        np.zeros((nodes, room, 4)),
        np.zeros((nodes, room), np.int64),
    )


def may_hold_apart(relation: SpatialRelation, is_negated: bool) -> bool:
    """Whether geometries without a common point may satisfy a constraint."""
    if relation.family is Family.PATTERN:
        return is_negated or relation.holds_when_apart()
    return relation.holds_when_apart() != is_negated


def box_needs(relation: SpatialRelation, is_negated: bool) -> int:
    """What a constraint asks of the boxes besides meeting: one to lie in the other."""
    if is_negated:
        return 0
    return EVENT_WITHIN * relation.keeps_inside() + EVENT_AROUND * relation.keeps_around()
