"""Arrow schemas of strangers: names, metadata and types that nobody meant, refused with a place."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

from contrada.errors import InvalidInput
from contrada.files import read_rows

POINTS = pa.array([shapely.Point(1, 2).wkb])
TWO_POINTS = pa.array([shapely.Point(1, 2).wkb, shapely.Point(3, 4).wkb])


def nested(depth: int) -> str:
    return '{"a":' * depth + "1" + "}" * depth


def stating(**column: Any) -> str:
    return json.dumps({"version": "1.1.0", "columns": {"geometry": {"encoding": "WKB", **column}}})


GEO = [
    "",
    "null",
    "[]",
    "5",
    '"x"',
    "{",
    "\x00",
    "[" * 100_000,
    nested(330),
    nested(100_000),
    '{"columns": 5}',
    '{"columns": []}',
    '{"columns": {"geometry": 5}}',
    f'{{"columns": {{"geometry": {{"encoding": {nested(330)}}}}}}}',
    f'{{"columns": {{"geometry": {{"crs": {nested(330)}}}}}}}',
    f'{{"columns": {{"geometry": {{"crs": {nested(950)}}}}}}}',
    stating(encoding=None),
    stating(encoding=["WKB"]),
    stating(encoding="point"),
    stating(encoding="multipolygon"),
    stating(crs=5),
    stating(crs="\ud800"),
    stating(crs="x\0y"),
    stating(crs={"id": []}),
    stating(crs={"id": {"authority": "\ud800", "code": {}}}),
    stating(crs={"type": "GeographicCRS", "name": 5}),
    stating(crs=[]),
]


@pytest.mark.parametrize("geo", GEO, ids=range(len(GEO)))
def test_geo_metadata_is_geoparquets_or_refused(tmp_path: Path, geo: str) -> None:
    table = pa.table({"geometry": POINTS}).replace_schema_metadata({"geo": geo.encode()})
    path = tmp_path / "x.parquet"
    pq.write_table(table, path)
    for source, place in ((path, r"x\.parquet"), (table, "table")):
        with pytest.raises(InvalidInput, match=place):
            list(read_rows(source).batches())


@pytest.mark.parametrize("primary", [None, 5, [], {}, "\ud800", "absent", ["geometry"]], ids=repr)
def test_a_primary_column_that_is_none_is_passed_over(primary: Any) -> None:
    geo = {"primary_column": primary, "columns": {"geometry": {"encoding": "WKB"}}}
    table = pa.table({"geometry": POINTS}).replace_schema_metadata({"geo": json.dumps(geo)})
    assert read_rows(table).geometry_columns == ("geometry",)


@pytest.mark.parametrize(
    ("label", "metadata"),
    [
        (b"geoarrow.wkb", b"["),
        (b"geoarrow.wkb", b"[]"),
        (b"geoarrow.wkb", b"5"),
        (b"geoarrow.wkb", b"\xff"),
        (b"geoarrow.wkb", b"[" * 100_000),
        (b"geoarrow.wkb", nested(330).replace('"a"', '"crs"').encode()),
        (b"geoarrow.wkb", b'{"crs": "\\ud800"}'),
        (b"geoarrow.wkb", b'{"crs": 5}'),
        (b"geoarrow.\xff", b"{}"),
        (b"geoarrow.point", b"{}"),
        (b"geoarrow.box", b"{}"),
    ],
)
def test_extension_metadata_is_geoarrows_or_refused(label: bytes, metadata: bytes) -> None:
    stated = {b"ARROW:extension:name": label, b"ARROW:extension:metadata": metadata}
    schema = pa.schema([pa.field("geometry", pa.binary(), metadata=stated)])
    with pytest.raises(InvalidInput, match="table"):
        list(read_rows(pa.Table.from_arrays([POINTS], schema=schema)).batches())


def misnamed(table: pa.Table, name: str) -> pa.Table:
    """The same table with bytes that UTF-8 does not know for a name, as a stranger made it."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    raw = sink.getvalue().to_pybytes().replace(name.encode(), b"\xff" * len(name))
    return pa.ipc.open_stream(raw).read_all()


def not_utf_8(name: str, inside: bool = False) -> pa.Table:
    column = {"struct": pa.array([{name: 1}])} if inside else {name: pa.array([1])}
    return misnamed(pa.table({**column, "geometry": POINTS}), name)


MEMBER = "a member's name"
PAIR = pa.list_(pa.field(MEMBER, pa.float64()), 2)


@pytest.mark.parametrize(
    ("encoding", "kind", "value"),
    [
        ("geoarrow.point", PAIR, [0.0, 0.0]),
        ("geoarrow.linestring", pa.list_(PAIR), [[0.0, 0.0], [1.0, 1.0]]),
    ],
)
def test_coordinates_whose_name_is_not_utf_8_are_refused_with_their_column(
    encoding: str, kind: pa.DataType, value: Any
) -> None:
    field = pa.field("shape", kind, metadata={"ARROW:extension:name": encoding})
    table = pa.Table.from_arrays([pa.array([value], kind)], schema=pa.schema([field]))
    with pytest.raises(InvalidInput, match='column "shape" has a part whose name is not UTF-8'):
        read_rows(misnamed(table, MEMBER))


def test_another_list_may_name_its_members_as_it_likes() -> None:
    kind = pa.list_(pa.field(MEMBER, pa.string()))
    table = misnamed(pa.table({"n": pa.array([["a"], ["b"]], kind)}), MEMBER)
    assert [batch.num_rows for batch in read_rows(table).batches()] == [2]


@pytest.mark.parametrize("inside", [False, True])
def test_a_name_that_is_not_utf_8_is_refused_with_its_column(inside: bool) -> None:
    table = not_utf_8("a name of a stranger's", inside)
    with pytest.raises(InvalidInput, match=r"table: .*(not UTF-8: b'\\xff|decode byte 0xff)"):
        read_rows(table)


def test_text_that_is_not_utf_8_is_refused_with_its_row(tmp_path: Path) -> None:
    raw = pa.array([b"a", b"\xff"]).buffers()
    text = pa.Array.from_buffers(pa.string(), 2, [None, *raw[1:]])
    table = pa.table({"id": text})
    pq.write_table(table, tmp_path / "x.parquet")
    for source in (table, tmp_path / "x.parquet"):
        with pytest.raises(InvalidInput, match=r"reading failed after row 0: .*UTF8"):
            list(read_rows(source).batches())


def lying_stream(array: pa.Array) -> bytes:
    """A stream whose last offset, of the values or of their dictionary, lies beyond the values."""
    sink = pa.BufferOutputStream()
    table = pa.table({"geometry": array})
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    values = array.dictionary if pa.types.is_dictionary(array.type) else array
    raw: bytes = sink.getvalue().to_pybytes()
    offsets: bytes = values.buffers()[1].to_pybytes()
    assert raw.count(offsets[:12]) == 1
    return raw.replace(offsets[:12], offsets[:8] + (2**30).to_bytes(4, "little"))


@pytest.mark.parametrize("array", [TWO_POINTS, TWO_POINTS.dictionary_encode()])
@pytest.mark.parametrize("kind", ["reader", "table", "batch", "struct", "chunked"])
def test_offsets_that_lead_beyond_the_values_are_refused(array: pa.Array, kind: str) -> None:
    reader = pa.ipc.open_stream(lying_stream(array))
    source: Any = reader
    if kind != "reader":
        batch = reader.read_next_batch()
        struct = batch.to_struct_array()
        source = {
            "table": pa.Table.from_batches([batch]),
            "batch": batch,
            "struct": struct,
            "chunked": pa.chunked_array([struct]),
        }[kind]
    with pytest.raises(InvalidInput, match=r"table: .*[Oo]ffset"):
        list(read_rows(source).batches())


def test_a_type_that_is_nested_without_end_is_refused() -> None:
    kind = pa.int64()
    for _ in range(2_000):
        kind = pa.list_(kind)
    with pytest.raises(InvalidInput, match=r"table: .*(nested too deep|Recursion level)"):
        read_rows(pa.Table.from_batches([], pa.schema([("deep", kind)])))


@pytest.mark.parametrize(
    ("encoding", "array"),
    [
        ("WKB", pa.array([1])),
        ("WKB", pa.array([[1.0, 2.0]])),
        ("point", pa.array([[1.0, 2.0]])),
        ("point", pa.array([{"x": 1.0}])),
        ("point", pa.array([{"x": "1", "y": "2"}])),
        ("point", pa.array([{"x": 1.0, "y": 2.0, "name": "a"}])),
        ("point", pa.array([[1.0]], pa.list_(pa.float64(), 1))),
        ("linestring", pa.array([{"x": 1.0, "y": 2.0}])),
        ("polygon", pa.array([[{"x": 1.0, "y": 2.0}]])),
        ("multipolygon", pa.array([[[[[{"x": 1.0, "y": 2.0}]]]]])),
    ],
)
def test_a_column_that_does_not_hold_what_is_said_of_it_is_refused(
    encoding: str, array: pa.Array
) -> None:
    geo = stating(encoding=encoding)
    table = pa.table({"geometry": array}).replace_schema_metadata({"geo": geo})
    with pytest.raises(InvalidInput, match='"geometry" is declared to hold geometries'):
        list(read_rows(table).batches())
