"""One event: what it may be, whom it reaches, and what is unknown about it."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
import shapely
from shapely.geometry import LineString, MultiPoint, Point, Polygon, box

import contrada.matching.indexes.by_tree
import contrada.matching.recent
import contrada.matching.scan.index
import contrada.matching.strtree.index
from contrada import Matcher
from exact_engines import every_engine

if TYPE_CHECKING:
    from collections.abc import Callable

SQUARE = box(0, 0, 4, 4)


# What an event may be


def feature(**properties: Any) -> dict[str, Any]:
    geometry = shapely.geometry.mapping(Point(1, 1))
    return {"type": "Feature", "id": 7, "geometry": geometry, "properties": properties}


@pytest.mark.parametrize(
    "event",
    [
        {"geometry": Point(1, 1), "n": 1},
        {"geometry": "POINT(1 1)", "n": 1},
        {"geometry": "  point z (1 1 5)", "n": 1},
        {"geometry": Point(1, 1).wkb, "n": 1},
        {"geometry": memoryview(shapely.to_wkb(Point(1, 1, 9), byte_order=0)), "n": 1},
        {"geometry": {"type": "Point", "coordinates": [1, 1]}, "n": 1},
        feature(n=1),
        json.loads(json.dumps(feature(n=1))),
        {"specversion": "1.0", "id": "x", "type": "t", "source": "s", "data": feature(n=1)},
        {"specversion": "1.0", "id": "x", "data": {"geometry": "POINT(1 1)", "n": 1}},
        {"geometry": Point(1, 1), "n": np.int64(1)},
    ],
)
@every_engine
def test_a_mapping_a_feature_and_a_cloud_event_are_events(engine: str, event: Any) -> None:
    matcher = Matcher(engine)
    matcher.add("a", geometry=SQUARE, relation="within", where="n = 1")
    matcher.add("b", geometry=SQUARE, relation="within", where="n = 2")
    assert matcher.match(event) == ["a"]


def test_the_id_of_a_feature_is_an_attribute_before_a_property_of_that_name() -> None:
    matcher = Matcher()
    matcher.add("seven", "id = 7")
    matcher.add("x", "id = 'x'")
    assert matcher.match(feature()) == ["seven"]
    assert matcher.match(feature(id="x")) == ["seven"]
    assert matcher.match({**feature(id="x"), "id": None}) == ["x"]
    assert matcher.match({"type": "Feature", "geometry": None, "properties": None}) == []


@every_engine
def test_several_attributes_may_be_geometries_and_nested(engine: str) -> None:
    matcher = Matcher(engine)
    matcher.add("origin", geometry=SQUARE, attribute="origin")
    matcher.add("goal", geometry=SQUARE, attribute="trip.goal")
    matcher.add("both", "S_EQUALS(origin, trip.goal)")
    event = {"origin": Point(1, 1), "trip": {"goal": Point(9, 9)}}
    assert matcher.match(event) == ["origin"]
    event = {"origin": Point(1, 1), "trip": {"goal": "POINT(1 1)"}}
    assert matcher.match(event) == ["both", "goal", "origin"]


@every_engine
@pytest.mark.parametrize(
    "moment",
    [
        datetime(2020, 1, 1, 12, tzinfo=UTC),
        datetime(2020, 1, 1, 12),  # noqa: DTZ001
        pd.Timestamp("2020-01-01T14:00:00+02:00"),
        np.datetime64("2020-01-01T12:00"),
        "2020-01-01T12:00:00Z",
        "2020-01-01 12:00",
    ],
)
def test_a_moment_is_pythons_or_text_and_utc_without_a_zone(engine: str, moment: Any) -> None:
    matcher = Matcher(engine)
    matcher.add("then", "t = TIMESTAMP('2020-01-01T12:00:00Z')")
    matcher.add("later", "t > DATE('2020-01-01')")
    matcher.add("next", "T_AFTER(t, DATE('2020-01-02'))")
    assert matcher.match({"t": moment}) == ["later", "then"]
    assert matcher.match({"t": date(2020, 1, 3)}) == ["later", "next"]


@every_engine
def test_64_bit_integers_compare_exactly(engine: str) -> None:
    matcher = Matcher(engine)
    matcher.add("odd", f"n = {2**53 + 1}")
    matcher.add("even", f"n = {2**53}")
    matcher.add("above", f"n > {2**63 - 2}")
    assert matcher.match({"n": 2**53 + 1}) == ["odd"]
    assert matcher.match({"n": float(2**53)}) == ["even"]
    assert matcher.match({"n": 2**63 - 1}) == ["above"]
    assert matcher.match({"n": 2**63 - 2}) == []


# What is unknown


UNKNOWN = [
    {},
    {"area": None},
    {"area": Polygon()},
    {"area": shapely.GeometryCollection([Point(), Polygon()])},
    {"area": 5},
    {"area": "no WKT"},
    {"area": {"type": "Circle"}},
    {"area": [1, 2]},
]


@every_engine
@pytest.mark.parametrize("event", UNKNOWN, ids=str)
def test_what_is_no_geometry_satisfies_neither_a_relation_nor_its_negation(
    engine: str, event: dict[str, Any]
) -> None:
    matcher = Matcher(engine)
    literal = "POLYGON((0 0,4 0,4 4,0 4,0 0))"
    tests = [f"S_INTERSECTS(area, {literal})", f"S_DISJOINT(area, {literal})"]
    tests += [f"ehDisjoint(area, {literal})", f"relate(area, {literal}, '*********')"]
    tests += [f"dwithin(area, {literal}, 5)", f"S_WITHIN({literal}, area)", "S_EQUALS(area, area)"]
    for number, test in enumerate(tests):
        matcher.add(2 * number, test)
        matcher.add(2 * number + 1, f"NOT {test}")
    assert matcher.match(event) == []
    assert matcher.subscribers(event) == []


@every_engine
@pytest.mark.parametrize("event", UNKNOWN, ids=str)
def test_is_null_is_true_for_absent_and_null_only(engine: str, event: dict[str, Any]) -> None:
    matcher = Matcher(engine)
    matcher.add("null", "area IS NULL")
    matcher.add("not", "area IS NOT NULL")
    assert matcher.match(event) == (["null"] if event.get("area") is None else ["not"])


@every_engine
@pytest.mark.parametrize("value", [None, float("nan"), "4", True, [4], {"n": 4}, Point(4, 4)])
def test_a_value_of_another_type_is_neither_more_nor_less(engine: str, value: Any) -> None:
    matcher = Matcher(engine)
    for number, test in enumerate(["n > 3", "n <= 3", "n <> 3", "NOT n = 3", "n + 1 > 0"]):
        matcher.add(number, test)
    assert matcher.match({"n": value}) == []


@every_engine
def test_unknown_or_true_is_true_and_unknown_and_false_is_false(engine: str) -> None:
    matcher = Matcher(engine)
    matcher.add("or", "absent > 1 OR n = 1")
    matcher.add("and", "NOT (absent > 1 AND n = 2)")
    matcher.add("unknown", "absent > 1 AND n = 1")
    assert matcher.match({"n": 1}) == ["and", "or"]


@every_engine
@pytest.mark.parametrize(
    "event",
    [Point(1, 1), MultiPoint([(1, 1), (9, 9)]), LineString([(1, 1), (2, 2)])],
    ids="point points line".split(),
)
def test_an_egenhofer_relation_of_what_is_no_area_is_unknown(engine: str, event: Any) -> None:
    matcher = Matcher(engine)
    for name in ("Disjoint", "Meet", "Overlap", "Equals", "Inside", "Contains", "CoveredBy"):
        test = f"eh{name}(geometry, POLYGON((0 0,4 0,4 4,0 4,0 0)))"
        matcher.add(name, test)
        matcher.add(f"not {name}", f"NOT {test}")
    assert matcher.match({"geometry": event}) == []


# What a geometry means


@every_engine
def test_a_point_on_the_edge_intersects_but_is_not_within(engine: str) -> None:
    matcher = Matcher(engine)
    for relation in ("intersects", "within", "touches", "coveredBy", "disjoint"):
        matcher.add(relation, geometry=SQUARE, relation=relation)
    assert matcher.match({"geometry": Point(0, 2)}) == ["coveredBy", "intersects", "touches"]
    assert matcher.match({"geometry": Point(1, 2)}) == ["coveredBy", "intersects", "within"]
    assert matcher.match({"geometry": Point(5, 2)}) == ["disjoint"]


@every_engine
def test_a_collection_is_the_union_of_its_members_that_are_not_empty(engine: str) -> None:
    halves = shapely.GeometryCollection([box(0, 0, 2, 4), box(2, 0, 4, 4), Polygon(), Point()])
    nested = shapely.GeometryCollection([shapely.GeometryCollection([halves])])
    matcher = Matcher(engine)
    matcher.add("equals", geometry=SQUARE, relation="equals")
    matcher.add("ehEquals", geometry=SQUARE, relation="ehEquals")
    matcher.add("collection", geometry=nested, relation="contains")
    for event in (halves, nested, SQUARE):
        assert matcher.match({"geometry": event}) == ["collection", "ehEquals", "equals"]


@every_engine
def test_z_is_ignored_and_a_ring_is_a_line(engine: str) -> None:
    matcher = Matcher(engine)
    matcher.add("border", geometry=SQUARE.boundary, relation="equals")
    ring = shapely.force_3d(shapely.LinearRing(SQUARE.exterior.coords), 7)
    assert matcher.match({"geometry": ring}) == ["border"]
    matcher.add("ring", geometry=ring, relation="equals")
    assert matcher.match({"geometry": SQUARE.boundary}) == ["border", "ring"]


@every_engine
def test_a_distance_is_geodesic_inclusive_and_wraps_at_the_date_line(engine: str) -> None:
    matcher = Matcher(engine)
    matcher.add("near", "dwithin(geometry, POINT(179.9 0), 22264)")
    matcher.add("far", "NOT dwithin(geometry, POINT(179.9 0), 22264)")
    matcher.add("exact", "dwithin(geometry, POINT(0 0), 0)")
    matcher.add("round", "dwithin(geometry, POINT(40 0), 111319)")
    assert matcher.match({"geometry": Point(40.9, 0)}) == ["far", "round"]
    assert matcher.match({"geometry": Point(40.9, 0.9)}) == ["far"]
    assert matcher.match({"geometry": Point(-179.9, 0)}) == ["near"]
    assert matcher.match({"geometry": Point(-179.89, 0)}) == ["far"]
    assert matcher.match({"geometry": LineString([(-1, 0), (1, 0)])}) == ["exact", "far"]
    assert matcher.match({"geometry": Point(181, 0)}) == []


@every_engine
def test_huge_and_tiny_coordinates_are_as_good_as_others(engine: str) -> None:
    matcher = Matcher(engine)
    for name, size in (("huge", 1e150), ("tiny", 1e-150)):
        matcher.add(name, geometry=Polygon([(0, 0), (size, 0), (size, size)]), relation="within")
    assert matcher.match({"geometry": Point(9e149, 1e149)}) == ["huge"]
    assert matcher.match({"geometry": Point(9e-151, 1e-151)}) == ["huge", "tiny"]


def test_the_geometry_of_the_caller_is_left_as_it_is() -> None:
    subscription, event = shapely.force_3d(SQUARE, 5), box(1, 1, 2, 2)
    matcher = Matcher()
    matcher.add("a", geometry=subscription)
    matcher.match({"geometry": event})
    assert not shapely.is_prepared(event)
    assert not shapely.is_prepared(subscription)
    assert shapely.has_z(subscription)


# Order


@every_engine
def test_integer_ids_come_by_value_and_strings_by_code_point(engine: str) -> None:
    numbers, texts = Matcher(engine), Matcher(engine)
    for id_ in (10, 9, -3, 2**40):
        numbers.add(id_, True)
    for text in ("b", "a", "Z", "é", "10", "9", "\U0001f600", "\uffff", ""):
        texts.add(text, True)
    assert numbers.match({}) == [-3, 9, 10, 2**40]
    assert texts.match({}) == ["", "10", "9", "Z", "a", "b", "é", "\uffff", "\U0001f600"]


# Whom to forward to


@every_engine
def test_subscribers_are_sorted_and_each_comes_once(engine: str) -> None:
    matcher = Matcher(engine)
    for id_, (test, who) in enumerate(
        [
            ("n > 0", "v"),
            ("n > 1", "u"),
            ("n > 2", "u"),
            ("n > 0", None),
            ("n > 0", 10),
            ("n > 0", 9),
        ]
    ):
        matcher.add(id_, test, subscriber=who)
    assert matcher.subscribers({"n": 3}) == [9, 10, "u", "v"]
    assert matcher.subscribers({"n": 1}) == [9, 10, "v"]
    assert matcher.subscribers({"n": 0}) == []


@pytest.fixture
def count_evaluations(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Count the predicates and constraints that engines evaluate on single events."""
    calls: list[object] = []
    for module, name in (
        (contrada.matching.scan.index, "truth"),
        (contrada.matching.recent, "truth"),
        (contrada.matching.strtree.index, "is_satisfied"),
        (contrada.matching.indexes.by_tree, "is_satisfied"),
    ):
        evaluate = getattr(module, name)

        def counted(*arguments: Any, evaluate: Callable[..., Any] = evaluate) -> Any:
            calls.append(arguments)
            return evaluate(*arguments)

        monkeypatch.setattr(module, name, counted)
    return lambda: len(calls)


@every_engine
def test_no_filter_of_a_subscriber_already_found_is_tried(
    engine: str, count_evaluations: Callable[[], int]
) -> None:
    matcher = Matcher(engine)
    for id_ in range(100):
        matcher.add(id_, f"n + {id_} > 0", subscriber="u")  # no index serves a sum
    assert matcher.subscribers({"n": 1}) == ["u"]
    assert count_evaluations() == 1
    assert len(matcher.match({"n": 1})) == 100
    assert count_evaluations() == 101


@every_engine
def test_subscriptions_that_forward_to_nobody_are_not_tried(
    engine: str, count_evaluations: Callable[[], int]
) -> None:
    matcher = Matcher(engine)
    matcher.add("nobody", "n + 1 > 0")
    assert matcher.subscribers({"n": 1}) == []
    assert count_evaluations() == 0
