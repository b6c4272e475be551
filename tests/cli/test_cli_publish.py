"""`contrada publish`: files and lines reach a broker, each event once, however often it is run."""

import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import geopandas
import pytest
import shapely

from contrada.cli import main
from contrada.client.blocking import Client
from served_broker import ServedBroker, serving

BOW = '{"type":"Polygon","coordinates":[[[0,0],[1,1],[1,0],[0,1],[0,0]]]}'


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServedBroker]:
    with serving(tmp_path / "data") as served:
        monkeypatch.setenv("CONTRADA_URL", served.url)
        with Client() as client:
            client.put_subscription("all", "n >= 0", subscriber="ops")
        yield served


def heard(served: ServedBroker) -> list[int]:
    with Client(served.url) as client:
        deliveries = client.deliveries("ops", limit=1_000).deliveries
        return [delivery.event["properties"]["n"] for delivery in deliveries if delivery.event]


def write_lines(path: Path, count: int, **more: str) -> str:
    lines = [f'{{"type":"Feature","geometry":null,"properties":{{"n":{n}}}}}' for n in range(count)]
    for name, line in more.items():
        lines[int(name.removeprefix("line_")) - 1] = line
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def publish(capsys: pytest.CaptureFixture[str], *args: str, code: int = 0) -> dict[str, Any]:
    assert main(["publish", *args, "--json"]) == code
    answer: dict[str, Any] = json.loads(capsys.readouterr().out.splitlines()[-1])
    return answer


@pytest.mark.parametrize("suffix", [".geoparquet", ".geojson", ".csv", ".ndjson", ".gpkg"])
def test_a_file_of_each_format_is_published_in_its_order(
    suffix: str, served: ServedBroker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / f"events{suffix}"
    shapes = shapely.points([[n, 1] for n in range(10)])
    frame = geopandas.GeoDataFrame({"n": range(10)}, geometry=shapes, crs=4326)
    if suffix == ".csv":
        lines = [f'{n},"POINT({n} 1)"' for n in range(10)]
        path.write_text("\n".join(["n,geometry", *lines]))
    elif suffix == ".ndjson":
        path.write_text("".join(f"{json.dumps(f)}\n" for f in frame.iterfeatures()))
    elif suffix == ".geoparquet":
        frame.to_parquet(path)
    else:
        frame.to_file(path)
    answer = publish(capsys, str(path), "--batch", "3")
    assert heard(served) == list(range(10))
    assert answer.pop("seconds") >= 0
    assert answer.pop("position")
    assert answer == {
        "events": 10,
        "events_accepted": 10,
        "events_repeated": 0,
        "events_left_out": 0,
        "matches": 10,
    }


def test_a_command_that_is_repeated_stores_nothing_again(
    served: ServedBroker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    same = '{"type":"Feature","geometry":null,"properties":{"n":7}}'
    path = write_lines(tmp_path / "events.ndjson", 6, line_2=same, line_3=same, line_4=same)
    first = publish(capsys, path, "--batch", "1")
    again = publish(capsys, path, "--batch", "1")
    assert (first["events_repeated"], again["events_repeated"]) == (0, 6)
    assert first["position"] == again["position"]
    assert heard(served) == [0, 7, 7, 7, 4, 5]
    assert publish(capsys, path, "--anew")["events_repeated"] == 0
    assert len(heard(served)) == 12


def test_what_changes_in_a_file_leaves_other_batches_known(
    served: ServedBroker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = f'{{"type":"Feature","geometry":{BOW},"properties":{{}}}}'
    path = write_lines(tmp_path / "events.ndjson", 9, line_5=bad)
    publish(capsys, path, "--batch", "3", code=2)
    answer = publish(capsys, write_lines(tmp_path / "events.ndjson", 9), "--batch", "3")
    assert answer["events_repeated"] == 6


def test_lines_come_from_stdin(
    served: ServedBroker,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cloud = '{"specversion":"1.0","id":"1","source":"/s","type":"t","data":{"n":3}}'
    lines = f'\ufeff{{"n": 1}}\n\n{{"type":"Feature","properties":{{"n":2}}}}\n{cloud}\n'
    for repeated in (0, 3):
        stdin = io.TextIOWrapper(io.BufferedReader(io.BytesIO(lines.encode())))
        monkeypatch.setattr(sys, "stdin", stdin)
        assert publish(capsys, "-")["events_repeated"] == repeated
    assert heard(served) == [1, 2, 3]


def test_bad_lines_are_listed_and_the_others_are_published(
    served: ServedBroker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bow = f'{{"type":"Feature","geometry":{BOW},"properties":{{}}}}'
    collection = '{"type":"FeatureCollection","features":[]}'
    path = write_lines(
        tmp_path / "events.ndjson", 8, line_2="{oops", line_4=bow, line_6="[]", line_7=collection
    )
    assert main(["publish", path, "--json"]) == 2
    said = capsys.readouterr()
    answer = json.loads(said.out.splitlines()[-1])
    assert (answer["events"], answer["events_accepted"], answer["events_left_out"]) == (8, 4, 4)
    assert "4 of 8 events were not published" in said.err
    places = [line.strip().rpartition("events.ndjson, ")[2] for line in said.err.splitlines()[-4:]]
    assert [place.partition(":")[0] for place in places] == ["line 2", "line 4", "line 6", "line 7"]
    assert heard(served) == [0, 2, 4, 7]


def test_a_bad_row_of_a_file_is_named_by_its_place(
    served: ServedBroker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "events.csv"
    path.write_text('n,geometry\n1,POINT(1 1)\n2,"POLYGON((0 0,1 1,1 0,0 1,0 0))"\n')
    assert main(["publish", str(path)]) == 2
    said = capsys.readouterr()
    assert "line 3 (row 1)" in said.err
    assert heard(served) == [1]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("id,lon,lat,n\n1,1,1,5\n2,abc,1,6\n3,4,5,7\n", "line 3 (row 1): column 'lon'"),
        ("id,lon,lat,n\n1,1,1,5\n2,1,1\n3,4,5,7\n", "line 3 (row 1): the row"),
        ("n,geometry\n5,POINT(1 1)\n6,POINT(1\n7,POINT(4 5)\n", "line 3 (row 1): column 'geom"),
        ("n,geometry\n5,POINT(1 1)\n6,nowhere\n7,POINT(4 5)\n", "line 3 (row 1): column 'geom"),
    ],
)
def test_a_row_that_cannot_be_read_is_listed_by_line_and_the_others_are_published(
    served: ServedBroker,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    text: str,
    line: str,
) -> None:
    path = tmp_path / "events.csv"
    path.write_text(text)
    assert main(["publish", str(path)]) == 2
    assert f"events.csv, {line}" in capsys.readouterr().err
    assert heard(served) == [5, 7]


def test_a_line_that_is_mended_leaves_the_batches_after_it_known(
    served: ServedBroker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_lines(tmp_path / "events.ndjson", 9, line_2="{oops")
    publish(capsys, path, "--batch", "3", code=2)
    answer = publish(capsys, write_lines(tmp_path / "events.ndjson", 9), "--batch", "3")
    assert answer["events_repeated"] == 6


def test_a_file_in_another_system_is_noted(
    served: ServedBroker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "events.geoparquet"
    shapes = shapely.points([[500_000, 5_000_000]])
    geopandas.GeoDataFrame({"n": [1]}, geometry=shapes, crs=25832).to_parquet(path)
    assert main(["publish", str(path)]) == 0
    assert "its coordinates are sent as they are" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["missing.ndjson"], "missing.ndjson: no such file"),
        (["missing.geojson"], "missing.geojson: no such file"),
        (["-", "--batch", "0"], "--batch 0: must be from 1 to 10,000"),
        (["-", "--to", "nowhere"], "'nowhere' is not the address of a broker"),
        (["events.ndjson", "--layer", "a"], "this format has no layers"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_sent(
    args: list[str], words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Client, "_exchange", None)
    assert main(["publish", *args]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert words in line


def test_a_broker_that_goes_away_ends_the_command_and_says_how_far_it_was(
    served: ServedBroker,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("contrada.cli.publish_file._RETRIES", 0)
    path = write_lines(tmp_path / "events.ndjson", 4)
    exchange = Client._exchange
    sent: list[Any] = []

    def stop_after_one(client: Client, request: Any) -> Any:
        if len(sent) == 1:
            served.stop()
        sent.append(request)
        return exchange(client, request)

    monkeypatch.setattr(Client, "_exchange", stop_after_one)
    assert main(["publish", path, "--batch", "2"]) == 2
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("2 events were published before")
    assert second.startswith(f"contrada: {served.url}: no")
    monkeypatch.setattr(Client, "_exchange", exchange)
    served.start()
    assert publish(capsys, path, "--batch", "2")["events_repeated"] == 2
    assert heard(served) == [0, 1, 2, 3]
