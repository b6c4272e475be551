"""Walking a tree of constraints against plain Python: what a node's list holds, what is found."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from contrada.kernels.searching import EVENT_AROUND, EVENT_WITHIN, make_lists, search
from kernels.test_boxtree import Box, Node, around, boxes, trees, write


@dataclass
class Constraints:
    """The items of a tree: what each asks of the boxes, and whether it may hold apart."""

    needs: list[int]
    apart: list[bool]


@st.composite
def cases(draw: st.DrawFn) -> tuple[Node, Constraints, Box]:
    root = draw(trees(draw(st.integers(0, 2))))
    # None stands for a constraint that may hold apart: it asks nothing of the boxes.
    need = st.none() | st.integers(0, 3)
    asked: list[int | None] = []
    for node in root.walk():
        alike = draw(st.booleans())  # then the node may be left out for what all its items ask
        several = draw(st.lists(need, min_size=len(node.items), max_size=len(node.items)))
        asked += several[:1] * len(several) if alike else several
    constraints = Constraints([need or 0 for need in asked], [need is None for need in asked])
    return root, constraints, draw(st.just((20, 20, 21, 21)) | boxes() | spans())


@st.composite
def spans(draw: st.DrawFn) -> Box:
    return around(draw(boxes()), draw(boxes()))


def meet(a: Box, b: Box) -> bool:
    return a[0] <= b[2] and b[0] <= a[2] and a[1] <= b[3] and b[1] <= a[3]


def is_around(outer: Box, inner: Box) -> bool:
    return around(outer, inner) == outer


class Walk:
    """The search of section 4.1, node by node: a node apart gives its list, others are visited.

    `numbers` are the items of each leaf, `kinds` what all items below a node ask, or None.
    """

    def __init__(self, root: Node, constraints: Constraints, event: Box) -> None:
        self.constraints, self.event = constraints, event
        self.near: list[int] = []
        self.far: list[int] = []
        self.visited = 0
        self.numbers: dict[int, list[int]] = {}
        count = 0
        for node in root.walk():
            self.numbers[id(node)] = list(range(count, count + len(node.items)))
            count += len(node.items)
        self.visit(root)

    def items_below(self, node: Node) -> list[int]:
        return [number for below in node.walk() for number in self.numbers[id(below)]]

    def apart_below(self, node: Node) -> list[int]:
        return [number for number in self.items_below(node) if self.constraints.apart[number]]

    def visit(self, node: Node) -> None:
        self.visited += 1
        for number, box in zip(self.numbers[id(node)], node.items, strict=True):
            self.look_at(number, box)
        for below in node.nodes:
            needs = {self.constraints.needs[number] for number in self.items_below(below)}
            all_lie_within = len(needs) == 1 and bool(needs.pop() & EVENT_WITHIN)
            if not meet(below.box(), self.event):
                self.far += self.apart_below(below)
            elif is_around(below.box(), self.event) or not all_lie_within:
                self.visit(below)

    def look_at(self, number: int, box: Box) -> None:
        need = self.constraints.needs[number]
        if not meet(box, self.event):
            self.far += [number] if self.constraints.apart[number] else []
        elif (is_around(box, self.event) or not need & EVENT_WITHIN) and (
            is_around(self.event, box) or not need & EVENT_AROUND
        ):
            self.near.append(number)


@given(cases())
def test_a_search_finds_visits_and_leaves_out_what_the_paper_says(
    case: tuple[Node, Constraints, Box],
) -> None:
    root, constraints, event = case
    slow = Walk(root, constraints, event)
    tree, nodes = write(root)
    _, _, _, child, _, kind = tree
    for at, node in enumerate(nodes):
        numbers = slow.numbers[id(node)]
        child[at, : len(numbers)] = numbers
        kind[at, : len(numbers)] = [constraints.needs[number] for number in numbers]
        for i, below in enumerate(node.nodes):
            asked = {constraints.needs[number] for number in slow.items_below(below)}
            kind[at, i] = asked.pop() if len(asked) == 1 else -1
    state = np.array([0, len(nodes), -1])
    needs, apart = np.array(constraints.needs, np.uint8), np.array(constraints.apart, bool)
    order = np.empty(int(apart.sum()), np.int64)
    first, last = make_lists(tree, state, apart, order)
    for at, node in enumerate(nodes):
        assert sorted(order[first[at] : last[at]].tolist()) == slow.apart_below(node)
    near, far, visited = search(
        tree, state, np.array(event, float), needs, apart, order, first, last
    )
    assert sorted(near.tolist()) == sorted(slow.near)
    assert sorted(far.tolist()) == sorted(slow.far)
    assert visited == slow.visited
