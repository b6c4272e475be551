"""Edges in runs against Shapely and plain loops: nothing that touches or is near is left out."""

from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from contrada.kernels.edge_search import (
    APART,
    CUT,
    RUN_EDGES,
    UNSURE,
    cut_runs,
    find_boxes,
    find_passed,
    measure_gaps,
    meet_run,
)
from contrada.kernels.packed_tree import NODE, pack_boxes
from contrada.language.distance import point_distances_m

numbers = st.integers(-3, 3).map(float) | st.floats(-3, 3)
Place = tuple[float, float]
places = st.tuples(numbers, numbers)
boxes = st.tuples(places, places).map(lambda both: (*map(min, *both), *map(max, *both)))
rings = st.lists(st.lists(places, min_size=1, max_size=3 * RUN_EDGES), min_size=1, max_size=4)


@given(rings)
def test_runs_have_each_edge_once_and_a_box_around_them(given_rings: list[list[object]]) -> None:
    coordinates = np.array([place for ring in given_rings for place in ring], float)
    vertices = np.cumsum([0, *map(len, given_rings)])
    of, firsts, lasts, around = cut_runs(coordinates, vertices)
    edges = [
        (ring, at, at + 1)
        for ring, first, last in zip(of.tolist(), firsts.tolist(), lasts.tolist(), strict=True)
        for at in range(first, last)
    ]
    expected = [
        (ring, at, at + 1)
        for ring, (first, end) in enumerate(pairwise(vertices.tolist()))
        for at in range(first, end - 1)
    ]
    assert edges == expected
    assert set(of.tolist()) == set(range(len(given_rings)))
    for first, last, box in zip(firsts, lasts, around, strict=True):
        assert last - first <= RUN_EDGES
        run = coordinates[first : last + 1]
        assert box.tolist() == [*run.min(axis=0), *run.max(axis=0)]


@given(st.lists(boxes, min_size=1, max_size=3 * NODE), st.lists(boxes, max_size=20))
def test_boxes_that_meet_are_found(given_boxes: list[object], given_asked: list[object]) -> None:
    known, asked = (np.array(b, float).reshape(-1, 4) for b in (given_boxes, given_asked))
    rows, items = find_boxes(pack_boxes(known), asked)
    expected = [
        (row, item)
        for row, (w, s, e, n) in enumerate(asked.tolist())
        for item, (west, south, east, north) in enumerate(known.tolist())
        if west <= e and w <= east and south <= n and s <= north
    ]
    assert sorted(zip(rows.tolist(), items.tolist(), strict=True)) == expected


def meet(way: tuple[Place, Place], run: list[Place]) -> int:
    return int(meet_run(*way[0], *way[1], 0, len(run) - 1, np.array(run, float)))


def turn(a: Place, b: Place, c: Place) -> int:
    """On which side of the line from a to b the point c lies, in exact numbers."""
    (ax, ay), (bx, by), (cx, cy) = (map(Fraction, place) for place in (a, b, c))
    area = (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)
    return (area > 0) - (area < 0)


def crosses(way: tuple[Place, Place], edge: tuple[Place, Place]) -> bool:
    """Whether two lines have a point in common that is an end of neither, and no more."""
    return all(
        turn(*one, other[0]) * turn(*one, other[1]) < 0 for one, other in ((way, edge), (edge, way))
    )


@given(st.tuples(places, places), st.lists(places, min_size=1, max_size=RUN_EDGES + 1))
def test_a_way_that_touches_a_run_is_never_left_out(
    way: tuple[Place, Place], run: list[Place]
) -> None:
    met = meet(way, run)
    line = shapely.LineString(way)
    shape = shapely.LineString(run) if len(run) > 1 else shapely.Point(run[0])
    if way[0] != way[1] and shapely.intersects(line, shape):
        assert met != APART


@given(st.tuples(places, places), st.lists(places, min_size=1, max_size=RUN_EDGES + 1))
def test_a_run_that_is_crossed_is_crossed_in_exact_numbers(
    way: tuple[Place, Place], run: list[Place]
) -> None:
    if meet(way, run) == CUT:
        assert any(crosses(way, edge) for edge in pairwise(run))


def test_a_way_meets_a_run_in_one_of_three_ways() -> None:
    corner = [(0.0, 0.0), (2.0, 0.0), (2.0, 2.0)]
    assert meet(((0.0, 1.0), (1.0, 2.0)), corner) == APART
    assert meet(((1.0, 1.0), (3.0, 1.0)), corner) == CUT
    assert meet(((0.9, 0.9), (1.8, 0.1)), corner) == APART
    assert meet(((1.0, 1.0), (2.0, 1.0)), corner) == UNSURE


ways = st.tuples(places, places).map(lambda ends: (*ends[0], *ends[1]))
runs = st.lists(places, min_size=1, max_size=RUN_EDGES + 1)


@given(
    st.lists(st.tuples(runs, st.booleans()), min_size=1, max_size=3 * NODE),
    st.lists(ways | st.just((np.nan,) * 4), max_size=20),
    st.sampled_from([1, 5, 40]),
)
def test_ways_find_all_runs_that_they_are_not_apart_from(
    given_runs: list[tuple[list[Place], bool]], given_ways: list[Any], times: int
) -> None:
    """Many times the same is near to as many ways at once."""
    given_runs *= times
    coordinates = np.array([place for run, _ in given_runs for place in run], float)
    ends = np.cumsum([len(run) for run, _ in given_runs])
    firsts, lasts = ends - [len(run) for run, _ in given_runs], ends - 1
    boxes = [(*np.min(run, axis=0), *np.max(run, axis=0)) for run, _ in given_runs]
    asked = np.array(given_ways, float).reshape(-1, 4)
    shown = np.where([is_shown for _, is_shown in given_runs], firsts, -1)
    rows, found, met = find_passed(pack_boxes(np.array(boxes)), asked, shown, lasts, coordinates)
    expected = {}
    for row, way in enumerate(asked.tolist()):
        for item, (west, south, east, north) in enumerate(boxes):
            is_apart = max(way[0], way[2]) < west or min(way[0], way[2]) > east
            is_apart |= max(way[1], way[3]) < south or min(way[1], way[3]) > north
            if np.isnan(way[0]) or is_apart:
                continue
            run, is_shown = given_runs[item]
            how = meet((tuple(way[:2]), tuple(way[2:])), run) if is_shown else UNSURE
            if how != APART:
                expected[row, item] = how
    assert len(rows) == len(expected)
    assert (
        dict(zip(zip(rows.tolist(), found.tolist(), strict=True), met.tolist(), strict=True))
        == expected
    )


@pytest.mark.parametrize("size", [1e200, 1e-158])
def test_no_turn_is_certain_beyond_what_its_products_can_hold(size: float) -> None:
    way = ((-2 * size, -2.1 * size), (3 * size, 3 * size))
    assert meet(way, [(0.0, 1 * size), (1 * size, 0.0)]) == UNSURE


@given(st.floats(-60, 60), st.floats(-0.01, 0.01), st.floats(-0.01, 0.01))
def test_a_gap_is_the_distance_to_a_point_nearby(y: float, dx: float, dy: float) -> None:
    x, zero = np.array([10.0]), np.zeros(1, np.int64)
    place = np.array([[10.0 + dx, y + dy]])
    gap = measure_gaps(x, np.array([y]), zero, zero, place)[0]
    exact = point_distances_m(x, np.array([y]), place[:, 0], place[:, 1])[0]
    assert abs(gap - exact) <= 1e-3 * exact + 1e-6


def test_a_gap_is_measured_to_the_nearest_place_of_an_edge() -> None:
    edge = np.array([[-1.0, 0.01], [1.0, 0.01]])
    zero = np.zeros(1, np.int64)
    gap = measure_gaps(np.zeros(1), np.zeros(1), zero, zero + 1, edge)[0]
    assert abs(gap - 1_105.74) < 0.01
