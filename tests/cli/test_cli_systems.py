"""Coordinate systems of two files: which are refused, and what is noted where one states none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import geopandas
import pytest
import shapely

from contrada.cli import main

if TYPE_CHECKING:
    from pathlib import Path

SQUARE = shapely.box(0, 0, 4, 4)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder: areas and points in several systems, and in none."""
    for name, shape in (("zones", SQUARE), ("events", shapely.Point(1, 1))):
        for crs in (2154, 4326, None):
            frame = geopandas.GeoDataFrame({"id": [1]}, geometry=[shape], crs=crs)
            frame.to_parquet(tmp_path / f"{name}-{crs}.parquet")
        (tmp_path / f"{name}.csv").write_text(f'id,wkt\n1,"{shape.wkt}"\n')
    monkeypatch.chdir(tmp_path)
    return tmp_path


def notes(capsys: pytest.CaptureFixture[str], *files: str) -> list[str]:
    assert main(["match", *files]) == 0
    return [line for line in capsys.readouterr().err.splitlines() if line.startswith("note: ")]


@pytest.mark.parametrize("suffix", [".csv", "-None.parquet"])
def test_a_file_without_a_system_is_noted_beside_a_projected_one(
    folder: Path, suffix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = "states no coordinate system; that of"
    assert notes(capsys, "zones-2154.parquet", f"events{suffix}") == [
        f"note: events{suffix} {words} zones-2154.parquet is assumed: EPSG:2154"
    ]
    assert notes(capsys, f"zones{suffix}", "events-2154.parquet") == [
        f"note: zones{suffix} {words} events-2154.parquet is assumed: EPSG:2154"
    ]


@pytest.mark.parametrize(
    "files",
    [
        ("zones-4326.parquet", "events.csv"),
        ("zones.csv", "events-4326.parquet"),
        ("zones.csv", "events.csv"),
        ("zones-2154.parquet", "events-2154.parquet"),
    ],
)
def test_nothing_is_noted_where_longitude_and_latitude_are_meant_or_both_state_one(
    folder: Path, files: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert notes(capsys, *files) == []


def test_nothing_is_noted_where_no_coordinates_meet(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "plain.csv").write_text("id,filter\na,id = 1\n")
    assert notes(capsys, "plain.csv", "events-2154.parquet") == []
    (folder / "plain.csv").write_text('id,filter\na,"S_INTERSECTS(geometry, POINT(1 1))"\n')
    assert len(notes(capsys, "plain.csv", "events-2154.parquet")) == 1


def test_a_shapefile_without_a_system_is_noted_once(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = geopandas.GeoDataFrame({"n": [1]}, geometry=[shapely.Point(1, 1)], crs=2154)
    frame.to_file(folder / "e.shp")
    (folder / "e.prj").unlink()
    words = "e.prj is missing, .*; the other file's is assumed$"
    with pytest.warns(UserWarning, match=words) as heard:
        assert notes(capsys, "zones-2154.parquet", "e.shp") == []
    assert len(heard) == 1


def test_two_systems_are_refused_with_both_files(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["match", "zones-4326.parquet", "events-2154.parquet"]) == 2
    assert capsys.readouterr().err == (
        "contrada: events-2154.parquet is in EPSG:2154, zones-4326.parquet in EPSG:4326; "
        "reproject one of them\n"
    )
