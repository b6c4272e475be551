"""A packed tree finds for each point the boxes around it, and no others."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada.kernels.packed_tree import NODE, find_points, pack_boxes

numbers = st.one_of(
    st.integers(-3, 3).map(float),
    st.sampled_from([0.0, -0.0, 5e-324, 1e-310, 1.7e308, -1.7e308, 1e300, -1e300]),
    st.floats(allow_nan=False, allow_infinity=False),
)
corners = st.tuples(numbers, numbers)
boxes = st.tuples(corners, corners).map(lambda both: (*map(min, *both), *map(max, *both)))
nowhere = st.just((np.nan,) * 4)


def by_hand(boxes: np.ndarray, points: np.ndarray) -> list[tuple[int, int]]:
    return [
        (item, place)
        for item, (west, south, east, north) in enumerate(boxes.tolist())
        for place, (x, y) in enumerate(points.tolist())
        if west <= x <= east and south <= y <= north
    ]


def found(boxes: np.ndarray, points: np.ndarray) -> list[tuple[int, int]]:
    places, items = find_points(pack_boxes(boxes), *np.ascontiguousarray(points.T))
    assert (np.diff(items) >= 0).all()
    return sorted(zip(items.tolist(), places.tolist(), strict=True))


@given(
    st.lists(st.one_of(boxes, nowhere), min_size=1, max_size=3 * NODE),
    st.lists(corners, max_size=30),
)
def test_any_boxes_and_points(given_boxes: list[object], given_points: list[object]) -> None:
    boxes = np.array(given_boxes, float).reshape(-1, 4)
    points = np.array(given_points, float).reshape(-1, 2)
    assert found(boxes, points) == by_hand(boxes, points)


@pytest.mark.parametrize("count", [1, NODE, NODE + 1, NODE**2, NODE**3 + 1])
def test_trees_of_every_height(count: int) -> None:
    pick = np.random.default_rng(count)
    corners = pick.integers(0, 100, (count, 2)).astype(float)
    boxes = np.hstack([corners, corners + pick.integers(0, 10, (count, 2))])
    points = pick.integers(0, 110, (200, 2)).astype(float)
    assert found(boxes, points) == by_hand(boxes, points)


def test_many_boxes_around_one_point() -> None:
    boxes = np.tile([0.0, 0.0, 1.0, 1.0], (1_000, 1))
    assert len(found(boxes, np.full((20, 2), 0.5))) == 20_000
