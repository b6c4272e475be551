"""What runs in Spark's workers: a matcher is made once in each, answers are of bounded size."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
import shapely

from contrada.spark import worker
from contrada.spark.worker import MatchTask

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession


def make_task(zones: int = 3, **changes: Any) -> MatchTask:
    """A task with subscriptions to the whole square from 0 to 4, by their number."""
    box = shapely.to_wkb(shapely.box(0, 0, 4, 4))
    table = pa.table({"id": range(zones), "geometry": pa.array([box] * zones, pa.binary())})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    task = MatchTask(
        subscriptions=bytes(sink.getvalue()),
        digest=f"{zones} zones of a test",
        columns=("id", "geometry", "note"),
        event_id="id",
        subscription_id="id",
        has_whole_ids=True,
        has_whole_subscribers=False,
        keep=(),
        repair=False,
        quarantine=False,
        wants_counts=False,
    )
    return replace(task, **changes)


def make_events(count: int, note: str = "", bad: frozenset[int] = frozenset()) -> pa.RecordBatch:
    point = shapely.to_wkb(shapely.Point(1, 2))
    shapes = [point[:-1] if row in bad else point for row in range(count)]
    columns = [pa.array(range(count)), pa.array(shapes, pa.binary()), pa.array([note] * count)]
    return pa.record_batch(columns, names=["column0", "column1", "column2"])


def count_builds(task: MatchTask) -> Callable[..., Any]:
    """A function for `mapInArrow`: the task, then the process and how often it made a matcher."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import os
        from unittest.mock import patch

        from contrada.matcher import Matcher
        from contrada.spark import worker

        made: list[int] = worker.__dict__.setdefault("made_in_a_test", [])

        def make_and_count() -> Matcher:
            made.append(1)
            return Matcher()

        with patch.object(worker, "Matcher", make_and_count):
            rows = sum(batch.num_rows for batch in task(batches))
        yield pa.RecordBatch.from_pydict(
            {"process": [os.getpid()], "made": [len(made)], "rows": [rows]}
        )

    return run


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_a_matcher_is_made_once_in_each_worker_process(spark: SparkSession) -> None:
    task = make_task(digest="a set that no other test uses")
    point = bytearray(shapely.to_wkb(shapely.Point(1, 2)))
    rows = [(n, point, "") for n in range(80)]
    events = spark.createDataFrame(rows, "id long, geometry binary, note string").repartition(8)
    said = []
    for _ in range(3):
        frame = events.mapInArrow(count_builds(task), "process long, made long, rows long")
        said += [tuple(row) for row in frame.collect()]
    assert sum(rows for _, _, rows in said) == 3 * 80 * 3
    assert len(said) == 3 * 8
    assert {made for _, made, _ in said} == {1}
    assert len({process for process, _, _ in said}) <= 4


def test_a_worker_keeps_the_last_two_sets_of_subscriptions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker, "_matchers", {})
    tasks = [make_task(zones) for zones in (1, 2, 3)]
    for task in tasks:
        assert sum(len(batch) for batch in task(iter([make_events(2)]))) == 2 * len(
            worker._matchers[task.digest]
        )
    assert list(worker._matchers) == [tasks[1].digest, tasks[2].digest]


def test_the_columns_of_ids_are_made_once_in_a_task(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[worker.Names] = []
    inner = worker.name_subscriptions

    def make_and_count(*args: Any) -> worker.Names:
        made.append(inner(*args))
        return made[-1]

    monkeypatch.setattr(worker, "name_subscriptions", make_and_count)
    batches = [make_events(4) for _ in range(5)]
    assert sum(len(answer) for answer in make_task()(iter(batches))) == 5 * 4 * 3
    assert len(made) == 1


def test_answers_have_at_most_so_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "_ROWS_MAX", 10)
    answers = list(make_task(zones=7)(iter([make_events(25), make_events(0), make_events(4)])))
    assert all(0 < len(answer) <= 10 for answer in answers)
    whole = pa.Table.from_batches(answers)
    found = list(zip(whole["event"].to_pylist(), whole["subscription"].to_pylist(), strict=True))
    assert found == [(row, zone) for count in (25, 4) for row in range(count) for zone in range(7)]


def test_counts_and_bad_rows_have_at_most_so_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "_ROWS_MAX", 10)
    task = make_task(zones=2, wants_counts=True, quarantine=True)
    events = make_events(35, bad=frozenset({0, 9, 10, 34}))
    answers = list(task(iter([events])))
    assert all(len(answer) <= 10 for answer in answers)
    whole = pa.Table.from_batches(answers).to_pylist()
    assert sorted(row["event"] for row in whole) == list(range(35))
    assert {row["event"] for row in whole if row["n"] is None} == {0, 9, 10, 34}
    assert all(row["n"] == 2 for row in whole if row["error"] is None)


def test_answers_that_keep_long_values_are_cut_by_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "_KEPT_BYTES_MAX", 1_000)
    task = make_task(zones=20, keep=("note", "id"))
    answers = list(task(iter([make_events(5, note="x" * 300)])))
    assert max(answer.column("note").nbytes for answer in answers) < 1_000 + 2 * 300
    whole = pa.Table.from_batches(answers)
    assert whole.num_rows == 100
    assert np.array_equal(whole["event"], whole["id"])
    assert whole["note"].unique().to_pylist() == ["x" * 300]


def test_batches_that_are_slices_are_read_from_their_own_start() -> None:
    events = make_events(9, bad=frozenset({0, 1}))
    answers = list(make_task(zones=1)(iter([events.slice(2, 5)])))
    assert pa.Table.from_batches(answers)["event"].to_pylist() == [2, 3, 4, 5, 6]
