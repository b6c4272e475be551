"""The rows of a collection are packed, numbered, and take the place of others in a matcher."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
import shapely

from contrada import InvalidInput, Matcher
from contrada.errors import BadRows
from contrada.files import read_rows
from contrada.files.sections import open_sections, write_sections
from contrada.matcher.packed_rows import PackedRows, RowIds, SharedTerms, write_packed_rows
from contrada.matcher.ready_rows import ReadyRows, remove_range
from contrada.matching import segment_rows

if TYPE_CHECKING:
    from pathlib import Path

Point = dict[str, Any]


def make_table(ids: list[Any], west: float = 0.0, **more: list[Any]) -> pa.Table:
    """A row of squares of side 2, each a unit east of the one before."""
    edges = west + np.arange(len(ids), dtype=float)
    squares = shapely.box(edges, np.zeros_like(edges), edges + 2, np.full_like(edges, 2))
    geometry = pa.field("geometry", pa.binary(), metadata={"ARROW:extension:name": "geoarrow.wkb"})
    columns = {"geometry": shapely.to_wkb(squares).tolist(), "id": ids, **more}
    table = pa.table(columns)
    return table.cast(table.schema.set(0, geometry))


def pack(path: Path, table: Any, **terms: Any) -> Path:
    write_packed_rows(read_rows(table), path, SharedTerms(**terms))
    return path


def put(matcher: Matcher, path: Path, first: int, replaced: range = range(0)) -> PackedRows:
    packed = PackedRows.open(path, first=first, subscriber=7)
    ReadyRows(matcher, packed, replaced).put()
    return packed


def at(x: float, y: float = 1.0, **attributes: Any) -> Point:
    return {"geometry": shapely.Point(x, y), **attributes}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "rows.contrada"


def test_rows_are_numbered_in_their_order_and_keep_their_own_ids(path: Path) -> None:
    packed = PackedRows.open(pack(path, make_table(["c", "a", "b"])), first=100)
    assert packed.range == range(100, 103)
    assert [packed.row_ids[place] for place in range(3)] == ["c", "a", "b"]
    assert packed.row_ids.take(np.array([2, 0])).to_pylist() == ["b", "c"]
    assert RowIds.open(path)[1] == "a"


def test_ids_may_be_integers_and_without_any_they_are_the_numbers_of_rows(path: Path) -> None:
    assert PackedRows.open(pack(path, make_table([7, 5]))).row_ids.take(
        np.arange(2)
    ).to_pylist() == [7, 5]
    assert RowIds.open(pack(path, make_table([7, 5]).drop_columns(["id"])))[1] == 1


def test_what_rows_share_is_that_of_the_collection_and_other_columns_are_ignored(
    path: Path,
) -> None:
    table = make_table(
        ["a", "b"], where=["FALSE", "FALSE"], filter=["x", "y"], relation=["no", None]
    )
    matcher = Matcher()
    put(matcher, pack(path, table, where="speed > 3", relation="within"), 10)
    assert matcher.match(at(1.5, speed=4)) == [10, 11]
    assert matcher.match(at(1.5, speed=3)) == []
    shown = "S_WITHIN(geometry, POLYGON((2 0, 2 2, 0 2, 0 0, 2 0))) AND (speed > 3)"
    assert matcher.get(10).text == shown
    assert matcher.get(11).subscriber == 7


def test_conditions_may_be_json_and_the_geometry_another_attribute(path: Path) -> None:
    where = {"op": ">", "args": [{"property": "speed"}, 3]}
    matcher = Matcher()
    put(matcher, pack(path, make_table(["a"]), where=where, attribute="area"), 1)
    assert matcher.match({"area": "POINT(1 1)", "speed": 4}) == [1]
    assert matcher.match(at(1, speed=4)) == []


def test_conditions_may_read_the_same_geometry(path: Path) -> None:
    where = "S_INTERSECTS(geometry, POLYGON((0 0, 1.2 0, 1.2 9, 0 9, 0 0)))"
    matcher = Matcher()
    put(matcher, pack(path, make_table(["a", "b"]), where=where), 0)
    assert matcher.match(at(1.1)) == [0, 1]
    assert matcher.match(at(1.5)) == []


def test_a_column_of_geometries_may_have_any_name(path: Path) -> None:
    table = make_table(["a"]).rename_columns(["where", "id"])
    matcher = Matcher()
    put(matcher, pack(path, table), 0)
    assert matcher.match(at(1)) == [0]


def test_bad_rows_are_refused_all_at_once_with_their_places(path: Path) -> None:
    texts = [
        "POLYGON((0 0, 2 2, 2 0, 0 2, 0 0))",
        "POINT(1 1)",
        None,
        "POLYGON((0 0, 1 0, 1 1, 0 0))",
    ]
    table = pa.table({"id": ["a", "b", "c", None], "geometry": texts})
    with pytest.raises(BadRows) as refused:
        pack(path, table, relation="ehInside")
    assert refused.value.message == "table: 4 of 4 subscriptions cannot be used"
    first, second, third, fourth = refused.value.rows
    assert first.startswith("row 0, id 'a', column 'geometry': invalid Polygon: self-intersection")
    assert second == "row 1, id 'b', column 'relation': ehInside takes areas, not a Point"
    assert third.startswith("row 2, id 'c', column 'geometry': the geometry is missing")
    assert fourth == "row 3, column 'id': the id is missing"
    assert not path.exists()


def test_an_id_that_comes_twice_is_refused(path: Path) -> None:
    with pytest.raises(InvalidInput, match="row 2, id 'a': an earlier row has the id 'a', too"):
        pack(path, make_table(["a", "b", "a"]))


def test_bad_lines_are_named_as_editors_count_them(path: Path, tmp_path: Path) -> None:
    good = {
        "type": "Feature",
        "id": 1,
        "properties": {},
        "geometry": {"type": "Point", "coordinates": [1, 1]},
    }
    bad = good | {"id": 2, "geometry": {"type": "Point", "coordinates": [1]}}
    source = tmp_path / "rows.geojsonl"
    source.write_text("\n".join(map(json.dumps, [good, {**good, "id": 3}, bad])))
    with pytest.raises(InvalidInput, match=r"rows.geojsonl, line 3 \(row 2\), id 2, column"):
        pack(path, source)


def test_a_table_without_geometries_is_refused(path: Path) -> None:
    with pytest.raises(InvalidInput, match="there is no column of geometries; the columns are: id"):
        pack(path, pa.table({"id": [1]}))


def test_more_rows_than_the_limit_are_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("contrada.matcher.packed_rows.COLLECTION_ROWS_MAX", 2)
    with pytest.raises(InvalidInput, match=r"too many rows; the limit is 2 \("):
        pack(path, make_table(["a", "b", "c"]))


def test_rows_in_another_coordinate_system_are_refused(path: Path) -> None:
    metadata = {
        "ARROW:extension:name": "geoarrow.wkb",
        "ARROW:extension:metadata": '{"crs": "EPSG:3857"}',
    }
    table = make_table(["a"])
    field = table.schema.field(0).with_metadata(metadata)
    table = table.cast(table.schema.set(0, field))
    with pytest.raises(InvalidInput, match="is in EPSG:3857, not in OGC:CRS84; reproject it"):
        pack(path, table, crs="OGC:CRS84")
    packed = PackedRows.open(pack(path, table))
    assert packed.crs == "EPSG:3857"
    with pytest.raises(InvalidInput, match="EPSG:3857"):
        ReadyRows(Matcher(crs="OGC:CRS84"), packed)


def test_no_rows_are_a_collection_too(path: Path) -> None:
    matcher = Matcher()
    packed = put(matcher, pack(path, make_table([])), 5)
    assert len(packed) == len(matcher) == 0


def test_a_bad_condition_is_refused(path: Path) -> None:
    with pytest.raises(InvalidInput, match="wind >"):
        pack(path, make_table(["a"]), where="wind >")


def test_a_snapshot_that_is_not_of_rows_is_refused(path: Path) -> None:
    matcher = Matcher()
    matcher.add("gale", "wind > 3")
    matcher.save(path)
    with pytest.raises(InvalidInput, match="has no column 'rows"):
        PackedRows.open(path)


def test_a_file_with_too_few_ids_of_rows_is_refused(path: Path) -> None:
    file = open_sections(pack(path, make_table([1, 2])))
    other = path.with_name("other.contrada")
    write_sections(other, file.settings, {**file.columns, "rows.ids": np.array([1])})
    with pytest.raises(InvalidInput, match="it has 1 ids for 2 rows"):
        PackedRows.open(other)
    write_sections(other, file.settings, {**file.columns, "rows.ids": np.array([1.0, 2.0])})
    with pytest.raises(InvalidInput, match="is not one of integers"):
        RowIds.open(other)


def test_a_matcher_that_simplifies_otherwise_refuses_rows(path: Path) -> None:
    packed = PackedRows.open(pack(path, make_table(["a"])))
    with pytest.raises(InvalidInput, match="was packed for another kind of matcher"):
        ReadyRows(Matcher(filters_max=3), packed)


# Taking the place of others


@pytest.mark.parametrize("count", [3, 2_000])
def test_rows_take_the_place_of_others_at_once(path: Path, count: int) -> None:
    other = path.with_name("other.contrada")
    matcher = Matcher()
    matcher.add(1, geometry="POLYGON((0 0, 9 0, 9 9, 0 9, 0 0))")
    old = put(matcher, pack(path, make_table(list(range(count)))), 10_000)
    assert matcher.match(at(1.5)) == [1, 10_000, 10_001]
    before = matcher._subscriptions
    put(matcher, pack(other, make_table(list(range(count)), west=0.75)), 20_000, old.range)
    assert matcher.match(at(1.5)) == [1, 20_000]
    assert len(matcher) == count + 1
    assert len(before) == count + 1
    assert 10_000 in before


def test_rows_that_were_ready_before_others_changed_take_their_place_as_well(path: Path) -> None:
    matcher = Matcher()
    matcher.add_many(make_table(list(range(2_000)), west=50))
    old = put(matcher, pack(path, make_table(list(range(1_500)))), 10_000)
    ready = ReadyRows(matcher, PackedRows.open(path, first=20_000), old.range)
    matcher.add(5_000, geometry="POINT(1.5 1)")
    matcher.add_many(pa.table({"id": [6_000 + i for i in range(50)], "filter": ["TRUE"] * 50}))
    matcher.remove(5)
    ready.put()
    assert matcher.match(at(1.5))[:2] == [5_000, 6_000]
    assert matcher.match(at(1.5))[-2:] == [20_000, 20_001]
    events = make_table([1])
    pairs = matcher.match_many(events)["subscription"].to_pylist()
    assert pairs == sorted(pairs)
    assert pairs == matcher.match({"geometry": shapely.box(0, 0, 2, 2)})
    assert len(matcher) == 1_999 + 51 + 1_500


def test_rows_that_were_merged_with_others_go_all_the_same(path: Path) -> None:
    matcher = Matcher()
    old = put(matcher, pack(path, make_table(["a", "b", "c"])), 10)
    matcher.add(1, geometry="POINT(1.5 1)")
    put(matcher, pack(path, make_table(["d"])), 20, old.range)
    assert list(matcher) == [1, 20]


def test_few_subscriptions_beside_many_may_be_among_those_replaced(path: Path) -> None:
    matcher = Matcher()
    matcher.add_many(make_table(list(range(2_000)), west=50))
    matcher.add(10_000, geometry="POINT(1 1)")
    put(matcher, pack(path, make_table(["a"])), 10_001, range(10_000, 10_001))
    assert matcher.match(at(1)) == [10_001]


def test_rows_may_replace_others_than_was_expected(path: Path) -> None:
    matcher = Matcher()
    old = put(matcher, pack(path, make_table(["a", "b"])), 10)
    ready = ReadyRows(matcher, PackedRows.open(path, first=20), old.range)
    matcher.remove(10)
    ready.put(range(11, 11))
    assert list(matcher) == [11, 20, 21]


def test_rows_are_removed_all_at_once(path: Path) -> None:
    matcher = Matcher()
    matcher.add(1, geometry="POINT(1.5 1)")
    old = put(matcher, pack(path, make_table(list(range(1_500)))), 10)
    remove_range(matcher, old.range)
    assert list(matcher) == [1]
    remove_range(matcher, old.range)
    assert matcher.match(at(1.5)) == [1]


def test_numbers_that_are_taken_are_refused(path: Path) -> None:
    matcher = Matcher()
    matcher.add(11, "TRUE")
    packed = PackedRows.open(pack(path, make_table(["a", "b"])), first=10)
    with pytest.raises(InvalidInput, match="some of the numbers 10 to 11 are taken"):
        ReadyRows(matcher, packed)
    ReadyRows(matcher, packed, range(11, 12)).put()
    assert list(matcher) == [10, 11]


def test_a_matcher_with_texts_for_ids_is_refused(path: Path) -> None:
    matcher = Matcher()
    matcher.add("gale", "TRUE")
    with pytest.raises(InvalidInput, match="the ids of the matcher are not integers"):
        ReadyRows(matcher, PackedRows.open(pack(path, make_table(["a"]))))


def test_large_collections_are_not_merged_with_others(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segment_rows, "_ALONE_MIN", 1_200)
    matcher = Matcher()
    for number in range(3):
        put(matcher, pack(path, make_table(list(range(1_300)))), 10_000 * number)
    small = make_table(list(range(1_000)))
    put(matcher, pack(path, small), 50_000)
    put(matcher, pack(path, small), 60_000)
    for thread in threading.enumerate():
        if thread.name == "contrada-merge":  # of the two small ones
            thread.join()
    assert matcher.stats()["segments"] == 4
    assert matcher.match(at(1.5)) == [n * 10_000 + i for n in (0, 1, 2, 5, 6) for i in (0, 1)]


def test_a_snapshot_of_the_matcher_has_the_rows_too(path: Path) -> None:
    matcher = Matcher()
    put(matcher, pack(path, make_table(["a", "b"])), 10)
    saved = path.with_name("saved.contrada")
    matcher.save(saved)
    again = Matcher.open(saved)
    assert again.match(at(1.5)) == [10, 11]
    assert again.get(11).subscriber == 7
