"""Explanations, the relation of two regions, and coordinate systems."""

from __future__ import annotations

import json
from typing import Any

import geopandas
import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import assume, given, settings
from shapely.geometry import LineString, Point, Polygon, box

import contrada
from contrada import InvalidInput, Matcher, Relation
from oracle import egenhofer, relate
from strategies import Pair, geometry_pairs

SQUARE = box(0, 0, 4, 4)
SQUARE_TEXT = "POLYGON((0 0,4 0,4 4,0 4,0 0))"


# Why


def watching_matcher() -> Matcher:
    matcher = Matcher()
    matcher.add("a", f"S_WITHIN(area, {SQUARE_TEXT}) AND (wind > 90 OR NOT calm = TRUE)")
    return matcher


def test_why_shows_each_constraint_with_its_truth_values_and_matrix() -> None:
    why = watching_matcher().why("a", {"area": box(1, 1, 2, 2), "wind": 91, "calm": True})
    assert why.id == "a"
    assert why.matched
    assert why.value is True
    first, second = why.filters
    assert [constraint.value for constraint in first] == [True, True]
    assert [constraint.value for constraint in second] == [True, False]
    assert first[0].text.startswith("S_WITHIN(area, POLYGON")
    assert first[0].matrix == "2FF1FF212"
    assert first[0].event_values == {"area": box(1, 1, 2, 2)}
    assert first[1].text == "wind > 90"
    assert first[1].event_values == {"wind": 91}
    assert first[1].matrix is None


def test_why_tells_false_from_unknown() -> None:
    matcher = watching_matcher()
    outside = matcher.why("a", {"area": box(3, 3, 5, 5), "wind": 91})
    assert (outside.matched, outside.value) == (False, False)
    assert outside.filters[0][0].matrix == "212101212"
    absent = matcher.why("a", {"wind": 91})
    assert (absent.matched, absent.value) == (False, None)
    assert (absent.filters[0][0].value, absent.filters[0][0].matrix) == (None, None)
    assert absent.filters[1][1].value is None
    assert absent.filters[1][1].event_values == {"calm": None}


def test_why_shows_a_negated_constraint_as_true_where_its_test_is_false() -> None:
    matcher = Matcher()
    matcher.add("a", f"NOT S_WITHIN(area, {SQUARE_TEXT})")
    ((outside,),), ((inside,),), ((absent,),) = (
        matcher.why("a", event).filters
        for event in ({"area": Point(9, 9)}, {"area": Point(1, 1)}, {})
    )
    assert outside.text.startswith("NOT S_WITHIN(area")
    assert (outside.value, inside.value, absent.value) == (True, False, None)
    assert (outside.matrix, inside.matrix, absent.matrix) == ("FF0FFF212", "0FFFFF212", None)


def test_why_reads_well() -> None:
    text = str(watching_matcher().why("a", {"area": Point(1, 1), "wind": 80}))
    lines = text.splitlines()
    assert lines[0] == "'a' does not match (unknown)"
    assert lines[1] == "filter 1 of 2"
    assert lines[2].startswith("  true    S_WITHIN(area, POLYGON")
    assert "DE-9IM 0FFFFF212" in lines[2]
    assert lines[3] == "  false   wind > 90  [wind = 80]"
    assert str(watching_matcher().why("a", {"area": Point(1, 1), "wind": 91})).startswith(
        "'a' matches\n"
    )


def test_why_shows_the_matrix_of_reversed_arguments_and_of_two_attributes() -> None:
    matcher = Matcher()
    matcher.add("reversed", f"S_CONTAINS({SQUARE_TEXT}, area)")
    matcher.add("two", "S_TOUCHES(area, other)")
    event = {"area": Point(1, 1), "other": LineString([(1, 1), (2, 2)])}
    (reversed_,), (two,) = (matcher.why(id_, event).filters[0] for id_ in ("reversed", "two"))
    assert (reversed_.value, reversed_.matrix) == (True, "0FFFFF212")
    assert (two.value, two.matrix) == (True, "F0FFFF102")


def test_why_agrees_with_match_on_events_of_all_kinds() -> None:
    matcher = watching_matcher()
    for area in (Point(1, 1), Point(0, 0), Polygon(), None, "x", SQUARE):
        for wind in (80, 91, None, "91"):
            event = {"area": area, "wind": wind, "calm": False}
            assert matcher.why("a", event).matched == (matcher.match(event) == ["a"])


EXCLUSION = "two of its constraints exclude each other"


def test_why_shows_what_was_said_and_why_it_can_never_match() -> None:
    matcher = Matcher()
    matcher.add("never", "x > 10 AND x < 5")
    why = matcher.why("never", {"x": 7})
    assert (why.matched, why.value) == (False, False)
    assert [[c.value for c in filter_] for filter_ in why.filters] == [[False, False]]
    assert str(why).splitlines() == [
        "'never' does not match (false)",
        "filter 1 of 1",
        "  false   x > 10  [x = 7]",
        "  false   x < 5  [x = 7]",
        f"can never match: x > 10 AND x < 5 ({EXCLUSION}: x > 10 and x < 5)",
    ]
    matcher.add("constant", "1 > 2")
    assert str(matcher.why("constant", {})).splitlines() == [
        "'constant' does not match (false)",
        "can never match: FALSE is true for no event",
    ]
    matcher.add("either", "(x > 10 AND x < 5) OR y = 1")
    assert "can never match: x > 10 AND x < 5" in str(matcher.why("either", {"y": 1}))
    matcher.add("null", "NULL")
    assert str(matcher.why("null", {})).splitlines()[1] == (
        "can never match: NULL is true for no event"
    )


def test_why_shows_constraints_that_the_simplifier_took_out() -> None:
    matcher = Matcher()
    matcher.add("a", "x > 10 AND x <> 0")
    why = matcher.why("a", {"x": 0})
    assert [[c.value for c in filter_] for filter_ in why.filters] == [[False, False]]


NOTCHED = "POLYGON((0 0, 4 0, 0 4, 0 0))"
NEAR_MISS = box(2.05, 2.05, 6, 6)  # disjoint, but by less than a halo


@pytest.mark.parametrize(
    ("engine", "options"),
    [
        ("crtree", {"evaluator": "discrete", "universe": (0, 0, 10, 10), "density": 10}),
        ("ahs", {"level": 4, "universe": (0, 0, 10, 10)}),
    ],
)
def test_why_gives_the_answer_of_the_engine_and_says_where_it_is_not_the_exact_one(
    engine: str, options: dict[str, Any]
) -> None:
    matcher = Matcher(engine, **options)
    matcher.add("it", f"NOT ehDisjoint(geometry, {NOTCHED}) AND n > 0")
    event = {"geometry": NEAR_MISS, "n": 1}
    assert matcher.match(event) == ["it"]
    why = matcher.why("it", event)
    assert why.matched
    region, number = why.filters[0]
    assert (region.value, region.exact_value, region.matrix) == (True, False, "FF2FF1212")
    assert (number.value, number.exact_value) == (True, True)
    first, second = str(why).splitlines()[2:]
    assert first.startswith("  true    NOT ehDisjoint(geometry")
    assert "DE-9IM FF2FF1212  (exactly: false)" in first
    assert "exactly" not in second
    assert matcher.why("it", {"n": 1}).value is None
    assert matcher.why("it", {"geometry": box(7, 7, 9, 9), "n": 1}).value is False


@pytest.mark.parametrize("engine", ["scan", "strtree", "crtree", "ahs"])
def test_why_agrees_with_match_in_every_engine(engine: str) -> None:
    matcher = Matcher(engine)
    for name in ("S_WITHIN", "S_DISJOINT", "NOT S_TOUCHES", "ehOverlap", "NOT ehMeet"):
        matcher.add(name, f"{name}(area, {SQUARE_TEXT}) AND (n > 1 OR NOT s LIKE 'a%')")
    for area in (Point(1, 1), Point(0, 0), None, SQUARE, box(2, 2, 9, 9), box(4, 0, 6, 4)):
        for values in ({}, {"n": 2}, {"n": 0, "s": "b"}, {"s": "ab"}):
            event = {"area": area, **values}
            found = matcher.match(event)
            for id_ in matcher:
                why = matcher.why(id_, event)
                assert why.matched == (id_ in found)
                assert engine == "ahs" or "exactly" not in str(why)


def test_why_refuses_an_unknown_id_and_a_bad_event() -> None:
    matcher = watching_matcher()
    with pytest.raises(InvalidInput, match="no subscription has the id 'z'"):
        matcher.why("z", {})
    with pytest.raises(InvalidInput, match=r"attribute 'area': .*self-intersection"):
        matcher.why("a", {"area": Polygon([(0, 0), (2, 2), (2, 0), (0, 2)])})


# Explain


def test_explain_shows_the_normal_form_and_what_serves_each_constraint() -> None:
    explanation = contrada.explain(
        f"S_INTERSECTS(area, {SQUARE_TEXT}) AND (n > 1 OR name LIKE 'a%') OR NOT n = m"
    )
    texts = [[constraint.text for constraint in filter_] for filter_ in explanation.filters]
    assert [len(filter_) for filter_ in texts] == [2, 2, 1]
    assert texts[0][1] == "n > 1"
    assert texts[1][1] == "name LIKE 'a%'"
    assert texts[2] == ["n <> m"]
    served = [[constraint.served_by for constraint in filter_] for filter_ in explanation.filters]
    assert served == [
        ["STRtree of area, intersects", "range of n, vectorised"],
        ["STRtree of area, intersects", "distinct values of name"],
        ["evaluated event by event"],
    ]
    assert explanation.removed == ()


def test_explain_names_the_smallest_box_as_what_finds_a_filter() -> None:
    explanation = contrada.explain(
        f"S_INTERSECTS(area, {SQUARE_TEXT}) AND S_WITHIN(area, POLYGON((-1 0,1 0,1 1,-1 0)))"
    )
    served = [constraint.served_by for constraint in explanation.filters[0]]
    assert served == ["relation of area, on the candidates", "STRtree of area, within"]


@pytest.mark.parametrize(
    ("test", "served"),
    [
        ("dwithin(area, POINT(1 1), 5)", "STRtree of area, dwithin"),
        ("NOT dwithin(area, POINT(1 1), 5)", "evaluated event by event"),
        ("S_DISJOINT(area, POINT(1 1))", "relation of area, on the candidates"),
        ("NOT S_WITHIN(area, POINT(1 1))", "relation of area, on the candidates"),
        ("S_WITHIN(POINT(1 1), area)", "STRtree of area, contains"),
        ("relate(area, POINT(1 1), 'T********')", "STRtree of area, T********"),
        ("relate(area, POINT(1 1), 'F********')", "relation of area, on the candidates"),
        ("S_WITHIN(area, other)", "evaluated event by event"),
        ("n = 2.5", "sorted values of n"),
        ("n = 'a'", "values of n by hash"),
        ("n LIKE 'a%'", "text patterns of n"),
        ("n LIKE 'a_'", "distinct values of n"),
        ("n <> 2.5", "range of n, vectorised"),
        ("n IS NULL", "distinct values of n"),
    ],
)
def test_explain_tells_trees_from_checks(test: str, served: str) -> None:
    ((constraint,),) = contrada.explain(test).filters
    assert constraint.served_by == served


def test_explain_takes_json_a_truth_value_and_a_subscription() -> None:
    by_json = contrada.explain({"op": ">", "args": [{"property": "n"}, 3]})
    assert by_json.text == "n > 3"
    assert by_json.json == {"op": ">", "args": [{"property": "n"}, 3]}
    assert contrada.explain("3 < n") == by_json
    assert contrada.explain(True).filters == ((),)
    assert contrada.explain(False).filters == ()
    matcher = Matcher()
    matcher.add("a", "n > 3")
    assert contrada.explain(matcher.get("a")) == by_json


def test_explain_shows_what_was_removed_from_a_subscription_and_why() -> None:
    text = "(x > 10 AND x <> 0) OR (x > 20 AND y = 1) OR (z > 1 AND z < 0)"
    removed = (
        "x <> 0 (another constraint implies it: x > 10)",
        "z > 1 AND z < 0 (two of its constraints exclude each other: z > 1 and z < 0)",
        "x > 20 AND y = 1 (it implies another filter: x > 10)",
    )
    assert contrada.explain(text).removed == removed
    matcher = Matcher()
    matcher.add("a", text)
    explanation = contrada.explain(matcher.get("a"))
    assert explanation == contrada.explain(text)
    assert f"removed by the simplifier: {removed[0]}" in str(explanation)
    matcher.add(
        "b", geometry=SQUARE, where=f"n > 1 AND n > 0 AND S_WITHIN(geometry, {SQUARE_TEXT})"
    )
    assert len(contrada.explain(matcher.get("b")).removed) == 2
    matcher.add("c", geometry=SQUARE, where="geometry IS NOT NULL AND n > 1 AND n > 0")
    explained = contrada.explain(matcher.get("c"))
    assert len(explained.removed) == 2
    assert [c.text for c in explained.filters[0][1:]] == ["n > 1"]


def test_explain_says_that_nothing_was_removed_where_nothing_was() -> None:
    for matcher in (Matcher(simplify=False), Matcher("ahs")):
        matcher.add("a", "x > 10 AND x <> 0")
        explanation = contrada.explain(matcher.get("a"), engine=matcher.engine)
        assert explanation.removed == ()
        assert len(explanation.filters[0]) == 2
        assert "removed by the simplifier: nothing" in str(explanation)
    assert contrada.explain("x > 10 AND x <> 0", engine="ahs").removed == ()


def test_what_was_removed_is_cut_to_a_readable_length() -> None:
    circle = Point(1, 1).buffer(1, quad_segs=100)
    explanation = contrada.explain(
        f"S_WITHIN(g, {circle.wkt}) AND S_INTERSECTS(g, {circle.buffer(1).wkt})"
    )
    (removal,) = explanation.removed
    assert removal.startswith("S_INTERSECTS(g, POLYGON((")
    assert "…" in removal
    assert len(removal) < 250
    assert "another constraint implies it: S_WITHIN(g, POLYGON((" in removal
    assert len(explanation.filters[0][0].text) > 1_000


@pytest.mark.parametrize(
    ("test", "served"),
    [
        (f"S_INTERSECTS(area, {SQUARE_TEXT})", "CR-tree of area"),
        (f"S_DISJOINT(area, {SQUARE_TEXT})", "CR-tree of area"),
        ("dwithin(area, POINT(1 1), 5)", "CR-tree of area"),
        ("S_WITHIN(area, other)", "evaluated on every event"),
        ("n = 2.5", "values of n by hash"),
        ("n <> 2", "differences from n by hash"),
        ("n > 2", "sorted bounds of n"),
        ("CASEI(n) LIKE 'a%'", "text patterns of n"),
        ("n IS NULL", "presence of n"),
        ("n + 1 > m", "evaluated on every event"),
    ],
)
def test_explain_tells_what_serves_a_constraint_in_a_forwarding_table(
    test: str, served: str
) -> None:
    ((constraint,),) = contrada.explain(test, engine="crtree").filters
    assert constraint.served_by == served
    ((constraint,),) = contrada.explain(test, engine="scan").filters
    assert constraint.served_by == "evaluated on every event"


def test_explain_knows_that_a_forwarding_table_counts_what_is_selective_first() -> None:
    ((found, rest),) = contrada.explain("n = 1 AND m > 2", engine="crtree").filters
    assert found.served_by == "values of n by hash"
    assert rest.served_by == "evaluated where the others hold"
    ((cells, pattern),) = contrada.explain(
        f"S_WITHIN(g, {SQUARE_TEXT}) AND relate(g, {SQUARE_TEXT}, 'T********')", engine="ahs"
    ).filters
    assert (cells.served_by, pattern.served_by) == ("cells of g", "CR-tree of g")


def test_explain_refuses_an_engine_that_there_is_not() -> None:
    with pytest.raises(InvalidInput, match="unknown engine 'btree'"):
        contrada.explain("n > 1", engine="btree")


def test_explain_reads_well() -> None:
    assert str(contrada.explain("n > 1 OR m > 1")).splitlines() == [
        "(n > 1) OR (m > 1)",
        "",
        "with the engine strtree:",
        "filter 1 of 2",
        f"  {'n > 1':<60}  sorted values of n",
        "filter 2 of 2",
        f"  {'m > 1':<60}  sorted values of m",
        "",
        "removed by the simplifier: nothing",
    ]
    assert "never satisfied" in str(contrada.explain(False))
    assert "  always" in str(contrada.explain(True))


def test_an_explanation_can_be_written_as_json() -> None:
    explanation = contrada.explain(f"n > 1 AND S_WITHIN(area, {SQUARE_TEXT})")
    written = json.loads(json.dumps(explanation.as_dict()))
    assert written["text"] == explanation.text
    assert written["removed"] == []
    ((first, second),) = written["filters"]
    assert first == {"constraint": "n > 1", "served_by": "range of n, vectorised"}
    assert second["served_by"] == "STRtree of area, within"
    assert contrada.explain(written["json"]).filters == explanation.filters


def test_explain_refuses_what_add_refuses() -> None:
    with pytest.raises(InvalidInput, match="LIEK"):
        contrada.explain("n LIEK 2")
    with pytest.raises(InvalidInput, match="more than 1 filters"):
        contrada.explain("n > 1 OR m > 1", filters_max=1)
    with pytest.raises(InvalidInput, match="filters_max must be a number >= 1, not 'many'"):
        contrada.explain("n > 1", filters_max="many")  # type: ignore[arg-type]


# The relation of two regions


@settings(max_examples=150)
@given(geometry_pairs("area", "area"))
def test_relate_is_what_exact_arithmetic_says(pair: Pair) -> None:
    assume(shapely.relate(*pair) == relate(*pair))
    relation = contrada.relate(*pair)
    assert isinstance(relation, Relation)
    assert str(relation) == egenhofer(*pair)


def test_relate_knows_holes_and_parts() -> None:
    plug, annulus = box(1, 1, 2, 2), Polygon(SQUARE.exterior, [box(1, 1, 2, 2).exterior])
    assert contrada.relate(plug, annulus) is Relation.MEETS
    assert contrada.relate(SQUARE, annulus) is Relation.COVERS
    assert contrada.relate(annulus, SQUARE) is Relation.COVERED_BY
    parts = shapely.MultiPolygon([box(0, 0, 1, 1), box(5, 5, 6, 6)])
    assert contrada.relate(parts, SQUARE) is Relation.OVERLAPS
    halves = shapely.GeometryCollection([box(0, 0, 2, 4), box(2, 0, 4, 4)])
    assert contrada.relate(halves.wkt, SQUARE.wkb) is Relation.EQUALS


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (Point(1, 1), r"b must be a region .*POINT \(1 1\)"),
        (Polygon(), "b must be a region .*EMPTY"),
        (5, "b: not a geometry: 5"),
        ("POLYGON((0 0", "b: cannot read"),
        (Polygon([(0, 0), (2, 2), (2, 0), (0, 2)]), "b: .*self-intersection"),
        (shapely.GeometryCollection([SQUARE, Point(9, 9)]), "b must be a region"),
    ],
)
def test_relate_refuses_what_is_no_region(value: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        contrada.relate(SQUARE, value)


# Coordinate systems


def frame(crs: str | None) -> geopandas.GeoDataFrame:
    return geopandas.GeoDataFrame(geometry=[SQUARE], crs=crs)


def test_the_reference_system_is_that_of_the_first_table_that_states_one() -> None:
    matcher = Matcher()
    matcher.add("a", "n > 1")
    matcher.remove("a")
    assert matcher.crs is None
    matcher.add_many(frame(None))
    assert matcher.crs is None
    matcher.add_many(frame("EPSG:3857"), replace=True)
    assert matcher.crs == "EPSG:3857"


def test_a_table_in_another_reference_system_is_refused_by_both_names() -> None:
    matcher = Matcher(crs="EPSG:4326")
    for method in (matcher.add_many, matcher.match_many):
        with pytest.raises(InvalidInput, match=r"table is in EPSG:3857.*EPSG:4326"):
            method(frame("EPSG:3857"))
    assert len(matcher) == 0
    matcher.add_many(frame("OGC:CRS84"))
    assert matcher.match_many(frame("EPSG:4326")).num_rows == 1
    assert matcher.match_many(frame(None)).num_rows == 1


def test_a_reference_system_that_nobody_knows_is_refused() -> None:
    with pytest.raises(InvalidInput, match='crs: unknown coordinate system "nowhere"'):
        Matcher(crs="nowhere")
    with pytest.raises(InvalidInput, match="crs: the coordinate system is an empty string; "):
        Matcher(crs="")
    with pytest.raises(InvalidInput, match="crs: "):
        Matcher(crs=np.array([1, 2]))  # type: ignore[arg-type]


def test_events_may_state_the_reference_system_first() -> None:
    matcher = Matcher()
    matcher.match_many(frame("EPSG:3857"))
    assert matcher.crs == "EPSG:3857"
    with pytest.raises(InvalidInput, match="EPSG:4326"):
        matcher.add_many(frame("EPSG:4326"))


def test_a_refused_table_states_nothing() -> None:
    matcher = Matcher()
    with pytest.raises(InvalidInput, match="no column 'code'"):
        matcher.match_many(frame("EPSG:3857"), id="code")
    with pytest.raises(InvalidInput, match="no column 'code'"):
        matcher.add_many(frame("EPSG:3857"), id="code")
    twice = geopandas.GeoDataFrame({"id": [1, 1]}, geometry=[SQUARE] * 2, crs="EPSG:3857")
    with pytest.raises(InvalidInput, match="1 is already taken"):
        matcher.add_many(twice)
    assert matcher.crs is None


def test_a_table_without_a_reference_system_is_taken_as_it_is() -> None:
    matcher = Matcher(crs="EPSG:3857")
    matcher.add_many(pa.table({"geometry": [SQUARE.wkb]}))
    assert matcher.match({"geometry": Point(1, 1)}) == [0]
