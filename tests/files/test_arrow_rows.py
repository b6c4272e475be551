"""Tables in memory: GeoArrow, GeoDataFrames, streams, and the types that come out."""

import datetime as dt
import json
import uuid
from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import pandas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

from contrada import Matcher
from contrada.errors import InvalidInput
from contrada.files import Rows, read_rows
from contrada.files.arrow import lay_out

SHAPES = ["POINT (1 2)", None, "POINT (3 4.5)"]


def encoded(texts: list[str | None]) -> list[bytes | None]:
    return [None if text is None else shapely.to_wkb(shapely.from_wkt(text)) for text in texts]


def texts(rows: Rows, column: str) -> list[str | None]:
    geometries = shapely.from_wkb(np.array(column_of(rows, column), dtype=object))
    return [None if shape is None else shapely.to_wkt(shape, trim=True) for shape in geometries]


def column_of(rows: Rows, column: str) -> list[Any]:
    table = pa.Table.from_batches(list(rows.batches()), rows.schema)
    return list(table.column(column).to_pylist())


def tagged(name: str, kind: pa.DataType, extension: str, crs: object = None) -> pa.Field:
    metadata = {"ARROW:extension:name": extension}
    if crs is not None:
        metadata["ARROW:extension:metadata"] = json.dumps({"crs": crs})
    return pa.field(name, kind, metadata=metadata)


def test_a_binary_column_named_geometry_is_wkb() -> None:
    rows = read_rows(pa.table({"n": [1, 2, 3], "geometry": encoded(SHAPES)}))
    assert rows.name == "table"
    assert rows.geometry_columns == ("geometry",)
    assert rows.crs is None
    assert rows.count == 3
    assert texts(rows, "geometry") == SHAPES


def test_a_text_column_named_geometry_stays_text_and_is_listed() -> None:
    rows = read_rows(pa.table({"geometry": SHAPES}))
    assert rows.geometry_columns == ("geometry",)
    assert rows.schema.field("geometry").type == pa.string()
    assert column_of(rows, "geometry") == SHAPES


def test_a_table_without_geometry_has_none() -> None:
    rows = read_rows(pa.table({"id": ["a"], "filter": ["x > 1"]}))
    assert rows.geometry_columns == ()
    assert column_of(rows, "filter") == ["x > 1"]


@pytest.mark.parametrize("extension", ["geoarrow.wkb", "ogc.wkb"])
def test_an_extension_name_marks_wkb_and_states_the_crs(extension: str) -> None:
    field = tagged("place", pa.binary(), extension, "EPSG:3857")
    rows = read_rows(pa.table([pa.array(encoded(SHAPES))], schema=pa.schema([field])))
    assert rows.geometry_columns == ("place",)
    assert rows.crs == "EPSG:3857"
    assert not rows.schema.metadata
    assert not rows.schema.field("place").metadata


def test_a_projjson_crs_is_named_by_its_code() -> None:
    field = tagged(
        "place", pa.binary(), "geoarrow.wkb", {"id": {"authority": "OGC", "code": "CRS84"}}
    )
    assert (
        read_rows(pa.table([pa.array(encoded(SHAPES))], schema=pa.schema([field]))).crs
        == "OGC:CRS84"
    )


def test_geo_metadata_names_the_primary_column_first() -> None:
    geo = {"primary_column": "b", "columns": {"a": {"encoding": "WKB"}, "b": {"encoding": "WKB"}}}
    table = pa.table({"a": encoded(SHAPES), "b": encoded(SHAPES)})
    rows = read_rows(table.replace_schema_metadata({"geo": json.dumps(geo)}))
    assert rows.geometry_columns == ("b", "a")
    assert rows.crs == "OGC:CRS84"


def test_a_null_crs_in_geo_metadata_is_unknown() -> None:
    geo = {"primary_column": "a", "columns": {"a": {"encoding": "WKB", "crs": None}}}
    table = pa.table({"a": encoded(SHAPES)}).replace_schema_metadata({"geo": json.dumps(geo)})
    assert read_rows(table).crs is None


@pytest.mark.parametrize("text", ["{", "[]", '{"columns": 3}', '{"columns": {"a": "WKB"}}', "{}"])
def test_broken_geo_metadata_is_refused(text: str) -> None:
    table = pa.table({"a": encoded(SHAPES)}).replace_schema_metadata({"geo": text})
    with pytest.raises(InvalidInput, match="geo"):
        read_rows(table)


def test_an_unknown_crs_is_refused_with_its_text() -> None:
    field = tagged("place", pa.binary(), "geoarrow.wkb", "EPSG:99999999")
    with pytest.raises(InvalidInput, match="EPSG:99999999"):
        read_rows(pa.table([pa.array(encoded(SHAPES))], schema=pa.schema([field])))


def test_two_coordinate_systems_are_refused_unless_one_is_left_out() -> None:
    fields = [
        tagged("a", pa.binary(), "geoarrow.wkb", "EPSG:4326"),
        tagged("b", pa.binary(), "geoarrow.wkb", "EPSG:3857"),
    ]
    table = pa.table([pa.array(encoded(SHAPES))] * 2, schema=pa.schema(fields))
    with pytest.raises(InvalidInput, match='"a" is in EPSG:4326 but "b" is in EPSG:3857'):
        read_rows(table)
    assert read_rows(table, columns=["b"]).crs == "EPSG:3857"


NATIVE = {
    "linestring": "LINESTRING (0 0, 1 1, 2 0)",
    "polygon": "POLYGON ((0 0, 9 0, 9 9, 0 0), (5 1, 8 1, 8 4, 5 1))",
    "multipoint": "MULTIPOINT ((1 2), (3 4))",
    "multilinestring": "MULTILINESTRING ((0 0, 1 1), (2 2, 3 3, 4 4))",
    "multipolygon": "MULTIPOLYGON (((0 0, 1 0, 1 1, 0 0)), ((5 5, 6 5, 6 6, 5 5)))",
    "point": "POINT (7 8)",
}


@pytest.mark.parametrize("interleaved", [True, False])
@pytest.mark.parametrize("encoding", NATIVE)
def test_native_geoarrow_becomes_wkb(encoding: str, interleaved: bool) -> None:
    expected = [NATIVE[encoding], None, NATIVE[encoding]]
    series = geopandas.GeoSeries.from_wkt(expected, crs="EPSG:2154")
    frame = geopandas.GeoDataFrame({"n": [1, 2, 3]}, geometry=series)
    table = pa.table(frame.to_arrow(geometry_encoding="geoarrow", interleaved=interleaved))
    rows = read_rows(table.slice(1))
    assert texts(rows, "geometry") == expected[1:]
    assert rows.crs == "EPSG:2154"
    assert rows.schema.field("geometry").type == pa.binary()


def test_native_geoarrow_keeps_z_and_leaves_m_out() -> None:
    xyz = pa.array([[1.0, 2.0, 3.0]], pa.list_(pa.field("xyz", pa.float64()), 3))
    xym = pa.array([[1.0, 2.0, 3.0]], pa.list_(pa.field("xym", pa.float64()), 3))
    fields = [tagged("a", xyz.type, "geoarrow.point"), tagged("b", xym.type, "geoarrow.point")]
    rows = read_rows(pa.table([xyz, xym], schema=pa.schema(fields)))
    assert texts(rows, "a") == ["POINT Z (1 2 3)"]
    assert texts(rows, "b") == ["POINT (1 2)"]


def test_native_geoarrow_of_no_row_and_of_nulls() -> None:
    series = geopandas.GeoSeries.from_wkt([NATIVE["polygon"], None])
    table = pa.table(geopandas.GeoDataFrame(geometry=series).to_arrow(geometry_encoding="geoarrow"))
    assert list(read_rows(table.slice(0, 0)).batches()) == []
    assert texts(read_rows(table.slice(1)), "geometry") == [None]


def test_native_geoarrow_that_geos_will_not_build_is_left_to_whoever_decodes_it() -> None:
    ring = [{"x": 0.0, "y": 0.0}, {"x": 1.0, "y": 1.0}]
    closed = [*ring, {"x": 1.0, "y": 0.0}, ring[0]]
    separated = pa.array([[ring], None, [closed]])
    pairs = pa.list_(pa.field("xy", pa.float64()), 2)
    interleaved = pa.array(
        [[[list(position.values()) for position in ring]], None, []],
        pa.list_(pa.list_(pairs)),
    )
    for column, expected in (
        (separated, "POLYGON ((0 0, 1 1, 1 0, 0 0))"),
        (interleaved, "POLYGON EMPTY"),
    ):
        schema = pa.schema([tagged("g", column.type, "geoarrow.polygon")])
        broken, missing, good = column_of(read_rows(pa.table([column], schema=schema)), "g")
        with pytest.raises(shapely.errors.GEOSException):
            shapely.from_wkb(broken)
        assert missing is None
        assert shapely.to_wkt(shapely.from_wkb(good), trim=True) == expected


def state_edges(edges: str, **more: Any) -> pa.Table:
    """A table of one line as WKB, whose metadata state how its vertices are joined."""
    column = {"encoding": "WKB", "edges": edges, **more}
    geo = {"primary_column": "geometry", "columns": {"geometry": column}}
    line = shapely.to_wkb(shapely.LineString([(0, 0), (90, 60)]))
    return pa.table({"geometry": [line]}).replace_schema_metadata({"geo": json.dumps(geo)})


def test_edges_along_a_globe_are_warned_of_once(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(state_edges("spherical", geometry_types=["LineString"]), path)
    matcher = Matcher()
    matcher.add("a", geometry="POINT(45 30)")
    with pytest.warns(UserWarning, match=r'"geometry" has "spherical" edges') as caught:
        assert matcher.match_many(path).num_rows == 1, "a straight line meets it"
    assert len(caught) == 1
    field = pa.field(
        "shape",
        pa.binary(),
        metadata={
            "ARROW:extension:name": "geoarrow.wkb",
            "ARROW:extension:metadata": '{"edges": "karney"}',
        },
    )
    with pytest.warns(UserWarning, match='"shape" has "karney" edges'):
        read_rows(pa.table([[b""]], schema=pa.schema([field])))


def test_edges_are_not_warned_of_where_they_are_straight_or_there_are_none() -> None:
    read_rows(state_edges("planar"))  # warnings are errors
    read_rows(state_edges("spherical", geometry_types=["Point", "MultiPoint Z"]))


def test_a_part_with_edges_along_a_globe_is_warned_of(tmp_path: Path) -> None:
    for name, edges in (("a.parquet", "planar"), ("b.parquet", "spherical")):
        pq.write_table(state_edges(edges), tmp_path / name)
    with pytest.warns(UserWarning, match=r'b\.parquet: column "geometry" has "spherical" edges'):
        read_rows(tmp_path)


def test_wkt_that_is_said_to_be_in_a_column_of_bytes_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r'declared to hold .* "WKT", but its type is binary'):
        read_rows(state_edges("planar", encoding="WKT"))


def test_an_unknown_encoding_is_refused() -> None:
    field = tagged("place", pa.binary(), "geoarrow.box")
    with pytest.raises(InvalidInput, match='encoding "box"'):
        read_rows(pa.table([pa.array(encoded(SHAPES))], schema=pa.schema([field])))


def test_a_geodataframe_gives_its_active_geometry_first() -> None:
    frame = geopandas.GeoDataFrame(
        {"a": geopandas.GeoSeries.from_wkt(SHAPES), "n": [2**53 + 1, 2, 3]},
        geometry=geopandas.GeoSeries.from_wkt(SHAPES[::-1], crs="EPSG:3857"),
    ).rename_geometry("shape")
    rows = read_rows(frame)
    assert rows.geometry_columns == ("shape", "a")
    assert rows.crs == "EPSG:3857"
    assert rows.count == 3
    assert texts(rows, "shape") == SHAPES[::-1]
    assert column_of(rows, "n")[0] == 2**53 + 1
    assert column_of(rows, "n") == column_of(rows, "n"), "may be read again"


def test_the_unnamed_index_of_a_filtered_frame_is_no_column() -> None:
    frame = geopandas.GeoDataFrame({"n": [1, 2, 3]}, geometry=geopandas.GeoSeries.from_wkt(SHAPES))
    assert read_rows(frame[frame.n > 1]).schema.names == ["n", "geometry"]


def test_a_pandas_frame_is_a_table() -> None:
    rows = read_rows(pandas.DataFrame({"id": ["a", "b"], "geometry": SHAPES[:1] * 2}))
    assert column_of(rows, "id") == ["a", "b"]


def test_a_record_batch_is_a_table() -> None:
    rows = read_rows(pa.record_batch({"n": [1, 2]}))
    assert rows.count == 2
    assert column_of(rows, "n") == [1, 2]


class OneArray:
    """Something with `__arrow_c_array__` alone."""

    def __init__(self, batch: Any) -> None:
        self.batch = batch

    def __arrow_c_array__(self, schema: object = None) -> object:
        return self.batch.__arrow_c_array__(schema)


def test_an_arrow_array_of_structs_is_a_table() -> None:
    assert column_of(read_rows(OneArray(pa.record_batch({"n": [1, 2]}))), "n") == [1, 2]


def test_an_arrow_array_that_is_no_struct_is_refused() -> None:
    with pytest.raises(InvalidInput, match="as an Arrow table"):
        read_rows(pa.array([1, 2]))


def test_a_stream_is_read_once() -> None:
    table = pa.table({"n": [1, 2, 3]})
    rows = read_rows(pa.RecordBatchReader.from_batches(table.schema, table.to_batches()))
    assert rows.count is None
    assert column_of(rows, "n") == [1, 2, 3]
    with pytest.raises(InvalidInput, match="only once"):
        rows.batches()


def test_a_stream_that_breaks_is_refused_with_the_row_it_reached() -> None:
    def broken() -> Any:
        yield pa.record_batch({"n": [1, 2]})
        raise OSError("the cable is out")

    rows = read_rows(
        pa.RecordBatchReader.from_batches(pa.schema([("n", pa.int64())]), broken()), batch_rows=2
    )
    with pytest.raises(InvalidInput, match=r"after row 2: .*the cable is out"):
        list(rows.batches())


@pytest.mark.parametrize(
    "fault", [KeyError("a"), ValueError("a"), RuntimeError("a"), TypeError("a")]
)
def test_what_the_maker_of_a_stream_raises_is_told_with_the_row_it_reached(
    fault: Exception,
) -> None:
    def broken() -> Any:
        yield pa.record_batch({"n": [1, 2]})
        raise fault

    stream = pa.RecordBatchReader.from_batches(pa.schema([("n", pa.int64())]), broken())
    with pytest.raises(InvalidInput, match=f"after row 2: {type(fault).__name__}: .*a") as caught:
        list(read_rows(stream, batch_rows=2).batches())
    assert caught.value.__cause__ is not None
    assert caught.value.__cause__.__cause__ is fault


@pytest.mark.parametrize("fault", [KeyError("a"), RuntimeError("a")])
def test_a_table_that_cannot_be_opened_is_refused_with_the_cause(fault: Exception) -> None:
    class Broken:
        def __arrow_c_stream__(self, schema: object = None) -> object:
            raise fault

    with pytest.raises(InvalidInput, match="cannot read Broken as an Arrow table") as caught:
        read_rows(Broken())
    assert caught.value.__cause__ is fault


@pytest.mark.parametrize(
    ("batch", "what"),
    [
        (pa.record_batch({"m": [3]}), 'no column "n"; its columns: '),
        (pa.record_batch([[3], [3]], ["n", "n"]), '2 columns "n"; its columns: '),
    ],
)
def test_a_batch_without_the_columns_of_its_stream_is_refused(
    batch: pa.RecordBatch, what: str
) -> None:
    batches = iter([pa.record_batch({"n": [1, 2]}), batch])
    stream = pa.RecordBatchReader.from_batches(pa.schema([("n", pa.int64())]), batches)
    with pytest.raises(InvalidInput, match=f"after row 2: a batch has {what}"):
        list(read_rows(stream, batch_rows=2).batches())


def test_batches_have_the_size_asked_for_whatever_the_chunks() -> None:
    chunks = [pa.chunked_array([[1], [2, 3], [], [4, 5, 6, 7, 8, 9, 10, 11]])]
    rows = read_rows(pa.table(chunks, names=["n"]), batch_rows=4)
    assert [batch.num_rows for batch in rows.batches()] == [4, 4, 3]
    assert column_of(rows, "n") == list(range(1, 12))


def test_chunks_with_different_dictionaries_are_joined() -> None:
    chunks = [pa.array(["a", "b"]).dictionary_encode(), pa.array(["c", "a"]).dictionary_encode()]
    rows = read_rows(pa.table([pa.chunked_array(chunks)], names=["d"]))
    assert pa.types.is_dictionary(rows.schema.field("d").type)
    assert column_of(rows, "d") == ["a", "b", "c", "a"]


def test_chunks_whose_dictionaries_cannot_be_joined_stay_apart() -> None:
    with_null = pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array([None, "a"]))
    small = pa.dictionary(pa.int8(), pa.string())
    many = [pa.array([f"{letter}{n}" for n in range(100)]).cast(small) for letter in "ab"]
    for chunks in ([with_null, with_null], many):
        rows = read_rows(pa.table([pa.chunked_array(chunks)], names=["d"]))
        assert column_of(rows, "d") == [cell for chunk in chunks for cell in chunk.to_pylist()]


def struct_of(kind: pa.DataType) -> pa.DataType:
    return pa.struct([pa.field("a", kind)])


def in_runs(values: pa.Array) -> pa.Array:
    """Put values into runs: one of two rows, and one of a row for each of the others."""
    ends = pa.array(range(2, len(values) + 2), pa.int32())
    return pa.RunEndEncodedArray.from_arrays(ends, values)


LARGE_TEXTS = pa.list_(pa.large_string())
BYTES_BY_NAME = pa.map_(pa.large_string(), pa.binary())
WORDS = pa.dictionary(pa.int32(), pa.string())


@pytest.mark.parametrize(
    ("array", "kind"),
    [
        (pa.array(["é"], pa.string_view()), pa.large_string()),
        (pa.array([b"x"], pa.binary_view()), pa.large_binary()),
        (pa.array([["a"]], pa.list_(pa.string_view())), pa.list_(pa.large_string())),
        (pa.array([["a"]], pa.large_list(pa.string())), pa.large_list(pa.string())),
        (pa.array([["a"]], pa.list_(pa.string_view(), 1)), pa.list_(pa.large_string(), 1)),
        (pa.array([{"a": "b"}], struct_of(pa.string_view())), struct_of(pa.large_string())),
        (pa.array([["a"], None, ["b", "c"]], pa.list_view(pa.string_view())), LARGE_TEXTS),
        (pa.array([[1], None], pa.large_list_view(pa.int8())), pa.large_list(pa.int8())),
        (pa.array([b"ab", None], pa.binary(2)), pa.binary()),
        (pa.array([[b"ab"], None, []], pa.list_(pa.binary(2))), pa.list_(pa.binary())),
        (pa.array([{"a": b"ab"}, None], struct_of(pa.binary(2))), struct_of(pa.binary())),
        (pa.array([[("a", b"xy")], None], pa.map_(pa.string_view(), pa.binary(2))), BYTES_BY_NAME),
        (in_runs(pa.array([7, None])), pa.int64()),
        (in_runs(pa.array(["a", None], pa.string_view())), pa.large_string()),
        (in_runs(pa.array(["a", None]).dictionary_encode()), WORDS),
        (in_runs(pa.array([{"a": b"ab"}, None], struct_of(pa.binary(2)))), struct_of(pa.binary())),
        (pa.StructArray.from_arrays([in_runs(pa.array([7, None]))], ["a"]), struct_of(pa.int64())),
        (pa.ListArray.from_arrays([0, 1, 2], in_runs(pa.array([7, None]))), pa.list_(pa.int64())),
        (pa.array([2**63], pa.uint64()), pa.uint64()),
    ],
)
def test_views_and_runs_become_plain_types(array: pa.Array, kind: pa.DataType) -> None:
    rows = read_rows(pa.table({"v": array}))
    assert rows.schema.field("v").type == kind
    assert column_of(rows, "v") == array.to_pylist()
    sliced = read_rows(pa.table({"v": array.slice(1)}))
    assert column_of(sliced, "v") == array.to_pylist()[1:]


def test_uuids_become_text() -> None:
    value = uuid.UUID(int=7)
    rows = read_rows(pa.table({"id": pa.array([value.bytes, None], pa.uuid())}))
    assert column_of(rows, "id") == [str(value), None]


def test_uuids_within_structs_and_lists_become_text() -> None:
    value = uuid.UUID(int=2**127 + 7)
    ids = pa.array([value.bytes, None], pa.uuid())
    table = pa.table(
        {
            "owner": pa.StructArray.from_arrays([ids], ["id"]),
            "seen": pa.ListArray.from_arrays([0, 1, 2], ids),
        }
    )
    assert column_of(read_rows(table), "owner") == [{"id": str(value)}, {"id": None}]
    assert column_of(read_rows(table), "seen") == [[str(value)], [None]]


def test_truth_values_in_bytes_become_booleans() -> None:
    truths = pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, 0, 2, None], pa.int8()))
    table = pa.table({"v": truths, "q": pa.StructArray.from_arrays([truths], ["v"])})
    assert column_of(read_rows(table), "v") == truths.to_pylist() == [True, False, True, None]
    assert column_of(read_rows(table), "q")[0] == {"v": True}


def test_views_at_any_depth_are_read_or_refused_with_the_column() -> None:
    refusals = []
    for depth in range(100, 1_100, 100):
        kind: pa.DataType = pa.string_view()
        for _ in range(depth):
            kind = struct_of(kind)
        try:
            assert read_rows(pa.table({"deep": pa.nulls(1, kind)})).schema.names == ["deep"]
            column_of(read_rows(pa.table({"deep": pa.nulls(1, kind)})), "deep")
        except InvalidInput as refusal:
            refusals.append(refusal.message)
    assert refusals
    assert all('column "deep"' in message for message in refusals)


def test_a_column_that_is_not_in_arrows_format_is_named_with_its_type() -> None:
    days = pa.array([0, 0, 0, 1], pa.int64()).view(pa.date64())
    with pytest.raises(InvalidInput, match=r'table: .*column "day" of type date64\[ms\]: .*whole'):
        list(read_rows(pa.table({"n": [1] * 4, "day": days})).batches())


@pytest.mark.parametrize("kind", [pa.string_view(), pa.large_string(), pa.binary(21)])
def test_geometries_in_dictionaries_and_runs_are_found(kind: pa.DataType) -> None:
    points = ["POINT (1 2)"] if kind != pa.binary(21) else encoded(["POINT (1 2)"])
    values = pa.array(points, kind)
    coded = pa.DictionaryArray.from_arrays(pa.array([0, 0, None]), values)
    for array in (coded, in_runs(values)):
        rows = read_rows(pa.table({"geometry": array}))
        assert rows.geometry_columns == ("geometry",)
        assert column_of(rows, "geometry") == array.to_pylist()
        field = tagged("place", array.type, "geoarrow.wkt")
        if kind != pa.binary(21):
            told = read_rows(pa.table([array], schema=pa.schema([field])))
            assert told.geometry_columns == ("place",)
            assert column_of(told, "place") == array.to_pylist()


def test_wkb_of_fixed_size_or_in_a_dictionary_becomes_binary() -> None:
    points = encoded(["POINT (1 2)", "POINT (1 2)"])
    for array in (pa.array(points, pa.binary(21)), pa.array(points).dictionary_encode()):
        rows = read_rows(pa.table({"geometry": array}))
        assert rows.schema.field("geometry").type == pa.binary()
        assert texts(rows, "geometry") == ["POINT (1 2)", "POINT (1 2)"]


def test_columns_come_in_the_order_asked_for() -> None:
    rows = read_rows(
        pa.table({"a": [1], "b": [2], "geometry": ["POINT (0 0)"]}), columns=["b", "a"]
    )
    assert rows.schema.names == ["b", "a"]
    assert rows.geometry_columns == ()


def test_an_unknown_column_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidInput, match='no column "c"; the columns are: a, b'):
        read_rows(pa.table({"a": [1], "b": [2]}), columns=["c"])


def test_two_columns_of_one_name_are_refused() -> None:
    with pytest.raises(InvalidInput, match='two columns are named "a"'):
        read_rows(pa.table([[1], [2]], names=["a", "a"]))


def test_an_empty_table_gives_no_batch() -> None:
    rows = read_rows(pa.schema([("n", pa.int64())]).empty_table())
    assert rows.count == 0
    assert list(rows.batches()) == []


@pytest.mark.parametrize("source", [None, 3, [{"a": 1}], dt.date(2024, 5, 1)])
def test_other_objects_are_refused(source: object) -> None:
    with pytest.raises(InvalidInput, match=type(source).__name__):
        read_rows(source)


def test_batches_of_no_row_are_refused() -> None:
    with pytest.raises(InvalidInput, match="batch_rows"):
        read_rows(pa.table({"a": [1]}), batch_rows=0)


class CountingTurns:
    """A batch or a schema of Arrow's that counts how often somebody turns to it."""

    def __init__(self, whole: Any) -> None:
        self.whole, self.turns = whole, 0

    def __getattr__(self, name: str) -> Any:
        self.turns += 1
        return getattr(self.whole, name)


def test_a_batch_is_asked_for_its_names_once_however_many_columns_it_has() -> None:
    asked = set()
    for width in (2, 200):
        batch = pa.record_batch({f"c{i}": [1] for i in range(width)})
        counting = CountingTurns(batch)
        assert list(lay_out(batch.schema, None, "table").arrange(counting)) == [batch]
        asked.add(counting.turns)
    assert len(asked) == 1
