"""The drawn area within a distance, against the distance itself."""

import numpy as np
import pytest
import shapely

from contrada.language.distance import is_within
from contrada.pictures.reaches import area_within

SHAPES = {
    "a point": "POINT (9 45)",
    "a line": "LINESTRING (8 44, 10 46, 11 44)",
    "an area": "POLYGON ((8 44, 10 44, 9 46, 8 44))",
    "points": "MULTIPOINT ((8 44), (12 45))",
    "across 180°": "POINT (179.5 52)",
    "over a pole": "POINT (30 88)",
}


@pytest.mark.parametrize("text", SHAPES.values(), ids=SHAPES.keys())
@pytest.mark.parametrize("radius_m", [30_000, 300_000])
def test_what_is_drawn_is_what_is_within_the_distance(text: str, radius_m: float) -> None:
    shape = shapely.from_wkt(text)
    area = area_within(shape, radius_m)
    assert area.bounds[0] >= -180
    assert area.bounds[2] <= 180
    x, y = (
        np.random.default_rng(2).uniform(-6, 6, (2, 400))
        + shapely.get_coordinates(shape)[0, :, None]
    )
    places = shapely.points((x + 180) % 360 - 180, np.clip(y, -90, 90))
    inner, outer = (area_within(shape, radius_m * factor) for factor in (0.97, 1.03))
    for place in places:
        if is_within(place, shape, radius_m):
            assert outer.intersects(place)
        else:
            assert not inner.intersects(place)


def test_a_distance_of_half_the_earth_is_all_of_it() -> None:
    assert area_within(shapely.Point(9, 45), 2.1e7).bounds == (-180, -90, 180, 90)
    far = area_within(shapely.Point(9, 45), 1.8e7)
    assert far.intersects(shapely.Point(100, -40))
    assert not far.intersects(shapely.Point(-171, -45))


def test_no_distance_is_the_geometry_itself() -> None:
    point = shapely.Point(9, 45)
    assert area_within(point, 0) is point


def test_a_coast_of_many_vertices_is_drawn_soon() -> None:
    coast = shapely.Point(9, 45).buffer(1, quad_segs=20_000)
    assert area_within(coast, 10_000).contains(coast)
