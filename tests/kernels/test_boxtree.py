"""The R-tree's choices (Guttman 1984) against plain Python: ChooseLeaf, PickSeeds, PickNext.

Boxes have small whole coordinates, so that ties are many and all arithmetic is exact.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from contrada.kernels.boxtree import choose_node, split

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contrada.kernels.boxtree import Tree

Box = tuple[float, float, float, float]
ROOM = 18
MIXED = -1


def empty_tree(nodes: int) -> Tree:
    return (
        np.zeros(nodes, np.int64),
        np.zeros(nodes, np.int64),
        np.full(nodes, -1, np.int64),
        np.zeros((nodes, ROOM), np.int64),
        np.zeros((nodes, ROOM, 4)),
        np.zeros((nodes, ROOM), np.int64),
    )


def area(box: Box) -> float:
    return (box[2] - box[0]) * (box[3] - box[1])


def margin(box: Box) -> float:
    return box[2] - box[0] + box[3] - box[1]


def around(*boxes: Box) -> Box:
    west, south, east, north = zip(*boxes, strict=True)
    return min(west), min(south), max(east), max(north)


@st.composite
def boxes(draw: st.DrawFn) -> Box:
    west, south = draw(st.integers(0, 8)), draw(st.integers(0, 8))
    return west, south, west + draw(st.integers(0, 4)), south + draw(st.integers(0, 4))


# ChooseLeaf


@dataclass
class Node:
    """A node as an object: some boxes, or some nodes."""

    level: int
    items: list[Box] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)

    def box(self) -> Box:
        return around(*self.items, *(node.box() for node in self.nodes))

    def walk(self) -> Iterator[Node]:
        yield self
        for node in self.nodes:
            yield from node.walk()


def write(root: Node) -> tuple[Tree, list[Node]]:
    """A tree in arrays, and its nodes by number; the root is node 0."""
    nodes = list(root.walk())
    number = {id(node): i for i, node in enumerate(nodes)}
    tree = empty_tree(len(nodes))
    count, level, _, child, box, _ = tree
    for node in nodes:
        at = number[id(node)]
        entries = node.items or [below.box() for below in node.nodes]
        count[at], level[at], box[at, : len(entries)] = len(entries), node.level, entries
        child[at, : len(node.nodes)] = [number[id(below)] for below in node.nodes]
    return tree, nodes


@st.composite
def trees(draw: st.DrawFn, level: int) -> Node:
    few = draw(st.integers(2, 5))
    if level == 0:
        return Node(0, items=[draw(boxes()) for _ in range(few)])
    return Node(level, nodes=[draw(trees(level - 1)) for _ in range(few)])


def choose_slowly(node: Node, entry: Box, target: int) -> Node:
    """The least growth decides; then the least growth of the margin; then the smallest box."""
    while node.level > target:
        node = min(
            node.nodes,
            key=lambda below: (
                area(around(below.box(), entry)) - area(below.box()),
                margin(around(below.box(), entry)) - margin(below.box()),
                area(below.box()),
            ),
        )
    return node


@given(trees(2), boxes(), st.integers(0, 2))
def test_an_entry_goes_where_boxes_grow_least(root: Node, entry: Box, target: int) -> None:
    tree, nodes = write(root)
    found = choose_node(tree, 0, np.array(entry, float), target)
    assert nodes[found] is choose_slowly(root, entry, target)


# QuadraticSplit


@dataclass
class Group:
    """The entries of one of the two nodes, as numbers, with their common box and kind."""

    members: list[int]
    box: Box
    kind: int

    def cost(self, box: Box, kind: int, weight: float) -> float:
        return area(around(self.box, box)) - area(self.box) + self.fine(box, kind, weight)

    def fine(self, box: Box, kind: int, weight: float) -> float:
        """What a mixture of kinds costs: a share of the joined area."""
        is_mixed = self.kind != kind or kind == MIXED
        return weight * area(around(self.box, box)) if is_mixed else 0.0

    def add(self, number: int, box: Box, kind: int) -> None:
        self.members.append(number)
        self.box = around(self.box, box)
        self.kind = self.kind if self.kind == kind else MIXED


def split_slowly(
    entries: list[tuple[Box, int]], least: int, weight: float
) -> tuple[list[int], list[int]]:
    """Seeds waste most area together; the entry with the strongest preference comes next."""

    def waste(pair: tuple[int, int]) -> float:
        (box, kind), (other, other_kind) = entries[pair[0]], entries[pair[1]]
        fine = Group([], box, kind).fine(other, other_kind, weight)
        return area(around(box, other)) - area(box) - area(other) + fine

    def preference(number: int) -> float:
        return abs(first.cost(*entries[number], weight) - second.cost(*entries[number], weight))

    seeds = max(combinations(range(len(entries)), 2), key=waste)
    first, second = (Group([seed], *entries[seed]) for seed in seeds)
    left = [number for number in range(len(entries)) if number not in seeds]
    while left:
        needy = [g for g in (first, second) if len(g.members) + len(left) <= least]
        chosen = left[0] if needy else max(left, key=preference)
        box, kind = entries[chosen]
        group = min(
            needy or (first, second),
            key=lambda g: (g.cost(box, kind, weight), area(g.box), len(g.members)),
        )
        group.add(chosen, box, kind)
        left.remove(chosen)
    return first.members, second.members


entries = st.tuples(boxes(), st.integers(MIXED, 3))


CROSS = [((0.0, 3.0, 8.0, 5.0), 0), ((3.0, 0.0, 4.0, 8.0), 0), *[((3.0, 3.0, 4.0, 5.0), 0)] * 4]


@example(CROSS, 0, 0.0, 0)  # what lies in both seeds goes to the smaller
@example(CROSS[::-1], 0, 0.0, 0)
@given(
    st.lists(entries, min_size=4, max_size=17),
    st.integers(0, 4),
    st.sampled_from([0.0, 0.5, 2.0]),
    st.integers(0, 1),
)
def test_a_node_is_split_as_guttman_says_with_a_fine_for_mixed_kinds(
    given_entries: list[tuple[Box, int]], least: int, weight: float, level: int
) -> None:
    size, least = len(given_entries), max(1, min(least + 2, len(given_entries) // 2))
    tree = empty_tree(size + 2)
    count, levels, parent, child, box, kind = tree
    count[0], levels[0] = size, level
    for i, (entry, entry_kind) in enumerate(given_entries):
        child[0, i], box[0, i], kind[0, i] = i + 2, entry, entry_kind
    split(tree, 0, 1, least, weight)
    halves = split_slowly(given_entries, least, weight)
    for node, members in enumerate(halves):
        assert (child[node, : count[node]] - 2).tolist() == members
        assert [tuple(b) for b in box[node, : len(members)]] == [
            given_entries[m][0] for m in members
        ]
        assert kind[node, : len(members)].tolist() == [given_entries[m][1] for m in members]
        assert levels[node] == level
        if level > 0:
            assert set(parent[child[node, : len(members)]]) == {node}
