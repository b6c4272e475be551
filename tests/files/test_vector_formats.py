"""Shapefiles and other vector formats of the installed GDAL, by their suffix."""

import os
import sys
import zipfile
from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import pyogrio
import pytest
import shapely

from contrada import Matcher
from contrada.errors import InvalidInput, Remedy
from contrada.files import Rows, read_rows
from contrada.files.reading import list_files, name_layer
from contrada.files.vector_formats import list_drivers

FRAME = geopandas.GeoDataFrame(
    {"code": ["x", "é"], "n": np.array([1, 2], np.int32)},
    geometry=[shapely.box(0, 0, 1, 1), shapely.box(2, 2, 3, 3)],
    crs="EPSG:4326",
)
DRIVERS = {
    ".shp": "ESRI Shapefile",
    ".shz": "ESRI Shapefile",
    ".shp.zip": "ESRI Shapefile",
    ".kml": "LIBKML",
    ".kmz": "LIBKML",
    ".gml": "GML",
    ".tab": "MapInfo File",
    ".mif": "MapInfo File",
    ".sqlite": "SQLite",
    ".gdb": "OpenFileGDB",
    ".jml": "JML",
    ".gpkg.zip": "GPKG",
}


def write(path: Path, frame: geopandas.GeoDataFrame = FRAME, **options: Any) -> Path:
    suffix = "".join(path.suffixes)
    pyogrio.write_dataframe(frame, path, driver=DRIVERS.get(suffix), **options)
    return path


def column_of(rows: Rows, column: str) -> list[Any]:
    return [value for batch in rows.batches() for value in batch.column(column).to_pylist()]


@pytest.mark.parametrize("suffix", DRIVERS)
def test_a_file_of_any_format_is_known_by_its_suffix(tmp_path: Path, suffix: str) -> None:
    rows = read_rows(write(tmp_path / f"zones{suffix}"))
    assert rows.geometry_columns == ("geometry",)
    assert rows.crs == "EPSG:4326"
    assert [int(n) for n in column_of(rows, "n")] == [1, 2], "some formats have only texts"
    shapes = shapely.normalize(shapely.from_wkb(column_of(rows, "geometry")))
    assert shapely.equals(shapes, FRAME.geometry.to_numpy()).all()


@pytest.mark.parametrize("suffix", [".shp", ".gml", ".tab"])
def test_subscriptions_and_events_may_be_of_any_format(tmp_path: Path, suffix: str) -> None:
    matcher = Matcher()
    matcher.add_many(write(tmp_path / f"zones{suffix}"), id="n")
    points = geopandas.GeoDataFrame(
        {"speed": [5.0, 7.0]}, geometry=geopandas.points_from_xy([0.5, 2.5], [0.5, 2.5]), crs=4326
    )
    found = matcher.match_many(write(tmp_path / f"events{suffix}", points))
    assert found.to_pydict() == {"event": [0, 1], "subscription": [1, 2]}


VFK = b'&HVERZE;"5.1"\r\n&BTEL;ID N30;CISLO N12.0\r\n&DTEL;1;5\r\n&K\r\n'
GML = """<ogr:FeatureCollection xmlns:ogr="http://ogr.maptools.org/"
 xmlns:gml="http://www.opengis.net/gml"><gml:featureMember><ogr:zone><ogr:shape><gml:Point>
<gml:coordinates>1,2</gml:coordinates></gml:Point></ogr:shape><ogr:n>5</ogr:n></ogr:zone>
</gml:featureMember></ogr:FeatureCollection>"""


@pytest.mark.parametrize(
    ("suffix", "column", "first", "second"),
    [
        (".gml", "n", GML.encode(), GML.replace(">5<", ">six<").encode()),
        (".vfk", "CISLO", VFK, VFK.replace(b";5\r", b";6\r")),
    ],
)
def test_nothing_is_written_beside_a_file_and_what_others_wrote_there_is_not_believed(
    tmp_path: Path, suffix: str, column: str, first: bytes, second: bytes
) -> None:
    if suffix not in list_drivers():
        pytest.skip(f"this GDAL does not read {suffix}")
    path = tmp_path / f"zones{suffix}"
    path.write_bytes(first)
    assert column_of(read_rows(path), column) == [5]
    assert [file.name for file in tmp_path.iterdir()] == [path.name]

    broken = tmp_path / f"broken{suffix}"
    broken.write_text("<a></a>")
    with pytest.raises(InvalidInput, match=f"cannot be read: '{broken}' not recognized"):
        read_rows(broken)
    broken.unlink()

    pyogrio.read_info(path)
    (beside,) = set(tmp_path.iterdir()) - {path}
    path.write_bytes(second)
    later_s = beside.stat().st_mtime + 60
    os.utime(beside, (later_s, later_s))
    assert column_of(read_rows(path), column) == ["six" if suffix == ".gml" else 6]


def test_the_schema_beside_gml_is_read(tmp_path: Path) -> None:
    path = write(tmp_path / "zones.gml", FRAME.assign(code=["1", "2"]))
    assert column_of(read_rows(path), "code") == ["1", "2"]
    path.with_suffix(".xsd").unlink()
    assert column_of(read_rows(path), "code") == [1, 2]


def test_ids_of_kml_count_where_there_are_any(tmp_path: Path) -> None:
    place = "<Placemark{}><name>x</name><Point><coordinates>1,2</coordinates></Point></Placemark>"
    for ids, names in (["", ""], None), ([' id="a"', ' id="b"'], ["a", "b"]):
        places = "".join(place.format(id_) for id_ in ids)
        (tmp_path / "x.kml").write_text(
            f'<kml xmlns="http://www.opengis.net/kml/2.2"><Document>{places}</Document></kml>'
        )
        rows = read_rows(tmp_path / "x.kml")
        assert ("id" in rows.schema.names) == (names is not None)
        assert names is None or column_of(rows, "id") == names


@pytest.mark.parametrize("inside", ["", "deep/down/"])
def test_a_shapefile_may_be_zipped_with_its_parts(tmp_path: Path, inside: str) -> None:
    write(tmp_path / "zones.shp")
    with zipfile.ZipFile(tmp_path / "download.zip", "w") as archive:
        for part in tmp_path.glob("zones.*"):
            archive.write(part, f"{inside}{part.name}")
        archive.writestr("__MACOSX/._zones.shp", b"")
        archive.writestr("readme.txt", b"")
    assert column_of(read_rows(tmp_path / "download.zip"), "n") == [1, 2]


def test_a_zip_archive_without_a_known_format_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("readme.txt", b"")
    with pytest.raises(InvalidInput, match=r"x\.zip: it contains no file of .* readme\.txt"):
        read_rows(tmp_path / "x.zip")


@pytest.mark.parametrize(
    ("missing", "words"), [(".dbf", "the attributes"), (".shx", "the row index")]
)
def test_a_shapefile_without_a_part_is_refused(tmp_path: Path, missing: str, words: str) -> None:
    path = write(tmp_path / "zones.shp")
    path.with_suffix(missing).unlink()
    with pytest.raises(InvalidInput, match=rf"zones\.shp: zones\{missing}, .*{words}, is missing"):
        read_rows(path)


def test_a_shapefile_without_a_coordinate_system_is_warned_of(tmp_path: Path) -> None:
    path = write(tmp_path / "zones.shp")
    path.with_suffix(".prj").unlink()
    with pytest.warns(UserWarning, match=r"zones\.shp: zones\.prj is missing"):
        assert read_rows(path).crs is None


def test_parts_of_a_shapefile_may_be_in_capitals(tmp_path: Path) -> None:
    path = write(tmp_path / "zones.shp")
    for part in [*tmp_path.glob("zones.*")]:
        part.rename(part.with_suffix(part.suffix.upper()))
    assert read_rows(path.with_suffix(".SHP")).count == 2


@pytest.mark.parametrize("suffix", [".gpkg", ".gdb", ".sqlite", ".kml"])
def test_one_of_several_layers_must_be_named(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path / f"map{suffix}", layer="roads")
    write(path, FRAME.iloc[:1], layer="rivers", append=True)
    with pytest.raises(InvalidInput, match="it has roads, rivers") as caught:
        read_rows(path)
    assert caught.value.remedies == (Remedy.LAYER,)
    assert [*map(int, column_of(read_rows(name_layer(str(path), "rivers")), "n"))] == [1]
    with pytest.raises(InvalidInput, match="there is no layer 'lakes'; it has roads, rivers"):
        read_rows(f"{path}|layername=lakes")


@pytest.mark.parametrize("suffix", [".shp", ".kml", ".gml", ".tab", ".sqlite", ".dxf", ".zip"])
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"id,wkt\n1,POINT(1 1)\n",
        b'{"type": "FeatureCollection", "features": []}',
        b"<OGRVRTDataSource><OGRVRTLayer/></OGRVRTDataSource>",
        b'{"type": "gdal_streamed_alg", "command_line": "gdal vector pipeline read x.shp"}',
    ],
)
def test_a_file_that_only_has_the_suffix_is_refused(
    tmp_path: Path, suffix: str, content: bytes
) -> None:
    path = tmp_path / f"x{suffix}"
    path.write_bytes(content)
    with pytest.raises(InvalidInput, match=rf"x\{suffix}"):
        list(read_rows(path).batches())


@pytest.mark.parametrize("part", [".shp", ".shx", ".dbf"])
def test_a_shapefile_with_a_part_that_is_cut_is_refused(tmp_path: Path, part: str) -> None:
    path = write(tmp_path / "x.shp")
    content = path.with_suffix(part).read_bytes()
    for length in (0, 10, 60, len(content) - 2):
        path.with_suffix(part).write_bytes(content[:length])
        with pytest.raises(InvalidInput, match=r"x\.shp: "):
            list(read_rows(path).batches())


MANY = geopandas.GeoDataFrame(
    {"n": np.arange(500, dtype=np.int32)},
    geometry=[shapely.box(n, 0, n + 1, 1) for n in range(500)],
    crs=4326,
)


@pytest.mark.parametrize("part", [".mif", ".mid"])
def test_a_mapinfo_file_with_a_part_that_is_cut_between_rows_is_refused(
    tmp_path: Path, part: str
) -> None:
    path = write(tmp_path / "x.mif", MANY)
    lines = path.with_suffix(part).read_bytes().splitlines(keepends=True)
    starts = [n for n, line in enumerate(lines) if line.startswith((b"Region", b"300"))]
    path.with_suffix(part).write_bytes(b"".join(lines[: starts[len(starts) // 2]]))
    with pytest.raises(InvalidInput, match=r"x\.mif"):
        list(read_rows(path).batches())


def test_a_geodatabase_whose_places_of_rows_are_cut_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "x.gdb", MANY)
    places = max(path.glob("*.gdbtablx"), key=lambda file: file.stat().st_size)
    places.write_bytes(places.read_bytes()[:3000])
    with pytest.raises(InvalidInput, match=rf"x\.gdb: {places.name} is cut off after 3,000 of "):
        read_rows(path)


@pytest.mark.parametrize("share", [0.2, 0.9])
@pytest.mark.parametrize("suffix", [".shp", ".kml", ".gml", ".shz", ".sqlite"])
def test_a_file_that_is_cut_is_refused(tmp_path: Path, suffix: str, share: float) -> None:
    path = write(tmp_path / f"x{suffix}", MANY)
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(InvalidInput, match=rf"x\{suffix}"):
        list(read_rows(path).batches())


HEAD = """<ogr:FeatureCollection xmlns:ogr="http://ogr.maptools.org/"
 xmlns:gml="http://www.opengis.net/gml">"""
PLACE = "<gml:Point><gml:pos>1 2</gml:pos></gml:Point>"
ENTITIES = '<!DOCTYPE x [<!ENTITY a "{}"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>'
DEEP = "<gml:MultiGeometry><gml:geometryMember>"


def feature(geometry: str, n: str = "5") -> str:
    """A feature of GML."""
    return (
        f"<gml:featureMember><ogr:zone><ogr:shape>{geometry}</ogr:shape><ogr:n>{n}</ogr:n>"
        "</ogr:zone></gml:featureMember>"
    )


def nested(geometry: str, levels: int) -> str:
    """A geometry within so many collections."""
    back = "</gml:geometryMember></gml:MultiGeometry>"
    return DEEP * levels + geometry + back * levels


@pytest.mark.parametrize(
    ("before", "features", "words"),
    [
        ("", feature(PLACE) + "<a>\n</b>" + feature(PLACE), "line 3: mismatched tag"),
        ("", feature(PLACE) + "\x01" + feature(PLACE), "not well-formed"),
        ("", feature(PLACE) + feature(nested(PLACE, 29)), r"deeper than 63 \(XML_DEPTH_MAX\)"),
        ("", feature(PLACE) + feature(nested(PLACE, 9000)), r"deeper than 63 \(XML_DEPTH_MAX\)"),
        (ENTITIES.format("x" * 100), feature(PLACE, "&b;"), r"declarations .* allowed \('a'\)"),
        ('<?xml version="1.0" encoding="GBK"?>', feature(PLACE), "its encoding cannot be read"),
    ],
    ids=["tags", "characters", "deep", "deeper", "entities", "encoding"],
)
@pytest.mark.parametrize("suffix", [".gml", ".zip"])
def test_xml_of_which_gdal_reads_a_part_is_refused(
    tmp_path: Path, suffix: str, before: str, features: str, words: str
) -> None:
    content = f"{before}{HEAD}{features}</ogr:FeatureCollection>"
    path = tmp_path / f"x{suffix}"
    if suffix == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("x.gml", content)
    else:
        path.write_text(content)
    with pytest.raises(InvalidInput, match=rf"x\{suffix}: .*{words}"):
        list(read_rows(path).batches())


def test_xml_as_deep_as_gdal_reads_it_is_read_in_its_encoding(tmp_path: Path) -> None:
    path = tmp_path / "x.gml"
    features = feature(PLACE) + feature(nested(PLACE, 28), "é")
    for encoding in ("UTF-8", "ISO-8859-1"):
        head = f'<?xml version="1.0" encoding="{encoding}"?>{HEAD}'
        path.write_text(f"{head}{features}</ogr:FeatureCollection>", encoding=encoding)
        assert column_of(read_rows(path), "n") == ["5", "é"]


@pytest.mark.filterwarnings("ignore:Unrecognized geometry type")  # of GDAL
def test_a_layer_may_mix_geometries_with_and_without_z(tmp_path: Path) -> None:
    line = (
        '<gml:LineString srsDimension="3"><gml:posList>0 0 5 1 1 5</gml:posList></gml:LineString>'
    )
    path = tmp_path / "x.gml"
    path.write_text(f"{HEAD}{feature(PLACE)}{feature(line)}</ogr:FeatureCollection>")
    matcher = Matcher()
    matcher.add("a", geometry="POLYGON((0 0,3 0,3 3,0 3,0 0))")
    assert matcher.match_many(path).column("event").to_pylist() == [0, 1]


def test_a_geometry_type_that_is_not_read_is_refused_with_advice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: object) -> None:
        raise pyogrio.errors.GeometryError("Geometry type is not supported: 15")

    monkeypatch.setattr(pyogrio, "list_layers", refuse)
    with pytest.raises(InvalidInput, match=r"x\.gpkg: .* type 15, .*: ogr2ogr -nlt"):
        read_rows(write(tmp_path / "x.gpkg"))


KML = '<kml xmlns="http://www.opengis.net/kml/2.2">{}</kml>'
PLACEMARK = "<Placemark><Point><coordinates>1,2</coordinates></Point></Placemark>"


@pytest.mark.parametrize(
    ("inside", "words"),
    [
        (f"<Document>{PLACEMARK}</Document>" * 2, "its root has 2 elements, Document, "),
        (f"{PLACEMARK}<Folder>{PLACEMARK}</Folder>", "2 elements, Placemark, Folder, "),
    ],
)
@pytest.mark.parametrize("suffix", [".kml", ".kmz"])
def test_kml_of_which_gdal_reads_the_last_element_is_refused(
    tmp_path: Path, suffix: str, inside: str, words: str
) -> None:
    path = tmp_path / f"x{suffix}"
    if suffix == ".kmz":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("doc.kml", KML.format(inside))
    else:
        path.write_text(KML.format(inside))
    with pytest.raises(InvalidInput, match=rf"x\{suffix}: .*{words}"):
        read_rows(path)


def test_a_network_link_control_is_no_place_of_kml(tmp_path: Path) -> None:
    (tmp_path / "x.kml").write_text(KML.format(f"<NetworkLinkControl/>{PLACEMARK}"))
    assert read_rows(tmp_path / "x.kml").count == 1


def test_a_geometry_that_gdal_cannot_give_is_a_bad_row(tmp_path: Path) -> None:
    ring = "<LinearRing><coordinates>0,0 1,0 1,1 0,0</coordinates></LinearRing>"
    places = f"{PLACEMARK}<Placemark>{ring}</Placemark>"
    (tmp_path / "x.kml").write_text(KML.format(f"<Document>{places}</Document>"))
    matcher = Matcher()
    matcher.add("a", geometry="POINT(1 2)")
    words = r"x\.kml, row 1, column 'geometry': GDAL cannot write this geometry .*\(a LinearRing"
    with pytest.raises(InvalidInput, match=words):
        matcher.match_many(tmp_path / "x.kml")
    found = matcher.match_many(tmp_path / "x.kml", quarantine=True)
    assert found.column("event").to_pylist() == [0]


def test_an_unknown_suffix_is_refused_with_those_that_are_known(tmp_path: Path) -> None:
    (tmp_path / "x.doc").touch()
    with pytest.raises(InvalidInput, match=r"x\.doc: unknown suffix; .*\.parquet.*\.shp.*\.gpx"):
        read_rows(tmp_path / "x.doc")
    assert set(DRIVERS) <= set(list_drivers())
    assert not {".vrt", ".csv", ".json", ".xml", ".txt"} & set(list_drivers())


def test_without_pyogrio_an_unknown_suffix_is_still_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    list_drivers.cache_clear()
    monkeypatch.setitem(sys.modules, "pyogrio", None)
    with pytest.raises(InvalidInput, match=r"x\.doc: unknown suffix; .*\.parquet"):
        read_rows(tmp_path / "x.doc")


def test_what_lies_beside_a_file_is_read_with_it(tmp_path: Path) -> None:
    write(tmp_path / "zones.shp")
    assert set(tmp_path.glob("zones.*")) <= set(list_files(str(tmp_path / "zones.shp")))
    write(tmp_path / "zones.gdb")
    inside = [file for file in (tmp_path / "zones.gdb").iterdir() if file.is_file()]
    assert set(list_files(f"{tmp_path}/zones.gdb|layername=zones")) == set(inside)


@pytest.mark.parametrize(
    ("name", "words"),
    [("x.csv", "this format has no layers"), ("x.gpkg|layername=a", "already names a layer")],
)
def test_a_layer_is_named_once_and_only_where_there_are_some(name: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        name_layer(name, "roads")
