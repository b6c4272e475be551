"""What runs in Spark's workers: a matcher is made once in each, answers are of bounded size."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
import shapely

from contrada.errors import Unavailable
from contrada.matching.subscribing import PredicateReader
from contrada.matching.subscription_columns import pack_subscriptions
from contrada.model.relation import find_relation
from contrada.model.subscription import Subscription
from contrada.spark import answering, worker
from contrada.spark.answering import TALLY, AnswerShape
from contrada.spark.chosen_sets import ChosenSet, FixedSet
from contrada.spark.handshake import Handshake
from contrada.spark.staging import StagedSet, fetch
from contrada.spark.subscription_tasks import write_part
from contrada.spark.worker import EventColumns, MatchTask

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession


def make_task(zones: int = 3, **changes: Any) -> MatchTask:
    """A task with subscriptions to the whole square from 0 to 4, by their number."""
    reader = PredicateReader()
    box = shapely.box(0, 0, 4, 4)
    predicate = reader.combine(box, find_relation("intersects"), "geometry", None)
    with tempfile.TemporaryDirectory() as folder:
        uri = Path(folder).as_uri()
        subscriptions = [Subscription(number, predicate) for number in range(zones)]
        part = write_part(uri, pack_subscriptions(subscriptions))
        fetch(uri, part)  # into the cache of this machine: the folder goes
    shape = AnswerShape((), False, False, has_whole_ids=True, has_whole_subscribers=False)
    columns = EventColumns(("id", "geometry", "note"), "id", ("geometry",), repair=False)
    sets = FixedSet(ChosenSet(StagedSet(uri, (part,)), ("geometry",), ("geometry",)))
    return MatchTask(Handshake.here(), sets, columns, replace(shape, **changes))


def answers_of(task: MatchTask, *batches: pa.RecordBatch) -> list[pa.RecordBatch]:
    """What a task answers, without the row that says what it has done."""
    answers = list(task(iter(batches)))
    assert answers[-1].num_rows == 1
    assert answers[-1].column(TALLY)[0].is_valid
    assert all(not answer.column(TALLY)[0].is_valid for answer in answers[:-1] if len(answer))
    return answers[:-1]


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

        from contrada.matcher import column_files
        from contrada.spark import open_sets

        made: list[int] = open_sets.__dict__.setdefault("made_in_a_test", [])
        inner = column_files.load_columns

        def load_and_count(*args: Any) -> Any:
            made.append(1)
            return inner(*args)

        with patch.object(open_sets, "load_columns", load_and_count):
            rows = sum(batch.num_rows for batch in task(batches))
        yield pa.RecordBatch.from_pydict(
            {"process": [os.getpid()], "made": [len(made)], "rows": [rows]}
        )

    return run


@pytest.mark.spark
def test_a_matcher_is_made_once_in_each_worker_process(spark: SparkSession) -> None:
    task = make_task(zones=17)  # a set that no other test uses
    point = bytearray(shapely.to_wkb(shapely.Point(1, 2)))
    rows = [(n, point, "") for n in range(80)]
    events = spark.createDataFrame(rows, "id long, geometry binary, note string").repartition(8)
    said = []
    for _ in range(3):
        frame = events.mapInArrow(count_builds(task), "process long, made long, rows long")
        said += [tuple(row) for row in frame.collect()]
    assert sum(rows for _, _, rows in said) == 3 * (80 * 17 + 8)
    assert len(said) == 3 * 8
    assert {made for _, made, _ in said} == {1}
    assert len({process for process, _, _ in said}) < len(said)


def test_a_task_says_what_it_has_done() -> None:
    task = make_task(quarantine=True)
    *_, last = task(iter([make_events(5, bad=frozenset({1})), make_events(4)]))
    assert last.column(TALLY).to_pylist() == [
        {"evaluated": 8, "set_aside": 1, "mended": 0, "without_geometry": 0, "version": None}
    ]
    assert list(task(iter([]))) == []


def test_a_task_refuses_to_work_for_another_version() -> None:
    task = make_task()
    here = task.handshake
    for versions, words in (
        (replace(here, contrada="0.0.1"), "contrada 0.0.1 on the driver"),
        (replace(here, python="2.7"), rf"python 2.7 on the driver, {here.python} on "),
        (replace(here, snapshot=99), "snapshot 99 on the driver"),
    ):
        with pytest.raises(Unavailable, match=words):
            list(replace(task, handshake=versions)(iter([make_events(1)])))


def test_answers_have_at_most_so_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "ROWS_MAX", 10)
    monkeypatch.setattr(answering, "ROWS_MAX", 10)
    answers = answers_of(make_task(zones=7), make_events(25), make_events(0), make_events(4))
    assert all(0 < len(answer) <= 10 for answer in answers)
    whole = pa.Table.from_batches(answers)
    found = list(zip(whole["event"].to_pylist(), whole["subscription"].to_pylist(), strict=True))
    assert found == [(row, zone) for count in (25, 4) for row in range(count) for zone in range(7)]


def test_counts_and_bad_rows_have_at_most_so_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "ROWS_MAX", 10)
    monkeypatch.setattr(answering, "ROWS_MAX", 10)
    task = make_task(zones=2, wants_counts=True, quarantine=True)
    events = make_events(35, bad=frozenset({0, 9, 10, 34}))
    answers = answers_of(task, events)
    assert all(len(answer) <= 10 for answer in answers)
    whole = pa.Table.from_batches(answers).to_pylist()
    assert sorted(row["event"] for row in whole) == list(range(35))
    assert {row["event"] for row in whole if row["n"] is None} == {0, 9, 10, 34}
    assert all(row["n"] == 2 for row in whole if row["error"] is None)


def test_answers_that_keep_long_values_are_cut_by_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answering, "_KEPT_BYTES_MAX", 1_000)
    task = make_task(zones=20, keep=("note", "id"))
    answers = answers_of(task, make_events(5, note="x" * 300))
    assert max(answer.column("note").nbytes for answer in answers) < 1_000 + 2 * 300
    whole = pa.Table.from_batches(answers)
    assert whole.num_rows == 100
    assert np.array_equal(whole["event"], whole["id"])
    assert whole["note"].unique().to_pylist() == ["x" * 300]


def test_batches_that_are_slices_are_read_from_their_own_start() -> None:
    events = make_events(9, bad=frozenset({0, 1}))
    answers = answers_of(make_task(zones=1), events.slice(2, 5))
    assert pa.Table.from_batches(answers)["event"].to_pylist() == [2, 3, 4, 5, 6]


READ_ONLY_HOME = """
import contrada.spark
spark = contrada.spark.session("local[1]")
events = spark.createDataFrame([(1, "POINT(1 1)")], "id int, geometry string")
zones = spark.createDataFrame([("a", "POINT(1 1)")], "id string, geometry string")
print(contrada.spark.match(events, zones, plan="broadcast").collect())
contrada.Matcher().add_many("zones.csv")  # what reads CSV is a kernel
spark.stop()
"""


@pytest.mark.spark
def test_a_match_runs_where_home_is_read_only(tmp_path: Path) -> None:
    environment = {**os.environ, "HOME": "/dev/null", "TMPDIR": str(tmp_path)}
    for name in ("XDG_CACHE_HOME", "NUMBA_CACHE_DIR"):
        environment.pop(name, None)
    (tmp_path / "zones.csv").write_text("id,wkt\n1,POINT(1 1)\n")
    done = subprocess.run(
        [sys.executable, "-c", READ_ONLY_HOME],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "event=1, subscription='a'" in done.stdout
    (cache,) = tmp_path.glob("contrada-*[0-9]")
    assert cache.stat().st_mode & 0o777 == 0o700
    assert list(cache.glob("kernels-*/*/*.nbc"))
    assert list(cache.glob("snapshots/*.contrada"))


@pytest.mark.spark
def test_a_task_has_one_thread(spark: SparkSession) -> None:
    def tell(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import os

        for _ in batches:
            pass
        found = {"arrow": [pa.cpu_count()], "others": [os.environ.get("OMP_NUM_THREADS")]}
        yield pa.RecordBatch.from_pydict(found)

    frame = spark.range(1).coalesce(1).mapInArrow(tell, "arrow long, others string")
    assert [tuple(row) for row in frame.collect()] == [(1, "1")]
