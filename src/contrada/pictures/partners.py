"""Who matches whom among the shapes that a map draws."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contrada.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from contrada.pictures.layers import Layer, Role

# A pair costs about a dozen bytes of the page.
PAIRS_MAX = 500_000


@dataclass(frozen=True, slots=True)
class Partners:
    """Pairs of drawn shapes, and how many partners each drawn shape has in all.

    `events` and `subscriptions` count over the drawn shapes of all layers of that role, one layer
    after the other. `counts` has one column per layer, in the layers' order; it counts every
    pair, also those whose other shape is not drawn, and where a layer knows better than the pairs
    it is asked.
    """

    events: NDArray[np.int64]
    subscriptions: NDArray[np.int64]
    counts: Sequence[NDArray[np.int64]]


def link_partners(
    pairs: NDArray[np.int64], layers: Sequence[Layer], rows: Sequence[NDArray[np.intp]]
) -> Partners:
    """Carry pairs of rows (event, subscription) over to the shapes drawn of them.

    Of more than `PAIRS_MAX`, the first few of every shape are kept before more of any.
    """
    sizes = {role: _rows_of(layers, role) for role in ("event", "subscription")}
    events, subscriptions = _unique_pairs(pairs, sizes["event"], sizes["subscription"])
    event_counts = np.bincount(events, minlength=sizes["event"])
    subscription_counts = np.bincount(subscriptions, minlength=sizes["subscription"])
    counts = _split_counts(layers, rows, event_counts, subscription_counts)

    drawn_events = _drawn_positions(layers, rows, "event")[events]
    drawn_subscriptions = _drawn_positions(layers, rows, "subscription")[subscriptions]
    is_drawn = (drawn_events >= 0) & (drawn_subscriptions >= 0)
    drawn_events, drawn_subscriptions = drawn_events[is_drawn], drawn_subscriptions[is_drawn]
    kept = fairest(drawn_events, drawn_subscriptions, PAIRS_MAX)
    return Partners(drawn_events[kept], drawn_subscriptions[kept], counts)


def _rows_of(layers: Sequence[Layer], role: str) -> int:
    return sum(len(layer) for layer in layers if layer.role == role)


def _unique_pairs(
    pairs: NDArray[np.int64], event_count: int, subscription_count: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    pairs = np.asarray(pairs)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise InvalidInput(
            f"pairs has the shape {pairs.shape} and the type {pairs.dtype}; "
            "expected integers in two columns, event and subscription"
        )
    highs = np.array([event_count, subscription_count])
    strange = np.flatnonzero(np.any((pairs < 0) | (pairs >= highs), axis=1))
    if len(strange):
        row = int(strange[0])
        raise InvalidInput(
            f"pairs, row {row}: {pairs[row].tolist()} is out of range; "
            f"there are {event_count} events and {subscription_count} subscriptions"
        )
    keys = np.unique(pairs[:, 0].astype(np.int64) * max(subscription_count, 1) + pairs[:, 1])
    events, subscriptions = np.divmod(keys, max(subscription_count, 1))
    return events, subscriptions


def _split_counts(
    layers: Sequence[Layer],
    rows: Sequence[NDArray[np.intp]],
    event_counts: NDArray[np.int64],
    subscription_counts: NDArray[np.int64],
) -> list[NDArray[np.int64]]:
    columns = []
    offsets = {"event": 0, "subscription": 0}
    for layer, kept in zip(layers, rows, strict=True):
        counts = event_counts if layer.role == "event" else subscription_counts
        known = layer.partner_counts
        columns.append(counts[offsets[layer.role] + kept] if known is None else known[kept])
        offsets[layer.role] += len(layer)
    return columns


def _drawn_positions(
    layers: Sequence[Layer], rows: Sequence[NDArray[np.intp]], role: Role
) -> NDArray[np.int64]:
    """Return for each row of a role its position among the drawn ones, or -1."""
    columns = [np.empty(0, dtype=np.int64)]
    drawn_count = 0
    for layer, kept in zip(layers, rows, strict=True):
        if layer.role == role:
            column = np.full(len(layer), -1, dtype=np.int64)
            column[kept] = drawn_count + np.arange(len(kept))
            drawn_count += len(kept)
            columns.append(column)
    return np.concatenate(columns)


def fairest(
    events: NDArray[np.int64], subscriptions: NDArray[np.int64], count_max: int
) -> NDArray[np.intp]:
    """Choose at most `count_max` pairs, in their order: the first few of everyone before more."""
    if len(events) <= count_max:
        return np.arange(len(events))
    ranks = _rank_within(events), _rank_within(subscriptions)
    order = np.lexsort((np.maximum(*ranks), np.minimum(*ranks)))
    return np.sort(order[:count_max])


def _rank_within(groups: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number the members of each group from zero, in their order."""
    order = np.argsort(groups, kind="stable")
    ordered = groups[order]
    ranks = np.empty(len(groups), dtype=np.int64)
    ranks[order] = np.arange(len(groups)) - np.searchsorted(ordered, ordered)
    return ranks
