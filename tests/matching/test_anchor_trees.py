"""Trees of anchors find what bare Shapely finds, however the geometries came."""

from itertools import pairwise

import pyarrow as pa
import pytest
import shapely
from shapely.geometry.base import BaseGeometry

import contrada

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
