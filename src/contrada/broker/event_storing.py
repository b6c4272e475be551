"""Events on their way into the log: matched in bulk, and stored with what they matched.

The events of many requests are one batch for the matcher, cut so that even those that match
everything are bounded. Each is matched once, against the changes before it.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from contrada.arrays import Positions
from contrada.broker.commit_tasks import PublishAnswer, PublishTask
from contrada.broker.feature_columns import group_joinable, join_rows
from contrada.broker.incoming_events import BadEvent
from contrada.broker.log_writing import DeliveryRow, LogWriter
from contrada.broker.match_lists import pack_entries, pack_numbers, unpack
from contrada.broker.repeats import RepeatWindow, StoredEvent
from contrada.broker.retention import BLOCK_BITS
from contrada.broker.standing_set import StandingSet, match_events, receive_events, rows_at_once
from contrada.broker.track_entries import TrackMatch, TrackStep
from contrada.broker.track_keeping import TrackKeeping
from contrada.errors import InvalidInput
from contrada.limits import REQUEST_MATCHES_MAX
from contrada.matching.receiving import ReceivedEvents
from contrada.matching.segments import SubscriptionSet


@dataclass(slots=True)
class _RequestAnswer:
    """What is to be answered to one request, as it becomes known."""

    task: PublishTask
    errors: list[BadEvent]
    accepted: int = 0
    matches: int = 0
    repeated: int = 0
    last: int = 0

    def take(self, position: int, matches: int) -> None:
        """Count an event that is stored."""
        self.accepted += 1
        self.matches += matches
        self.last = position


@dataclass(slots=True)
class StoredEvents:
    """What was stored in one transaction: answers, and who has new deliveries up to where."""

    answers: list[PublishAnswer] = field(default_factory=list)
    touched: list[tuple[Positions, int]] = field(default_factory=list)
    named: list[tuple[bytes, StoredEvent]] = field(default_factory=list)
    events: int = 0
    matches: int = 0
    deliveries: int = 0


class EventStoring:
    """Stores the events of requests in the transaction of a writer."""

    def __init__(
        self, writer: LogWriter, standing: StandingSet, tracks: TrackKeeping, window: RepeatWindow
    ) -> None:
        """Take where events go, what they are matched against, and which repeats are known."""
        self._writer, self._standing, self._window = writer, standing, window
        self._tracks = tracks

    def store(self, tasks: Sequence[PublishTask], now_us: int) -> StoredEvents:
        """Match and store the events of requests, in their order."""
        stored = StoredEvents()
        answers = [_RequestAnswer(task, list(task.events.errors)) for task in tasks]
        subscriptions = self._standing.freeze()
        start = 0
        for run in group_joinable([task.events.rows for task in tasks]):
            own = answers[start : start + len(run)]
            self._store_all(own, subscriptions, now_us, stored)
            start += len(run)
        for answer in answers:
            errors = sorted(answer.errors, key=lambda error: error.index)
            position = self._writer.epochs.write(answer.last or self._writer.head)
            stored.answers.append(
                PublishAnswer(answer.accepted, position, answer.matches, errors, answer.repeated)
            )
        return stored

    def _store_all(
        self,
        answers: Sequence[_RequestAnswer],
        subscriptions: SubscriptionSet,
        now_us: int,
        stored: StoredEvents,
    ) -> None:
        events = _Arrived.of(answers)
        if not len(events.owners):
            return
        received = receive_events(events.rows, subscriptions)
        keeps, repeats = self._choose(answers, events, received, dict(stored.named), now_us)
        kept = events.take(keeps)
        places: dict[int, tuple[int, int]] = {}
        if len(keeps):
            whole = received if len(keeps) == len(events.texts) else None
            matched = _match_all(kept, whole, subscriptions)
            step = self._tracks.step(kept.rows, kept.texts, now_us)
            entries, changing = deque(step.entries), sorted(step.matches)
            for start, end in _cut(len(keeps), step):
                while entries and entries[0].place <= start:
                    self._tracks.write([entries.popleft()], now_us)
                own = changing[bisect_left(changing, start) : bisect_left(changing, end)]
                transitions = {row - start: step.matches[row] for row in own}
                piece, pairs = kept.between(start, end), matched.between(start, end)
                first, counts = self._store_piece(
                    answers, piece, pairs, transitions, now_us, stored
                )
                if repeats:
                    rows = keeps[start:end].tolist()
                    places |= {row: (first + i, counts[i]) for i, row in enumerate(rows)}
            self._tracks.write(list(entries), now_us)
        self._answer_repeats(answers, events.owners, repeats, places)

    def _choose(
        self,
        answers: Sequence[_RequestAnswer],
        events: "_Arrived",
        received: ReceivedEvents,
        stored: Mapping[bytes, StoredEvent],
        now_us: int,
    ) -> tuple[Positions, dict[int, StoredEvent | int]]:
        """Choose the rows to store; what repeats another is that, or the row of it.

        `stored` are events that are in this transaction already.
        """
        owners, own = events.owners, events.own
        keep = np.ones(len(owners), bool)
        wrong = {row: str(fault.as_error()) for row, fault in received.bad.items()}
        for row, detail in (self._tracks.find_refused(events.rows, now_us) | wrong).items():
            answer = answers[owners[row]]
            answer.errors.append(BadEvent(answer.task.events.indexes[own[row]], detail))
            keep[row] = False
        for number, answer in enumerate(answers):
            if answer.task.all_or_none and answer.errors:
                keep[owners == number] = False
        repeats: dict[int, StoredEvent | int] = {}
        seen: dict[bytes, int] = {}
        if any(any(answer.task.events.keys) for answer in answers):
            for row in np.flatnonzero(keep).tolist():
                key = answers[owners[row]].task.events.keys[own[row]]
                if key is None:
                    continue
                known = self._window.find(key, now_us) or stored.get(key)
                if known is not None or key in seen:
                    repeats[row] = known if known is not None else seen[key]
                    keep[row] = False
                else:
                    seen[key] = row
        return np.flatnonzero(keep), repeats

    def _answer_repeats(
        self,
        answers: Sequence[_RequestAnswer],
        owners: Positions,
        repeats: dict[int, StoredEvent | int],
        places: dict[int, tuple[int, int]],
    ) -> None:
        """Answer what was there already with the position of the first."""
        for row, first in repeats.items():
            answer = answers[owners[row]]
            position, matches = first if isinstance(first, StoredEvent) else places[first]
            last = answer.last
            answer.take(position, matches)
            answer.last = max(last, position)
            answer.repeated += 1

    def _store_piece(
        self,
        answers: Sequence[_RequestAnswer],
        events: "_Arrived",
        pairs: "_MatchedPairs",
        transitions: Mapping[int, Sequence[TrackMatch]],
        now_us: int,
        stored: StoredEvents,
    ) -> tuple[int, list[int]]:
        """Store some events with what they match; return the first position, and their counts."""
        rows, numbers = pairs
        matches = np.bincount(rows, minlength=len(events.texts)).tolist()
        for row, found in transitions.items():
            matches[row] += len(found)
        first = self._writer.add_events(now_us, events.texts, events.keys, matches)
        whose = self._standing.subscribers.take(numbers)
        deliveries = _pack_deliveries(first + rows, whose, numbers)
        if transitions:
            deliveries = self._with_transitions(deliveries, transitions, first)
        self._writer.add_deliveries(deliveries)
        for i, (owner, count) in enumerate(zip(events.owners.tolist(), matches, strict=True)):
            answers[owner].take(first + i, count)
        stored.named += [
            (key, StoredEvent(first + i, count))
            for i, (key, count) in enumerate(zip(events.keys, matches, strict=True))
            if key is not None
        ]
        touched = whose if not transitions else np.array([row[1] for row in deliveries], np.int64)
        stored.touched.append((np.unique(touched), self._writer.head))
        stored.events += len(matches)
        stored.matches += sum(matches)
        stored.deliveries += len(deliveries)
        return first, matches

    def _with_transitions(
        self,
        deliveries: Sequence[DeliveryRow],
        transitions: Mapping[int, Sequence[TrackMatch]],
        first: int,
    ) -> list[DeliveryRow]:
        """Add the transitions of events to their deliveries, which may have plain matches."""
        by_key = {row[:3]: row for row in deliveries}
        for row, found in transitions.items():
            position = first + row
            for subscriber, own in self._tracks.group(found).items():
                key = (position >> BLOCK_BITS, subscriber, position)
                plain = unpack(by_key[key][3]) if key in by_key else []
                by_key[key] = (*key, pack_entries([*plain, *own]))
        return [by_key[key] for key in sorted(by_key)]


@dataclass(frozen=True, slots=True)
class _Arrived:
    """The events of several requests as one batch: whose each is, and which one of them."""

    owners: Positions
    own: Positions
    rows: pa.RecordBatch
    texts: Sequence[bytes]
    keys: Sequence[bytes | None]

    @classmethod
    def of(cls, answers: Sequence[_RequestAnswer]) -> "_Arrived":
        events = [answer.task.events for answer in answers]
        lengths = [len(each.texts) for each in events]
        return cls(
            np.repeat(np.arange(len(events)), lengths),
            np.concatenate([np.arange(length) for length in lengths]),
            join_rows([each.rows for each in events]),
            [text for each in events for text in each.texts],
            [key for each in events for key in each.keys],
        )

    def take(self, rows: Positions) -> "_Arrived":
        """Return some of the events."""
        if len(rows) == len(self.texts):
            return self
        places = rows.tolist()
        return _Arrived(
            self.owners[rows],
            self.own[rows],
            self.rows.take(pa.array(rows)),
            [self.texts[i] for i in places],
            [self.keys[i] for i in places],
        )

    def between(self, start: int, end: int) -> "_Arrived":
        """Return events in a row."""
        if start == 0 and end == len(self.texts):
            return self
        return _Arrived(
            self.owners[start:end],
            self.own[start:end],
            self.rows.slice(start, end - start),
            self.texts[start:end],
            self.keys[start:end],
        )


class _MatchedPairs(NamedTuple):
    """Which events match which subscriptions: rows, in order, and numbers."""

    rows: Positions
    numbers: Positions

    def between(self, start: int, end: int) -> "_MatchedPairs":
        """Return the pairs of some rows, which are counted from their first."""
        first, last = np.searchsorted(self.rows, [start, end])
        return _MatchedPairs(self.rows[first:last] - start, self.numbers[first:last])


def _match_all(
    events: _Arrived, received: ReceivedEvents | None, subscriptions: SubscriptionSet
) -> _MatchedPairs:
    """Match events, some at a time; `received` are all of them, if they were decoded before.

    Several that match so much that everybody would wait for them for long are refused.
    """
    count, at_once = len(events.texts), rows_at_once(subscriptions)
    found: list[_MatchedPairs] = []
    total = 0
    for start in range(0, count, at_once):
        end = min(start + at_once, count)
        piece = received if received is not None and end - start == count else None
        if piece is None:
            piece = receive_events(events.between(start, end).rows, subscriptions)
        rows, numbers = match_events(piece, subscriptions)
        found.append(_MatchedPairs(rows + start, numbers))
        total += len(rows)
        if total > REQUEST_MATCHES_MAX and count > 1:
            raise InvalidInput(
                f"{count:,} events have more than {REQUEST_MATCHES_MAX:,} matches together "
                "(REQUEST_MATCHES_MAX): send fewer in one request"
            )
    return _MatchedPairs(*(np.concatenate(parts) for parts in zip(*found, strict=True)))


def _cut(count: int, step: TrackStep) -> Iterator[tuple[int, int]]:
    """Cut rows where entries come between them."""
    ends = {entry.place for entry in step.entries} | {count}
    start = 0
    for end in sorted(end for end in ends if 0 < end <= count):
        yield start, end
        start = end


def _pack_deliveries(
    positions: Positions, whose: Positions, numbers: Positions
) -> list[DeliveryRow]:
    """Make a delivery for each subscriber of each event, in the order of their keys."""
    if not len(positions):
        return []
    blocks = positions >> BLOCK_BITS
    order = np.lexsort((numbers, positions, whose, blocks))
    positions, whose, numbers, blocks = (
        values[order] for values in (positions, whose, numbers, blocks)
    )
    is_first = np.ones(len(order), bool)
    is_first[1:] = (np.diff(positions) != 0) | (np.diff(whose) != 0)
    starts = np.flatnonzero(is_first)
    keys = (blocks[starts].tolist(), whose[starts].tolist(), positions[starts].tolist())
    if len(starts) == len(order):
        return list(zip(*keys, numbers.tolist(), strict=True))
    packed = [pack_numbers(part.tolist()) for part in np.split(numbers, starts[1:])]
    return list(zip(*keys, packed, strict=True))
