"""The workloads of the CR-tree paper are what they say."""

import numpy as np
import pytest
import shapely
from shapely import LineString, Point, Polygon

from contrada.model.geometry import as_array
from contrada.reproduce.scenarios import (
    EVENT_KINDS,
    event_region,
    into_unit_square,
    scattered_regions,
    synthetic_regions,
)


def test_regions_of_section_5_are_large_and_lie_in_the_universe() -> None:
    regions = synthetic_regions(np.random.default_rng(1), 30)
    assert shapely.is_valid(regions).all()
    assert (shapely.area(regions) >= 0.1).all()
    assert (shapely.get_num_points(shapely.get_exterior_ring(regions)) == 21).all()
    assert shapely.box(0, 0, 1, 1).covers(shapely.union_all(regions))


@pytest.mark.parametrize("kind", EVENT_KINDS)
def test_events_have_the_shape_of_their_type(kind: str) -> None:
    rng = np.random.default_rng(2)
    for _ in range(50):
        west, south, east, north = event_region(rng, kind).bounds
        width, height = east - west, north - south
        assert 0.01 - 1e-9 <= width * height <= 0.25 + 1e-9
        ratio = max(width / height, height / width)
        least, most = {"A": (1, 1.12), "B": (1, 2.01), "C": (9.9, 20.1)}[kind]
        assert least <= ratio <= most


def test_scattered_regions_are_valid_and_nearly_as_many_as_asked_for() -> None:
    regions = scattered_regions(np.random.default_rng(3), 400)
    assert shapely.is_valid(regions).all()
    assert 380 <= len(regions) <= 400


def test_a_layer_is_brought_into_the_unit_square_as_simple_polygons() -> None:
    pierced = shapely.box(10, 10, 20, 20) - shapely.box(12, 12, 14, 14)
    pair = shapely.MultiPolygon([shapely.box(0, 0, 5, 5), shapely.box(30, 30, 40, 50)])
    moved = into_unit_square(as_array([pierced, pair]))
    assert len(moved) == 3
    assert shapely.total_bounds(moved).tolist() == [0, 0, 1, 1]
    assert (shapely.get_num_interior_rings(moved) == 0).all()


def test_what_is_no_polygon_or_not_finite_is_left_out() -> None:
    with np.errstate(invalid="ignore"):
        broken = shapely.from_wkt("POLYGON((0 0, 1 0, inf 1, 0 0))")
        undefined = shapely.from_wkt("POLYGON((0 0, 1 0, 1 nan, 0 0))")
    line = LineString([(0, 0), (9, 9)])
    others = [None, Point(0, 0), line, Polygon(), broken, undefined]
    moved = into_unit_square(as_array([*others, shapely.box(2, 2, 4, 4)]))
    assert shapely.bounds(moved).tolist() == [[0, 0, 1, 1]]
    assert len(into_unit_square(as_array(others))) == 0
