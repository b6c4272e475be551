"""`write_stream` to folders: what is in them, what is refused, and what stops a query."""

from __future__ import annotations

import shutil
from queue import SimpleQueue
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import geopandas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import contrada.spark
from contrada.errors import InvalidInput
from contrada.spark import stream_watch
from contrada.spark.match_counts import EventCounts
from stream_runs import (
    add_batch,
    answer,
    check_whole,
    expected,
    prepare,
    query,
    read,
    run,
    start,
    stop_at,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from contrada.spark import BatchReport

pytestmark = pytest.mark.spark
REPORT_S = 60  # how long a test waits for what comes from Spark's listener


@pytest.fixture
def folder(tmp_path: Path, published_zones: Path) -> Path:
    """A folder with a published set and the events of one batch."""
    return prepare(tmp_path, published_zones, 1)


@pytest.fixture
def small_shuffles(spark: SparkSession) -> Iterator[None]:
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "1")
    yield
    spark.conf.set("spark.sql.shuffle.partitions", str(before))


def test_matches_are_geoparquet_and_bad_rows_lie_elsewhere(
    folder: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[dict[str, dict[str, Any]]] = []
    ask = stream_watch._ask_spark

    def note(session: SparkSession) -> dict[str, dict[str, Any]]:
        asked.append(ask(session) or {})
        return asked[-1]

    monkeypatch.setattr(stream_watch, "_ask_spark", note)
    add_batch(folder, 1)
    told: SimpleQueue[BatchReport] = SimpleQueue()
    run(spark, folder, on_batch=told.put)
    check_whole(folder, 2)
    matches = geopandas.read_parquet(folder / "matches")
    assert matches.crs == "EPSG:4326"
    assert [*matches.columns[:5]] == ["event", "subscription", "subscriber", "version", "geometry"]
    assert sorted(set(matches.geometry.x)) == [0.5, 1.5]
    (file, _) = (folder / "bad").rglob("*.parquet")
    bad = pq.read_table(file)
    assert b"geo" not in bad.schema.metadata
    assert bad.column_names[:3] == ["event", "geometry", "error"]
    assert bad["geometry"].to_pylist() == [b"no geometry"]
    assert "in file:" in bad["error"][0].as_py()["place"]
    came_in = [row["events"] for seen in asked for row in seen.values() if "events" in row]
    assert came_in == [4, 4]  # a second run over a batch would have been counted, too
    reports = [told.get(timeout=REPORT_S) for _ in range(2)]  # they come when the query has ended
    assert {report.counts for report in reports} == {EventCounts(4, 3, 1)}
    assert {report.version for report in reports} == set(matches["version"])


def test_a_batch_without_rows_leaves_no_folder(folder: Path, spark: SparkSession) -> None:
    def write(events: list[tuple[int, str]]) -> None:
        frame = spark.createDataFrame(events, "id long, geometry string")
        frame.coalesce(1).write.mode("append").parquet(str(folder / "texts"))
        stream = spark.readStream.schema(frame.schema).parquet(str(folder / "texts"))
        found = contrada.spark.match(
            stream, str(folder / "zones"), output="counts", quarantine=True, keep=["geometry"]
        )
        matching = found.where("n > 0 OR error IS NOT NULL")
        contrada.spark.write_stream(
            matching,
            f"{folder}/counts/",
            checkpoint=folder / "checkpoint",
            quarantine=folder / "bad",
            once=True,
        ).awaitTermination()

    write([(1, "POINT(50 50)")])
    write([(2, "POINT(")])
    write([(3, "POINT(0.5 0.5)")])
    assert [path.name for path in (folder / "counts").glob("b*")] == ["batch=2"]
    assert [path.name for path in (folder / "bad").glob("b*")] == ["batch=1"]
    rows = query(f"SELECT * FROM read_parquet('{folder}/counts/**/*.parquet')")
    assert rows == [(3, 2, "POINT(0.5 0.5)", 2)]
    (file,) = (folder / "bad").rglob("*.parquet")
    assert pq.read_schema(file).names == ["event", "geometry", "error"]


def test_a_bad_event_without_a_quarantine_ends_the_query_with_nothing_in_place(
    folder: Path, spark: SparkSession
) -> None:
    from pyspark.errors import StreamingQueryException

    found = answer(spark, folder, quarantine=False)
    places: dict[str, Any] = {"checkpoint": folder / "checkpoint", "once": True}
    with pytest.raises(StreamingQueryException, match="cannot read the geometry"):
        contrada.spark.write_stream(found, folder / "matches", **places).awaitTermination()
    assert [path.name for path in (folder / "matches").iterdir()] == ["_contrada.json"]
    run(spark, folder)  # a quarantine may be added
    check_whole(folder, 1)


def test_one_query_at_a_time_writes_and_another_may_follow_at_once(
    folder: Path, spark: SparkSession
) -> None:
    options: dict[str, Any] = {"checkpoint": folder / "checkpoint", "quarantine": folder / "bad"}
    first = contrada.spark.write_stream(
        answer(spark, folder), folder / "matches", every=0.1, name="first", **options
    )
    first.processAllAvailable()
    assert first.name == "first"
    with pytest.raises(InvalidInput, match="a query is running on this checkpoint; stop it first"):
        start(spark, folder)
    options["checkpoint"] = folder / "another"
    with pytest.raises(InvalidInput, match="is the folder of the query with the checkpoint"):
        contrada.spark.write_stream(answer(spark, folder), folder / "matches", **options)
    first.stop()
    add_batch(folder, 1)
    run(spark, folder)
    check_whole(folder, 2)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("evaluated", 2, "RowsLost: batch 0: 4 events came in, and 2 were evaluated and 1 set"),
        ("version_low", 0, "RowsLost: batch 0: its tasks met two versions of the subscripti"),
    ],
)
def test_a_batch_that_does_not_add_up_is_not_written(
    name: str,
    value: object,
    message: str,
    folder: Path,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from pyspark.errors import StreamingQueryException

    ask = stream_watch._ask_spark

    def ask_and_change(session: SparkSession) -> dict[str, dict[str, Any]]:
        return {
            key: row | {name: value} if name in row else row
            for key, row in (ask(session) or {}).items()
        }

    with monkeypatch.context() as patched:
        patched.setattr(stream_watch, "_ask_spark", ask_and_change)
        with pytest.raises(StreamingQueryException, match=message):
            run(spark, folder)
    assert read(folder) == (set(), set())
    run(spark, folder)
    check_whole(folder, 1)


def test_a_query_stops_after_a_wrong_batch_that_it_could_not_ask_for_before(
    folder: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault = "its counts do not add up"
    monkeypatch.setattr(stream_watch, "_ask_spark", lambda _: None)
    monkeypatch.setattr(
        stream_watch, "find_fault", lambda metrics: fault if _counts_events(metrics) else None
    )
    told: SimpleQueue[BatchReport] = SimpleQueue()
    running = contrada.spark.write_stream(
        answer(spark, folder),
        folder / "matches",
        checkpoint=folder / "checkpoint",
        quarantine=folder / "bad",
        on_batch=told.put,
    )
    assert running.awaitTermination(REPORT_S)
    assert told.get(timeout=REPORT_S).fault == fault


def _counts_events(metrics: Any) -> bool:
    return any(row.get("events") for row in metrics.values())


def test_a_batch_that_comes_again_under_an_older_number_is_refused(
    folder: Path, spark: SparkSession
) -> None:
    add_batch(folder, 1)
    run(spark, folder)
    for name in ("offsets", "commits", "sources"):
        shutil.rmtree(folder / "checkpoint" / name)
    with pytest.raises(InvalidInput, match="would begin again with batch 0, but batch 1 has been"):
        start(spark, folder)
    check_whole(folder, 2)


@pytest.mark.usefixtures("small_shuffles")
def test_a_query_with_state_goes_on_after_a_batch_that_spark_knows_nothing_of(
    folder: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark.errors import StreamingQueryException

    def fail() -> None:
        raise ZeroDivisionError

    def write_on() -> None:
        stream = spark.readStream.schema("id long, geometry binary, speed int")
        events = stream.option("maxFilesPerTrigger", 1).parquet(str(folder / "events"))
        timed = events.where("speed % 10 < 2").selectExpr(
            "*", "timestamp_seconds(1e6 + id) AS time"
        )
        found = contrada.spark.match(timed, str(folder / "zones"), keep=["time"])
        once = found.withWatermark("time", "1 hour").dropDuplicatesWithinWatermark(["event"])
        contrada.spark.write_stream(
            once.drop("time"), folder / "matches", checkpoint=folder / "checkpoint", once=True
        ).awaitTermination()

    add_batch(folder, 1)
    with monkeypatch.context() as patched:
        patched.setattr(*stop_at("all is done but Spark's commit", fail))
        with pytest.raises(StreamingQueryException):
            write_on()
    (folder / "events" / "0.parquet").rename(folder / "events" / "9.parquet")  # comes again
    write_on()
    rows = query(f"SELECT event, batch FROM read_parquet('{folder}/matches/**/*.parquet')")
    assert sorted(rows) == [(0, 0), (1, 0), (10, 1), (11, 1)]


def test_spark_reads_the_folder_too(folder: Path, spark: SparkSession) -> None:
    run(spark, folder)
    rows = spark.read.parquet(str(folder / "matches")).select("event", "subscription", "batch")
    assert {tuple(row) for row in rows.collect()} == expected(range(1))[0]


# What is refused before anything is written


def _counts(found: DataFrame) -> DataFrame:
    return found.drop("error")


REFUSALS: list[tuple[Callable[[DataFrame], Any], dict[str, Any], str]] = [
    (lambda found: "text", {}, "only a DataFrame can be written, not str"),
    (lambda found: found.sparkSession.range(1), {}, "the answer is not a stream; write_geoparquet"),
    (lambda found: SimpleNamespace(isStreaming=True), {}, "does not run over Spark Connect; write"),
    (lambda found: found, {"quarantine": None}, r"in its column 'error': quarantine=a folder is"),
    (_counts, {}, "nothing would go to the quarantine '.*bad': the answer has no column 'error'"),
    (lambda found: found, {"quarantine": "kafka://a/b"}, "is a topic, and '.*matches' a folder"),
    (lambda found: found, {"quarantine": "kafka://me:pw@a/b"}, "^a Kafka URI has no user and no"),
    (_counts, {"quarantine": "kafka://a/b?pw"}, "^'kafka://a/b': a Kafka URI has no '.'"),
    (lambda found: found, {"checkpoint": "matches/checkpoint"}, "checkpoint .* lies in to .*"),
    (lambda found: found, {"quarantine": "matches"}, "lies in .*: give folders of their own"),
    (lambda found: found, {"to": "."}, "checkpoint .* lies in to .*: give folders of their own"),
    (lambda found: found, {"every": "soon", "once": False}, "every 'soon' is not a duration"),
    (lambda found: found, {"every": "1 s"}, "every='1 s' and once=True: give one or the other"),
    (lambda found: found, {"color": 1}, "write_stream has no option 'color' for folders"),
    (
        lambda found: found.withColumn("Batch", found["event"]),
        {},
        "the answer has a column 'batch', which readers take from the names of folders",
    ),
    (lambda found: found.select("*", "event"), {}, "have the same name: event, event; many"),
]


@pytest.mark.parametrize(("change", "options", "message"), REFUSALS)
def test_what_cannot_be_written_is_refused_before_anything_is_there(
    change: Callable[[DataFrame], Any],
    options: dict[str, Any],
    message: str,
    folder: Path,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(folder)
    places = {"to": "matches", "checkpoint": "checkpoint", "quarantine": "bad", "once": True}
    given = {**places, **options}
    with pytest.raises(InvalidInput, match=message):
        contrada.spark.write_stream(change(answer(spark, folder)), **given)
    assert sorted(path.name for path in folder.iterdir()) == ["events", "zones"]


def test_a_geometry_that_cannot_be_written_is_named(folder: Path, spark: SparkSession) -> None:
    from pyspark.errors import StreamingQueryException

    fast = spark.createDataFrame([("fast", "speed >= 0")], "id string, filter string")
    contrada.spark.publish(fast, folder / "fast")  # which does not look at geometries
    stream = spark.readStream.schema("id long, geometry binary, speed int")
    events = stream.parquet(str(folder / "events"))
    found = contrada.spark.match(events, str(folder / "fast"), keep=["geometry"])
    with pytest.raises(StreamingQueryException, match=r"batch 0: .*row 3 has no readable geometry"):
        contrada.spark.write_stream(
            found, folder / "matches", checkpoint=folder / "checkpoint", once=True
        ).awaitTermination()
    assert pa.fs.LocalFileSystem().get_file_info(f"{folder}/matches/batch=0").type.name == (
        "NotFound"
    )
