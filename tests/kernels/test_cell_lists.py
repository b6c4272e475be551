"""Cells: the kernels against boxes and Shapely, cell by cell of the finest level."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st
from shapely import LineString, MultiLineString, MultiPoint, Point, Polygon

from contrada import InvalidInput
from contrada.kernels.area_matrices import relate_lists
from contrada.kernels.quadtree import BOUNDARY, INTERIOR, interleave
from contrada.matching.grid import CellLists, Grid
from contrada.model.geometry import as_array
from strategies import build, geometries, place, seeded_pick

if TYPE_CHECKING:
    from shapely.geometry.base import BaseGeometry

    from contrada.arrays import Box
    from contrada.matching.grid import Prefix

Cells = dict[int, int]  # kind by place on the curve

# Shapes have their vertices on a lattice from 0 to 4. In these universes that is exact: the
# lattice fills one, is a corner of another, and reaches beyond the third.
EXACT: tuple[Box, ...] = ((0, 0, 4, 4), (-4, -4, 12, 12), (1, 1, 3, 3), (-4, 0, 4, 8))
ROUNDED: tuple[Box, ...] = ((-0.1, -0.2, 4.3, 4.4), (0.1, 0.7, 3.3, 3.9), (-180, -90, 180, 90))
FAR = 1e4

grids = st.builds(Grid, st.integers(1, 5), st.sampled_from(EXACT))
rounded_grids = st.builds(Grid, st.integers(1, 5), st.sampled_from(ROUNDED))


def cells_of(grid: Grid, geometry: BaseGeometry, prefix: Prefix = (0, 0)) -> Cells:
    """The cells of the finest level of a geometry."""
    lists = grid.decompose(as_array([geometry]), prefix)
    found: Cells = {}
    for start, size, kind in zip(
        lists.starts.tolist(), lists.sizes.tolist(), lists.kinds.tolist(), strict=True
    ):
        assert start % size == 0
        assert found.keys().isdisjoint(range(start, start + size))
        found.update(dict.fromkeys(range(start, start + size), kind))
    assert list(found) == sorted(found)
    return found


def boxes_of(grid: Grid) -> dict[int, BaseGeometry]:
    """The box of each cell; those at the rim of the universe reach far beyond it."""
    west, south, east, north = grid.universe
    side = 2**grid.level
    x, y = np.linspace(west, east, side + 1), np.linspace(south, north, side + 1)
    x[0], x[-1], y[0], y[-1] = west - FAR, east + FAR, south - FAR, north + FAR
    return {
        interleave(i, k): shapely.box(x[i], y[k], x[i + 1], y[k + 1])
        for i in range(side)
        for k in range(side)
    }


def expected_cells(grid: Grid, geometry: BaseGeometry) -> Cells:
    """The same, slow and obvious: one box after another; higher dimensions win."""
    members = shapely.get_parts(shapely.get_parts([shapely.union_all([geometry])]))
    if geometry.geom_type != "GeometryCollection":
        members = shapely.get_parts([geometry])
    by_dimension = [members[shapely.get_dimensions(members) == d] for d in range(3)]
    boxes = boxes_of(grid)
    found: Cells = {}
    for x, y in shapely.get_coordinates(by_dimension[0]).tolist():
        found[cell_at(grid, x, y)] = INTERIOR
    lines = MultiLineString(list(by_dimension[1]))
    found |= {code: INTERIOR for code, box in boxes.items() if box.intersects(lines)}
    for x, y in shapely.get_coordinates(shapely.boundary(lines)).tolist():
        found[cell_at(grid, x, y)] = BOUNDARY
    areas = shapely.MultiPolygon(list(by_dimension[2]))
    for code, box in boxes.items():
        if box.intersects(areas.boundary):
            found[code] = BOUNDARY
        elif areas.contains(box):
            found[code] = INTERIOR
    return found


def cell_at(grid: Grid, x: float, y: float) -> int:
    west, south, east, north = grid.universe
    side = 2**grid.level
    column = int(np.clip((x - west) / (east - west) * side, 0, side - 1))
    row = int(np.clip((y - south) / (north - south) * side, 0, side - 1))
    return interleave(column, row)


@given(geometries("point") | geometries("line") | geometries("area"), grids)
def test_cells_are_those_that_boxes_find(geometry: BaseGeometry, grid: Grid) -> None:
    assert cells_of(grid, geometry) == expected_cells(grid, geometry)


@given(geometries(), grids | rounded_grids)
def test_where_coordinates_are_rounded_only_what_all_but_touches_is_added(
    geometry: BaseGeometry, grid: Grid
) -> None:
    """The union of a collection has rounded vertices too."""
    found, expected = cells_of(grid, geometry), expected_cells(grid, geometry)
    assert expected.keys() <= found.keys()
    members = shapely.get_parts(shapely.get_parts([geometry]))
    is_area = shapely.get_dimensions(members) == 2
    outline = shapely.union_all([*members[~is_area], *shapely.boundary(members[is_area])])
    for code, kind in found.items():
        if expected.get(code) != kind:
            assert boxes_of(grid)[code].distance(outline) < 1e-9


@given(geometries("sliver"), grids)
def test_slivers_touch_what_they_touch(geometry: BaseGeometry, grid: Grid) -> None:
    found = cells_of(grid, geometry)
    assert set(found.values()) == {BOUNDARY}
    for code, box in boxes_of(grid).items():
        if box.intersects(geometry):
            assert code in found
        elif code in found:
            assert box.distance(geometry) < 1e-9


@given(geometries(), st.integers(1, 5), st.sampled_from(EXACT + ROUNDED))
def test_coarser_cells_are_those_around_finer_ones(
    geometry: BaseGeometry, level: int, universe: Box
) -> None:
    fine = cells_of(Grid(level + 2, universe), geometry)
    assert cells_of(Grid(level, universe), geometry).keys() == {code >> 4 for code in fine}


def split_at_random(seed: int, level: int) -> list[Prefix]:
    """The prefixes of a complete split: some cells are divided, some of these again."""
    rng = np.random.default_rng(seed)
    prefixes, pending = [], [(0, 0)]
    while pending:
        start, depth = pending.pop()
        if depth < level and rng.random() < 0.7:
            size = 4 ** (level - depth - 1)
            pending += [(start + child * size, depth + 1) for child in range(4)]
        else:
            prefixes.append((start, depth))
    return prefixes


@given(
    geometries(), geometries(), st.integers(1, 4), st.sampled_from(EXACT + ROUNDED), st.integers(0)
)
def test_over_any_complete_split_cells_and_matrices_sum_up_to_the_whole(
    event: BaseGeometry, shape: BaseGeometry, level: int, universe: Box, seed: int
) -> None:
    grid = Grid(level, universe)
    pair = as_array([event, shape])
    whole = grid.decompose(pair)
    cells: Cells = {}
    matrix, areas = np.zeros(4, np.int64), np.zeros((2, 2), np.int64)
    for prefix in split_at_random(seed, level):
        part = grid.decompose(pair, prefix)
        cells |= cells_of(grid, event, prefix)
        matrix += relate_lists(part.of(0), part.of(1), level)
        areas += part.areas()
    assert cells == cells_of(grid, event)
    assert matrix.tolist() == relate_lists(whole.of(0), whole.of(1), level).tolist()
    assert areas.tolist() == whole.areas().tolist()


@given(st.lists(geometries(), min_size=1, max_size=5), grids)
def test_many_geometries_at_once_have_the_cells_that_each_has_alone(
    shapes: list[BaseGeometry], grid: Grid
) -> None:
    lists = grid.decompose(as_array(shapes))
    assert len(lists) == len(shapes)
    for number, shape in enumerate(shapes):
        assert lists.of(number).tolist() == grid.list_cells(shape).tolist()


@given(st.integers(0, 10**9), st.integers(10, 16), st.floats(-100, 60), st.floats(0.01, 20))
def test_interior_and_boundary_enclose_the_area(
    seed: int, level: int, shift: float, factor: float
) -> None:
    area = place(build(seeded_pick(seed), "area"), (shift, shift / 2), 1.0)
    area = shapely.transform(area, lambda xy: (xy - xy[0]) * factor / 4 + xy[0])
    grid = Grid(level)
    unit = 360 * 180 / 4**level
    interior, boundary = grid.decompose(as_array([area])).areas()[0].tolist()
    within = area.intersection(shapely.box(*grid.universe)).area
    assert interior * unit <= within * (1 + 1e-9)
    assert (interior + boundary) * unit >= within * (1 - 1e-9)


# Named cases


def kinds_of(lists: CellLists) -> tuple[int, int]:
    interior, boundary = lists.areas()[0].tolist()
    return interior, boundary


def decompose(grid: Grid, geometry: BaseGeometry) -> CellLists:
    return grid.decompose(as_array([geometry]))


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5])
def test_a_square_of_many_cells_is_stored_as_few(k: int) -> None:
    """Figure 1 of the AHS paper: what is inside is stored at the level at which it fits."""
    grid = Grid(8, (0, 0, 256, 256))
    side = 2**k
    square = shapely.box(127.5 - side, 127.5 - side, 128.5 + side, 128.5 + side)
    lists = decompose(grid, square)
    interior, boundary = kinds_of(lists)
    assert (interior, boundary) == (4 * 4**k, 8 * side + 4)
    assert (lists.kinds == INTERIOR).sum() == 4
    assert set(lists.levels[lists.kinds == INTERIOR].tolist()) == {8 - k}


def test_a_larger_square_needs_no_more_interior_cells_than_a_small_one() -> None:
    grid = Grid(12, (0, 0, 4096, 4096))
    counts = [
        (decompose(grid, shapely.box(1, 1, side - 1, side - 1)).kinds == INTERIOR).sum()
        for side in (256, 2048)
    ]
    assert counts[1] < 10 * counts[0] < 10 * 256**2 / 20


def test_a_polygon_in_one_cell_is_boundary_only() -> None:
    assert kinds_of(decompose(Grid(4, (0, 0, 16, 16)), shapely.box(3.2, 3.2, 3.8, 3.8))) == (0, 1)


def test_a_hole_is_outside() -> None:
    grid = Grid(5, (0, 0, 32, 32))
    holed = Polygon(
        shapely.box(1.5, 1.5, 30.5, 30.5).exterior, [shapely.box(8.5, 8.5, 23.5, 23.5).exterior]
    )
    cells = cells_of(grid, holed)
    assert interleave(16, 16) not in cells
    assert cells[interleave(8, 16)] == BOUNDARY
    assert cells[interleave(5, 16)] == INTERIOR


def test_a_line_has_boundary_where_it_ends_and_a_closed_one_nowhere() -> None:
    grid = Grid(4, (0, 0, 16, 16))
    open_ = cells_of(grid, LineString([(0.5, 0.5), (3.5, 0.5)]))
    assert open_ == {
        interleave(0, 0): BOUNDARY,
        interleave(1, 0): INTERIOR,
        interleave(2, 0): INTERIOR,
        interleave(3, 0): BOUNDARY,
    }
    closed = LineString([(0.5, 0.5), (3.5, 0.5), (3.5, 3.5), (0.5, 0.5)])
    assert set(cells_of(grid, closed).values()) == {INTERIOR}


def test_where_an_even_number_of_lines_end_there_is_no_boundary() -> None:
    grid = Grid(4, (0, 0, 16, 16))
    legs = [[(5.5, 5.5), (1.5, 5.5)], [(5.5, 5.5), (9.5, 5.5)], [(5.5, 5.5), (5.5, 9.5)]]
    assert cells_of(grid, MultiLineString(legs[:2]))[interleave(5, 5)] == INTERIOR
    assert cells_of(grid, MultiLineString(legs))[interleave(5, 5)] == BOUNDARY


def test_points_in_one_cell_count_once() -> None:
    grid = Grid(4, (0, 0, 16, 16))
    points = MultiPoint([(1.1, 1.1), (1.9, 1.9), (7.5, 7.5)])
    assert kinds_of(decompose(grid, points)) == (2, 0)


def test_what_lies_outside_the_universe_is_drawn_to_its_rim() -> None:
    grid = Grid(4, (0, 0, 16, 16))
    assert cells_of(grid, Point(99, 3.5)) == {interleave(15, 3): INTERIOR}
    assert cells_of(grid, Point(-1e300, 1e300)) == {interleave(0, 15): INTERIOR}
    huge = shapely.box(-1e12, -1e12, 1e12, 1e12)
    assert set(cells_of(grid, huge)) == set(range(256))


def test_a_line_that_leaves_the_universe_stays_where_it_was_inside() -> None:
    grid = Grid(4, (0, 0, 16, 16))
    inside = cells_of(grid, LineString([(3.5, 3.5), (15.5, 7.1)]))
    leaving = cells_of(grid, LineString([(3.5, 3.5), (3.5 + 1e6, 3.5 + 0.3e6)]))
    assert inside.keys() <= leaving.keys()
    rim = {interleave(15, row) for row in range(16)}
    assert leaving.keys() - inside.keys() <= rim
    assert leaving[interleave(15, 15)] == BOUNDARY  # it ends far beyond that corner


def test_a_line_within_an_area_does_not_count_and_one_that_leaves_it_does() -> None:
    grid = Grid(5, (0, 0, 32, 32))
    area = shapely.box(2.5, 2.5, 16.5, 16.5)
    within, leaving = LineString([(5, 5), (9, 9)]), LineString([(5.5, 5.5), (25.5, 5.5)])
    assert cells_of(grid, shapely.GeometryCollection([area, within])) == cells_of(grid, area)
    cells = cells_of(grid, shapely.GeometryCollection([leaving, area]))
    assert cells[interleave(16, 5)] == BOUNDARY  # of the area
    assert cells[interleave(20, 5)] == INTERIOR  # of the line
    assert cells[interleave(25, 5)] == BOUNDARY


def test_the_finest_level_is_fine() -> None:
    grid = Grid(26)
    cell = 360 / 2**26
    square = shapely.box(10, 10, 10 + 40.3 * cell, 10 + 20.3 * cell)
    interior, boundary = kinds_of(decompose(grid, square))
    assert interior >= 38 * 38
    assert interior + boundary <= 43 * 43


def test_what_runs_through_too_many_cells_is_refused_and_says_so() -> None:
    zigzag = LineString([(-170 + i % 2 * 340, -80 + i / 10) for i in range(100)])
    Grid(14).check(zigzag)
    with pytest.raises(InvalidInput, match=r"cells of level 26, .*a lower level.*LINESTRING"):
        Grid(26).check(zigzag)
    with pytest.raises(InvalidInput, match="lower level"):
        Grid(26).list_cells(zigzag)
    Grid(20, (0, 0, 1e-3, 1e-3)).check(shapely.box(-90, -45, 90, 45))  # only the rim counts


@pytest.mark.parametrize("level", [0, 27, -1, 2.5, "14", True, None])
def test_a_level_that_is_none_is_refused_with_its_value(level: object) -> None:
    with pytest.raises(InvalidInput, match=f"from 1 to 26, not {level!r}"):
        Grid(level)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "universe",
    [(0, 0, 0, 1), (0, 1, 1, 0), (0, 0, 1), (0, 0, 1, float("inf")), "here", None, (0, 0, 1, "a")],
)
def test_a_universe_that_is_none_is_refused_with_its_value(universe: object) -> None:
    with pytest.raises(InvalidInput, match="universe"):
        Grid(14, universe)  # type: ignore[arg-type]
