"""Files in and out of `contrada match`: the format never changes the answer."""

import csv
import json
from pathlib import Path

import geopandas
import pyarrow.parquet as pq
import pytest
import shapely

from contrada import Matcher
from contrada.cli import main

Pairs = list[tuple[int, str]]

INPUTS = [".parquet", ".geoparquet", ".geojson", ".ndjson", ".fgb", ".gpkg", ".csv"]
OUTPUTS = [".parquet", ".geoparquet", ".csv", ".jsonl", ".ndjson"]


def read_csv(path: Path) -> Pairs:
    with path.open(newline="") as file:
        return [(int(row["event"]), row["subscription"]) for row in csv.DictReader(file)]


def read_pairs(path: Path) -> Pairs:
    if path.suffix == ".csv":
        return read_csv(path)
    if path.suffix in {".jsonl", ".ndjson"}:
        rows = [json.loads(line) for line in path.read_text().splitlines()]
    else:
        rows = pq.read_table(path).to_pylist()
    return [(row["event"], row["subscription"]) for row in rows]


@pytest.mark.parametrize("suffix", INPUTS)
def test_subscriptions_of_every_format_give_the_same_pairs(
    suffix: str, city: Path, city_pairs: Pairs, tmp_path: Path
) -> None:
    out = tmp_path / "pairs.csv"
    zones, positions = city / f"zones{suffix}", city / "positions.parquet"
    assert main(["match", str(zones), str(positions), "-o", str(out)]) == 0
    assert read_csv(out) == city_pairs


def test_subscriptions_of_a_snapshot_give_the_same_pairs(
    city: Path, city_pairs: Pairs, tmp_path: Path
) -> None:
    zones, out = tmp_path / "zones.contrada", tmp_path / "pairs.csv"
    matcher = Matcher("scan")
    matcher.add_many(city / "zones.parquet")
    matcher.save(zones)
    assert main(["match", str(zones), str(city / "positions.parquet"), "-o", str(out)]) == 0
    assert read_csv(out) == city_pairs


@pytest.mark.parametrize("name", [*(f"positions{s}" for s in INPUTS), "positions-lonlat.csv"])
def test_events_of_every_format_give_the_same_pairs(
    name: str, city: Path, city_pairs: Pairs, tmp_path: Path
) -> None:
    out = tmp_path / "pairs.csv"
    zones = city / "zones.parquet"
    assert main(["match", str(zones), str(city / name), "-o", str(out)]) == 0
    found = read_csv(out)
    # FlatGeobuf keeps features in the order of its spatial index.
    assert (sorted(found) if name.endswith(".fgb") else found) == city_pairs


def test_subscriptions_by_longitude_and_latitude_are_points(city: Path, tmp_path: Path) -> None:
    sheet, area = tmp_path / "stops.csv", tmp_path / "area.geojson"
    sheet.write_text("id,lon,lat,relation\n7,1,1,contains\n8,5,5,contains\n9,1,1,touches\n")
    area.write_text('{"type": "Polygon", "coordinates": [[[0,0],[2,0],[2,2],[0,2],[0,0]]]}')
    out = tmp_path / "pairs.jsonl"
    assert main(["match", str(sheet), str(area), "-o", str(out)]) == 0
    assert [json.loads(line) for line in out.read_text().splitlines()] == [
        {"event": 0, "subscription": 7}
    ]


@pytest.mark.parametrize("suffix", OUTPUTS)
def test_every_output_format_has_the_same_pairs_in_the_order_of_events(
    suffix: str, city: Path, city_pairs: Pairs, tmp_path: Path
) -> None:
    out = tmp_path / f"pairs{suffix}"
    zones, positions = city / "zones.gpkg", city / "positions.csv"
    assert main(["match", str(zones), str(positions), "-o", str(out)]) == 0
    assert read_pairs(out) == city_pairs
    assert list(tmp_path.iterdir()) == [out]


@pytest.mark.parametrize("crs", ["OGC:CRS84", "EPSG:4326", "EPSG:2154"])
def test_geoparquet_carries_the_geometry_of_each_event_and_the_crs(
    crs: str, city: Path, city_pairs: Pairs, tmp_path: Path
) -> None:
    for name in ("zones", "positions"):
        frame = geopandas.read_parquet(city / f"{name}.parquet")
        frame.set_crs(crs, allow_override=True).to_parquet(tmp_path / f"{name}.parquet")
    zones, positions, out = (
        tmp_path / name for name in ("zones.parquet", "positions.parquet", "pairs.geoparquet")
    )
    assert main(["match", str(zones), str(positions), "-o", str(out)]) == 0
    found = geopandas.read_parquet(out)
    where = geopandas.read_parquet(positions).set_index("id").geometry
    assert found.crs == crs
    assert found.geometry.to_list() == [where[event] for event, _ in city_pairs]


def test_geoparquet_of_events_without_a_crs_takes_that_of_the_subscriptions(
    city: Path, tmp_path: Path
) -> None:
    zones, out = tmp_path / "zones.parquet", tmp_path / "pairs.geoparquet"
    frame = geopandas.read_parquet(city / "zones.parquet")
    frame.set_crs(2154, allow_override=True).to_parquet(zones)
    assert main(["match", str(zones), str(city / "positions.csv"), "-o", str(out)]) == 0
    assert geopandas.read_parquet(out).crs == "EPSG:2154"


def test_geoparquet_of_events_without_a_geometry_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    zones, readings = tmp_path / "zones.csv", tmp_path / "readings.csv"
    zones.write_text('id,filter\nhot,"degrees > 30"\n')
    readings.write_text("id,degrees\na,31\nb,29\n")
    out = tmp_path / "pairs.geoparquet"
    assert main(["match", str(zones), str(readings), "-o", str(out)]) == 2
    assert f"{out}: {readings} has no geometry" in capsys.readouterr().err


def test_geoparquet_has_null_where_an_event_matched_without_a_geometry(tmp_path: Path) -> None:
    zones, readings = tmp_path / "zones.csv", tmp_path / "readings.csv"
    zones.write_text('id,filter\nhot,"degrees > 30"\n')
    readings.write_text("id,degrees,wkt\na,31,\nb,32,POINT(1 2)\nc,33,nowhere\n")
    out = tmp_path / "pairs.geoparquet"
    assert main(["match", str(zones), str(readings), "-o", str(out)]) == 0
    assert geopandas.read_parquet(out).geometry.to_list() == [None, shapely.Point(1, 2), None]


def test_large_events_with_many_matches_are_written_in_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("contrada.matcher.keeping._PIECE_BYTES_MAX", 5_000)
    circle = shapely.Point(0, 0).buffer(1, quad_segs=16)  # some 1,000 bytes
    frame = geopandas.GeoDataFrame({"id": range(40)}, geometry=[circle] * 40, crs="EPSG:4326")
    frame.to_parquet(tmp_path / "circles.parquet")
    circles, out = str(tmp_path / "circles.parquet"), tmp_path / "pairs.geoparquet"
    assert main(["match", circles, circles, "-o", str(out)]) == 0
    found = geopandas.read_parquet(out)
    assert list(zip(found.event, found.subscription, strict=True)) == [
        (event, subscription) for event in range(40) for subscription in range(40)
    ]
    assert found.geometry.geom_equals_exact(circle, 0).all()


def test_a_dash_writes_csv_to_stdout_as_a_file_would_have_it(
    city: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "pairs.csv"
    args = ["match", str(city / "zones.parquet"), str(city / "positions.parquet")]
    assert main([*args, "-o", str(out)]) == 0
    capsys.readouterr()
    assert main([*args, "-o", "-"]) == 0
    said = capsys.readouterr()
    assert said.out == out.read_text()
    assert "matches" in said.err


def test_a_folder_of_parquet_files_is_one_table(
    city: Path, city_pairs: Pairs, tmp_path: Path
) -> None:
    folder, out = tmp_path / "positions", tmp_path / "pairs.csv"
    folder.mkdir()
    table = pq.read_table(city / "positions.parquet")
    pq.write_table(table.slice(0, 90), folder / "part-0.parquet")
    pq.write_table(table.slice(90), folder / "part-1.parquet")
    assert main(["match", str(city / "zones.parquet"), str(folder), "-o", str(out)]) == 0
    assert read_csv(out) == city_pairs


def test_a_layer_of_a_geopackage_is_asked_for_by_name(
    city: Path, city_pairs: Pairs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    both, out = tmp_path / "city.gpkg", tmp_path / "pairs.csv"
    for layer in ("zones", "positions"):
        frame = geopandas.read_parquet(city / f"{layer}.parquet")
        frame.to_file(both, driver="GPKG", layer=layer)
    assert main(["match", str(both), str(both), "-o", str(out)]) == 2
    said = capsys.readouterr()
    assert "zones, positions" in said.err
    assert "--subscriptions-layer NAME" in said.err
    zones, positions = f"{both}|layername=zones", f"{both}|layername=positions"
    assert main(["match", zones, positions, "-o", str(out)]) == 0
    assert read_csv(out) == city_pairs
