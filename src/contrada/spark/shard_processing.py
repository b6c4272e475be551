"""The state of a shard of objects on a stream, as Spark keeps it: one value of bytes.

This module imports PySpark, for a class that its workers must find by name.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import (
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
    ValueState,
)

from contrada.errors import ContradaError, InvalidInput, write_line
from contrada.spark.chosen_sets import SetChoice
from contrada.spark.frames import MOMENT
from contrada.spark.handshake import Handshake
from contrada.spark.position_tasks import (
    ANSWER,
    BEGAN,
    DONE_LINE,
    GREATEST,
    PACKED,
    read_packed,
    write_batches,
)
from contrada.spark.track_steps import TrackStepper, tally_step
from contrada.spark.transition_answers import FollowTally
from contrada.transitions.state_bytes import decode, encode
from contrada.transitions.track_state import TrackState

ANSWER_DDL = f"{ANSWER} binary, {DONE_LINE} string"
_STATE, _STATE_DDL = "state", "state binary"
_SHARDS = "shards"  # a note in the state: among how many shards objects were dealt out


@dataclass(frozen=True, slots=True)
class ShardRows:
    """What tasks have sent to a shard in a batch.

    `answers` are bytes that go out as they are, and so are lines of what they have `done`.
    `greatest_us` is the greatest time of the batch.
    """

    packed: list[bytes]
    answers: list[bytes]
    done: list[str]
    greatest_us: int | None
    moment: str

    @classmethod
    def read(cls, frames: Iterator[pd.DataFrame]) -> "ShardRows":
        """Read the rows of a shard."""
        packed: list[bytes] = []
        answers: list[bytes] = []
        done: list[str] = []
        times: list[int] = []
        moment = ""
        for frame in frames:
            packed += [data for data in frame[PACKED] if data is not None]
            answers += [data for data in frame[ANSWER] if data is not None]
            done += [line for line in frame[DONE_LINE] if line is not None]
            times += [int(time) for time in frame[GREATEST].dropna()]
            moment = frame[BEGAN].iloc[0]
        return cls(packed, answers, done, max(times, default=None), moment)


class ShardProcessor(StatefulProcessor):
    """Follows the objects of a shard: each batch is one step of the room of transitions.

    Every shard has a row in every batch, so that its timers run and it takes up the version.
    """

    def __init__(self, handshake: Handshake, sets: SetChoice, stepper: TrackStepper) -> None:
        self._handshake, self._sets, self._stepper = handshake, sets, stepper
        self._state: ValueState | None = None

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Find the value that Spark keeps."""
        self._state = handle.getValueState(_STATE, _STATE_DDL)

    def handleInputRows(  # noqa: N802
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: TimerValues,  # noqa: ARG002, N803
    ) -> Iterator[pd.DataFrame]:
        """Follow the positions of a batch; out go bytes of answers, and lines of what was done."""
        try:
            self._handshake.check()
            brought = ShardRows.read(rows)
            found, done = self._follow(int(key[0]), brought)
            answers, lines = [*brought.answers, *found], [*brought.done, done.as_line()]
            yield pd.DataFrame(
                {
                    ANSWER: answers + [None] * len(lines),
                    DONE_LINE: [None] * len(answers) + lines,
                }
            )
        except ContradaError as error:
            error.add_note(write_line(error))
            raise

    def close(self) -> None:
        """Nothing is open."""

    def _follow(self, shard: int, brought: ShardRows) -> tuple[list[bytes], FollowTally]:
        """Return the answers of a shard, and what was done with its positions."""
        assert self._state is not None, "Spark calls init first"
        moment = pa.RecordBatch.from_pydict({MOMENT: [brought.moment]})
        chosen = self._sets.choose(moment)
        kept = self._state.get() if self._state.exists() else None
        state = self._open(shard, None if kept is None else bytes(kept[0]))
        rows = read_packed(brought.packed)
        step = self._stepper.step(state, rows, chosen, brought.greatest_us)
        data = encode(step.state)
        self._state.update((data,))
        answers = self._stepper.shape.answer(step.rows, is_encoded=True)
        done = tally_step(step, chosen.version, len(data))
        return [write_batches([batch]) for batch in answers], done

    def _open(self, shard: int, data: bytes | None) -> TrackState:
        """Read the state of a shard; refuse that of objects which were dealt out otherwise."""
        shards = str(self._stepper.options.shards)
        if data is None:
            return replace(TrackState.empty(), notes={_SHARDS: shards})
        state = decode(data)
        if (before := state.notes.get(_SHARDS)) != shards:
            raise InvalidInput(
                f"the state in the checkpoint has {before} shards, and shards={shards} is asked "
                f"for: an object would be looked for in another one (shard {shard}); give "
                f"shards={before}, or a new checkpoint"
            )
        return state
