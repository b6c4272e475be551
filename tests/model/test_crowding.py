"""Polygons and lines that GEOS could not judge or relate in time are set aside unjudged."""

import math
from collections.abc import Callable, Iterable

import numpy as np
import pyarrow as pa
import pytest
import shapely
from shapely.geometry.base import BaseGeometry

from contrada import InvalidInput, Matcher
from contrada.model.geometry import as_array, find_faults

Ring = list[tuple[float, float]]
FAR = "S_INTERSECTS(geometry, BBOX(1000, 1000, 1001, 1001))"


def petals(count: int) -> list[Ring]:
    """Triangles that have one corner in common."""
    turns = 2 * math.pi / count
    ends = [(i * turns, (i + 0.5) * turns) for i in range(count)]
    return [[(0, 0), (math.cos(a), math.sin(a)), (math.cos(b), math.sin(b))] for a, b in ends]


def square(x: float, y: float, side: float) -> Ring:
    return [(x, y), (x + side, y), (x + side, y + side), (x, y + side), (x, y)]


def rings_within_rings(count: int) -> list[Ring]:
    return [square(i, i, 2 * (count - i)) for i in range(count)]


def flower(count: int) -> shapely.Polygon:
    return shapely.Polygon(square(-9, -9, 18), petals(count))


def windmill(count: int) -> shapely.MultiPolygon:
    return shapely.MultiPolygon([shapely.Polygon(ring) for ring in petals(count)])


def onion(count: int) -> shapely.Polygon:
    return shapely.Polygon(square(-1, -1, 2 * count + 2), rings_within_rings(count))


def shells(count: int) -> shapely.MultiPolygon:
    rings = rings_within_rings(count)
    pairs = zip(rings[::2], rings[1::2], strict=True)
    return shapely.MultiPolygon([shapely.Polygon(outer, [inner]) for outer, inner in pairs])


def comb(teeth: int) -> shapely.Polygon:
    """A ring of slanted teeth, each of which lies in the box of all others."""
    points = [p for i in range(teeth) for p in ((i, 1), (i + 0.5 + teeth, 1_000))]
    return shapely.Polygon([(0, 0), *points, (2 * teeth, 0)])


def there_and_back(edges: int) -> shapely.LineString:
    return shapely.LineString([(i % 2, i % 2) for i in range(edges + 1)])


def hub(spokes: int) -> shapely.MultiLineString:
    return shapely.MultiLineString([ring[:2] for ring in petals(spokes)])


CROWDED: list[tuple[Callable[[int], BaseGeometry], int, str]] = [
    (flower, 5_000, "more than 100,000 pairs of its rings share a vertex (VERTEX_PAIRS_MAX)"),
    (windmill, 5_000, "more than 100,000 pairs of its rings share a vertex (VERTEX_PAIRS_MAX)"),
    (
        onion,
        4_000,
        "more than 2,000,000 pairs of its rings have boxes that meet (RING_PAIRS_MAX)",
    ),
    (
        shells,
        4_000,
        "more than 2,000,000 pairs of its rings have boxes that meet (RING_PAIRS_MAX)",
    ),
    (
        comb,
        7_000,
        "more than 4,000,000 pairs of runs of its rings have boxes that meet (RUN_PAIRS_MAX)",
    ),
    (
        there_and_back,
        10_000,
        "its edges touch each other more than 1,000,000 times (LINE_CONTACTS_MAX)",
    ),
    (hub, 5_000, "more than 100,000 pairs of edges share an end (VERTEX_PAIRS_MAX)"),
]


def messages(shapes: Iterable[BaseGeometry]) -> list[str]:
    found = find_faults(as_array(list(shapes)))
    return [found[i].message for i in sorted(found)]


@pytest.mark.timeout(60)
@pytest.mark.parametrize(("make", "count", "reason"), CROWDED)
def test_a_crowded_shape_is_refused_with_the_limit(
    make: Callable[[int], BaseGeometry], count: int, reason: str
) -> None:
    """GEOS takes from seconds to minutes for each of them, in half a megabyte at the most."""
    shape, matcher = make(count), Matcher()
    matcher.add("far", FAR)
    for repair in (False, True):
        with pytest.raises(InvalidInput) as refused:
            matcher.match({"geometry": shape.wkb}, repair=repair)
        assert str(refused.value).endswith(reason)
    rows = pa.table({"geometry": [shapely.Point(0, 0).wkb, shape.wkb]})
    told: list[str] = []
    matcher.match_many(rows, quarantine=True, on_bad=lambda _, __, why: told.append(why))
    assert [reason in text for text in told] == [True]
    with pytest.raises(InvalidInput) as refused:
        matcher.add("near", f"S_INTERSECTS(geometry, {shape.wkt})")
    assert reason in str(refused.value)
    assert matcher.match({"geometry": shapely.Point(1000, 1000).wkb}) == ["far"]


@pytest.mark.timeout(60)
@pytest.mark.parametrize("make", [flower, windmill, onion, shells])
def test_the_members_of_a_collection_are_refused_alike(
    make: Callable[[int], BaseGeometry],
) -> None:
    shape = make(4_000)
    assert messages([shapely.GeometryCollection([shape, shapely.Point(-50, -50)])]) == messages(
        [shape]
    )


def test_a_few_hundred_rings_in_one_point_and_in_each_other_are_judged() -> None:
    few = [make(300) for make in (flower, windmill, shells, comb, there_and_back, hub)]
    assert messages(few) == []
    assert messages([onion(300)])[0].startswith("invalid Polygon: holes are nested")


def test_many_rings_that_have_few_neighbours_are_judged() -> None:
    places = [(i % 80, i // 80) for i in range(6_400)]
    islands = shapely.MultiPolygon([shapely.Polygon(square(x, y, 0.5)) for x, y in places])
    board = shapely.MultiPolygon(
        [shapely.Polygon(square(x, y, 1)) for x, y in places if (x + y) % 2]
    )
    lakes = shapely.Polygon(square(-1, -1, 99), [square(x, y, 0.5) for x, y in places])
    assert messages([islands, board, lakes]) == []


def test_a_long_line_and_a_net_of_streets_are_judged() -> None:
    angles = np.linspace(0, 200, 50_000)
    spiral = shapely.LineString(np.stack([angles * np.cos(angles), angles * np.sin(angles)], 1))
    streets = [[(x, y), (x + 1, y)] for x in range(60) for y in range(60)]
    streets += [[(x, y), (x, y + 1)] for x in range(60) for y in range(60)]
    standing = shapely.LineString([(0, 0)] * 20_000 + [(1, 1)])
    assert messages([spiral, shapely.MultiLineString(streets), standing]) == []


def test_crowds_are_found_beside_others_and_missing_ones() -> None:
    faults = find_faults(as_array([None, flower(1_000), shapely.box(0, 0, 1, 1), comb(3_000)]))
    assert {i: fault.code for i, fault in faults.items()} == {1: "crowded", 3: "crowded"}


def test_coordinates_that_are_not_finite_are_named_before_a_crowd() -> None:
    rings = petals(1_000)
    rings[7][1] = (math.nan, 0.0)
    with np.errstate(all="ignore"):
        shape = shapely.Polygon(square(-9, -9, 18), rings)
    [message] = messages([shape])
    assert message.startswith("non-finite coordinate (nan, 0.0)")
