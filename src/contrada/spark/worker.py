"""What runs inside Spark's Python workers: events, and how they meet all subscriptions.

Only importable names travel to a worker by reference, so this module must not need the driver.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import pyarrow as pa

from contrada.errors import Remedy
from contrada.matcher.match_run import count_rows_at_once, match_received
from contrada.matching.receiving import ReceivedEvents, find_remedies, receive
from contrada.matching.segments import SubscriptionSet
from contrada.matching.subscribing import NOTHING_TOLD
from contrada.matching.writing import with_mended
from contrada.model.geometry import Fault
from contrada.spark.answering import ROWS_MAX, AnswerNames, AnswerShape, TaskTally
from contrada.spark.chosen_sets import ChosenSet, SetChoice
from contrada.spark.evaluators import EXACT, Evaluator
from contrada.spark.frames import FILE, SOURCE_FAULT
from contrada.spark.handshake import Handshake
from contrada.spark.null_lists import restore_lists
from contrada.spark.open_sets import derive, open_set
from contrada.spark.staging import StagedSet
from contrada.spark.task_errors import noting_errors


@dataclass(frozen=True, slots=True)
class EventColumns:
    """How to read events: the names of a batch's columns, in their order, and which is the id.

    `geometries` are the attributes that some subscription reads as geometries: an event with a
    fault in one of them is bad, whichever subscriptions it meets. `primary` is the column of the
    geometry, where it is known and a constraint reads it under its own name. `row` is a column of
    numbers by which a bad event is named, rather than by its id.
    """

    names: tuple[str, ...]
    event_id: str | None
    geometries: tuple[str, ...]
    repair: bool
    evaluator: Evaluator = EXACT
    primary: str | None = None
    row: str | None = None

    def reading(self, chosen: ChosenSet) -> "EventColumns":
        """Return how to read the events that meet some subscriptions."""
        return replace(self, geometries=chosen.geometries)

    def receive(
        self, batch: pa.RecordBatch, told: Mapping[int, Fault] = NOTHING_TOLD
    ) -> ReceivedEvents:
        """Decode a batch that has these names; `told` are rows that are known to be bad."""
        received = receive(
            batch,
            0,
            geometry_attributes=self.geometries,
            geometry_columns=() if self.primary is None else (self.primary,),
            id_column=self.event_id,
            name="events",
            repair=self.repair,
            find_more_faults=self.evaluator.engine().find_event_faults,
            told=told,
        )
        take_faults(batch, received)
        name_files(batch, received)
        return received

    def refuse_bad(
        self,
        batch: pa.RecordBatch,
        events: ReceivedEvents,
        remedies: Sequence[Remedy] = (Remedy.RETURN_BAD_EVENTS,),
    ) -> None:
        """Fail on the first bad event; `remedies` help with every one that is named by its id."""
        if not events.bad:
            return
        first = min(events.bad)
        fault = events.bad[first]
        if self.row is not None:
            row = batch.column(self.row)[first].as_py()
            raise fault.as_error(find_remedies(fault), row)
        can_mend = fault.code == "invalid"
        error = fault.as_error([*([Remedy.REPAIR] if can_mend else []), *remedies])
        raise error.within(f"event {events.ids[first].as_py()!r}")


@dataclass(frozen=True, slots=True)
class MatchTask:
    """The function for `mapInArrow` of the plan "broadcast": all subscriptions, some events."""

    handshake: Handshake
    sets: SetChoice
    events: EventColumns
    shape: AnswerShape

    @noting_errors
    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Match batches of events; the answers are of bounded size."""
        self.handshake.check()
        begun = begin(batches, self.events.names)
        if begun is None:
            return
        first, named = begun
        chosen = self.sets.choose(first)
        subscriptions = open_set(chosen.staged)
        names = name_once(self.shape, chosen.staged, subscriptions)
        reading = self.events.reading(chosen)
        done = TaskTally.begin(chosen.version)
        for batch in map(restore_lists, cut(named, subscriptions)):
            events = reading.receive(batch)
            if not self.shape.quarantine:
                reading.refuse_bad(batch, events)
            matched = match_received(events, subscriptions)
            kept = with_mended(batch, events.batch, self.shape.keep)
            yield from self.shape.answer(kept, matched, names)
            bad = np.array(sorted(events.bad), np.int64)
            yield from self.shape.bad(kept, matched, bad)
            done.add(events)
        kinds = [first.schema.field(name).type for name in self.shape.keep]
        yield self.shape.tally(events.ids.type, kinds, done)


def name_once(shape: AnswerShape, staged: StagedSet, subscriptions: SubscriptionSet) -> AnswerNames:
    """Make the columns of names for a set, which a worker does once: many batches are small."""
    key = ("names", shape.has_whole_ids, shape.has_whole_subscribers)
    return derive(
        staged,
        key,
        lambda: shape.name(subscriptions, staged.version),
        lambda names: names.nbytes,
    )


def begin(
    batches: Iterator[pa.RecordBatch], names: Sequence[str]
) -> tuple[pa.RecordBatch, Iterator[pa.RecordBatch]] | None:
    """Name the columns of batches; return the first that has rows, and all; None without rows."""
    named = (batch.rename_columns(list(names)) for batch in batches if batch.num_rows)
    first = next(named, None)
    return None if first is None else (first, chain([first], named))


def cut(
    batches: Iterable[pa.RecordBatch], subscriptions: SubscriptionSet
) -> Iterator[pa.RecordBatch]:
    """Cut batches so small that the answer is bounded even for events that match everything."""
    rows_max = min(ROWS_MAX, count_rows_at_once(subscriptions))
    for large in batches:
        for first in range(0, large.num_rows, rows_max):
            yield large.slice(first, rows_max)


def take_faults(batch: pa.RecordBatch, events: ReceivedEvents) -> None:
    """Set aside the events that their source has found to be bad, for its reasons."""
    if SOURCE_FAULT not in batch.schema.names:
        return
    faults = batch.column(SOURCE_FAULT)
    for row in np.flatnonzero(faults.is_valid().to_numpy(zero_copy_only=False)).tolist():
        events.bad[row] = Fault(**faults[row].as_py())


def name_files(batch: pa.RecordBatch, events: ReceivedEvents) -> None:
    """Add to bad events the file that they come from, where that is known."""
    if FILE not in batch.schema.names:
        return
    files = batch.column(FILE)
    for row, fault in events.bad.items():
        file = files[row].as_py()
        if file is not None:
            events.bad[row] = replace(fault, place=f"in {file}, {fault.place}")
