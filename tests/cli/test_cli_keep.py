"""`contrada match --keep`: columns of events and subscriptions beside the pairs."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime, time
from pathlib import Path
from typing import Any

import geopandas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

from contrada.cli import main

BOW_TIE = shapely.from_wkt("POLYGON((0 0,4 4,4 0,0 4,0 0))")
DATA = Path(__file__).parents[3] / "shared" / "data"
KEEP = ["--keep", "mag", "--keep", "subscription.county", "--keep", "tags"]


def keep(*names: str) -> list[str]:
    return [word for name in names for word in ("--keep", name)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Quakes over counties: counties have other ids than rows, and come in another order."""
    monkeypatch.chdir(tmp_path)
    counties = {
        "id": ["c", "a", "b"],
        "county": pa.array(["Orange", "Kern", None]).dictionary_encode(),
        "mag": [1, 2, 3],
        "geometry": shapely.to_wkb(
            [shapely.box(0, 0, 4, 4), shapely.box(2, 2, 6, 6), shapely.box(5, 5, 9, 9)]
        ),
    }
    pq.write_table(pa.table(counties), "counties.parquet")
    events = {
        "id": [10, 20, 30],
        "mag": [4.5, None, 6.0],
        "at": pa.array([datetime(2026, 1, 2, tzinfo=UTC), None, None], pa.timestamp("us", "UTC")),
        "tags": [["felt", 'so "called"'], [], None],
        "kind": pa.array(["deep", None, "deep"]).dictionary_encode(),
        "event": ["quake", "blast", None],
        "subscription.county": ["events'", "own", "column"],
        "geometry": shapely.to_wkb(shapely.points([(3, 3), (8, 8), (20, 20)])),
    }
    pq.write_table(pa.table(events), "quakes.parquet")
    return tmp_path


def match(*options: str, output: str = "out.parquet", code: int = 0) -> Any:
    args = ["match", "counties.parquet", "quakes.parquet", "-o", output, *options]
    assert main(args) == code
    if code:
        return None
    return pq.read_table(output) if output.endswith("parquet") else Path(output).read_text()


def test_columns_of_both_sides_come_in_the_order_of_the_options(folder: Path) -> None:
    found = match(*keep("mag", "subscription.county", "subscription.mag", "kind", "mag"))
    assert found.schema == pa.schema(
        {
            "event": pa.int64(),
            "subscription": pa.string(),
            "mag": pa.float64(),
            "subscription.county": pa.string(),
            "subscription.mag": pa.int64(),
            "kind": pa.string(),
        }
    )
    assert [list(row.values()) for row in found.to_pylist()] == [
        [10, "a", 4.5, "Kern", 2, "deep"],
        [10, "c", 4.5, "Orange", 1, "deep"],
        [20, "b", None, None, 3, None],
    ]


def test_text_formats_have_the_same_columns(folder: Path) -> None:
    sheet = list(csv.DictReader(io.StringIO(match(*KEEP, *keep("at"), output="out.csv"))))
    assert sheet[0] == {
        "event": "10",
        "subscription": "a",
        "mag": "4.5",
        "subscription.county": "Kern",
        "tags": '["felt", "so \\"called\\""]',
        "at": "2026-01-02T00:00:00.000000Z",
    }
    assert list(sheet[2].values()) == ["20", "b", "", "", "[]", ""]
    lines = [json.loads(x) for x in match(*KEEP, *keep("at"), output="out.jsonl").splitlines()]
    assert list(lines[0]) == list(sheet[0])
    assert lines[0]["tags"] == ["felt", 'so "called"']
    assert list(lines[2].values()) == [20, "b", None, None, [], None]


def test_stdout_has_them_too(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = [*KEEP, *keep("geometry", "subscription.geometry")]
    text = match(*kept, output="out.csv")
    capsys.readouterr()
    assert main(["match", "counties.parquet", "quakes.parquet", "-o", "-", *kept]) == 0
    assert capsys.readouterr().out == text


def test_geometries_are_written_as_each_format_has_them(folder: Path) -> None:
    both = keep("geometry", "subscription.geometry")
    county = shapely.box(5, 5, 9, 9)
    plain = match(*both)
    assert shapely.from_wkb(plain["subscription.geometry"].to_pylist())[2] == county
    assert shapely.from_wkb(plain["geometry"].to_pylist())[2] == shapely.Point(8, 8)
    row = list(csv.DictReader(io.StringIO(match(*both, output="out.csv"))))[2]
    assert row["geometry"] == "POINT (8 8)"
    assert shapely.from_wkt(row["subscription.geometry"]) == county
    line = json.loads(match(*both, output="out.jsonl").splitlines()[2])
    assert line["geometry"] == {"type": "Point", "coordinates": [8, 8]}
    assert line["subscription.geometry"]["type"] == "Polygon"


def test_geoparquet_has_the_geometry_last_once_and_states_every_geometry(folder: Path) -> None:
    match(*keep("geometry", "subscription.geometry", "mag"), output="out.geoparquet")
    found = geopandas.read_parquet("out.geoparquet")
    names = ["event", "subscription", "subscription.geometry", "mag", "geometry"]
    assert list(found.columns) == names
    assert found.geometry.name == "geometry"
    assert found["subscription.geometry"].to_list()[2] == shapely.box(5, 5, 9, 9)
    assert geopandas.GeoSeries(found["subscription.geometry"]).intersects(found.geometry).all()


def test_a_prefix_decides_whose_column_a_name_means(folder: Path) -> None:
    names = ["event.event", "event.mag", "subscription.county", "event.subscription.county"]
    found = match(*keep(*names))
    assert found.column_names[2:] == names
    assert list(found.to_pylist()[0].values())[2:] == ["quake", 4.5, "Kern", "events'"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("magn", "--keep magn: quakes.parquet has no column 'magn'; it has id, mag, at, tags"),
        (
            "subscription.magn",
            "--keep subscription.magn: counties.parquet has no column 'magn'; it has id, county",
        ),
        ("subscription.", "counties.parquet has no column ''; it has id, county"),
        ("event", "--keep event: the answer already has a column of that name; --keep event.event"),
        ("subscription", "--keep subscription: the answer already has a column of that name"),
    ],
)
def test_what_cannot_be_kept_is_refused_before_anything_runs(
    name: str, words: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    match("--keep", name, code=2)
    said = capsys.readouterr().err
    assert words in said
    assert "reading subscriptions" not in said
    assert not Path("out.parquet").exists()


def test_an_events_column_named_like_one_of_the_subscriptions_is_pointed_to(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pq.write_table(pq.read_table("counties.parquet").drop(["county"]), "counties.parquet")
    match("--keep", "subscription.county", code=2)
    assert "that of quakes.parquet is --keep event.subscription.county" in capsys.readouterr().err


def test_keep_without_an_output_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["match", "a.csv", "b.csv", "--keep", "mag"]) == 2
    assert "--keep mag needs -o" in capsys.readouterr().err


@pytest.mark.parametrize("output", ["out.csv", "out.jsonl", "-"])
def test_a_type_that_a_format_cannot_hold_is_refused_by_its_column(
    output: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    columns = {"took": pa.array([1, None], pa.duration("s")), "clock": [time(12, 30), None]}
    columns["spans"] = pa.array([[1], None], pa.list_(pa.duration("ns")))
    columns["geometry"] = shapely.to_wkb(shapely.points([(3, 3), (8, 8)]))
    pq.write_table(pa.table(columns), "quakes.parquet")
    for name in ("took", "spans"):
        match("--keep", name, output=output, code=2)
        said = capsys.readouterr().err
        assert f"--keep {name}: {output} cannot hold a column of type " in said
        assert ".parquet may" in said
    found = match(*keep("took", "clock", "spans"))
    assert found.schema.field("took").type == pa.duration("s")
    match("--keep", "clock", output="out.jsonl")
    assert json.loads(Path("out.jsonl").read_text().splitlines()[0])["clock"] == "12:30:00"


def test_subscriptions_without_ids_are_found_by_their_row(folder: Path) -> None:
    pq.write_table(pq.read_table("counties.parquet").drop(["id"]), "counties.parquet")
    found = match(*keep("subscription.county"))
    assert found["subscription"].to_pylist() == [0, 1, 2]
    assert found["subscription.county"].to_pylist() == ["Orange", "Kern", None]
    match("--id", "mag", *keep("subscription.county", "subscription.mag"))
    found = pq.read_table("out.parquet")
    assert found["subscription"].to_pylist() == found["subscription.mag"].to_pylist() == [1, 2, 3]


def test_files_without_rows_have_the_columns_all_the_same(folder: Path) -> None:
    for name in ("counties", "quakes"):
        whole = pq.read_table(f"{name}.parquet")
        pq.write_table(whole.slice(0, 0), f"{name}.parquet")
        found = match(*KEEP)
        assert (found.num_rows, found.column_names[2:]) == (
            0,
            ["mag", "subscription.county", "tags"],
        )
        pq.write_table(whole, f"{name}.parquet")


def test_every_text_of_a_geojson_file_can_be_kept(folder: Path) -> None:
    feature = {
        "type": "Feature",
        "id": "f",
        "geometry": {"type": "Point", "coordinates": [3, 3]},
        "properties": {"place": {"name": "here", "depth": {"km": 3}}, "mag": 2},
    }
    text = json.dumps({"type": "FeatureCollection", "features": [feature]})
    Path("quakes.geojson").write_text(text)
    args = ["match", "counties.parquet", "quakes.geojson", "-o", "out.jsonl"]
    assert main([*args, *keep("place", "geometry")]) == 0
    line = json.loads(Path("out.jsonl").read_text().splitlines()[0])
    assert line["place"] == {"name": "here", "depth": {"km": 3}}
    assert line["geometry"] == feature["geometry"]


@pytest.mark.parametrize("output", ["out.geoparquet", "out.parquet", "out.csv", "out.jsonl"])
def test_a_geometry_in_the_output_is_the_mended_one(output: str, folder: Path) -> None:
    bow = shapely.to_wkb(BOW_TIE)
    zones = {"id": ["bow", "lost"], "geometry": [bow, b"no geometry"]}
    pq.write_table(pa.table(zones), "counties.parquet")
    pq.write_table(pa.table({"geometry": [bow], "other": [BOW_TIE.wkt]}), "quakes.parquet")
    match("--repair", *keep("geometry", "subscription.geometry", "other"), output=output)
    if output.endswith("parquet"):
        (row,) = pq.read_table(output).to_pylist()
        shapes = shapely.from_wkb([row["geometry"], row["subscription.geometry"]])
    elif output.endswith("csv"):
        (row,) = csv.DictReader(Path(output).read_text().splitlines())
        shapes = shapely.from_wkt([row["geometry"], row["subscription.geometry"]])
    else:
        row = json.loads(Path(output).read_text())
        shapes = shapely.from_geojson(
            [json.dumps(row[name]) for name in ("geometry", "subscription.geometry")]
        )
    assert row["other"] == BOW_TIE.wkt, "a text that nobody reads as a geometry stays a text"
    assert shapely.equals(shapes, shapely.make_valid(BOW_TIE)).all()


def test_all_geometries_of_a_real_dirty_layer_are_valid_in_the_output(folder: Path) -> None:
    layers = [DATA / "nws_counties.parquet", DATA / "nws_alerts_colorado_2026.parquet"]
    if not all(layer.is_file() for layer in layers):
        pytest.skip("the real layers are not here")
    args = ["match", *map(str, layers), "--repair", "-o", "out.geoparquet"]
    assert main([*args, *keep("event.event", "subscription.ugc", "subscription.geometry")]) == 0
    found = geopandas.read_parquet("out.geoparquet")
    assert len(found) == 2_067
    assert found.geometry.is_valid.all()
    assert geopandas.GeoSeries(found["subscription.geometry"]).intersects(found.geometry).all()
    assert set(found["subscription.ugc"].str[:2]) >= {"CO"}
    assert "Flood Watch" in set(found["event.event"])
