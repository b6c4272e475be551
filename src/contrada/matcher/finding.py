"""What positions are found to be: which subscriptions they match, are near to, or were led through.

Whoever follows objects asks this between the two halves of a step of the room of transitions, with
one version of the subscriptions and the positions of the batch, decoded in pieces.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from contrada.arrays import Floats, Mask, Positions
from contrada.deferred import compute as pc
from contrada.matcher.event_texts import EVENT_TEXT, are_texts, read_events
from contrada.matcher.piece_threads import mapping
from contrada.matching.columns import EventBatch
from contrada.matching.event_objects import receive_objects
from contrada.matching.fence_sets import NearFences
from contrada.matching.receiving import receive
from contrada.matching.segments import SubscriptionSet
from contrada.model.event import GEOMETRY
from contrada.threads import once
from contrada.transitions.deciding import Found, RowRanks
from contrada.transitions.followed import CROSS_KIND, NO_DWELL, FollowedSubscriptions
from contrada.transitions.id_order import as_ids
from contrada.transitions.taking_in import Begun, Segments
from contrada.transitions.track_state import TrackState


@dataclass(frozen=True, slots=True)
class SubscriptionOptions:
    """What is asked of transitions, alike for all subscriptions; times are microseconds."""

    hysteresis_m: float
    cooldown_us: int
    dwell_us: int | None
    kinds: int

    @property
    def has_ways(self) -> bool:
        """Whether crossings are asked for."""
        return bool(self.kinds & CROSS_KIND)


@dataclass(frozen=True, slots=True)
class PositionPiece:
    """Some positions of a batch: decoded events, the object of each, and its number in the step.

    A number is -1 where a row is not applied now. Objects, read as ids, may be None, where they are
    not at hand, and one of them is null where its row is bad.
    """

    events: EventBatch
    objects: pa.Array | None
    numbers: Positions


class FollowedSet:
    """One version of the subscriptions, by the rank of living ids, for those who follow objects."""

    def __init__(self, subscriptions: SubscriptionSet, options: SubscriptionOptions) -> None:
        """Take a version; what only hysteresis or crossings need is made if one is asked for."""
        self.subscriptions, self._options = subscriptions, options
        self._ranks = subscriptions.living_ranks()
        self._is_here = pa.array(self._ranks >= 0)
        self._count = int(np.count_nonzero(self._ranks >= 0))

    @once
    def _near(self) -> NearFences:
        reach_m = np.full(self._count, float(self._options.hysteresis_m))
        return self.subscriptions.fences.near(reach_m)

    def count_others(self) -> int:
        """Count the subscriptions that are not fences."""
        return int(np.count_nonzero(~self.subscriptions.fences.is_fence))

    def subscriber_type(self, known: pa.Array) -> pa.DataType:
        """Return the type of subscribers: integers only where all are, those known before too."""
        were_some = len(known) > known.null_count
        if were_some and not pa.types.is_int64(known.type):
            return pa.large_string()
        if self.subscriptions.has_whole_subscribers:
            return pa.int64()
        return pa.int64() if were_some and self._has_no_subscribers else pa.large_string()

    @once
    def _has_no_subscribers(self) -> bool:
        names = self.subscriptions.subscriber_column(pa.large_string()).filter(self._is_here)
        return bool(names.null_count == len(names))

    def describe(self, subscriber_type: pa.DataType, version: str | None) -> FollowedSubscriptions:
        """Return the subscriptions as the room of transitions takes them."""
        options = self._options
        return FollowedSubscriptions.alike(
            self.subscriptions.ids.filter(self._is_here),
            self.subscriptions.subscriber_column(subscriber_type).filter(self._is_here),
            self.subscriptions.fences.is_fence,
            hysteresis_m=options.hysteresis_m,
            cooldown_us=options.cooldown_us,
            dwell_us=NO_DWELL if options.dwell_us is None else options.dwell_us,
            kinds=options.kinds,
            version=version,
        )

    def find(
        self, begun: Begun, pieces: Sequence[PositionPiece], state: TrackState, threads: int = 1
    ) -> Found:
        """Find what the room asks of the positions that are applied, in pieces, on threads."""
        if not pieces:
            return Found.nothing()
        ways = None
        if self._options.has_ways:
            ways = _make_ways(begun.segments, begun.applied_count)
        near = RowRanks.none()
        with mapping(threads, len(pieces)) as run:
            found = run(partial(self._match_and_meet, ways), pieces)
            matched, met = zip(*found, strict=True)
            if self._options.hysteresis_m > 0:
                choice = _Visits(pieces, matched, self._list_visits(state), self._count)
                near = _join(run(partial(self._find_near, choice), range(len(pieces)), pieces))
        return Found(_join(matched), near, _join(met))

    def _match_and_meet(
        self, ways: Floats | None, piece: PositionPiece
    ) -> tuple[RowRanks, RowRanks]:
        """Find what applied rows match, and what the ways to them meet."""
        matched = self._match(piece)
        return matched, RowRanks.none() if ways is None else self._find_met(ways, piece, matched)

    def _match(self, piece: PositionPiece) -> RowRanks:
        """Find what applied rows match, by number; ranks are those of living ids."""
        rows, ranks = self.subscriptions.match_batch(piece.events)
        return _number(piece, rows, self._ranks[ranks])

    def _find_near(self, choice: "_Visits", place: int, piece: PositionPiece) -> RowRanks:
        found = self._near.find(piece.events, partial(choice.choose, place))
        return _number(piece, found.rows, found.ranks)

    def _find_met(self, ways: Floats, piece: PositionPiece, matched: RowRanks) -> RowRanks:
        """Find what ways meet; where the position itself matches, nobody would ask."""
        keys = matched.rows * self._count + matched.ranks  # sorted, as these are

        def choose(rows: Positions, ranks: Positions) -> Mask:
            return ~_are_in(piece.numbers[rows] * self._count + ranks, keys)

        own = np.where((piece.numbers >= 0)[:, None], ways[piece.numbers], np.nan)
        found = self.subscriptions.fences.find_met(piece.events, own, choose)
        return _number(piece, found.rows, found.ranks)

    def _list_visits(self, state: TrackState) -> tuple[pa.Array, Positions]:
        """List the pairs of an object and the rank of a subscription that are in a visit."""
        pairs = state.pairs
        at = state.find_visits()
        known = as_ids(self.subscriptions.ids.filter(self._is_here))
        subscriptions = state.subscriptions.ids.take(pa.array(pairs.subscriptions[at]))
        if subscriptions.type != known.type:
            at, subscriptions = at[:0], known[:0]
        ranks = np.asarray(pc.fill_null(pc.index_in(subscriptions, value_set=known), -1), np.int64)
        objects = state.objects.ids.take(pa.array(pairs.objects[at]))
        return objects.filter(pa.array(ranks >= 0)), ranks[ranks >= 0]

    def decode(self, rows: pa.Table) -> EventBatch:
        """Decode rows that were judged when they came; what cannot be read now is unknown."""
        geometries = {GEOMETRY, *self.subscriptions.geometry_attributes}
        if are_texts(rows):
            return receive_objects(
                read_events(rows.column(EVENT_TEXT)),
                pa.nulls(rows.num_rows, pa.int64()),
                geometries,
                repair=False,
                find_more_faults=self.subscriptions.find_event_faults,
                told={},
            ).batch
        (whole,) = rows.combine_chunks().to_batches()
        received = receive(
            whole,
            0,
            geometry_attributes=geometries,
            geometry_columns=[GEOMETRY],
            id_column=None,
            name="positions",
            repair=False,
            find_more_faults=self.subscriptions.find_event_faults,
        )
        return received.batch


class _Visits:
    """Which pairs may be in a visit: a position near to any other fence says nothing.

    An object may be in a visit of what it was in before, and of what any of its positions matches.
    """

    def __init__(
        self,
        pieces: Sequence[PositionPiece],
        matched: Sequence[RowRanks],
        visits: tuple[pa.Array, Positions],
        count: int,
    ) -> None:
        self._count = count
        objects = [as_ids(piece.objects) for piece in pieces if piece.objects is not None]
        self._are_known = len(objects) == len(pieces)
        if not self._are_known:
            return
        objects.append(visits[0] if visits[0].type == objects[0].type else objects[0][:0])
        encoded = pa.concat_arrays(objects).dictionary_encode()
        codes = pc.fill_null(encoded.indices, -1).to_numpy().astype(np.int64)  # -1: a bad row
        ends = np.cumsum([len(array) for array in objects])
        *self._codes, visiting = np.split(codes, ends[:-1])
        keys = [visiting * count + visits[1][: len(visiting)]]
        for piece, own, pairs in zip(pieces, self._codes, matched, strict=True):
            keys.append(own[_rows_of(piece, pairs.rows)] * count + pairs.ranks)
        self._keys = np.unique(np.concatenate(keys))

    def choose(self, place: int, rows: Positions, ranks: Positions) -> Mask:
        if not self._are_known:
            return np.ones(len(rows), bool)
        return _are_in(self._codes[place][rows] * self._count + ranks, self._keys)


def _rows_of(piece: PositionPiece, numbers: Positions) -> Positions:
    """Return the rows of a piece that have some numbers."""
    applied = np.flatnonzero(piece.numbers >= 0)  # whose numbers increase
    return applied[np.searchsorted(piece.numbers[applied], numbers)]


def _number(piece: PositionPiece, rows: Positions, ranks: Positions) -> RowRanks:
    """Return pairs by the numbers of applied rows, without those that wait."""
    numbers = piece.numbers[rows]
    is_applied = numbers >= 0
    return RowRanks(numbers[is_applied], ranks[is_applied])


def _make_ways(segments: Segments, count: int) -> Floats:
    ways = np.full((count, 4), np.nan)
    ways[segments.rows] = np.stack([segments.x0, segments.y0, segments.x1, segments.y1], axis=1)
    return ways


def _join(found: Iterable[RowRanks]) -> RowRanks:
    """Put the pairs of pieces together: numbers increase from one piece to the next."""
    rows, ranks = zip(*found, strict=True)
    return RowRanks(np.concatenate(rows), np.concatenate(ranks))


def _are_in(keys: Positions, known: Positions) -> Mask:
    """Which keys are among some that are sorted."""
    if not len(known):
        return np.zeros(len(keys), bool)
    places = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    return np.asarray(known[places] == keys, bool)
