"""Pairs of pieces of two geometries that may be within a distance: found by trees of balls.

A piece is a ball around its middle, and so are eight neighbours together, eight such balls, and so
on. Two balls that lie clearly apart, or clearly together, decide all pairs of their pieces.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from contrada.arrays import Floats, Positions
from contrada.limits import DISTANCE_PIECES_MAX

_TOGETHER = 8
_PAIRS_AT_ONCE = 4_096  # of balls, each of which has 64 pairs of smaller ones in it
_VISITS_EACH = 16  # pairs of balls for each piece: in proportion to the size
_BITS = 21  # of each of three coordinates in one number
_SPREADS = (
    (32, 0x1F00000000FFFF),
    (16, 0x1F0000FF0000FF),
    (8, 0x100F00F00F00F00F),
    (4, 0x10C30C30C30C30C3),
    (2, 0x1249249249249249),
)

Level = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Balls:
    """Balls of one size class; `members` has a row for each, of smaller balls or of pieces."""

    centres: Floats
    radii: Floats
    members: Positions


@dataclass(frozen=True, slots=True)
class BallPairs:
    """Some pairs that may be within the distance, by number, and what is known beside them."""

    left: Positions
    right: Positions
    is_within: bool = False
    """Whether some pair is within the distance for sure: then none is listed."""
    is_all: bool = True
    """Whether no pair has been left out because there were too many."""


def find_pairs(
    places: tuple[Floats, Floats], halves: tuple[Floats, Floats], near_m: float, far_m: float
) -> Iterator[BallPairs]:
    """Yield the pairs of pieces that are not clearly apart, some at a time.

    Pieces are given by their middles in space and half their lengths.
    """
    trees = [_grow(*side) for side in zip(places, halves, strict=True)]
    visits = max(DISTANCE_PIECES_MAX, _VISITS_EACH * sum(len(side) for side in halves))
    levels = len(trees[0]) - 1, len(trees[1]) - 1
    top = np.zeros(1, np.int64)
    pending = [(levels, top, top)]
    none = np.zeros(0, np.int64)
    while pending:
        (ours, theirs), left, right = pending.pop()
        balls = trees[0][ours], trees[1][theirs]
        away = balls[0].centres[left] - balls[1].centres[right]
        chords = np.sqrt((away * away).sum(axis=1))
        both = balls[0].radii[left] + balls[1].radii[right]
        is_leaf = ours == theirs == 0
        if (chords + (0 if is_leaf else both) <= near_m).any():
            yield BallPairs(none, none, is_within=True)
            return
        is_open = chords - both <= far_m
        left, right = left[is_open], right[is_open]
        if is_leaf:
            if len(left):
                yield BallPairs(left, right)
            continue
        visits -= len(left)
        if visits < 0:
            yield BallPairs(none, none, is_all=False)
            return
        for start in range(0, len(left), _PAIRS_AT_ONCE):
            own = slice(start, start + _PAIRS_AT_ONCE)
            pending.append(_open(trees, (ours, theirs), left[own], right[own]))


def _open(
    trees: list[list[Balls]], level: Level, left: Positions, right: Positions
) -> tuple[Level, Positions, Positions]:
    """Take the smaller balls of the larger one of each pair, or of both."""
    ours, theirs = level
    firsts = trees[0][ours].members[left] if ours >= theirs else left[:, None]
    seconds = trees[1][theirs].members[right] if theirs >= ours else right[:, None]
    shape = (len(left), firsts.shape[1], seconds.shape[1])
    firsts = np.broadcast_to(firsts[:, :, None], shape).ravel()
    seconds = np.broadcast_to(seconds[:, None, :], shape).ravel()
    is_there = (firsts >= 0) & (seconds >= 0)
    below = (ours - (ours >= theirs), theirs - (theirs >= ours))
    return below, firsts[is_there], seconds[is_there]


def _grow(places: Floats, halves: Floats) -> list[Balls]:
    """Put pieces into balls, and balls into larger ones, until there is one."""
    levels = [Balls(places, halves, np.zeros((0, _TOGETHER), np.int64))]
    order = np.argsort(_curve(places), kind="stable")
    while len(order) > 1:
        members = np.full(-(-len(order) // _TOGETHER) * _TOGETHER, -1, np.int64)
        members[: len(order)] = order
        levels.append(_enclose(levels[-1], members.reshape(-1, _TOGETHER)))
        order = np.arange(len(levels[-1].radii))
    return levels


def _enclose(inner: Balls, members: Positions) -> Balls:
    """Put a ball around the members of each row."""
    known = np.where(members < 0, members[:, :1], members)
    centres = inner.centres[known]
    middles = (centres.min(axis=1) + centres.max(axis=1)) / 2
    away = centres - middles[:, None]
    reaches = np.sqrt((away * away).sum(axis=2)) + inner.radii[known]
    return Balls(middles, reaches.max(axis=1), members)


def _curve(places: Floats) -> NDArray[np.uint64]:
    """Number places along a curve on which neighbours are mostly near each other."""
    low = places.min(axis=0)
    size = max(float((places.max(axis=0) - low).max()), 1.0)
    cells = ((places - low) / size * (2**_BITS - 1)).astype(np.uint64)
    numbers = np.zeros(len(places), np.uint64)
    for axis in range(3):
        spread = cells[:, axis]
        for shift, mask in _SPREADS:
            spread = (spread | (spread << np.uint64(shift))) & np.uint64(mask)
        numbers |= spread << np.uint64(axis)
    return numbers
