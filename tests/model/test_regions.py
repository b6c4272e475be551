"""Relations among regions: certain, or not stated at all."""

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st
from shapely.geometry.base import BaseGeometry

import oracle
from contrada import Matcher
from contrada.model.geometry import as_array
from contrada.model.regions import BASES, UNCERTAIN, Allowance, relate_regions
from strategies import geometries, place

FIRST = "POLYGON((3 3,2 4,2.6 3.400000000000001,3 3))"
SECOND = "POLYGON((4 4,0 0,0.7999999999999998 0.8000000000000007,4 4))"


def relation_of(a: BaseGeometry, b: BaseGeometry) -> str | None:
    number = int(relate_regions(as_array([a, b]), Allowance(1_000))[0, 1])
    return None if number == UNCERTAIN else str(BASES[number])


@pytest.mark.parametrize("engine", ["strtree", "crtree", "scan"])
def test_slivers_on_which_geos_errs_change_no_answer(engine: str) -> None:
    matcher = Matcher(engine=engine)
    matcher.add("both", f"S_INTERSECTS(g, {FIRST}) AND S_INTERSECTS(g, {SECOND})")
    assert matcher.match({"g": "POINT(2 4)"}) == []
    assert matcher.match({"g": "LINESTRING(2 4, 4 4)"}) == ["both"]


def boxes() -> st.SearchStrategy[BaseGeometry]:
    sides = st.tuples(st.integers(0, 4), st.integers(0, 4)).filter(lambda s: s[0] < s[1])
    return st.builds(lambda x, y: shapely.box(x[0], y[0], x[1], y[1]), sides, sides)


@given(boxes(), boxes())
def test_boxes_are_related_exactly(a: BaseGeometry, b: BaseGeometry) -> None:
    assert relation_of(a, b) == oracle.egenhofer(a, b)


@given(geometries("area"), geometries("area"), st.sampled_from([0, 1e-16, 1e-12, 0.5, 3]))
def test_a_relation_that_is_stated_is_the_true_one(
    a: BaseGeometry, b: BaseGeometry, shift: float
) -> None:
    moved = place(b, (shift, shift), 1.0)
    for first, second in ((a, moved), (moved, a), (a, a)):
        found = relation_of(first, second)
        assert found is None or found == oracle.egenhofer(first, second)
    assert relation_of(a, a) == "equals"


def test_regions_that_keep_a_distance_are_related_and_those_that_touch_are_not() -> None:
    disk = shapely.Point(0, 0).buffer(4)
    assert relation_of(shapely.Point(1, 1).buffer(1), disk) == "inside"
    assert relation_of(disk, shapely.Point(1, 1).buffer(1)) == "contains"
    assert relation_of(shapely.Point(4.5, 4.5).buffer(1), disk) == "disjoint"
    assert relation_of(shapely.box(-1, -1, 0, 0), shapely.Polygon([(0, 0), (2, 0), (2, 2)])) is None


def test_too_many_regions_on_one_heap_are_not_related() -> None:
    heap = as_array([shapely.box(i, i, 1_000 + i, 1_000 + i) for i in range(600)])
    assert (relate_regions(heap, Allowance(10_000_000)) == UNCERTAIN).all()
    assert (
        np.diag(relate_regions(heap[:300], Allowance(10_000_000))) == BASES.index("equals")
    ).all()
