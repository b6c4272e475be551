"""Transitions of a batch: positions sorted by object and time, followed in pieces.

Each task has all positions of its objects, so that it never holds more than a piece of them, and
what is known of the one object that goes on in the next piece.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from contrada.matcher.match_run import count_rows_at_once
from contrada.spark.answering import TALLY
from contrada.spark.chosen_sets import ChosenSet
from contrada.spark.handshake import Handshake
from contrada.spark.null_lists import restore_lists
from contrada.spark.open_sets import open_set
from contrada.spark.position_tasks import (
    ANSWER,
    POSITION_TIME,
    PositionReader,
    cut_rows,
    read_with,
    set_aside,
    write_batches,
)
from contrada.spark.task_errors import noting_errors
from contrada.spark.track_steps import TrackStepper, tally_step
from contrada.spark.transition_answers import FollowTally, TransitionShape
from contrada.spark.worker import begin
from contrada.transitions.deciding import Step
from contrada.transitions.track_state import TrackState

GREATEST_DDL = "greatest bigint"


@dataclass(frozen=True, slots=True)
class JudgePositionsTask:
    """The function for `mapInArrow` that reads positions to be sorted.

    What is an answer already, bad positions and counts, is in rows of its own, as bytes.
    """

    handshake: Handshake
    chosen: ChosenSet
    reader: PositionReader
    shape: TransitionShape

    @noting_errors
    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Judge batches; their columns are those of events, with time and place beside them."""
        self.handshake.check()
        begun = begin(batches, self.reader.columns.names)
        if begun is None:
            return
        reader = read_with(self.reader, self.chosen.geometries)
        done = FollowTally(version=self.chosen.version)
        for batch in map(restore_lists, cut_rows(begun[1])):
            judged = reader.judge(batch, None)
            done.set_aside += len(judged.events.bad)
            bad = set_aside(reader, self.shape, batch, judged.events)
            rows = judged.rows.append_column(ANSWER, pa.nulls(judged.rows.num_rows, pa.binary()))
            yield from rows.to_batches()
            if bad:
                yield _as_row(rows.schema, write_batches(bad))
        yield _as_row(rows.schema, write_batches([self.shape.tally(done)]))


def _as_row(schema: pa.Schema, answer: bytes) -> pa.RecordBatch:
    """Make a row that has nothing but an answer."""
    columns = [pa.nulls(1, field.type) for field in schema][:-1]
    return pa.RecordBatch.from_arrays([*columns, pa.array([answer], pa.binary())], schema=schema)


@dataclass(frozen=True, slots=True)
class GreatestTimeTask:
    """The function for `mapInArrow` that finds the greatest time of good positions."""

    handshake: Handshake
    chosen: ChosenSet
    reader: PositionReader

    @noting_errors
    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield one row, or none where there are no positions."""
        self.handshake.check()
        begun = begin(batches, self.reader.columns.names)
        if begun is None:
            return
        reader = read_with(self.reader, self.chosen.geometries)
        found = [reader.judge(b, None).greatest_us for b in map(restore_lists, cut_rows(begun[1]))]
        times = [time for time in found if time is not None]
        yield pa.RecordBatch.from_pydict({"greatest": pa.array([max(times, default=None)])})


@dataclass(frozen=True, slots=True)
class FollowSortedTask:
    """The function for `mapInArrow` over positions by object, time and id.

    `names` are the columns. `clock_us` is the greatest time of all positions, where timers run.
    A piece has about `piece_rows`.
    """

    handshake: Handshake
    chosen: ChosenSet
    stepper: TrackStepper
    names: tuple[str, ...]
    clock_us: int | None
    piece_rows: int

    @noting_errors
    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Follow positions; the answers are of bounded size."""
        self.handshake.check()
        shape = self.stepper.shape
        waiting: pa.Table | None = None
        state: TrackState | None = None
        rows_max = min(self.piece_rows, count_rows_at_once(open_set(self.chosen.staged)))
        for batch in batches:
            rows, answers = self._split(batch)
            for answer in answers:
                for made in pa.ipc.open_stream(answer):
                    yield made if TALLY in made.schema.names else shape.counted(made)
            waiting = rows if waiting is None else pa.concat_tables([waiting, rows])
            while waiting.num_rows >= rows_max and (end := self._find_end(waiting)):
                step = self._step(state, waiting.slice(0, end))
                state, waiting = step.state, waiting.slice(end)
                yield from self._answer(step)
        if waiting is not None:
            step = self._step(state, waiting)
            yield from self._answer(step)
            yield from self._answer(self._step(step.state, None))

    def _split(self, batch: pa.RecordBatch) -> tuple[pa.Table, list[pa.Buffer]]:
        """Divide a batch into positions, and answers that are made already."""
        table = pa.table(batch.columns, names=list(self.names))
        answers = table.column(ANSWER)
        made = [value.as_buffer() for value in answers.drop_null()]
        rows = table.drop_columns([ANSWER])
        return (rows.filter(pc.is_null(answers)) if made else rows), made

    def _find_end(self, rows: pa.Table) -> int:
        """Return where rows can be cut, before the last object, time and id; 0 where nowhere."""
        is_other = np.zeros(rows.num_rows - 1, bool)
        for name in (self.stepper.options.object, POSITION_TIME, self.stepper.event_id):
            column = rows.column(name).combine_chunks()
            is_other |= pc.not_equal(column[1:], column[:-1]).to_numpy(zero_copy_only=False)
        ends = np.flatnonzero(is_other)
        return int(ends[-1]) + 1 if len(ends) else 0

    def _step(self, state: TrackState | None, rows: pa.Table | None) -> Step:
        state = TrackState.empty() if state is None else state
        goes_on = rows is not None
        return self.stepper.step(
            state, rows, self.chosen, self.clock_us, is_whole=True, goes_on=goes_on
        )

    def _answer(self, step: Step) -> Iterator[pa.RecordBatch]:
        shape = self.stepper.shape
        yield from map(shape.counted, shape.answer(step.rows))
        done = tally_step(step, self.chosen.version, 0)
        done.objects = done.visits = 0  # which are forgotten
        yield shape.tally(done)
