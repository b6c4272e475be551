"""The lookup table of the distributed AHS model: which partition is in charge of which cells.

After section 4 of the AHS paper, with what it leaves to future work: weights that also count where
events fall, and replicas. The table's prefixes tile the universe; what lies outside it has a
partition of its own, so that every geometry has somewhere to go. A cell is an interval on the
Morton curve of the table's level.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush

import numpy as np
from numpy.typing import NDArray

from contrada.arrays import Box, Integers, Positions
from contrada.matching.grid import CellLists, Grid
from contrada.model.packed_lists import join_lists, take_lists


@dataclass(frozen=True, slots=True)
class LookupTable:
    """Prefix p is the cell of level `levels[p]` that starts at `starts[p]`; together they tile the
    universe, in order. Its events are dealt out among the partitions `replicas[p]`.

    `outside` is in charge of what no prefix covers.
    """

    universe: Box
    level: int
    starts: Positions
    levels: Integers
    replicas: tuple[tuple[int, ...], ...]
    outside: int

    @property
    def partition_count(self) -> int:
        """Count the partitions, the one outside the universe among them."""
        return self.outside + 1

    @property
    def key(self) -> bytes:
        """The key of the table: equal keys mean equal tables."""
        arrays = b"".join(array.tobytes() for array in (self.starts, self.levels))
        return repr((self.universe, self.level, self.replicas)).encode() + arrays

    def grid(self) -> Grid:
        """Return the quadtree whose cells the table knows."""
        return Grid(self.level, self.universe)

    def select(self, cells: CellLists) -> "PrefixLists":
        """Select the prefixes that each geometry touches, from its cells (Algorithm 1)."""
        which, prefixes = self._overlay(cells)
        return make_prefix_lists(cells.owners()[which], prefixes, len(cells))

    def cut(self, cells: CellLists) -> tuple[CellLists, Positions]:
        """Cut cells so that each lies in one prefix; return them and the prefix of each."""
        which, prefixes = self._overlay(cells)
        levels = self.levels[prefixes]
        pieces = self.starts[prefixes] << 6 | levels << 1 | cells.kinds[which]
        keys = np.where(cells.levels[which] < levels, pieces, cells.keys[which])
        list_starts = np.searchsorted(which, cells.list_starts).astype(np.int64)
        return CellLists(cells.level, keys, list_starts), prefixes

    def _overlay(self, cells: CellLists) -> tuple[Positions, Positions]:
        """List which cells lie, perhaps in part, in which prefixes, in the order of the cells."""
        first = np.searchsorted(self.starts, cells.starts, side="right") - 1
        last = np.searchsorted(self.starts, cells.starts + cells.sizes, side="left")
        which = np.repeat(np.arange(len(first)), last - first)
        offset = np.arange(len(which)) - np.repeat(
            np.cumsum(last - first) - (last - first), last - first
        )
        return which, first[which] + offset

    def refined(self, level: int) -> "LookupTable":
        """Return the same prefixes in a table that knows finer cells."""
        starts = self.starts << 2 * (level - self.level)
        return replace(self, level=level, starts=starts)


@dataclass(frozen=True, slots=True)
class PrefixLists:
    """The prefixes of some geometries, those of geometry i from `list_starts[i]` on, sorted."""

    list_starts: Positions
    prefixes: Integers

    @property
    def nbytes(self) -> int:
        """Count the bytes of both arrays."""
        return self.list_starts.nbytes + self.prefixes.nbytes

    def take(self, numbers: Positions) -> "PrefixLists":
        """Return the prefixes of some geometries, in the order of their numbers."""
        list_starts, members = take_lists(self.list_starts, numbers)
        return PrefixLists(list_starts, self.prefixes[members])


def join_prefix_lists(pieces: Sequence[PrefixLists]) -> PrefixLists:
    """Put the prefixes of several groups of geometries one after another."""
    list_starts = join_lists([piece.list_starts for piece in pieces])
    return PrefixLists(list_starts, np.concatenate([piece.prefixes for piece in pieces]))


def make_prefix_lists(owners: Positions, prefixes: Integers, count: int) -> PrefixLists:
    """Sort prefixes by owner, each once."""
    width = int(prefixes.max(initial=0)) + 1
    keys = np.unique(owners * width + prefixes)
    found, chosen = np.divmod(keys, width)
    return PrefixLists(np.searchsorted(found, np.arange(count + 1)).astype(np.int64), chosen)


@dataclass(frozen=True, slots=True)
class Weights:
    """How heavy each cell of one level is: `weights[i]` for the cell `codes[i]`, sorted by code."""

    level: int
    codes: Integers
    weights: NDArray[np.float64]

    def total(self) -> float:
        """Sum all weights."""
        return float(self.weights.sum())


def weigh(level: int, cells: dict[int, int], events: dict[int, int]) -> Weights:
    """Weigh cells in units of subscriptions' cells: half by those, half by where events fall.

    Both are counts by code. Without a sample of events the cells alone count.
    """
    codes = np.array(sorted(cells.keys() | events.keys()), np.int64)
    held = np.array([cells.get(code, 0) for code in codes.tolist()], float)
    fallen = np.array([events.get(code, 0) for code in codes.tolist()], float)
    if not fallen.any() or not held.any():
        return Weights(level, codes, held + fallen)
    return Weights(level, codes, (held + fallen * held.sum() / fallen.sum()) / 2)


def make_lookup_table(
    universe: Box, weights: Weights, partition_count: int, theta: float | None = None
) -> LookupTable:
    """Split the universe where a prefix weighs more than θ, and pack the prefixes.

    θ is a quarter of a partition's fair share unless stated. A prefix of the finest level that is
    still heavier than a fair share gets replicas.
    """
    fair = weights.total() / partition_count
    prefixes = split(weights, fair / 4 if theta is None else theta)
    heavy = [weight for _, _, weight in prefixes]
    replicas = pack(heavy, partition_count, fair)
    return LookupTable(
        universe,
        weights.level,
        np.array([start for start, _, _ in prefixes], np.int64),
        np.array([level for _, level, _ in prefixes], np.int64),
        replicas,
        outside=partition_count,
    )


def split(weights: Weights, theta: float) -> list[tuple[int, int, float]]:
    """Tile the universe with prefixes: start, level and weight of each, in order.

    A prefix heavier than θ is split in four, down to the level of the weights.
    """
    sums = np.concatenate([[0.0], np.cumsum(weights.weights)])
    found: list[tuple[int, int, float]] = []
    pending = [(0, 0)]
    while pending:
        start, level = pending.pop()
        size = 4 ** (weights.level - level)
        first, last = np.searchsorted(weights.codes, [start, start + size])
        weight = float(sums[last] - sums[first])
        if weight > theta and level < weights.level:
            quarter = size // 4
            pending += [(start + i * quarter, level + 1) for i in (3, 2, 1, 0)]
        else:
            found.append((start, level, weight))
    return found


def pack(heavy: Sequence[float], partition_count: int, fair: float) -> tuple[tuple[int, ...], ...]:
    """Deal prefixes out among partitions, the heaviest first, each to the lightest partition.

    One heavier than a fair share is dealt out as often as it has shares.
    """
    parts = [
        (weight / copies, number)
        for number, weight in enumerate(heavy)
        for copies in [copies_of(weight, fair, partition_count)]
        for _ in range(copies)
    ]
    lightest = [(0.0, partition) for partition in range(partition_count)]
    heapify(lightest)
    replicas: list[list[int]] = [[] for _ in heavy]
    for weight, number in sorted(parts, key=lambda part: (-part[0], part[1])):
        passed = []
        while (load := heappop(lightest))[1] in replicas[number]:
            passed.append(load)
        replicas[number].append(load[1])
        for entry in (*passed, (load[0] + weight, load[1])):
            heappush(lightest, entry)
    return tuple(tuple(sorted(chosen)) for chosen in replicas)


def copies_of(weight: float, fair: float, partition_count: int) -> int:
    """Return among how many partitions a prefix of some weight is dealt out."""
    return min(max(1, int(np.ceil(weight / fair))) if fair > 0 else 1, partition_count)


def loads(table: LookupTable, weights: Weights) -> NDArray[np.float64]:
    """Sum the weight of each partition."""
    found = np.zeros(table.partition_count)
    owner = np.searchsorted(table.starts, weights.codes, side="right") - 1
    by_prefix = np.bincount(owner, weights.weights, len(table.starts))
    for prefix, chosen in enumerate(table.replicas):
        found[list(chosen)] += by_prefix[prefix] / len(chosen)
    return found
