"""FlatGeobuf and GeoPackage in."""

import datetime as dt
import errno
import os
import sqlite3
import struct
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import geopandas
import pandas
import pyarrow as pa
import pyogrio
import pytest
import shapely

from contrada.errors import InvalidInput, MissingPackage, Remedy, Unavailable
from contrada.files import Rows, is_same_crs, read_rows
from contrada.files.flatgeobuf import count_bytes_left

SUFFIXES = [".fgb", ".gpkg"]


def frame(count: int = 3, crs: Any = "EPSG:2154") -> geopandas.GeoDataFrame:
    return geopandas.GeoDataFrame(
        {"n": [2**53 + 1 + n for n in range(count)], "name": [f"é{n}" for n in range(count)]},
        geometry=geopandas.points_from_xy(range(count), range(count)),
        crs=crs,
    )


def column_of(rows: Rows, column: str) -> list[Any]:
    return [value for batch in rows.batches() for value in batch.column(column).to_pylist()]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_file_gives_its_columns_crs_and_count(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"places{suffix}"
    frame().to_file(path, SPATIAL_INDEX="NO")
    rows = read_rows(path)
    assert rows.schema.names == ["n", "name", "geometry"]
    assert rows.geometry_columns == ("geometry",)
    assert rows.crs == "EPSG:2154"
    assert rows.count == 3
    assert column_of(rows, "n") == [2**53 + 1, 2**53 + 2, 2**53 + 3]
    assert column_of(rows, "name") == ["é0", "é1", "é2"]
    assert list(shapely.from_wkb(column_of(rows, "geometry"))) == list(frame().geometry)
    assert column_of(rows, "n") == column_of(rows, "n"), "may be read again"


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_batches_are_bounded(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"places{suffix}"
    frame(1000).to_file(path)
    rows = read_rows(path, batch_rows=300)
    assert [batch.num_rows for batch in rows.batches()] == [300, 300, 300, 100]
    assert sorted(column_of(rows, "n")) == [2**53 + 1 + n for n in range(1000)]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_missing_geometry_is_null(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"places{suffix}"
    places = frame()
    places.loc[1, "geometry"] = None
    places.to_file(path, SPATIAL_INDEX="NO")
    geometries = column_of(read_rows(path), "geometry")
    assert list(shapely.from_wkb(geometries)) == [shapely.Point(0, 0), None, shapely.Point(2, 2)]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_times_keep_their_instant(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"places{suffix}"
    places = frame()
    zone = dt.timezone(dt.timedelta(hours=-5) if suffix == ".fgb" else dt.timedelta(0))
    moments = [dt.datetime(2024, 5, 1, hour, 30, 0, 250_000, tzinfo=zone) for hour in range(3)]
    places["zoned"] = pandas.to_datetime(moments)
    places["plain"] = pandas.to_datetime([moment.replace(tzinfo=None) for moment in moments])
    places.loc[2, ["zoned", "plain"]] = pandas.NaT
    places.to_file(path, SPATIAL_INDEX="NO")
    rows = read_rows(path)
    assert rows.schema.field("zoned").type == pa.timestamp("us", "UTC")
    assert column_of(rows, "zoned") == [*moments[:2], None]
    in_utc = [moment.replace(tzinfo=dt.UTC) for moment in moments[:2]]
    assert column_of(rows, "plain") == [*in_utc, None]


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.filterwarnings("ignore:'crs' was not provided")
def test_a_file_without_crs_states_none(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"places{suffix}"
    frame(crs=None).to_file(path)
    assert read_rows(path).crs is None


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_crs_without_a_code_is_kept(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"places{suffix}"
    frame(crs="+proj=laea +lat_0=43 +lon_0=11 +ellps=GRS80").to_file(path)
    crs = read_rows(path).crs
    assert crs is not None
    assert is_same_crs(crs, frame(crs=crs).crs.to_wkt())
    assert not is_same_crs(crs, "EPSG:4326")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_columns_can_be_chosen(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"places{suffix}"
    frame().to_file(path)
    rows = read_rows(path, columns=["geometry", "name"])
    assert rows.schema.names == ["geometry", "name"]
    assert next(rows.batches()).schema == rows.schema


def test_a_geopackage_of_several_layers_must_be_asked_for_one(tmp_path: Path) -> None:
    path = tmp_path / "map.gpkg"
    frame(2).to_file(path, layer="roads")
    frame(3).to_file(path, layer="rivers")
    with pytest.raises(InvalidInput, match=r"it has roads, rivers; .*\|layername=") as caught:
        read_rows(path)
    assert caught.value.remedies == (Remedy.LAYER,)
    assert read_rows(f"{path}|layername=roads").count == 2
    rows = read_rows(f"{path}|layername=rivers")
    assert rows.count == 3
    assert rows.name == f"{path}|layername=rivers"
    with pytest.raises(InvalidInput, match="there is no layer 'lakes'; it has roads, rivers"):
        read_rows(f"{path}|layername=lakes")


def test_a_table_without_geometries_beside_the_layer_is_no_choice(tmp_path: Path) -> None:
    path = tmp_path / "map.gpkg"
    frame(2).to_file(path, layer="roads")
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE styles (id INTEGER PRIMARY KEY, style TEXT)")
        database.execute("INSERT INTO styles VALUES (7, 'red')")
        database.execute(
            "INSERT INTO gpkg_contents (table_name, data_type, identifier) "
            "VALUES ('styles', 'attributes', 'styles')"
        )
    database.close()
    assert read_rows(path).count == 2
    rows = read_rows(f"{path}|layername=styles")
    assert rows.geometry_columns == ()
    assert column_of(rows, "id") == [7], "a feature id that is named id stays"


def test_a_column_that_is_called_geometry_already_keeps_its_name(tmp_path: Path) -> None:
    path = tmp_path / "map.gpkg"
    frame(1).to_file(path, GEOMETRY_NAME="geometry")
    assert read_rows(path).schema.names == ["n", "name", "geometry"]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_file_that_only_has_the_suffix_is_refused(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"x{suffix}"
    for content in (b"", b"id,geometry\n", b'{"type": "FeatureCollection", "features": []}'):
        path.write_bytes(content)
        with pytest.raises(InvalidInput, match=rf"x\{suffix}: not a (FlatGeobuf|GeoPackage) file"):
            read_rows(path)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("share", [0.001, 0.01, 0.5, 0.99])
def test_a_file_that_is_cut_is_refused(tmp_path: Path, suffix: str, share: float) -> None:
    path = tmp_path / f"x{suffix}"
    frame(5000).to_file(path)
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(InvalidInput, match=rf"x\{suffix}"):
        list(read_rows(path).batches())


@pytest.mark.parametrize("suffix", [".gpkg", ".gml"])
def test_a_file_that_is_damaged_somewhere_gives_all_rows_or_none(
    tmp_path: Path, suffix: str
) -> None:
    path = tmp_path / f"places{suffix}"
    frame(1000).to_file(path, engine="pyogrio")
    whole = path.read_bytes()
    read_whole = 0
    for share in (0.3, 0.5, 0.7):
        start = int(share * len(whole))
        at = whole.index(b"</", start) + 1 if suffix == ".gml" else start // 4096 * 4096
        path.write_bytes(whole[:at] + b"x" + whole[at + 1 :])
        with suppress(InvalidInput):
            assert len(column_of(read_rows(path), "n")) == 1000
            read_whole += 1
    assert read_whole < 3


@pytest.mark.parametrize("announced", [7, 17])
def test_a_geopackage_that_announces_another_number_of_rows_is_read(
    tmp_path: Path, announced: int
) -> None:
    path = tmp_path / "places.gpkg"
    frame(10).to_file(path)
    with sqlite3.connect(path) as database:
        database.execute(f"UPDATE gpkg_ogr_contents SET feature_count = {announced}")
    database.close()
    assert len(column_of(read_rows(path), "n")) == 10


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_missing_file_is_refused(tmp_path: Path, suffix: str) -> None:
    with pytest.raises(InvalidInput, match="no such file"):
        read_rows(tmp_path / f"x{suffix}")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_without_pyogrio_what_to_install_is_named(
    tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"x{suffix}"
    path.touch()
    monkeypatch.setitem(sys.modules, "pyogrio", None)
    with pytest.raises(MissingPackage, match=r"pip install pyogrio$"):
        read_rows(path)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_what_gdal_may_not_read_is_the_machines_fault_and_what_it_cannot_the_files(
    tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"places{suffix}"
    frame().to_file(path)
    rows = read_rows(path)

    def fail(*_: object, **__: object) -> None:
        raise pyogrio.errors.DataSourceError("GDAL does not say why")

    monkeypatch.setattr(pyogrio, "open_arrow", fail)
    with pytest.raises(InvalidInput, match=rf"places\{suffix}: cannot be read: GDAL does not"):
        read_rows(path)
    with pytest.raises(InvalidInput, match=r"reading failed after row 0: GDAL does not"):
        list(rows.batches())

    def deny(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr("contrada.files.vector.check_file", lambda *_: None)
    monkeypatch.setattr(Path, "open", deny)
    with pytest.raises(Unavailable, match=rf"places\{suffix}: cannot be read: GDAL does not"):
        read_rows(path)
    with pytest.raises(Unavailable, match=r"reading failed after row 0: GDAL does not"):
        list(rows.batches())


@pytest.mark.parametrize("is_indexed", [True, False])
@pytest.mark.parametrize("count", [0, 1, 2, 16, 17, 300])
def test_a_flatgeobuf_file_is_read_to_its_end(count: int, is_indexed: bool, tmp_path: Path) -> None:
    path = write_flatgeobuf(tmp_path, count, is_indexed)
    assert count_bytes_left(path) == (count, 0)
    assert sum(batch.num_rows for batch in read_rows(path).batches()) == count


def test_a_flatgeobuf_file_that_counts_fewer_features_than_it_has_is_refused(
    tmp_path: Path,
) -> None:
    path = write_flatgeobuf(tmp_path, 200, is_indexed=False)
    content = path.read_bytes()
    stated = struct.pack("<Q", 200)
    assert content.count(stated) == 1
    path.write_bytes(content.replace(stated, struct.pack("<Q", 60)))
    with pytest.raises(InvalidInput, match=r"x\.fgb: its header counts 60 features, but .* follow"):
        read_rows(path)


def write_flatgeobuf(folder: Path, count: int, is_indexed: bool) -> Path:
    path = folder / "x.fgb"
    points = geopandas.points_from_xy(range(count), range(count))
    frame = geopandas.GeoDataFrame({"n": range(count)}, geometry=points, crs=4326)
    frame.to_file(path, engine="pyogrio", SPATIAL_INDEX="YES" if is_indexed else "NO")
    return path
