"""The CR-tree: its structure, checked from the outside, and what a search finds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from contrada.matching.indexes.cr_tree import (
    NODE_MAX,
    NODE_MIN,
    SPLIT_WEIGHTS,
    CRTree,
    box_needs,
    may_hold_apart,
)
from contrada.model.relation import RELATIONS, Relation, find_relation

WITHIN, AROUND = 1, 2

# What the paper's Table 2, corrected, asks of the boxes for each Egenhofer relation.
TABLE_2 = {
    Relation.DISJOINT: 0,
    Relation.MEETS: 0,
    Relation.OVERLAPS: 0,
    Relation.EQUALS: WITHIN | AROUND,
    Relation.INSIDE: WITHIN,
    Relation.COVERED_BY: WITHIN,
    Relation.CONTAINS: AROUND,
    Relation.COVERS: AROUND,
}


class Items:
    """Boxes on a small lattice, with what each asks of the boxes."""

    def __init__(self, count: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        corners = rng.integers(0, 40, (count, 2)).astype(float)
        self.boxes = np.hstack([corners, corners + rng.integers(0, 6, (count, 2))])
        self.apart = rng.random(count) < 0.3
        self.needs = np.where(self.apart, 0, rng.integers(0, 4, count)).astype(np.uint8)

    def tree(self, split: str) -> CRTree:
        return CRTree(self.boxes, self.needs, self.apart, split)


def check_structure(tree: CRTree, items: Items, expected: set[int]) -> None:
    """Walk the tree: boxes, fill, levels, parents, and the list of every node."""
    (count, level, parent, child, box, _), state = tree.arrays
    order, first, last = tree.lists()

    def walk(node: int) -> list[int]:
        is_root = node == state[0]
        least = NODE_MIN if not is_root else 2 if level[node] > 0 else 0
        assert least <= count[node] <= NODE_MAX
        below: list[int] = []
        for i in range(count[node]):
            entry = int(child[node, i])
            if level[node] == 0:
                assert (box[node, i] == items.boxes[entry]).all()
                below.append(entry)
                continue
            assert parent[entry] == node
            assert level[entry] == level[node] - 1
            boxes = box[entry, : count[entry]]
            smallest = [*boxes[:, :2].min(axis=0), *boxes[:, 2:].max(axis=0)]
            assert box[node, i].tolist() == smallest
            below += walk(entry)
        listed = order[first[node] : last[node]].tolist()
        assert sorted(listed) == sorted(item for item in below if items.apart[item])
        return below

    found = walk(int(state[0]))
    assert len(found) == len(set(found))
    assert set(found) == expected


def expected_answer(
    items: Items, alive: set[int], event: NDArray[np.float64]
) -> tuple[set[int], set[int]]:
    near, far = set(), set()
    for item in alive:
        west, south, east, north = items.boxes[item]
        meets = west <= event[2] and east >= event[0] and south <= event[3] and north >= event[1]
        around = west <= event[0] and east >= event[2] and south <= event[1] and north >= event[3]
        within = west >= event[0] and east <= event[2] and south >= event[1] and north <= event[3]
        if not meets:
            far |= {item} if items.apart[item] else set()
        elif (around or not items.needs[item] & WITHIN) and (
            within or not items.needs[item] & AROUND
        ):
            near.add(item)
    return near, far


@pytest.mark.parametrize("split", ["quadratic", "constraint"])
@given(seed=st.integers(0, 2**32 - 1), count=st.integers(0, 150), deleted=st.floats(0, 1))
def test_the_tree_keeps_its_structure_and_finds_what_a_scan_finds(
    split: str, seed: int, count: int, deleted: float
) -> None:
    items, rng = Items(count, seed), np.random.default_rng(seed)
    tree = items.tree(split)
    alive: set[int] = set()
    for item in range(count):
        tree.insert(item)
        alive.add(item)
    check_structure(tree, items, alive)
    for item in rng.permutation(count)[: int(deleted * count)].tolist():
        assert tree.delete(item)
        alive.discard(item)
    check_structure(tree, items, alive)
    for _ in range(5):
        corner = rng.integers(-2, 40, 2).astype(float)
        event = np.array([*corner, *(corner + rng.integers(0, 12, 2))])
        found = tree.search(event)
        assert (set(found.near.tolist()), set(found.far.tolist())) == expected_answer(
            items, alive, event
        )


EXTREMES = [1e-323, 1e-308, 1e-160, 1.0, 1e153, 1e160, 1e300, 4e306]


class ExtremeItems(Items):
    """Boxes as large and as small as doubles can be, of one size or of all sizes at once."""

    def __init__(self, count: int, seed: int, size: float | None) -> None:
        super().__init__(count, seed)
        rng = np.random.default_rng(seed)
        sizes = np.full(count, size) if size else rng.choice(EXTREMES, count)
        signs = rng.choice([-1.0, 1.0], (count, 1))
        boxes = self.boxes * sizes[:, None] * signs
        self.boxes = np.where(signs < 0, boxes[:, [2, 3, 0, 1]], boxes)


@pytest.mark.parametrize("split", ["quadratic", "constraint"])
@pytest.mark.parametrize("size", [*EXTREMES, None])
@given(seed=st.integers(0, 2**32 - 1), count=st.integers(17, 120))
@settings(max_examples=20)
def test_no_finite_double_loses_an_item(
    split: str, size: float | None, seed: int, count: int
) -> None:
    items, rng = ExtremeItems(count, seed, size), np.random.default_rng(seed)
    assert np.isfinite(items.boxes).all()
    tree = items.tree(split)
    for item in range(count):
        tree.insert(item)
    alive = set(range(count))
    check_structure(tree, items, alive)
    for item in rng.permutation(count)[: count // 2].tolist():
        assert tree.delete(item)
        alive.discard(item)
    check_structure(tree, items, alive)
    for event in (*items.boxes[:5], np.array([-1.7e308, -1.7e308, 1.7e308, 1.7e308])):
        found = tree.search(event)
        assert (set(found.near.tolist()), set(found.far.tolist())) == expected_answer(
            items, alive, event
        )


def leaves_of(split: str, needs: list[int], boxes: NDArray[np.float64]) -> list[set[int]]:
    """What the constraints in each leaf ask of the boxes."""
    asked = np.array(needs, np.uint8)
    tree = CRTree(boxes, asked, np.zeros(len(needs), bool), split)
    for item in range(len(needs)):
        tree.insert(item)
    (count, level, _, child, _, _), state = tree.arrays
    nodes = [node for node in range(state[1]) if level[node] == 0]
    return [set(asked[child[node, : count[node]]].tolist()) for node in nodes]


def test_the_constraint_aware_split_keeps_apart_what_asks_differently_of_the_boxes() -> None:
    one_place = np.tile([0.0, 0, 4, 4], (NODE_MAX + 1, 1))
    needs = [WITHIN, AROUND] * 8 + [AROUND]
    assert sorted(map(len, leaves_of("constraint", needs, one_place))) == [1, 1]
    assert max(map(len, leaves_of("quadratic", needs, one_place))) == 2


def test_both_splits_keep_apart_what_lies_far_apart() -> None:
    two_places = np.tile([[0.0, 0, 4, 4], [100, 100, 104, 104]], (NODE_MAX // 2 + 1, 1))
    for split in SPLIT_WEIGHTS:
        leaves = leaves_of(split, [WITHIN, AROUND] * (len(two_places) // 2), two_places)
        assert sorted(map(len, leaves)) == [1, 1]


def test_deleting_what_is_not_there_changes_nothing() -> None:
    items = Items(30, 1)
    tree = items.tree("quadratic")
    for item in range(29):
        tree.insert(item)
    assert not tree.delete(29)
    check_structure(tree, items, set(range(29)))


def test_a_copy_is_changed_without_changing_the_original() -> None:
    items = Items(60, 2)
    tree = items.tree("quadratic")
    for item in range(60):
        tree.insert(item)
    twin = tree.copy()
    for item in range(50):
        twin.delete(item)
    check_structure(tree, items, set(range(60)))
    check_structure(twin, items, set(range(50, 60)))


@pytest.mark.parametrize("relation", Relation)
def test_what_boxes_must_satisfy_is_the_corrected_table_2(relation: Relation) -> None:
    assert box_needs(find_relation(relation), is_negated=False) == TABLE_2[relation]
    assert box_needs(find_relation(relation), is_negated=True) == 0


@pytest.mark.parametrize("name", RELATIONS)
def test_a_constraint_may_hold_apart_or_its_negation_does(name: str) -> None:
    relation = RELATIONS[name]
    assert may_hold_apart(relation, is_negated=False) == (name in {"disjoint", "ehDisjoint"})
    assert may_hold_apart(relation, is_negated=True) != may_hold_apart(relation, is_negated=False)
