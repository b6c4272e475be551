"""Columns of the types that Arrow has: predicates see in them what they see in single events."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
import shapely

from contrada import InvalidInput, Matcher
from exact_engines import every_engine

POINT = shapely.to_wkb(shapely.Point(1, 1))
NEAR = "S_INTERSECTS({}, BBOX(0,0,2,2))"


def in_struct(array: pa.Array) -> pa.Array:
    return pa.StructArray.from_arrays([array], ["area"])


def in_map(array: pa.Array) -> pa.Array:
    offsets = range(len(array) + 1)
    return pa.MapArray.from_arrays(offsets, ["area"] * len(array), array)


def in_runs(array: pa.Array) -> pa.Array:
    return pa.RunEndEncodedArray.from_arrays(pa.array([2, 4], pa.int32()), array)


def coded(values: pa.Array) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array([1, 0, 0]), values)


MIXED = pa.UnionArray.from_sparse(
    pa.array([0, 1, 0], pa.int8()),
    [pa.array([POINT, None, None]), pa.array([None, "POINT(1 1)", ""])],
)
GEOMETRIES = {
    "bytes": pa.array([POINT, None]),
    "bytes of a fixed size": pa.array([POINT, None], pa.binary(21)),
    "views of bytes": pa.array([POINT, None], pa.binary_view()),
    "views of texts": pa.array(["POINT(1 1)", None], pa.string_view()),
    "coded bytes of a fixed size": coded(pa.array([POINT, None], pa.binary(21))),
    "coded views of texts": coded(pa.array(["POINT(1 1)", None], pa.string_view())),
    "runs of views": in_runs(pa.array(["POINT(1 1)", None], pa.string_view())),
    "a union": MIXED,
}
every_geometry = pytest.mark.parametrize("array", GEOMETRIES.values(), ids=GEOMETRIES.keys())


def found(matcher: Matcher, table: pa.Table, **options: Any) -> list[int]:
    return list(matcher.match_many(table, **options)["event"].to_pylist())


@every_engine
@every_geometry
def test_a_geometry_is_found_in_any_attribute_whatever_its_type(
    engine: str, array: pa.Array
) -> None:
    expected = [row for row, value in enumerate(array.to_pylist()) if value]
    for name, column, path in (
        ("geometry", array, "geometry"),
        ("area", array, "area"),
        ("q", in_struct(array), "q.area"),
        ("q", in_map(array), "q.area"),
    ):
        matcher = Matcher(engine)
        matcher.add("near", NEAR.format(path))
        assert found(matcher, pa.table({name: column})) == expected, path


@every_geometry
def test_it_is_kept_as_wkb(array: pa.Array) -> None:
    matcher = Matcher()
    matcher.add("near", NEAR.format("area"))
    table = pa.table({"area": array})
    kept = matcher.match_many(table, keep=["area"])["area"]
    assert set(kept.to_pylist()) == {POINT}


@every_engine
def test_truth_values_in_bytes_are_truth_values(engine: str) -> None:
    truths = pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, 0, None], pa.int8()))
    matcher = Matcher(engine)
    matcher.add("yes", "v = TRUE")
    matcher.add("not one", "v <> 1 OR v = 1")
    events = [{"v": value} for value in truths.to_pylist()]
    with pytest.warns(UserWarning, match="holds truth values"):
        pairs = matcher.match_many(pa.table({"v": truths}))
    assert pairs.to_pylist() == matcher.match_many(events).to_pylist()
    assert pairs["subscription"].to_pylist() == ["yes"]


MOMENTS = pa.array([1, None], pa.timestamp("us", "UTC"))


@pytest.mark.parametrize(
    "ids",
    [
        coded(MOMENTS),
        coded(pa.array([[1], None])),
        coded(pa.array([1.5, None])),
        pa.UnionArray.from_sparse(
            pa.array([0, 1, 0], pa.int8()), [pa.array([1, 5, 2]), pa.array(["z", "a", "y"])]
        ),
        pa.array([[1]], pa.list_view(pa.int8())),
    ],
    ids=lambda array: str(array.type),
)
@pytest.mark.parametrize("quarantine", [True, False])
def test_a_column_that_cannot_hold_ids_is_refused_with_its_name_and_type(
    ids: pa.Array, quarantine: bool
) -> None:
    matcher = Matcher()
    matcher.add("all", True)
    refusal = r"table, column 'id': an id must be a string or a 64-bit integer, not \w+.*id="
    with pytest.raises(InvalidInput, match=refusal):
        matcher.match_many(pa.table({"id": ids}), quarantine=quarantine)
    with pytest.raises(InvalidInput, match=r"column 'id': an id must be a string or"):
        matcher.add_many(pa.table({"id": ids, "filter": ["TRUE"] * len(ids)}))


HOLED = pa.array([False, True, False])
STARTS = pa.array([0, 1, 2, 3], pa.int32())
NUMBERS_OR_TEXTS = pa.UnionArray.from_dense(
    pa.array([0, 1, 0], pa.int8()),
    pa.array([0, 0, 1], pa.int32()),
    [pa.array([5, None]), pa.array(["a"])],
)
AROUND_A_UNION = {
    "a struct": pa.StructArray.from_arrays([NUMBERS_OR_TEXTS, pa.array([1, 2, 3])], ["m", "n"]),
    "a struct that may be null": pa.StructArray.from_arrays(
        [NUMBERS_OR_TEXTS, pa.array([1, 2, 3])], ["m", "n"], mask=HOLED
    ),
    "a map": pa.MapArray.from_arrays(STARTS, ["m", "m", "m"], NUMBERS_OR_TEXTS, mask=HOLED),
    "a list of structs": pa.ListArray.from_arrays(
        STARTS, pa.StructArray.from_arrays([NUMBERS_OR_TEXTS], ["m"], mask=HOLED)
    ),
    "runs in a struct": pa.StructArray.from_arrays(
        [pa.RunEndEncodedArray.from_arrays(pa.array([3], pa.int32()), pa.array(["a"]))],
        ["m"],
        mask=HOLED,
    ),
    "a dictionary of runs": pa.DictionaryArray.from_arrays(
        pa.array([0, None, 1]),
        pa.RunEndEncodedArray.from_arrays(pa.array([1, 2], pa.int32()), pa.array(["a", "b"])),
    ),
}


@pytest.mark.parametrize("name", AROUND_A_UNION)
def test_a_union_or_runs_in_another_column_are_read_and_kept(name: str) -> None:
    array = AROUND_A_UNION[name]
    matcher = Matcher()
    matcher.add("all", "S_INTERSECTS(geometry, POINT(1 1))")
    matcher.add("five", "c.m = 5")
    for first in (0, 1):
        table = pa.table({"geometry": [POINT] * (3 - first), "c": array[first:]})
        pairs = matcher.match_many(table, keep=["c"]).to_pylist()
        of_all = [pair["c"] for pair in pairs if pair["subscription"] == "all"]
        assert of_all == array[first:].to_pylist()
        fives = [pair["event"] for pair in pairs if pair["subscription"] == "five"]
        has_five = first == 0 and name.startswith(("a struct", "a map"))
        assert fives == ([0] if has_five else [])
