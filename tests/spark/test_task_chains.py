"""What one of our tasks hands to another stays in the worker, unless something lies between."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import contrada.spark
from contrada.errors import InvalidInput
from contrada.spark.answering import TALLY
from contrada.spark.handshake import Handshake
from contrada.spark.kafka_messages import EncodeAnswerTask, EncodeTask, as_messages
from contrada.spark.task_chains import TaskChain
from contrada.spark.task_errors import noting_errors

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture
def answer(spark: SparkSession, tmp_path: Path) -> DataFrame:
    """The answer of a stream, which does not run."""
    winds = spark.createDataFrame([("gale", "wind > 17")], "id string, filter string")
    contrada.spark.publish(winds, tmp_path / "winds")
    (tmp_path / "events").mkdir()
    events = spark.readStream.schema("id long, wind int").parquet(str(tmp_path / "events"))
    return contrada.spark.match(events, str(tmp_path / "winds"))


def count_tasks(frame: Any) -> int:
    """Count the calls of mapInArrow in the plan of a DataFrame."""
    return str(frame._jdf.queryExecution().analyzed().toString()).count("MapInArrow")


def test_messages_are_made_where_an_answer_is_matched(answer: DataFrame) -> None:
    assert count_tasks(answer) == 1
    assert count_tasks(as_messages(answer, "matches")) == 1


def test_messages_of_an_answer_that_was_filtered_are_made_after_it(answer: DataFrame) -> None:
    assert count_tasks(as_messages(answer.where("event > 3"), "matches")) == 2


def test_what_a_task_has_done_passes_through_the_next() -> None:
    done = pa.struct([("evaluated", pa.int64())])
    rows = pa.record_batch({"event": pa.array([7]), TALLY: pa.nulls(1, done)})
    last = pa.record_batch(
        {"event": pa.nulls(1, pa.int64()), TALLY: pa.array([{"evaluated": 5}], done)}
    )
    task = EncodeAnswerTask(EncodeTask(Handshake.here(), ("event",), (), "/test"))
    first, second = task(iter([rows, last]))
    assert first.column("key").to_pylist() == [b"7"]
    assert first.column(TALLY).to_pylist() == [None]
    assert second.column("value").to_pylist() == [None]
    assert second.column(TALLY).to_pylist() == [{"evaluated": 5}]


class Refusing:
    @noting_errors
    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches
        raise InvalidInput("odd")


def test_an_error_is_noted_once_however_many_tasks_it_passes() -> None:
    with pytest.raises(InvalidInput) as caught:
        list(TaskChain(Refusing(), TaskChain(Refusing(), Refusing()))(iter([])))
    assert len(caught.value.__notes__) == 1
