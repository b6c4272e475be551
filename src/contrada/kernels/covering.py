"""The cells that edges touch, and the larger ones that they enclose.

An edge that comes within `slack` of a cell, which covers all rounding, touches it; a cell that
shares only a border or a corner with an edge is touched too. All tests are the same for every
level but for a power of two, so that the cells of a coarser level are those around the finer ones.
"""

import numpy as np

from contrada.arrays import Floats, SmallIntegers
from contrada.kernels.boxtree import Ints
from contrada.kernels.compiling import kernel
from contrada.kernels.quadtree import BOUNDARY, INTERIOR, grown, interleave, make_key

_X, _Y, _CODE, _CHILD, _FIRST, _MIDDLE, _LAST, _PARITY = range(8)  # what a frame holds


@kernel
def cover(
    edges: Floats, slack: float, level: int, is_area: bool, prefix_start: int, prefix_level: int
) -> Ints:
    """Return the keys of the cells below a prefix that edges touch, and of those they enclose.

    Closed rings of an area (all of its parts and holes) touch BOUNDARY cells of the finest level
    and enclose INTERIOR ones, each as large as it can be; a line touches INTERIOR cells. A cell
    that is larger than the prefix is cut to it. Keys come sorted.

    The walk descends from the smallest cell around all edges. A frame (one for each level) has in
    `arena` the edges that touch its cell, then those that end beside it, to its west; `parity`
    counts the edges that pass it by on the west side. So an untouched cell knows where it lies.
    """
    prefix_end = prefix_start + (1 << (2 * (level - prefix_level)))
    x, y, top = _smallest_cell(edges, slack, level)
    code = interleave(x, y)
    touched_kind = BOUNDARY if is_area else INTERIOR
    keys, count = np.empty(64, np.int64), 0
    if top == level:
        keys[0] = make_key(code, level, touched_kind)
        return keys[: 1 if prefix_start <= code < prefix_end else 0]
    arena, frames = _start_frames(len(edges), top, level)
    _set_frame(frames, top, x, y, code, 0, len(edges), len(edges), 0)
    depth = top
    while depth >= top:
        child = frames[depth, _CHILD]
        if child == 4:
            depth -= 1
            continue
        frames[depth, _CHILD] = child + 1
        shift = level - depth - 1
        start = frames[depth, _CODE] + (child << (2 * shift))
        if start >= prefix_end or start + (1 << (2 * shift)) <= prefix_start:
            continue
        x = frames[depth, _X] + ((child & 1) << shift)
        y = frames[depth, _Y] + ((child >> 1) << shift)
        first = frames[depth, _LAST]
        size = float(1 << shift)
        middle = _pass_down(edges, arena, frames, depth, float(x), float(y), size, slack)
        is_touched = middle > first
        if is_touched and shift == 0:
            key = make_key(start, level, touched_kind)
        elif is_touched or is_area:
            last, parity = _look_west(
                edges, arena, frames, depth, middle, float(x), float(y), size, is_area
            )
            if is_touched:
                depth += 1
                _set_frame(frames, depth, x, y, start, first, middle, last, parity)
                continue
            if not _is_inside(edges, arena, middle, last, parity, y + size / 2):
                continue
            key = make_key(max(start, prefix_start), max(depth + 1, prefix_level), INTERIOR)
        else:
            continue
        if count == len(keys):
            keys = grown(keys)
        keys[count] = key
        count += 1
    return keys[:count]


@kernel
def _smallest_cell(edges: Floats, slack: float, level: int) -> tuple[int, int, int]:
    """Find the smallest cell around all that edges touch: its column, row and level."""
    last = (1 << level) - 1
    west = south = float(last + 1)
    east = north = 0.0
    for i in range(len(edges)):
        west = min(west, edges[i, 0], edges[i, 2])
        east = max(east, edges[i, 0], edges[i, 2])
        south = min(south, edges[i, 1], edges[i, 3])
        north = max(north, edges[i, 1], edges[i, 3])
    left, right = int(max(west - slack, 0.0)), min(int(east + slack), last)
    low, high = int(max(south - slack, 0.0)), min(int(north + slack), last)
    shift = 0
    while left >> shift != right >> shift or low >> shift != high >> shift:
        shift += 1
    return (left >> shift) << shift, (low >> shift) << shift, level - shift


@kernel
def _start_frames(edge_count: int, top: int, level: int) -> tuple[SmallIntegers, Ints]:
    """Make room for the frames of all levels from the top on, and for their edges: first all."""
    arena = np.empty((level - top + 1) * edge_count, np.int32)
    arena[:edge_count] = np.arange(edge_count)
    return arena, np.zeros((level, 8), np.int64)


@kernel
def _set_frame(
    frames: Ints,
    depth: int,
    x: int,
    y: int,
    code: int,
    first: int,
    middle: int,
    last: int,
    parity: int,
) -> None:
    frames[depth, _X] = x
    frames[depth, _Y] = y
    frames[depth, _CODE] = code
    frames[depth, _CHILD] = 0
    frames[depth, _FIRST] = first
    frames[depth, _MIDDLE] = middle
    frames[depth, _LAST] = last
    frames[depth, _PARITY] = parity


@kernel
def _pass_down(
    edges: Floats,
    arena: SmallIntegers,
    frames: Ints,
    depth: int,
    x: float,
    y: float,
    size: float,
    slack: float,
) -> int:
    """Write a frame's edges that touch a cell within it behind the frame's; return their end."""
    top = frames[depth, _LAST]
    for k in range(frames[depth, _FIRST], frames[depth, _MIDDLE]):
        if touches(edges, arena[k], x, y, size, slack):
            arena[top] = arena[k]
            top += 1
    return top


@kernel
def _look_west(
    edges: Floats,
    arena: SmallIntegers,
    frames: Ints,
    depth: int,
    middle: int,
    x: float,
    y: float,
    size: float,
    is_area: bool,
) -> tuple[int, int]:
    """Write the edges that end beside a cell, to its west, behind those that touch it.

    Returns their end, and the parity of the edges that pass the cell by on the west side.
    """
    top, parity = middle, frames[depth, _PARITY]
    if not is_area:
        return top, parity
    touching = frames[depth, _LAST]
    for k in range(frames[depth, _FIRST], frames[depth, _LAST]):
        i = arena[k]
        if touching < middle and arena[touching] == i:
            touching += 1
            continue
        low, high = min(edges[i, 1], edges[i, 3]), max(edges[i, 1], edges[i, 3])
        if low == high or high <= y or low >= y + size:
            continue
        if k < frames[depth, _MIDDLE] and _is_east(
            edges, i, max(low, y), min(high, y + size), x + size / 2
        ):
            continue
        if low <= y and high >= y + size:
            parity ^= 1
        else:
            arena[top] = i
            top += 1
    return top, parity


@kernel
def touches(edges: Floats, i: int, x: float, y: float, size: float, slack: float) -> bool:
    """Whether an edge comes within `slack` of the cell with this corner and side."""
    half = size / 2
    reach = half + slack
    u, v = edges[i, 0] - (x + half), edges[i, 1] - (y + half)
    du, dv = edges[i, 2] - edges[i, 0], edges[i, 3] - edges[i, 1]
    return (
        (min(u, u + du) <= reach)
        & (max(u, u + du) >= -reach)
        & (min(v, v + dv) <= reach)
        & (max(v, v + dv) >= -reach)
        & (abs(dv * u - du * v) <= reach * (abs(du) + abs(dv)))
    )


@kernel
def _is_east(edges: Floats, i: int, low: float, high: float, x: float) -> bool:
    """Whether an edge passes east of x, halfway between two heights."""
    share = ((low + high) / 2 - edges[i, 1]) / (edges[i, 3] - edges[i, 1])
    return edges[i, 0] + share * (edges[i, 2] - edges[i, 0]) > x


@kernel
def _is_inside(
    edges: Floats, arena: SmallIntegers, first: int, last: int, parity: int, y: float
) -> bool:
    """Whether a cell whose middle is at height y lies inside: an odd number of edges west."""
    for k in range(first, last):
        if (edges[arena[k], 1] > y) != (edges[arena[k], 3] > y):
            parity ^= 1
    return parity == 1
