"""Geometries that would harm the process, and values that only look like something."""

import struct

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import shapely

from contrada import InvalidInput, Matcher
from exact_engines import every_engine


def nested_collections(depth: int) -> bytes:
    collection = b"\x01\x07\x00\x00\x00\x01\x00\x00\x00"
    return collection * depth + b"\x01\x01\x00\x00\x00" + struct.pack("<dd", 1, 1)


def test_collections_nested_beyond_reason_are_refused_and_a_few_levels_are_not() -> None:
    matcher = Matcher()
    matcher.add("all", "S_INTERSECTS(geometry, BBOX(0, 0, 2, 2))")
    with pytest.raises(InvalidInput, match="nested more than 100 levels deep"):
        matcher.match({"geometry": nested_collections(20_000)})
    with pytest.raises(InvalidInput, match=r"row 0.*nested more than 100 levels deep"):
        matcher.match_many(pa.table({"geometry": [nested_collections(20_000)]}))
    assert matcher.match({"geometry": nested_collections(20)}) == ["all"]


NO_TIMES = [np.datetime64("NaT"), np.datetime64("NaT", "ns"), np.timedelta64("NaT")]


@pytest.mark.parametrize("missing", [pd.NA, pd.NaT, None, *NO_TIMES])
def test_the_missing_values_of_pandas_and_numpy_are_null(missing: object) -> None:
    matcher = Matcher()
    matcher.add("null", "x IS NULL")
    matcher.add("not null", "x IS NOT NULL")
    matcher.add("inside", "y.x IS NULL")
    assert matcher.match({"x": missing, "y": {"x": missing}}) == ["inside", "null"]
    table = matcher.match_many([{"x": missing, "y": {"x": missing}}], keep=["x"])
    assert table.column("subscription").to_pylist() == ["inside", "null"]
    assert table.column("x").to_pylist() == [None, None]


@pytest.mark.parametrize("missing", NO_TIMES)
def test_an_id_that_is_no_time_is_missing(missing: object) -> None:
    matcher = Matcher()
    matcher.add("all", "TRUE")
    with pytest.raises(InvalidInput, match="the id is missing"):
        matcher.match_many([{"id": missing}])


def test_wkt_may_name_its_reference_system() -> None:
    matcher = Matcher()
    matcher.add("here", geometry="SRID=4326;POLYGON((0 0, 2 0, 2 2, 0 0))")
    assert matcher.match({"geometry": "SRID=4326;POINT(1 0.5)"}) == ["here"]


@pytest.mark.parametrize("id_", [True, 1.0, None, "1"])
def test_only_an_id_of_its_own_kind_finds_a_subscription(id_: object) -> None:
    matcher = Matcher()
    matcher.add(1, "x > 1")
    assert id_ not in matcher
    with pytest.raises(KeyError):
        matcher.get(id_)  # type: ignore[arg-type]
    with pytest.raises(KeyError):
        matcher.remove(id_)  # type: ignore[arg-type]
    assert 1 in matcher


def test_an_id_that_is_no_text_is_refused() -> None:
    with pytest.raises(InvalidInput, match="not valid Unicode"):
        Matcher().add("\ud800", "x > 1")


@pytest.mark.parametrize(
    ("filter_", "place"),
    [
        (r'{"op":"=","args":[{"property":"\ud800"},1]}', r"at \$\.args\[0\]\.property"),
        (r'{"op":"=","args":[{"property":"a.\udfff.b"},1]}', r"at \$\.args\[0\]\.property"),
        (r'{"op":"like","args":[{"property":"a"},"\ud800%"]}', r"at \$\.args\[1\]"),
        (r'{"op":"in","args":[{"property":"a"},["b","\ud800"]]}', r"at \$\.args\[1\]\[1\]"),
        ('x > 1 AND "\ud800" > 1', "at character 10"),
        ("a = '\ud800'", "at character 4"),
    ],
)
def test_half_a_surrogate_pair_in_a_predicate_is_refused_with_its_place(
    filter_: str, place: str
) -> None:
    with pytest.raises(InvalidInput, match=rf"subscription 'a': .*not valid Unicode {place}"):
        Matcher().add("a", filter_)
    rows = pa.table({"id": [1, 2], "filter": ["x > 1", filter_]}) if filter_.isascii() else None
    if rows is not None:
        with pytest.raises(InvalidInput, match=rf"row 1, .*not valid Unicode {place}"):
            Matcher().add_many(rows)
        assert Matcher().add_many(rows, quarantine=True) == 1


def test_half_a_surrogate_pair_in_the_name_of_an_attribute_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"subscription 1: the name '.ud800' is not valid"):
        Matcher().add(1, geometry="POINT(1 1)", attribute="\ud800")
    matcher = Matcher()
    matcher.add(1, "x > 1")
    event = {"id": 1, "x": 2, "\ud800": 3}
    assert matcher.match(event) == [1]
    with pytest.raises(InvalidInput, match=r"'.ud800' cannot be kept as a column"):
        matcher.match_many([event], keep=["\ud800"])
    str(matcher.why(1, {"x": "\ud800"})).encode()


@pytest.mark.parametrize("column", ["where", "relation", "attribute"])
def test_what_goes_with_a_geometry_is_refused_beside_a_filter(column: str) -> None:
    rows = pa.table({"id": ["a"], "filter": ["x > 1"], column: ["y > 1"]})
    with pytest.raises(
        InvalidInput, match=rf"row 0, id 'a', column '{column}': 'y > 1' needs a geometry"
    ):
        Matcher().add_many(rows)
    with pytest.raises(InvalidInput, match=rf"subscription 'a': `{column}`"):
        Matcher().add("a", "x > 1", **{column: "y > 1"})  # type: ignore[arg-type]


def test_mending_that_leaves_no_area_leaves_the_row_out_where_an_area_is_wanted() -> None:
    flat = "POLYGON((0 0, 1 1, 2 2, 0 0))"
    rows = pa.table({"id": ["a", "b"], "geometry": [flat, flat], "relation": ["ehInside", None]})
    matcher, heard = Matcher(), []
    matcher.add_many(rows, repair=True, on_bad=lambda *bad: heard.append(bad))
    assert list(matcher) == ["b"]
    assert [row for row, _, _ in heard] == [0, 1]


def test_an_event_of_many_answers_comes_in_batches_of_a_bounded_size() -> None:
    matcher = Matcher()
    for number in range(300):
        matcher.add(number, f"x > {-number}")
    events = pa.table({"x": pa.array([1.0] * 30_000)})
    sizes = [batch.num_rows for batch in matcher.match_many(events, batches=True, threads=1)]
    assert sum(sizes) == 300 * 30_000
    assert max(sizes) <= 4_000_000


def test_a_map_is_a_path_in_a_table_as_it_is_in_an_event() -> None:
    matcher = Matcher()
    matcher.add("deep", "m.b = 1")
    column = pa.array([[("b", 1)], [("b", 2)], None], pa.map_(pa.string(), pa.int64()))
    assert matcher.match_many(pa.table({"m": column}))["event"].to_pylist() == [0]
    assert matcher.match({"m": {"b": 1}}) == ["deep"]


@every_engine
@pytest.mark.parametrize("size", [1e153, 1e160, 1e300, 1e-308, 5e-324, 1.0])
def test_no_subscription_is_lost_however_large_or_small_it_is(engine: str, size: float) -> None:
    matcher = Matcher(engine)
    for i in range(40):
        matcher.add(i, geometry=shapely.box(4 * i * size, 0, (4 * i + 2) * size, 2 * size))
    assert matcher.match({"geometry": shapely.box(0, 0, 160 * size, 2 * size)}) == list(range(40))
    for i in range(40):
        assert matcher.match({"geometry": shapely.Point((4 * i + 1) * size, size)}) == [i]


@pytest.mark.filterwarnings("ignore:(overflow|invalid value) encountered:RuntimeWarning")  # GEOS's
@every_engine
@pytest.mark.parametrize("relation", ["intersects", "disjoint"])
@pytest.mark.parametrize(
    ("event", "meets"),
    [
        (shapely.box(-1e308, -1e308, 1e308, 1e308), True),
        (shapely.box(0, 0, 1e-308, 1e-308), False),
        (shapely.box(0, 0, 5e-324, 1e308), False),
    ],
)
def test_an_event_as_large_or_as_small_as_can_be_is_matched(
    engine: str, relation: str, event: shapely.Polygon, meets: bool
) -> None:
    matcher = Matcher(engine)
    for i in range(1, 50):
        matcher.add(i, geometry=shapely.box(i, 0, i + 0.5, 1), relation=relation)
    expected = list(range(1, 50)) if meets != (relation == "disjoint") else []
    assert matcher.match({"geometry": event}) == expected
