"""GeoJSON in: all its forms, types over the whole file, exact integers, damage."""

import json
from pathlib import Path
from typing import Any

import geopandas
import pyarrow as pa
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from contrada.errors import InvalidInput
from contrada.files import Rows, json_window, read_rows
from contrada.files.geojson_wkb import encode_geojson
from contrada.model.geometry import Fault, read_geometry


def feature(properties: Any, geometry: Any = None, **members: Any) -> dict[str, Any]:
    return {"type": "Feature", "properties": properties, "geometry": geometry, **members}


def point(x: float, y: float) -> dict[str, Any]:
    return {"type": "Point", "coordinates": [x, y]}


def save(folder: Path, *features: Any, **members: Any) -> Path:
    path = folder / "x.geojson"
    collection = {"type": "FeatureCollection", **members, "features": features}
    path.write_text(json.dumps(collection, ensure_ascii=False), encoding="utf-8")
    return path


def column_of(rows: Rows, column: str) -> list[Any]:
    return [value for batch in rows.batches() for value in batch.column(column).to_pylist()]


def texts(rows: Rows, column: str = "geometry") -> list[str | None]:
    shapes = shapely.from_wkb(column_of(rows, column))
    return [None if shape is None else shapely.to_wkt(shape, trim=True) for shape in shapes]


def test_a_feature_collection_gives_its_properties_and_geometries(tmp_path: Path) -> None:
    path = save(
        tmp_path,
        feature({"name": "Siena", "n": 1, "f": 0.5, "ok": True}, point(11.3, 43.3)),
        feature({"name": "東京", "n": None, "f": 2, "extra": "é"}, None),
    )
    rows = read_rows(path)
    assert [(field.name, str(field.type)) for field in rows.schema] == [
        ("name", "large_string"),
        ("n", "int64"),
        ("f", "double"),
        ("ok", "bool"),
        ("extra", "large_string"),
        ("geometry", "binary"),
    ]
    assert rows.geometry_columns == ("geometry",)
    assert rows.crs == "OGC:CRS84"
    assert rows.count == 2
    assert texts(rows) == ["POINT (11.3 43.3)", None]
    assert column_of(rows, "name") == ["Siena", "東京"]
    assert column_of(rows, "f") == [0.5, 2.0]
    assert column_of(rows, "extra") == [None, "é"]


def test_the_members_of_a_collection_come_in_any_order(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(
        '\ufeff {"features" : [ {"type":"Feature","geometry":null,"properties":{"n":1}} ] ,\n'
        '"crs": {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::3857"}},'
        '"type":"FeatureCollection", "bbox": [0, 1, 2, 3]}\n\n',
        encoding="utf-8",
    )
    rows = read_rows(path)
    assert rows.crs == "EPSG:3857"
    assert column_of(rows, "n") == [1]


@pytest.mark.parametrize(
    ("crs", "expected"),
    [
        (None, None),
        ({"type": "name", "properties": {"name": "EPSG:2154"}}, "EPSG:2154"),
        (
            {"type": "name", "properties": {"name": "urn:ogc:def:crs:OGC:1.3:CRS84"}},
            "OGC:CRS84",
        ),
    ],
)
def test_a_crs_of_the_old_style_is_taken(tmp_path: Path, crs: Any, expected: str | None) -> None:
    assert read_rows(save(tmp_path, crs=crs)).crs == expected


@pytest.mark.parametrize(
    "crs", [{"type": "link", "properties": {"href": "x"}}, 3, {"type": "name"}]
)
def test_a_crs_without_a_name_is_refused(tmp_path: Path, crs: Any) -> None:
    with pytest.raises(InvalidInput, match=r"x\.geojson: its crs has no name"):
        read_rows(save(tmp_path, crs=crs))


def test_a_single_feature_and_a_bare_geometry_are_one_row(tmp_path: Path) -> None:
    path = tmp_path / "x.geojson"
    path.write_text(json.dumps(feature({"n": 7}, point(1, 2), id="a")))
    rows = read_rows(path)
    assert (column_of(rows, "id"), column_of(rows, "n"), texts(rows)) == (
        ["a"],
        [7],
        ["POINT (1 2)"],
    )
    path.write_text(json.dumps({**point(3, 4), "foreign": 1}))
    rows = read_rows(path)
    assert rows.schema.names == ["geometry"]
    assert texts(rows) == ["POINT (3 4)"]


def test_a_collection_without_features_has_no_row(tmp_path: Path) -> None:
    rows = read_rows(save(tmp_path))
    assert rows.count == 0
    assert rows.geometry_columns == ("geometry",)
    assert list(rows.batches()) == []


def test_the_id_of_a_feature_goes_before_a_property_of_that_name(tmp_path: Path) -> None:
    rows = read_rows(save(tmp_path, feature({"n": 1}), feature({"n": 1}, id=5)))
    assert rows.schema.names == ["id", "n", "geometry"]
    assert column_of(rows, "id") == [None, 5]
    rows = read_rows(save(tmp_path, feature({"id": 8}, id="x"), feature({"id": "y"}, id=None)))
    assert column_of(rows, "id") == ["x", "y"]
    rows = read_rows(save(tmp_path, feature({"n": 1, "id": 8}), feature({"id": 9})))
    assert rows.schema.names == ["n", "id", "geometry"]
    assert column_of(rows, "id") == [8, 9]


def test_ids_of_two_kinds_are_refused_with_both_rows(tmp_path: Path) -> None:
    places = r"a string in line 1 \(row 0\) but a number in line 1 \(row 1\)"
    message = rf'x\.geojson: column "id" holds {places}'
    with pytest.raises(InvalidInput, match=message):
        read_rows(save(tmp_path, feature({}, id="x"), feature({"id": 8})))


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([2**53 + 1, -(2**63), 2**63 - 1], pa.int64()),
        ([2**64 - 1, 0, 2**53 + 1], pa.uint64()),
        ([2**60, 0.5, -3], pa.float64()),
        ([1, 10**22], pa.float64()),
        ([None, None], pa.null()),
        ([[1, 2], [], None], pa.list_(pa.int64())),
        ([[1, None, 0.5], [2**60]], pa.list_(pa.float64())),
        ([[]], pa.list_(pa.null())),
    ],
)
def test_numbers_keep_their_value(tmp_path: Path, values: list[Any], kind: pa.DataType) -> None:
    rows = read_rows(save(tmp_path, *[feature({"v": value}) for value in values]))
    assert rows.schema.field("v").type == kind
    assert column_of(rows, "v") == values


def test_nested_properties_become_structs(tmp_path: Path) -> None:
    values = [{"a": 1, "b": {"c": "x"}}, {"d": [{"e": 2**53 + 1}], "a": 0.5}]
    rows = read_rows(save(tmp_path, *[feature({"v": value}) for value in values]))
    assert column_of(rows, "v") == [
        {"a": 1.0, "b": {"c": "x"}, "d": None},
        {"a": 0.5, "b": None, "d": [{"e": 2**53 + 1}]},
    ]


@pytest.mark.parametrize(
    ("values", "expected", "message"),
    [
        ([3, "3 m", 4], [3, None, 4], 'column "v" holds a number in row 0 but a string in row 1'),
        (["a", 1, True, 2, 3], [None, 1, None, 2, 3], "but a string in row 0, a boolean in row 2"),
        ([1, "1"], [1, None], r"1 value of another kind is read as null"),
        ([True, 1], [True, None], "holds a boolean in row 0 but a number in row 1"),
        ([[1], {"a": 1}, [2]], [[1], None, [2]], "holds a list in row 0 but a mapping in row 1"),
        ([{"a": [1, 2, "x"]}], [{"a": [1, 2, None]}], r'column "v\.a\[\]" holds a number in row 0'),
        ([2**53 + 1, 0.5, 1.5], [None, 0.5, 1.5], 'column "v" holds 9007199254740993 in row 0'),
        ([2**53 + 1, 0.5, -(2**53) - 1], [2**53 + 1, None, -(2**53) - 1], "holds 0.5 in row 1"),
        ([-1, 2**64 - 1], [-1, None], 'column "v" holds 18446744073709551615 in row 1'),
        ([0.5, 10**400], [0.5, None], 'column "v" holds 1000000'),
    ],
)
def test_values_of_another_kind_than_most_are_null_and_told_of(
    tmp_path: Path, values: list[Any], expected: list[Any], message: str
) -> None:
    path = save(tmp_path, *[feature({"v": value}) for value in values])
    with pytest.warns(UserWarning, match=message) as told:
        rows = read_rows(path)
    assert len(told) == 1
    assert str(told[0].message).startswith(str(path))
    assert column_of(rows, "v") == expected


def test_a_column_that_is_not_asked_for_is_not_told_of(tmp_path: Path) -> None:
    path = save(tmp_path, feature({"v": 1, "n": 2}), feature({"v": "1", "n": 3}))
    assert column_of(read_rows(path, columns=["n"]), "n") == [2, 3]


def test_a_property_that_is_mostly_a_geometry_is_null_elsewhere(tmp_path: Path) -> None:
    values = [point(0, 0), "nowhere", {"a": 1}, point(1, 1)]
    path = save(tmp_path, *[feature({"v": value}) for value in values])
    with pytest.warns(UserWarning, match="holds a geometry in row 0 but a string in row 1"):
        rows = read_rows(path)
    assert texts(rows, "v") == ["POINT (0 0)", None, None, "POINT (1 1)"]


@pytest.mark.parametrize("column", ["id", "filter", "where", "relation", "attribute", "subscriber"])
def test_a_column_that_says_whom_to_serve_must_be_of_one_kind(tmp_path: Path, column: str) -> None:
    path = save(tmp_path, feature({column: "x"}), feature({}), feature({column: 3}))
    with pytest.raises(
        InvalidInput, match=rf'"{column}" holds a string in line 1 \(row 0\) but a number'
    ):
        read_rows(path)


def test_a_filter_in_json_is_kept_as_its_text(tmp_path: Path) -> None:
    tree = {"op": ">", "args": [{"property": "v"}, 3]}
    path = save(tmp_path, feature({"filter": "v > 3"}), feature({"filter": tree}))
    text, encoded = column_of(read_rows(path), "filter")
    assert text == "v > 3"
    assert json.loads(encoded) == tree


def test_a_property_that_is_a_geometry_is_a_geometry_column(tmp_path: Path) -> None:
    line = {"type": "LineString", "coordinates": [[0, 0], [1, 1]]}
    path = save(
        tmp_path,
        feature({"home": point(1, 2)}, point(0, 0)),
        feature({"home": line}, None),
    )
    rows = read_rows(path)
    assert rows.geometry_columns == ("geometry", "home")
    assert texts(rows, "home") == ["POINT (1 2)", "LINESTRING (0 0, 1 1)"]


SHAPES = [
    "POINT (1 2)",
    "POINT EMPTY",
    "POINT Z (1 2 3)",
    "LINESTRING (0 0, 1.5 1)",
    "LINESTRING EMPTY",
    "POLYGON ((0 0, 9 0, 9 9, 0 0), (5 1, 8 1, 8 4, 5 1))",
    "POLYGON Z ((0 0 1, 9 0 2, 9 9 3, 0 0 1))",
    "POLYGON EMPTY",
    "MULTIPOINT ((1 2), (3 4))",
    "MULTILINESTRING ((0 0, 1 1), (2 2, 3 3, 4 4))",
    "MULTIPOLYGON (((0 0, 1 0, 1 1, 0 0)), ((5 5, 6 5, 6 6, 5 5)))",
    "MULTIPOLYGON EMPTY",
    "GEOMETRYCOLLECTION (POINT (1 2), LINESTRING (0 0, 1 1))",
    "GEOMETRYCOLLECTION EMPTY",
]


@pytest.mark.parametrize("text", SHAPES)
def test_every_geometry_is_encoded_as_shapely_would(text: str) -> None:
    shape = shapely.from_wkt(text)
    encoded = encode_geojson(json.loads(shapely.to_geojson(shape)))
    assert shapely.to_wkt(shapely.from_wkb(encoded)) == shapely.to_wkt(shape)


coordinate = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(st.tuples(coordinate, coordinate), min_size=2, max_size=9))
def test_coordinates_are_kept_exactly(positions: list[tuple[float, float]]) -> None:
    geometry = json.loads(json.dumps({"type": "LineString", "coordinates": positions}))
    shape = shapely.from_wkb(encode_geojson(geometry))
    assert shapely.get_coordinates(shape).tolist() == [list(position) for position in positions]


@pytest.mark.parametrize(
    ("geometry", "reason"),
    [
        ({"type": "Polygon", "coordinates": [[[0, 0], [1, 1], [2, 0]]]}, "closed"),
        ({"type": "LineString", "coordinates": [[0, 0]]}, "point array"),
    ],
)
def test_what_geos_will_not_build_is_left_to_whoever_decodes_it(
    tmp_path: Path, geometry: dict[str, Any], reason: str
) -> None:
    (encoded,) = column_of(read_rows(save(tmp_path, feature({}, geometry))), "geometry")
    with pytest.raises(shapely.errors.GEOSException, match=reason):
        shapely.from_wkb(encoded)


def test_positions_may_be_uneven_and_null(tmp_path: Path) -> None:
    path = save(
        tmp_path,
        feature({}, {"type": "LineString", "coordinates": [[0, 0], [1, 1, 5]]}),
        feature({}, {"type": "LineString", "coordinates": [[0, 0, 7], [1, 1]]}),
        feature({}, {"type": "Point", "coordinates": [1, 2, 3, 4]}),
        feature({}, {"type": "Point", "coordinates": [None, 2]}),
    )
    assert texts(read_rows(path)) == [
        "LINESTRING (0 0, 1 1)",
        "LINESTRING Z (0 0 7, 1 1 NaN)",
        "POINT Z (1 2 3)",
        "POINT (NaN 2)",
    ]


@pytest.mark.parametrize(
    "geometry",
    [
        {"type": "Point", "coordinates": ["a", 1]},
        {"type": "Point", "coordinates": [1]},
        {"type": "Point", "coordinates": [[1, 2]]},
        {"type": "LineString", "coordinates": [1, 2]},
        {"type": "LineString", "coordinates": ["12", "34"]},
        {"type": "Polygon", "coordinates": [[0, 0], [1, 1]]},
        {"type": "Polygon", "coordinates": [3]},
        {"type": "GeometryCollection", "geometries": [3]},
        {"type": "GeometryCollection", "geometries": [{"type": "Sphere"}]},
        {"type": "Sphere", "coordinates": []},
        {"type": "Point"},
        {"type": ["Point"], "coordinates": []},
        "POINT (1 b)",
        "nonsense",
        3,
    ],
)
def test_a_geometry_of_no_shape_is_delivered_as_bytes_that_no_one_decodes(
    tmp_path: Path, geometry: Any
) -> None:
    path = save(tmp_path, feature({}), feature({}, geometry), feature({}, point(1, 2)))
    missing, bad, good = column_of(read_rows(path), "geometry")
    assert missing is None
    assert shapely.from_wkb(good) == shapely.Point(1, 2)
    assert bad[0] > 1, "WKB begins with its byte order"
    with pytest.raises(shapely.errors.GEOSException):
        shapely.from_wkb(bad)


@pytest.mark.parametrize(
    ("geometry", "reason"),
    [
        ({"type": "Point", "coordinates": [-118.24]}, "at least two numbers, not [-118.24]"),
        ({"type": "Polygon", "coordinates": [[[0, 0], [1]]]}, "at least two numbers, not [1]"),
        ({"type": "Point", "coordinates": ["a", 1]}, "must consist of numbers, not ['a', 1]"),
        ({"type": "Point"}, 'it has no "coordinates"'),
        ({"type": "Point", "coordinates": 5}, 'its "coordinates" are 5, not a list'),
        ({"type": "Polygon", "coordinates": [3]}, "its members are not valid GeoJSON"),
        ({"type": "Sphere", "coordinates": []}, "its type is 'Sphere'"),
        (3, "it is not an object"),
    ],
)
def test_a_geometry_of_no_shape_says_what_is_wrong_with_it(
    tmp_path: Path, geometry: Any, reason: str
) -> None:
    (bad,) = column_of(read_rows(save(tmp_path, feature({}, geometry))), "geometry")
    fault = read_geometry(bad)
    assert isinstance(fault, Fault)
    assert fault.place == "column 'geometry'"
    assert fault.message.startswith("cannot read the GeoJSON geometry: ")
    assert f"{reason} (value " in fault.message


@pytest.mark.parametrize("kind", ["CircularString", "CurvePolygon", "MultiSurface"])
def test_a_curve_is_delivered_as_a_curve(tmp_path: Path, kind: str) -> None:
    geometry = {"type": kind, "coordinates": [[0, 0], [1, 1], [2, 0]]}
    (encoded,) = column_of(read_rows(save(tmp_path, feature({}, geometry))), "geometry")
    with pytest.raises(NotImplementedError, match=r"(?i)nonlinear"):
        shapely.from_wkb(encoded)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"x\.geojson: line 1, column 1: expected \"{\""),
        ("\n\n[]", r"line 3, column 1: expected \"{\", near '\[\]'"),
        ("{", r"line 1, column 2: Expecting value"),
        ('{"type": "FeatureCollection"', r'expected "}"'),
        ('{"type": "FeatureCollection"}', r'not type "FeatureCollection"'),
        ('{"features": []}', r'not type "None"'),
        ('{"type": "Topology", "objects": {}}', r'not type "Topology"'),
        ('{"type": "FeatureCollection", "features": [}', r"line 1, column 44: Expecting value"),
        ('{"type": "FeatureCollection", "features": [{"a": 1},]}', "missing after the comma"),
        (
            '{"type": "FeatureCollection", "features": [{"a": 1}\n {"a": 2}]}',
            r'line 2.*expected "]"',
        ),
        ('{"type": "FeatureCollection", "features": []} x', "text after the end"),
        (
            '{"type": "FeatureCollection", "features": [3]}',
            r"line 1 \(row 0\) is not a JSON object: 3",
        ),
        ('{"type": "FeatureCollection", "features": [{"x": "abc', "Unterminated string"),
        ('{"type" "FeatureCollection"}', 'expected ":"'),
        ('{"n": ' + "1" * 5000 + "}", "digits"),
        ('{"n": ' + "[" * 100_000 + "}", "JSON_DEPTH_MAX"),
    ],
)
def test_a_damaged_file_is_refused_with_the_place(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "x.geojson"
    path.write_text(text)
    with pytest.raises(InvalidInput, match=message):
        read_rows(path)


def test_properties_that_are_no_object_are_refused(tmp_path: Path) -> None:
    with pytest.raises(
        InvalidInput, match=r"line 1 \(row 1\) has properties that are not an object: 5"
    ):
        read_rows(save(tmp_path, feature({}), feature(5)))


def test_bytes_that_are_not_utf_8_are_refused_with_their_place(tmp_path: Path) -> None:
    path = tmp_path / "x.geojson"
    text = b'{"type": "FeatureCollection", "name": "Z\xfcrich", "features": []}'
    path.write_bytes(text)
    with pytest.raises(InvalidInput, match=rf"x\.geojson: not UTF-8 at byte {text.index(0xFC)}"):
        read_rows(path)


def test_half_a_surrogate_is_refused_with_its_row(tmp_path: Path) -> None:
    path = tmp_path / "x.geojson"
    path.write_text(
        json.dumps({"type": "FeatureCollection", "features": [feature({"s": "\ud83d"})]})
    )
    with pytest.raises(InvalidInput, match=r"line 1 \(row 0\), column 's': a text has half"):
        list(read_rows(path).batches())


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 64, 1000])
def test_the_window_may_be_cut_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    features = [
        feature({"s": 'é "\\" \U0001f600 x' * n, "n": -1.5e-7, "b": False}, point(n, 12345), id=n)
        for n in range(9)
    ]
    path = save(tmp_path, *features, name="x", n=12345, flag=True)
    whole = pa.Table.from_batches(list(read_rows(path).batches()))
    escaped = json.dumps({"type": "FeatureCollection", "features": features}, indent=1)
    (tmp_path / "y.geojson").write_text(escaped)
    monkeypatch.setattr(json_window, "CHUNK_BYTES", chunk)
    for name in ("x.geojson", "y.geojson"):
        assert pa.Table.from_batches(list(read_rows(tmp_path / name).batches())) == whole


def test_a_fault_is_placed_right_across_windows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.geojson"
    lines = [
        '{"type": "FeatureCollection", "features": [',
        *['{"type": "Feature"},'] * 50,
        "  oops",
    ]
    path.write_text("\n".join(lines) + " " * 500)
    monkeypatch.setattr(json_window, "CHUNK_BYTES", 33)
    with pytest.raises(InvalidInput, match=r"line 52, column 3: Expecting value, near 'oops"):
        read_rows(path)


class CountingFile:
    """A file that knows how much of it was read."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.at = 0

    def read(self, size: int) -> bytes:
        chunk = self.content[self.at : self.at + size]
        self.at += len(chunk)
        return chunk


def test_the_window_holds_no_more_than_it_needs() -> None:
    content = b'{"type": "Feature"}\n' * 400_000
    file = CountingFile(content)
    window = json_window.JsonWindow(file, "x")  # type: ignore[arg-type]
    for n in range(400_000):
        window.value()
        assert file.at <= 20 * n + 2 * json_window.CHUNK_BYTES
    assert window.peek() == ""


def test_columns_can_be_chosen(tmp_path: Path) -> None:
    path = save(tmp_path, feature({"a": 1, "b": 2}, point(0, 0), id=3))
    rows = read_rows(path, columns=["b", "id"])
    assert rows.schema.names == ["b", "id"]
    assert rows.geometry_columns == ()
    assert column_of(rows, "id") == [3]


def test_what_geopandas_writes_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "x.geojson"
    frame = geopandas.GeoDataFrame(
        {"name": ["a", "b"], "n": [2**53 + 1, 3]},
        geometry=geopandas.GeoSeries.from_wkt(["POINT (0.1 0.2)", "LINESTRING (0 0, 1 1)"]),
        crs="EPSG:3857",
    )
    frame.to_file(path)
    rows = read_rows(path)
    assert rows.crs == "EPSG:3857"
    assert column_of(rows, "n") == [2**53 + 1, 3]
    assert list(shapely.from_wkb(column_of(rows, "geometry"))) == list(frame.geometry)
