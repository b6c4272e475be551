"""What positions are found to be, as the room of transitions asks: matched, near, or led through.

The room gets only the subscriptions that matter in a step: those that its objects visit, and those
that were found. So a step takes no time for all others.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from contrada.arrays import Floats, Mask, Positions
from contrada.broker.fence_book import Fence, FenceBook
from contrada.broker.watched_fences import NumberPairs, WatchedFences
from contrada.matching.columns import EventBatch
from contrada.matching.segments import SubscriptionSet
from contrada.transitions.deciding import Found, RowRanks
from contrada.transitions.followed import FollowedSubscriptions
from contrada.transitions.taking_in import Segments

FindFence = Callable[[str], Fence | None]


@dataclass(frozen=True, slots=True)
class PieceEvents:
    """Decoded events, each an applied position: the first has the number `first` in the step."""

    events: EventBatch
    first: int


@dataclass(frozen=True, slots=True)
class FoundFences:
    """What was found, with the subscriptions of the step in the order of their keys."""

    followed: FollowedSubscriptions
    found: Found
    fences: Mapping[str, Fence]


def describe(fences: Mapping[str, Fence]) -> FollowedSubscriptions:
    """Return subscriptions, by key, as the room takes them.

    Who would be no fence is not found to be met or near, so each may count as one.
    """
    keys = sorted(fences)
    terms = [fences[key].terms for key in keys]
    return FollowedSubscriptions.alike(
        pa.array(keys, pa.large_string()),
        pa.nulls(len(keys), pa.large_string()),
        np.ones(len(keys), bool),
        hysteresis_m=np.array([each.hysteresis_m for each in terms], np.float64),
        cooldown_us=np.array([each.cooldown_us for each in terms], np.int64),
        dwell_us=np.array([each.dwell_us for each in terms], np.int64),
        kinds=np.array([each.kinds for each in terms], np.uint8),
    )


def search_fences(
    pieces: Sequence[PieceEvents],
    segments: Segments,
    visited: Mapping[str, Fence],
    subscriptions: SubscriptionSet,
    book: FenceBook,
    watched: WatchedFences,
) -> FoundFences:
    """Find what applied positions match, are near to, and were led through."""
    ids = subscriptions.ids
    numbers = ids.to_numpy() if len(ids) else np.zeros(0, np.int64)
    matched, near, met = [], [], []
    watched.look_at(subscriptions, book)
    for piece in pieces:
        rows, ranks = subscriptions.match_batch(piece.events)
        matched.append((rows, numbers[ranks]))
    visiting = [fence.number for fence in visited.values()]
    asked = np.unique(np.concatenate([visiting, *(found for _, found in matched)]).astype(np.int64))
    for piece, own in zip(pieces, matched, strict=True):
        ways = _ways_of(piece, segments)
        if not np.isnan(ways).all():
            met.append(_moved(watched.find_met(piece.events, ways, _but(own)), piece))
        near.append(_moved(watched.find_near(piece.events, _only(asked)), piece))
    matched = [_moved(own, piece) for own, piece in zip(matched, pieces, strict=True)]
    pairs = [_join(found) for found in (matched, near, met)]
    fences = dict(visited)
    by_number: dict[int, Fence] = {}
    for number in np.unique(np.concatenate([numbers for _, numbers in pairs])).tolist():
        fence = book.by_number(number)
        if fence is not None:
            by_number[number] = fences[fence.key] = fence
    ranks_of = {key: rank for rank, key in enumerate(sorted(fences))}
    known = np.array(sorted(by_number), np.int64)
    ranks = np.array([ranks_of[by_number[number].key] for number in known.tolist()], np.int64)
    found = Found(*(_rank(rows, own, known, ranks) for rows, own in pairs))
    return FoundFences(describe(fences), found, fences)


def _moved(pairs: NumberPairs, piece: PieceEvents) -> NumberPairs:
    return pairs[0] + piece.first, pairs[1]


def _ways_of(piece: PieceEvents, segments: Segments) -> Floats:
    """Return the way to each row of a piece, NaN where there is none."""
    ways = np.full((piece.events.length, 4), np.nan)
    start, end = np.searchsorted(segments.rows, [piece.first, piece.first + len(ways)])
    ends = (segments.x0, segments.y0, segments.x1, segments.y1)
    ways[segments.rows[start:end] - piece.first] = np.stack([e[start:end] for e in ends], axis=1)
    return ways


def _but(pairs: NumberPairs) -> Callable[[Positions, Positions], Mask]:
    """Choose all but some pairs: where a position itself matches, nobody asks for its way."""
    known = {*zip(pairs[0].tolist(), pairs[1].tolist(), strict=True)}

    def choose(rows: Positions, numbers: Positions) -> Mask:
        both = zip(rows.tolist(), numbers.tolist(), strict=True)
        return np.array([pair not in known for pair in both], bool)

    return choose


def _only(asked: Positions) -> Callable[[Positions, Positions], Mask]:
    """Choose the fences that an object may be in a visit of; near to others says nothing."""

    def choose(_: Positions, numbers: Positions) -> Mask:
        return np.isin(numbers, asked)

    return choose


def _join(found: Sequence[NumberPairs]) -> NumberPairs:
    none = np.zeros(0, np.int64)
    rows = np.concatenate([none, *(rows for rows, _ in found)])
    return rows, np.concatenate([none, *(numbers for _, numbers in found)])


def _rank(rows: Positions, numbers: Positions, known: Positions, ranks: Positions) -> RowRanks:
    """Put the rank of a key in place of each number; what has no key is left out."""
    if not len(known):
        return RowRanks.none()
    places = np.minimum(np.searchsorted(known, numbers), len(known) - 1)
    is_known = known[places] == numbers
    rows, own = rows[is_known], ranks[places[is_known]]
    order = np.lexsort((own, rows))
    return RowRanks(rows[order], own[order])
