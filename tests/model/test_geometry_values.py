"""Reading geometries from what users send, and telling what is wrong with one."""

import json
import struct
from typing import Any

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st
from shapely.geometry.base import BaseGeometry

import oracle
from contrada.limits import GEOMETRY_DEPTH_MAX
from contrada.model.geometry import (
    Fault,
    are_areas,
    as_array,
    find_faults,
    is_area,
    looks_like_wkt,
    read_geometry,
    tidy,
)
from contrada.model.mending import mend
from strategies import geometries
from zoo import GEOMETRIES

NAN, INF = float("nan"), float("inf")


class Carrier:
    """Something else's geometry, known by its `__geo_interface__` alone."""

    def __init__(self, interface: Any) -> None:
        self.__geo_interface__ = interface


def read_well(value: Any) -> BaseGeometry:
    geometry = read_geometry(value)
    assert isinstance(geometry, BaseGeometry), geometry
    return geometry


def fault_of(value: Any) -> Fault:
    """The fault of a value, whether it shows while reading or afterwards."""
    geometry = read_geometry(value)
    if isinstance(geometry, Fault):
        return geometry
    assert isinstance(geometry, BaseGeometry), geometry
    return find_faults(as_array([geometry]))[0]


def loud(text: str) -> BaseGeometry:
    """A geometry that Shapely makes only with a warning."""
    with np.errstate(all="ignore"):
        return shapely.from_wkt(text)


# Forms


@pytest.mark.parametrize("name", [name for name in GEOMETRIES if "length zero" not in name])
def test_all_forms_of_a_geometry_read_alike(name: str) -> None:
    shape = shapely.from_wkt(GEOMETRIES[name])
    expected = read_well(shape)
    binary = shapely.to_wkb(shape)
    forms: list[Any] = [
        binary,
        bytearray(binary),
        memoryview(binary),
        GEOMETRIES[name],
        f"  {GEOMETRIES[name]}\n",
    ]
    if shape.geom_type != "LinearRing":  # GeoJSON has none
        forms += [json.loads(shapely.to_geojson(shape)), Carrier(shape.__geo_interface__)]
    for form in forms:
        assert read_well(form).equals_exact(expected) or expected.is_empty
        assert read_well(form).is_empty is expected.is_empty


@given(geometries())
def test_reading_keeps_the_meaning_and_every_digit(shape: BaseGeometry) -> None:
    shape = shapely.transform(shape, lambda xy: xy / 3)
    for form in (shape, shapely.to_wkb(shape), json.loads(shapely.to_geojson(shape))):
        read = read_well(form)
        assert shapely.get_coordinates(read).tolist() == shapely.get_coordinates(shape).tolist()
        assert oracle.relate(read, shape)[2:7:4] == "FF"


@pytest.mark.parametrize(
    "value",
    [
        *(None, 5, 1.5, True, "", "north", "POINT", "POINTLESS (1 2)", "the POINT(1 2)", [1, 2]),
        *((1, 2), {}, {"x": 1}, {"type": "Feature"}, {"type": "point"}, {"type": ["Point"]}),
        *({"type": None}, {"type": 5}, np.array([1, 2]), object(), Carrier(5), Carrier("Point")),
    ],
)
def test_what_is_not_meant_as_a_geometry_is_none(value: Any) -> None:
    assert read_geometry(value) is None


@pytest.mark.parametrize(
    ("text", "is_wkt"),
    [
        ("POINT(1 2)", True),
        ("point (1 2)", True),
        ("  Polygon Z ((", True),
        ("LINESTRING EMPTY", True),
        ("POINTZ(1 2 3)", True),
        ("MULTISURFACE(", True),
        ("POINT OF VIEW", False),
        ("a POINT(1 2)", False),
        ("PolygonA(", False),
    ],
)
def test_a_text_is_meant_as_wkt_by_how_it_begins(text: str, is_wkt: bool) -> None:
    assert looks_like_wkt(text) is is_wkt


# Tidying


@pytest.mark.parametrize(
    ("text", "tidied"),
    [
        ("POINT Z(1 2 3)", "POINT (1 2)"),
        ("POINT M(1 2 3)", "POINT (1 2)"),
        ("POINT ZM(1 2 3 4)", "POINT (1 2)"),
        ("POLYGON Z((0 0 1,1 0 2,1 1 3,0 0 1))", "POLYGON ((0 0, 1 0, 1 1, 0 0))"),
        ("LINEARRING(0 0,1 0,1 1,0 0)", "LINESTRING (0 0, 1 0, 1 1, 0 0)"),
        ("LINEARRING EMPTY", "LINESTRING EMPTY"),
        ("MULTIPOINT(EMPTY,(1 1))", "MULTIPOINT ((1 1))"),
        ("MULTILINESTRING((0 0,1 1),EMPTY)", "MULTILINESTRING ((0 0, 1 1))"),
        ("MULTIPOLYGON(EMPTY,((0 0,1 0,1 1,0 0)))", "MULTIPOLYGON (((0 0, 1 0, 1 1, 0 0)))"),
        ("MULTIPOINT(EMPTY,EMPTY)", "MULTIPOINT (EMPTY, EMPTY)"),
        ("GEOMETRYCOLLECTION(POINT EMPTY,POINT(1 1))", "POINT (1 1)"),
        ("GEOMETRYCOLLECTION(GEOMETRYCOLLECTION(POINT Z(1 1 9)))", "POINT (1 1)"),
        ("GEOMETRYCOLLECTION(POINT EMPTY,GEOMETRYCOLLECTION EMPTY)", "GEOMETRYCOLLECTION EMPTY"),
        (
            "GEOMETRYCOLLECTION(POINT(2 2),GEOMETRYCOLLECTION(LINESTRING(0 0,1 1),"  # noqa: ISC004
            "GEOMETRYCOLLECTION(MULTIPOINT(EMPTY,(1 1)))),POINT(3 3))",
            "GEOMETRYCOLLECTION (POINT (2 2), LINESTRING (0 0, 1 1), "  # noqa: ISC004
            "MULTIPOINT ((1 1)), POINT (3 3))",
        ),
    ],
)
def test_a_geometry_is_tidied(text: str, tidied: str) -> None:
    assert read_well(text).wkt == tidied
    assert read_well(shapely.from_wkt(text)).wkt == tidied


def test_many_are_tidied_at_once_and_missing_ones_stay() -> None:
    shapes = as_array([None, shapely.Point(1, 2, 3), shapely.Point(1, 2), shapely.Point()])
    assert [None if s is None else s.wkt for s in tidy(shapes)] == [
        None,
        "POINT (1 2)",
        "POINT (1 2)",
        "POINT EMPTY",
    ]
    assert shapes[1].has_z, "the input stays as it is"


def test_a_deep_nest_of_collections_is_flattened() -> None:
    shape: BaseGeometry = shapely.Point(1, 2)
    for _ in range(GEOMETRY_DEPTH_MAX):
        shape = shapely.GeometryCollection([shape])
    assert read_well(shape).wkt == "POINT (1 2)"
    assert read_well(shapely.to_wkb(shape)).wkt == "POINT (1 2)"
    assert read_well(json.loads(shapely.to_geojson(shape))).wkt == "POINT (1 2)"
    inner = shapely.get_parts(shape)[0]
    assert read_well(inner.wkt).wkt == "POINT (1 2)", (
        "the coordinates have parentheses of their own"
    )


# Faults


@pytest.mark.parametrize(
    ("value", "code", "message"),
    [
        ("POINT(1", "undecodable", "Expected number but encountered end of stream"),
        ("POINT(1 x)", "undecodable", "Expected number but encountered word: 'x'"),
        ("POLYGON((0 0,1 1,1 0))", "undecodable", "do not form a closed linestring"),
        ("LINESTRING(0 0)", "undecodable", "point array must contain 0 or >1 elements"),
        (b"", "undecodable", "there are no bytes where WKB is expected"),
        (
            shapely.to_wkb(shapely.Point(1, 2))[:-1],
            "undecodable",
            "Input buffer is smaller",
        ),
        (bytearray(b"\x01\x63\x00\x00\x00"), "undecodable", "Unknown WKB type 99"),
        (
            b"\x01\x07\x00\x00\x00\xff\xff\xff\xff",
            "undecodable",
            "its 9 bytes end before all the members it declares",
        ),
        ({"type": "Point"}, "undecodable", "key 'coordinates' not found"),
        ({"type": "Point", "coordinates": [1]}, "undecodable", "Expected two or three coordinates"),
        ({"type": "Point", "coordinates": "1 2"}, "undecodable", "type must be"),
        ({"type": "Point", "coordinates": [NAN, 1]}, "undecodable", "invalid literal"),
        ({"type": "Point", "coordinates": [10**400, 1]}, "undecodable", "number overflow"),
        ({"type": "Point", "coordinates": {1, 2}}, "undecodable", "not JSON serializable"),
        ({"type": "GeometryCollection"}, "undecodable", "key 'geometries' not found"),
        (Carrier({"type": "Point"}), "undecodable", "'coordinates'"),
        (Carrier({"type": "Blob", "coordinates": [1]}), "undecodable", "Unknown geometry type"),
        (Carrier({}), "undecodable", "cannot read the geometry: "),
        ("CIRCULARSTRING(0 0,1 1,2 0)", "curve", "curves are not supported"),
        ("COMPOUNDCURVE((0 0,1 1))", "curve", "curves are not supported"),
        ("CURVEPOLYGON((0 0,1 0,1 1,0 0))", "curve", "curves are not supported"),
        ("MULTICURVE((0 0,1 1))", "curve", "curves are not supported"),
        ("MULTISURFACE(((0 0,1 0,1 1,0 0)))", "curve", "curves are not supported"),
        (struct.pack("<BII6d", 1, 8, 3, 0, 0, 1, 1, 2, 0), "curve", "curves are not supported"),
        ("POINT(nan 1)", "non_finite", "non-finite coordinate (nan, 1.0) at vertex 0"),
        ("LINESTRING(0 0,1 1,1 inf)", "non_finite", "non-finite coordinate (1.0, inf) at vertex 2"),
        ("LINESTRING(0 0,1e999 1)", "non_finite", "non-finite coordinate (inf, 1.0) at vertex 1"),
        (loud("POINT(nan nan)"), "non_finite", "non-finite coordinate (nan, nan) at vertex 0"),
        (
            shapely.to_wkb(loud("MULTIPOINT((0 0),(1 1),(-inf 2))")),
            "non_finite",
            "non-finite coordinate (-inf, 2.0) at vertex 2",
        ),
        (
            "POLYGON((0 0,2 2,2 0,0 2,0 0))",
            "invalid",
            "invalid Polygon: self-intersection at (1, 1)",
        ),
        (
            "MULTIPOLYGON(((0 0,2 0,2 2,0 2,0 0)),((1 0,3 0,3 2,1 2,1 0)))",
            "invalid",
            "invalid MultiPolygon: self-intersection at (",
        ),
        (
            "POLYGON((0 0,4 0,4 4,0 4,0 0),(5 5,6 5,6 6,5 5))",
            "invalid",
            "invalid Polygon: hole lies outside shell at (5, 5)",
        ),
        (
            "LINESTRING(2 3,2 3)",
            "invalid",
            "invalid LineString: too few points in geometry component at (2, 3)",
        ),
        (
            "GEOMETRYCOLLECTION(POINT(9 9),POLYGON((0 0,2 2,2 0,0 2,0 0)))",
            "invalid",
            "self-intersection at (1, 1)",
        ),
    ],
)
def test_a_fault_says_what_is_wrong_and_where(value: Any, code: str, message: str) -> None:
    fault = fault_of(value)
    assert fault.code == code
    assert message in fault.message


def test_faults_of_many_are_found_by_position() -> None:
    shapes = as_array(
        [
            shapely.Point(1, 1),
            loud("POINT(1 nan)"),
            None,
            shapely.from_wkt("POLYGON((0 0,2 2,2 0,0 2,0 0))"),
            shapely.Point(),
            loud("POLYGON((0 0,inf 0,1 1,0 0))"),
        ]
    )
    assert {row: fault.code for row, fault in find_faults(shapes).items()} == {
        1: "non_finite",
        3: "invalid",
        5: "non_finite",
    }
    assert find_faults(as_array([])) == {}


# GEOS raises where it should say whether this is valid, and where it should mend it.
BEYOND_GEOS = (
    "POLYGON((0 0,9e160 0,9e160 9e160,0 9e160,0 0),"
    "(3e160 3e160,5e160 3e160,4e160 5e160,3e160 3e160))"
)


def test_what_geos_cannot_judge_is_invalid_and_the_others_are_judged() -> None:
    beyond = shapely.from_wkt(BEYOND_GEOS)
    bow_tie = shapely.from_wkt("POLYGON((0 0,2 2,2 0,0 2,0 0))")
    faults = find_faults(as_array([shapely.Point(1, 1), beyond, None, bow_tie]))
    assert faults.keys() == {1, 3}
    assert faults[1].code == faults[3].code == "invalid"
    assert faults[1].message == (
        "invalid Polygon: GEOS cannot judge it (segment vertex does not intersect ring)"
    )


def test_what_is_mended_has_no_fault_or_keeps_it() -> None:
    mended = mend(shapely.from_wkt("POLYGON((0 0,2 2,2 0,0 2,0 0))"))
    assert isinstance(mended, shapely.MultiPolygon)
    fault = mend(shapely.from_wkt(BEYOND_GEOS))
    assert isinstance(fault, Fault)
    assert fault.message.startswith("invalid Polygon: GEOS cannot judge it")


@given(st.binary(max_size=60))
def test_any_bytes_are_a_geometry_or_a_fault(data: bytes) -> None:
    assert isinstance(read_geometry(data), Fault | BaseGeometry)


@given(geometries(), st.data())
def test_damaged_wkb_is_a_geometry_or_a_fault(shape: BaseGeometry, data: st.DataObject) -> None:
    binary = bytearray(shapely.to_wkb(shape))
    for _ in range(3):
        binary[data.draw(st.integers(0, len(binary) - 1))] = data.draw(st.integers(0, 255))
    read = read_geometry(binary[: data.draw(st.integers(0, len(binary)))])
    assert isinstance(read, Fault | BaseGeometry)
    if isinstance(read, BaseGeometry):
        assert find_faults(as_array([read])).keys() <= {0}


# Areas


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("POLYGON((0 0,1 0,1 1,0 0))", True),
        ("MULTIPOLYGON(((0 0,1 0,1 1,0 0)))", True),
        ("GEOMETRYCOLLECTION(POLYGON((0 0,1 0,1 1,0 0)),MULTIPOLYGON(((5 5,6 5,6 6,5 5))))", True),
        ("GEOMETRYCOLLECTION(POLYGON((0 0,1 0,1 1,0 0)),POINT(1 1))", False),
        ("POINT(1 1)", False),
        ("LINESTRING(0 0,1 0,1 1,0 0)", False),
        ("POLYGON EMPTY", False),
        ("MULTIPOLYGON EMPTY", False),
        ("GEOMETRYCOLLECTION EMPTY", False),
    ],
)
def test_areas_are_polygons_and_collections_of_them(text: str, expected: bool) -> None:
    shape = shapely.from_wkt(text)
    assert is_area(shape) is expected
    assert are_areas(as_array([None, shape])).tolist() == [False, expected]


@pytest.mark.parametrize(
    "value",
    [
        "POLYGON((4 0,4 4,0 4,0 0,4 0), EMPTY)",
        "MULTIPOLYGON(((4 0,4 4,0 4,0 0,4 0), EMPTY, EMPTY))",
        "GEOMETRYCOLLECTION(POLYGON((4 0,4 4,0 4,0 0,4 0), EMPTY))",
        {"type": "Polygon", "coordinates": [[[4, 0], [4, 4], [0, 4], [0, 0], [4, 0]], []]},
    ],
)
def test_a_hole_without_a_point_is_dropped(value: Any) -> None:
    """GEOS does not survive `relate` of such a polygon."""
    square = read_well("POLYGON((4 0,4 4,0 4,0 0,4 0))")
    assert shapely.get_parts(read_well(value)).tolist() == [square]
    assert read_well("POLYGON((0 0,9 0,9 9,0 0),EMPTY,(5 1,6 1,6 2,5 1))").wkt == (
        "POLYGON ((0 0, 9 0, 9 9, 0 0), (5 1, 6 1, 6 2, 5 1))"
    )


def test_a_line_or_collection_that_meets_itself_without_end_is_a_fault() -> None:
    """GEOS takes minutes to relate two of them, though they are a few kilobytes."""
    sheaf = shapely.MultiLineString([((0, i), (1_000, 1_000 - i)) for i in range(400)])
    stairs = [shapely.box(i / 400, i / 400, 1 + i / 400, 1 + i / 400) for i in range(400)]
    heap = [shapely.box(0, 0, 1, 1 + i / 100) for i in range(100)]
    shapes = as_array([sheaf, shapely.GeometryCollection(stairs), shapely.GeometryCollection(heap)])
    faults = find_faults(shapes)
    assert {fault.code for fault in faults.values()} == {"tangled"}
    assert [faults[i].message for i in range(3)] == [
        "its edges cross each other more than 10,000 times (OWN_CROSSINGS_MAX)",
        "its edges cross each other more than 10,000 times (OWN_CROSSINGS_MAX)",
        "its members touch each other more than 20,000 times (OWN_CONTACTS_MAX)",
    ]
    same = read_well(shapely.GeometryCollection([shapely.box(0, 0, 1, 1)] * 5_000))
    assert same == shapely.box(0, 0, 1, 1)
    net = shapely.MultiLineString(
        [((x, 0), (x, 90)) for x in range(90)] + [((0, y), (90, y)) for y in range(90)]
    )
    assert not find_faults(as_array([net]))


def test_an_infinite_vertex_of_a_member_is_named() -> None:
    fault = fault_of("GEOMETRYCOLLECTION(POLYGON((0 Infinity, 1 0, 1 1, 0 Infinity)), POINT(1 1))")
    assert fault == Fault("non_finite", "non-finite coordinate (0.0, inf) at vertex 0")


def test_tiny_coordinates_of_a_member_leave_it_as_it_is() -> None:
    tiny = shapely.box(0, 0, 1e-200, 1e-200)
    assert read_geometry(shapely.GeometryCollection([tiny, shapely.Point(5, 5)])) is not None
    read = read_well(f"GEOMETRYCOLLECTION({tiny.wkt}, POINT(5 5))")
    assert shapely.get_parts(read)[0].equals_exact(tiny, 0)


def test_huge_coordinates_of_a_member_overflow_without_a_word() -> None:
    huge = "GEOMETRYCOLLECTION(POLYGON((0 4, 1e308 0, 2 4, 0 4)), POINT(1 1))"
    assert len(shapely.get_parts(read_well(huge))) == 2
