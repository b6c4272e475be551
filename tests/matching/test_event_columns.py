"""Events by columns: geometries of every encoding, and attributes as numbers and codes."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from shapely.geometry import GeometryCollection, LineString, MultiPoint, Point, Polygon, box

import contrada
from contrada.errors import InvalidInput
from contrada.matching import columns as columns_module
from contrada.matching.arrow_values import as_values
from contrada.matching.columns import EventBatch, GeometryColumn, read_geometries
from contrada.matching.grouping import expand, group_by
from contrada.matching.ids import id_type, read_id_column
from contrada.matching.subscription_columns import pack_subscriptions
from contrada.model import geometry as geometry_module
from contrada.model.expression import Attribute, Comparison, Literal
from contrada.model.geometry import Fault, find_faults, read_geometry
from contrada.model.geometry import as_array as geometry_array
from contrada.model.instant import Instant
from contrada.model.subscription import Constraint, Filter, Predicate, Subscription
from strategies import geometries

BOW_TIE = Polygon([(0, 0), (2, 2), (2, 0), (0, 2)])
CURVE = shapely.to_wkb(LineString([(0, 0), (1, 1), (2, 0)])).replace(b"\x02", b"\x08", 1)
NAN, INFINITY = float("nan"), float("inf")


# Geometries


def encodings(geometry: Any) -> list[bytes]:
    """All ways to write a geometry as WKB that mean the same on the plane."""
    with_srid, raised = shapely.set_srid(geometry, 4326), shapely.force_3d(geometry, 7)
    return [
        shapely.to_wkb(geometry),
        shapely.to_wkb(geometry, byte_order=0),
        shapely.to_wkb(with_srid, include_srid=True),
        shapely.to_wkb(with_srid, include_srid=True, byte_order=0),
        shapely.to_wkb(raised),
        shapely.to_wkb(raised, flavor="iso"),
        shapely.to_wkb(raised, flavor="iso", byte_order=0),
    ]


BAD = (
    b"",
    b"\x01\x01\x00\x00\x00" + bytes(15),
    CURVE,
    BOW_TIE.wkb,
    struct.pack("<BIdd", 1, 1, NAN, 1),
    struct.pack("<BIdd", 1, 1, INFINITY, -INFINITY),
    struct.pack(">BIdd", 0, 1, 1, NAN),
    struct.pack("<BIdd", 1, 99, 1, 1),
    bytes(21),
)
EMPTY = (Point(), LineString(), Polygon(), MultiPoint(), GeometryCollection([Point(), Polygon()]))


@st.composite
def wkb_values(draw: st.DrawFn) -> bytes | None:
    kind = draw(st.integers(0, 9))
    if kind == 0:
        return None
    if kind == 1:
        return draw(st.sampled_from(BAD))
    if kind == 2:
        return draw(st.sampled_from(encodings(draw(st.sampled_from(EMPTY)))))
    return draw(st.sampled_from(encodings(draw(geometries("point" if kind < 6 else None)))))


def containers(values: list[bytes | None]) -> list[pa.Array]:
    """The same values in all kinds of array."""
    plain = pa.array(values, pa.binary())
    padded = pa.array([BOW_TIE.wkb, None, *values, b"", Point(9, 9).wkb], pa.binary())
    return [
        plain,
        plain.cast(pa.large_binary()),
        plain.dictionary_encode(),
        padded.slice(2, len(values)),
        padded.cast(pa.large_binary()).slice(2, len(values)),
        pa.concat_arrays([padded.slice(2, len(values) - 1), plain.slice(len(values) - 1)]),
    ]


def expected_of(value: bytes | None) -> Any:
    """What one value means: a geometry, None, or the code of its fault."""
    read = None if value is None else read_geometry(value)
    if isinstance(read, Fault):
        return read.code
    if read is None or read.is_empty:
        return None
    fault = find_faults(geometry_array([read])).get(0)
    return read if fault is None else fault.code


@settings(max_examples=200)
@given(st.lists(wkb_values(), min_size=1, max_size=8))
def test_a_column_is_read_as_each_of_its_values_would_be(values: list[bytes | None]) -> None:
    expected = [expected_of(value) for value in values]
    for array in containers(values):
        column = read_geometries(array)
        rows = np.arange(len(values))
        faults = {row: fault.code for row, fault in column.faults.items()}
        assert [faults.get(row) or column.one(row) for row in range(len(values))] == expected
        known = [each if isinstance(each, shapely.Geometry) else None for each in expected]
        assert column.is_known.tolist() == [each is not None for each in known]
        assert column.take(rows).tolist() == known
        points = {row: each for row, each in enumerate(known) if isinstance(each, Point)}
        assert np.flatnonzero(column.is_point).tolist() == list(points)
        assert [Point(column.x[row], column.y[row]) for row in points] == list(points.values())


@settings(max_examples=60)
@given(st.lists(st.none() | geometries() | st.sampled_from(EMPTY), min_size=1, max_size=5))
def test_a_column_of_texts_is_read_as_one_of_wkb(shapes: list[Any]) -> None:
    texts = pa.array([None if shape is None else shape.wkt for shape in shapes], pa.string())
    binary = read_geometries(
        pa.array([s if s is None else shapely.to_wkb(s) for s in shapes], pa.binary())
    )
    for array in (texts, texts.cast(pa.large_string()), texts.dictionary_encode()):
        column = read_geometries(array)
        assert [column.one(row) for row in range(len(shapes))] == [
            binary.one(row) for row in range(len(shapes))
        ]


def test_a_text_that_is_no_wkt_is_unknown_and_one_that_is_wrong_is_a_fault() -> None:
    column = read_geometries(pa.array(["hello", "POINT(1 x)", "POINT (1 1)", "POINT EMPTY", None]))
    assert column.is_known.tolist() == [False, False, True, False, False]
    assert {row: fault.code for row, fault in column.faults.items()} == {1: "undecodable"}


def test_a_column_of_structs_may_be_geojson() -> None:
    column = read_geometries(
        pa.array(
            [
                {"type": "Point", "coordinates": [1.0, 2.0]},
                {"type": "Point", "coordinates": []},
                {"type": "Circle", "coordinates": [1.0, 2.0]},
                {"type": "Point", "coordinates": [1.0, None]},
                {"type": None, "coordinates": None},
                None,
            ]
        )
    )
    assert column.one(0) == Point(1, 2)
    assert column.is_known.tolist() == [True, *[False] * 5]
    assert {row: fault.code for row, fault in column.faults.items()} == {3: "undecodable"}


def test_faults_say_what_and_where() -> None:
    column = read_geometries(pa.array(BAD))
    codes = [column.faults[row].code for row in range(len(BAD))]
    assert codes[:7] == [
        "undecodable",
        "undecodable",
        "curve",
        "invalid",
        "non_finite",
        "non_finite",
        "non_finite",
    ]
    assert "self-intersection at (1, 1)" in column.faults[3].message
    assert "(nan, 1.0) at vertex 0" in column.faults[4].message
    assert "(inf, -inf) at vertex 0" in column.faults[5].message
    assert column.mended == {}


def test_repair_mends_what_is_invalid_and_nothing_else() -> None:
    collapsed = struct.pack("<BII", 1, 3, 1) + struct.pack("<I8d", 4, *[1.0] * 8)
    column = read_geometries(pa.array([*BAD, collapsed]), repair=True)
    assert set(column.mended) == {3, len(BAD)}
    assert set(column.faults) == set(range(len(BAD))) - {3}
    mended = column.one(3)
    assert mended is not None
    assert mended.is_valid
    assert mended.equals(shapely.make_valid(BOW_TIE))


@pytest.mark.parametrize(
    "kind", [pa.int64(), pa.float64(), pa.list_(pa.int8()), pa.null()], ids=str
)
def test_a_column_of_another_type_has_no_geometry(kind: pa.DataType) -> None:
    column = read_geometries(pa.array([None, None], kind))
    assert column.is_known.tolist() == [False, False]
    assert not column.faults


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.string()], ids=str)
def test_a_column_may_have_no_rows(kind: pa.DataType) -> None:
    assert read_geometries(pa.array([], kind)).is_known.tolist() == []
    assert read_geometries(pa.array([None], kind).slice(1)).is_known.tolist() == []


@pytest.mark.parametrize(
    "array",
    [
        pa.array(["POINT Z (1 1 1)", "P0INT", "LINEARRING (0 0, 1 0, 1 1, 0 0)"] * 300),
        pa.array([Point(1, 1).wkb, b"\1", MultiPoint([(1, 1)]).wkb] * 300),
    ],
    ids=["texts", "bytes of which some are bad"],
)
def test_geometries_that_are_read_one_by_one_are_tidied_together(
    array: pa.Array, monkeypatch: pytest.MonkeyPatch
) -> None:
    tidied: list[int] = []
    tidy = geometry_module.tidy

    def count(shapes: Any) -> Any:
        tidied.append(len(shapes))
        return tidy(shapes)

    monkeypatch.setattr(geometry_module, "tidy", count)
    monkeypatch.setattr(columns_module, "tidy", count)
    column = read_geometries(array, is_meant=True)
    assert len(column.faults) == 300
    assert column.is_known.sum() == 600
    assert len(tidied) < 5


def test_a_column_of_shapes_knows_points_from_others() -> None:
    shapes = geometry_array([Point(1, 2), None, box(0, 0, 1, 1), Point(), MultiPoint([(3, 4)])])
    column = GeometryColumn.of(shapes)
    assert column.is_point.tolist() == [True, False, False, False, False]
    assert column.is_known.tolist() == [True, False, True, False, True]
    assert column.take(np.array([4, 0, 0])).tolist() == [MultiPoint([(3, 4)]), *[Point(1, 2)] * 2]
    assert column.take(np.zeros(0, np.int64)).tolist() == []


# Attributes


def batch_of(**columns: Any) -> EventBatch:
    arrays = {name: pa.array(column) for name, column in columns.items()}
    return EventBatch(arrays, len(next(iter(arrays.values()))), {})


@pytest.mark.parametrize(
    ("array", "numbers"),
    [
        (pa.array([1, None, -(2**63)]), [1, None, -(2**63)]),
        (pa.array([1, None], pa.uint32()), [1, None]),
        (pa.array([1.5, None, NAN, INFINITY]), [1.5, None, None, INFINITY]),
        (pa.array([0.5, None], pa.float32()), [0.5, None]),
        (pa.array([None, np.float16(0.5)], pa.float16()), [None, 0.5]),
        (pa.array([5, 1, 2]).slice(1), [1, 2]),
        (pa.array([2**64 - 1], pa.uint64()), None),
        (pa.array([True]), None),
        (pa.array(["1"]), None),
        (pa.array([1]).dictionary_encode(), None),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else "",
)
def test_a_column_is_a_column_of_numbers_if_doubles_or_int64_can_hold_it(
    array: pa.Array, numbers: list[Any] | None
) -> None:
    found = batch_of(x=array).numbers("x")
    if numbers is None:
        assert found is None
    else:
        assert found is not None
        values, is_valid = found
        pairs = zip(values.tolist(), is_valid, strict=True)
        assert [value if is_number else None for value, is_number in pairs] == numbers


@pytest.mark.parametrize(
    "array",
    [
        pa.array(["b", None, "a", "b"]),
        pa.array(["b", None, "a", "b"]).dictionary_encode(),
        pa.DictionaryArray.from_arrays(pa.array([0, None, 1, 2]), pa.array(["b", "a", None])),
        pa.array([2**64 - 1, None, 0, 0], pa.uint64()),
        pa.array([None, None, None, None]),
        pa.array([True, None, False, True]),
        pa.array([0, 1, None, 0], pa.timestamp("ns")),
    ],
    ids=lambda array: str(array.type),
)
def test_codes_number_the_distinct_values(array: pa.Array) -> None:
    codes = batch_of(x=array).codes("x")
    assert codes is not None
    decoded = [None if code < 0 else codes.values[code] for code in codes.codes]
    assert decoded == as_values(array)


def test_codes_are_refused_where_values_cannot_be_told_apart_quickly() -> None:
    assert batch_of(x=pa.array([[1], [1]])).codes("x") is None
    assert batch_of(x=pa.array([{"y": 1}])).codes("x") is None
    assert batch_of(x=pa.array([{"y": 1}])).codes("x.y") is not None


def test_an_attribute_that_no_column_can_hold_is_null_in_every_row() -> None:
    codes = batch_of(x=[1, 2]).codes("y")
    assert codes is not None
    assert codes.codes.tolist() == [-1, -1]
    assert batch_of(x=[1, 2]).numbers("y") is None
    assert batch_of(x=[1, 2]).values("y") is None


def test_a_field_is_null_where_its_struct_is_and_follows_its_slice() -> None:
    structs = pa.StructArray.from_arrays(
        [pa.array([1, 2, 3, 4])], ["y"], mask=pa.array([False, False, True, False])
    )
    batch = batch_of(x=structs.slice(1))
    column = batch.column("x.y")
    assert column is not None
    assert column.to_pylist() == [2, None, 4]


def test_moments_become_instants_whatever_their_unit_and_zone() -> None:
    second = Instant(10**9)
    for kind in (pa.timestamp("s"), pa.timestamp("ms", "UTC"), pa.timestamp("us", "Asia/Tokyo")):
        ticks = {"s": 1, "ms": 1_000, "us": 1_000_000}[kind.unit]
        assert as_values(pa.array([ticks, None], pa.int64()).cast(kind)) == [second, None]
    assert as_values(pa.array([1, None], pa.date32())) == [Instant(86_400 * 10**9), None]
    far = pa.array([2**62], pa.int64()).cast(pa.timestamp("s"))
    assert as_values(far) == [Instant(2**62 * 10**9)]


def test_moments_inside_structs_and_lists_become_instants_too() -> None:
    far = pa.array([2**50, None, 1], pa.int64()).cast(pa.timestamp("s"))
    moments = [Instant(2**50 * 10**9), None, Instant(10**9)]
    structs = pa.StructArray.from_arrays([far], ["t"], mask=pa.array([False, True, False]))
    assert as_values(structs) == [{"t": moments[0]}, None, {"t": moments[2]}]
    assert as_values(structs.slice(2)) == [{"t": moments[2]}]
    ticks = pa.array([[2**50, None], None, [], [1]])
    for kind in (pa.list_(far.type), pa.large_list(far.type)):
        lists = ticks.cast(kind)
        assert as_values(lists) == [moments[:2], None, [], moments[2:]]
        assert as_values(lists.slice(1)) == [None, [], moments[2:]]


@pytest.mark.parametrize(
    "kind",
    [
        pa.map_(pa.string(), pa.timestamp("us")),
        pa.list_(pa.timestamp("us"), 1),
        pa.list_view(pa.timestamp("us")),
        pa.list_(pa.duration("s")),
        pa.struct([("a", pa.duration("s"))]),
    ],
)
def test_times_beyond_those_of_python_are_values_however_deep_they_lie(kind: pa.DataType) -> None:
    far = {"map": [("a", 2**62)], "struct": {"a": 2**62}}.get(str(kind).partition("<")[0], [2**62])
    null, value = as_values(pa.array([far, None, far], kind).slice(1))
    assert null is None
    (inner,) = value.values() if isinstance(value, dict) else value
    assert inner == (
        Instant(2**62 * 1000) if "timestamp" in str(kind) else np.timedelta64(2**62, "s")
    )


def test_a_map_is_a_mapping_of_the_keys_that_a_path_can_name() -> None:
    maps = pa.array([[("a", 1)], None, [("b", 2), ("c.d", 3)], []], pa.map_(pa.string(), pa.int8()))
    assert as_values(maps.slice(1)) == [None, {"b": 2, "c.d": 3}, {}]
    by_struct = pa.map_(pa.struct([("x", pa.int8())]), pa.int8())
    assert as_values(pa.array([[({"x": 1}, 1)]], by_struct)) == [{}]


def test_a_value_of_a_map_is_found_by_path() -> None:
    rows = [[("a", "x"), ("b.c", "y")], None, [("a", "z")], [("a", None)]]
    maps = pa.array(rows, pa.map_(pa.string(), pa.string())).slice(1)
    batch = EventBatch({"m": maps}, 3, {})
    for name in ("m.a", "m.b.c", "m.d"):
        column = batch.column(name)
        assert column is not None
        assert column.to_pylist() == [batch.row(row).value(name) for row in range(3)]


def test_a_map_hides_no_column_whose_name_goes_farther() -> None:
    table = pa.table(
        {
            "a": pa.array([[("x", 1)]], pa.map_(pa.string(), pa.int64())),
            "a.b": pa.array([{"c": 5}]),
        }
    )
    for engine in ("strtree", "crtree", "scan"):
        matcher = contrada.Matcher(engine)
        matcher.add("s", '"a.b.c" = 5')
        assert matcher.match_many(table)["subscription"].to_pylist() == ["s"], engine


def test_an_interval_of_months_is_no_array() -> None:
    (value,) = as_values(pa.array([(1, 2, 3)], pa.month_day_nano_interval()))
    assert value == {"months": 1, "days": 2, "ns": 3}


def test_a_row_is_an_event_with_its_attributes_and_geometries() -> None:
    geometry = read_geometries(pa.array([Point(1, 2).wkb, BOW_TIE.wkb]))
    columns = {"n": pa.array([1, None]), "s": pa.array([{"t": "a"}, None])}
    batch = EventBatch(columns, 2, {"g": geometry})
    first, second = batch.row(0), batch.row(1)
    assert (first.value("n"), first.value("s.t"), first.value("z")) == (1, "a", None)
    assert first.geometry("g") == Point(1, 2)
    assert first.geometry("z") is None
    assert (second.value("n"), second.value("s.t"), second.geometry("g")) == (None, None, None)
    assert batch.geometry("z").is_known.tolist() == [False, False]


# Ids


@pytest.mark.parametrize(
    ("array", "kind"),
    [
        (pa.array(["a", None]), pa.string()),
        (pa.array(["a"], pa.large_string()), pa.string()),
        (pa.array(["a", "a"]).dictionary_encode(), pa.string()),
        (pa.array([1, None], pa.uint8()), pa.int64()),
        (pa.array([2**63 - 1], pa.uint64()), pa.int64()),
        (pa.array([None, None]), pa.string()),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else "",
)
def test_a_column_of_ids_becomes_int64_or_string(array: pa.Array, kind: pa.DataType) -> None:
    found = read_id_column(array, "here")
    assert found.type == kind
    assert found.to_pylist() == array.to_pylist()


@pytest.mark.parametrize(
    "array", [pa.array([1.0]), pa.array([b"a"]), pa.array([True]), pa.array([2**63], pa.uint64())]
)
def test_a_column_that_holds_no_ids_is_refused_with_its_place(array: pa.Array) -> None:
    with pytest.raises(InvalidInput, match=r"^here: an id "):
        read_id_column(array, "here")


def test_the_type_of_ids_is_that_of_the_first() -> None:
    assert id_type([1, 2]) == pa.int64()
    assert id_type(["a"]) == id_type([]) == pa.string()


# Filters by columns


def test_the_table_of_filters_stores_each_constraint_once() -> None:
    a, b, c = (Constraint(Comparison("=", Attribute(name), Literal(1))) for name in "abc")
    filters: list[list[tuple[Constraint, ...]]] = [[(a, b)], [(b,), (c, a)], [], [()]]
    subscriptions = [
        Subscription(id_, Predicate(Literal(True), tuple(map(Filter, found))))
        for id_, found in enumerate(filters)
    ]
    table = pack_subscriptions(subscriptions).table
    assert list(table.constraints) == [a, b, c]
    assert table.owner.tolist() == [0, 1, 1, 3]
    assert [table.constraints_of(f).tolist() for f in range(4)] == [[0, 1], [1], [2, 0], []]
    assert table.sizes().tolist() == [2, 1, 2, 0]


def test_one_and_true_are_different_constraints() -> None:
    one, true = (Constraint(Comparison("=", Attribute("x"), Literal(v))) for v in (1, True))
    predicate = Predicate(Literal(True), (Filter((one,)), Filter((true,))))
    table = pack_subscriptions([Subscription(0, predicate)]).table
    assert len(table.constraints) == 2


@given(st.lists(st.integers(-1, 4), max_size=12), st.lists(st.integers(0, 4), max_size=6))
def test_groups_list_their_members_in_order(keys: list[int], wanted: list[int]) -> None:
    order, starts = group_by(np.array(keys, np.int64), 5)
    which, places = expand(starts, np.array(wanted, np.int64))
    found = [(int(w), int(order[p])) for w, p in zip(which, places, strict=True)]
    assert found == [
        (i, member) for i, key in enumerate(wanted) for member, k in enumerate(keys) if k == key
    ]


def test_a_curve_in_a_short_collection_is_a_curve_in_a_column_too() -> None:
    curve = bytes.fromhex("0108000000030000000000000000000000000000000000000000000000")
    curve += bytes(32)
    wkb = bytes.fromhex("010700000001000000") + curve
    column = read_geometries(pa.array([wkb, shapely.to_wkb(shapely.box(0, 0, 1, 1))]))
    assert {row: fault.code for row, fault in column.faults.items()} == {0: "curve"}
    assert column.one(1) == shapely.box(0, 0, 1, 1)


def test_buffers_may_be_longer_than_their_array_needs() -> None:
    points = pa.array([shapely.Point(1, 2).wkb, shapely.Point(3, 4).wkb])
    _, offsets, data = points.buffers()
    odd = pa.py_buffer(offsets.to_pybytes()[:12] + b"x")
    for count in (0, 2):
        array = pa.Array.from_buffers(pa.binary(), count, [None, odd, data])
        array.validate(full=True)
        assert read_geometries(array).x.tolist() == [1.0, 3.0][:count]
