"""Three ways to divide the children of an overfull node (DR-tree paper, section 3.2).

Each makes two groups of at least `least` entries. Linear and quadratic are Guttman's (SIGMOD
1984); R* chooses the axis by margins and the place by overlap (Beckmann et al., SIGMOD 1990).
Its forced reinsertion is left to the reorganisation of the tree.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate

from contrada.overlay.boxes import Box, Space, join
from contrada.overlay.messages import Entry

Groups = tuple[list[Entry], list[Entry]]
Split = Callable[[Sequence[Entry], int, Space], Groups]


def split_linear(entries: Sequence[Entry], least: int, space: Space) -> Groups:
    """Part the two that lie farthest apart for their dimension; each other goes where it fits."""
    first, second = _pick_farthest(entries, space)
    return _distribute(entries, first, second, least, space, _in_order)


def split_quadratic(entries: Sequence[Entry], least: int, space: Space) -> Groups:
    """Part the two that waste most together; the most decided of the others goes first."""
    pairs = [(i, j) for j in range(len(entries)) for i in range(j)]
    first, second = max(pairs, key=lambda pair: _waste(entries[pair[0]], entries[pair[1]], space))
    return _distribute(entries, first, second, least, space, _most_decided)


def split_rstar(entries: Sequence[Entry], least: int, space: Space) -> Groups:
    """Cut along the axis of least margin where the two boxes overlap least."""
    k = space.dimensions
    orders = [_sort(entries, side, k) for side in range(2 * k)]
    cuts = [_cut(order, least) for order in orders]
    margins = [sum(space.size(a)[1] + space.size(b)[1] for _, a, b in cut) for cut in cuts]
    axis = min(range(k), key=lambda i: margins[i] + margins[i + k])
    choices = [(side, *cut) for side in (axis, axis + k) for cut in cuts[side]]
    side, at, _, _ = min(choices, key=lambda choice: _overlap(choice[2], choice[3], space))
    return orders[side][:at], orders[side][at:]


def _sort(entries: Sequence[Entry], side: int, dimensions: int) -> list[Entry]:
    """Sort by one side of the boxes: a low or a high."""
    return sorted(entries, key=lambda e: (e.box[side], e.box[side % dimensions], e.id))


SPLITS: Mapping[str, Split] = {
    "linear": split_linear,
    "quadratic": split_quadratic,
    "rstar": split_rstar,
}


def _pick_farthest(entries: Sequence[Entry], space: Space) -> tuple[int, int]:
    """Choose the pair with the greatest distance along any dimension, for the width of all."""
    k, universe = space.dimensions, space.universe
    best, chosen = (-2.0, 0), (0, 1)
    for i in range(k):
        lows = [max(e.box[i], universe[i]) for e in entries]
        highs = [min(e.box[i + k], universe[i + k]) for e in entries]
        highest_low = max(range(len(entries)), key=lambda n: lows[n])
        lowest_high = min(
            (n for n in range(len(entries)) if n != highest_low), key=lambda n: highs[n]
        )
        width = max(highs) - min(lows)
        distance = (lows[highest_low] - highs[lowest_high]) / width if width > 0 else -1.0
        if (distance, -i) > best:
            best, chosen = (distance, -i), (lowest_high, highest_low)
    return chosen


def _waste(a: Entry, b: Entry, space: Space) -> tuple[float, float]:
    volume, margin = space.size(join(a.box, b.box))
    (volume_a, margin_a), (volume_b, margin_b) = space.size(a.box), space.size(b.box)
    return volume - volume_a - volume_b, margin - margin_a - margin_b


def _distribute(
    entries: Sequence[Entry],
    first: int,
    second: int,
    least: int,
    space: Space,
    choose: "Callable[[list[Entry], Box, Box, Space], int]",
) -> Groups:
    groups = [entries[first]], [entries[second]]
    boxes = [entries[first].box, entries[second].box]
    rest = [entry for i, entry in enumerate(entries) if i not in (first, second)]
    while rest:
        for group in groups:
            if len(group) + len(rest) <= least:
                group.extend(rest)
                return groups
        entry = rest.pop(choose(rest, boxes[0], boxes[1], space))
        sizes = [
            (*space.growth(box, entry.box), len(group))
            for box, group in zip(boxes, groups, strict=True)
        ]
        side = 0 if sizes[0] <= sizes[1] else 1
        groups[side].append(entry)
        boxes[side] = join(boxes[side], entry.box)
    return groups


def _in_order(rest: list[Entry], a: Box, b: Box, space: Space) -> int:
    return 0


def _most_decided(rest: list[Entry], a: Box, b: Box, space: Space) -> int:
    def preference(i: int) -> tuple[float, float]:
        to_a, to_b = space.growth(a, rest[i].box), space.growth(b, rest[i].box)
        return abs(to_a[0] - to_b[0]), abs(to_a[1] - to_b[1])

    return max(range(len(rest)), key=preference)


def _cut(order: Sequence[Entry], least: int) -> list[tuple[int, Box, Box]]:
    """List the places where an order may be cut, and the boxes on both sides."""
    lefts = list(accumulate((e.box for e in order), join))
    rights = list(accumulate((e.box for e in reversed(order)), join))[::-1]
    return [(at, lefts[at - 1], rights[at]) for at in range(least, len(order) - least + 1)]


def _overlap(a: Box, b: Box, space: Space) -> tuple[float, float]:
    k = space.dimensions
    lows, highs = map(max, a[:k], b[:k]), map(min, a[k:], b[k:])
    shared = (*lows, *highs)
    volume = space.size(shared)[0]
    return volume, space.size(a)[0] + space.size(b)[0]
