"""Many events: every source, ids, order, threads and batches."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
import shapely
from shapely.geometry import LineString, Point, box

from contrada import Matcher
from exact_engines import every_engine

BATCH_ROWS = 65_536  # what one batch of a table has at most


def watching_matcher(engine: str = "strtree") -> Matcher:
    matcher = Matcher(engine)
    matcher.add("b", geometry=box(0, 0, 4, 4))
    matcher.add("a", geometry=box(2, 2, 6, 6))
    matcher.add("c", "n > 1")
    return matcher


def event_frame() -> geopandas.GeoDataFrame:
    shapes = [Point(3, 3), LineString([(5, 5), (9, 9)]), None, box(0, 0, 1, 1)]
    return geopandas.GeoDataFrame({"n": [1, 2, 2, 0]}, geometry=shapes, crs="EPSG:4326")


EXPECTED = [(0, "a"), (0, "b"), (1, "a"), (1, "c"), (2, "c"), (3, "b")]


def pairs(table: pa.Table) -> list[tuple[Any, Any]]:
    return list(zip(table["event"].to_pylist(), table["subscription"].to_pylist(), strict=True))


def make_events(kind: str, folder: Path) -> Any:
    frame = event_frame()
    columns = {"n": frame["n"], "geometry": shapely.to_wkb(frame.geometry)}
    match kind:
        case "table":
            return pa.table(columns)
        case "chunks":
            table = pa.table(columns)
            return pa.concat_tables([table.slice(0, 1), table.slice(1, 2), table.slice(3)])
        case "reader":
            return pa.table(columns).to_reader(max_chunksize=1)
        case "geodataframe":
            return frame
        case "pandas":
            return pd.DataFrame({"n": frame["n"], "geometry": frame.geometry.to_wkt()})
        case "list":
            return pa.table(columns).to_pylist()
        case "tuple":
            return tuple(
                {"n": n, "geometry": g} for n, g in zip(frame.n, frame.geometry, strict=True)
            )
        case "parquet":
            frame.to_parquet(folder / "events.parquet")
            return folder / "events.parquet"
        case "geojson":
            frame.to_file(folder / "events.geojson", driver="GeoJSON")
            return str(folder / "events.geojson")
        case _:
            raise AssertionError(kind)


KINDS = "table chunks reader geodataframe pandas list tuple parquet geojson".split()


@every_engine
@pytest.mark.parametrize("threads", [1, 2, None])
@pytest.mark.parametrize("kind", KINDS)
def test_every_source_gives_the_same_pairs_in_order(
    engine: str, threads: int | None, kind: str, tmp_path: Path
) -> None:
    found = watching_matcher(engine).match_many(make_events(kind, tmp_path), threads=threads)
    assert isinstance(found, pa.Table)
    assert found.column_names == ["event", "subscription"]
    assert pairs(found) == EXPECTED


def test_a_geometry_column_of_another_name_is_the_geometry_and_itself() -> None:
    matcher = watching_matcher()
    matcher.add("outline", geometry=box(5, 5, 6, 6), attribute="outline")
    events = event_frame().rename_geometry("outline")
    assert pairs(matcher.match_many(events)) == sorted([*EXPECTED, (1, "outline")])


def test_every_column_is_an_attribute_and_a_field_of_a_struct_too() -> None:
    matcher = Matcher()
    matcher.add("plain", "speed > 1")
    matcher.add("nested", "engine.speed > 1")
    matcher.add("dotted", '"wind.speed" > 1')
    table = pa.table(
        {
            "speed": [0, 2, None],
            "engine": pa.array([{"speed": 2}, None, {"speed": None}]),
            "wind.speed": [None, 1, 2],
        }
    )
    assert pairs(matcher.match_many(table)) == [(0, "nested"), (1, "plain"), (2, "dotted")]


@every_engine
def test_a_field_of_structs_may_be_geojson_as_in_a_single_event(engine: str) -> None:
    matcher = Matcher(engine)
    matcher.add("a", geometry=box(0, 0, 4, 4), attribute="trip.goal")
    goals = [{"type": "Point", "coordinates": [x, 1.0]} for x in (1.0, 9.0)]
    events = pa.table({"trip": [{"goal": goal} for goal in goals]})
    assert pairs(matcher.match_many(events)) == [(0, "a")]
    assert [matcher.match(event) for event in events.to_pylist()] == [["a"], []]


# Ids


@pytest.mark.parametrize(
    ("ids", "kind"),
    [
        (pa.array(["z", "", "é", "z"]), pa.string()),
        (pa.array(["z", "y", "x", "w"], pa.large_string()), pa.string()),
        (pa.array(["z", "y", "z", "z"]).dictionary_encode(), pa.string()),
        (pa.array([7, -1, 2**63 - 1, 7]), pa.int64()),
        (pa.array([7, 1, 2, 0], pa.uint64()), pa.int64()),
        (pa.array([7, 1, 2, 0], pa.int8()), pa.int64()),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else "",
)
def test_events_are_known_by_their_ids_which_may_repeat(ids: pa.Array, kind: pa.DataType) -> None:
    table = pa.table({"n": [2, 0, 2, 2], "id": ids, "code": ids})
    wanted = [id_ for id_, n in zip(ids.to_pylist(), [2, 0, 2, 2], strict=True) if n == 2]
    for found in (
        watching_matcher().match_many(table),
        watching_matcher().match_many(table.drop(["id"]), id="code"),
        watching_matcher().match_many(table.to_pylist()),
        watching_matcher().match_many(table.to_pylist(), id="code"),
    ):
        assert found["event"].to_pylist() == wanted
        assert found.schema.field("event").type == kind


def test_ids_default_to_the_number_of_the_row() -> None:
    table = pa.table({"n": [2, 0, 2]})
    for events in (table, table.to_pylist(), table.to_reader(max_chunksize=2)):
        assert watching_matcher().match_many(events)["event"].to_pylist() == [0, 2]


def test_the_id_of_a_feature_or_cloud_event_is_the_events() -> None:
    feature = {"type": "Feature", "id": "f", "geometry": None, "properties": {"n": 2}}
    wrapped = {"specversion": "1.0", "id": "c", "data": {"n": 2}}
    both = {"specversion": "1.0", "id": "c", "data": feature}
    found = watching_matcher().match_many([feature, wrapped, both, {"n": 2, "id": "m"}])
    assert found["event"].to_pylist() == ["f", "c", "f", "m"]


def test_ids_of_one_list_are_of_one_kind_whether_they_match_or_not() -> None:
    for n in (0, 2):
        with pytest.raises(
            ValueError, match=r"row 1: .*all strings or all integers, but 'x' follows 1"
        ):
            watching_matcher().match_many([{"n": 2, "id": 1}, {"n": n, "id": "x"}])


def test_the_type_of_ids_does_not_depend_on_what_matches() -> None:
    matcher = watching_matcher()
    for n in (0, 2):
        table = pa.table({"id": ["x"], "n": [n]})
        found = matcher.match_many(table)
        assert found.schema == matcher.match_many(table.to_pylist()).schema
        assert found.schema.field("event").type == pa.string()
        assert found.schema.field("subscription").type.value_type == pa.string()


def test_no_events_and_no_subscriptions_give_an_empty_table() -> None:
    empty = pa.table({"geometry": pa.array([], pa.binary())})
    for found in (
        watching_matcher().match_many(empty),
        watching_matcher().match_many([]),
        Matcher().match_many(pa.table({"n": [1]})),
        Matcher().match_many([{"n": 1}]),
    ):
        assert found.num_rows == 0
        assert found.column_names == ["event", "subscription"]


# Order


@every_engine
def test_subscriptions_come_by_value_through_additions_removals_and_replacements(
    engine: str,
) -> None:
    matcher = Matcher(engine)
    ids = [30, -4, 200, 7, 2**62, 0, 11, 5]
    matcher.add_many(pa.table({"id": ids, "filter": ["n > 0"] * len(ids)}))
    matcher.add(9, "n > 0")
    matcher.remove(200)
    matcher.add(7, "n > 1", replace=True)
    events = pa.table({"n": [1, 2]})
    first, second = [-4, 0, 5, 9, 11, 30, 2**62], [-4, 0, 5, 7, 9, 11, 30, 2**62]
    found = matcher.match_many(events)
    assert pairs(found) == [*((0, id_) for id_ in first), *((1, id_) for id_ in second)]
    assert found.to_pandas()["subscription"].tolist() == first + second


# Threads and batches


def long_events(batches: int) -> Iterator[pa.RecordBatch]:
    """Full batches of points; only the first row of each lies in the square."""
    xy = np.full((BATCH_ROWS, 2), 50.0)
    xy[0] = 3
    geometry = pa.array(shapely.to_wkb(shapely.points(xy)))
    for _ in range(batches):
        yield pa.record_batch({"geometry": geometry})


def stream(batches: Iterator[pa.RecordBatch]) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(pa.schema({"geometry": pa.binary()}), batches)


@pytest.mark.parametrize("threads", [1, 2, None])
def test_batches_come_in_the_order_of_the_rows(threads: int | None) -> None:
    matcher = watching_matcher()
    found = matcher.match_many(stream(long_events(5)), threads=threads, batches=True)
    assert isinstance(found, Iterator)
    answers = list(found)
    assert all(isinstance(answer, pa.RecordBatch) for answer in answers)
    expected = [(row * BATCH_ROWS, id_) for row in range(5) for id_ in "ab"]
    assert pairs(pa.Table.from_batches(answers)) == expected
    whole = matcher.match_many(stream(long_events(5)), threads=threads)
    assert pairs(whole) == expected
    assert matcher.stats()["events"] == 10 * BATCH_ROWS


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_long_stream_is_pulled_only_a_few_batches_ahead(threads: int) -> None:
    pulled = 0

    def pull() -> Iterator[pa.RecordBatch]:
        nonlocal pulled
        for batch in long_events(40):
            pulled += 1
            yield batch

    found = watching_matcher().match_many(stream(pull()), threads=threads, batches=True)
    assert pulled <= 1
    for given, _ in zip(range(1, 7), found, strict=False):
        assert given <= pulled <= given + threads + 1
    del found
    assert pulled <= 6 + threads + 1


@pytest.mark.parametrize(("threads", "pieces"), [(1, 1), (2, 2), (3, 3), (64, 9)])
def test_the_only_batch_is_shared_among_threads(threads: int, pieces: int) -> None:
    line = shapely.LineString(np.tile(np.linspace(0, 9, 120), (2, 1)).T)
    table = pa.table({"geometry": [line.wkb] * 640})  # of 1.2 MB
    found = list(watching_matcher().match_many(table, threads=threads, batches=True))
    assert len(found) == pieces
    assert pairs(pa.Table.from_batches(found)) == [(row, id_) for row in range(640) for id_ in "ab"]


@pytest.mark.parametrize("threads", [1, 2])
def test_a_bad_row_stops_the_batches_at_its_place(threads: int) -> None:
    def pull() -> Iterator[pa.RecordBatch]:
        yield from long_events(2)
        yield pa.record_batch({"geometry": pa.array([b"?"])})
        yield from long_events(2)

    found = watching_matcher().match_many(stream(pull()), threads=threads, batches=True)
    assert [next(found).num_rows for _ in range(2)] == [2, 2]
    with pytest.raises(ValueError, match=f"row {2 * BATCH_ROWS}, column 'geometry'"):
        next(found)


def test_a_failing_source_stops_the_batches_with_its_row() -> None:
    def pull() -> Iterator[pa.RecordBatch]:
        yield from long_events(1)
        raise OSError("the line is dead")

    with pytest.raises(ValueError, match=f"after row {BATCH_ROWS}.*the line is dead"):
        watching_matcher().match_many(stream(pull()))


def random_matcher(generator: np.random.Generator) -> Matcher:
    """Disks with relations of all sorts; few of them hold for most events."""
    matcher = Matcher()
    disks = shapely.buffer(shapely.points(generator.uniform(0, 100, (300, 2))), 3, quad_segs=4)
    relations = ["intersects", "within", "touches", "T*F**F***", "overlaps"]
    matcher.add_many(
        pa.table(
            {
                "geometry": shapely.to_wkb(disks),
                "relation": [relations[i % 5] if i % 100 else "disjoint" for i in range(300)],
                "where": [None if i % 3 else f"n > {i % 7}" for i in range(300)],
            }
        )
    )
    return matcher


def test_two_threads_give_what_one_gives_on_random_events() -> None:
    generator = np.random.default_rng(1)
    matcher = random_matcher(generator)
    count = 2 * BATCH_ROWS + 1_000
    shapes: Any = shapely.points(generator.uniform(0, 100, (count, 2)))
    shapes[::20] = shapely.buffer(shapes[::20], 1, quad_segs=2)
    table = pa.table({"geometry": shapely.to_wkb(shapes), "n": generator.integers(0, 9, count)})
    two, one = (matcher.match_many(table, threads=threads) for threads in (2, 1))
    assert one.num_rows > count
    assert one.equals(two)
    rows = table.slice(0, 100).to_pylist()
    first = one.filter(pc.less(one["event"], 100))
    assert pairs(matcher.match_many(rows)) == pairs(first)


def test_match_many_sees_the_set_as_of_its_start() -> None:
    matcher = watching_matcher()
    found = matcher.match_many(stream(long_events(3)), threads=1, batches=True)
    first = next(found)
    matcher.add("later", geometry=box(0, 0, 99, 99))
    matcher.remove("a")
    assert [batch.num_rows for batch in found] == [first.num_rows] * 2
    assert matcher.match({"geometry": Point(3, 3)}) == ["b", "later"]
