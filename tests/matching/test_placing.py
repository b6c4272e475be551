"""Areas clear of an event's boundary are decided by a grid, and as all engines decide them."""

import numpy as np
import pyarrow as pa
import pytest
import shapely

import contrada
from contrada.kernels.compiling import Patience
from contrada.matching import placing

RELATIONS = (
    "intersects disjoint within contains overlaps touches coveredBy covers equals "
    "ehDisjoint ehMeet ehOverlap ehInside ehContains ehCovers ehCoveredBy ehEquals T*T***FF*"
).split()
RING = shapely.Point(50, 50).buffer(40).difference(shapely.Point(50, 50).buffer(20))


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    patience = Patience(1)
    patience.is_spent(1)
    monkeypatch.setattr(placing, "_patience", patience)


def scattered(count: int) -> np.ndarray:
    pick = np.random.default_rng(3)
    corners = pick.integers(0, 95, (count, 2)).astype(float)
    areas = [shapely.box(*c, *(c + pick.integers(1, 6, 2))) for c in corners]
    areas[::10] = [shapely.LineString(a.exterior.coords[:3]) for a in areas[::10]]
    areas[1] = RING
    return np.array(areas)


def is_regional(relation: str) -> bool:
    return relation.startswith("eh")


@pytest.mark.parametrize("relation", RELATIONS)
def test_every_relation_is_decided_as_by_scan(relation: str) -> None:
    areas = scattered(150)
    if is_regional(relation):
        areas = areas[shapely.get_dimensions(areas) == 2]
    rows = pa.table({"geometry": shapely.to_wkb(areas), "relation": [relation] * len(areas)})
    events = [RING, shapely.box(5, 5, 90, 90), shapely.LineString([(0, 0), (99, 99)]), areas[2]]
    table = pa.table({"geometry": shapely.to_wkb(events)})
    matchers = [contrada.Matcher(engine) for engine in ("strtree", "crtree", "scan")]
    for matcher in matchers:
        matcher.add_many(rows)
    expected = matchers[-1].match_many(table)
    for matcher in matchers[:2]:
        assert matcher.match_many(table).equals(expected)
        one_by_one = [matcher.match({"geometry": event}) for event in events]
        assert sum(map(len, one_by_one)) == expected.num_rows


def test_most_areas_need_no_relation(monkeypatch: pytest.MonkeyPatch) -> None:
    boxes = [shapely.box(x, y, x + 1, y + 1) for x in range(30) for y in range(30)]
    matcher = contrada.Matcher()
    matcher.add_many(
        pa.table({"geometry": shapely.to_wkb(boxes), "relation": ["ehContains"] * 900})
    )
    asked: list[int] = []
    relate = shapely.relate

    def count(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        asked.append(len(b))
        return relate(a, b)

    monkeypatch.setattr(shapely, "relate", count)
    found = matcher.match({"geometry": shapely.Point(15, 15).buffer(12)})
    inside = shapely.contains_properly(shapely.Point(15, 15).buffer(12), boxes)
    assert len(found) == inside.sum()
    assert sum(asked) < 200


def test_few_pairs_do_not_load_kernels() -> None:
    patience = Patience(100)
    assert [patience.is_spent(60) for _ in range(4)] == [False, False, True, True]
