"""Packed geometries, against lists of Shapely's, and as a damaged file has them."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from shapely.geometry.base import BaseGeometry

import zoo
from contrada.arrays import Geometries
from contrada.errors import InvalidInput
from contrada.model import packed_geometries
from contrada.model.geometry import are_areas, as_array, tidy
from contrada.model.packed_geometries import PackedGeometries, concatenate, pack
from strategies import geometries

Columns = dict[str, NDArray[Any]]

FACTORS = (1.0, -1.0, 1e300, 5e-324, -1e-310)  # with negative ones 0.0 is -0.0
STARTS = ("parts", "rings", "vertices", "collections", "wkb_starts")
INTEGERS = (0, 1, 2, 7, 2**31, 2**63 - 1, -1, -(2**63))
ONE_OF_EACH = [
    "POINT(-0.0 5e-324)",
    "LINESTRING(0 0,1 1,1e308 -1e308)",
    "POLYGON((0 0,9 0,9 9,-0.0 -0.0),(1 1,2 1,2 2,1 1),(3 3,4 3,4 4,3 3))",
    "GEOMETRYCOLLECTION(POINT(1 2),POLYGON((0 0,9 0,9 9,0 0)))",
    "MULTIPOINT((1 2),(3 4))",
    "MULTILINESTRING((0 0,1 1),(2 2,3 3,4 5))",
    "MULTIPOLYGON(((0 0,9 0,9 9,0 0),(1 1,2 1,2 2,1 1)),((20 0,29 0,29 9,20 0)))",
    "GEOMETRYCOLLECTION(POLYGON((0 0,9 0,9 9,0 0)),MULTIPOLYGON(((20 0,29 0,29 9,20 0))))",
    "MULTIPOINT((7 7))",
]


@st.composite
def scaled_geometries(draw: st.DrawFn) -> BaseGeometry:
    factor = draw(st.sampled_from(FACTORS))
    return shapely.transform(draw(geometries()), lambda xy: xy * factor)


SHAPES = st.lists(scaled_geometries(), max_size=8).map(lambda shapes: tidy(as_array(shapes)))


def zoo_shapes() -> Geometries:
    shapes = tidy(shapely.from_wkt(list(zoo.GEOMETRIES.values())))
    return np.asarray(shapes[~shapely.is_empty(shapes)], object)


def each_kind() -> Geometries:
    return np.asarray(shapely.from_wkt(ONE_OF_EACH), object)


def wkbs(shapes: Geometries) -> list[bytes]:
    """What tells geometries apart: kinds, structure, and all bits of all coordinates."""
    assert not shapely.get_srid(shapes).any()
    return list(shapely.to_wkb(shapes))


def numbers_of(packed: PackedGeometries) -> st.SearchStrategy[NDArray[np.int64]]:
    numbers = st.lists(st.integers(0, len(packed) - 1)) if len(packed) else st.just([])
    return numbers.map(lambda drawn: np.array(drawn, np.int64))


def assert_same(a: PackedGeometries, b: PackedGeometries) -> None:
    ours, theirs = a.columns(), b.columns()
    assert ours.keys() == theirs.keys()
    for name, column in ours.items():
        assert column.dtype == theirs[name].dtype, name
        assert column.shape == theirs[name].shape, name
        assert column.tobytes() == theirs[name].tobytes(), name


@given(SHAPES)
def test_geometries_come_back_bit_for_bit(shapes: Geometries) -> None:
    packed = pack(shapes)
    assert len(packed) == len(shapes)
    assert wkbs(packed.shapes()) == wkbs(shapes)
    assert packed.coordinates.flags.c_contiguous


def test_all_of_the_zoo_comes_back() -> None:
    shapes = zoo_shapes()
    assert set(shapely.get_type_id(shapes)) == {0, 1, 3, 4, 5, 6, 7}
    assert wkbs(pack(shapes).shapes()) == wkbs(shapes)


@pytest.mark.parametrize("text", ONE_OF_EACH)
def test_geometries_of_one_kind_come_back(text: str) -> None:
    shapes = as_array([shapely.from_wkt(text)] * 3)
    assert wkbs(pack(shapes).shapes()) == wkbs(shapes)


def test_an_srid_is_forgotten() -> None:
    shapes = shapely.set_srid(each_kind(), 4326)
    assert wkbs(pack(shapes).shapes()) == wkbs(each_kind())


def test_the_columns_are_those_of_geoarrow() -> None:
    packed = pack(each_kind()[[2, 3, 4]])
    assert packed.kinds.tolist() == [3, 7, 4]
    assert packed.parts.tolist() == [0, 1, 1, 3]
    assert packed.rings.tolist() == [0, 3, 4, 5]
    assert packed.vertices.tolist() == [0, 4, 8, 12, 13, 14]
    assert packed.coordinates[12:].tolist() == [[1, 2], [3, 4]]
    assert packed.collections.tolist() == [1]
    assert packed.wkb.tobytes() == shapely.to_wkb(each_kind()[3])
    assert packed.nbytes == sum(column.nbytes for column in packed.columns().values())


@given(SHAPES, st.data())
def test_some_are_taken_in_any_order(shapes: Geometries, data: st.DataObject) -> None:
    packed = pack(shapes)
    numbers = data.draw(numbers_of(packed))
    assert_same(packed.take(numbers), pack(shapes[numbers]))
    assert wkbs(packed.shapes(numbers)) == wkbs(shapes[numbers])


@given(st.lists(SHAPES, max_size=3))
def test_pieces_are_put_into_one(pieces: list[Geometries]) -> None:
    shapes = np.concatenate([np.empty(0, object), *pieces])
    assert_same(concatenate([pack(piece) for piece in pieces]), pack(shapes))


@given(SHAPES)
def test_boxes_sizes_and_areas_are_those_of_shapely(shapes: Geometries) -> None:
    packed = pack(shapes)
    assert np.array_equal(packed.boxes(), shapely.bounds(shapes))
    assert packed.sizes().tolist() == shapely.get_num_coordinates(shapes).tolist()
    assert packed.are_areas().tolist() == are_areas(shapes).tolist()


@given(st.lists(SHAPES, max_size=3))
def test_the_first_of_equal_geometries_is_found(pieces: list[Geometries]) -> None:
    shapes = np.concatenate([np.empty(0, object), *pieces])
    keys = wkbs(shapes)
    assert pack(shapes).firsts().tolist() == [keys.index(key) for key in keys]


def test_geometries_of_the_same_vertices_are_not_equal() -> None:
    ring = "(0 0,9 0,9 9,0 0)"
    texts = [
        f"LINESTRING{ring}",
        f"POLYGON({ring})",
        f"MULTIPOINT{ring}",
        f"MULTILINESTRING({ring})",
        f"MULTIPOLYGON(({ring}))",
        "MULTILINESTRING((0 0,9 0),(9 9,0 0))",
        f"GEOMETRYCOLLECTION(POLYGON({ring}))",
        "LINESTRING(0 0,9 9,9 0,0 0)",
        "LINESTRING(-0.0 0,9 0,9 9,0 0)",
        f"MULTIPOLYGON(({ring}),({ring},{ring}))",
        f"MULTIPOLYGON(({ring},{ring}),({ring}))",
    ]
    shapes = shapely.from_wkt(texts * 2)
    assert pack(shapes).firsts().tolist() == [*range(len(texts))] * 2


def test_digests_that_a_stranger_made_equal_are_no_trouble() -> None:
    random = np.random.default_rng(1)
    lines = np.repeat(random.uniform(size=(1, 64, 2)), 3_000, axis=0)
    lines[:, 1:32] = random.permuted(lines[:, 1:32], axis=1)  # the ends, middle and sums stay
    shapes = np.asarray(shapely.linestrings(lines), object)
    shapes = shapes[random.integers(0, 3_000, 6_000)]
    seen: dict[bytes, int] = {}
    wanted = [seen.setdefault(key, number) for number, key in enumerate(wkbs(shapes))]
    assert pack(shapes).firsts().tolist() == wanted


@pytest.mark.parametrize(
    "text",
    [
        "POINT EMPTY",
        "POLYGON EMPTY",
        "MULTIPOINT EMPTY",
        "GEOMETRYCOLLECTION EMPTY",
        "MULTIPOLYGON(((0 0,9 0,9 9,0 0)),EMPTY)",
        "GEOMETRYCOLLECTION(POINT(1 2),POINT EMPTY)",
        "GEOMETRYCOLLECTION(POINT(1 2),MULTIPOINT((1 2),EMPTY))",
        "GEOMETRYCOLLECTION(POINT(1 2),GEOMETRYCOLLECTION(POINT(1 2)))",
        "POINT Z(1 2 3)",
        "LINEARRING(0 0,9 0,9 9,0 0)",
    ],
)
def test_what_is_not_tidy_is_not_packed(text: str) -> None:
    with pytest.raises(AssertionError):
        pack(shapely.from_wkt([text, "POINT(1 2)"]))


def test_nothing_is_not_packed() -> None:
    with pytest.raises(AssertionError):
        pack(as_array([None]))


# Columns


@given(SHAPES)
def test_columns_are_read_back(shapes: Geometries) -> None:
    packed = pack(shapes)
    assert_same(PackedGeometries.from_columns(packed.columns(), "a file"), packed)


def test_a_read_only_file_is_used_in_place(tmp_path: Path) -> None:
    shapes = zoo_shapes()
    mapped: Columns = {}
    for name, column in pack(shapes).columns().items():
        np.save(tmp_path / f"{name}.npy", column)
        mapped[name] = np.load(tmp_path / f"{name}.npy", mmap_mode="r")
    packed = PackedGeometries.from_columns(mapped, "a file")
    for name, column in packed.columns().items():
        assert np.shares_memory(column, mapped[name])
        assert not column.flags.writeable
    assert wkbs(packed.shapes()) == wkbs(shapes)
    for kind in range(8):
        numbers = np.flatnonzero(packed.kinds == kind)
        alone = pack(shapes[numbers]).columns()
        for column in alone.values():
            column.flags.writeable = False
        read = PackedGeometries.from_columns(alone, "a file")
        assert wkbs(read.shapes()) == wkbs(shapes[numbers])
        assert np.array_equal(read.boxes(), shapely.bounds(shapes[numbers]))
        assert read.firsts().tolist() == packed.take(numbers).firsts().tolist()
    assert_same(concatenate([packed, packed]), pack(np.concatenate([shapes, shapes])))


def find_refusal(columns: Columns) -> str:
    try:
        PackedGeometries.from_columns(columns, "a file")
    except InvalidInput as error:
        return str(error)
    return ""


def assert_refused_or_sound(columns: Columns) -> bool:
    """Whether damaged columns are taken: then they are those of the geometries that they make."""
    refusal = find_refusal(columns)
    if refusal:
        assert refusal.startswith(tuple(f"a file: column {name!r} " for name in columns))
        return False
    packed = PackedGeometries.from_columns(columns, "a file")
    assert_same(pack(packed.shapes()), packed)
    packed.boxes(), packed.sizes(), packed.are_areas(), packed.firsts()
    return True


def damage(columns: Columns, name: str, at: int, value: float) -> Columns:
    damaged = columns[name].copy()
    damaged.reshape(-1)[at] = value
    return {**columns, name: damaged}


def changes(columns: Columns) -> Iterator[tuple[str, int, int]]:
    """Each number but coordinates, and what may stand in its place."""
    for name in STARTS:
        for at, value in enumerate(columns[name].tolist()):
            others = {*INTEGERS, value - 1, value + 1} - {value}
            yield from ((name, at, other) for other in others)
    for at, value in enumerate(columns["kinds"].tolist()):
        yield from (("kinds", at, other) for other in (*range(9), 255) if other != value)


@pytest.mark.parametrize("number", [None, *range(len(ONE_OF_EACH))])
def test_any_changed_number_is_refused_or_makes_other_sound_geometries(number: int | None) -> None:
    shapes = each_kind() if number is None else each_kind()[[number]]
    columns = pack(shapes).columns()
    for name, at, value in changes(columns):
        assert_refused_or_sound(damage(columns, name, at, value))


def test_another_kind_of_the_same_structure_is_sound() -> None:
    columns = pack(each_kind()[[0]]).columns()
    assert assert_refused_or_sound(damage(columns, "kinds", 0, 4))
    assert not assert_refused_or_sound(damage(columns, "kinds", 0, 1))


@pytest.mark.parametrize("name", pack(np.empty(0, object)).columns())
def test_columns_of_another_length_are_refused(name: str) -> None:
    for shapes in (each_kind(), each_kind()[:1], each_kind()[:0]):
        columns = pack(shapes).columns()
        for other in (columns[name][:-1], columns[name][1:], columns[name].repeat(2, axis=0)):
            if len(other) != len(columns[name]):
                assert not assert_refused_or_sound({**columns, name: other})


def test_any_changed_byte_of_a_collection_is_refused_or_makes_another() -> None:
    columns = pack(each_kind()).columns()
    for at in range(len(columns["wkb"])):
        for value in (0, 1, 2, 3, 7, 0x20, 0x7F, 0x80, 0xFF):
            assert_refused_or_sound(damage(columns, "wkb", at, value))


@pytest.mark.parametrize("seed", range(20))
def test_larger_columns_with_some_changed_numbers_are_refused_or_sound(seed: int) -> None:
    random = np.random.default_rng(seed)
    shapes = zoo_shapes()
    columns = pack(shapes[random.integers(0, len(shapes), 300)]).columns()
    for _ in range(20):
        damaged = columns
        for _ in range(random.integers(1, 4)):
            name = random.choice(["kinds", "coordinates", "wkb", *STARTS])
            at = int(random.integers(columns[name].size))
            near = damaged[name].reshape(-1)[random.integers(max(0, at - 3), at + 1)]
            damaged = damage(damaged, name, at, near)
        assert_refused_or_sound(damaged)


def wrong_columns() -> Iterator[tuple[str, Any, str]]:
    columns = pack(each_kind()).columns()
    huge = columns["parts"].copy()
    huge[1:3] = 2**63 - 1, -(2**63)  # their difference is 1 without a carry
    yield "kinds", None, "is missing"
    yield "kinds", columns["kinds"].astype(np.int64), "has the type int64, not uint8"
    yield "parts", columns["parts"].astype(">i8"), "has the type >i8, not int64"
    yield "coordinates", columns["coordinates"][:, 0].copy(), "has the shape (36,), not (n, 2)"
    yield "coordinates", columns["coordinates"][:, [0, 1, 1]], "has the shape (36, 3), not (n, 2)"
    yield "rings", np.array(7), "has the shape (), not (n,)"
    yield (
        "coordinates",
        np.asfortranarray(columns["coordinates"]),
        ("is not contiguous and aligned in memory"),
    )
    yield "kinds", columns["kinds"] + np.uint8(2), "has 2 at 0, which is not a kind of geometry"
    yield "parts", columns["parts"][:0], "has 0 starts, not 10"
    yield "parts", columns["parts"] + 1, "begins with 1, not with 0"
    yield "parts", huge, "decreases at 1, from 9223372036854775807 to -9223372036854775808"
    yield "parts", columns["parts"] * 2, "ends with 20, not with 10"
    yield "coordinates", np.full((36, 2), np.inf), "has (inf, inf) at 0"
    coordinates = columns["coordinates"].copy()
    coordinates[7] = 5
    yield "rings", columns["rings"][[0, 0, *range(2, 11)]], "has 0 at 0, which a POINT cannot have"
    yield "coordinates", coordinates, "has a ring that is not closed, from 4 on"
    yield "collections", columns["collections"] + 1, ("does not list the 2 collections of 'kinds'")
    yield "wkb", columns["wkb"] * 0 + 9, "cannot be read: "


def test_an_error_names_the_place_the_column_and_what_is_wrong_with_it() -> None:
    columns = pack(each_kind()).columns()
    for name, column, what in wrong_columns():
        with pytest.raises(InvalidInput, match=re.escape(f"a file: column {name!r} {what}")):
            PackedGeometries.from_columns({**columns, name: column}, "a file")


def test_a_column_that_is_not_there_is_named() -> None:
    columns = pack(each_kind()).columns()
    for name in columns:
        fewer = {other: column for other, column in columns.items() if other != name}
        with pytest.raises(InvalidInput, match=f"^a file: column '{name}' is missing$"):
            PackedGeometries.from_columns(fewer, "a file")


def replaced(shapes: Sequence[bytes]) -> Columns:
    """Columns of collections alone, with other bytes."""
    columns = pack(each_kind()[[3] * len(shapes)]).columns()
    starts = np.cumsum([0, *(len(shape) for shape in shapes)])
    return {**columns, "wkb": np.frombuffer(b"".join(shapes), np.uint8), "wkb_starts": starts}


@pytest.mark.parametrize(
    "text",
    [
        "POINT(1 2)",
        "GEOMETRYCOLLECTION EMPTY",
        "GEOMETRYCOLLECTION(POINT(1 2),POINT EMPTY)",
        "GEOMETRYCOLLECTION(POINT(1 2),GEOMETRYCOLLECTION(POINT(1 2)))",
        "GEOMETRYCOLLECTION(MULTIPOINT((1 2),EMPTY),POINT(1 2))",
        "GEOMETRYCOLLECTION(POINT(1 2),POLYGON((0 0,9 0,9 9,0 0),EMPTY))",
        "GEOMETRYCOLLECTION Z(POINT Z(1 2 3))",
        "GEOMETRYCOLLECTION(POINT(1 2),LINESTRING(NaN 1,2 3))",
        "GEOMETRYCOLLECTION(POINT(1 2),LINESTRING(inf 1,2 3))",
    ],
)
def test_what_is_not_a_tidy_collection_is_refused(text: str) -> None:
    with np.errstate(invalid="ignore"):
        columns = replaced(list(shapely.to_wkb(shapely.from_wkt([ONE_OF_EACH[3], text]))))
    with pytest.raises(InvalidInput, match=r" tidy collection at 107$"):
        PackedGeometries.from_columns(columns, "a file")


def test_a_collection_is_written_in_one_way() -> None:
    shape = shapely.set_srid(each_kind()[3], 4326)
    assert assert_refused_or_sound(replaced([shapely.to_wkb(shape)]))
    assert not assert_refused_or_sound(replaced([shapely.to_wkb(shape, byte_order=0)]))
    assert not assert_refused_or_sound(replaced([shapely.to_wkb(shape, include_srid=True)]))
    assert not assert_refused_or_sound(replaced([shapely.to_wkb(shape) + b"\0"]))


def test_a_collection_that_is_nested_without_end_is_refused() -> None:
    deep = b"\1\7\0\0\0\1\0\0\0" * 100_000 + shapely.to_wkb(shapely.Point(1, 2))
    with pytest.raises(InvalidInput, match=r"'wkb' cannot be read: .* more than 100 levels deep"):
        PackedGeometries.from_columns(replaced([deep]), "a file")


def test_geometries_are_made_in_steps_of_so_many_vertices(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    make = shapely.from_ragged_array

    def count(kind: Any, coordinates: Any, offsets: Any) -> Any:
        made.append(len(coordinates))
        return make(kind, coordinates, offsets)

    monkeypatch.setattr(shapely, "from_ragged_array", count)
    monkeypatch.setattr(packed_geometries, "_VERTICES_AT_ONCE", 60)
    shapes = as_array([shapely.Point(1, 1).buffer(1, quad_segs=i) for i in (1, 2, 3, 20, 4, 5)])
    assert wkbs(pack(shapes).shapes()) == wkbs(shapes)
    assert made == [5 + 9 + 13, 81, 17 + 21]
