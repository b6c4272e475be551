"""What `contrada match` refuses: one line that says where, exit code 2, nothing half-written."""

import csv
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

from contrada.cli import main

ZONES = 'id,wkt,relation,where,subscriber\na,"POLYGON((0 0,4 0,4 4,0 4,0 0))",,,\n'
EVENTS = "id,lon,lat,speed\n1,1,1,5\n2,9,9,5\n"
BOW_TIE = "POLYGON((0 0,4 4,4 0,0 4,0 0))"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder: good subscriptions, good events, and an answer from another day."""
    (tmp_path / "zones.csv").write_text(ZONES)
    (tmp_path / "events.csv").write_text(EVENTS)
    (tmp_path / "old.csv").write_text("from another day")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refusal(capsys: pytest.CaptureFixture[str], folder: Path, *args: str) -> str:
    """The one line of a refusal, which must not have changed any file."""
    before = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    assert main(["match", *args]) == 2
    after = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    assert after == before
    said = capsys.readouterr()
    assert said.out == ""
    (line,) = said.err.splitlines()
    assert line.startswith("contrada: ")
    return line


def write_zone(folder: Path, **columns: str) -> None:
    """A second zone, as given, in row 1 of `bad.csv`."""
    zone = {
        "id": "b",
        "wkt": "POINT(1 1)",
        "relation": "",
        "where": "",
        "subscriber": "",
        **columns,
    }
    with (folder / "bad.csv").open("w", newline="") as file:
        file.write(ZONES)
        csv.writer(file).writerow(zone.values())


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"wkt": BOW_TIE}, ["column 'geometry'", "self-intersection at (2, 2)", "POLYGON"]),
        (
            {
                "wkt": "POLYGON((0 0,9e160 0,9e160 9e160,0 9e160,0 0),"
                "(3e160 3e160,5e160 3e160,4e160 5e160,3e160 3e160))"
            },
            ["column 'geometry'", "GEOS cannot judge it"],
        ),
        ({"wkt": "POINT(1 inf)"}, ["column 'geometry'", "(1.0, inf) at vertex 0"]),
        ({"wkt": "POLYGON EMPTY"}, ["column 'geometry'", "empty"]),
        ({"wkt": ""}, ["column 'geometry'", "missing"]),
        ({"wkt": "POLYGON((0 0, 1 1"}, ["column 'geometry'", "POLYGON((0 0, 1 1"]),
        ({"wkt": "CIRCULARSTRING(0 0, 1 1, 2 0)"}, ["column 'geometry'", "curve"]),
        ({"wkt": "somewhere"}, ["column 'geometry'", "somewhere"]),
        ({"relation": "near"}, ["column 'relation'", "'near'"]),
        ({"relation": "ehInside"}, ["column 'relation'", "ehInside", "Point"]),
        ({"where": "speed LIEK 'a'"}, ["column 'where'", "LIEK", "speed LIEK"]),
        ({"id": ""}, ["column 'id'", "missing"]),
    ],
)
def test_a_bad_subscription_is_named_by_row_column_and_value(
    columns: dict[str, str],
    words: list[str],
    folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_zone(folder, **columns)
    line = refusal(capsys, folder, "bad.csv", "events.csv", "-o", "old.csv")
    for word in ["bad.csv, line 3 (row 1)", *words]:
        assert word in line


def test_an_id_that_is_taken_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_zone(folder, id="a")
    line = refusal(capsys, folder, "bad.csv", "events.csv", "-o", "old.csv")
    assert "bad.csv" in line
    assert "'a'" in line


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (f'3,"{BOW_TIE}"', ["self-intersection at (2, 2)", "POLYGON"]),
        ('3,"LINESTRING(0 0, nan 1)"', ["(nan, 1.0) at vertex 1"]),
        ("3,POINT(1", ["POINT(1"]),
        ('3,"CIRCULARSTRING(0 0, 1 1, 2 0)"', ["curve"]),
        (",POINT(1 1)", ["column 'id'", "missing"]),
    ],
)
def test_a_bad_event_is_named_by_row_column_and_value(
    row: str, words: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "bad.csv").write_text(f"id,wkt\n1,POINT(1 1)\n2,POINT EMPTY\n{row}\n")
    line = refusal(capsys, folder, "zones.csv", "bad.csv", "-o", "old.csv")
    for word in ["bad.csv, line 4 (row 2), column", *words]:
        assert word in line


@pytest.mark.parametrize("output", ["old.csv", "new.csv", "new.parquet", "new.jsonl"])
def test_a_bad_event_far_down_leaves_nothing_half_written(
    output: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    count = 150_000  # some batches are written before the last one fails
    shapes = [shapely.to_wkb(shapely.Point(1, 1))] * count
    shapes[-1] = shapes[-1][:-1]
    pq.write_table(pa.table({"geometry": pa.array(shapes, pa.binary())}), folder / "long.parquet")
    args = ["zones.csv", "long.parquet", "-o", output, "--threads", "1", "--map", "map.html"]
    line = refusal(capsys, folder, *args)
    assert f"long.parquet, row {count - 1}, column 'geometry'" in line
    assert "20 bytes" in line


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["nothing.csv", "events.csv"], ["nothing.csv", "no such file"]),
        (["zones.csv", "nothing.csv"], ["nothing.csv", "no such file"]),
        (["zones.shp", "events.csv"], ["zones.shp", "no such file"]),
        (["zones.doc", "events.csv"], ["zones.doc", "unknown suffix", ".parquet", ".shp", ".tab"]),
        (["zones.csv", "events.xlsx"], ["events.xlsx", "unknown suffix", ".parquet"]),
        (["zones.csv", "events.csv", "--id", "code"], ["zones.csv", "'code'", "id, geometry"]),
        (["zones.csv", "events.csv", "--event-id", "code"], ["events.csv", "'code'", "lon"]),
        (["zones.csv", "events.csv", "--event-id", "day"], ["events.csv", "'day'"]),
        (["zones.csv", "events.csv", "--engine", "cells"], ["'cells'", "not built yet"]),
        (["zones.csv", "events.csv", "--engine", "oak"], ["'oak'", "strtree", "scan"]),
        (["zones.csv", "events.csv", "--threads", "0"], ["--threads 0", "at least 1"]),
        (["zones.csv", "events.csv", "--threads", "-3"], ["--threads -3", "at least 1"]),
        (["events.csv", "zones.csv", "--id", "speed"], ["events.csv", "5", "taken"]),
        (["zones.csv", "events.csv", "--spark", "yarm"], ["--spark yarm", "local[*]"]),
        (
            ["zones.csv", "events.csv", "--spark", "local[2]", "--engine", "scan"],
            ["--engine scan", "--spark"],
        ),
    ],
)
def test_a_wrong_argument_is_named(
    args: list[str], words: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = refusal(capsys, folder, *args, "-o", "old.csv")
    for word in words:
        assert word in line


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["-o", "pairs.xlsx"], ["contrada: --output pairs.xlsx: ", "unknown suffix", ".jsonl"]),
        (["-o", "pairs"], ["pairs", "unknown suffix"]),
        (["-o", "missing/pairs.csv"], ["missing/pairs.csv", "no folder"]),
        (["-o", "folder.csv"], ["folder.csv", "is a folder"]),
        (["--quarantine", "bad.txt"], ["--quarantine bad.txt: ", "unknown suffix"]),
        (["--quarantine", "bad.geoparquet"], ["bad.geoparquet", "geometry"]),
        (["--quarantine", "missing/bad.csv"], ["missing/bad.csv", "no folder"]),
        (["--map", "map.svg"], ["map.svg", ".html or .png"]),
        (["--map", "missing/map.html"], ["missing/map.html", "no folder"]),
        (["--map", "folder.html"], ["folder.html", "is a folder"]),
        (["-o", "./zones.csv"], ["--output ./zones.csv", "input zones.csv"]),
        (["-o", "link.csv"], ["--output link.csv", "input events.csv"]),
        (["--quarantine", "events.csv"], ["--quarantine events.csv", "input events.csv"]),
        (["-o", "new.csv", "--quarantine", "./new.csv"], ["--quarantine ./new.csv", "--output"]),
    ],
)
def test_a_file_that_cannot_be_written_is_refused_before_any_is_read(
    args: list[str],
    words: list[str],
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("folder.csv", "folder.html"):
        (folder / name).mkdir()
    (folder / "link.csv").symlink_to(folder / "events.csv")
    monkeypatch.setattr("contrada.cli.inputs.read_rows", None)
    line = refusal(capsys, folder, "zones.csv", "events.csv", *args)
    for word in words:
        assert word in line


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".geojson", ".gpkg", ".fgb"])
def test_a_file_without_content_is_refused(
    suffix: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / f"void{suffix}").touch()
    assert f"void{suffix}" in refusal(capsys, folder, "zones.csv", f"void{suffix}")
    assert f"void{suffix}" in refusal(capsys, folder, f"void{suffix}", "events.csv")


def test_subscriptions_without_filter_and_geometry_are_refused(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "bad.csv").write_text("id,name\n1,one\n")
    line = refusal(capsys, folder, "bad.csv", "events.csv")
    assert "bad.csv" in line
    assert "'filter' or 'geometry'" in line


def test_another_reference_system_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import geopandas

    for crs in (2154, 3857):
        frame = geopandas.GeoDataFrame(geometry=[shapely.Point(1, 1)], crs=crs)
        frame.to_parquet(folder / f"in-{crs}.parquet")
    line = refusal(capsys, folder, "in-2154.parquet", "in-3857.parquet", "-o", "new.csv")
    assert line.endswith(
        "in-3857.parquet is in EPSG:3857, in-2154.parquet in EPSG:2154; reproject one of them"
    )


def test_a_message_of_several_lines_is_shown_on_one(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_zone(folder, where="speed >\n\n>")
    assert "line 3 (row 1), id 'b', column 'where'" in refusal(
        capsys, folder, "bad.csv", "events.csv"
    )


def test_too_little_memory_is_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def lack(*_: object) -> None:
        raise pa.ArrowMemoryError("malloc of size 9 failed")

    monkeypatch.setattr("contrada.cli.match.check_outputs", lack)
    said = refusal(capsys, folder, "zones.csv", "events.csv")
    assert said == "contrada: there is not enough memory: malloc of size 9 failed"


@pytest.mark.parametrize("option", ["-o", "--quarantine", "--map"])
def test_a_folder_that_may_not_be_written_to_is_named_with_its_option(
    option: str, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.access", lambda *_: False)
    name = "new.html" if option == "--map" else "new.csv"
    said = refusal(capsys, folder, "zones.csv", "events.csv", option, name)
    spelt = {"-o": "--output"}.get(option, option)
    assert said.startswith(f"contrada: {spelt} {name}: the folder ")
    assert said.endswith("cannot be written to")
