"""`match_many(keep=…)`: columns of the events beside the pairs."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import geopandas
import numpy as np
import pyarrow as pa
import pytest
import shapely

from contrada import InvalidInput, Matcher
from contrada.limits import COLUMN_DEPTH_MAX
from contrada.matcher import keeping
from contrada.matcher.keeping import row_bytes

BOW_TIE = "POLYGON((0 0,4 4,4 0,0 4,0 0))"
BOX = "POLYGON((0 0,4 0,4 4,0 4,0 0))"
NESTED = pa.struct([("speed", pa.int16()), ("stops", pa.list_(pa.string()))])
COLUMNS: dict[str, Any] = {
    "id": pa.array(["x", "y", "z"]),
    "geometry": pa.array(["POINT(1 1)", "POINT Z (2 2 7)", "POINT(9 9)"]),
    "n": pa.array([1, None, 3], pa.int8()),
    "at": pa.array([datetime(2026, 1, 2, tzinfo=UTC), None, None], pa.timestamp("ns", "UTC")),
    "day": pa.array([date(2026, 1, 2), None, None]),
    "kind": pa.array(["bus", None, "tram"]).dictionary_encode(),
    "ride": pa.array([{"speed": 3, "stops": ["a", None]}, None, None], NESTED),
    "a.b": pa.array([1.5, None, float("nan")]),
    "a": pa.array([{"b": 1.0}, {"b": 2.0}, {"b": 3.0}]),
}


def watching_matcher() -> Matcher:
    matcher = Matcher()
    matcher.add("box", geometry=BOX)
    matcher.add("both", "id <> 'z'")
    return matcher


def test_columns_of_every_type_come_with_their_values() -> None:
    table = pa.table(COLUMNS)
    keep = [name for name in COLUMNS if name != "geometry"]
    found = watching_matcher().match_many(table, keep=keep)
    assert found.column_names == ["event", "subscription", *keep]
    assert found.select(["event", "subscription"]).to_pylist() == [
        {"event": event, "subscription": subscription}
        for event in "xy"
        for subscription in ("both", "box")
    ]
    for name in keep:
        assert found.schema.field(name).type == table.schema.field(name).type
        twice = table[name].combine_chunks().take(pa.array([0, 0, 1, 1]))
        assert found[name].to_pylist() == twice.to_pylist(), name


def test_geometries_are_wkb_as_they_came() -> None:
    found = watching_matcher().match_many(pa.table(COLUMNS), keep=["geometry"])
    assert found.schema.field("geometry").type == pa.binary()
    shapes = shapely.from_wkb(found["geometry"].to_pylist())
    assert shapely.to_wkt(shapes).tolist() == ["POINT (1 1)"] * 2 + ["POINT Z (2 2 7)"] * 2


def test_the_primary_geometry_is_called_geometry_whatever_its_name() -> None:
    frame = geopandas.GeoDataFrame({"geom": shapely.points([1, 9], 1)}, geometry="geom")
    found = watching_matcher().match_many(frame, keep=["geometry", "geom"])
    assert found["geometry"].to_pylist() == found["geom"].to_pylist() != []


@pytest.mark.parametrize("area", ["text", "bytes", "mapping"])
@pytest.mark.parametrize("is_list", [True, False])
def test_kept_geometries_are_those_that_were_mended(area: str, is_list: bool) -> None:
    matcher = Matcher()
    matcher.add("wide", "S_INTERSECTS(area, POINT(1 2)) OR n > 0")
    shapes = shapely.from_wkt([BOW_TIE, BOX, None])
    areas: dict[str, Any] = {
        "text": shapely.to_wkt(shapes).tolist(),
        "bytes": shapely.to_wkb(shapes).tolist(),
        "mapping": [None if s is None else {**s.__geo_interface__} for s in shapes],
    }
    rows = [{"n": 1, "area": value, "geometry": BOW_TIE} for value in areas[area]]
    events: Any = rows if is_list else pa.Table.from_pylist(rows)
    found = matcher.match_many(events, keep=["area", "geometry"], repair=True)
    assert len(found) == 3
    expected = shapely.make_valid(shapes)
    written = shapely.from_wkb(found["area"].to_pylist())
    assert shapely.equals(written[:2], expected[:2]).all()
    assert written[2] is None
    assert shapely.is_valid(shapely.from_wkb(found["geometry"].to_pylist())).all(), "unread, too"
    assert matcher.stats()["events_mended"] == 1, "what nobody reads is not counted"


def test_what_nobody_reads_and_cannot_be_mended_is_null_where_it_is_kept() -> None:
    matcher = Matcher()
    matcher.add(1, "n = 1")
    infinite = shapely.to_wkb(shapely.from_wkt("LINESTRING(0 0,1 inf)"))
    events = pa.table({"n": [1, 1], "geometry": pa.array([infinite, b"no WKB"])})
    plain = matcher.match_many(events, keep=["geometry"])
    assert plain["geometry"].to_pylist() == [infinite, None]
    mended = matcher.match_many(events, keep=["geometry"], repair=True)
    assert mended["geometry"].to_pylist() == [None, None]


def test_events_of_a_list_give_their_attributes() -> None:
    events = [
        {"id": "x", "geometry": shapely.Point(1, 1), "n": 1, "odd": np.int64(3)},
        {"id": "z", "geometry": shapely.Point(9, 9), "n": 5},
        {
            "type": "Feature",
            "id": "y",
            "geometry": {"type": "Point", "coordinates": [2, 2]},
            "properties": {"n": 2, "shape": shapely.Point(0, 0)},
        },
    ]
    keep = ["n", "geometry", "odd", "shape"]
    found = watching_matcher().match_many(events, keep=keep)
    assert found.column_names == ["event", "subscription", *keep]
    assert found["n"].to_pylist() == [1, 1, 2, 2]
    assert found["odd"].to_pylist() == [3, 3, None, None]
    assert found["geometry"].to_pylist() == [shapely.Point(x, x).wkb for x in (1, 1, 2, 2)]
    assert found["shape"].to_pylist() == [None, None, *[shapely.Point(0, 0).wkb] * 2]
    (batch,) = watching_matcher().match_many(events, keep=keep, batches=True)
    assert batch.to_pylist() == found.to_pylist()


@pytest.mark.parametrize(
    ("keep", "words"),
    [
        (["n", "sped"], "'sped' to keep; (it|they) ha(s|ve) id, geometry, n"),
        (["event"], "'event' cannot be kept: the answer already has a column of that name; rename"),
        (["subscription"], "'subscription' cannot be kept"),
        ("n", r"write keep=\['n'\]"),
        ([3], "keep takes names of columns, not 3"),
        (3, "keep takes a sequence of column names, not 3"),
        (None, "keep takes a sequence of column names, not None"),
        ([["n"]], "keep takes names of columns, not "),
    ],
)
def test_what_cannot_be_kept_is_refused(keep: Any, words: str) -> None:
    rows = [{"id": "x", "geometry": "POINT(1 1)", "n": 1, "event": "storm"}]
    for events in (rows, pa.Table.from_pylist(rows)):
        with pytest.raises(InvalidInput, match=words):
            watching_matcher().match_many(events, keep=keep)


def test_values_of_several_kinds_in_a_list_are_refused_by_their_name() -> None:
    events = [{"id": "x", "n": 1}, {"id": "y", "n": "two"}]
    with pytest.raises(InvalidInput, match="the attribute 'n' cannot be kept as a column"):
        watching_matcher().match_many(events, keep=["n"])


def nested(depth: int, *, is_mapping: bool) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = {"a": value} if is_mapping else [value]
    return value


@pytest.mark.parametrize("is_mapping", [True, False])
def test_a_nested_value_is_kept_as_deep_as_a_column_may_be(is_mapping: bool) -> None:
    value = nested(COLUMN_DEPTH_MAX, is_mapping=is_mapping)
    found = watching_matcher().match_many([{"id": "x", "n": value}], keep=["n"])
    assert found["n"].to_pylist() == [value]


@pytest.mark.parametrize("depth", [COLUMN_DEPTH_MAX + 1, 100_000])
@pytest.mark.parametrize("is_mapping", [True, False])
def test_a_value_that_is_nested_too_deep_is_refused_before_arrow_sees_it(
    depth: int, is_mapping: bool
) -> None:
    events = [{"id": "x", "n": 1}, {"id": "y", "n": nested(depth, is_mapping=is_mapping)}]
    words = r"row 1, attribute 'n': .*deeper than 64 levels \(COLUMN_DEPTH_MAX\); leave it out"
    with pytest.raises(InvalidInput, match=words):
        watching_matcher().match_many(events, keep=["n"])


def test_a_value_that_holds_itself_is_refused() -> None:
    list_: list[Any] = []
    list_.append(list_)
    mapping: dict[str, Any] = {}
    mapping["a"] = mapping
    array = np.empty(1, object)
    array[0] = array
    for value in (list_, mapping, array, [{"a": list_}], [mapping.values()]):
        with pytest.raises(InvalidInput, match=r"row 0, attribute 'n': .*COLUMN_DEPTH_MAX"):
            watching_matcher().match_many([{"id": "x", "n": value}], keep=["n"])


def test_a_value_whose_lists_stand_in_many_places_is_refused_if_it_would_be_huge() -> None:
    value: Any = [1]
    for _ in range(10):
        value = [value, value]
    event = {"id": "x", "n": value}
    assert watching_matcher().match_many([event], keep=["n"])["n"].to_pylist() == [value]
    for _ in range(30):
        value = [value, value]
    with pytest.raises(InvalidInput, match=r"row 0, attribute 'n': .*SHARED_VALUES_MAX"):
        watching_matcher().match_many([{**event, "n": value}], keep=["n"])


@pytest.mark.parametrize("batches", [True, False])
def test_large_values_with_many_matches_come_in_pieces(
    batches: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "_PIECE_BYTES_MAX", 1_000)
    matcher = Matcher()
    matcher.add_many(pa.table({"id": range(40), "filter": ["n > 0"] * 40}))
    notes = [[f"{n}" * 100] for n in range(5)]
    events = pa.table({"n": [0, 1, 2, 3, 4], "notes": notes})
    kept = ["notes", "n"]
    pieces = list(matcher.match_many(events, keep=kept, batches=True))
    if not batches:
        pieces = matcher.match_many(events, keep=kept).to_batches()
    assert max(piece.nbytes for piece in pieces) < 2_500
    rows = [row for piece in pieces for row in piece.to_pylist()]
    assert [row["notes"] for row in rows] == [notes[n] for n in range(1, 5) for _ in range(40)]
    assert [row["subscription"] for row in rows] == list(range(40)) * 4


def test_the_size_of_a_value_follows_what_it_holds() -> None:
    long, short = "x" * 1_000, "x"
    kinds: dict[pa.DataType, list[Any]] = {
        pa.string(): [long, short, None],
        pa.list_(pa.string()): [[long], [short], None],
        pa.large_list(pa.string()): [[short] * 50, [], None],
        pa.list_(pa.int64(), 2): [[1, 2], [3, 4], None],
        pa.map_(pa.string(), pa.string()): [[("a", long)], [("a", short)], None],
        pa.struct([("a", pa.string())]): [{"a": long}, {"a": short}, None],
        pa.dictionary(pa.int8(), pa.string()): [long, short, None],
    }
    for kind, values in kinds.items():
        array = pa.array([None, *values], kind).slice(1)
        first, second, _ = row_bytes(array).tolist()
        assert first >= second + (0 if kind == pa.list_(pa.int64(), 2) else 300), kind
    assert row_bytes(pa.array([1, None])).tolist() == [8, 8]
