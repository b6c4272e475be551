"""Area matrices: how much of one cell list's interior and boundary lies in another's.

A matrix is four areas in a row, II, IB, BI, BB: the event's kind first, then the subscription's. A
match of two cells has the area of the smaller one.
"""

import numpy as np
from numpy.typing import NDArray

from contrada.arrays import SmallIntegers
from contrada.kernels.boxtree import Ints
from contrada.kernels.compiling import kernel
from contrada.kernels.quadtree import size_of, start_of

CellKinds = NDArray[np.uint8]


@kernel
def find_parents(cells: Ints, level: int) -> SmallIntegers:
    """Return for each of some sorted, distinct cells the smallest other around it; -1 for none."""
    parents = np.full(len(cells), -1, np.int32)
    for i in range(1, len(cells)):
        around = i - 1
        while around >= 0 and _end_of(cells[around], level) <= start_of(cells[i]):
            around = parents[around]
        parents[i] = around
    return parents


@kernel
def _end_of(cell: int, level: int) -> int:
    return start_of(cell) + size_of(cell, level)


@kernel
def match_cells(
    event: Ints,
    cells: Ints,
    parents: SmallIntegers,
    posting_starts: Ints,
    shapes: SmallIntegers,
    kinds: CellKinds,
    level: int,
    slots: SmallIntegers,
) -> tuple[Ints, Ints]:
    """Match an event's cell list with all shapes; return those that it touches, and matrices.

    Cell i is in the lists of `shapes[posting_starts[i] : posting_starts[i + 1]]`. `cells` are keys
    of kind 0. Every cell of the event finds the cells around it from the one before it on the
    curve, parent by parent, and the cells within it in a row behind. `slots` (by shape) is
    scratch, all zero before and after.
    """
    touched = np.empty(16, np.int64)
    matrices = np.zeros((16, 4), np.int64)
    count = at = 0
    for key in event:
        row = 2 * (key & 1)
        cell = key & ~1
        at = _first_after(cells, cell, at)
        end = start_of(cell) + size_of(cell, level)
        around = at - 1
        while around >= 0 and _end_of(cells[around], level) <= start_of(cell):
            around = parents[around]
        inside = at
        while True:
            if around >= 0:
                i, area = around, size_of(cell, level)
                around = parents[around]
            elif inside < len(cells) and start_of(cells[inside]) < end:
                i, area = inside, size_of(cells[inside], level)
                inside += 1
            else:
                break
            for k in range(posting_starts[i], posting_starts[i + 1]):
                shape = shapes[k]
                if slots[shape] == 0:
                    if count == len(touched):
                        touched, matrices = _grown(touched, matrices)
                    touched[count] = shape
                    count += 1
                    slots[shape] = count
                matrices[slots[shape] - 1, row + kinds[k]] += area
    for i in range(count):
        slots[touched[i]] = 0
    return touched[:count], matrices[:count]


@kernel
def _first_after(cells: Ints, cell: int, at: int) -> int:
    """Find the first cell that comes after a given one, looking from `at` on in growing steps."""
    step = 1
    while at + step <= len(cells) and cells[at + step - 1] <= cell:
        at += step
        step *= 2
    high = min(at + step - 1, len(cells))
    while at < high:
        middle = (at + high) // 2
        if cells[middle] <= cell:
            at = middle + 1
        else:
            high = middle
    return at


@kernel
def _grown(touched: Ints, matrices: Ints) -> tuple[Ints, Ints]:
    more = np.empty(2 * len(touched), np.int64)
    more[: len(touched)] = touched
    larger = np.zeros((2 * len(touched), 4), np.int64)
    larger[: len(touched)] = matrices
    return more, larger


@kernel
def relate_lists(event: Ints, subscription: Ints, level: int) -> Ints:
    """Return the matrix of two cell lists, walking along both."""
    matrix = np.zeros(4, np.int64)
    i = k = 0
    while i < len(event) and k < len(subscription):
        end, other_end = _end_of(event[i], level), _end_of(subscription[k], level)
        start = max(start_of(event[i]), start_of(subscription[k]))
        if start < min(end, other_end):
            area = min(end, other_end) - start
            matrix[2 * (event[i] & 1) + (subscription[k] & 1)] += area
        if end <= other_end:
            i += 1
        if other_end <= end:
            k += 1
    return matrix
