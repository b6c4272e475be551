"""Events on their way into the log: matched in bulk, and stored with what they matched.

The events of many requests are one batch for the matcher, cut so that even those that match
everything are bounded. Each is matched once, against the changes before it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from contrada.arrays import Positions
from contrada.broker.commit_tasks import Published, PublishTask
from contrada.broker.feature_columns import join_rows
from contrada.broker.incoming_events import BadEvent
from contrada.broker.log_writing import DeliveryRow, LogWriter
from contrada.broker.match_lists import pack_numbers
from contrada.broker.repeats import Known, RepeatWindow
from contrada.broker.retention import BLOCK_BITS
from contrada.broker.standing_set import StandingSet, match_events, receive_events, rows_at_once
from contrada.matching.receiving import ReceivedEvents
from contrada.matching.segments import SubscriptionSet


@dataclass(slots=True)
class _Answer:
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

    answers: list[Published] = field(default_factory=list)
    touched: list[tuple[Positions, int]] = field(default_factory=list)
    named: list[tuple[bytes, Known]] = field(default_factory=list)
    events: int = 0
    matches: int = 0
    deliveries: int = 0


class EventStoring:
    """Stores the events of requests in the transaction of a writer."""

    def __init__(self, writer: LogWriter, standing: StandingSet, window: RepeatWindow) -> None:
        """Take where events go, what they are matched against, and which repeats are known."""
        self._writer, self._standing, self._window = writer, standing, window

    def store(self, tasks: Sequence[PublishTask], now_us: int) -> StoredEvents:
        """Match and store the events of requests, in their order."""
        stored = StoredEvents()
        answers = [_Answer(task, list(task.events.errors)) for task in tasks]
        subscriptions = self._standing.freeze()
        self._store_all(answers, subscriptions, now_us, stored)
        for answer in answers:
            errors = sorted(answer.errors, key=lambda error: error.index)
            position = self._writer.epochs.write(answer.last or self._writer.head)
            stored.answers.append(
                Published(answer.accepted, position, answer.matches, errors, answer.repeated)
            )
        return stored

    def _store_all(
        self,
        answers: Sequence[_Answer],
        subscriptions: SubscriptionSet,
        now_us: int,
        stored: StoredEvents,
    ) -> None:
        owners = np.repeat(np.arange(len(answers)), [len(a.task.events.texts) for a in answers])
        if not len(owners):
            return
        own = np.concatenate([np.arange(len(a.task.events.texts)) for a in answers])
        rows = join_rows([a.task.events.rows for a in answers])
        received = receive_events(rows, subscriptions)
        keeps, repeats = self._choose(answers, owners, own, received, now_us)
        at_once = rows_at_once(subscriptions)
        if not len(keeps):
            self._answer_repeats(answers, owners, repeats, {})
            return
        if len(keeps) < len(owners) or len(keeps) > at_once:
            pieces = [keeps[i : i + at_once] for i in range(0, len(keeps), at_once)]
        else:
            pieces = [keeps]
        places: dict[int, tuple[int, int]] = {}
        for piece in pieces:
            events = received
            if len(piece) < len(owners):
                events = receive_events(rows.take(pa.array(piece)), subscriptions)
            self._store_piece(answers, owners, own, piece, events, subscriptions, now_us, stored)
            if repeats:
                first = self._writer.head - len(piece) + 1
                places |= {int(row): (first + i, 0) for i, row in enumerate(piece)}
        self._answer_repeats(answers, owners, repeats, places)

    def _choose(
        self,
        answers: Sequence[_Answer],
        owners: Positions,
        own: Positions,
        received: ReceivedEvents,
        now_us: int,
    ) -> tuple[Positions, dict[int, Known | int]]:
        """Choose the rows to store; what repeats another is that, or the row of it."""
        keep = np.ones(len(owners), bool)
        for row, fault in received.bad.items():
            answer = answers[owners[row]]
            index = answer.task.events.indexes[own[row]]
            answer.errors.append(BadEvent(index, str(fault.as_error())))
            keep[row] = False
        for number, answer in enumerate(answers):
            if answer.task.all_or_none and answer.errors:
                keep[owners == number] = False
        repeats: dict[int, Known | int] = {}
        seen: dict[bytes, int] = {}
        if any(any(answer.task.events.keys) for answer in answers):
            for row in np.flatnonzero(keep).tolist():
                key = answers[owners[row]].task.events.keys[own[row]]
                if key is None:
                    continue
                known = self._window.find(key, now_us)
                if known is not None or key in seen:
                    repeats[row] = known if known is not None else seen[key]
                    keep[row] = False
                else:
                    seen[key] = row
        return np.flatnonzero(keep), repeats

    def _answer_repeats(
        self,
        answers: Sequence[_Answer],
        owners: Positions,
        repeats: dict[int, Known | int],
        places: dict[int, tuple[int, int]],
    ) -> None:
        """Answer what was there already with the position of the first."""
        for row, first in repeats.items():
            answer = answers[owners[row]]
            position, matches = first if isinstance(first, Known) else places[first]
            last = answer.last
            answer.take(position, matches)
            answer.last = max(last, position)
            answer.repeated += 1

    def _store_piece(
        self,
        answers: Sequence[_Answer],
        owners: Positions,
        own: Positions,
        piece: Positions,
        events: ReceivedEvents,
        subscriptions: SubscriptionSet,
        now_us: int,
        stored: StoredEvents,
    ) -> None:
        rows, numbers = match_events(events, subscriptions)
        counts = np.bincount(rows, minlength=len(piece))
        texts = [
            answers[owner].task.events.texts[i]
            for owner, i in zip(owners[piece].tolist(), own[piece].tolist(), strict=True)
        ]
        keys = [
            answers[owner].task.events.keys[i]
            for owner, i in zip(owners[piece].tolist(), own[piece].tolist(), strict=True)
        ]
        matches = counts.tolist()
        first = self._writer.add_events(now_us, texts, keys, matches)
        whose = self._standing.subscribers.take(numbers)
        deliveries = _pack_deliveries(first + rows, whose, numbers)
        self._writer.add_deliveries(deliveries)
        for i, (owner, count) in enumerate(zip(owners[piece].tolist(), matches, strict=True)):
            answers[owner].take(first + i, count)
        stored.named += [
            (key, Known(first + i, count))
            for i, (key, count) in enumerate(zip(keys, matches, strict=True))
            if key is not None
        ]
        stored.touched.append((np.unique(whose), self._writer.head))
        stored.events += len(piece)
        stored.matches += len(rows)
        stored.deliveries += len(deliveries)


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
