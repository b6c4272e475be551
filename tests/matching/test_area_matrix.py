"""Area matrices: Table 2 of the AHS paper row by row, and the aggregated cells that make them.

Cells are one unit wide and begin at whole numbers; a geometry with its vertices at halves is clear
of their borders.
"""

from __future__ import annotations

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st
from shapely import LineString, MultiPoint, Point, Polygon
from shapely.geometry.base import BaseGeometry

from contrada.kernels.area_matrices import relate_lists
from contrada.matching.ahs.area_matrix import MatrixPairs, determine, is_determined, needs_boundary
from contrada.matching.ahs.cell_index import index_cells
from contrada.matching.grid import Grid
from contrada.model.geometry import as_array, is_area
from contrada.model.relation import RELATIONS, pattern_relation
from strategies import geometries

GRID = Grid(6, (0, 0, 64, 64))
SQUARE = shapely.box(10.5, 10.5, 30.5, 30.5)
ROAD = LineString([(5.5, 20.5), (40.5, 20.5)])
SPOT = Point(20.5, 20.5)
NAMED = list(RELATIONS)
EGENHOFER = [name for name in NAMED if name.startswith("eh")]


def pair_of(event: BaseGeometry, shape: BaseGeometry, grid: Grid = GRID) -> MatrixPairs:
    lists = grid.decompose(as_array([event, shape]))
    event_areas, areas = lists.areas()
    return MatrixPairs(
        int(shapely.get_dimensions(event)),
        event_areas,
        np.array([shapely.get_dimensions(shape)]),
        areas[None],
        relate_lists(lists.of(0), lists.of(1), grid.level)[None],
    )


def holding(event: BaseGeometry, shape: BaseGeometry, grid: Grid = GRID) -> set[str]:
    """The names of all relations that hold on the grid; Egenhofer's only for areas."""
    names = NAMED if is_area(event) and is_area(shape) else [n for n in NAMED if n not in EGENHOFER]
    pairs = pair_of(event, shape, grid)
    return {name for name in names if determine(RELATIONS[name], pairs)[0]}


def ogc(event: BaseGeometry, shape: BaseGeometry) -> set[str]:
    return holding(event, shape) - set(EGENHOFER)


# The rows of Table 2, by pairs of dimensions


def test_the_matrix_counts_cells_of_the_event_by_cells_of_the_subscription() -> None:
    pairs = pair_of(ROAD, SQUARE)
    assert pairs.event_areas.tolist() == [34, 2]
    assert pairs.areas.tolist() == [[19 * 19, 80]]
    assert pairs.matrices.tolist() == [[19, 2, 0, 0]]


def test_a_match_of_cells_of_different_levels_has_the_area_of_the_smaller() -> None:
    large, small = shapely.box(0.5, 0.5, 63.5, 63.5), shapely.box(33.5, 33.5, 46.5, 46.5)
    keys = GRID.list_cells(large)
    assert ((keys >> 1) & 31).min() == 2
    assert pair_of(small, large).matrices.tolist() == [[144, 0, 52, 0]]
    assert pair_of(large, small).matrices.tolist() == [[144, 52, 0, 0]]


def test_equals_needs_equal_interiors_and_boundaries() -> None:
    assert "equals" in ogc(SQUARE, shapely.box(10.4, 10.6, 30.6, 30.4))
    assert "equals" not in ogc(SQUARE, shapely.box(10.5, 10.5, 31.5, 30.5))
    assert "equals" in ogc(ROAD, ROAD)
    assert "equals" in ogc(SPOT, Point(20.9, 20.1))
    assert "equals" not in ogc(SPOT, Point(21.5, 20.5))
    points = MultiPoint([(1.5, 1.5), (2.5, 2.5)])
    assert "equals" in ogc(points, MultiPoint([(2.5, 2.5), (1.2, 1.2)]))


def test_things_of_different_dimensions_are_never_equal() -> None:
    speck, dash = shapely.box(20.2, 20.2, 20.8, 20.8), LineString([(20.2, 20.2), (20.8, 20.8)])
    assert pair_of(speck, dash).matrices.tolist() == [[0, 0, 0, 1]]
    assert "equals" not in ogc(speck, dash)
    assert "within" in ogc(dash, speck)
    assert "within" not in ogc(speck, dash)
    assert "contains" not in ogc(dash, speck)


def test_disjoint_and_intersects_are_opposites() -> None:
    far = shapely.box(40.5, 40.5, 50.5, 50.5)
    assert ogc(far, SQUARE) == {"disjoint"}
    for event in (SPOT, ROAD, SQUARE, MultiPoint([(20.5, 20.5), (50.5, 50.5)])):
        assert "intersects" in ogc(event, SQUARE)
        assert "disjoint" not in ogc(event, SQUARE)


def test_touches_is_contact_without_common_interior_cells() -> None:
    assert "touches" in ogc(shapely.box(30.5, 10.5, 40.5, 30.5), SQUARE)
    assert "touches" in ogc(Point(30.5, 20.5), SQUARE)
    assert "touches" in ogc(LineString([(30.5, 20.5), (40.5, 20.5)]), SQUARE)
    assert "touches" in ogc(Point(5.5, 20.5), ROAD)
    assert "touches" in ogc(LineString([(5.5, 20.5), (5.5, 30.5)]), ROAD)
    assert "touches" not in ogc(SPOT, SQUARE)
    assert "touches" not in ogc(shapely.box(25.5, 10.5, 40.5, 30.5), SQUARE)


def test_points_never_touch_points() -> None:
    assert ogc(SPOT, SPOT) == {"intersects", "equals", "within", "coveredBy", "contains", "covers"}
    assert "touches" not in ogc(MultiPoint([(20.5, 20.5), (50.5, 50.5)]), SPOT)


def test_areas_overlap_where_interiors_do_and_neither_covers_the_other() -> None:
    assert "overlaps" in ogc(shapely.box(20.5, 20.5, 40.5, 40.5), SQUARE)
    assert "overlaps" not in ogc(shapely.box(12.5, 12.5, 20.5, 20.5), SQUARE)
    assert "overlaps" not in ogc(shapely.box(2.5, 2.5, 50.5, 50.5), SQUARE)
    assert "overlaps" not in ogc(SQUARE, SQUARE)


def test_lines_overlap_in_more_than_one_cell_and_cross_in_one() -> None:
    upright = LineString([(20.5, 5.5), (20.5, 40.5)])
    assert pair_of(upright, ROAD).matrices.tolist() == [[1, 0, 0, 0]]
    assert ogc(upright, ROAD) == {"intersects", "crosses"}
    along = LineString([(20.5, 20.5), (50.5, 20.5)])
    assert ogc(along, ROAD) == {"intersects", "overlaps"}


def test_points_overlap_points_of_which_each_has_some_alone() -> None:
    some, others = MultiPoint([(1.5, 1.5), (2.5, 2.5)]), MultiPoint([(2.5, 2.5), (3.5, 3.5)])
    assert ogc(some, others) == {"intersects", "overlaps"}
    assert "overlaps" not in ogc(SPOT, SPOT)
    assert "crosses" not in ogc(some, others)


def test_points_cross_lines_and_areas_that_hold_some_of_them() -> None:
    points = MultiPoint([(20.5, 20.5), (50.5, 50.5)])
    assert ogc(points, SQUARE) == {"intersects", "crosses"}
    assert ogc(points, ROAD) == {"intersects", "crosses"}
    assert "crosses" in ogc(SQUARE, points)
    assert "crosses" in ogc(ROAD, points)
    assert "crosses" not in ogc(SPOT, SQUARE)
    assert "crosses" not in ogc(SPOT, ROAD)
    assert "overlaps" not in ogc(points, SQUARE)


def test_a_line_crosses_an_area_that_it_enters_and_leaves() -> None:
    assert ogc(ROAD, SQUARE) == {"intersects", "crosses"}
    assert ogc(SQUARE, ROAD) == {"intersects", "crosses"}
    assert "crosses" not in ogc(LineString([(12.5, 20.5), (28.5, 20.5)]), SQUARE)


def test_within_is_the_whole_event_and_contains_the_whole_subscription() -> None:
    for event in (
        SPOT,
        LineString([(12.5, 20.5), (28.5, 25.5)]),
        shapely.box(12.5, 12.5, 20.5, 20.5),
    ):
        assert {"within", "coveredBy"} <= ogc(event, SQUARE)
        assert {"contains", "covers"} <= ogc(SQUARE, event)
        assert {"contains", "covers"}.isdisjoint(ogc(event, SQUARE))
    assert "within" in ogc(SPOT, ROAD)
    assert "within" in ogc(LineString([(10.5, 20.5), (20.5, 20.5)]), ROAD)
    assert "within" not in ogc(MultiPoint([(20.5, 20.5), (50.5, 50.5)]), SQUARE)


# What the grid cannot tell


def test_in_a_polygon_thinner_than_a_cell_a_point_is_within_and_touches() -> None:
    thin = shapely.box(10.1, 20.2, 30.9, 20.8)
    assert pair_of(SPOT, thin).areas[0, 0] == 0
    assert {"within", "touches"} <= ogc(SPOT, thin)
    assert shapely.within(SPOT, thin)
    assert not shapely.touches(SPOT, thin)


def test_two_lines_that_cross_twice_count_as_overlapping() -> None:
    wave = LineString([(10.5, 10.5), (15.5, 30.5), (25.5, 10.5)])
    assert shapely.crosses(wave, ROAD)
    assert "crosses" not in ogc(wave, ROAD)
    assert "overlaps" in ogc(wave, ROAD)


def test_a_near_miss_counts_as_a_touch_and_one_on_the_boundary_as_within() -> None:
    assert "touches" in ogc(Point(30.9, 20.5), SQUARE)
    assert "within" in ogc(Point(30.9, 20.5), SQUARE)
    assert "disjoint" in ogc(Point(31.1, 20.5), SQUARE)


# Egenhofer's relations, which the paper does not have


@pytest.mark.parametrize(
    ("name", "event"),
    [
        ("ehDisjoint", shapely.box(40.5, 40.5, 50.5, 50.5)),
        ("ehMeet", shapely.box(30.5, 10.5, 40.5, 30.5)),
        ("ehOverlap", shapely.box(20.5, 20.5, 40.5, 40.5)),
        ("ehEquals", SQUARE),
        ("ehInside", shapely.box(12.5, 12.5, 20.5, 20.5)),
        ("ehCoveredBy", shapely.box(10.5, 12.5, 20.5, 20.5)),
        ("ehContains", shapely.box(2.5, 2.5, 50.5, 50.5)),
        ("ehCovers", shapely.box(10.5, 2.5, 50.5, 50.5)),
    ],
)
def test_egenhofer_relations_are_told_apart_by_the_matrix(name: str, event: BaseGeometry) -> None:
    assert holding(event, SQUARE) & set(EGENHOFER) == {name}


def test_an_area_without_interior_cells_is_inside_another_all_the_same() -> None:
    thin = Polygon([(15.2, 15.2), (15.8, 15.2), (25.8, 25.8), (25.2, 25.8)])
    assert pair_of(thin, SQUARE).event_areas[0] == 0
    assert holding(thin, SQUARE) & set(EGENHOFER) == {"ehInside"}
    assert holding(SQUARE, thin) & set(EGENHOFER) == {"ehContains"}
    assert holding(thin, thin) & set(EGENHOFER) == {"ehEquals"}


@given(geometries("area"), geometries("area"), st.integers(1, 5))
def test_exactly_one_egenhofer_relation_holds(
    event: BaseGeometry, shape: BaseGeometry, level: int
) -> None:
    found = holding(event, shape, Grid(level, (-2, -2, 6, 6))) & set(EGENHOFER)
    assert len(found) == 1
    assert (found == {"ehDisjoint"}) == (
        "disjoint" in holding(event, shape, Grid(level, (-2, -2, 6, 6)))
    )


# What always holds


@given(st.lists(geometries(), min_size=1, max_size=5), geometries())
def test_many_events_are_determined_at_once_as_each_is_alone(
    events: list[BaseGeometry], shape: BaseGeometry
) -> None:
    alone = [pair_of(event, shape, Grid(4, (0, 0, 4, 4))) for event in events]
    together = MatrixPairs(
        np.array([pairs.event_dimensions for pairs in alone]),
        np.array([pairs.event_areas for pairs in alone]),
        np.concatenate([pairs.dimensions for pairs in alone]),
        np.concatenate([pairs.areas for pairs in alone]),
        np.concatenate([pairs.matrices for pairs in alone]),
    )
    for relation in RELATIONS.values():
        found = determine(relation, together).tolist()
        assert found == [bool(determine(relation, pairs)[0]) for pairs in alone]


@given(geometries(), geometries(), st.integers(1, 5))
def test_converse_relations_hold_the_other_way_round(
    event: BaseGeometry, shape: BaseGeometry, level: int
) -> None:
    grid = Grid(level, (-2, -2, 6, 6))
    there, back = holding(event, shape, grid), holding(shape, event, grid)
    one_sided = {"crosses"}  # of a line as the subscription only the interior counts
    assert there - one_sided == {RELATIONS[name].transposed().name for name in back} - one_sided


@given(geometries(), geometries(), st.integers(1, 5))
def test_what_is_disjoint_on_the_grid_is_disjoint(
    event: BaseGeometry, shape: BaseGeometry, level: int
) -> None:
    if "disjoint" in holding(event, shape, Grid(level, (-2, -2, 6, 6))):
        assert shapely.disjoint(event, shape)


@given(geometries("area"), st.integers(1, 5))
def test_a_common_interior_cell_proves_that_interiors_meet(shape: BaseGeometry, level: int) -> None:
    grid = Grid(level, (-2, -2, 6, 6))
    event = shapely.box(0.3, 0.6, 3.2, 2.9)
    if pair_of(event, shape, grid).interiors[0]:
        assert shapely.relate_pattern(event, shape, "T********")


def test_all_named_relations_are_determined_and_no_pattern_is() -> None:
    assert all(map(is_determined, RELATIONS.values()))
    assert not is_determined(pattern_relation("T*F**F***"))


def test_only_crosses_with_a_line_needs_no_boundary() -> None:
    needed = {(n, d) for n in NAMED for d in range(3) if needs_boundary(RELATIONS[n], d)}
    assert needed == {(n, d) for n in NAMED for d in range(3)} - {("crosses", 1)}


# The aggregated structure


shape_lists = st.lists(geometries(), min_size=1, max_size=6)


@given(geometries(), shape_lists, st.booleans(), st.integers(1, 5), st.integers(0, 2**6))
def test_all_shapes_are_matched_at_once_as_each_is_alone(
    event: BaseGeometry, shapes: list[BaseGeometry], deduplicate: bool, level: int, bare: int
) -> None:
    """With copies of some shapes, and only the interior of others."""
    grid = Grid(level, (0, 0, 4, 4))
    shapes = [*shapes, *shapes[:2]]
    needs = np.array([not bare >> i & 1 for i in range(len(shapes))])
    index = index_cells(grid, as_array(shapes), needs_boundary=needs, deduplicate=deduplicate)
    keys = grid.list_cells(event)
    found: dict[int, list[int]] = {}
    for _ in range(2):  # the second time with what the first left behind
        matches = index.match(keys)
        which, items = index.items_of(matches.shapes)
        found = dict(zip(items.tolist(), matches.matrices[which].tolist(), strict=True))
        assert len(found) == len(items)
    for item, shape in enumerate(shapes):
        same = [
            i for i, other in enumerate(shapes) if shapely.to_wkb(other) == shapely.to_wkb(shape)
        ]
        is_full = needs[same].any() if deduplicate else needs[item]
        matrix = relate_lists(keys, grid.list_cells(shape), level)
        if not is_full:
            matrix[[1, 3]] = 0
        assert found.get(item, [0, 0, 0, 0]) == matrix.tolist()


def test_copies_of_one_geometry_are_stored_once_or_as_often_as_they_come() -> None:
    copies = as_array([SQUARE] * 50)
    once = index_cells(GRID, copies).stats()
    each = index_cells(GRID, copies, deduplicate=False).stats()
    assert once["cells"] == each["cells"] == once["postings"]
    assert each["postings"] == each["cells_listed"] == once["cells_listed"] == 50 * once["cells"]


def test_shapes_that_share_cells_are_aggregated() -> None:
    shapes = as_array([shapely.box(10.5, 10.5, 30.5 + i, 30.5) for i in range(5)])
    stats = index_cells(GRID, shapes).stats()
    assert stats["cells"] < stats["postings"] / 2


def test_areas_are_kept_whether_the_boundary_is_indexed_or_not() -> None:
    index = index_cells(GRID, as_array([ROAD]), needs_boundary=np.array([False]))
    assert index.areas.tolist() == [[34, 2]]
    assert set(index.kinds.tolist()) == {0}


def test_an_index_of_nothing_finds_nothing() -> None:
    index = index_cells(GRID, as_array([]))
    assert index.match(GRID.list_cells(SQUARE)).shapes.tolist() == []
