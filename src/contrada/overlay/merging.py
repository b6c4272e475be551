"""Fewer boxes in place of many: covered ones are dropped, near ones joined.

Boxes are rows of an array: the lows of all dimensions, then the highs; any side may be unbounded.
"""

from math import inf

import numpy as np
from numpy.typing import NDArray

BoxRows = NDArray[np.float64]

_BEYOND = 0.5  # an unbounded side counts as so much longer than all that are bounded
_EVENT_SIDE = 1 / 64  # of an ordinary event, as a share of all boxes
_NEAR_MAX = 512  # boxes of which the nearest two are looked for among all


def merge(rows: BoxRows, limit: int) -> BoxRows:
    """Drop what is covered, and join what is near until few enough are left."""
    rows = _drop_covered(rows)
    if len(rows) > _NEAR_MAX:
        rows = _join_along_curve(rows, _NEAR_MAX)
    if len(rows) > limit:
        rows = _join_nearest(rows, limit)
    return _drop_covered(rows)


def _drop_covered(rows: BoxRows) -> BoxRows:
    """Drop boxes that others cover: all of them, or of very many those that the largest cover."""
    k = rows.shape[1] // 2
    scaled = _scale(rows)
    rows = rows[np.argsort(-(scaled[:, k:] - scaled[:, :k]).sum(axis=1), kind="stable")]
    largest = len(rows) if len(rows) <= _NEAR_MAX else _NEAR_MAX // 8
    at = 0
    while at < min(len(rows), largest):
        covered = _are_covered(rows, rows[at])
        covered[at] = False
        at += 1 - int(covered[:at].sum())
        rows = rows[~covered]
    return rows


def _are_covered(rows: BoxRows, box: BoxRows) -> NDArray[np.bool_]:
    k = len(box) // 2
    is_within = np.concatenate([rows[:, :k] >= box[:k], rows[:, k:] <= box[k:]], axis=1)
    return np.asarray(is_within.all(axis=1))


def _scale(rows: BoxRows) -> BoxRows:
    """Bring boxes into the unit box of all their bounded sides; unbounded ones reach beyond it."""
    ends = rows.reshape(2 * len(rows), -1) / 2  # halves: a difference must not overflow
    is_bounded = np.isfinite(ends)
    low = np.min(ends, axis=0, where=is_bounded, initial=inf)
    width = np.max(ends, axis=0, where=is_bounded, initial=-inf) - low
    has_width = np.isfinite(width) & (width > 0)
    low, width = np.where(np.isfinite(low), low, 0.0), np.where(has_width, width, 1.0)
    return np.clip((ends - low) / width, -_BEYOND, 1 + _BEYOND).reshape(rows.shape)


def _join_along_curve(rows: BoxRows, count: int) -> BoxRows:
    """Join neighbours on a Morton curve, two by two; like with like as to unbounded sides."""
    kinds = np.unique(np.isinf(rows), axis=0, return_inverse=True)[1].ravel()
    order = np.lexsort((_places_on_curve(_scale(rows)), kinds))
    rows, kinds = rows[order], kinds[order]
    turn = 0
    while (excess := len(rows) - count) > 0:
        if (kinds[1:] != kinds[:-1]).all():
            kinds = np.zeros_like(kinds)
        first = _pair_up(kinds, turn % 2)
        turn += 1
        scaled = _scale(rows)
        cheapest = np.argsort(_waste(scaled[first], scaled[first + 1]), kind="stable")
        first = first[cheapest[: min(excess, -(-3 * len(first) // 4))]]  # the rest lie far apart
        rows[first] = _joined(rows[first], rows[first + 1])
        rows, kinds = np.delete(rows, first + 1, axis=0), np.delete(kinds, first + 1)
    return rows


def _places_on_curve(scaled: BoxRows) -> NDArray[np.int64]:
    """Return places on the curve of lows and highs, which keeps boxes of like place and size near.

    The cells of the kernels are of two dimensions; here each side of a box is one.
    """
    bits = min(16, 62 // scaled.shape[1])
    cells = ((scaled + _BEYOND) / (1 + 2 * _BEYOND) * (2**bits - 1)).astype(np.int64)
    places = np.zeros(len(scaled), np.int64)
    for bit in reversed(range(bits)):
        for column in cells.T:
            places = places << 1 | column >> bit & 1
    return places


def _pair_up(kinds: NDArray[np.int64], offset: int) -> NDArray[np.int64]:
    """Return the first of each pair of neighbours of one kind, from an offset on."""
    places = np.arange(len(kinds))
    is_start = np.append(True, kinds[1:] != kinds[:-1])
    since_start = places - np.maximum.accumulate(np.where(is_start, places, 0))
    return np.flatnonzero((since_start[:-1] % 2 == offset) & ~is_start[1:])


def _join_nearest(rows: BoxRows, limit: int) -> BoxRows:
    """Join the two boxes that waste least, again and again."""
    scaled = _scale(rows)
    waste = _waste(scaled[:, None], scaled[None])
    np.fill_diagonal(waste, inf)
    left = np.ones(len(rows), bool)
    while left.sum() > limit:
        i, j = np.unravel_index(np.argmin(waste), waste.shape)
        rows[i], scaled[i] = _joined(rows[i], rows[j]), _joined(scaled[i], scaled[j])
        left[j] = False
        waste[j], waste[:, j] = inf, inf
        others = np.flatnonzero(left & (np.arange(len(rows)) != i))
        waste[i, others] = waste[others, i] = _waste(scaled[i], scaled[others])
    return rows[left]


def _joined(a: BoxRows, b: BoxRows) -> BoxRows:
    k = a.shape[-1] // 2
    lows, highs = np.minimum(a[..., :k], b[..., :k]), np.maximum(a[..., k:], b[..., k:])
    return np.concatenate([lows, highs], axis=-1)


def _waste(a: BoxRows, b: BoxRows) -> BoxRows:
    """Return the share of events that would meet two boxes if joined, and meet neither now."""
    k = a.shape[-1] // 2
    lows, highs = np.maximum(a[..., :k], b[..., :k]), np.minimum(a[..., k:], b[..., k:])
    shared = _share_met(np.concatenate([lows, highs], axis=-1))
    return _share_met(_joined(a, b)) - _share_met(a) - _share_met(b) + shared


def _share_met(scaled: BoxRows) -> BoxRows:
    k = scaled.shape[-1] // 2
    sides = np.maximum(scaled[..., k:] - scaled[..., :k] + _EVENT_SIDE, 0.0)
    return np.asarray(sides.prod(axis=-1))
