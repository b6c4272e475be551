"""WKB, WKT and GeoJSON that would take GEOS, and the process with it, too far down."""

import json
import struct
import subprocess
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st
from shapely.geometry.base import BaseGeometry

import contrada
from contrada.limits import GEOMETRY_DEPTH_MAX
from contrada.model.encodings import read_wkb, read_wkbs
from contrada.model.geometry import Fault, read_geometry
from strategies import geometries

_CODES = [code + more for code in range(4, 13) for more in (0, 1000, 2000, 3000, 65000)]
_FLAGS = (0, 0x20000000, 0x80000000, 0x40000000, 0x00070000)
_WORDS = (
    "GEOMETRYCOLLECTION MULTIPOINT MULTILINESTRING MULTIPOLYGON MULTICURVE MULTISURFACE "
    "COMPOUNDCURVE CURVEPOLYGON POLYGON POINT LINESTRING CIRCULARSTRING TIN"
).split()


def test_no_code_and_no_word_nested_deep_ends_the_process() -> None:
    """In a process of its own: GEOS would exhaust the stack and take the process with it."""
    program = f"""
import struct
from contrada.model.geometry import Fault, read_geometry

for code in {_CODES}:
    for flag in {_FLAGS}:
        for order in "<>":
            inner = struct.pack(order + "I", 1) * (2 if flag == 0x20000000 else 1)
            header = struct.pack(order + "BI", order == "<", code | flag) + inner
            assert isinstance(read_geometry(header * 30_000), Fault), (code, flag, order)
for word in {_WORDS}:
    for gap in ("(", " Z (", "Z(", " EMPTY, ("):
        read = read_geometry((word + gap) * 50_000)
        assert read is None or isinstance(read, Fault), (word, gap)
print("alive")
"""
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert run.stdout.strip() == "alive", (run.returncode, run.stderr)


def nested(shape: Any, depth: int) -> Any:
    for _ in range(depth):
        shape = {"type": "GeometryCollection", "geometries": [shape]}
    return shape


def message_of(value: Any) -> str:
    read = read_geometry(value)
    assert isinstance(read, Fault)
    assert read.code == "undecodable"
    return read.message


def test_a_geometry_one_level_too_deep_is_refused_with_the_place_and_the_limit() -> None:
    depth = GEOMETRY_DEPTH_MAX + 1
    point = {"type": "Point", "coordinates": [1, 2]}
    too_deep = "cannot read the geometry: it is nested more than 100 levels deep at"
    wkb = struct.pack("<BII", 1, 7, 1) * depth + shapely.to_wkb(shapely.Point(1, 2))
    assert message_of(wkb) == f"{too_deep} byte {9 * depth} (GEOMETRY_DEPTH_MAX)"
    assert message_of(wkb.hex()) == message_of(wkb)
    text = "GEOMETRYCOLLECTION(" * depth + "POINT(1 2)" + ")" * depth
    assert message_of(text) == f"{too_deep} character {19 * depth - 1} (GEOMETRY_DEPTH_MAX)"
    too_deep = too_deep.replace("the geometry", "the GeoJSON geometry")
    assert message_of(nested(point, depth)) == f'{too_deep} "geometries" (GEOMETRY_DEPTH_MAX)'
    assert message_of(json.dumps(nested(point, depth))) == message_of(nested(point, depth))
    assert message_of(nested(point, 100_000)) == message_of(nested(point, depth))


def test_coordinates_nested_without_end_are_refused() -> None:
    coordinates: Any = [1, 2]
    for _ in range(100_000):
        coordinates = [coordinates]
    shape = {"type": "MultiPolygon", "coordinates": coordinates}
    assert message_of(shape) == (
        "cannot read the GeoJSON geometry: its members are nested more than 100 levels deep "
        "(GEOMETRY_DEPTH_MAX)"
    )


class Borrowed:
    """A geometry of another library's."""

    def __init__(self, members: dict[str, Any]) -> None:
        self.__geo_interface__ = members


def test_members_that_stand_in_many_places_are_refused_if_they_would_be_huge_written_out() -> None:
    collection: dict[str, Any] = {"type": "Point", "coordinates": [1, 2]}
    line: Any = [[1, 2], [3, 4]]
    for _ in range(60):
        collection = {"type": "GeometryCollection", "geometries": [collection, collection]}
        line = [line, line]
    for shape in (collection, {"type": "LineString", "coordinates": line}):
        for value in (shape, Borrowed(shape)):
            message = message_of(value)
            assert message.endswith("more than 10,000 values (SHARED_VALUES_MAX)")


def test_members_may_stand_in_several_places() -> None:
    point = {"type": "Point", "coordinates": [1, 2]}
    end = [1.0, 2.0]
    for shape, expected in (
        ({"type": "GeometryCollection", "geometries": [point, point]}, 2),
        ({"type": "Polygon", "coordinates": [[end, [3.0, 2.0], [3.0, 4.0], end]]}, 4),
    ):
        read = read_geometry(shape)
        assert isinstance(read, BaseGeometry)
        assert shapely.get_num_coordinates(read) == expected


@pytest.mark.parametrize("code", [4, 5, 6, 7])
@pytest.mark.parametrize("count", [2, 1_000, 2**31 - 1, 2**32 - 1])
def test_a_count_that_lies_is_refused(code: int, count: int) -> None:
    point = shapely.to_wkb(shapely.Point(1, 2))
    assert message_of(struct.pack("<BII", 1, code, count) + point) == (
        "cannot read the geometry: its 30 bytes end before all the members it declares"
    )


@pytest.mark.parametrize(
    ("inner", "reason"),
    [
        (struct.pack("<BII", 2, 1, 0), "byte 9 gives the byte order and must be 0 or 1, not 2"),
        (struct.pack("<BII", 1, 17, 0), "byte 9 begins a geometry of the unknown type 17"),
        (struct.pack("<BII", 1, 0, 0), "byte 9 begins a geometry of the unknown type 0"),
    ],
)
def test_what_a_member_cannot_be_is_named_with_its_place(inner: bytes, reason: str) -> None:
    collection = struct.pack("<BII", 1, 7, 1)
    assert message_of(collection + inner) == f"cannot read the geometry: {reason}"


def test_a_curve_within_a_collection_is_a_curve() -> None:
    curve = struct.pack("<BIIBII", 1, 7, 1, 1, 8, 0)
    assert read_geometry(curve) == Fault("curve", "curves are not supported")


def read_well(value: Any) -> BaseGeometry:
    read = read_geometry(value)
    assert isinstance(read, BaseGeometry)
    return read


@given(geometries(), st.booleans(), st.booleans(), st.booleans())
def test_every_flavour_of_wkb_is_read(
    shape: BaseGeometry, is_iso: bool, is_big: bool, has_z: bool
) -> None:
    wkb: bytes = shapely.to_wkb(
        shapely.set_srid(shapely.force_3d(shape, 7.0) if has_z else shape, 4326),
        flavor="iso" if is_iso else "extended",
        byte_order=int(not is_big),
        include_srid=not is_iso,
    )
    read = read_well(struct.pack("<BII", 1, 7, 1) + wkb)
    assert read.equals_exact(read_well(shapely.GeometryCollection([shape])), 0.0)


@given(geometries())
def test_geojson_is_read_as_the_shape_that_it_was_written_from(shape: BaseGeometry) -> None:
    read = read_well(json.loads(shapely.to_geojson(shape)))
    assert read.equals_exact(read_well(shape), 0.0)


@given(geometries(), st.sampled_from(["iso", "extended"]), st.sampled_from([0, 1]), st.booleans())
def test_wkb_is_read_to_its_end_and_a_byte_more_is_refused(
    shape: BaseGeometry, flavor: str, byte_order: int, has_srid: bool
) -> None:
    has_srid = has_srid and flavor == "extended"
    shape = shapely.set_srid(shape, 4326) if has_srid else shape
    wkb: Any = shapely.to_wkb(
        shape,
        flavor=flavor,  # type: ignore[call-overload]
        byte_order=byte_order,
        include_srid=has_srid,
    )
    assert read_wkbs(np.array([wkb, None], object))[1] is None
    assert isinstance(read_geometry(wkb), BaseGeometry)
    surplus = np.array([wkb, wkb + b"\0", None], object)
    with pytest.raises(ValueError, match=f"ends at byte {len(wkb):,}, but there are"):
        read_wkbs(surplus)
    assert f"ends at byte {len(wkb):,}, but" in message_of(wkb + b"\0")
    assert f"ends at byte {len(wkb):,}, but" in message_of((wkb + wkb).hex())


@pytest.mark.parametrize("text", ["POINT(5 3)\0", "POINT(5 3)\0garbage", "POINT\0(5 3)"])
def test_a_null_character_does_not_end_wkt(text: str) -> None:
    read = read_geometry(text)
    assert read is None or isinstance(read, Fault)
    assert "null character at character 10" in message_of("POINT(5 3)\0 POINT(1 1)")


EMPTY_AREA = shapely.to_wkb(shapely.Polygon())


@pytest.mark.parametrize(
    "wkb",
    [
        b"\x02" + shapely.to_wkb(shapely.Point(1, 1))[1:],
        b"\xff" + shapely.to_wkb(shapely.LineString([(0, 0), (1, 1)]))[1:],
        EMPTY_AREA + b"\x01",
        EMPTY_AREA + b"\x00\x00\x00\x00",
        shapely.to_wkb(shapely.from_wkt("POLYGON Z EMPTY")) + b"\x01\x02",
    ],
)
def test_many_values_are_refused_as_one_is(wkb: bytes) -> None:
    """GEOS takes any byte for an order of bytes, and looks at nothing behind a geometry."""
    good = shapely.to_wkb(shapely.Point(1, 1))
    with pytest.raises(ValueError, match=r"not WKB|it ends at byte"):
        read_wkb(wkb)
    with pytest.raises(ValueError, match=r"not WKB|it ends at byte"):
        read_wkbs(np.array([good, wkb, None], object))
    matcher = contrada.Matcher()
    matcher.add("here", geometry=shapely.box(0, 0, 3, 3))
    with pytest.raises(contrada.InvalidInput):
        matcher.match({"geometry": wkb})
    with pytest.raises(contrada.InvalidInput):
        matcher.match_many(pa.table({"geometry": [good, wkb]}))
    with pytest.raises(contrada.InvalidInput):
        matcher.add_many(pa.table({"id": ["one"], "geometry": [wkb]}))


def test_an_empty_area_among_many_values_is_read() -> None:
    rings = b"\x01\x03\x00\x00\x00\x02\x00\x00\x00" + bytes(8)
    found = read_wkbs(np.array([EMPTY_AREA, rings], object))
    assert shapely.is_empty(found).all()
