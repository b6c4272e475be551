"""Shapefiles and layers on the command line."""

from pathlib import Path

import geopandas
import pyogrio
import pytest
import shapely

from contrada.cli import main

EVENTS = "--layer NAME names a layer of the events"
SUBSCRIPTIONS = "--subscriptions-layer NAME names a layer of the subscriptions"


def zones(*ids: str) -> geopandas.GeoDataFrame:
    shapes = [shapely.box(0, 0, 4, 4)] * len(ids)
    return geopandas.GeoDataFrame({"code": list(ids)}, geometry=shapes, crs=4326)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder: a shapefile, a GeoPackage of several layers, and events."""
    pyogrio.write_dataframe(zones("a"), tmp_path / "zones.shp")
    for layer, ids in {"towns": ["b"], "parks": ["c", "d"]}.items():
        pyogrio.write_dataframe(zones(*ids), tmp_path / "map.gpkg", layer=layer)
    (tmp_path / "events.csv").write_text("id,lon,lat\n1,1,1\n")
    (tmp_path / "link.csv").symlink_to(tmp_path / "zones.dbf")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def pairs(capsys: pytest.CaptureFixture[str], *args: str) -> list[str]:
    assert main(["match", *args, "-o", "-"]) == 0
    return capsys.readouterr().out.splitlines()[1:]


def refusal(capsys: pytest.CaptureFixture[str], *args: str) -> str:
    assert main(["match", *args]) == 2
    return capsys.readouterr().err.splitlines()[-1]


def test_a_shapefile_is_matched(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert pairs(capsys, "zones.shp", "events.csv", "--id", "code") == ["1,a"]
    assert pairs(capsys, "zones.shp", "zones.shp", "--event-id", "code") == ["a,0"]


def test_layers_of_both_files_are_named_by_options(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = ["--subscriptions-layer", "parks", "--id", "code"]
    assert pairs(capsys, "map.gpkg", "events.csv", *chosen) == ["1,c", "1,d"]
    chosen += ["--layer", "towns", "--event-id", "code"]
    assert pairs(capsys, "map.gpkg", "map.gpkg", *chosen) == ["b,c", "b,d"]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (
            ["map.gpkg", "events.csv"],
            ["map.gpkg: expected one layer, but it has towns, parks", f"; {SUBSCRIPTIONS}"],
        ),
        (
            ["zones.shp", "map.gpkg"],
            ["map.gpkg: expected one layer, but it has towns, parks", f"; {EVENTS}"],
        ),
        (
            ["zones.shp", "map.gpkg", "--layer", "lakes"],
            ["map.gpkg: there is no layer 'lakes'; it has towns, parks", f"; {EVENTS}"],
        ),
        (
            ["map.gpkg", "events.csv", "--subscriptions-layer", "lakes"],
            ["map.gpkg: there is no layer 'lakes'; it has towns, parks", f"; {SUBSCRIPTIONS}"],
        ),
        (["map.gpkg|layer=towns", "events.csv"], ["no such file", f"; {SUBSCRIPTIONS}"]),
        (["zones.shp", "map.gpkg|towns"], ["no such file", f"; {EVENTS}"]),
        (["zones.shp", "events.csv", "--layer", "x"], ["--layer x", "events.csv", "no layers"]),
        (["zones.shp", "events.csv", "-o", "link.csv"], ["--output link.csv", "zones.dbf"]),
        (
            ["map.gpkg", "events.csv", "--subscriptions-layer", "towns", "-o", "map.gpkg"],
            ["map.gpkg"],
        ),
    ],
)
def test_a_refusal_names_the_layers_and_the_option(
    folder: Path, capsys: pytest.CaptureFixture[str], args: list[str], words: list[str]
) -> None:
    before = {path: path.read_bytes() for path in folder.iterdir()}
    line = refusal(capsys, *args)
    assert all(word in line for word in words)
    assert "layername" not in line or "--layer" not in line
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_nothing_is_written_into_a_geodatabase(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pyogrio.write_dataframe(zones("a"), folder / "zones.gdb", driver="OpenFileGDB")
    line = refusal(capsys, "zones.gdb", "events.csv", "-o", "zones.gdb/pairs.csv")
    assert "is also a part of the input zones.gdb" in line
