"""The authority on how two geometries relate: slow, obvious, exact, and independent of GEOS.

Shapely serves to read types and coordinates and for nothing else. Every double is a rational
number, so both geometries are multiplied by one power of two and become integers; only the points
where two edges cross properly may be fractions. Nothing is ever rounded.

What a geometry means:

- A geometry is the *union* of its members; empty members are dropped, z is ignored, repeated
  vertices are harmless and a line of length zero is a point.
- Its area is the union of its polygons. A point of it is interior if all of its surroundings
  belong to polygons, so that a border shared by two polygons of a collection is interior; it is
  boundary if only some of them do.
- What is not in the area may be on a line: there a point is boundary if an odd number of line ends
  lie on it (the mod-2 rule, over all lines of the geometry together), else interior.
- What is on neither may be a point: interior. All the rest is exterior.

How the matrix is found:

- The linework of both geometries is cut at every vertex and every crossing. Its *cells* are
  vertices, open pieces of edges, and faces. Neither geometry changes its mind within a cell.
- A ray from the middle of a piece tells, by the even-odd rule, which polygons lie just above it and
  just below it. Each face, and each sector around a vertex, is such a side of some piece; only a
  vertex that lies on no piece needs a ray of its own.
- Positions are ordered by x, then by y. This is the order after an infinitesimal shear, in which no
  edge is vertical: "above" an edge is left of it as it runs from its lesser to its greater end.
- An entry of the matrix is the greatest dimension of the cells at those two locations.

Both geometries must be valid as OGC defines it; members of a collection may overlap as they like.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, TypeAlias

import shapely
from shapely.geometry import LineString, Point, Polygon

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from shapely.geometry.base import BaseGeometry

Number: TypeAlias = int | Fraction
Position: TypeAlias = tuple[Number, Number]
Segment: TypeAlias = tuple[Position, Position]  # from the lesser to the greater position

INTERIOR, BOUNDARY, EXTERIOR = range(3)


@dataclass(slots=True)
class Shape:
    """The non-empty members of one geometry, in exact coordinates, each polygon as its edges."""

    polygons: list[list[Segment]] = field(default_factory=list)
    line_edges: list[Segment] = field(default_factory=list)
    line_ends: Counter[Position] = field(default_factory=Counter)
    points: set[Position] = field(default_factory=set)

    def edges(self) -> Iterator[Segment]:
        """Every edge of the linework; borders that polygons share come twice."""
        yield from self.line_edges
        for polygon in self.polygons:
            yield from polygon


@dataclass(frozen=True, slots=True)
class Sides:
    """Whether a geometry's area lies just above and just below a piece or an isolated vertex."""

    above: bool
    below: bool


def relate(a: BaseGeometry, b: BaseGeometry) -> str:
    """The DE-9IM matrix of a and b, in the order II IB IE BI BB BE EI EB EE.

    >>> relate(Point(0, 0), LineString([(0, 0), (1, 0)]))
    'F0FFFF102'
    """
    shapes = read(a, b)
    pieces_of = cut(shapes)
    pieces = {piece for its_pieces in pieces_of.values() for piece in its_pieces}
    vertices = ends_and_points(pieces, shapes)
    dimensions = [[-1] * 3 for _ in range(3)]
    dimensions[EXTERIOR][EXTERIOR] = 2
    cells_of_a, cells_of_b = (locate_cells(shape, pieces_of, pieces, vertices) for shape in shapes)
    for (dimension, at_a), (_, at_b) in zip(cells_of_a, cells_of_b, strict=True):
        dimensions[at_a][at_b] = max(dimensions[at_a][at_b], dimension)
    return "".join("F012"[dimension + 1] for row in dimensions for dimension in row)


def matches(matrix: str, pattern: str) -> bool:
    """Whether a matrix fits a DE-9IM pattern of the characters T F * 0 1 2."""
    return all(
        wanted == "*" or wanted == entry or (wanted == "T" and entry != "F")
        for entry, wanted in zip(matrix, pattern, strict=True)
    )


def egenhofer(a: BaseGeometry, b: BaseGeometry) -> str:
    """The name of the one base relation of two regions that holds, holes and parts allowed."""
    matrix = relate(a, b)
    they_share_boundary = matrix[4] != "F"
    if matrix[0] == "F":
        return "meets" if they_share_boundary else "disjoint"
    nothing_of_a_is_outside, nothing_of_b_is_outside = matrix[2] == "F", matrix[6] == "F"
    if nothing_of_a_is_outside and nothing_of_b_is_outside:
        return "equals"
    if nothing_of_a_is_outside:
        return "coveredBy" if they_share_boundary else "inside"
    if nothing_of_b_is_outside:
        return "covers" if they_share_boundary else "contains"
    return "overlaps"


# Reading


def read(a: BaseGeometry, b: BaseGeometry) -> tuple[Shape, Shape]:
    """Both geometries in integers: their coordinates times one power of two that suits both."""
    numbers = shapely.get_coordinates([a, b]).ravel().tolist()
    # Twice as large as need be, so that the middle between two vertices is an integer as well.
    scale = 2 * max((number.as_integer_ratio()[1] for number in numbers), default=1)

    def positions(member: BaseGeometry) -> list[Position]:
        ratios = [[c.as_integer_ratio() for c in xy] for xy in shapely.get_coordinates(member)]
        return [(xn * (scale // xd), yn * (scale // yd)) for (xn, xd), (yn, yd) in ratios]

    return read_shape(a, positions), read_shape(b, positions)


def read_shape(
    geometry: BaseGeometry, positions: Callable[[BaseGeometry], list[Position]]
) -> Shape:
    """The members of a geometry, sorted by dimension."""
    shape = Shape()
    for member in members(geometry):
        if isinstance(member, Polygon):
            rings = [positions(ring) for ring in (member.exterior, *member.interiors)]
            shape.polygons.append([edge for ring in rings for edge in edges_along(ring)])
        elif isinstance(member, LineString) and (edges := edges_along(path := positions(member))):
            shape.line_edges += edges
            shape.line_ends.update((path[0], path[-1]))
        else:
            assert isinstance(member, Point | LineString), f"unknown type {member.geom_type}"
            shape.points.add(positions(member)[0])
    return shape


def members(geometry: BaseGeometry) -> Iterator[BaseGeometry]:
    """The points, lines and polygons of a geometry that are not empty, however deep they nest."""
    if geometry.is_empty:
        return
    if hasattr(geometry, "geoms"):
        for member in geometry.geoms:
            yield from members(member)
    else:
        yield geometry


def edges_along(path: list[Position]) -> list[Segment]:
    """The edges between successive vertices, without those of length zero."""
    return [(min(p, q), max(p, q)) for p, q in pairwise(path) if p != q]


# Cutting


def cut(shapes: tuple[Shape, Shape]) -> dict[Segment, list[Segment]]:
    """The pieces of each edge between the vertices and crossings that lie on it."""
    cuts: dict[Segment, set[Position]] = {edge: set() for shape in shapes for edge in shape.edges()}
    vertices = ends_and_points(cuts, shapes)
    for edge, its_cuts in cuts.items():
        its_cuts.update(vertex for vertex in vertices if lies_on(vertex, edge))
    for edge, other in combinations(cuts, 2):
        crossing = proper_crossing(edge, other)
        if crossing is not None:
            cuts[edge].add(crossing)
            cuts[other].add(crossing)
    return {edge: list(pairwise(sorted(its_cuts))) for edge, its_cuts in cuts.items()}


def ends_and_points(segments: Iterable[Segment], shapes: tuple[Shape, Shape]) -> set[Position]:
    """The ends of these segments, and the points of both geometries."""
    return {end for segment in segments for end in segment}.union(*(s.points for s in shapes))


def turn(edge: Segment, p: Position) -> Number:
    """Positive if p is above the edge, negative if below, zero if on the line through it."""
    (ax, ay), (bx, by) = edge
    return (bx - ax) * (p[1] - ay) - (by - ay) * (p[0] - ax)


def lies_on(p: Position, edge: Segment) -> bool:
    """Whether a position lies on a closed edge."""
    return edge[0] <= p <= edge[1] and turn(edge, p) == 0


def proper_crossing(edge: Segment, other: Segment) -> Position | None:
    """The one position inside both edges, if they cross and neither ends there."""
    if edge[1] <= other[0] or other[1] <= edge[0]:
        return None
    start, end = turn(edge, other[0]), turn(edge, other[1])
    if start * end >= 0 or turn(other, edge[0]) * turn(other, edge[1]) >= 0:
        return None
    share = Fraction(start) / (start - end)
    (ax, ay), (bx, by) = other
    return ax + share * (bx - ax), ay + share * (by - ay)


# Locating


def locate_cells(
    shape: Shape,
    pieces_of: dict[Segment, list[Segment]],
    pieces: Iterable[Segment],
    vertices: Iterable[Position],
) -> Iterator[tuple[int, int]]:
    """The dimension and the location in one geometry of each cell, always in the same order."""
    on_lines = {piece for edge in shape.line_edges for piece in pieces_of[edge]}
    sides_around: dict[Position, list[Sides]] = {vertex: [] for vertex in vertices}
    lines_around = {end for piece in on_lines for end in piece}
    for piece in pieces:
        sides = sides_at(shape, middle(piece))
        for end in piece:
            sides_around[end].append(sides)
        yield 2, INTERIOR if sides.above else EXTERIOR
        yield 2, INTERIOR if sides.below else EXTERIOR
        in_area = locate_in_area([sides])
        yield 1, INTERIOR if in_area == EXTERIOR and piece in on_lines else in_area
    for vertex, around in sides_around.items():
        in_area = locate_in_area(around or [sides_at(shape, vertex)])
        on_line = vertex in lines_around
        yield 0, locate_vertex(shape, vertex, on_line) if in_area == EXTERIOR else in_area


def locate_vertex(shape: Shape, vertex: Position, is_on_line: bool) -> int:
    """Where a vertex outside the area is, by the lines and points alone."""
    if shape.line_ends[vertex] % 2 == 1:
        return BOUNDARY
    return INTERIOR if is_on_line or vertex in shape.points else EXTERIOR


def locate_in_area(around: Iterable[Sides]) -> int:
    """Where a cell is in the area that lies around it on these sides."""
    has_area = {is_area for sides in around for is_area in (sides.above, sides.below)}
    if has_area == {True}:
        return INTERIOR
    return EXTERIOR if has_area == {False} else BOUNDARY


def sides_at(shape: Shape, p: Position) -> Sides:
    """Whether the area is just above and just below a position that is no end of its edges."""
    above = below = False
    for polygon in shape.polygons:
        turns = [turn(edge, p) for edge in polygon if edge[0] <= p < edge[1]]
        edges_higher, edges_here = sum(t < 0 for t in turns), turns.count(0)
        above |= edges_higher % 2 == 1
        below |= (edges_higher + edges_here) % 2 == 1
    return Sides(above, below)


def middle(piece: Segment) -> Position:
    """The position half way along a piece."""
    (ax, ay), (bx, by) = piece
    return half(ax + bx), half(ay + by)


def half(number: Number) -> Number:
    """Half of a number, which stays an integer if it can: integers are much faster."""
    return number // 2 if isinstance(number, int) and number % 2 == 0 else Fraction(number) / 2
