"""`contrada stream`: files in, matches out, and a folder of state from which it goes on."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from stream_desk import Desk

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = [
    pytest.mark.spark,
    pytest.mark.xdist_group("spark"),
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
            lambda desk: desk.send("1.csv", "id,lon,lat\n1,0.5,0.5\n"),
            ("--schema", "speed double"),
            "--schema and --kafka are for events from kafka://",
        ),
        (
            lambda desk: desk.send("1.csv", "id,lon,lat\n1,0.5,0.5\n"),
            ("--kafka", "sasl.mechanism=PLAIN"),
            "--schema and --kafka are for events from kafka://",
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
            ("--every", "soon"),
            "--every 'soon' is not a duration",
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


def test_the_folder_of_another_stream_is_refused(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    (desk.folder / "state").mkdir()
    (desk.folder / "state" / "mine.txt").write_text("mine")
    assert desk.run() == 2
    assert "has files, but not those of a stream" in capsys.readouterr().err
    (desk.folder / "state" / "mine.txt").unlink()
    stated = {"format": 1, "events": "elsewhere", "to": str(desk.folder / "out")}
    (desk.folder / "state" / "stream.json").write_text(json.dumps(stated))
    assert desk.run() == 2
    assert "that stream has --events elsewhere, not" in capsys.readouterr().err
    (desk.folder / "state" / "stream.json").write_text("{")
    assert desk.run() == 2
    assert "stream.json is damaged" in capsys.readouterr().err
