"""Filters hold every event that their subscriptions could match, and not much besides."""

from __future__ import annotations

from decimal import Decimal
from math import inf, nan, nextafter
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st
from pyproj import Geod

from contrada import InvalidInput, Matcher, Subscription
from contrada.language import make_predicate, read
from contrada.overlay.boxes import covers, everything, join_all, meets
from contrada.overlay.filters import LIMIT, Dimensions, derive_filters, event_box
from strategies import build, choose, choose_kind, picking, place, seeded_pick

if TYPE_CHECKING:
    from shapely.geometry.base import BaseGeometry

    from contrada.overlay.boxes import Box
    from strategies import Kind, Pick

WIND = Dimensions(("wind",))
SQUARE = "POLYGON((1 2, 3 2, 3 4, 1 4, 1 2))"
HIGH = "POLYGON((2 3, 5 3, 5 6, 2 6, 2 3))"
FAR = "POLYGON((7 7, 9 7, 9 9, 7 9, 7 7))"
TWO = "MULTIPOLYGON(((1 2, 3 2, 3 4, 1 4, 1 2)), ((7 7, 9 7, 9 9, 7 9, 7 7)))"
IN_SQUARE = (1.0, 2.0, -inf, 3.0, 4.0, inf)
IN_FAR = (7.0, 7.0, -inf, 9.0, 9.0, inf)
OPEN = everything(3)
DEGREE_M = 111_000.0
TOUCHING = (
    "S_INTERSECTS S_WITHIN S_CONTAINS S_EQUALS S_TOUCHES S_CROSSES S_OVERLAPS covers coveredBy "
    "ehMeet ehOverlap ehEquals ehInside ehCoveredBy ehContains ehCovers"
).split()


def derive(*filters: Any, limit: int = LIMIT, dimensions: Dimensions = WIND) -> tuple[Box, ...]:
    subscriptions = [Subscription(i, make_predicate(read(f))) for i, f in enumerate(filters)]
    return derive_filters(subscriptions, dimensions, limit)


def wind(low: float, high: float) -> tuple[Box, ...]:
    return ((-inf, -inf, low, inf, inf, high),)


# Space


@pytest.mark.parametrize(
    "test",
    [
        *[f"{name}(geometry, {{}})" for name in TOUCHING],
        "S_CONTAINS({}, geometry)",
        "relate(geometry, {}, 'T********')",
        "relate(geometry, {}, '**F**F***')",
        "NOT S_DISJOINT(geometry, {})",
        "NOT ehDisjoint(geometry, {})",
        "NOT relate(geometry, {}, 'FF*FF****')",
        "NOT (NOT S_WITHIN(geometry, {}))",
    ],
)
def test_a_relation_that_needs_contact_has_the_box_of_its_geometry(test: str) -> None:
    assert derive(test.format(SQUARE)) == (IN_SQUARE,)


@pytest.mark.parametrize(
    "test",
    [
        "S_DISJOINT(geometry, {})",
        "ehDisjoint(geometry, {})",
        "NOT S_INTERSECTS(geometry, {})",
        "NOT S_WITHIN(geometry, {})",
        "NOT ehMeet(geometry, {})",
        "NOT dwithin(geometry, {}, 10)",
        "relate(geometry, {}, 'F********')",
        "relate(geometry, {}, '**T******')",
        "S_INTERSECTS(other, {})",
        "dwithin(other, {}, 10)",
        "dwithin(geometry, {}, wind)",
        "S_INTERSECTS(geometry, other) OR S_WITHIN(geometry, {})",
        "S_INTERSECTS(geometry, {}) OR name = 'x'",
        "S_INTERSECTS(geometry, {}) OR geometry IS NULL",
        "S_INTERSECTS(geometry, {}) = FALSE",
    ],
)
def test_what_may_hold_without_contact_is_unbounded(test: str) -> None:
    assert derive(test.format(SQUARE)) == (OPEN,)


def test_each_branch_and_each_subscription_and_each_part_has_its_box() -> None:
    square, far = f"S_INTERSECTS(geometry, {SQUARE})", f"S_INTERSECTS(geometry, {FAR})"
    assert derive(f"{square} OR {far}") == (IN_SQUARE, IN_FAR)
    assert derive(square, far) == (IN_SQUARE, IN_FAR)
    assert derive(f"S_INTERSECTS(geometry, {TWO})") == (IN_SQUARE, IN_FAR)
    assert derive(f"({square} OR {far}) AND wind > 5") == (
        (1.0, 2.0, 5.0, 3.0, 4.0, inf),
        (7.0, 7.0, 5.0, 9.0, 9.0, inf),
    )


def test_a_box_across_the_180th_meridian_is_two() -> None:
    assert derive("S_INTERSECTS(geometry, BBOX(170, 0, -170, 5))") == (
        (-180.0, 0.0, -inf, -170.0, 5.0, inf),
        (170.0, 0.0, -inf, 180.0, 5.0, inf),
    )


def test_two_regions_apart_may_both_be_touched_so_they_are_no_contradiction() -> None:
    both = f"S_INTERSECTS(geometry, {FAR}) AND S_INTERSECTS(geometry, POINT(0 0))"
    assert derive(both) == ((0.0, 0.0, -inf, 0.0, 0.0, inf),)
    assert meets(event_box({"geometry": "LINESTRING(0 0, 8 8)"}, WIND), derive(both)[0])


def test_regions_that_an_event_lies_in_are_cut_and_may_contradict() -> None:
    square, both = f"S_WITHIN(geometry, {SQUARE})", ((2.0, 3.0, -inf, 3.0, 4.0, inf),)
    assert derive(f"{square} AND S_WITHIN(geometry, {HIGH})") == both
    assert derive(f"{square} AND S_INTERSECTS(geometry, {HIGH})") == both
    assert derive(f"{square} AND S_INTERSECTS(geometry, {TWO})") == (IN_SQUARE,)
    assert derive(f"{square} AND S_INTERSECTS(geometry, {FAR})") == ()
    assert derive(f"{square} AND NOT S_INTERSECTS(geometry, {FAR})") == (IN_SQUARE,)
    assert derive(f"{square} AND S_WITHIN(other, {FAR})") == (IN_SQUARE,)


def test_the_geometry_of_a_box_may_have_another_name() -> None:
    area = Dimensions((), "area")
    assert derive(f"S_INTERSECTS(area, {SQUARE})", dimensions=area) == ((1.0, 2.0, 3.0, 4.0),)
    assert derive(f"S_INTERSECTS(geometry, {SQUARE})", dimensions=area) == (everything(2),)


# Distance


def test_a_distance_widens_the_box_and_hardly_more_than_it_must() -> None:
    (box,) = derive("dwithin(geometry, POINT(10 50), 10000)")
    for azimuth, side, axis in ((270, 0, 0), (180, 1, 1), (90, 3, 0), (0, 4, 1)):
        edge = Geod(ellps="WGS84").fwd(10, 50, azimuth, 10_000)[axis]
        assert abs(box[side] - (10, 50)[axis]) >= abs(edge - (10, 50)[axis])
        assert box[side] == pytest.approx(edge, abs=0.005)


def test_a_distance_wraps_at_180_degrees() -> None:
    west, east = derive("dwithin(geometry, POINT(179.5 0), 111000)")
    assert [west[0], west[3]] == pytest.approx([-180, -179.5], abs=0.02)
    assert [east[0], east[3]] == pytest.approx([178.5, 180], abs=0.02)


@pytest.mark.parametrize(("latitude", "pole"), [(89.5, 90.0), (-89.5, -90.0)])
def test_a_distance_that_reaches_a_pole_takes_all_longitudes(latitude: float, pole: float) -> None:
    (box,) = derive(f"dwithin(geometry, POINT(10 {latitude}), 111000)")
    assert (box[0], box[3]) == (-180.0, 180.0)
    assert [box[1], box[4]] == pytest.approx(sorted([latitude - pole / 90, pole]), abs=0.02)


def test_a_distance_beyond_all_is_the_globe_and_one_below_zero_nothing() -> None:
    globe = (-180.0, -90.0, -inf, 180.0, 90.0, inf)
    assert derive("dwithin(geometry, POINT(10 50), 1e300)") == (globe,)
    assert derive("dwithin(geometry, POINT(10 50), 5 - 10)") == ()


# Numbers


@pytest.mark.parametrize(
    ("test", "low", "high"),
    [
        ("wind = 5", 5, 5),
        ("wind < 5", -inf, 5),
        ("wind <= 5", -inf, 5),
        ("wind > 5", 5, inf),
        ("5 <= wind", 5, inf),
        ("wind BETWEEN 3 AND 7", 3, 7),
        ("wind IN (9, 3, 5)", 3, 9),
        ("wind IN (9)", 9, 9),
        ("NOT (wind > 5)", -inf, 5),
        ("NOT (wind < 3 OR wind > 7)", 3, 7),
        ("wind > 3 AND wind < 7 AND wind >= 4", 4, 7),
        ("wind > 3 AND name = 'x'", 3, inf),
        ("wind > 3 AND NOT (wind = 5)", 3, inf),
        ("wind > 2 + 3", 5, inf),
        ("wind = 0.1", 0.1, 0.1),
        (f"wind = {2**53 + 1}", 2.0**53, nextafter(2.0**53, inf)),
    ],
)
def test_a_comparison_with_a_number_bounds_its_side(test: str, low: float, high: float) -> None:
    assert derive(test) == wind(low, high)


@pytest.mark.parametrize(
    "test",
    [
        "wind <> 5",
        "NOT (wind = 5)",
        "wind NOT IN (1, 2)",
        "wind IN (1, 'calm')",
        "wind IN (1, gust)",
        "wind = TRUE",
        "wind > DATE('2021-01-01')",
        "wind > gust",
        "wind * 2 > 5",
        "gust > 5",
        "wind IS NULL",
        "wind IS NOT NULL",
        "wind LIKE 'c%'",
        "wind",
        "wind > 5 OR wind IS NULL",
        "TRUE",
    ],
)
def test_what_may_hold_without_a_number_is_unbounded(test: str) -> None:
    assert derive(test) == (OPEN,)


def test_a_contradiction_has_no_box() -> None:
    contradictions = ["wind > 5 AND wind < 3", "wind = 5 AND wind IN (1, 2)", "wind = NULL"]
    contradictions += ["wind <> NULL", "wind BETWEEN 7 AND 3", "FALSE"]
    assert [derive(test) for test in contradictions] == [()] * 6
    assert derive(*contradictions, "wind = 1") == wind(1, 1)


def test_all_but_a_range_has_a_box_on_either_side_of_it() -> None:
    assert derive("wind NOT BETWEEN 1 AND 2") == wind(-inf, 1) + wind(2, inf)


def test_bounds_that_meet_are_no_contradiction() -> None:
    assert derive("wind >= 5 AND wind <= 5") == wind(5, 5)


def test_without_subscriptions_there_is_no_box() -> None:
    assert derive() == ()


# Few boxes


def test_equal_and_covered_boxes_are_dropped() -> None:
    inner = f"S_WITHIN(geometry, {SQUARE}) AND wind > 5"
    assert derive(inner, f"S_TOUCHES(geometry, {SQUARE})", inner) == (IN_SQUARE,)
    assert derive(inner, "TRUE") == (OPEN,)


def test_boxes_beyond_the_limit_are_merged_with_the_nearest() -> None:
    points = [f"S_INTERSECTS(geometry, POINT({x} 0))" for x in (0, 1, 50, 51, 53, 99)]
    merged = derive(*points, limit=3)
    assert [(box[0], box[3]) for box in merged] == [(0, 1), (50, 53), (99, 99)]


def test_an_unbounded_box_does_not_spoil_the_others() -> None:
    points = [f"S_INTERSECTS(geometry, POINT({x} {x}))" for x in range(50)]
    merged = derive("wind > 3", "wind < -3", *points, limit=6)
    assert {(-inf, -inf, 3.0, inf, inf, inf), (-inf, -inf, -inf, inf, inf, -3.0)} <= set(merged)
    assert all(box[3] - box[0] < 25 for box in merged if box[0] > -inf)


@pytest.mark.parametrize("limit", [1, 5, 32])
def test_many_boxes_in_clusters_keep_to_them(limit: int) -> None:
    rng = np.random.default_rng(5)
    places = np.repeat([[0, 0], [50, 10], [90, 80], [10, 70], [60, 60]], 400, axis=0)
    places = places + rng.random((2000, 2))
    filters = [
        {"op": "s_intersects", "args": [{"property": "geometry"}, {"bbox": [x, y, x + 1, y + 1]}]}
        for x, y in places.tolist()
    ]
    merged = derive(*filters, limit=limit)
    assert len(merged) <= limit
    assert all(
        any(covers(box, (x, y, -inf, x + 1, y + 1, inf)) for box in merged) for x, y in places
    )
    assert max(box[3] - box[0] for box in merged) <= (2 if limit >= 5 else 92)
    assert not any(covers(a, b) for a in merged for b in merged if a is not b)


def test_merging_depends_on_no_order_and_loses_nothing() -> None:
    filters = [f"S_INTERSECTS(geometry, POINT({x * 37 % 101} {x * 53 % 97}))" for x in range(90)]
    boxes, merged = derive(*filters, limit=90), derive(*filters, limit=7)
    assert len(boxes) == 90 and len(merged) == 7
    assert join_all(merged) == join_all(boxes)
    assert derive(*filters[::-1], limit=7) == merged


@pytest.mark.parametrize("limit", [0, -1, 257])
def test_a_limit_that_cannot_be_is_refused(limit: int) -> None:
    with pytest.raises(InvalidInput, match="from 1 to 256"):
        derive("TRUE", limit=limit)


def test_a_name_for_two_dimensions_is_refused() -> None:
    with pytest.raises(InvalidInput, match="two dimensions"):
        Dimensions(("wind", "geometry"))


# Events


@pytest.mark.parametrize(
    ("value", "low", "high"),
    [
        (5, 5, 5),
        (-0.5, -0.5, -0.5),
        (np.float32(0.5), 0.5, 0.5),
        (inf, inf, inf),
        (2**53 + 1, 2.0**53, nextafter(2.0**53, inf)),
        (10**400, nextafter(inf, 0), inf),
        (-(10**400), -inf, nextafter(-inf, 0)),
        (Decimal("0.1"), nextafter(0.1, 0), 0.1),
        *[(value, inf, -inf) for value in (None, nan, True, "5", [5], Decimal("NaN"), {"a": 5})],
    ],
)
def test_the_side_of_an_event_is_its_number_or_inverted(
    value: Any, low: float, high: float
) -> None:
    event = {"geometry": "LINESTRING(1 2, 3 1)", "wind": value}
    assert event_box(event, WIND) == (1.0, 1.0, low, 3.0, 2.0, high)


@pytest.mark.parametrize("geometry", [None, shapely.Point(), "", 5])
def test_an_event_without_a_geometry_is_inverted_in_space(geometry: Any) -> None:
    assert event_box({"geometry": geometry, "wind": 3}, WIND) == (inf, inf, 3, -inf, -inf, 3)
    assert event_box({}, WIND) == (inf,) * 3 + (-inf,) * 3


def test_features_and_paths_are_read_as_the_matcher_reads_them() -> None:
    feature = {
        "type": "Feature",
        "geometry": {"type": "Point", "coordinates": [1, 2]},
        "properties": {"air": {"wind": 7}},
    }
    assert event_box(feature, Dimensions(("air.wind",))) == (1.0, 2.0, 7.0, 1.0, 2.0, 7.0)


def test_a_geometry_that_the_matcher_refuses_is_refused() -> None:
    with pytest.raises(InvalidInput, match="invalid Polygon"):
        event_box({"geometry": "POLYGON((0 0, 1 1, 1 0, 0 1, 0 0))"}, WIND)
    with pytest.raises(InvalidInput, match="'elsewhere'"):
        event_box({"geometry": "elsewhere"}, WIND)


def test_an_inverted_side_meets_only_what_is_unbounded_at_both_ends() -> None:
    calm = event_box({"geometry": shapely.Point(2, 3)}, WIND)
    assert meets(calm, IN_SQUARE) and meets(calm, OPEN)
    for test in ("wind > 5", "wind < 5", "wind = 5"):
        assert not meets(calm, derive(test)[0])
    nowhere = event_box({"wind": 5}, WIND)
    assert meets(nowhere, wind(4, 6)[0]) and not meets(nowhere, IN_SQUARE)


# Whatever the matcher finds

NUMBERS = (0, 1, 2, 0.5, -3, 2**53, 2**53 + 1, 1e300)
LITERALS = (*NUMBERS, "calm", "1", True, {"date": "2021-01-01"})
VALUES = (*NUMBERS, None, nan, inf, True, "1", "calm", 10**400, Decimal("0.5"), "2021-01-01", [1])
COMPARED = ("=", "<>", "<", "<=", ">", ">=")
RELATIONS = (
    "s_intersects s_disjoint s_within s_contains s_touches s_crosses s_overlaps s_equals covers "
    "coveredBy ehMeet ehOverlap ehInside ehDisjoint ehContains ehCovers ehEquals relate "
    "dwithin dwithin dwithin s_intersects s_intersects"
).split()
PATTERNS = ("T********", "FF*FF****", "**F**F***", "F********", "T*F******", "****1****")
SHIFTS = ((0, 0), (0, 0), (4, 5), (-180, 0), (175, -2), (10, 85))
RADII_M = (0, DEGREE_M, 5 * DEGREE_M, 2e7, {"property": "wind"})


def call(name: str, *arguments: Any) -> dict[str, Any]:
    return {"op": name, "args": list(arguments)}


def build_shape(pick: Pick, kind: Kind | None = None) -> BaseGeometry:
    """A shape somewhere on the globe: near its middle, the 180th meridian or a pole."""
    return place(build(pick, kind or choose_kind(pick)), choose(pick, SHIFTS), 1.0)


def build_predicate(pick: Pick, depth: int = 2) -> Any:
    match pick(0, 6 if depth else 3):
        case 0 | 1:
            return build_spatial_test(pick)
        case 2 | 3:
            return build_number_test(pick)
        case 4 | 5:
            parts = [build_predicate(pick, depth - 1) for _ in range(pick(2, 3))]
            return call(choose(pick, ("and", "and", "or")), *parts)
        case _:
            return call("not", build_predicate(pick, depth - 1))


def build_spatial_test(pick: Pick) -> Any:
    name = choose(pick, RELATIONS)
    shape = build_shape(pick, "area" if name.startswith("eh") else None)
    sides: list[Any] = [{"property": choose(pick, ("geometry", "geometry", "geometry", "other"))}]
    sides.append(shapely.geometry.mapping(shape))
    if pick(0, 1):
        sides.reverse()
    if name == "relate":
        sides.append(choose(pick, PATTERNS))
    if name == "dwithin":
        sides.append(choose(pick, RADII_M))
    return call(name, *sides)


def build_number_test(pick: Pick) -> Any:
    name = {"property": choose(pick, ("wind", "wind", "gust"))}
    literals = [choose(pick, LITERALS) for _ in range(pick(1, 3))]
    low, high = choose(pick, NUMBERS), choose(pick, NUMBERS)
    match pick(0, 7):
        case 0 | 1:
            return call(choose(pick, COMPARED), name, literals[0])
        case 2:
            return call(choose(pick, COMPARED), literals[0], name)
        case 3:
            return call("between", name, low, high)
        case 4:
            return call("in", name, literals)
        case 5:
            return call("isNull", name)
        case 6:
            return call(">", call("+", name, low), {"property": "gust"})
        case _:
            return name


def build_event(pick: Pick) -> dict[str, Any]:
    """An event that often lacks something; some geometries go all over the globe."""
    event: dict[str, Any] = {}
    for name in ("geometry", "other"):
        if pick(0, 5):
            shapes = [build_shape(pick) for _ in range(choose(pick, (1, 1, 2, 3)))]
            wide = shapely.GeometryCollection(shapes).convex_hull
            event[name] = wide if len(shapes) > 1 else shapes[0]
    for name in ("wind", "gust"):
        if pick(0, 4):
            event[name] = choose(pick, VALUES)
    return event


def assert_filters_hold(predicates: list[Any], events: list[dict[str, Any]]) -> int:
    """Every match meets the boxes of its subscription, and those of all; give how many there are.

    Counted are the matches of subscriptions that are bounded.
    """
    matcher = Matcher()
    for number, predicate in enumerate(predicates):
        matcher.add(number, predicate)
    dimensions = Dimensions(("wind", "gust"))
    everyone = [matcher.get(id_) for id_ in matcher]
    boxes = {each.id: derive_filters([each], dimensions) for each in everyone}
    bounded = [each for each in everyone if boxes[each.id] != (everything(4),)]
    few = [derive_filters(bounded, dimensions, limit) for limit in (1, 5, 32)]
    found = 0
    for event in events:
        box = event_box(event, dimensions)
        for id_ in matcher.match(event):
            assert any(meets(box, each) for each in boxes[id_]), (matcher.get(id_), event)
            if boxes[id_] != (everything(4),):
                assert all(any(meets(box, each) for each in some) for some in few)
                found += 1
    return found


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[Any], list[dict[str, Any]]]:
    pick = picking(draw)
    predicates = [build_predicate(pick) for _ in range(pick(1, 3))]
    return predicates, [build_event(pick) for _ in range(pick(1, 3))]


@given(cases())
def test_an_event_that_the_matcher_finds_meets_a_filter(
    case: tuple[list[Any], list[dict[str, Any]]],
) -> None:
    assert_filters_hold(*case)


SEEDS = [*range(4), *[pytest.param(seed, marks=pytest.mark.soak) for seed in range(4, 100)]]


@pytest.mark.parametrize("seed", SEEDS)
def test_many_events_that_the_matcher_finds_meet_a_filter(seed: int) -> None:
    pick = seeded_pick(seed)
    predicates = [build_predicate(pick) for _ in range(200)]
    assert assert_filters_hold(predicates, [build_event(pick) for _ in range(150)]) > 500


@given(
    st.floats(-180, 180), st.floats(-90, 90), st.floats(0, 360), st.floats(0, 2.2e7), st.booleans()
)
def test_a_place_within_a_distance_meets_a_filter(
    x: float, y: float, azimuth: float, radius_m: float, is_rim: bool
) -> None:
    matcher = Matcher()
    point = shapely.geometry.mapping(shapely.Point(x, y))
    matcher.add(0, call("dwithin", {"property": "geometry"}, point, radius_m))
    boxes = derive_filters([matcher.get(0)], Dimensions())
    away_m = min(radius_m if is_rim else radius_m / 2, 1.99e7)
    longitude, latitude, _ = Geod(ellps="WGS84").fwd(x, y, azimuth, away_m)
    event = {"geometry": shapely.Point(longitude, latitude)}
    if is_rim and not matcher.match(event):
        return  # the last digit decides
    assert any(meets(event_box(event, Dimensions()), box) for box in boxes)
