"""`match_frame`: the answer and the events in one GeoDataFrame, brought together by row."""

import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import shapely
from geopandas import GeoDataFrame

import contrada
from contrada.errors import InvalidInput, MissingPackage

BOWTIE = "POLYGON((0 0, 2 2, 2 0, 0 2, 0 0))"


@pytest.fixture
def matcher() -> contrada.Matcher:
    matcher = contrada.Matcher()
    matcher.add("near", geometry="POLYGON((0 0, 5 0, 5 5, 0 5, 0 0))")
    matcher.add("windy", "wind > 3")
    return matcher


def fixes(count: int = 500) -> GeoDataFrame:
    """Points whose ids repeat, in a coordinate system."""
    rng = np.random.default_rng(5)
    columns = {"id": np.arange(count) % 7, "wind": rng.uniform(0, 6, count)}
    points = shapely.points(rng.uniform(0, 10, (count, 2)))
    return GeoDataFrame(columns, geometry=points, crs="EPSG:4326")


@pytest.mark.parametrize("threads", [1, 2])
def test_each_pair_stands_beside_its_own_event_though_ids_repeat(
    matcher: contrada.Matcher, threads: int
) -> None:
    events = fixes()
    frame = matcher.match_frame(events, threads=threads)
    pairs = matcher.match_many(events)
    assert frame.event.to_list() == pairs["event"].to_pylist()
    assert frame.subscription.to_list() == pairs["subscription"].to_pylist()
    own = events.iloc[frame.index]
    assert frame.wind.to_list() == own.wind.to_list()
    assert shapely.equals(frame.geometry.to_numpy(), own.geometry.to_numpy()).all()
    is_near = events.geometry.x.le(5) & events.geometry.y.le(5)
    near = frame.index[frame.subscription == "near"]
    assert near.to_list() == np.flatnonzero(is_near).tolist()
    windy = frame.index[frame.subscription == "windy"]
    assert windy.to_list() == np.flatnonzero(events.wind > 3).tolist()


def test_it_is_a_geodataframe_in_the_events_coordinate_system(matcher: contrada.Matcher) -> None:
    frame = matcher.match_frame(fixes())
    assert isinstance(frame, GeoDataFrame)
    assert frame.crs == "EPSG:4326"
    assert frame.columns.to_list() == ["event", "subscription", "wind", "geometry"]
    assert frame.active_geometry_name == "geometry"
    assert frame.index.name == "row"


def test_events_in_no_system_are_in_that_of_the_matcher() -> None:
    matcher = contrada.Matcher(crs="EPSG:2056")
    matcher.add("all", filter=True)
    assert matcher.match_frame([{"geometry": "POINT(1 2)"}]).crs == "EPSG:2056"
    assert matcher.match_frame(pa.table({"geometry": ["POINT(1 2)"]})).crs == "EPSG:2056"


def test_files_come_with_all_columns(matcher: contrada.Matcher, tmp_path: Path) -> None:
    events = fixes(50).assign(name=[f"fix {i}" for i in range(50)])
    events.to_parquet(tmp_path / "fixes.parquet")
    frame = matcher.match_frame(tmp_path / "fixes.parquet", id="name")
    assert frame.columns.to_list() == ["event", "subscription", "id", "wind", "geometry"]
    assert frame.event.to_list() == [f"fix {row}" for row in frame.index]


def test_a_list_of_events_is_a_frame_of_all_their_attributes(matcher: contrada.Matcher) -> None:
    big = 2**60 + 1
    frame = matcher.match_frame(
        [
            {"geometry": "POINT(1 1)", "wind": 9, "tags": ["a"], "number": big, "any": 1},
            {"geometry": "POINT(9 9)", "wind": 9.5, "number": None, "any": "x"},
            {"type": "Feature", "geometry": None, "properties": {"wind": 1, "other": 1}},
            {
                "type": "Feature",
                "geometry": {"type": "Point", "coordinates": [2, 3]},
                "properties": {"name": "n"},
            },
        ]
    )
    assert frame.index.to_list() == [0, 0, 1, 3]
    assert frame.event.to_list() == [0, 0, 1, 3]
    assert frame.subscription.to_list() == ["near", "windy", "windy", "near"]
    assert frame.wind.dtype == float
    assert frame.number[frame.number.notna()].to_list() == [big, big]
    assert frame["any"].to_list() == [1, 1, "x", None]
    assert frame.tags.to_list() == [["a"], ["a"], None, None]
    assert "other" not in frame  # no event that has it is matched
    assert frame.geometry.to_wkt().to_list()[-1] == "POINT (2 3)"


def test_a_geometry_of_another_name_is_found_because_subscriptions_read_it() -> None:
    matcher = contrada.Matcher()
    matcher.add("a", "S_INTERSECTS(area, POINT(1 1)) OR S_INTERSECTS(spot, POINT(3 3))")
    storm = {"area": "POLYGON((0 0, 2 0, 2 2, 0 2, 0 0))", "spot": "POINT(3 3)"}
    for events in ([storm], pa.Table.from_pylist([storm])):
        frame = matcher.match_frame(events)
        assert frame.active_geometry_name == "area"
        assert frame.area.to_list() == [4.0]
        assert frame.set_geometry("spot").geometry.x.to_list() == [3.0]


@pytest.mark.parametrize("make", [list, pa.Table.from_pylist])
def test_a_mended_geometry_is_the_one_that_was_matched(
    matcher: contrada.Matcher, make: Callable[[Any], Any]
) -> None:
    events = make([{"id": "bow", "geometry": BOWTIE}, {"id": "dot", "geometry": "POINT(9 9)"}])
    with pytest.raises(InvalidInput, match="row 0"):
        matcher.match_frame(events)
    frame = matcher.match_frame(events, repair=True)
    assert frame.event.to_list() == ["bow"]
    assert frame.geometry.is_valid.all()
    assert frame.area.to_list() == [2.0]
    heard: list[int] = []
    left = matcher.match_frame(
        events, quarantine=True, on_bad=lambda row, _id, _why: heard.append(row)
    )
    assert left.empty
    assert heard == [0]


def test_a_bad_geometry_that_nobody_reads_is_null() -> None:
    matcher = contrada.Matcher()
    matcher.add("windy", "wind > 3")
    rows = [{"geometry": "POLYGON((0 0", "wind": 9}, {"geometry": "POINT(1 1)", "wind": 9}]
    for events in (rows, pa.Table.from_pylist(rows)):
        frame = matcher.match_frame(events)
        assert frame.geometry.isna().to_list() == [True, False]


def test_names_of_the_answer_and_of_events_do_not_clash(matcher: contrada.Matcher) -> None:
    row = {"event": "flood", "subscription": 8, "geometry": "POINT(1 1)"}
    for events in ([row], pa.Table.from_pylist([row])):
        frame = matcher.match_frame(events)
        assert frame.event.to_list() == [0]
        assert frame.subscription.to_list() == ["near"]
        assert frame.event_of_event.to_list() == ["flood"]
        assert frame.subscription_of_event.to_list() == [8]


def test_without_a_match_the_frame_is_empty_and_has_its_columns(matcher: contrada.Matcher) -> None:
    far = pa.table({"geometry": ["POINT(9 9)"], "wind": [1], "name": ["x"]})
    for events in (far, far.slice(0, 0)):
        frame = matcher.match_frame(events)
        assert frame.empty
        assert frame.columns.to_list() == ["event", "subscription", "wind", "name", "geometry"]
    assert matcher.match_frame([]).columns.to_list() == ["event", "subscription", "geometry"]


def test_whole_numbers_beside_nulls_stay_whole() -> None:
    matcher = contrada.Matcher()
    matcher.add("all", filter=True)
    kinds = [pa.int8(), pa.uint16(), pa.int32(), pa.int64(), pa.uint64()]
    columns = {str(kind): pa.array([127, None], kind) for kind in kinds}
    columns["int64"] = pa.array([2**62 + 1, None], pa.int64())
    frame = matcher.match_frame(pa.table(columns | {"geometry": ["POINT(1 1)", None]}))
    assert frame.int64.to_list()[0] == 2**62 + 1
    for kind in kinds:
        assert str(frame[str(kind)].dtype).lower() == str(kind)


def test_nested_values_of_a_list_are_in_the_frame_as_they_are(matcher: contrada.Matcher) -> None:
    cycle: list[Any] = []
    cycle.append(cycle)
    deep: Any = 1
    for _ in range(100_000):
        deep = {"a": deep}
    shared: Any = [1]
    for _ in range(40):
        shared = [shared, shared]
    for value in ([1, [2]], {"a": 1}, cycle, deep, shared):
        found = matcher.match_frame([{"geometry": "POINT(1 1)", "n": value, "wind": 99}])
        assert found["n"].iloc[0] is value


def test_events_without_a_geometry_are_refused_with_the_way_out(matcher: contrada.Matcher) -> None:
    for events in ([{"wind": 9}], pa.table({"wind": [9]})):
        with pytest.raises(InvalidInput, match="to_pandas"):
            matcher.match_frame(events)


def test_without_geopandas_the_error_names_it(
    matcher: contrada.Matcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "geopandas", None)
    with pytest.raises(MissingPackage, match="pip install geopandas"):
        matcher.match_frame([])


def test_the_frame_is_what_a_spatial_join_finds() -> None:
    events = fixes(300)
    zones = GeoDataFrame(
        {"id": ["a", "b"]}, geometry=[shapely.box(1, 1, 4, 4), shapely.box(3, 3, 8, 8)], crs=4326
    )
    matcher = contrada.Matcher()
    matcher.add_many(zones)
    frame = matcher.match_frame(events)
    joined = geopandas.sjoin(events, zones)
    theirs = sorted(zip(joined.index, joined.id_right, strict=True))
    assert list(zip(frame.index, frame.subscription, strict=True)) == theirs


@pytest.mark.parametrize("threads", [0, -1, 1.5, "2"])
def test_threads_that_cannot_be_are_refused_for_lists_and_tables(
    matcher: contrada.Matcher, threads: Any
) -> None:
    for events in ([{"wind": 9, "geometry": "POINT(1 1)"}], fixes(3)):
        for call in (matcher.match_many, matcher.match_frame):
            with pytest.raises(InvalidInput, match="threads must be a number >= 1"):
                call(events, threads=threads)


CODES = pa.array([1, 0, None])
UNION = pa.UnionArray.from_dense(
    pa.array([0, 1, 0], pa.int8()),
    pa.array([0, 0, 1], pa.int32()),
    [pa.array([5, None]), pa.array(["a"])],
)
TWICE = pa.DictionaryArray.from_arrays(
    CODES, pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["a", "b"]))
)
NARROW = pa.array([Decimal("1.5"), None, Decimal("2.5")], pa.decimal32(5, 2))
BEYOND_PANDAS: dict[str, pa.Array] = {
    "a union": UNION,
    "unions in lists": pa.ListArray.from_arrays([0, 1, 2, 3], UNION),
    "unions in structs": pa.StructArray.from_arrays([UNION], ["m"]),
    "a dictionary of lists": pa.DictionaryArray.from_arrays(CODES, pa.array([[1, 2], [3]])),
    "a dictionary of tensors": pa.DictionaryArray.from_arrays(
        CODES,
        pa.ExtensionArray.from_storage(
            pa.fixed_shape_tensor(pa.int32(), [2]),
            pa.array([[1, 2], [3, 4]], pa.list_(pa.int32(), 2)),
        ),
    ),
    "a dictionary of a dictionary": TWICE,
    "dictionaries of dictionaries in structs": pa.StructArray.from_arrays([TWICE], ["m"]),
    "narrow decimals in lists": pa.ListArray.from_arrays([0, 1, 2, 3], NARROW),
}


@pytest.mark.parametrize("name", BEYOND_PANDAS)
def test_what_arrow_cannot_give_to_pandas_is_there_as_objects(
    matcher: contrada.Matcher, name: str
) -> None:
    column = BEYOND_PANDAS[name]
    frame = matcher.match_frame(pa.table({"geometry": ["POINT(1 1)"] * 3, "c": column}))
    plain = [list(v) if isinstance(v, np.ndarray) else v for v in frame.c]
    assert [None if value is None or value is pd.NaT else value for value in plain] == [
        list(value) if name.endswith("tensors") and value is not None else value
        for value in column.to_pylist()
    ]


def test_intervals_in_a_dictionary_are_what_they_are_without_it(matcher: contrada.Matcher) -> None:
    values = pa.array([None, (1, 2, 3)], pa.month_day_nano_interval())
    table = pa.table({"geometry": ["POINT(1 1)"] * 2, "plain": values, "c": values})
    coded = pa.DictionaryArray.from_arrays(pa.array([0, 1]), values)
    frame = matcher.match_frame(table.set_column(2, "c", coded))
    assert frame.c.to_list() == frame.plain.to_list()
    assert frame.c[1] == pd.DateOffset(months=1, days=2, nanoseconds=3)


def test_durations_that_a_frame_cannot_hold_are_refused_with_their_column(
    matcher: contrada.Matcher,
) -> None:
    far = pa.array([2**62], pa.duration("s"))
    column = pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [far])
    with pytest.raises(InvalidInput, match="column 'c': values of type sparse_union"):
        matcher.match_frame(pa.table({"geometry": ["POINT(1 1)"], "c": column}))
