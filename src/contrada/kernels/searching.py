"""Walking a tree of constraints: what must be evaluated, and what holds because it lies apart.

The search of the CR-tree paper's section 4.1. A node whose box the event's box does not meet is
not visited; the constraints below it that hold of geometries without a common point are found all
the same, in the node's list. Lists are ranges of one array, in the order of a walk.
"""

import numpy as np
from numpy.typing import NDArray

from contrada.kernels.boxtree import BoxRow, Ints, Tree
from contrada.kernels.compiling import kernel

EVENT_WITHIN, EVENT_AROUND = 1, 2  # what the boxes must satisfy besides meeting


@kernel
def make_lists(tree: Tree, state: Ints, apart: NDArray[np.bool_], out: Ints) -> tuple[Ints, Ints]:
    """Write the items that hold apart in walking order; return each node's range of them."""
    count, level, _, child, _, _ = tree
    first = np.zeros(state[1], np.int64)
    last = np.zeros(state[1], np.int64)
    stack = np.empty(2 * state[1] + 2, np.int64)
    stack[0] = state[0]
    top, written = 1, 0
    while top > 0:
        top -= 1
        node = stack[top]
        if node < 0:  # all below this node are written
            last[-node - 1] = written
            continue
        first[node] = written
        stack[top] = -node - 1
        top += 1
        for i in range(count[node]):
            if level[node] > 0:
                stack[top] = child[node, i]
                top += 1
            elif apart[child[node, i]]:
                out[written] = child[node, i]
                written += 1
    return first, last


@kernel
def search(
    tree: Tree,
    state: Ints,
    event: BoxRow,
    needs: NDArray[np.uint8],
    apart: NDArray[np.bool_],
    lists: Ints,
    first: Ints,
    last: Ints,
) -> tuple[Ints, Ints, int]:
    """Find the items to evaluate, the items that lie apart and may hold, and the nodes visited."""
    count, level, _, child, box, kind = tree
    near = np.empty(len(needs), np.int64)
    far = np.empty(len(lists), np.int64)
    near_count = far_count = visited = 0
    stack = np.empty(state[1] + 1, np.int64)
    stack[0] = state[0]
    top = 1
    while top > 0:
        top -= 1
        node = stack[top]
        visited += 1
        for i in range(count[node]):
            item = child[node, i]
            west, south, east, north = box[node, i]
            meets = (
                west <= event[2] and east >= event[0] and south <= event[3] and north >= event[1]
            )
            around = (
                west <= event[0] and east >= event[2] and south <= event[1] and north >= event[3]
            )
            if level[node] > 0:
                if not meets:
                    for k in range(first[item], last[item]):
                        far[far_count] = lists[k]
                        far_count += 1
                elif around or kind[node, i] < 0 or not kind[node, i] & EVENT_WITHIN:
                    stack[top] = item
                    top += 1
            elif not meets:
                if apart[item]:
                    far[far_count] = item
                    far_count += 1
            else:
                within = (
                    west >= event[0]
                    and east <= event[2]
                    and south >= event[1]
                    and north <= event[3]
                )
                need = needs[item]
                if (around or not need & EVENT_WITHIN) and (within or not need & EVENT_AROUND):
                    near[near_count] = item
                    near_count += 1
    return near[:near_count], far[:far_count], visited
