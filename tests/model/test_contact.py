"""Geometries taken apart meet just where GEOS says so, and large ones meet in no time or never."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import shapely
from shapely.geometry.base import BaseGeometry

from contrada.arrays import Floats, Geometries
from contrada.model import contact
from contrada.model.contact import find_meetings, meet
from contrada.model.geometry import as_array

SIDE = 5


def squares(seed: np.random.Generator, count: int) -> BaseGeometry:
    """Squares in cells of their own, some with holes: whole numbers, so that many touch."""
    cells = seed.choice(SIDE * SIDE, count, replace=False)
    corners = np.column_stack([cells % SIDE, cells // SIDE]) * 4.0
    size = seed.integers(1, 4, count)[:, None]
    corners += seed.integers(0, 4, (count, 2)) * (corners + size + 3 < 4 * SIDE + 4) % 2
    boxes = shapely.box(*corners.T, *(corners + size).T)
    holes = shapely.box(*(corners + size / 3).T, *(corners + size / 2).T)
    holed = np.where(seed.random(count) < 0.5, shapely.difference(boxes, holes), boxes)
    return gather(shapely.multipolygons, shapely.get_parts(shapely.union_all(holed)))


def lines(seed: np.random.Generator, count: int) -> BaseGeometry:
    starts = seed.integers(0, 4 * SIDE, (count, 1, 2))
    steps = seed.integers(-1, 2, (count, 3, 2)) + np.array([0, 0.25])
    return gather(shapely.multilinestrings, list(np.concatenate([starts, starts + steps], axis=1)))


def points(seed: np.random.Generator, count: int) -> BaseGeometry:
    return gather(shapely.multipoints, seed.integers(0, 16 * SIDE, (count, 2)) / 4)


def mixed(seed: np.random.Generator, count: int) -> shapely.GeometryCollection:
    members = [make(seed, max(1, count // 3)) for make in (squares, lines, points)]
    return shapely.GeometryCollection(members)


MAKERS = (squares, lines, points, mixed)


def pairs(seed: int, rounds: int) -> tuple[Geometries, Geometries]:
    random = np.random.default_rng(seed)
    shapes = [
        make(random, int(random.integers(1, 12)))
        for _ in range(rounds)
        for one in MAKERS
        for other in MAKERS
        for make in (one, other)
    ]
    return as_array(shapes[::2]), as_array(shapes[1::2])


@pytest.mark.parametrize("is_dense", [False, True])
def test_taking_geometries_apart_changes_no_answer(
    is_dense: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contact, "PLAIN_VERTICES_MAX", 0)
    monkeypatch.setattr(contact, "_COMPONENTS_MIN", 0)
    monkeypatch.setattr(contact, "_are_dense", lambda *_: is_dense)
    one, other = pairs(1, 40)
    meets, known = find_meetings(one, other)
    expected = shapely.intersects(one, other)
    assert known.all()
    assert 0.1 < expected.mean() < 0.9
    assert (meets == expected).all()


def grid(offset: float, side: int) -> Floats:
    x, y = np.divmod(np.arange(side * side), side)
    return np.column_stack([x, y]) * 2.0 + offset


def boxes(offset: float, side: int) -> BaseGeometry:
    corners = np.random.default_rng(0).permutation(grid(offset, side))
    return gather(shapely.multipolygons, shapely.box(*corners.T, *(corners + 0.6).T))


def gather(make: Callable[..., Any], parts: Any) -> BaseGeometry:
    made: BaseGeometry = make(parts)
    return made


def strokes(offset: float, side: int) -> BaseGeometry:
    starts = grid(offset, side)
    ends = np.stack([starts, starts + np.array([0.6, 0.5])], axis=1)
    return gather(shapely.multilinestrings, list(ends))


def dots(offset: float, side: int) -> BaseGeometry:
    return gather(shapely.multipoints, grid(offset, side))


def holed(offset: float, side: int) -> BaseGeometry:
    """A square with very many holes."""
    holes = shapely.get_coordinates(boxes(offset, side)).reshape(side * side, 5, 2)
    return shapely.Polygon(shapely.box(-9, -9, 3 * side, 3 * side).exterior, list(holes))


def meander(side: int) -> BaseGeometry:
    """A line that comes by every row of a grid, with very many vertices."""
    rows = [[(-1, y), (2 * side, y), (2 * side, y + 1), (-1, y + 1)] for y in range(0, side, 2)]
    fine = shapely.segmentize(shapely.LineString(np.concatenate(rows)), 0.2)
    return shapely.transform(fine, lambda xy: xy * [1, 2] + 0.5)


def comb(side: int) -> BaseGeometry:
    """An area with very many long teeth."""
    x = np.arange(side * side)
    teeth = np.column_stack([x, 1000.0 * (x % 2)])
    return shapely.Polygon([*teeth, (side * side, -1), (-1, -1)])


def tips(side: int) -> BaseGeometry:
    """Points between the teeth of a comb."""
    x = np.arange(2, side * side, 2)
    return gather(shapely.multipoints, np.column_stack([x, np.full(len(x), 999)]))


def spiral(turns: int, shift: float) -> BaseGeometry:
    """A line of slanting edges round its beginning: their boxes meet very often."""
    angles = np.arange(4 * turns) * np.pi / 2
    away = 10 + np.arange(4 * turns) + shift
    return shapely.LineString(np.column_stack([away * np.cos(angles), away * np.sin(angles)]))


SIDES = 100
LARGE: dict[str, Callable[[], tuple[BaseGeometry, BaseGeometry]]] = {
    "squares": lambda: (boxes(0, SIDES), boxes(1, SIDES)),
    "lines": lambda: (strokes(0, SIDES), strokes(1, SIDES)),
    "points": lambda: (dots(0, SIDES), dots(1, SIDES)),
    "lines and squares": lambda: (strokes(0, SIDES), boxes(1, SIDES)),
    "points and squares": lambda: (dots(0.9, SIDES), boxes(1, SIDES)),
    "points and lines": lambda: (dots(1, SIDES), strokes(0, SIDES)),
    "points and a line": lambda: (dots(1, SIDES), meander(SIDES)),
    "points and a comb": lambda: (tips(SIDES), comb(SIDES)),
    "points in holes": lambda: (dots(0.3, SIDES), holed(0, SIDES)),
}


def join(one: BaseGeometry, other: BaseGeometry) -> BaseGeometry:
    """Add a geometry to another."""
    parts = [*shapely.get_parts(one), *shapely.get_parts(other)]
    return shapely.GeometryCollection(parts)


@pytest.mark.parametrize("name", LARGE)
def test_large_geometries_meet_where_one_of_very_many_parts_does(name: str) -> None:
    """GEOS takes from seconds to minutes for some of these."""
    one, other = LARGE[name]()
    assert meet(one, other) is False
    assert meet(other, one) is False
    last = shapely.get_point(shapely.get_parts(shapely.get_parts(one))[-1], 0)
    point = shapely.Point(shapely.get_coordinates(one)[-1]) if last is None else last
    assert meet(one, join(other, point)) is True
    assert meet(join(other, point), one) is True


def test_whether_lines_meet_is_unknown_where_too_many_edges_come_near() -> None:
    one, other = spiral(1_500, 0), spiral(1_500, 2)
    assert meet(one, other) is None
    assert meet(one, shapely.reverse(one)) is True
    far = shapely.transform(other, lambda xy: xy + 20_000)
    assert meet(one, far) is False


def test_fewer_edges_are_decided_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = spiral(200, 0), spiral(200, 2)
    monkeypatch.setattr(contact, "_are_dense", lambda *_: True)
    monkeypatch.setattr(contact, "PLAIN_VERTICES_MAX", 1_000)
    assert meet(one, other) is False


def test_too_many_points_as_high_as_too_many_edges_are_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A comb is turned, so that few edges are as high as a point; a slanting one is not better."""
    points, area = (
        shapely.transform(shape, lambda xy: xy @ np.array([[1.0, 0.1], [1.0, 1.0]]))
        for shape in (tips(SIDES), comb(SIDES))
    )
    monkeypatch.setattr(contact, "_EDGES_PER_VERTEX", 1)
    monkeypatch.setattr(contact, "CONTACT_EDGES_MAX", 1_000_000)
    assert meet(points, area) is None
    assert meet(tips(SIDES), comb(SIDES)) is False
