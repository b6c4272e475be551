"""Points are placed inside or outside of areas as exact arithmetic does, or left in doubt."""

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from shapely.geometry.base import BaseGeometry

from contrada.kernels.locating import AreaRings, locate_points
from contrada.kernels.rastering import AT_BOUNDARY, IN, OUT
from contrada.model.packed_geometries import pack
from oracle import relate
from strategies import build, seeded_pick

HOLED = shapely.box(0, 0, 9, 9).difference(shapely.box(3, 3, 6, 6))
STAR = shapely.Polygon([(0, 4), (3, 3), (4, 0), (5, 3), (8, 4), (5, 5), (4, 8), (3, 5)])


def place(area: BaseGeometry, xy: NDArray[np.float64], vertices_max: int = 10**6) -> list[int]:
    packed = pack(np.array([area], object))
    outlines = AreaRings(
        packed.rings[packed.parts[:-1]],
        packed.rings[packed.parts[1:]],
        packed.vertices,
        packed.coordinates,
    )
    x, y = np.ascontiguousarray(xy.T)
    areas = np.zeros(len(xy), np.int64)
    return [int(place) for place in locate_points(outlines, areas, x, y, vertices_max)]


def by_oracle(area: BaseGeometry, xy: NDArray[np.float64]) -> list[int]:
    places = {"0": IN, "F": OUT}
    return [
        AT_BOUNDARY if found[1] == "0" else places[found[0]]
        for found in (relate(shapely.Point(x, y), area) for x, y in xy.tolist())
    ]


@given(st.integers(0, 10**9))
def test_on_a_small_grid_points_are_placed_exactly(seed: int) -> None:
    area = build(seeded_pick(seed), "area")
    rng = np.random.default_rng(seed)
    low, high = np.array(area.bounds, int).reshape(2, 2)
    xy = rng.integers(low - 1, high + 2, (12, 2)).astype(float)
    xy[::4] = shapely.get_coordinates(area)[: len(xy[::4])]
    assert place(area, xy) == by_oracle(area, xy)


@pytest.mark.parametrize("area", [HOLED, STAR])
@given(st.integers(0, 10**9), st.floats(1e-3, 1e6), st.floats(-1e6, 1e6))
def test_what_is_placed_lies_there(
    area: BaseGeometry, seed: int, factor: float, shift: float
) -> None:
    area = shapely.transform(area, lambda xy: xy * factor + shift)
    rng = np.random.default_rng(seed)
    west, south, east, north = area.bounds
    xy = rng.uniform([west, south], [east, north], (8, 2))
    # Points that lie next to the boundary or on it, as far as doubles go.
    lines = shapely.get_rings(area)
    shares = rng.uniform(0, 1, 8)
    on_it = shapely.line_interpolate_point(lines[0], shares, normalized=True)
    xy = np.concatenate([xy, shapely.get_coordinates(on_it), shapely.get_coordinates(area)])
    found, exact = place(area, xy), by_oracle(area, xy)
    assert all(a in (b, AT_BOUNDARY) for a, b in zip(found, exact, strict=True))


@pytest.mark.parametrize("size", [1e-320, 1e-200, 1e200, 1.7e308])
def test_numbers_that_products_cannot_hold_are_left_in_doubt(size: float) -> None:
    area = shapely.Polygon([(0, 0), (size, 0), (0, size)])
    xy = np.array([[0.25, 0.25], [0.75, 0.75]]) * size
    exact = by_oracle(area, xy)
    assert all(a in (b, AT_BOUNDARY) for a, b in zip(place(area, xy), exact, strict=True))


def test_points_of_areas_with_many_vertices_are_left_in_doubt() -> None:
    xy = np.array([[4.0, 4.0]])
    assert place(STAR, xy, vertices_max=8) == [AT_BOUNDARY]
    assert place(STAR, xy, vertices_max=9) == [IN]
