"""The two ways to organise subscribers that section 3.1 rejects, built with all filters at hand.

- The containment graph as a tree: each subscriber is below the smallest filter that contains its
  own; a virtual root has all whose filters no other contains.
- One such tree for each dimension, of the filters' sides alone, each with a virtual root. An event
  goes through all of them.

An event rises from its publisher to the root and goes down to each child whose box it meets.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from contrada.overlay.boxes import Box
from contrada.simulation.publishing import contain
from contrada.simulation.workloads import Array
from contrada.threads import once

ROOT = -1  # the virtual root: no subscriber


@dataclass(slots=True)
class EventVisit:
    """Whom an event has reached, subscribers by number, and the messages that it took."""

    visited: set[int] = field(default_factory=set)
    messages: int = 0


class ContainmentTree:
    """Subscribers below the smallest that contain them; equal ones below the first of them."""

    def __init__(self, boxes: Array) -> None:
        """Organise boxes: rows of lows, then highs."""
        self._boxes = boxes
        self.parents = _find_containers(boxes)

    @once
    def _children(self) -> dict[int, NDArray[np.intp]]:
        order = np.argsort(self.parents, kind="stable")
        found, starts = np.unique(self.parents[order], return_index=True)
        return dict(zip(found.tolist(), np.split(order, starts[1:]), strict=True))

    @property
    def fanout_max(self) -> int:
        """Count the children of whoever has most, the virtual root included."""
        return max(map(len, self._children.values()))

    @property
    def fanout_of_root(self) -> int:
        """Count the children of the virtual root."""
        return len(self._children[ROOT])

    @property
    def depth(self) -> int:
        """Count the levels below the virtual root."""
        return max(len(list(self._climb(number))) for number in range(len(self.parents)))

    def publish(self, publisher: int, point: Sequence[float]) -> EventVisit:
        """Send an event up to the root, and down from all on the way and the root."""
        visit = EventVisit({publisher})
        path = [publisher, *self._climb(publisher)]
        for below, above in zip([ROOT, *path], path, strict=False):
            if above != ROOT:
                visit.visited.add(above)
            visit.messages += above != publisher
            self._descend(above, below, np.array(point), visit)
        return visit

    def _climb(self, number: int) -> Iterator[int]:
        """Walk from a subscriber to the virtual root."""
        while number != ROOT:
            number = int(self.parents[number])
            yield number

    def _descend(self, at: int, but: int, point: Array, visit: EventVisit) -> None:
        """Go down from a node to all that the event meets, but not to where it came from."""
        pending = [at]
        while pending:
            children = self._children.get(pending.pop(), np.empty(0, np.intp))
            met = children[contain(self._boxes[children], point) & (children != but)].tolist()
            visit.messages += len(met)
            visit.visited.update(met)
            pending += met


class TreePerDimension:
    """One containment tree for each dimension."""

    def __init__(self, boxes: Array) -> None:
        """Organise boxes: rows of lows, then highs."""
        k = boxes.shape[1] // 2
        self.trees = [ContainmentTree(boxes[:, [axis, axis + k]]) for axis in range(k)]

    @property
    def fanout_max(self) -> int:
        """Count the children of whoever has most, the virtual roots included."""
        return max(tree.fanout_max for tree in self.trees)

    @property
    def fanout_of_root(self) -> int:
        """Count the children of the virtual root with most."""
        return max(tree.fanout_of_root for tree in self.trees)

    @property
    def depth(self) -> int:
        """Count the levels of the deepest tree."""
        return max(tree.depth for tree in self.trees)

    def publish(self, publisher: int, point: Sequence[float]) -> EventVisit:
        """Send an event through all trees."""
        visits = [
            tree.publish(publisher, [value]) for tree, value in zip(self.trees, point, strict=True)
        ]
        return EventVisit(
            set().union(*(v.visited for v in visits)), sum(v.messages for v in visits)
        )


def as_array(boxes: Sequence[Box]) -> Array:
    """Stack boxes as rows."""
    return np.array(boxes, dtype=np.float64)


def find_containing(boxes: Array, number: int) -> NDArray[np.intp]:
    """List all boxes that contain one, itself included."""
    k = boxes.shape[1] // 2
    box = boxes[number]
    is_container = (boxes[:, :k] <= box[:k]).all(1) & (boxes[:, k:] >= box[k:]).all(1)
    return np.flatnonzero(is_container)


def _find_containers(boxes: Array) -> NDArray[np.intp]:
    """Find the smallest container of each; equal ones in the order of their numbers."""
    k = boxes.shape[1] // 2
    sides = boxes[:, k:] - boxes[:, :k]
    order = np.lexsort((-np.arange(len(boxes)), sides.sum(1), sides.prod(1)))
    rank = np.empty(len(boxes), np.intp)  # what contains a box has a higher rank than it
    rank[order] = np.arange(len(boxes))
    parents = np.full(len(boxes), ROOT, np.intp)
    for number in range(len(boxes)):
        above = find_containing(boxes, number)
        above = above[rank[above] > rank[number]]
        if len(above):
            parents[number] = above[np.argmin(rank[above])]
    return parents
