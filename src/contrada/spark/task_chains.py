"""Tasks one after another in one Python worker, where Spark would take a worker for each.

Between two calls of `mapInArrow` Spark makes rows of batches and batches of rows, and each of the
two runs in a process of its own. What our tasks hand to our tasks can stay in the worker: noted
here is how a DataFrame was made, as long as it lives. One that was filtered since, for instance, is
another DataFrame, of which nothing is noted, and Spark makes it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import pyarrow as pa

from contrada.spark.answering import DONE, TALLY
from contrada.spark.match_counts import observed
from contrada.spark.task_errors import noting_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

ArrowTask = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
ChooseColumns = Callable[[tuple[str, ...]], ArrowTask]


@dataclass(frozen=True, slots=True)
class TaskChain:
    """The function for `mapInArrow` that hands what one task yields to another."""

    first: ArrowTask
    second: ArrowTask

    @noting_errors
    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield what the second makes of what the first does."""
        yield from self.second(self.first(batches))


@dataclass(frozen=True, slots=True)
class EventOrigin:
    """Of which rows events are made, and by which task, for the columns that are wanted of them.

    The task takes along a column of the rows that no event has.
    """

    rows: "DataFrame"
    choose: ChooseColumns


@dataclass(frozen=True, slots=True)
class AnswerOrigin:
    """How an answer on a stream is made: events, brought to where a task makes the answer of them.

    What was done is counted in rows of the task, whose type is `tally`; or, where that is None, in
    rows of what is brought.
    """

    events: "DataFrame"
    bring: "Callable[[DataFrame], DataFrame]"
    task: ArrowTask
    tally: "DataType | None"
    done: tuple[str, ...] = DONE

    def follow(self, task: ArrowTask, schema: str) -> "DataFrame":
        """Hand the answer to a task, which must pass on rows that only count."""
        chain = TaskChain(self.task, task)
        if self.tally is None:
            return observed(
                self.events,
                self.bring,
                lambda brought: brought.mapInArrow(chain, schema),
                done=self.done,
            )
        counted = f"{schema}, {TALLY} {self.tally.simpleString()}"

        def run(events: "DataFrame") -> "DataFrame":
            return self.bring(events).mapInArrow(chain, counted)

        return observed(self.events, run, done=self.done)


_events: "WeakKeyDictionary[DataFrame, EventOrigin]" = WeakKeyDictionary()
_answers: "WeakKeyDictionary[DataFrame, AnswerOrigin]" = WeakKeyDictionary()


def note_events(events: "DataFrame", origin: EventOrigin) -> None:
    """Note how events are made."""
    _events[events] = origin


def find_events(events: "DataFrame") -> EventOrigin | None:
    """Return how events are made, where it is known and has not changed."""
    return _events.get(events)


def note_answer(answer: "DataFrame", origin: AnswerOrigin) -> None:
    """Note how an answer is made."""
    _answers[answer] = origin


def find_answer(answer: "DataFrame") -> AnswerOrigin | None:
    """Return how an answer is made, where it is known and has not changed."""
    return _answers.get(answer)
