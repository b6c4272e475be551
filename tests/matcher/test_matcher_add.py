"""Adding, replacing, removing and looking up subscriptions one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import shapely
from shapely.geometry import LineString, Point, Polygon, box

import contrada
from contrada import InvalidInput, Matcher, Relation
from contrada.matcher.inside import freeze
from exact_engines import every_engine

SQUARE = box(0, 0, 4, 4)
BOW_TIE = Polygon([(0, 0), (2, 2), (2, 0), (0, 2)])


# Ways to say what is wanted


@every_engine
def test_a_filter_is_cql2_text(engine: str) -> None:
    matcher = Matcher(engine)
    matcher.add("leaks", "S_INTERSECTS(area, POLYGON((0 0, 9 0, 9 9, 0 0))) AND hazard > 3")
    assert matcher.match({"area": Point(5, 1), "hazard": 4}) == ["leaks"]
    assert matcher.match({"area": Point(5, 1), "hazard": 3}) == []
    assert matcher.match({"area": Point(-5, 1), "hazard": 4}) == []


@every_engine
def test_a_filter_is_cql2_json_decoded_or_not(engine: str) -> None:
    matcher = Matcher(engine)
    matcher.add("mapping", {"op": ">", "args": [{"property": "hazard"}, 3]})
    matcher.add("text", '{"op": ">", "args": [{"property": "hazard"}, 3]}')
    assert matcher.match({"hazard": 4}) == ["mapping", "text"]
    assert matcher.match({"hazard": 3}) == []


@every_engine
def test_true_matches_every_event_and_false_none(engine: str) -> None:
    matcher = Matcher(engine)
    matcher.add("all", True)
    matcher.add("none", False)
    assert matcher.match({}) == ["all"]


@pytest.mark.parametrize(
    "geometry",
    [
        SQUARE,
        SQUARE.wkt,
        SQUARE.wkb,
        bytearray(SQUARE.wkb),
        shapely.to_wkb(shapely.set_srid(SQUARE, 4326), include_srid=True),
        shapely.to_wkb(shapely.force_3d(SQUARE), byte_order=0),
        shapely.geometry.mapping(SQUARE),
    ],
    ids="shapely wkt wkb bytearray ewkb big-endian-3d geojson".split(),
)
def test_a_geometry_may_come_in_any_form(geometry: Any) -> None:
    matcher = Matcher()
    matcher.add("here", geometry=geometry, relation="within")
    assert matcher.match({"geometry": Point(1, 1)}) == ["here"]
    assert matcher.match({"geometry": Point(0, 1)}) == []


@every_engine
def test_relation_where_and_attribute_say_the_same_as_a_filter(engine: str) -> None:
    matcher = Matcher(engine)
    matcher.add("parts", geometry=SQUARE, relation="within", where="wind > 90", attribute="area")
    matcher.add("whole", "S_WITHIN(area, POLYGON((0 0,4 0,4 4,0 4,0 0))) AND wind > 90")
    events: list[dict[str, Any]] = [
        {"area": Point(1, 1), "wind": 91},
        {"area": Point(1, 1), "wind": 90},
        {"area": Point(0, 1), "wind": 91},
        {"geometry": Point(1, 1), "wind": 91},
        {"area": Point(1, 1)},
    ]
    answers = [matcher.match(event) for event in events]
    assert answers == [["parts", "whole"], [], [], [], []]


@every_engine
def test_where_may_be_an_or_and_json(engine: str) -> None:
    matcher = Matcher(engine)
    either = {
        "op": "or",
        "args": [{"property": "wet"}, {"op": "isNull", "args": [{"property": "n"}]}],
    }
    matcher.add("either", geometry=SQUARE, where=either)
    inside, outside = Point(1, 1), Point(5, 5)
    assert matcher.match({"geometry": inside, "wet": True, "n": 1}) == ["either"]
    assert matcher.match({"geometry": inside, "wet": False}) == ["either"]
    assert matcher.match({"geometry": inside, "wet": False, "n": 1}) == []
    assert matcher.match({"geometry": outside, "wet": True}) == []


@every_engine
def test_a_member_of_relation_is_egenhofers_and_a_string_ogcs(engine: str) -> None:
    matcher = Matcher(engine)
    matcher.add("member", geometry=box(1, 1, 2, 2), relation=Relation.CONTAINS)
    matcher.add("string", geometry=box(1, 1, 2, 2), relation="contains")
    assert matcher.match({"geometry": SQUARE}) == ["member", "string"]
    touching = box(1, 0, 3, 3)
    assert matcher.match({"geometry": touching}) == ["string"]


@every_engine
@pytest.mark.parametrize("member", list(Relation))
def test_exactly_one_member_holds_for_each_pair_of_regions(engine: str, member: Relation) -> None:
    events = {
        Relation.DISJOINT: box(5, 5, 6, 6),
        Relation.MEETS: box(4, 0, 6, 4),
        Relation.OVERLAPS: box(3, 3, 5, 5),
        Relation.EQUALS: Polygon([(4, 4), (0, 4), (0, 0), (4, 0)]),
        Relation.INSIDE: box(1, 1, 2, 2),
        Relation.COVERED_BY: box(0, 1, 2, 2),
        Relation.CONTAINS: box(-1, -1, 5, 5),
        Relation.COVERS: box(0, 0, 5, 5),
    }
    matcher = Matcher(engine)
    for relation in Relation:
        matcher.add(str(relation), geometry=SQUARE, relation=relation)
    assert matcher.match({"geometry": events[member]}) == [str(member)]
    assert contrada.relate(events[member], SQUARE) is member


@pytest.mark.parametrize("name", ["coveredBy", "COVEREDBY", "T*F**F***", "t*f**f***", "ehInside"])
def test_a_relation_is_found_whatever_its_case(name: str) -> None:
    matcher = Matcher()
    matcher.add("a", geometry=SQUARE, relation=name)
    assert matcher.match({"geometry": box(1, 1, 2, 2)}) == ["a"]


def test_intersects_is_the_relation_where_none_is_named() -> None:
    matcher = Matcher()
    matcher.add("a", geometry=SQUARE)
    assert matcher.match({"geometry": Point(0, 0)}) == ["a"]


# What is refused, by name


@pytest.mark.parametrize("engine", ["cells"])
def test_an_engine_that_is_not_built_is_refused_by_its_name(engine: str) -> None:
    with pytest.raises(
        InvalidInput, match=rf"'{engine}' is not built yet; choose one of .*strtree"
    ):
        Matcher(engine)


def test_an_unknown_engine_is_refused_by_its_name() -> None:
    with pytest.raises(InvalidInput, match=r"unknown engine 'rtree'; choose one of .*strtree"):
        Matcher("rtree")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "'a': there is neither a filter nor a geometry"),
        ({"filter": "n > 1", "geometry": SQUARE}, "'a': give either a filter or a geometry"),
        ({"filter": "n > 1", "where": "n > 2"}, "'a': `where` .*needs a geometry"),
        ({"filter": "n > 1", "where": "geometry"}, "'a': `where` .*needs a geometry"),
        ({"filter": "n > 1", "relation": "geometry"}, "'a': `relation` .*needs a geometry"),
        ({"filter": "n > 1", "attribute": "intersects"}, "'a': `attribute` .*needs a geometry"),
        ({"filter": "n LIEK 2"}, "LIEK"),
        ({"filter": "  "}, "the predicate is empty"),
        ({"filter": {"op": "nope", "args": []}}, "nope"),
        ({"filter": 5}, "5"),
        ({"geometry": SQUARE, "relation": "inside"}, "unknown relation 'inside'"),
        ({"geometry": SQUARE, "relation": 7}, "unknown relation 7"),
        ({"geometry": SQUARE, "where": "n >"}, "character 3"),
        ({"geometry": SQUARE, "attribute": 5}, "attribute.* 5"),
        ({"geometry": SQUARE, "attribute": ""}, "attribute.* ''"),
        (
            {"geometry": LineString([(0, 0), (1, 1)]), "relation": "ehInside"},
            "ehInside takes areas",
        ),
        ({"geometry": BOW_TIE}, r"'a'.*self-intersection at \(1, 1\)"),
        ({"geometry": Polygon()}, "'a'.*POLYGON EMPTY.* is empty"),
        ({"geometry": "nowhere"}, "'a'.*not WKT, hex WKB or GeoJSON .*'nowhere'"),
        ({"geometry": ""}, "'a'.*'' is empty or not a geometry"),
        ({"geometry": "POINT(1 x)"}, "'a'.*cannot read"),
        ({"geometry": SQUARE.wkb[:30]}, "'a'.*cannot read"),
        ({"geometry": "CIRCULARSTRING(0 0, 1 1, 2 0)"}, "'a'.*curve"),
        ({"geometry": Point(float("inf"), 1)}, r"'a'.*\(inf, 1.0\) at vertex 0"),
        ({"filter": "n > 1", "subscriber": 1.5}, "subscription 'a', subscriber.*1.5"),
    ],
)
def test_what_cannot_be_a_subscription_is_refused_and_changes_nothing(
    arguments: dict[str, Any], message: str
) -> None:
    matcher = Matcher()
    matcher.add("a", "n > 1")
    with pytest.raises(InvalidInput, match=message):
        matcher.add("a", replace=True, **arguments)
    assert len(matcher) == 1
    assert matcher.match({"n": 2, "geometry": Point(1, 1)}) == ["a"]


@pytest.mark.parametrize("id_", [None, 1.0, True, b"a", 2**63, -(2**63) - 1])
def test_an_id_is_a_string_or_a_64_bit_integer(id_: Any) -> None:
    with pytest.raises(InvalidInput, match="id"):
        Matcher().add(id_, "n > 1")


@pytest.mark.parametrize("id_", ["", "é\n", 0, -(2**63), 2**63 - 1, np.int32(7), np.str_("x")])
def test_any_string_and_any_64_bit_integer_is_an_id(id_: Any) -> None:
    matcher = Matcher()
    matcher.add(id_, "n > 1")
    assert matcher.match({"n": 2}) == [id_]
    assert id_ in matcher
    assert matcher.get(id_).id == id_
    matcher.remove(id_)
    assert len(matcher) == 0


def test_ids_are_of_one_kind() -> None:
    matcher = Matcher()
    matcher.add("a", "n > 1")
    with pytest.raises(InvalidInput, match="7 follows 'a'"):
        matcher.add(7, "n > 1")
    assert list(matcher) == ["a"]
    matcher.remove("a")
    matcher.add(7, "n > 1")
    assert list(matcher) == [7]


def test_too_many_filters_in_normal_form_are_refused() -> None:
    either = " AND ".join(f"(a{i} = 1 OR b{i} = 1)" for i in range(4))
    with pytest.raises(InvalidInput, match="more than 15 filters"):
        Matcher(filters_max=15).add("a", either)
    Matcher(filters_max=16).add("a", either)


# One id, one subscription


@every_engine
def test_a_taken_id_is_refused_unless_it_is_to_be_replaced(engine: str) -> None:
    matcher = Matcher(engine)
    matcher.add("a", "n > 1", subscriber="u")
    with pytest.raises(InvalidInput, match="the id 'a' is already taken"):
        matcher.add("a", "n > 2")
    assert matcher.match({"n": 2}) == ["a"]
    matcher.add("a", "n > 2", replace=True, subscriber="v")
    assert matcher.match({"n": 2}) == []
    assert matcher.subscribers({"n": 3}) == ["v"]
    assert len(matcher) == 1


def test_replacing_an_id_that_is_not_there_adds_it() -> None:
    matcher = Matcher()
    matcher.add("a", "n > 1", replace=True)
    assert list(matcher) == ["a"]


@every_engine
def test_a_removed_subscription_is_gone_at_once_and_may_come_back(engine: str) -> None:
    matcher = Matcher(engine)
    for id_ in ("a", "b", "c"):
        matcher.add(id_, "n > 1")
    matcher.remove("b")
    assert matcher.match({"n": 2}) == ["a", "c"]
    assert "b" not in matcher
    matcher.add("b", "n > 2")
    assert matcher.match({"n": 3}) == ["a", "b", "c"]


@pytest.mark.parametrize("method", ["remove", "get"])
def test_an_unknown_id_is_named_and_is_a_key_error_too(method: str) -> None:
    matcher = Matcher()
    matcher.add("a", "n > 1")
    with pytest.raises(InvalidInput, match=r"^no subscription has the id 'z'$") as caught:
        getattr(matcher, method)("z")
    assert isinstance(caught.value, KeyError)
    assert len(matcher) == 1


def test_a_matcher_tells_its_length_members_and_order() -> None:
    matcher = Matcher()
    assert len(matcher) == 0
    assert list(matcher) == []
    for id_ in (10, 9, -1):
        matcher.add(id_, "n > 1")
    assert len(matcher) == 3
    assert list(matcher) == [-1, 9, 10]
    assert 9 in matcher
    assert 8 not in matcher
    assert "9" not in matcher
    assert None not in matcher
    assert [] not in matcher
    assert repr(matcher) == "<Matcher engine='strtree' subscriptions=3>"


def test_get_gives_the_subscription_with_its_subscriber_and_predicate() -> None:
    matcher = Matcher()
    matcher.add("a", "n > 1 AND S_WITHIN(area, POLYGON((0 0,1 0,1 1,0 0)))", subscriber=7)
    subscription = matcher.get("a")
    assert (subscription.id, subscription.subscriber) == ("a", 7)
    assert subscription.predicate.attributes() == ("n", "area")
    assert subscription.predicate.geometry_attributes() == ("area",)


def test_stats_count_subscriptions_filters_and_distinct_constraints() -> None:
    matcher = Matcher()
    matcher.add("a", geometry=SQUARE, where="n > 1")
    matcher.add("b", geometry=SQUARE, where="n > 1 OR n < 0")
    matcher.add("c", "n > 1")
    stats = matcher.stats()
    assert stats["engine"] == "strtree"
    assert stats["subscriptions"] == 3
    assert stats["filters"] == 4
    assert stats["constraints"] == 3
    assert stats["trees"] == 1
    assert stats["unanchored"] == 1
    assert stats["events"] == 0


def test_stats_count_the_bytes_of_subscriptions_and_a_geometry_of_several_once() -> None:
    matcher = Matcher()
    assert matcher.stats()["bytes"] == 0
    rings = [Point(x, 0).buffer(1, quad_segs=100) for x in (0, 5)]
    sizes = []
    for id_, ring in enumerate([rings[0], rings[0], rings[1]]):
        matcher.add(id_, geometry=ring)
        sizes.append(matcher.stats()["bytes"])
    assert 400 * 16 < sizes[0] < sizes[1] < sizes[0] + 400
    assert sizes[2] > sizes[1] + 400 * 16


def test_scan_counts_what_each_event_is_tried_on() -> None:
    matcher = Matcher("scan")
    for id_ in range(3):
        matcher.add(id_, "n > 1")
    assert matcher.stats()["scanned"] == matcher.stats()["subscriptions"] == 3


def test_what_was_frozen_does_not_change() -> None:
    matcher = Matcher()
    matcher.add("a", "n > 1")
    frozen = freeze(matcher)
    matcher.add("b", "n > 1")
    matcher.remove("a")
    assert [subscription.id for subscription in frozen] == ["a"]
    assert list(matcher) == ["b"]
