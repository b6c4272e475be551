"""Trees of anchors find what bare Shapely finds, however the geometries came."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
import shapely
from shapely.geometry.base import BaseGeometry

import contrada
from contrada.kernels.compiling import Patience
from contrada.matching import row_relations
from contrada.matching.strtree import anchor_trees

EGENHOFER = (
    "ehMeet",
    "ehOverlap",
    "ehEquals",
    "ehInside",
    "ehCoveredBy",
    "ehContains",
    "ehCovers",
)
SQUARE = shapely.box(0, 0, 4, 4)
EVENTS = {
    "ehMeet": shapely.box(4, 0, 8, 4),
    "ehOverlap": shapely.box(2, 2, 6, 6),
    "ehEquals": shapely.box(0, 0, 4, 4).reverse(),
    "ehInside": shapely.box(1, 1, 2, 2),
    "ehCoveredBy": shapely.box(0, 1, 2, 2),
    "ehContains": shapely.box(-1, -1, 5, 5),
    "ehCovers": shapely.box(0, -1, 5, 5),
}


@pytest.mark.parametrize("engine", ["strtree", "crtree", "scan"])
@pytest.mark.parametrize("name", EGENHOFER)
def test_of_all_egenhofer_relations_to_one_area_just_one_is_found(engine: str, name: str) -> None:
    matcher = contrada.Matcher(engine)
    for relation in (*EGENHOFER, "ehDisjoint"):
        matcher.add(relation, geometry=SQUARE, relation=relation)
    assert matcher.match({"geometry": EVENTS[name]}) == [name]
    assert matcher.match({"geometry": shapely.box(9, 9, 10, 10)}) == ["ehDisjoint"]
    assert matcher.match({"geometry": shapely.Point(1, 1)}) == []
    assert matcher.match({"geometry": shapely.LineString([(0, 0), (9, 9)])}) == []


def test_equal_areas_that_state_different_systems_are_both_found() -> None:
    square = SQUARE
    stated = shapely.to_wkb(shapely.set_srid(square, 4326), include_srid=True)
    rows = pa.table(
        {
            "id": ["a", "b"],
            "geometry": [shapely.to_wkb(square), stated],
            "relation": ["ehInside", "ehInside"],
        }
    )
    for engine in ("strtree", "scan"):
        matcher = contrada.Matcher(engine)
        matcher.add_many(rows)
        assert matcher.match({"geometry": EVENTS["ehInside"]}) == ["a", "b"], engine


def test_many_areas_are_related_as_shapely_does_it() -> None:
    areas: list[BaseGeometry] = [shapely.box(i, 0, i + 3, 3) for i in range(6)]
    areas += [
        shapely.union(a, shapely.transform(b, lambda xy: xy + 20)) for a, b in pairwise(areas)
    ]
    matcher, scan = contrada.Matcher(), contrada.Matcher("scan")
    rows = [
        {"id": 8 * number + code, "geometry": shapely.to_wkb(area), "relation": relation}
        for number, area in enumerate(areas)
        for code, relation in enumerate(EGENHOFER)
    ]
    for each in (matcher, scan):
        each.add_many(pa.Table.from_pylist(rows))
    events = pa.table({"id": range(len(areas)), "geometry": shapely.to_wkb(areas)})
    found = matcher.match_many(events)
    assert found.to_pylist() == scan.match_many(events).to_pylist()
    meeting = sum(a.intersects(b) for a in areas for b in areas)
    assert found.num_rows == meeting  # exactly one relation each


@pytest.mark.parametrize("relation", ["intersects", "within", "touches", "T*F**F***", "disjoint"])
def test_many_points_are_found_without_an_object_each(
    relation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batches after the first are asked of a packed tree and placed by kernels."""
    monkeypatch.setattr(anchor_trees, "_patience", Patience(1))
    monkeypatch.setattr(anchor_trees, "_POINTS_AT_ONCE", 10)
    monkeypatch.setattr(row_relations, "_PAIRS_AT_ONCE", 10)
    monkeypatch.setattr(row_relations, "_POINTS_FEW", 1_000)
    pick = np.random.default_rng(5)
    places = pick.integers(0, 12, (60, 2))
    shapes = [
        shapely.box(*corner, *(corner + size))
        for corner, size in zip(places, pick.integers(1, 4, (60, 2)), strict=True)
    ] + [shapely.LineString([(0, i), (12, i)]) for i in range(5)]
    subscriptions = pa.table(
        {"geometry": shapely.to_wkb(shapes), "relation": [relation] * len(shapes)}
    )
    points = shapely.points(pick.integers(0, 30, (300, 2)) / 2)
    lines = shapely.linestrings(pick.integers(0, 24, (20, 2, 2)) / 2)
    events = pa.table({"geometry": shapely.to_wkb(np.concatenate([points, [None], lines]))})
    matchers = [contrada.Matcher(engine) for engine in ("strtree", "scan")]
    for matcher in matchers:
        matcher.add_many(subscriptions)
    expected = matchers[1].match_many(events)
    for _ in range(2):
        assert matchers[0].match_many(events).equals(expected)
    assert expected.num_rows > 100
