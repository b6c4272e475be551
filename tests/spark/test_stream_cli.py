"""`contrada stream`: files in, matches out, and a folder of state from which it goes on."""

from __future__ import annotations

import json
import re
import shutil
from typing import TYPE_CHECKING, Any

import pytest

import contrada.spark
from contrada.cli import main
from contrada.spark import stream_watch
from contrada.spark.folder_sink import FolderSink
from kafka_cases import Sent, feature, send
from kafka_topics import KafkaTopics
from stream_desk import Desk

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from kafka_broker import KafkaBroker

pytestmark = [
    pytest.mark.spark,
    pytest.mark.usefixtures("spark"),
]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_files_are_matched_and_bad_rows_go_to_the_quarantine_with_their_lines(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    desk.send("1.csv", "id,lon,lat,speed\n1,0.5,0.5,3\n2,1.5,0.5,4\n3,7,7,5\n")
    desk.send("2.csv", "id,lon,lat,speed\n4,0.5,0.5,fast\n5,0.6,0.5,7\n")
    feature = {"type": "Feature", "id": 6, "properties": {"speed": 1}}
    place = {"type": "Point", "coordinates": [0.5, 0.5]}
    desk.send("3.ndjson", json.dumps(feature | {"geometry": place}) + "\n")
    metrics = desk.folder / "counts.prom"
    assert desk.run("--json", "--keep", "speed", "--metrics", str(metrics)) == 0
    assert desk.pairs() == [(1, "a"), (2, "b"), (5, "a"), (6, "a")]
    assert {row["speed"] for row in desk.rows("out")} == {3, 4, 7, 1}
    (bad,) = desk.rows("state/quarantine")
    assert bad["event"] == 4
    assert "2.csv, line 2" in bad["error"]["place"]
    counts = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (counts["events"], counts["set_aside"], counts["matches"]) == (6, 1, 4)
    assert "contrada_stream_events_total 6\n" in metrics.read_text()
    assert f'version="{counts["version"]}"' in metrics.read_text()


def test_rows_that_are_found_bad_when_they_are_matched_have_their_lines_too(desk: Desk) -> None:
    bow = "POLYGON((0 0, 1 1, 1 0, 0 1, 0 0))"
    desk.send("1.csv", f'id,geometry\n1,"POINT (0.5 0.5)"\n\n2,"{bow}"\n,"POINT (0.5 0.5)"\n')
    assert desk.run() == 0
    assert desk.pairs() == [(1, "a")]
    bad = {row["error"]["code"]: row["error"]["place"] for row in desk.rows("state/quarantine")}
    path = desk.folder / "in" / "1.csv"
    assert bad == {
        "invalid": f"in {path}, line 4, column 'geometry'",
        "null_id": f"in {path}, line 5, column 'id'",
    }


def test_the_same_state_goes_on_with_what_is_new_and_with_changed_subscriptions(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    desk.send("1.csv", "id,lon,lat\n1,0.5,0.5\n")
    assert desk.run() == 0
    desk.subscribe(b=0, c=5)
    desk.send("2.csv", "id,lon,lat\n2,0.5,0.5\n3,5.5,0.5\n")
    assert desk.run("--json") == 0
    assert desk.pairs() == [(1, "a"), (2, "b"), (3, "c")]
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["events"] == 2
    assert len({row["version"] for row in desk.rows("out")}) == 2
    metrics = desk.folder / "counts.prom"
    assert desk.run("--metrics", str(metrics)) == 0
    assert "contrada_stream_events_total 0\n" in metrics.read_text(), "though nothing came"


def test_an_empty_file_of_subscriptions_withdraws_them_all(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "fences.geojson")
    square = {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]]}
    fence = {"type": "Feature", "properties": {"code": "a"}, "geometry": square}
    for number, features in enumerate([[fence], [], [fence]]):
        fences = {"type": "FeatureCollection", "features": features}
        desk.put("fences.geojson", json.dumps(fences))
        desk.send(f"{number}.csv", f"id,lon,lat\n{number},0.5,0.5\n")
        assert desk.run("--id", "code") == 0
    assert desk.pairs() == [(0, "a"), (2, "a")]


def test_of_bad_subscriptions_it_says_so_and_the_version_before_stays(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    desk.send("1.csv", "id,lon,lat\n1,0.5,0.5\n")
    assert desk.run() == 0
    (desk.folder / "fences.csv").write_text("id,filter\na,speed >\n")
    desk.send("2.csv", "id,lon,lat\n2,0.5,0.5\n")
    assert desk.run() == 0
    told = capsys.readouterr().err
    assert "ends too early" in told
    assert "the subscriptions stay as they were, at version 1-" in told
    assert desk.pairs() == [(1, "a"), (2, "a")]


def test_a_file_that_cannot_be_read_is_one_bad_row_and_no_end(desk: Desk) -> None:
    desk.send("1.csv", "id,lon,lat\n1,0.5,0.5\n")
    desk.send("2.parquet", "not Parquet at all")
    desk.send("3.csv", "id,lon,lat\n3,0.5,0.5\n")
    assert desk.run() == 0
    assert desk.pairs() == [(1, "a"), (3, "a")]
    (bad,) = desk.rows("state/quarantine")
    assert "2.parquet" in bad["error"]["place"]


@pytest.mark.parametrize(
    ("prepare", "options", "message"),
    [
        (lambda desk: None, (), "there is no file yet from which the columns could be learnt"),
        (
            lambda desk: desk.send("1.geojson", "{}"),
            (),
            "1.geojson: is not read: only files that end in .parquet, ",
        ),
        (
            lambda desk: desk.send("1.csv", "id,lon,lat\n1,0.5,0.5\n"),
            ("--schema", "speed double"),
            "--schema is for events from kafka://",
        ),
        (
            lambda desk: desk.send("1.csv", "id,lon,lat\n1,0.5,0.5\n"),
            ("--kafka", "sasl.mechanism=PLAIN"),
            "--kafka and --kafka-file are for events from or matches to kafka://",
        ),
        (
            lambda desk: desk.put("client.properties", "# ours\n\nhush hush\n"),
            ("--kafka-file", "client.properties", "--events", "kafka://nowhere:1/in"),
            "--kafka-file client.properties, line 3: must be KEY=VALUE",
        ),
        (
            lambda desk: None,
            ("--kafka-file", "gone", "--events", "kafka://nowhere:1/in"),
            "--kafka-file gone: No such file",
        ),
        (
            lambda desk: desk.send("1.csv", "id,lon,lat\n1,0.5,0.5\n"),
            ("--every", "2 s"),
            "--every 2 s and --once exclude each other",
        ),
        (lambda desk: None, ("--files", "0"), "--files must be a number >= 1, not 0"),
        (lambda desk: None, ("--partitions", "-3"), "--partitions must be a number >= 1, not -3"),
        (lambda desk: None, ("--metrics", "in"), "--metrics in: is a folder, not a file"),
        (lambda desk: None, ("--metrics", "no/counts"), "--metrics no/counts: there is no folder"),
        (
            lambda desk: [
                desk.send("1.csv", "id,lon,lat\n1,0.5,0.5\n"),
                desk.put("fences#1.csv", "id,filter\na,speed >\n"),
            ],
            ("--subscriptions", "fences#1.csv"),
            "the predicate ends too early",
        ),
        (
            lambda desk: desk.send("1.csv", "id,lon,lat\n1,0.5,0.5\n"),
            ("--event-id", "ship"),
            "has no column 'ship' for the id",
        ),
    ],
)
def test_what_cannot_run_is_refused(
    desk: Desk,
    prepare: Any,
    options: tuple[str, ...],
    message: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(desk.folder)
    prepare(desk)
    assert desk.run(*options) == 2
    told = capsys.readouterr().err
    assert message in told
    assert "hush" not in told
    assert not (desk.folder / "out").exists()


def test_an_interval_is_a_duration(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(desk.words("--every", "soon")) == 2
    assert "--every 'soon' is not a duration" in capsys.readouterr().err
    assert not (desk.folder / "state").exists()


def test_what_ends_the_stream_is_said_in_one_line(
    desk: Desk, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.send("1.csv", "id,lon,lat\n1,0.5,0.5\n")
    begin = FolderSink._begin

    def remove(sink: FolderSink) -> None:  # while the query runs
        shutil.rmtree(desk.folder / "state" / "quarantine")
        begin(sink)

    with monkeypatch.context() as patched:
        patched.setattr(FolderSink, "_begin", remove)
        assert desk.run() == 2
    told = capsys.readouterr().err
    assert "state/quarantine: has no _contrada.json any more: the folder was removed" in told
    assert "Traceback" not in told
    assert desk.run() == 0
    assert desk.pairs() == [(1, "a")]


def test_a_batch_whose_counts_do_not_add_up_ends_the_stream(
    desk: Desk, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.send("1.csv", "id,lon,lat\n1,0.5,0.5\n")
    ask = stream_watch._ask_spark

    def lose(session: SparkSession) -> dict[str, dict[str, Any]]:
        found = ask(session) or {}
        return {k: v | {"evaluated": 0} if "evaluated" in v else v for k, v in found.items()}

    with monkeypatch.context() as patched:
        patched.setattr(stream_watch, "_ask_spark", lose)
        assert desk.run() == 2
    told = capsys.readouterr().err.splitlines()
    lost = "1 events came in, and 0 were evaluated and 0 set aside: the answer is not complete"
    assert f"contrada: batch 0: {lost}" in told
    assert desk.pairs() == []
    assert desk.run() == 0
    assert desk.pairs() == [(1, "a")]


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (["offsets/0"], "Failed to read log file "),
        (["sources/0/0"], "batch 0 doesn't exist; restore the state"),
        (["metadata"], "com.fasterxml.jackson"),
    ],
)
def test_a_damaged_checkpoint_is_said_in_one_line(
    files: list[str], said: str, desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    desk.send("1.csv", "id,lon,lat\n1,0.5,0.5\n")
    assert desk.run() == 0
    for name in files:
        file = desk.folder / "state" / "checkpoint" / name
        file.with_name(f".{file.name}.crc").unlink()
        if name.startswith("sources"):
            file.unlink()
        else:
            file.write_text("")
    desk.send("2.csv", "id,lon,lat\n2,0.5,0.5\n")
    capsys.readouterr()
    assert desk.run() == 2
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "damaged" in line]
    assert said in line and "/state: the checkpoint in it is damaged: " in line


def test_the_folder_of_another_stream_is_refused(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    (desk.folder / "state").mkdir()
    (desk.folder / "state" / "mine.txt").write_text("mine")
    assert desk.run() == 2
    assert "has files, but not those of a stream" in capsys.readouterr().err
    (desk.folder / "state" / "mine.txt").unlink()
    (desk.folder / "state" / "checkpoint" / "offsets" / "0").mkdir(parents=True)
    stated = {"format": 1, "events": "elsewhere", "to": str(desk.folder / "out")}
    (desk.folder / "state" / "stream.json").write_text(json.dumps(stated))
    assert desk.run() == 2
    assert "that stream has --events elsewhere, not" in capsys.readouterr().err
    (desk.folder / "state" / "stream.json").write_text("{")
    assert desk.run() == 2
    assert "stream.json is damaged" in capsys.readouterr().err


def test_a_stream_that_was_refused_at_first_runs_when_that_is_mended(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    assert desk.run() == 2
    assert "there is no file yet" in capsys.readouterr().err
    desk.send("1.csv", "id,lon,lat\n1,0.5,0.5\n")
    assert desk.run("--event-id", "ship") == 2
    (desk.folder / "fences.csv").write_text("id,filter\na,speed >\n")
    assert desk.run() == 2
    desk.subscribe(a=0)
    assert desk.run() == 0
    assert desk.pairs() == [(1, "a")]
    capsys.readouterr()
    assert desk.run("--event-id", "lon") == 2
    assert "--event-id lon: the stream began with id; another one needs" in capsys.readouterr().err


def test_messages_with_the_id_of_one_thing_are_not_taken_for_doubles(
    desk: Desk, spark: SparkSession, kafka: KafkaBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    topics = KafkaTopics(spark, kafka)
    van = feature(id="van", geometry={"type": "Point", "coordinates": [0.5, 0.5]})
    topics.put("vans", [send(van), send(van), Sent(b"no message")])
    places = ("--events", topics.uri("vans"), "--to", topics.uri("vans-found"))
    assert desk.run(*places, "--event-id", "wing", "--schema", "wind double") == 2
    told = capsys.readouterr().err
    assert "--event-id wing: messages have no such column; --schema declares them, and " in told
    assert desk.run(*places, "--schema", "wind double", "--kafka", "fetch.min.bytes=1") == 0
    found = [json.loads(bytes(row["value"])) for row in topics.take("vans-found")]
    assert {event["data"]["event"] for event in found} == {"van"}
    ids = {event["id"] for event in found}
    assert len(ids) == 2 and all(re.fullmatch(r"vans/\d/\d\|a", id_) for id_ in ids), ids
    schema = "event string, subscription string, version string"
    answers = contrada.spark.read_kafka(
        spark, topics.uri("vans-found"), schema=schema, drop_doubles="10 minutes", batch=True
    )
    assert [row[1:3] for row in answers.select("id", "event", "subscription").collect()] == [
        ("van", "a")
    ] * 2
    (bad,) = topics.take("vans-found-quarantine")
    assert bad["headers"].keys() >= {"contrada-error-message", "contrada-source"}
    assert desk.run(*places, "--event-id", "wind") == 2
    assert "--event-id wind: the stream began with id" in capsys.readouterr().err


def test_files_go_to_a_topic_with_options_of_its_clients(
    desk: Desk, spark: SparkSession, kafka: KafkaBroker
) -> None:
    topics = KafkaTopics(spark, kafka)
    desk.send("1.csv", "id,lon,lat\n1,0.5,0.5\n2,0.5,north\n")
    (desk.folder / "client.properties").write_text("linger.ms=1\n")
    options = ("--kafka", "acks=all", "--kafka-file", str(desk.folder / "client.properties"))
    assert desk.run("--to", topics.uri("from-files"), *options) == 0
    (found,) = topics.take("from-files")
    assert json.loads(bytes(found["value"]))["id"] == "1|a"
    (bad,) = topics.take("from-files-quarantine")
    assert json.loads(bytes(bad["value"]))["type"] == "contrada.error"
