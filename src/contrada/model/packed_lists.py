"""Lists of unequal length as arrays: the members of all one after another, and where each begins.

The last number of such starts is where the last list ends, so that there is one more of them than
of lists.
"""

from collections.abc import Iterator
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from contrada.arrays import Mask, Positions

Item = TypeVar("Item", bound=np.generic)

_AT_ONCE = 500_000  # members: NumPy lets no other thread run while it repeats or reduces
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # odd, and its bits look random


def starts_of(counts: NDArray[np.integer]) -> Positions:
    """Where lists of these lengths begin, one after another."""
    starts = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=starts[1:])
    return starts


def repeat(values: NDArray[Item], counts: NDArray[np.integer]) -> NDArray[Item]:
    """Repeat each value so many times, as `np.repeat` does, in steps between which others run."""
    starts = starts_of(counts)
    if starts[-1] + len(counts) <= _AT_ONCE:
        return np.repeat(values, counts)
    repeated = np.empty(starts[-1], values.dtype)
    for first, last in list_steps(counts + 1, _AT_ONCE):
        part = np.repeat(values[first:last], counts[first:last])
        repeated[starts[first] : starts[last]] = part
    return repeated


def list_steps(weights: NDArray[np.integer], weight_max: int) -> Iterator[tuple[int, int]]:
    """Cut a list into pieces that weigh no more than so much together, or are one member alone."""
    ends, first = np.cumsum(weights), 0
    while first < len(ends):
        before = ends[first] - weights[first]
        last = max(first + 1, int(np.searchsorted(ends, before + weight_max, "right")))
        yield first, last
        first = last


def reduce_lists(
    reduce: np.ufunc, members: NDArray[Item], begins: NDArray[np.integer]
) -> NDArray[Item]:
    """Reduce the members from each beginning to the next, as `ufunc.reduceat` does, in steps.

    There is a member between each two of them.
    """
    reduced = np.empty((len(begins), *members.shape[1:]), members.dtype)
    ends = np.append(begins[1:], len(members))
    for first, last in list_steps(ends - begins, _AT_ONCE):
        own = members[begins[first] : ends[last - 1]]
        reduced[first:last] = reduce.reduceat(own, begins[first:last] - begins[first])
    return reduced


def take_lists(starts: Positions, numbers: Positions) -> tuple[Positions, Positions]:
    """Take some lists: where they begin then, and where their members have been before."""
    begins = starts[numbers]
    counts = starts[numbers + 1] - begins
    taken = starts_of(counts)
    members = np.empty(taken[-1], np.int64)
    shifts = begins - taken[:-1]
    for first, last in list_steps(counts + 1, _AT_ONCE):
        own = slice(taken[first], taken[last])
        members[own] = np.repeat(shifts[first:last], counts[first:last])
        members[own] += np.arange(own.start, own.stop)
    return taken, members


def join_lists(pieces: list[Positions]) -> Positions:
    """Where the lists of several pieces begin, once their members follow each other."""
    return starts_of(np.concatenate([np.diff(starts) for starts in pieces]))


def split_bytes(members: NDArray[np.uint8], starts: Positions) -> NDArray[np.object_]:
    """Copy lists of bytes, one to a cell."""
    split = np.empty(len(starts) - 1, object)
    for number, begin in enumerate(starts[:-1].tolist()):
        split[number] = members[begin : starts[number + 1]].tobytes()
    return split


def are_equal_lists(
    starts: Positions, members: NDArray[np.generic], a: Positions, b: Positions
) -> Mask:
    """Which lists of `a` have as many members as those of `b`, and the same ones in one order."""
    equal: Mask = starts[a + 1] - starts[a] == starts[b + 1] - starts[b]
    compared = np.flatnonzero(equal)
    taken, of_a = take_lists(starts, a[compared])
    _, of_b = take_lists(starts, b[compared])
    differing = np.nonzero(members.take(of_a, axis=0) != members.take(of_b, axis=0))[0]
    equal[compared[np.searchsorted(taken, differing, "right") - 1]] = False
    return equal


def digest_lists(
    starts: Positions, members: NDArray[np.uint64], numbers: Positions
) -> NDArray[np.uint64]:
    """Numbers for some lists of tuples: equal for equal lists, for others hardly ever by chance.

    They are made of a list's length, first and middle member and sum. All other lists are empty.
    """
    begins, ends = starts[numbers], starts[numbers + 1]
    digests: NDArray[np.uint64] = (ends - begins).view(np.uint64)
    for words in members.T:
        sums = reduce_lists(np.add, words, begins)
        for word in (words[begins], words[(begins + ends) // 2], sums):
            digests ^= word
            digests *= _MULTIPLIER
            digests ^= digests >> np.uint64(32)
    return digests


def find_first_equals(keys: NDArray[np.generic]) -> Positions:
    """For each key, where an equal one stands first."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    begins = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])[: len(keys)])
    firsts = np.empty(len(keys), np.int64)
    firsts[order] = repeat(order[begins], np.diff(begins, append=len(keys)))
    return firsts
