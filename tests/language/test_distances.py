"""dwithin: geodesic on WGS 84, inclusive, around the globe; and the boxes that bound its reach."""

from itertools import pairwise
from math import inf, nan, nextafter
from typing import Any

import numpy as np
import pytest
import shapely
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from pyproj import Geod
from shapely.geometry.base import BaseGeometry

from contrada.language import piece_pairs, read, truth
from contrada.language.distance import is_on_globe, is_within, point_distances_m, reach
from contrada.language.write import geometry_text
from contrada.model.event import Event

ABSENT = object()
WGS84 = Geod(ellps="WGS84")
SIENA = shapely.Point(11.33, 43.32)
LONGITUDES, LATITUDES = st.floats(-180, 180), st.floats(-90, 90)
POINTS = st.builds(shapely.Point, LONGITUDES, LATITUDES)
SAMPLES = 40


def distance_m(a: shapely.Point, b: shapely.Point) -> float:
    return float(WGS84.inv(a.x, a.y, b.x, b.y)[2])


def truth_of(text: str, value: Any = ABSENT, **attributes: Any) -> bool | None:
    present = attributes if value is ABSENT else {"a": value, **attributes}
    return truth(read(text), Event(present))


def sample(geometry: BaseGeometry) -> NDArray[np.float64]:
    """Many positions along the edges of a geometry, its vertices among them."""
    rows = []
    for part in shapely.get_parts(shapely.get_parts([geometry])):
        for line in shapely.get_rings(part) if part.geom_type == "Polygon" else [part]:
            xy = shapely.get_coordinates(line)
            share = np.linspace(0, 1, SAMPLES)[:, None]
            rows += [p + share * (q - p) for p, q in pairwise(xy)] or [xy]
    return np.vstack(rows)


def sampled_distance_m(a: BaseGeometry, b: BaseGeometry) -> float:
    """The distance of the nearest samples: never less than that of the geometries."""
    if a.intersects(b):
        return 0.0
    p, q = sample(a), sample(b)
    left, right = np.repeat(p, len(q), axis=0), np.tile(q, (len(p), 1))
    return float(point_distances_m(left[:, 0], left[:, 1], right[:, 0], right[:, 1]).min())


@st.composite
def nearby(draw: st.DrawFn, kind: str, centre: tuple[float, float], size: float) -> BaseGeometry:
    """A small geometry around a centre, not beyond the globe."""
    x = st.floats(max(-180, centre[0] - size), min(180, centre[0] + size))
    y = st.floats(max(-90, centre[1] - size), min(90, centre[1] + size))
    if kind == "point":
        return shapely.Point(draw(x), draw(y))
    if kind == "box":
        (west, east), (south, north) = sorted([draw(x), draw(x)]), sorted([draw(y), draw(y)])
        assume(west < east and south < north)
        return shapely.box(west, south, east, north)
    path = draw(st.lists(st.tuples(x, y), min_size=2, max_size=4, unique=True))
    line = shapely.LineString(path)
    assume(line.is_valid)
    return line


@st.composite
def pairs(draw: st.DrawFn) -> tuple[BaseGeometry, BaseGeometry]:
    """Two geometries not far from each other: anywhere, at the 180° meridian or near a pole."""
    latitude = draw(st.sampled_from([0.0, 43.0, -70.0, 85.0, -89.9]))
    longitude = draw(st.sampled_from([0.0, 11.0, 179.9, -180.0]))
    size = draw(st.sampled_from([1e-4, 0.01, 1.0]))
    kinds = st.sampled_from(["point", "line", "box"])
    a = draw(nearby(draw(kinds), (longitude, latitude), size))
    shifted = longitude + draw(st.sampled_from([-3, 0, 3])) * size
    shifted = (shifted + 180) % 360 - 180
    return a, draw(nearby(draw(kinds), (shifted, latitude), size))


# Points


@given(POINTS, POINTS)
def test_points_are_as_far_apart_as_the_geodesic_says_and_not_less(
    a: shapely.Point, b: shapely.Point
) -> None:
    metres = distance_m(a, b)
    assert is_within(a, b, metres) is True
    assert is_within(a, b, nextafter(metres, inf)) is True
    if metres > 0 and not touch_around_the_globe(a, b):
        assert is_within(a, b, nextafter(metres, 0)) is False
    assert is_within(a, b, metres / 2) is is_within(b, a, metres / 2)


def touch_around_the_globe(a: shapely.Point, b: shapely.Point) -> bool:
    return a.y == b.y and abs(a.x - b.x) in (0, 360)


@pytest.mark.parametrize(
    ("a", "b", "metres"),
    [
        ((0, 0), (0, 1), 110_574.388558),
        ((0, 0), (1, 0), 111_319.490793),
        ((179.5, 0), (-179.5, 0), 111_319.490793),
        ((180, 10), (-180, 10), 0.0),
        ((0, 89.5), (180, 89.5), 111_693.9),
        ((0, 90), (123, 90), 0.0),
        ((0, -90), (0, 90), 20_003_931.458625),
        ((11.33, 43.32), (11.25, 43.77), 50_410.0),
    ],
)
def test_known_distances(a: tuple[float, float], b: tuple[float, float], metres: float) -> None:
    p, q = shapely.Point(a), shapely.Point(b)
    assert is_within(p, q, metres * 1.001) is True
    assert is_within(q, p, metres * 1.001) is True
    if metres:
        assert is_within(p, q, metres * 0.999) is False
    else:
        assert is_within(p, q, 0) is True


# Lines and areas


@pytest.mark.parametrize(
    ("a", "b", "metres"),
    [
        # A meridian is a geodesic: the nearest point of the line has the latitude of the point …
        ("POINT(0.5 0)", "LINESTRING(0 -1,0 1)", 55_659.745),
        # … or is an end of it.
        ("POINT(0 2)", "LINESTRING(0 -1,0 1)", 110_575.1),
        ("POINT(0 1)", "LINESTRING(-5 0,5 0)", 110_574.388558),
        ("LINESTRING(0 0,1 0)", "LINESTRING(0 1,1 1)", 110_574.388558),
        ("LINESTRING(0 0,0 1)", "LINESTRING(0 2,0 3)", 110_576.5),
        ("LINESTRING(0 1,0 0)", "LINESTRING(0 2,0 3)", 110_576.5),
        ("POLYGON((0 0,1 0,1 1,0 1,0 0))", "POINT(0.5 0.5)", 0.0),
        ("POLYGON((0 0,1 0,1 1,0 1,0 0))", "POINT(1 0.5)", 0.0),
        ("POLYGON((0 0,1 0,1 1,0 1,0 0))", "LINESTRING(0.2 0.2,0.3 0.3)", 0.0),
        ("POLYGON((0 0,1 0,1 1,0 1,0 0))", "POINT(2 0)", 111_319.490793),
        (
            "POLYGON((0 0,9 0,9 9,0 9,0 0),(1 1,8 1,8 8,1 8,1 1))",
            "POINT(2 4)",  # in the hole, a degree from its border
            111_050.0,
        ),
        ("POLYGON((179 0,180 0,180 1,179 1,179 0))", "POINT(-180 0.5)", 0.0),
        ("POLYGON((179 0,180 0,180 1,179 1,179 0))", "POINT(-180 0.3)", 0.0),
        ("LINESTRING(-180 0,-180 1)", "LINESTRING(170 0.3,180 0.3)", 0.0),
        ("POLYGON((179 0,180 0,180 1,179 1,179 0))", "POINT(-179 0)", 111_319.490793),
        ("LINESTRING(-180 0,-179 0)", "LINESTRING(178 0,179 0)", 111_319.490793),
        ("LINESTRING(0 89,90 89)", "LINESTRING(-180 89,-90 89)", 157_900.0),
        ("LINESTRING(-180 89,180 89)", "POINT(37 90)", 111_693.9),
        ("MULTIPOINT((50 50),(0 1))", "MULTILINESTRING((-60 -60,-50 -50),(-5 0,5 0))", 110_574.39),
        ("GEOMETRYCOLLECTION(POINT(50 50),LINESTRING(-5 0,5 0))", "POINT(0 1)", 110_574.388558),
    ],
)
def test_known_distances_of_lines_and_areas(a: str, b: str, metres: float) -> None:
    left, right = shapely.from_wkt(a), shapely.from_wkt(b)
    for p, q in ((left, right), (right, left)):
        assert is_within(p, q, metres * 1.001) is True
        if metres:
            assert is_within(p, q, metres * 0.999) is False
        else:
            assert is_within(p, q, 0) is True


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("POINT(0.5 0)", "LINESTRING(2 0,3 3)"),
        ("LINESTRING(0 0,-1 1)", "LINESTRING(2 0,3 3)"),
        ("LINESTRING(-1 1,0 0)", "LINESTRING(2 0,3 3)"),
        ("LINESTRING(-1 1,0 0)", "LINESTRING(3 3,2 0)"),
        ("LINESTRING(0 0,-1 1)", "LINESTRING(3 3,2 0)"),
        ("POLYGON((0 0,-1 1,-1 -1,0 0))", "POLYGON((2 0,3 1,3 -1,2 0))"),
    ],
)
def test_two_vertices_decide_to_the_last_digit(a: str, b: str) -> None:
    left, right = shapely.from_wkt(a), shapely.from_wkt(b)
    corners = [
        (shapely.Point(p), shapely.Point(q))
        for p in shapely.get_coordinates(left)
        for q in shapely.get_coordinates(right)
    ]
    nearest = min(distance_m(p, q) for p, q in corners)
    assert is_within(left, right, nearest) is True
    assert is_within(left, right, nearest - 0.01) is False


@settings(max_examples=60)
@given(pairs())
def test_a_distance_is_that_of_the_nearest_points(pair: tuple[BaseGeometry, BaseGeometry]) -> None:
    a, b = pair
    sampled = sampled_distance_m(a, b)
    spacing = max(shapely.length(a), shapely.length(b)) * 111_700 / SAMPLES
    assert is_within(a, b, sampled + 0.001) is True
    assert is_within(b, a, sampled + 0.001) is True
    if sampled > spacing + 1:
        assert is_within(a, b, sampled - spacing - 0.001) is False
        assert is_within(b, a, sampled - spacing - 0.001) is False


@pytest.mark.parametrize("short_m", [1000, 1, 1e-2, 1e-3, 1e-5])
def test_parallel_edges_just_too_far_apart_are_soon_decided(short_m: float) -> None:
    south, north = shapely.LineString([(0, 0), (1, 0)]), shapely.LineString([(0, 1), (1, 1)])
    apart = distance_m(shapely.Point(0, 0), shapely.Point(0, 1))
    assert is_within(south, north, apart) is True
    assert is_within(south, north, apart - short_m) is False


def test_large_geometries_fit_into_memory() -> None:
    ring = SIENA.buffer(1, quad_segs=400)
    other = shapely.Point(11.33, 46.32).buffer(1, quad_segs=400)
    assert is_within(ring, other, 100_000) is False
    assert is_within(ring, other, 112_000) is True


def test_a_distance_beyond_all_others_holds_of_everything() -> None:
    for metres in (20_100_000, 1e300, 10**400):
        assert is_within(shapely.Point(0, -90), shapely.Point(0, 90), metres) is True
        assert truth_of("dwithin(a, POINT(0 90), r)", shapely.Point(0, -90), r=metres) is True


# Three values


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (SIENA, True),
        ("POINT(11.33 43.32)", True),
        (shapely.Point(11.34, 43.32), True),
        (shapely.Point(12, 43.32), False),
        (SIENA.buffer(1), True),
        *((value, None) for value in (ABSENT, None, 5, "north", True, nan, [11, 43], object())),
        *((value, None) for value in (shapely.Point(), shapely.Polygon(), "POINT EMPTY")),
        *(
            (shapely.Point(*xy), None)
            for xy in ((180.1, 0), (-181, 0), (0, 90.1), (500_000, 4_000_000))
        ),
        (shapely.LineString([(179, 0), (181, 0)]), None),
    ],
)
def test_a_distance_is_true_false_or_unknown(value: Any, expected: bool | None) -> None:
    literal = geometry_text(SIENA)
    opposite = None if expected is None else not expected
    assert truth_of(f"dwithin(a, {literal}, 1000)", value) is expected
    assert truth_of(f"dwithin({literal}, a, 1000)", value) is expected
    assert truth_of("dwithin(a, b, 1000)", value, b=SIENA) is expected
    assert truth_of(f"NOT dwithin(a, {literal}, 1000)", value) is opposite
    assert truth_of(f"dwithin(a, {literal}, 1000) = FALSE", value) is opposite


@pytest.mark.parametrize(
    ("radius", "expected"),
    [
        (1000, True),
        (np.float32(1000), True),
        (100, False),
        *((radius, None) for radius in (None, -1, nan, inf, -inf, "1000", True, [1000])),
    ],
)
def test_a_radius_may_come_from_the_event(radius: Any, expected: bool | None) -> None:
    place = shapely.Point(11.335, 43.32)
    assert truth_of("dwithin(a, POINT(11.33 43.32), r)", place, r=radius) is expected
    assert truth_of("dwithin(a, POINT(11.33 43.32), r)", place) is None
    if expected is not None:
        assert (
            truth_of("dwithin(a, POINT(11.33 43.32), r / 2 + r / 2)", place, r=radius) is expected
        )


def test_a_radius_of_zero_is_contact() -> None:
    assert truth_of("dwithin(a, POINT(1 2), 0)", shapely.Point(1, 2)) is True
    assert truth_of("dwithin(a, POINT(1 2), 0)", shapely.box(0, 0, 3, 3)) is True
    assert truth_of("dwithin(a, POINT(1 2), 0)", shapely.Point(1, 2.000001)) is False


@pytest.mark.parametrize(
    ("wkt", "expected"),
    [
        ("POINT(180 90)", True),
        ("POINT(-180 -90)", True),
        ("POINT(180.0000001 0)", False),
        ("LINESTRING(0 0,0 90.0000001)", False),
    ],
)
def test_the_globe_ends_at_180_and_90_degrees(wkt: str, expected: bool) -> None:
    assert is_on_globe(shapely.from_wkt(wkt)) is expected


# Reach


@given(pairs(), st.floats(0.5, 2))
def test_whatever_is_within_a_distance_is_in_its_reach(
    pair: tuple[BaseGeometry, BaseGeometry], share: float
) -> None:
    a, b = pair
    radius_m = sampled_distance_m(a, b) * share
    if is_within(a, b, radius_m):
        assert reach(a, radius_m).intersects(b)
        assert reach(b, radius_m).intersects(a)


@given(POINTS, st.floats(0, 360), st.floats(0, 19_000_000))
def test_whatever_point_is_within_a_distance_is_in_its_reach(
    point: shapely.Point, azimuth: float, metres: float
) -> None:
    x, y, _ = WGS84.fwd(point.x, point.y, azimuth, metres)
    other = shapely.Point(x, y)
    radius_m = max(metres, distance_m(point, other))
    assert reach(point, radius_m).intersects(other)


@pytest.mark.parametrize(
    ("wkt", "radius_m", "bounds"),
    [
        ("POINT(0 0)", 111_000, [(-1.02, -1.01, 1.02, 1.01)]),
        ("POINT(179.5 0)", 111_000, [(178.4, -1.01, 180, 1.01), (-180, -1.01, -179.4, 1.01)]),
        ("POINT(-179.5 0)", 111_000, [(-180, -1.01, -178.4, 1.01), (179.4, -1.01, 180, 1.01)]),
        ("POINT(0 89.5)", 111_000, [(-180, 88.4, 180, 90)]),
        ("POINT(0 -89.5)", 111_000, [(-180, -90, 180, -88.4)]),
        ("POINT(0 0)", 20_100_000, [(-180, -90, 180, 90)]),
        ("LINESTRING(-179 0,179 0)", 222_000, [(-180, -2.01, 180, 2.01)]),
    ],
)
def test_a_reach_is_not_much_more_than_it_must_be(
    wkt: str, radius_m: float, bounds: list[tuple[float, ...]]
) -> None:
    parts = shapely.get_parts(reach(shapely.from_wkt(wkt), radius_m))
    assert len(parts) == len(bounds)
    for part, expected in zip(parts, bounds, strict=True):
        assert part.bounds == pytest.approx(expected, abs=0.15)


def patches(shift: float, count: int) -> BaseGeometry:
    """Small squares in every other cell of a grid, in no order."""
    side = int(count**0.5)
    x, y = np.divmod(np.random.default_rng(0).permutation(count), side)
    low = np.column_stack([2 * x + shift, 2 * y + shift]) * 0.001
    squares = np.asarray(shapely.box(*low.T, *(low + 0.0006).T), object)
    return shapely.MultiPolygon(squares.tolist())


@pytest.mark.parametrize(("radius_m", "expected"), [(1, False), (55, False), (70, True)])
def test_very_many_parts_that_lie_apart_are_soon_decided(radius_m: float, expected: bool) -> None:
    """Each with each would take minutes."""
    assert is_within(patches(0, 8_000), patches(1, 8_000), radius_m) is expected


def test_a_distance_is_unknown_where_too_many_groups_of_edges_come_near(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(piece_pairs, "DISTANCE_PIECES_MAX", 10)
    monkeypatch.setattr(piece_pairs, "_VISITS_EACH", 0)
    assert is_within(patches(0, 400), patches(1, 400), 55) is None


@given(st.integers(1, 300), st.integers(1, 300), st.integers(0, 2**32), st.floats(1, 200_000))
def test_no_pair_that_may_be_within_is_left_out(
    ours: int, theirs: int, seed: int, radius_m: float
) -> None:
    random = np.random.default_rng(seed)
    places = random.uniform(-1e5, 1e5, (ours, 3)), random.uniform(-1e5, 1e5, (theirs, 3))
    halves = random.uniform(0, 1e4, ours), random.uniform(0, 1e4, theirs)
    chords = np.sqrt(((places[0][:, None] - places[1]) ** 2).sum(axis=2))
    found = list(piece_pairs.find_pairs(places, halves, radius_m - 1e-3, radius_m))
    if any(some.is_within for some in found):
        assert chords.min() <= radius_m + 2e4
        return
    pairs = {(int(i), int(j)) for some in found for i, j in zip(some.left, some.right, strict=True)}
    assert chords.min() > radius_m - 1e-3
    near = np.nonzero(chords - halves[0][:, None] - halves[1] <= radius_m)
    assert pairs == set(zip(*(side.tolist() for side in near), strict=True))
