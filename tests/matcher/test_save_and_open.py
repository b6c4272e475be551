"""A matcher that was saved and opened again is the same matcher, whatever it holds.

That goes for both formats: the columns that `save` writes, and the rows of before. What is special
about columns is in `test_column_files.py`.
"""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from contrada import InvalidInput, Matcher, Relation
from contrada.files.sections import open_sections
from contrada.files.snapshot import open_snapshot, write_snapshot
from contrada.files.snapshot_header import read_digest
from contrada.matcher import saving
from contrada.matcher.saving import open_any
from contrada.matching.engines import ENGINES
from contrada.model.relation import RELATIONS
from matcher.test_engines_agree import ENGINES as EXACT_ENGINES
from matcher.test_engines_agree import (
    Node,
    call,
    event_tables,
    named,
    predicates,
    some_changes,
)
from snapshots import FORMATS, check_same, rows_in, save_as, write_settings
from strategies import geometries

pytestmark = pytest.mark.filterwarnings("ignore:.*which is never true")  # of other types

SQUARE = shapely.box(0, 0, 4, 4)
RING = json.loads(shapely.to_geojson(SQUARE))
OF_BEFORE = Path(__file__).parent / "snapshots" / "format-1.contrada"


def reopen(matcher: Matcher, path: Path) -> Matcher:
    """Save a matcher and open it again; what came back is the same, and saved alike."""
    for format_ in FORMATS:
        again = reopen_as(format_, matcher, path)
    return again


def reopen_as(format_: int, matcher: Matcher, path: Path) -> Matcher:
    save_as(format_, matcher, path)
    content = path.read_bytes()
    again = Matcher.open(path)
    assert list(again) == list(matcher)
    for id_ in matcher:
        ours, theirs = matcher.get(id_), again.get(id_)
        assert (type(theirs.id), theirs.subscriber) == (type(ours.id), ours.subscriber)
        assert repr(theirs.predicate.expression) == repr(ours.predicate.expression)
        assert theirs.predicate.expression == ours.predicate.expression
    assert (again.engine, again.simplify, again.crs) == (
        matcher.engine,
        matcher.simplify,
        matcher.crs,
    )
    save_as(format_, again, path)
    assert path.read_bytes() == content
    return again


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "fences.contrada"


# Files of before


IN_FILE_OF_BEFORE = {
    "area": "S_INTERSECTS(geometry, POLYGON((0 0, 4 0, 4 4, 0 4, 0 0)))",
    "bits": (
        f"n IN (0.1, -0.0, 5e-324, {2**63 - 1}, {2**70}) OR S_EQUALS(geometry, POINT(0.1 -0.0))"
    ),
    "both": "S_WITHIN(track, POLYGON((0 0, 4 0, 4 4, 0 0))) AND wind > 90 AND kind = 'gale'",
    "größe": (
        "name LIKE 'é%' OR NOT (T_DURING(t, INTERVAL('2020-01-01', '..')) AND "
        "A_CONTAINS(tags, ('x', 1)))"
    ),
    "mixed": (
        "S_INTERSECTS(geometry, GEOMETRYCOLLECTION(POINT(1 2), LINESTRING(0 0, 1 1))) AND "
        "ehInside(area, POLYGON((0 0, 9 0, 9 9, 0 0)))"
    ),
    "near": "dwithin(geometry, POINT(11.3 43.3), 500) AND speed + 2 > limit",
    "never": "FALSE",
}
SUBSCRIBERS_OF_BEFORE: dict[str, str | int] = {"area": "ops", "both": 7, "near": "ops"}


MOMENTS_OF_BEFORE = OF_BEFORE.with_name("format-2-moments-in-skeletons.contrada")
IN_MOMENTS_OF_BEFORE = (
    "t > TIMESTAMP('2020-01-01T00:00:00Z')",
    "t > TIMESTAMP('2021-01-01T00:00:00.123456789Z')",
    "t > TIMESTAMP('2020-01-01T00:00:00Z') AND n > 5 AND name = 'a'",
    "n > 7 AND t <= DATE('2022-07-01')",
    "T_DURING(t, INTERVAL('2020-01-01', '2020-12-31'))",
    "T_DURING(t, INTERVAL('2021-01-01', '..')) OR n = 3",
    "T_AFTER(t, INTERVAL(opened, DATE('2020-05-05')))",
    "t = DATE('0900-01-01') OR t = DATE('2020-02-29')",
    "NOT T_AFTER(t, DATE('2020-03-01')) AND S_INTERSECTS(geometry, POLYGON((0 0, 9 0, 9 9, 0 0)))",
    "n > 1",
    "t IN (DATE('2020-01-01'), DATE('2021-01-01'))",
)


def test_a_file_of_columns_with_moments_in_its_skeletons_still_opens(path: Path) -> None:
    """Format 2 had no pool of moments at first."""
    matcher, fresh = Matcher.open(MOMENTS_OF_BEFORE), Matcher()
    for number, text in enumerate(IN_MOMENTS_OF_BEFORE):
        fresh.add(f"s{number}", text, subscriber=number % 3 or None)
    check_same(fresh, matcher)
    for event in (
        {"t": "2020-06-01", "n": 3, "name": "a", "geometry": "POINT(5 1)"},
        {"t": "2021-01-01", "n": 8, "opened": "2020-01-01"},
    ):
        assert matcher.match(event) == fresh.match(event) != []
    matcher.save(path)
    content = path.read_bytes()
    fresh.save(path)
    assert path.read_bytes() == content
    added = Matcher()
    added.add_many(MOMENTS_OF_BEFORE)
    check_same(fresh, added)


def test_a_file_without_moments_has_no_columns_for_them(path: Path) -> None:
    matcher = Matcher()
    matcher.add("a", "n > 5")
    matcher.save(path)
    names = open_sections(path).columns
    assert not [name for name in names if name.startswith(("moments", "intervals"))]


def test_a_snapshot_file_of_before_still_opens() -> None:
    matcher, fresh = Matcher.open(OF_BEFORE), Matcher("crtree", split="constraint")
    assert repr(matcher) == "<Matcher engine='crtree' subscriptions=7 crs='EPSG:4326'>"
    assert list(matcher) == list(IN_FILE_OF_BEFORE)
    for id_, text in IN_FILE_OF_BEFORE.items():
        fresh.add(id_, text, subscriber=SUBSCRIBERS_OF_BEFORE.get(id_))
        ours, theirs = fresh.get(id_), matcher.get(id_)
        assert repr(theirs.predicate.expression) == repr(ours.predicate.expression)
        assert theirs == ours
    storm = {"geometry": "POINT(1 2)", "track": "POINT(3 1)", "wind": 95, "kind": "gale"}
    assert matcher.match(storm) == ["area", "both"]
    with pytest.raises(InvalidInput, match="more than 50 filters"):
        matcher.add("more", " OR ".join(f"n = {n}" for n in range(51)))


def test_the_rows_of_a_file_of_before_can_be_added_and_are_saved_as_columns(path: Path) -> None:
    matcher = Matcher()
    assert matcher.add_many(OF_BEFORE) == 7
    matcher.save(path)
    opened = Matcher.open(path)
    assert opened.crs == "EPSG:4326"
    assert [opened.get(id_) for id_ in opened] == [matcher.get(id_) for id_ in matcher]


# Random subscriptions


random_filters = predicates()
random_wheres = st.none() | predicates().filter(lambda node: isinstance(node, dict))
random_shapes = {kind: geometries(kind) for kind in ("area", None)}


@st.composite
def subscriptions(draw: st.DrawFn) -> dict[str, Any]:
    """What `add` takes: a filter, or a geometry with what goes with it."""
    subscriber = draw(st.sampled_from((None, None, "u", "v", "", 7, -(2**63))))
    if draw(st.booleans()):
        return {"filter": draw(random_filters), "subscriber": subscriber}
    relation = draw(st.sampled_from((*RELATIONS, *Relation, "T*F**F***", "ff*ff****")))
    is_of_areas = isinstance(relation, Relation) or relation.startswith("eh")
    return {
        "geometry": draw(random_shapes["area" if is_of_areas else None]),
        "relation": relation,
        "attribute": draw(st.sampled_from(("geometry", "area", "place.shape", 'a "b"', "größe"))),
        "where": draw(random_wheres),
        "subscriber": subscriber,
    }


def compare_random(
    path: Path, engine: str, events: pa.Table, added: list[dict[str, Any]], changes: list[Any]
) -> None:
    matcher = Matcher(engine)
    for id_, arguments in enumerate(added):
        matcher.add(id_, **arguments)
    for id_, filter_ in changes:
        if filter_ is not None:
            matcher.add(id_, filter_, replace=True, subscriber="w")
        elif id_ in matcher:
            matcher.remove(id_)
    again = reopen(matcher, path)
    answer = matcher.match_many(events, threads=1).to_pylist()
    assert again.match_many(events, threads=1).to_pylist() == answer
    for event in events.to_pylist():
        assert again.match(event) == matcher.match(event)
        assert again.subscribers(event) == matcher.subscribers(event)


some_subscriptions = st.lists(subscriptions(), min_size=1, max_size=6)


@settings(max_examples=80)
@given(st.sampled_from(EXACT_ENGINES), event_tables(), some_subscriptions, some_changes)
def test_random_subscriptions_come_back_and_answer_alike(
    tmp_path_factory: pytest.TempPathFactory,
    engine: str,
    events: pa.Table,
    added: list[dict[str, Any]],
    changes: list[tuple[int, Node]],
) -> None:
    path = tmp_path_factory.getbasetemp() / "random.contrada"
    compare_random(path, engine, events, added, changes)


@pytest.mark.soak
@given(st.sampled_from(EXACT_ENGINES), event_tables(), some_subscriptions, some_changes)
def test_very_many_random_subscriptions_come_back_and_answer_alike(
    tmp_path_factory: pytest.TempPathFactory,
    engine: str,
    events: pa.Table,
    added: list[dict[str, Any]],
    changes: list[tuple[int, Node]],
) -> None:
    path = tmp_path_factory.getbasetemp() / "random-soak.contrada"
    compare_random(path, engine, events, added, changes)


# Predicates that are easily lost


@pytest.mark.parametrize(
    "filter_",
    [
        *("TRUE", "FALSE", "NULL", "p", "NOT p", "a = NULL", "n > 9007199254740993"),
        "n = 9223372036854775807 OR n = -9223372036854775808 OR n = 1e308",
        "n IN (0.1, 5e-324, 1.7976931348623157e308, -0.0, 0.30000000000000004)",
        "n IN (0, 0.0, FALSE, '0', NULL)",
        "t > TIMESTAMP('2020-01-01T00:00:00.123456789Z') AND t < DATE('9999-12-31')",
        "T_DURING(t, INTERVAL('0001-01-01', '..'))",
        "A_CONTAINS(tags, ('x')) OR A_EQUALS(tags, ((1, 2), (3, 4)))",
        '"say ""hi""" = \'it\'\'s\' AND "and" LIKE \'100\\%\'',
        'S_INTERSECTS("größe . x", POINT(5e-324 1.7976931348623157e308)) OR "日本" = 1',
        "S_WITHIN(POINT(1e-7 1e22), geometry)",
        "relate(geometry, POINT(1 1), 'T*F**F***') OR S_TOUCHES(a, b)",
        "dwithin(geometry, POINT(0.1 0.2), radius * 2)",
        "S_INTERSECTS(geometry, BBOX(170, 0, -170, 10)) OR n > 1",
        "S_INTERSECTS(geometry, GEOMETRYCOLLECTION(POINT(1 2), LINESTRING(0 0, 1 1)))",
        "n + 1 * 2 > (2 + 3) * m AND CASEI(s) = CASEI('ÄÖ')",
        "n > 1 AND (n > 2 OR m < 3 AND (p OR q))",
        call("a_contains", named("tags"), []),
    ],
)
def test_such_a_predicate_comes_back(filter_: Any, path: Path) -> None:
    matcher = Matcher()
    matcher.add("s", filter_)
    matcher.add("both", geometry=SQUARE, where=filter_ if filter_ != "NULL" else "n = NULL")
    reopen(matcher, path)


def test_a_predicate_too_long_for_text_comes_back(path: Path) -> None:
    matcher = Matcher()
    tests = (call("<>", named("n"), n) for n in range(5_000))
    matcher.add("s", call("=", call("and", *tests), named("p")))
    reopen(matcher, path)


@pytest.mark.parametrize("coordinate", [5e-324, 1e-300, 0.1 + 0.2, -0.0, 2.0**53 + 2, 1e300])
def test_a_coordinate_comes_back_to_the_last_bit(coordinate: float, path: Path) -> None:
    matcher = Matcher()
    point = shapely.Point(coordinate, -coordinate)
    matcher.add(1, geometry=point, relation="equals")
    matcher.add(2, f"S_EQUALS(geometry, POINT({coordinate!r} {-coordinate!r})) OR n > 1")
    again = reopen(matcher, path)
    assert again.match({"geometry": point}) == [1, 2]
    save_as(1, matcher, path)
    assert rows_in(path)[0]["geometry"] == shapely.to_wkb(point, byte_order=1)


@pytest.mark.parametrize("format_", FORMATS)
def test_a_number_beyond_all_doubles_is_refused_when_saving(format_: int, path: Path) -> None:
    matcher = Matcher()
    matcher.add("a", "n > 1")
    save_as(format_, matcher, path)
    digest = read_digest(path)
    matcher.add("b", f"n > {2**1023} + {2**1023 - 1}", replace=True)
    with pytest.raises(InvalidInput, match="subscription 'b' cannot be saved: the number is out"):
        save_as(format_, matcher, path)
    assert read_digest(path) == digest
    matcher.add("b", f"s = '{'9' * 400}'", replace=True)
    reopen(matcher, path)


# What a row of format 1 looks like


def test_a_geometry_is_stored_as_wkb_and_anything_else_as_a_filter(path: Path) -> None:
    matcher = Matcher()
    matcher.add(1, f"S_WITHIN(area, {SQUARE.wkt})", subscriber="ops")
    matcher.add(2, f"S_CONTAINS({SQUARE.wkt}, geometry) AND n > 1")
    matcher.add(3, geometry=SQUARE, relation=Relation.INSIDE, where="n > 1 AND m > 1")
    matcher.add(4, f"relate(place.shape, {SQUARE.wkt}, 'T*F**F***')")
    matcher.add(5, f"S_WITHIN(geometry, {SQUARE.wkt}) OR n > 1")
    reopen_as(1, matcher, path)
    greater = '{"op":">","args":[{"property":"n"},1]}'
    wkb = shapely.to_wkb(SQUARE, byte_order=1)
    first, second, third, fourth, fifth = rows_in(path)
    plain = {"geometry": wkb, "attribute": "geometry"}
    assert first == {**plain, "id": 1, "relation": "within", "attribute": "area"} | {
        "subscriber": "ops"
    }
    assert second == {**plain, "id": 2, "relation": "within", "where": greater}
    assert third.keys() == {*plain, "id", "relation", "where"}
    assert (third["relation"], json.loads(third["where"])["op"]) == ("ehInside", "and")
    assert fourth == {**plain, "id": 4, "relation": "T*F**F***", "attribute": "place.shape"}
    assert fifth.keys() == {"id", "filter"}


def test_rows_lie_in_batches_of_bounded_size_in_the_order_of_ids(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    matcher = Matcher()
    for id_ in (3, -1, 10, 7, 2):
        matcher.add(id_, geometry=shapely.Point(id_, 0).buffer(1))
    for name, limit in (("_ROWS_MAX", 2), ("_BYTES_MAX", 2_000)):
        with monkeypatch.context() as patch:
            patch.setattr(saving, name, limit)
            save_as(1, matcher, path)
        lengths = [batch.num_rows for batch in open_snapshot(path).batches()]
        assert lengths == [2, 2, 1]
        assert [row["id"] for row in rows_in(path)] == list(matcher) == [-1, 2, 3, 7, 10]
        assert list(Matcher.open(path)) == list(matcher)


def test_geopandas_reads_the_geometries_with_their_crs(path: Path) -> None:
    matcher = Matcher(crs="EPSG:2154")
    matcher.add("a", geometry=SQUARE)
    save_as(1, matcher, path)
    frame = geopandas.GeoDataFrame.from_arrow(pa.ipc.open_file(path).read_all())
    assert frame.crs == "EPSG:2154"
    assert list(frame.geometry) == [SQUARE]


@pytest.mark.parametrize("format_", FORMATS)
def test_the_rows_of_a_snapshot_can_be_added_to_another_matcher(format_: int, path: Path) -> None:
    matcher = Matcher("scan", crs="EPSG:2154")
    matcher.add(1, geometry=SQUARE, where="n > 1", subscriber="u")
    matcher.add(2, "n < 0", subscriber=5)
    save_as(format_, matcher, path)
    other = Matcher()
    other.add(0, "TRUE")
    assert other.add_many(path) == 2
    assert other.crs == "EPSG:2154"
    assert [other.get(id_) for id_ in (1, 2)] == [matcher.get(id_) for id_ in (1, 2)]
    assert other.match({"n": -1}) == [0, 2]


# The whole matcher


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_is_saved_and_answers_alike(engine: str, path: Path) -> None:
    rng = np.random.default_rng(5)
    matcher = Matcher(engine)
    shapes = shapely.buffer(shapely.points(rng.uniform(-50, 50, (60, 2))), 9, quad_segs=4)
    relations = ["intersects", "disjoint", "contains", "within", "overlaps", "touches"] * 10
    wheres = [None, "n > 2", "n < 5 OR s = 'a'"] * 20
    table = pa.table({"geometry": shapely.to_wkb(shapes), "relation": relations, "where": wheres})
    matcher.add_many(table)
    again = reopen(matcher, path)
    events: Any = shapely.points(rng.uniform(-50, 50, (80, 2)))
    events[::2] = shapely.buffer(events[::2], 7, quad_segs=2)
    batch = pa.table({"geometry": shapely.to_wkb(events), "n": [i % 7 for i in range(80)]})
    answer = matcher.match_many(batch)
    assert answer.num_rows > 100
    assert again.match_many(batch).equals(answer)


def test_the_options_of_an_engine_and_the_settings_come_back(path: Path) -> None:
    options = {
        "evaluator": "discrete",
        "density": np.float64(12.5),
        "universe": (0.0, 0.0, 10.0, 10.0),
        "halo": False,
        "split": "constraint",
    }
    matcher = Matcher("crtree", simplify=False, crs="EPSG:2154", filters_max=2, **options)
    matcher.add("a", geometry=SQUARE, relation="covers", where="n > 1 AND n > 2")
    again = reopen(matcher, path)
    assert again.get("a").predicate == matcher.get("a").predicate
    stated = open_any(path).settings
    assert stated["options"] == {**options, "universe": [0.0, 0.0, 10.0, 10.0]}
    assert stated["subscriptions"] == 1
    with pytest.raises(InvalidInput, match="more than 2 filters"):
        again.add("b", "n = 1 OR n = 2 OR n = 3")
    with pytest.raises(InvalidInput, match="one part without holes"):
        again.add("c", geometry=shapely.MultiPolygon([SQUARE, shapely.box(5, 5, 6, 6)]))


@pytest.mark.parametrize("is_simplified", [True, False])
def test_a_predicate_is_saved_as_it_was_said_and_simplified_again(
    is_simplified: bool, path: Path
) -> None:
    matcher = Matcher(simplify=is_simplified)
    matcher.add(1, "n > 1 AND n > 2")
    again = reopen(matcher, path)
    assert len(again.get(1).predicate.filters[0].constraints) == (1 if is_simplified else 2)
    assert again.get(1) == matcher.get(1)


def test_only_the_living_are_saved_whatever_came_before(path: Path, tmp_path: Path) -> None:
    matcher = Matcher()
    for id_ in range(20):
        matcher.add(id_, f"n > {id_}", subscriber="old")
    for id_ in range(0, 20, 2):
        matcher.remove(id_)
    matcher.add(5, geometry=SQUARE, replace=True)
    fresh = Matcher()
    fresh.add(5, geometry=SQUARE)
    for id_ in (19, 17, 15, 13, 11, 9, 7, 3, 1):
        fresh.add(id_, f"n > {id_}", subscriber="old")
    reopen(matcher, path)
    fresh.save(tmp_path / "fresh")
    assert (tmp_path / "fresh").read_bytes() == path.read_bytes()
    assert read_digest(tmp_path / "fresh") == read_digest(path)


def test_an_empty_matcher_takes_ids_of_either_kind_after_it_was_opened(path: Path) -> None:
    for id_ in (1, "a"):
        again = reopen(Matcher(), path)
        assert len(again) == 0
        again.add(id_, "TRUE")
        assert again.match({}) == [id_]


@pytest.mark.parametrize("ids", [[2**63 - 1, -(2**63), 0], ["é", "", "b", "\U0001f600", "10", "9"]])
def test_ids_come_back_in_their_kind_and_order(ids: list[Any], path: Path) -> None:
    matcher = Matcher()
    for id_ in ids:
        matcher.add(id_, "TRUE")
    again = reopen(matcher, path)
    assert list(again) == sorted(ids)
    with pytest.raises(InvalidInput, match="all strings or all integers"):
        again.add("x" if isinstance(ids[0], int) else 1, "TRUE")


@pytest.mark.parametrize(
    "subscribers", [[None, None], [3, None, -1], ["u", None, "3"], [3, None, "3", "u", 4], [5, "5"]]
)
def test_subscribers_come_back_in_their_kind(subscribers: list[Any], path: Path) -> None:
    matcher = Matcher()
    for id_, subscriber in enumerate(subscribers):
        matcher.add(id_, "TRUE", subscriber=subscriber)
    again = reopen(matcher, path)
    assert again.subscribers({}) == matcher.subscribers({})
    save_as(1, matcher, path)
    assert [row.get("subscriber") for row in rows_in(path)] == subscribers


def test_the_crs_comes_back_and_binds(path: Path) -> None:
    frame = geopandas.GeoDataFrame({"id": [1]}, geometry=[SQUARE], crs="EPSG:3857")
    matcher = Matcher()
    assert reopen(matcher, path).crs is None
    matcher.add_many(frame)
    again = reopen(matcher, path)
    assert again.crs == "EPSG:3857"
    with pytest.raises(InvalidInput, match="is in EPSG:4326, the matcher in EPSG:3857"):
        again.match_many(frame.to_crs("EPSG:4326"))


def test_an_opened_matcher_can_be_changed_and_the_file_stays(path: Path) -> None:
    matcher = Matcher()
    matcher.add("a", "n > 1")
    matcher.add("b", geometry=SQUARE)
    matcher.save(path)
    again = Matcher.open(path)
    again.remove("a")
    again.add("c", "n > 0", subscriber="u")
    with pytest.raises(InvalidInput, match="already taken"):
        again.add("b", "n > 0")
    assert again.match({"geometry": "POINT(1 1)", "n": 5}) == ["b", "c"]
    assert list(Matcher.open(path)) == ["a", "b"]


# What is refused


@pytest.mark.parametrize("format_", FORMATS)
def test_a_damaged_snapshot_is_refused(format_: int, path: Path) -> None:
    matcher = Matcher()
    matcher.add("a", geometry=SQUARE)
    save_as(format_, matcher, path)
    content = path.read_bytes()
    path.write_bytes(content.replace(b"intersects", b"intercepts"))
    with pytest.raises(InvalidInput, match=r"fences\.contrada: is damaged: its SHA-256 is "):
        Matcher.open(path)
    path.write_bytes(content[:-1])
    with pytest.raises(InvalidInput, match=r"fences\.contrada: is truncated: "):
        Matcher.open(path)


def rewrite(format_: int, path: Path, **changes: Any) -> None:
    """Write a snapshot of a matcher with other settings, as another version might."""
    save_as(format_, Matcher(), path)
    stated = {name: v for name, v in open_any(path).settings.items() if name not in changes}
    added = {name: value for name, value in changes.items() if value is not None}
    write_settings(path, {**stated, **added})


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"engine": "quux"}, "unknown engine 'quux'; choose one of strtree"),
        ({"options": {"speed": 5}}, "engine 'strtree' has no option 'speed'; it has: none"),
        ({"filters_max": 0}, "filters_max must be a number >= 1, not 0"),
        ({"crs": "nowhere"}, 'crs: unknown coordinate system "nowhere"'),
        ({"simplify": None}, "is not a snapshot of a matcher: settings are missing: simplify"),
    ],
)
def test_settings_that_this_version_does_not_have_are_refused(
    changes: dict[str, Any], message: str, format_: int, path: Path
) -> None:
    rewrite(format_, path, **changes)
    with pytest.raises(InvalidInput, match=rf"fences\.contrada: {message}"):
        Matcher.open(path)


@pytest.mark.parametrize("format_", FORMATS)
def test_settings_that_are_new_are_passed_over(format_: int, path: Path) -> None:
    rewrite(format_, path, colour="red")
    assert len(Matcher.open(path)) == 0


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"filter": "n LIEK 1"}, "row 1, column 'filter': unknown operator \"LIEK\""),
        ({}, "row 1, column 'relation': there is neither a filter nor a geometry"),
        (
            {"geometry": SQUARE.wkb, "relation": "beside", "attribute": "geometry"},
            "row 1, column 'relation': unknown relation 'beside'",
        ),
        ({"geometry": b"\x01\x02"}, "a geometry cannot be read: "),
    ],
)
def test_a_row_that_this_version_cannot_read_is_refused_by_its_place(
    row: dict[str, Any], message: str, path: Path
) -> None:
    matcher = Matcher()
    matcher.add(1, "n > 1")
    save_as(1, matcher, path)
    snapshot = open_snapshot(path)
    rows = pa.RecordBatch.from_pylist([*rows_in(path), {"id": 2, **row}], snapshot.schema)
    write_snapshot(path, snapshot.schema, snapshot.settings, [rows])
    with pytest.raises(InvalidInput, match=rf"fences\.contrada.*: {message}|, {message}"):
        Matcher.open(path)


def test_other_columns_than_those_of_a_matcher_are_refused(path: Path) -> None:
    save_as(1, Matcher(), path)
    snapshot = open_snapshot(path)
    write_snapshot(path, pa.schema([("id", pa.int64())]), snapshot.settings, [])
    with pytest.raises(InvalidInput, match="it has the columns id, not id, filter, geometry"):
        Matcher.open(path)


def test_a_folder_that_is_not_there_is_refused_and_the_matcher_goes_on(tmp_path: Path) -> None:
    matcher = Matcher()
    matcher.add(1, "TRUE")
    with pytest.raises(InvalidInput, match="nowhere/x: cannot be written: "):
        matcher.save(tmp_path / "nowhere" / "x")
    with pytest.raises(InvalidInput, match="nowhere/x: cannot be read: "):
        Matcher.open(tmp_path / "nowhere" / "x")
    assert list(tmp_path.iterdir()) == []
    assert matcher.match({}) == [1]


# Many threads


def test_a_snapshot_taken_while_others_write_is_one_of_the_versions(path: Path) -> None:
    matcher = Matcher()
    is_done = threading.Event()
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)

    def write() -> None:
        try:
            for first in range(0, 400, 2):
                filters = [f"n > {first}", f"n > {first + 1}"]
                matcher.add_many(pa.table({"id": [first, first + 1], "filter": filters}))
        finally:
            is_done.set()

    writer = threading.Thread(target=write)
    writer.start()
    lengths: list[int] = []
    try:
        while not is_done.is_set() or not lengths:
            matcher.save(path)
            ids = list(Matcher.open(path))
            assert ids == list(range(len(ids)))
            lengths.append(len(ids))
    finally:
        writer.join()
        sys.setswitchinterval(before)
    assert all(length % 2 == 0 for length in lengths)
    assert lengths == sorted(lengths)


def test_savers_of_one_path_leave_a_whole_snapshot(path: Path) -> None:
    matchers = [Matcher() for _ in range(3)]
    for number, matcher in enumerate(matchers):
        for id_ in range(50 * (number + 1)):
            matcher.add(id_, f"n > {id_}")
    threads = [
        threading.Thread(target=lambda m=matcher: [m.save(path) for _ in range(10)])
        for matcher in matchers
    ]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        if path.exists():
            assert len(Matcher.open(path)) in {50, 100, 150}
    for thread in threads:
        thread.join()
    assert list(path.parent.iterdir()) == [path]
