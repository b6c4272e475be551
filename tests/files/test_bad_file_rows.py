"""Bad rows of files, as the layer above meets them: refused by place, or left out and told of."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contrada import Matcher
from contrada.errors import InvalidInput

GEOMETRIES = [
    {"type": "Point", "coordinates": ["a", "b"]},
    {"type": "Point", "coordinates": [1]},
    {"type": "CircularString", "coordinates": [[0, 0], [1, 1], [2, 0]]},
    {"type": "Sphere", "coordinates": [0, 0]},
]


def everywhere() -> Matcher:
    matcher = Matcher()
    matcher.add("all", "S_INTERSECTS(geometry, POLYGON((0 0, 9 0, 9 9, 0 9, 0 0)))")
    return matcher


def save_geojson(folder: Path, *geometries: Any) -> Path:
    path = folder / "x.geojson"
    features = [
        {"type": "Feature", "properties": {}, "geometry": geometry} for geometry in geometries
    ]
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    return path


def save_sheet(folder: Path) -> Path:
    path = folder / "x.csv"
    path.write_text("lon,lat\n1,1\n3,north\n2,2\n")
    return path


def check_bad_row(path: Path, option: str, place: str) -> None:
    told: list[tuple[int, Any]] = []
    matcher = everywhere()
    found = matcher.match_many(
        path,
        repair=option == "repair",
        quarantine=option == "quarantine",
        on_bad=lambda row, id_, _: told.append((row, id_)),
    )
    assert isinstance(found, pa.Table)
    assert found.column("event").to_pylist() == [0, 2]
    assert told == [(1, 1)]
    assert matcher.stats()["events_left_out"] == 1
    with pytest.raises(InvalidInput, match=rf"{path.name}, {place}"):
        matcher.match_many(path)


@pytest.mark.parametrize("option", ["quarantine", "repair"])
@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_a_feature_without_a_readable_geometry_is_a_bad_row(
    tmp_path: Path, geometry: Any, option: str
) -> None:
    good = {"type": "Point", "coordinates": [1, 1]}
    place = r"line 1 \(row 1\), column 'geometry'"
    check_bad_row(save_geojson(tmp_path, good, geometry, good), option, place)


@pytest.mark.parametrize("option", ["quarantine", "repair"])
def test_a_cell_that_is_no_coordinate_is_a_bad_row(tmp_path: Path, option: str) -> None:
    place = r"line 3 \(row 1\), column 'lat': 'north' is not a number;"
    check_bad_row(save_sheet(tmp_path), option, place)


@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_repair_leaves_out_a_subscription_without_a_readable_geometry(
    tmp_path: Path, geometry: Any
) -> None:
    path = save_geojson(tmp_path, {"type": "Point", "coordinates": [1, 1]}, geometry)
    matcher = Matcher()
    with pytest.raises(InvalidInput, match=r"x\.geojson, line 1 \(row 1\), column 'geometry'"):
        matcher.add_many(path)
    matcher.add_many(path, repair=True)
    assert list(matcher) == [0]


def test_events_of_which_no_column_is_asked_for_are_matched_all(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"foo": [1, 2, 3]}), path)
    matcher = Matcher()
    matcher.add("all", True)
    found = matcher.match_many(path)
    assert isinstance(found, pa.Table)
    assert found.num_rows == 3


def test_the_id_of_a_feature_is_the_id_of_its_event_in_a_file_as_in_a_list(tmp_path: Path) -> None:
    point = {"type": "Point", "coordinates": [1, 1]}
    features = [
        {"type": "Feature", "id": "a", "properties": {"id": "p"}, "geometry": point},
        {"type": "Feature", "properties": {"id": "q"}, "geometry": point},
    ]
    path = tmp_path / "x.geojson"
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    for events in (path, features):
        found = everywhere().match_many(events)
        assert isinstance(found, pa.Table)
        assert found.column("event").to_pylist() == ["a", "q"]
