"""Files with odd names, headers that lie and texts in other encodings: read, or refused by us."""

import os
import struct
import subprocess
import sys
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import geopandas as gpd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

import contrada
from contrada.cli import main
from contrada.limits import ARCHIVE_BYTES_MAX

ODD_NAME = b"odd\xff"  # is not UTF-8


def make_matcher() -> contrada.Matcher:
    matcher = contrada.Matcher()
    matcher.add("all", "n >= 0")
    return matcher


def make_frame() -> "gpd.GeoDataFrame":
    return gpd.GeoDataFrame({"n": [0, 1]}, geometry=shapely.points([[1, 2], [3, 4]]), crs=4326)


def odd_path(folder: Path, suffix: str) -> Path:
    path = Path(os.fsdecode(os.fsencode(folder) + b"/" + ODD_NAME + suffix.encode()))
    try:
        path.touch()
        path.unlink()
    except OSError:
        pytest.skip("this file system takes only names in UTF-8")
    return path


@pytest.mark.parametrize("rows", [2, 5_000])
def test_a_parquet_file_whose_name_is_not_utf_8_is_read(tmp_path: Path, rows: int) -> None:
    path = odd_path(tmp_path, ".parquet")
    plain = tmp_path / "plain.parquet"
    texts = ["a long text that many rows share " * 200] * rows
    pq.write_table(pa.table({"n": range(rows), "text": texts}), plain)
    plain.rename(path)
    matcher = make_matcher()
    assert matcher.match_many(path).num_rows == rows
    assert matcher.match_many(path, keep=["text"]).num_rows == rows
    path.write_bytes(b"PAR1 not at all PAR1")
    with pytest.raises(contrada.InvalidInput):
        matcher.match_many(path)


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252"])
def test_a_coordinate_system_that_is_not_utf_8_is_refused(tmp_path: Path, encoding: str) -> None:
    make_frame().to_file(tmp_path / "places.shp")
    projection = tmp_path / "places.prj"
    text = projection.read_text().replace("GCS_WGS_1984", "Système_WGS_84")
    projection.write_text(text, encoding="utf-8")
    assert make_matcher().match_many(tmp_path / "places.shp").num_rows == 2
    projection.write_text(text, encoding=encoding)
    with pytest.raises(contrada.InvalidInput, match=r"places\.shp: .*"):
        make_matcher().match_many(tmp_path / "places.shp")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32"])
def test_a_coordinate_system_that_is_not_understood_is_refused(
    tmp_path: Path, encoding: str
) -> None:
    make_frame().to_file(tmp_path / "places.shp")
    projection = tmp_path / "places.prj"
    projection.write_bytes(projection.read_text().encode(encoding))
    with pytest.raises(contrada.InvalidInput, match=r"places\.shp: places\.prj states no coord"):
        make_matcher().match_many(tmp_path / "places.shp")
    projection.write_text("some words")
    with pytest.raises(contrada.InvalidInput, match="b'some words'"):
        make_matcher().match_many(tmp_path / "places.shp")
    projection.write_text("\n")
    with pytest.warns(UserWarning, match=r"places\.prj is empty, so its coordinate system is unkn"):
        assert make_matcher().match_many(tmp_path / "places.shp").num_rows == 2


@pytest.mark.parametrize("count", [10**12, 2**60, 2**62, 2**63, 2**64 - 1])
def test_a_header_that_counts_more_features_than_there_can_be_is_refused(
    tmp_path: Path, count: int
) -> None:
    path = tmp_path / "places.fgb"
    frame = gpd.GeoDataFrame(
        {"n": range(41)}, geometry=shapely.points([[i, i] for i in range(41)]), crs=4326
    )
    frame.to_file(path, driver="FlatGeobuf")
    header = bytearray(path.read_bytes())
    place = header.index(struct.pack("<Q", 41))
    header[place : place + 8] = struct.pack("<Q", count)
    path.write_bytes(header)
    with pytest.raises(contrada.InvalidInput):
        make_matcher().match_many(path)


def run(words: list[str], **environment: str) -> "subprocess.CompletedProcess[bytes]":
    command = [sys.executable, "-m", "contrada", *words]
    return subprocess.run(
        command, env=os.environ | environment, capture_output=True, check=False, timeout=120
    )


def test_what_a_terminal_has_no_character_for_is_escaped() -> None:
    done = run(["explain", "s = '😀é'"], PYTHONIOENCODING="latin-1")
    assert done.returncode == 0
    assert b"\\U0001f600\xe9" in done.stdout
    done = run(["explain", "s = 😀"], PYTHONIOENCODING="ascii:strict")
    assert done.returncode == 2
    assert b"\\U0001f600" in done.stderr


@pytest.mark.parametrize("words", [["explain", "n = 1", "--json"], ["explain", "n = 1"]])
def test_no_answer_that_nobody_can_get_counts_as_one(words: list[str]) -> None:
    closed = f'exec {sys.executable} -m contrada "$@" >&-'
    done = subprocess.run(
        ["/bin/sh", "-c", closed, "sh", *words], capture_output=True, check=False, timeout=120
    )
    assert done.returncode == 2
    assert b"stdout: cannot be written: it is closed" in done.stderr


def test_a_match_without_json_needs_no_stdout(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1], "filter": ["n >= 0"]}), tmp_path / "s.parquet")
    pq.write_table(pa.table({"n": [1]}), tmp_path / "e.parquet")
    words = ["match", str(tmp_path / "s.parquet"), str(tmp_path / "e.parquet")]
    out = ["-o", str(tmp_path / "o.csv")]
    closed = f'exec {sys.executable} -m contrada "$@" >&-'
    for more, code in (([], 0), (["--json"], 2)):
        done = subprocess.run(
            ["/bin/sh", "-c", closed, "sh", *words, *out, *more],
            capture_output=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == code, done.stderr
    assert main([*words, *out, "--json"]) == 0


def test_a_zipped_map_that_is_mostly_air_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "places.kmz"
    begin = b'<?xml version="1.0"?><kml xmlns="http://www.opengis.net/kml/2.2"><Placemark><name>'
    with ZipFile(path, "w", ZIP_DEFLATED) as archive, archive.open("doc.kml", "w") as file:
        file.write(begin)
        for _ in range(ARCHIVE_BYTES_MAX // 2**20):
            file.write(b"a" * 2**20)
        file.write(b"</name></Placemark></kml>")
    with pytest.raises(contrada.InvalidInput, match="ARCHIVE_BYTES_MAX"):
        make_matcher().match_many(path)
