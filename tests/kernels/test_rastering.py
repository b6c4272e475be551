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
