"""Placing boxes on a grid over an area: certain or left open, and open only near the boundary."""

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from shapely.geometry.base import BaseGeometry

from contrada.kernels.rastering import AT_BOUNDARY, IN, OUT, place_boxes
from strategies import build, seeded_pick

HOLED = shapely.box(0, 0, 100, 100).difference(shapely.box(40, 40, 60, 60))
TWO_PARTS = shapely.union(shapely.box(0, 0, 30, 30), shapely.box(50, 50, 90, 60))


def place(
    area: BaseGeometry, boxes: NDArray[np.float64], side: int, margin: float = 0.0
) -> NDArray[np.uint8]:
    xy, rings = shapely.get_coordinates(
        shapely.get_rings(shapely.get_parts(area)), return_index=True
    )
    items = np.arange(len(boxes))
    return place_boxes(xy, rings, np.array(area.bounds), boxes, items, side, margin)


def random_boxes(seed: int, area: BaseGeometry, count: int) -> NDArray[np.float64]:
    """Make boxes that meet the box of an area, some with edges on the area's vertices."""
    rng = np.random.default_rng(seed)
    west, south, east, north = area.bounds
    size = np.array([east - west, north - south])
    low = np.array([west, south]) + rng.uniform(-0.2, 1, (count, 2)) * size
    vertices = shapely.get_coordinates(area)
    low[::3] = vertices[rng.integers(0, len(vertices), len(low[::3]))]
    boxes = np.hstack([low, low + rng.uniform(0, 0.2, (count, 2)) * size])
    outline = shapely.box(*boxes.T)
    return np.asarray(boxes[shapely.intersects(outline, shapely.box(*area.bounds))])


@given(st.integers(0, 10**9), st.integers(1, 60), st.floats(1e-3, 1e6), st.floats(-1e6, 1e6))
def test_what_is_placed_lies_there(seed: int, side: int, factor: float, shift: float) -> None:
    area = build(seeded_pick(seed), "area")
    area = shapely.transform(area, lambda xy: xy * factor + shift)
    boxes = random_boxes(seed, area, 60)
    outlines = np.asarray(shapely.box(*boxes.T))
    places = place(area, boxes, side)
    assert shapely.contains_properly(area, outlines[places == IN]).all()
    assert shapely.disjoint(area, outlines[places == OUT]).all()


@pytest.mark.parametrize("area", [HOLED, TWO_PARTS, shapely.Point(3, 4).buffer(50)])
def test_what_is_clear_of_the_boundary_by_two_cells_is_placed(area: BaseGeometry) -> None:
    boxes = random_boxes(1, area, 3_000)
    outlines = shapely.box(*boxes.T)
    places = place(area, boxes, 64)
    west, south, east, north = area.bounds
    two_cells = 2 * np.hypot(east - west, north - south) / 64
    is_clear = shapely.distance(outlines, area.boundary) > two_cells
    assert is_clear.sum() > 500
    assert (places[is_clear] != AT_BOUNDARY).all()
    assert {IN, OUT} <= set(places.tolist())


def test_a_margin_leaves_open_what_comes_that_near() -> None:
    area = shapely.box(0, 0, 100, 100)
    boxes = np.array([[10.0, 40, 20, 50], [25, 40, 30, 50]])
    assert place(area, boxes, 100).tolist() == [IN, IN]
    assert place(area, boxes, 100, margin=12).tolist() == [AT_BOUNDARY, IN]
    assert place(area, boxes, 100, margin=np.inf).tolist() == [AT_BOUNDARY, AT_BOUNDARY]


def test_a_hole_and_the_gap_between_two_parts_are_outside() -> None:
    assert place(HOLED, np.array([[45.0, 45, 55, 55]]), 50).tolist() == [OUT]
    assert place(TWO_PARTS, np.array([[35.0, 35, 45, 45]]), 50).tolist() == [OUT]


@pytest.mark.parametrize(
    "bounds",
    [
        (-1e308, -1e308, 1e308, 1e308),
        (0, 0, 1e-308, 1e-308),
        (0, 0, 5e-324, 5e-324),
        (0, 0, 1.7e308, 1),
        (0, 0, 1, 1e-310),
        (1e308, 1e308, 1.7e308, 1.7e308),
        (0, 0, 1e-300, 1e-300),
    ],
)
@pytest.mark.parametrize("margin", [0.0, 1e-300, 1e300, np.inf])
def test_whatever_the_doubles_no_box_is_placed_where_it_does_not_lie(
    bounds: tuple[float, float, float, float], margin: float
) -> None:
    area = shapely.box(*bounds)
    ends = [0.0, 5e-324, 1e-308, 3e-301, 0.25, 1.0, 1e308, 1.2e308, 1.7e308]
    values = np.array([sign * end for end in ends for sign in (-1, 1)])
    low, high = np.meshgrid(values, values)
    is_stretch = low <= high
    stretches = np.stack([low[is_stretch], high[is_stretch]], axis=1)
    first, second = (index.ravel() for index in np.indices((len(stretches), len(stretches))))
    boxes = np.hstack([stretches[first], stretches[second]])[:, [0, 2, 1, 3]]
    places = place(area, boxes, 65, margin)
    west, south, east, north = bounds
    is_inside = (boxes[:, 0] > west) & (boxes[:, 1] > south)
    is_inside &= (boxes[:, 2] < east) & (boxes[:, 3] < north)
    is_outside = (boxes[:, 0] > east) | (boxes[:, 1] > north)
    is_outside |= (boxes[:, 2] < west) | (boxes[:, 3] < south)
    assert is_inside[places == IN].all()
    assert is_outside[places == OUT].all()


@pytest.mark.parametrize(
    "bounds",
    [(-1e308, -1e308, 1e308, 1e308), (0, 0, 1e-308, 1e-308), (3, 3, 3, 4), (0, 0, np.inf, 1)],
)
def test_where_no_grid_can_be_laid_every_box_counts_as_one_at_the_boundary(
    bounds: tuple[float, float, float, float],
) -> None:
    west, south, east, north = bounds
    xy = np.array([(west, south), (east, south), (east, north), (west, north), (west, south)])
    boxes = np.array([[0.0, 0, 1, 1], [-1e300, 5, 7, 1e300], [9, 9, 9, 9]])
    rings, items = np.zeros(5, np.int64), np.arange(3)
    places = place_boxes(xy, rings, np.array(bounds, float), boxes, items, 9, 0.0)
    assert (places == AT_BOUNDARY).all()


def test_what_is_not_a_number_touches_every_cell() -> None:
    xy = np.array([[0.0, 0], [4, 0], [4, 4], [np.nan, np.nan], [0, 0]])
    boxes = np.array([[1.0, 1, 2, 2], [np.nan, np.nan, np.nan, np.nan]])
    places = place_boxes(
        xy, np.zeros(5, np.int64), np.array([0.0, 0, 4, 4]), boxes, np.arange(2), 9, 0.0
    )
    assert (places == AT_BOUNDARY).all()
