"""Bad rows: refused by row, column and value with nothing changed, or left out and counted."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import shapely
from shapely.geometry import LineString, MultiPolygon, Point, Polygon, box

from contrada import InvalidInput, Matcher
from exact_engines import every_engine

SQUARE = box(0, 0, 4, 4)
BOW_TIE = Polygon([(0, 0), (2, 2), (2, 0), (0, 2)])
CURVE = shapely.to_wkb(LineString([(0, 0), (1, 1), (2, 0)])).replace(b"\x02", b"\x08", 1)
NAN, INFINITY = float("nan"), float("inf")
HOLLOW = SQUARE.wkb.replace(struct.pack("<dd", 4, 4), struct.pack("<dd", NAN, NAN))

GEOMETRIES = [
    pytest.param(Point(NAN, 1), r"\(nan, 1.0\) at vertex 0", id="nan-point"),
    pytest.param(Point(1, INFINITY), r"\(1.0, inf\) at vertex 0", id="infinite-point"),
    pytest.param(
        LineString([(0, 0), (1, 1), (-INFINITY, 0)]),
        r"\(-inf, 0.0\) at vertex 2",
        id="infinite-line",
    ),
    pytest.param(HOLLOW, r"\(nan, nan\) at vertex 1", id="nan-area"),
    pytest.param(BOW_TIE, r"self-intersection at \(1, 1\).*0x0103", id="self-crossing"),
    pytest.param(
        MultiPolygon([box(0, 0, 2, 2), box(1, 1, 3, 3)]),
        "invalid MultiPolygon.*0x0106",
        id="overlap",
    ),
    pytest.param(
        shapely.from_wkt(
            "POLYGON((0 0,9e160 0,9e160 9e160,0 9e160,0 0),"
            "(3e160 3e160,5e160 3e160,4e160 5e160,3e160 3e160))"
        ),
        "invalid Polygon: GEOS cannot judge it.*0x0103",
        id="beyond-geos",
    ),
    pytest.param(CURVE, "curve.*0x0108", id="curve"),
    pytest.param(SQUARE.wkb[:40], "cannot read.*40 bytes", id="truncated"),
    pytest.param(b"", "cannot read.*0 bytes", id="no-bytes"),
    pytest.param(struct.pack("<BIdd", 1, 77, 0, 0), "cannot read.*0x014d", id="unknown-type"),
    pytest.param("POINT(1 x)", r"cannot read.*'POINT\(1 x\)'", id="wkt"),
    pytest.param("POLYGON((0 0,2 2,2 0,0 2,0 0))", "self-intersection.*'POLYGON", id="wkt-invalid"),
]


def encode(value: Any, like: Any) -> Any:
    """A geometry as what the column holds: texts if `like` is one, else WKB."""
    if not isinstance(value, shapely.Geometry):
        return value
    return shapely.to_wkt(value) if isinstance(like, str) else shapely.to_wkb(value)


def watched_matcher() -> Matcher:
    matcher = Matcher()
    matcher.add("old", geometry=SQUARE, where="n > 0")
    return matcher


def check_unchanged(matcher: Matcher) -> None:
    assert list(matcher) == ["old"]
    assert matcher.match({"geometry": Point(1, 1), "n": 1}) == ["old"]
    stats = matcher.stats()
    assert stats["subscriptions"] == 1
    assert stats["subscriptions_mended"] == stats["subscriptions_left_out"] == 0
    assert stats["events_mended"] == stats["events_left_out"] == 0
    assert matcher.crs is None


# Subscriptions


@pytest.mark.parametrize(
    ("value", "message"),
    [
        *GEOMETRIES,
        pytest.param(Polygon(), "empty", id="empty"),
        pytest.param(Point(), "empty", id="empty-point"),
        pytest.param(shapely.GeometryCollection([Point()]), "empty", id="empty-collection"),
        pytest.param("POLYGON EMPTY", "empty", id="empty-wkt"),
        pytest.param("somewhere", "not WKT, hex WKB or GeoJSON .*'somewhere'", id="no-wkt"),
        pytest.param(None, "missing, and there is no filter", id="null"),
    ],
)
def test_a_bad_geometry_refuses_the_whole_table(value: Any, message: str) -> None:
    matcher = watched_matcher()
    geometry = [encode(SQUARE, value), encode(SQUARE, value), encode(value, value)]
    table = pa.table({"id": ["x", "y", "z"], "geometry": geometry})
    with pytest.raises(InvalidInput, match=f"table, row 2, id 'z', column 'geometry': .*{message}"):
        matcher.add_many(table)
    check_unchanged(matcher)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {"relation": ["within", "inside"]},
            "row 1, id 'y', column 'relation': unknown relation 'inside'",
        ),
        ({"relation": [None, ""]}, "row 1, id 'y', column 'relation': unknown relation ''"),
        ({"relation": [None, "T*F**F**"]}, r"row 1, id 'y', column 'relation': .*'T\*F\*\*F\*\*'"),
        ({"where": ["n > 0", "n LIEK 1"]}, "row 1, id 'y', column 'where': .*LIEK.*'n LIEK 1'"),
        ({"where": ["n > 0", ""]}, "row 1, id 'y', column 'where': the predicate is empty"),
        ({"attribute": ["area", ""]}, "row 1, id 'y', column 'attribute': .*''"),
        ({"attribute": [None, 5]}, "row 1, id 'y', column 'attribute': .*5"),
        ({"subscriber": [None, 1.5]}, "row 1, id 'y', column 'subscriber': .*1.5"),
        ({"filter": [None, "n > 0"]}, "row 1, id 'y', column 'filter': .*geometry as well"),
        ({"id": ["x", None]}, "row 1, column 'id': the id is missing"),
        ({"id": ["x", "x"]}, "row 1, id 'x': .*'x' is already taken"),
        ({"id": ["x", "old"]}, "row 1, id 'old': .*'old' is already taken"),
        ({"id": [7, 8]}, ".*7 follows 'old'"),
        ({"id": [1.5, 2.5]}, "column 'id': .*not double"),
        ({"id": [True, False]}, "column 'id': .*not bool"),
    ],
)
def test_a_bad_value_refuses_the_whole_table(columns: dict[str, Any], message: str) -> None:
    matcher = watched_matcher()
    table = pa.table({"id": ["x", "y"], "geometry": [SQUARE.wkb] * 2} | columns)
    with pytest.raises(InvalidInput, match=f"table[,:] {message}"):
        matcher.add_many(table)
    check_unchanged(matcher)


def test_a_relation_that_takes_areas_refuses_a_line_by_its_row() -> None:
    matcher = watched_matcher()
    shapes = [SQUARE.wkb, LineString([(0, 0), (1, 1)]).wkb]
    table = pa.table({"id": ["x", "y"], "geometry": shapes, "relation": ["ehInside"] * 2})
    with pytest.raises(
        InvalidInput, match=r"row 1, id 'y', column 'relation': ehInside .* LineString"
    ):
        matcher.add_many(table)
    check_unchanged(matcher)


def test_a_bad_filter_shows_its_row_and_itself() -> None:
    matcher = watched_matcher()
    table = pa.table({"id": ["x", "y"], "filter": ["n > 0", "n >< 1"]})
    with pytest.raises(
        InvalidInput, match=r"row 1, id 'y', column 'filter': .*character 3.*'n >< 1'"
    ):
        matcher.add_many(table)
    check_unchanged(matcher)


def test_rows_are_counted_through_all_batches() -> None:
    matcher = watched_matcher()
    table = pa.table({"id": list("abcde"), "filter": ["n > 0"] * 4 + ["n >"]})
    with pytest.raises(InvalidInput, match="table, row 4, id 'e', column 'filter'"):
        matcher.add_many(table.to_reader(max_chunksize=2))
    check_unchanged(matcher)


def test_a_taken_id_is_named_by_its_row_though_rows_before_it_were_left_out() -> None:
    matcher = watched_matcher()
    shapes = [None, SQUARE.wkb, SQUARE.wkb]
    table = pa.table({"code": ["x", "y", "old"], "geometry": shapes})
    with pytest.raises(InvalidInput, match=r"table, row 2, id 'old': .*'old' is already taken"):
        matcher.add_many(table, id="code", repair=True)
    check_unchanged(matcher)


@pytest.mark.parametrize("length", [0, 2])
def test_a_named_column_that_is_not_there_is_refused(length: int) -> None:
    matcher = watched_matcher()
    table = pa.table({"key": ["x", "y"], "filter": ["n > 0"] * 2}).slice(0, length)
    for method in (matcher.add_many, matcher.match_many):
        with pytest.raises(InvalidInput, match=r"no column 'code' .*; it has key, filter"):
            method(table, id="code")
    check_unchanged(matcher)


def test_a_table_without_filter_and_geometry_is_refused() -> None:
    matcher = watched_matcher()
    with pytest.raises(InvalidInput, match="needs a column 'filter' or 'geometry'"):
        matcher.add_many(pa.table({"id": ["x"], "geom": [SQUARE.wkb]}))
    check_unchanged(matcher)


@pytest.mark.parametrize("source", [5, [{"id": "x", "filter": "n > 0"}], None])
def test_what_is_no_table_is_refused(source: Any) -> None:
    matcher = watched_matcher()
    with pytest.raises(InvalidInput, match=type(source).__name__):
        matcher.add_many(source)
    check_unchanged(matcher)


# Events


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("value", "message"), GEOMETRIES)
def test_a_bad_event_is_refused_by_row_column_and_value(
    value: Any, message: str, threads: int
) -> None:
    matcher = watched_matcher()
    good = encode(Point(1, 1), value)
    table = pa.table({"geometry": [good, encode(value, value), good], "n": [1, 1, 1]})
    with pytest.raises(InvalidInput, match=f"table, row 1, column 'geometry': .*{message}"):
        matcher.match_many(table, threads=threads)
    check_unchanged(matcher)


@pytest.mark.parametrize(("value", "message"), GEOMETRIES)
def test_a_bad_event_of_a_list_is_refused_by_row_and_attribute(value: Any, message: str) -> None:
    matcher = watched_matcher()
    message = message.partition(".*")[0]
    events = [{"geometry": Point(1, 1), "n": 1}, {"geometry": value, "n": 1}]
    with pytest.raises(InvalidInput, match=f"row 1, attribute 'geometry': .*{message}"):
        matcher.match_many(events)
    with pytest.raises(InvalidInput, match=f"the event, attribute 'geometry': .*{message}"):
        matcher.match(events[1])
    check_unchanged(matcher)


def test_a_bad_geometry_is_refused_in_whatever_attribute_a_subscription_reads() -> None:
    matcher = watched_matcher()
    matcher.add("other", geometry=SQUARE, attribute="place.area")
    places = pa.array([{"area": Point(1, 1).wkb}, {"area": BOW_TIE.wkb}])
    with pytest.raises(InvalidInput, match=r"row 1, column 'place.area': .*self-intersection"):
        matcher.match_many(pa.table({"place": places}))
    with pytest.raises(InvalidInput, match=r"attribute 'place.area': .*self-intersection"):
        matcher.match({"place": {"area": BOW_TIE}})


def test_a_null_id_of_an_event_is_refused_by_row_and_column() -> None:
    matcher = watched_matcher()
    table = pa.table({"id": ["x", None], "n": [1, 1]})
    with pytest.raises(InvalidInput, match=r"table, row 1, column 'id': the id is missing"):
        matcher.match_many(table)
    with pytest.raises(InvalidInput, match=r"table, row 1, column 'id': the id is missing"):
        matcher.match_many(table, id="id")
    check_unchanged(matcher)


@pytest.mark.parametrize("value", [None, 1.5, True, 2**63])
def test_a_bad_id_in_a_list_is_refused_by_row_and_value(value: Any) -> None:
    matcher = watched_matcher()
    shown = "missing" if value is None else str(value)
    with pytest.raises(InvalidInput, match=f"row 1, .*id.*{shown}"):
        matcher.match_many([{"code": 1}, {"code": value}], id="code")
    check_unchanged(matcher)


@pytest.mark.parametrize("event", [None, 5, "text", [1]])
def test_an_event_that_is_no_mapping_is_refused(event: Any) -> None:
    matcher = watched_matcher()
    with pytest.raises(InvalidInput, match="the event must be a mapping"):
        matcher.match(event)
    with pytest.raises(InvalidInput, match="row 1 must be a mapping"):
        matcher.match_many([{}, event])


@pytest.mark.parametrize(
    "geometry",
    [Point(), Polygon(), shapely.GeometryCollection(), None],
    ids="point polygon collection null".split(),
)
def test_an_empty_or_missing_geometry_is_an_ordinary_non_match(geometry: Any) -> None:
    matcher = watched_matcher()
    matcher.add("apart", geometry=SQUARE, relation="disjoint")
    matcher.add("not", "NOT S_INTERSECTS(geometry, POINT(0 0))")
    assert matcher.match({"geometry": geometry, "n": 1}) == []
    column = pa.array([None if geometry is None else shapely.to_wkb(geometry)], pa.binary())
    assert matcher.match_many(pa.table({"geometry": column, "n": [1]})).num_rows == 0
    assert matcher.stats()["events_left_out"] == 0


# Mended or left out


def dirty_events() -> dict[str, list[Any]]:
    shapes = [Point(1, 1), BOW_TIE, Point(NAN, 1), Point(), None, Point(1, 1), Point(2, 2)]
    return {
        "id": ["good", "bow", "infinite", "empty", "null", None, "last"],
        "geometry": [None if shape is None else shapely.to_wkb(shape) for shape in shapes],
        "n": [1] * len(shapes),
    }


def run_dirty(form: str, **options: Any) -> tuple[Any, list[Any], dict[str, Any]]:
    matcher, heard = watched_matcher(), []
    columns = dirty_events()
    events: Any = pa.table(columns)
    if form == "list":
        events = [
            dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
        ]
    threads = 2 if form == "threads" else 1
    found = matcher.match_many(
        events, id="id", threads=threads, on_bad=lambda *bad: heard.append(bad), **options
    )
    return found["event"].to_pylist(), heard, matcher.stats()


forms = pytest.mark.parametrize("form", ["table", "threads", "list"])


@forms
def test_quarantine_leaves_bad_events_out_counts_them_and_says_which(form: str) -> None:
    found, heard, stats = run_dirty(form, quarantine=True)
    assert found == ["good", "last"]
    assert [(row, id_) for row, id_, _ in heard] == [(1, "bow"), (2, "infinite"), (5, None)]
    for (_, _, reason), want in zip(
        heard, ["self-intersection", "non-finite", "missing"], strict=True
    ):
        assert want in reason
    assert (stats["events"], stats["events_mended"], stats["events_left_out"]) == (7, 0, 3)


@forms
def test_repair_mends_events_and_leaves_out_what_it_cannot_mend(form: str) -> None:
    found, heard, stats = run_dirty(form, repair=True)
    assert found == ["good", "bow", "last"]
    assert [(row, id_) for row, id_, _ in heard] == [(1, "bow"), (2, "infinite"), (5, None)]
    assert heard[0][2].startswith("mended: ")
    assert (stats["events"], stats["events_mended"], stats["events_left_out"]) == (7, 1, 2)


@every_engine
@pytest.mark.parametrize("form", ["table", "list"])
def test_what_geos_can_neither_judge_nor_mend_is_left_out(engine: str, form: str) -> None:
    beyond = (
        "POLYGON((0 0,9e160 0,9e160 9e160,0 9e160,0 0),"
        "(3e160 3e160,5e160 3e160,4e160 5e160,3e160 3e160))"
    )
    rows = pa.table({"id": ["good", "beyond"], "geometry": [SQUARE.wkt, beyond]})
    matcher, heard = Matcher(engine), []
    with pytest.raises(InvalidInput, match=r"row 1.*GEOS cannot judge it"):
        matcher.add_many(rows)
    assert matcher.add_many(rows, repair=True, on_bad=lambda *bad: heard.append(bad)) == 1
    with pytest.raises(InvalidInput, match=r"subscription 'a', .*GEOS cannot judge it"):
        matcher.add("a", geometry=beyond, repair=True)
    events: Any = rows if form == "table" else rows.to_pylist()
    for repair in (True, False):
        found = matcher.match_many(
            events, repair=repair, quarantine=True, on_bad=lambda *bad: heard.append(bad)
        )
        assert found["event"].to_pylist() == ["good"]
    with pytest.raises(InvalidInput, match=r"attribute 'geometry': .*GEOS cannot judge it"):
        matcher.match({"geometry": beyond}, repair=True)
    assert [(row, id_) for row, id_, _ in heard] == [(1, "beyond")] * 3
    assert all("GEOS cannot judge it" in reason for _, _, reason in heard)


def test_quarantine_takes_anything_in_a_list_that_is_no_event() -> None:
    matcher, heard = watched_matcher(), []
    events = [{"n": 1, "geometry": Point(1, 1)}, "noise"]
    found = matcher.match_many(events, quarantine=True, on_bad=lambda *bad: heard.append(bad))
    assert found["event"].to_pylist() == [0]
    assert [(row, id_) for row, id_, _ in heard] == [(1, None)]
    assert matcher.stats()["events_left_out"] == 1


@pytest.mark.parametrize(
    "filter_",
    [
        "S_INTERSECTS(geometry, POINT(1 1))",
        "NOT S_INTERSECTS(geometry, POINT(9 9))",
        "dwithin(geometry, POINT(1 1), 9000000)",
        "NOT dwithin(geometry, POINT(1 1), 9)",
        "S_EQUALS(geometry, geometry)",
        "NOT S_INTERSECTS(geometry, area)",
        "n = 1",
        "geometry IS NULL OR n = 1",
        "id IS NULL OR n = 1",
    ],
)
@every_engine
def test_a_bad_event_matches_no_kind_of_filter(engine: str, filter_: str) -> None:
    bad_point, good_point = shapely.to_wkb(Point(NAN, 1)), Point(2, 1).wkb
    table = pa.table(
        {
            "id": ["bow", "point", None, "other"],
            "geometry": [BOW_TIE.wkb, bad_point, good_point, good_point],
            "area": [good_point, good_point, good_point, BOW_TIE.wkb],
            "n": [1] * 4,
        }
    )
    matcher = Matcher(engine)
    matcher.add("filter", filter_)
    matcher.add("area", "S_INTERSECTS(area, POINT(7 7)) AND S_INTERSECTS(geometry, area)")
    assert matcher.match_many(table, quarantine=True).num_rows == 0


@pytest.mark.parametrize(
    "filter_",
    [
        "dwithin(geometry, POINT(1 0.5), 9)",
        "NOT dwithin(geometry, POINT(0.5 1), 9)",
        "S_INTERSECTS(geometry, POINT(1 0.5))",
        "NOT S_WITHIN(geometry, geometry)",
    ],
)
@every_engine
def test_a_mended_event_is_matched_as_mended(engine: str, filter_: str) -> None:
    matcher = Matcher(engine)
    matcher.add("untrue", filter_)
    matcher.add("true", "S_INTERSECTS(geometry, POINT(0.5 1))")
    found = matcher.match_many(pa.table({"geometry": [BOW_TIE.wkb]}), repair=True)
    assert found["subscription"].to_pylist() == ["true"]
    assert matcher.match({"geometry": BOW_TIE}, repair=True) == ["true"]
    assert matcher.why("true", {"geometry": BOW_TIE}, repair=True).matched


@pytest.mark.parametrize("events", [pa.table({"n": [1]}), [{"n": 1}]])
def test_a_listener_that_cannot_be_called_is_refused_at_once(events: Any) -> None:
    matcher = Matcher()
    matcher.add("a", "n = 1")
    for call in (matcher.match_many, matcher.match_frame):
        with pytest.raises(InvalidInput, match="on_bad must be a function, not 5"):
            call(events, on_bad=5)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="on_bad must be a function, not 5"):
        matcher.match_many(events, on_bad=5, batches=True)  # type: ignore[call-overload]
    with pytest.raises(InvalidInput, match="on_bad must be a function, not 5"):
        matcher.add_many(pa.table({"filter": ["TRUE"]}), on_bad=5)  # type: ignore[arg-type]


BEYOND = 2**63
LARGE_IDS = [[5, BEYOND], [5, 2**64 - 1], [5, BEYOND, -3], [5, 2**70], [5, -(2**63) - 1]]


def id_rows(ids: list[int]) -> list[dict[str, Any]]:
    return [{"a": 5, "id": id_} for id_ in ids]


def id_lines(ids: list[int], folder: Path) -> str:
    path = folder / "events.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in id_rows(ids)))
    return str(path)


def id_features(ids: list[int], folder: Path) -> str:
    path = folder / "events.geojson"
    features = [
        {"type": "Feature", "id": row["id"], "properties": {"a": 5}, "geometry": None}
        for row in id_rows(ids)
    ]
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}, indent=0))
    return str(path)


@pytest.mark.parametrize("make", [id_lines, id_features, lambda ids, _: id_rows(ids)])
@pytest.mark.parametrize("ids", LARGE_IDS)
def test_an_id_beyond_64_bits_makes_only_its_row_a_bad_one(
    ids: list[int], make: Any, tmp_path: Path
) -> None:
    matcher = Matcher()
    matcher.add("s", "a = 5")
    events = make(ids, tmp_path)
    with pytest.raises(InvalidInput, match=rf"row 1.*the id {ids[1]} does not fit in 64 bits"):
        matcher.match_many(events)
    heard: list[Any] = []
    found = matcher.match_many(
        events, quarantine=True, on_bad=lambda row, _, reason: heard.append((row, reason))
    )
    assert found.column("event").to_pylist() == [ids[0], *ids[2:]]
    assert [(row, f"the id {ids[1]} does not fit" in reason) for row, reason in heard] == [
        (1, True)
    ]
    assert matcher.match_many(events, repair=True).num_rows == len(ids) - 1


def test_an_id_of_a_table_beyond_64_bits_makes_only_its_row_a_bad_one() -> None:
    matcher = Matcher()
    matcher.add("s", "a = 5")
    ids = pa.array([5, BEYOND, None], pa.uint64())
    for column in (ids, ids.dictionary_encode()):
        table = pa.table({"key": column, "a": [5, 5, 5]})
        with pytest.raises(
            InvalidInput, match=f"row 1, column 'key': the id {BEYOND} does not fit"
        ):
            matcher.match_many(table, id="key")
        found = matcher.match_many(table, id="key", quarantine=True)
        assert found.to_pylist() == [{"event": 5, "subscription": "s"}]


@pytest.mark.parametrize("ids", LARGE_IDS)
def test_an_id_beyond_64_bits_in_a_column_of_another_name_makes_only_its_row_a_bad_one(
    ids: list[int], tmp_path: Path
) -> None:
    matcher = Matcher()
    matcher.add("s", "a = 5")
    path = tmp_path / "events.jsonl"
    rows = [{"key": id_, "a": 5, "geometry": "POINT (1 1)"} for id_ in ids]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(InvalidInput, match=rf"line 2.*the id {ids[1]} does not fit in 64 bits"):
        matcher.match_many(path, id="key")
    found = matcher.match_many(path, id="key", quarantine=True, keep=["key"])
    assert found.column("event").to_pylist() == [ids[0], *ids[2:]]
    assert found.column("key").to_pylist() == [ids[0], *ids[2:]]
    frame = matcher.match_frame(path, id="key", quarantine=True)
    assert frame["event"].to_list() == [ids[0], *ids[2:]]
    lines = [{"key": id_, "filter": "a = 5"} for id_ in ids]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(InvalidInput, match=rf"line 2.*the id {ids[1]} does not fit in 64 bits"):
        Matcher().add_many(path, id="key")
    assert Matcher().add_many(path, id="key", quarantine=True) == len(ids) - 1


def test_a_subscription_id_beyond_64_bits_makes_only_its_row_a_bad_one(tmp_path: Path) -> None:
    lines = [{"id": id_, "filter": "a = 5"} for id_ in (5, BEYOND, -2)]
    (tmp_path / "x.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    matcher = Matcher()
    with pytest.raises(InvalidInput, match=f"line 2.*the id {BEYOND} does not fit in 64 bits"):
        matcher.add_many(tmp_path / "x.jsonl")
    assert matcher.add_many(tmp_path / "x.jsonl", quarantine=True) == 2
    assert sorted(matcher) == [-2, 5]


HALF = "\\ud800"


@pytest.mark.parametrize("value", [f'"{HALF}"', f'["b", "{HALF}"]', f'{{"m": "a{HALF}b"}}'])
def test_half_a_surrogate_pair_makes_only_its_row_a_bad_one(value: str, tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    good = value.replace(HALF, "x")
    path.write_text(f'{{"t": {good}, "n": 1}}\n\n{{"t": {value}, "n": 1}}\n{{"t": {good}}}\n')
    matcher = Matcher()
    matcher.add("n", "n = 1")
    assert matcher.match_many(path).column("event").to_pylist() == [0, 1]
    with pytest.warns(UserWarning, match=r"row 1, column 't.*half a surrogate pair; 1 such value"):
        assert matcher.match_many(path, keep=["t"]).column("t").to_pylist()[1] is None
    matcher.add("t", "t IS NOT NULL OR t.m IS NOT NULL")
    with pytest.raises(InvalidInput, match=r"line 3 \(row 1\), column 't': a text has half a"):
        matcher.match_many(path)
    found = matcher.match_many(path, quarantine=True)
    assert found.column("event").to_pylist() == [0, 0, 2]


def test_half_a_surrogate_pair_in_a_subscription_makes_only_its_row_a_bad_one(
    tmp_path: Path,
) -> None:
    path = tmp_path / "subscriptions.jsonl"
    path.write_text(
        '{"id": "a", "geometry": "POINT(1 1)", "where": "n = 1"}\n'
        f'{{"id": "b", "geometry": "POINT(1 1)", "where": "n = \'{HALF}\'"}}\n'
    )
    matcher = Matcher()
    with pytest.raises(InvalidInput, match=r"line 2 .*half a surrogate pair"):
        matcher.add_many(path)
    assert matcher.add_many(path, quarantine=True) == 1
