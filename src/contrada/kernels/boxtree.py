"""An R-tree in arrays: Guttman's insert, delete and quadratic split (SIGMOD 1984).

A tree is a tuple of arrays. Node n has `count[n]` entries; entry i is the box `box[n, i]` (west,
south, east, north) and `child[n, i]`, a node or, in a leaf (`level[n]` = 0), an item. There is
room for one entry more than a node may hold, which is there only until the node is split.
`kind[n, i]` is a number that the constraint-aware split keeps together; in inner nodes it is that
of all entries below, or -1 where they differ.
"""

import numpy as np
from numpy.typing import NDArray

from contrada.kernels.compiling import kernel

BoxRow = NDArray[np.float64]
Ints = NDArray[np.int64]
Tree = tuple[Ints, Ints, Ints, Ints, NDArray[np.float64], Ints]

_SIZE_MAX = 1e300  # no size counts as more: differences of infinite ones would be no numbers


@kernel
def area(box: BoxRow) -> float:
    """Return the area of a box, or `_SIZE_MAX` where it is larger."""
    width, height = min(box[2] - box[0], _SIZE_MAX), min(box[3] - box[1], _SIZE_MAX)
    return min(width * height, _SIZE_MAX)


@kernel
def margin(box: BoxRow) -> float:
    """Return half the perimeter of a box, by which flat or very large boxes can be compared."""
    return min(box[2] - box[0], _SIZE_MAX) + min(box[3] - box[1], _SIZE_MAX)


@kernel
def join(a: BoxRow, b: BoxRow, out: BoxRow) -> None:
    """Write the smallest box around two into `out`."""
    out[0] = min(a[0], b[0])
    out[1] = min(a[1], b[1])
    out[2] = max(a[2], b[2])
    out[3] = max(a[3], b[3])


@kernel
def node_box(tree: Tree, node: int, out: BoxRow) -> None:
    """Write the smallest box around all entries of a node into `out`."""
    count, _, _, _, box, _ = tree
    out[:] = box[node, 0]
    for i in range(1, count[node]):
        join(out, box[node, i], out)


@kernel
def node_kind(tree: Tree, node: int) -> int:
    """Return the kind of all entries of a node, or -1 where they differ."""
    count, _, _, _, _, kind = tree
    first = kind[node, 0]
    for i in range(1, count[node]):
        if kind[node, i] != first:
            return -1
    return first


@kernel
def choose_node(tree: Tree, root: int, entry: BoxRow, target: int) -> int:
    """Descend to the node of a level that must grow least to hold an entry (ChooseLeaf)."""
    count, level, _, child, box, _ = tree
    grown = np.empty(4)
    node = root
    while level[node] > target:
        best = -1
        best_growth = best_stretch = best_area = np.inf
        for i in range(count[node]):
            join(box[node, i], entry, grown)
            size = area(box[node, i])
            growth = area(grown) - size
            stretch = margin(grown) - margin(box[node, i])
            is_better = growth < best_growth
            if growth == best_growth:
                is_better = stretch < best_stretch or (stretch == best_stretch and size < best_area)
            if is_better:
                best, best_growth, best_stretch, best_area = i, growth, stretch, size
        node = child[node, best]
    return node


@kernel
def add_entry(tree: Tree, node: int, item: int, entry: BoxRow, kind_: int) -> None:
    """Append an entry to a node that has room."""
    count, level, parent, child, box, kind = tree
    at = count[node]
    child[node, at] = item
    box[node, at] = entry
    kind[node, at] = kind_
    count[node] += 1
    if level[node] > 0:
        parent[item] = node


@kernel
def _waste(a: BoxRow, b: BoxRow, kind_a: int, kind_b: int, weight: float, joined: BoxRow) -> float:
    """Measure the waste of two boxes in one node; kinds that differ count as extra area."""
    join(a, b, joined)
    waste = area(joined) - area(a) - area(b)
    if weight > 0 and (kind_a != kind_b or kind_a < 0):
        waste += weight * area(joined)
    return waste


@kernel
def split(tree: Tree, node: int, fresh: int, least: int, weight: float) -> None:
    """Distribute the entries of an overfull node over it and a fresh one (QuadraticSplit)."""
    count, level, parent, child, box, kind = tree
    n = count[node]
    boxes, items, kinds = box[node, :n].copy(), child[node, :n].copy(), kind[node, :n].copy()
    joined = np.empty(4)
    first, second, worst = 0, 1, -np.inf
    for i in range(n):
        for j in range(i + 1, n):
            waste = _waste(boxes[i], boxes[j], kinds[i], kinds[j], weight, joined)
            if waste > worst:
                first, second, worst = i, j, waste
    level[fresh] = level[node]
    count[node] = count[fresh] = 0
    add_entry(tree, node, items[first], boxes[first], kinds[first])
    add_entry(tree, fresh, items[second], boxes[second], kinds[second])
    covers = np.empty((2, 4))
    covers[0], covers[1] = boxes[first], boxes[second]
    cover_kinds = np.array([kinds[first], kinds[second]])
    nodes = np.array([node, fresh])
    is_left = np.ones(n, np.bool_)
    is_left[first] = is_left[second] = False
    left = n - 2
    while left > 0:
        target = -1
        for side in range(2):
            if count[nodes[side]] + left <= least:
                target = side
        best, best_difference, best_side = -1, -1.0, 0
        for i in range(n):
            if not is_left[i]:
                continue
            if target >= 0:
                best, best_side = i, target
                break
            cost_0 = _growth(covers[0], boxes[i], cover_kinds[0], kinds[i], weight, joined)
            cost_1 = _growth(covers[1], boxes[i], cover_kinds[1], kinds[i], weight, joined)
            difference = abs(cost_0 - cost_1)
            if difference > best_difference:
                side = 0 if cost_0 < cost_1 else 1
                if cost_0 == cost_1:
                    size_0, size_1 = area(covers[0]), area(covers[1])
                    side = 0 if size_0 < size_1 else 1
                    if size_0 == size_1:
                        side = 0 if count[node] <= count[fresh] else 1
                best, best_difference, best_side = i, difference, side
        is_left[best] = False
        left -= 1
        add_entry(tree, nodes[best_side], items[best], boxes[best], kinds[best])
        join(covers[best_side], boxes[best], covers[best_side])
        if cover_kinds[best_side] != kinds[best]:
            cover_kinds[best_side] = -1


@kernel
def _growth(
    cover: BoxRow, entry: BoxRow, kind_a: int, kind_b: int, weight: float, joined: BoxRow
) -> float:
    join(cover, entry, joined)
    growth = area(joined) - area(cover)
    if weight > 0 and (kind_a != kind_b or kind_a < 0):
        growth += weight * area(joined)
    return growth


@kernel
def insert(
    tree: Tree,
    state: Ints,
    item: int,
    entry: BoxRow,
    kind_: int,
    target: int,
    least: int,
    most: int,
    weight: float,
) -> None:
    """Insert an entry at a level, splitting upwards; `state` is [root, nodes used, free list]."""
    count, level, parent, child, box, kind = tree
    node = choose_node(tree, state[0], entry, target)
    add_entry(tree, node, item, entry, kind_)
    while True:
        fresh = -1
        if count[node] > most:
            fresh = take_node(tree, state)
            split(tree, node, fresh, least, weight)
        if node == state[0]:
            if fresh >= 0:
                _grow_root(tree, state, node, fresh)
            return
        above = parent[node]
        _refresh_entry(tree, above, node)
        if fresh >= 0:
            cover = np.empty(4)
            node_box(tree, fresh, cover)
            add_entry(tree, above, fresh, cover, node_kind(tree, fresh))
        node = above


@kernel
def take_node(tree: Tree, state: Ints) -> int:
    """Take an unused node: one that was freed, else the next."""
    count, _, parent, _, _, _ = tree
    if state[2] >= 0:
        node = state[2]
        state[2] = parent[node]
    else:
        node = state[1]
        state[1] += 1
    count[node] = 0
    parent[node] = -1
    return node


@kernel
def _grow_root(tree: Tree, state: Ints, node: int, fresh: int) -> None:
    _, level, parent, _, _, _ = tree
    root = take_node(tree, state)
    level[root] = level[node] + 1
    cover = np.empty(4)
    for part in (node, fresh):
        node_box(tree, part, cover)
        add_entry(tree, root, part, cover, node_kind(tree, part))
    parent[root] = -1
    state[0] = root


@kernel
def _refresh_entry(tree: Tree, above: int, node: int) -> None:
    """Make the entry for a node in its parent say what the node holds now."""
    count, _, _, child, box, kind = tree
    for i in range(count[above]):
        if child[above, i] == node:
            node_box(tree, node, box[above, i])
            kind[above, i] = node_kind(tree, node)
            return


@kernel
def find_leaf(tree: Tree, root: int, item: int, entry: BoxRow, stack: Ints) -> int:
    """Find the leaf that holds an item, by its box (FindLeaf); -1 where there is none."""
    count, level, _, child, box, _ = tree
    stack[0] = root
    top = 1
    while top > 0:
        top -= 1
        node = stack[top]
        for i in range(count[node]):
            if level[node] == 0:
                if child[node, i] == item:
                    return node
            elif (
                box[node, i, 0] <= entry[0]
                and box[node, i, 1] <= entry[1]
                and box[node, i, 2] >= entry[2]
                and box[node, i, 3] >= entry[3]
            ):
                stack[top] = child[node, i]
                top += 1
    return -1


@kernel
def remove_entry(tree: Tree, node: int, item: int) -> None:
    """Take an entry out of a node; the last one takes its place."""
    count, _, _, child, box, kind = tree
    last = count[node] - 1
    for i in range(count[node]):
        if child[node, i] == item:
            child[node, i] = child[node, last]
            box[node, i] = box[node, last]
            kind[node, i] = kind[node, last]
            count[node] = last
            return


@kernel
def delete(
    tree: Tree, state: Ints, item: int, entry: BoxRow, least: int, most: int, weight: float
) -> bool:
    """Delete an item; the entries of nodes left underfull are inserted again (CondenseTree)."""
    count, level, parent, child, box, kind = tree
    stack = np.empty(state[1] + 1, np.int64)
    node = find_leaf(tree, state[0], item, entry, stack)
    if node < 0:
        return False
    remove_entry(tree, node, item)
    orphans = np.empty(level[state[0]] + 1, np.int64)
    orphan_count = 0
    while node != state[0]:
        above = parent[node]
        if count[node] < least:
            remove_entry(tree, above, node)
            orphans[orphan_count] = node
            orphan_count += 1
        else:
            _refresh_entry(tree, above, node)
        node = above
    for k in range(orphan_count - 1, -1, -1):
        orphan = orphans[k]
        for i in range(count[orphan]):
            insert(
                tree,
                state,
                child[orphan, i],
                box[orphan, i].copy(),
                kind[orphan, i],
                level[orphan],
                least,
                most,
                weight,
            )
        parent[orphan] = state[2]
        state[2] = orphan
    _shrink_root(tree, state)
    return True


@kernel
def _shrink_root(tree: Tree, state: Ints) -> None:
    """Let the only child of an inner root be the root."""
    count, level, parent, child, _, _ = tree
    while level[state[0]] > 0 and count[state[0]] == 1:
        old = state[0]
        state[0] = child[old, 0]
        parent[state[0]] = -1
        parent[old] = state[2]
        state[2] = old
