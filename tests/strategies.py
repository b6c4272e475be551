"""Random valid geometries on a small lattice, where shapes share borders, touch and run collinear.

Every builder asks one function for all its choices, `pick(low, high)`: an integer between the two,
both included. So hypothesis and a seeded generator draw the same shapes: the strategies at the end
are for tests, `seeded_pick` is for searches. Builders never reject: where a choice would give an
invalid shape they give a simpler one. Low picks give simple shapes, so that hypothesis shrinks.

Kinds are "point", "line", "area" and "collection", each of one part or several, and "sliver": a
triangle so thin that it is not on the lattice.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar, get_args

import shapely
from hypothesis import strategies as st
from shapely.geometry import (
    GeometryCollection,
    LineString,
    MultiLineString,
    MultiPoint,
    MultiPolygon,
    Point,
    Polygon,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from shapely.geometry.base import BaseGeometry

T = TypeVar("T")
Kind: TypeAlias = Literal["point", "line", "area", "collection", "sliver"]
Pick: TypeAlias = "Callable[[int, int], int]"
Position: TypeAlias = tuple[float, float]
Pair: TypeAlias = "tuple[BaseGeometry, BaseGeometry]"

KINDS: tuple[Kind, ...] = get_args(Kind)
LATTICE_KINDS = KINDS[:4]
SIMPLE_KINDS = KINDS[:3]
SIZE = 4  # lattice positions have x and y from 0 to SIZE
LATTICE: tuple[Position, ...] = tuple((x, y) for x in range(SIZE + 1) for y in range(SIZE + 1))

INNER_LATTICE = tuple((x, y) for x, y in LATTICE if 0 < x < SIZE and 0 < y < SIZE)


def seeded_pick(seed: int) -> Pick:
    """Choices from a generator of their own, the same for the same seed."""
    return Random(seed).randint


def build(pick: Pick, kind: Kind, positions: Sequence[Position] = LATTICE) -> BaseGeometry:
    """A geometry of a kind with its vertices among the positions (or, for some areas, LATTICE)."""
    match kind:
        case "point":
            return build_points(pick, positions)
        case "line":
            return build_lines(pick, positions)
        case "area":
            return build_area(pick, positions)
        case "collection":
            kinds = [choose(pick, SIMPLE_KINDS) for _ in range(pick(1, 3))]
            return GeometryCollection([build(pick, kind, positions) for kind in kinds])
        case "sliver":
            return build_sliver(pick, positions)


def build_pair(pick: Pick, kinds: tuple[Kind, Kind]) -> Pair:
    """Two geometries of these kinds, of which one often shares something with the other."""
    if pick(0, 1):
        b, a = build_with_companion(pick, kinds[1], kinds[0])
    else:
        a, b = build_with_companion(pick, kinds[0], kinds[1])
    return a, b


def build_with_companion(pick: Pick, kind: Kind, companion_kind: Kind) -> Pair:
    """A geometry, and one that is its like, or has vertices of it, or a ring of it."""
    geometry = build(pick, kind)
    match pick(0, 3):
        case 0 | 1:
            companion = build(pick, companion_kind)
        case 2:
            shared = corners_of(geometry)
            companion = build(pick, companion_kind, [*shared, *LATTICE[:: pick(1, len(LATTICE))]])
        case _:
            companion = build_from_ring(pick, companion_kind, geometry)
    return geometry, companion


def corners_of(geometry: BaseGeometry) -> list[Position]:
    """Its vertices, in its order."""
    return [(x, y) for x, y in shapely.get_coordinates(geometry).tolist()]


def build_from_ring(pick: Pick, kind: Kind, geometry: BaseGeometry) -> BaseGeometry:
    """What a ring of a geometry encloses, or a stretch of the ring; without rings, what it can."""
    parts = shapely.get_parts(shapely.get_parts([geometry]))
    polygons = [part for part in parts if isinstance(part, Polygon)]
    if kind not in ("line", "area") or not polygons:
        return build(pick, kind, corners_of(geometry))
    polygon = choose(pick, polygons)
    ring = corners_of(choose(pick, [polygon.exterior, *polygon.interiors]))
    if kind == "area":
        return Polygon(ring)
    first = pick(0, len(ring) - 2)
    return LineString(ring[first : pick(first + 2, len(ring))])


def place(geometry: BaseGeometry, shift: Position, factor: float) -> BaseGeometry:
    """The geometry moved, then scaled; exact for lattice shapes, whole shifts, powers of two."""
    return shapely.transform(geometry, lambda xy: (xy + shift) * factor)


# Points and lines


def choose(pick: Pick, choices: Sequence[T]) -> T:
    """One of the choices; the first is the simplest."""
    return choices[pick(0, len(choices) - 1)]


def choose_kind(pick: Pick) -> Kind:
    """One of the kinds on the lattice."""
    return choose(pick, LATTICE_KINDS)


def choose_distinct(pick: Pick, positions: Sequence[Position], count: int) -> list[Position]:
    """At most so many positions, in the order drawn, none of them twice."""
    return list(dict.fromkeys(choose(pick, positions) for _ in range(count)))


def build_points(pick: Pick, positions: Sequence[Position]) -> BaseGeometry:
    """A point, or some points of which none coincide."""
    if pick(0, 1) == 0:
        return Point(choose(pick, positions))
    return MultiPoint(choose_distinct(pick, positions, pick(1, 4)))


def build_lines(pick: Pick, positions: Sequence[Position]) -> BaseGeometry:
    """A line or several: they may be closed, cross themselves, and cover one another."""
    lines = [build_line(pick, positions) for _ in range(pick(0, 3))]
    return MultiLineString(lines) if lines else build_line(pick, positions)


def build_line(pick: Pick, positions: Sequence[Position]) -> LineString:
    """A line whose vertices may repeat, with at least two that differ."""
    path = [choose(pick, positions) for _ in range(choose(pick, (2, 2, 3, 4)))]
    if pick(0, 3) == 3:
        path.append(path[0])
    if len(set(path)) == 1:
        path.append(next(position for position in LATTICE if position != path[0]))
    return LineString(path)


# Areas


def build_area(pick: Pick, positions: Sequence[Position]) -> BaseGeometry:
    """A polygon, with holes or without, or several that touch at most in single positions."""
    match pick(0, 5):
        case 0 | 1:
            return build_fan(pick, positions)
        case 2:
            return build_frame(pick)
        case 3 | 4:
            return build_tiles(pick)
        case _:
            return join_areas([build_fan(pick, positions) for _ in range(pick(2, 3))])


def build_fan(pick: Pick, positions: Sequence[Position]) -> Polygon:
    """A polygon all of which can be seen from its least vertex: often concave, never with holes."""
    origin, *others = sorted(choose_distinct(pick, positions, pick(3, 6)))
    # Of the positions in one direction the farthest stays, or the ring would touch itself.
    farthest = {direction(origin, position): position for position in others}
    ring = [origin, *(farthest[way] for way in sorted(farthest))]
    if len(ring) > 2 and (fan := Polygon(ring)).is_valid:
        return fan
    x, y = origin
    return Polygon([origin, (x + 1, y), (x, y + 1)])


def direction(origin: Position, position: Position) -> float:
    """The slope towards a greater position, which has no lesser x."""
    dx, dy = position[0] - origin[0], position[1] - origin[1]
    return dy / dx if dx else float("inf")


def build_frame(pick: Pick) -> BaseGeometry:
    """The whole lattice with a hole, which may touch the shell in one position."""
    hole = build_fan(pick, choose(pick, (INNER_LATTICE, LATTICE)))
    shell = shapely.box(0, 0, SIZE, SIZE)
    frame = Polygon(shell.exterior, [hole.exterior])
    return frame if frame.is_valid else shell


def build_tiles(pick: Pick) -> BaseGeometry:
    """A union of triangles and blocks: holes and parts that touch themselves and one another."""
    triangles = [half_square(pick(0, 4 * SIZE * SIZE - 1)) for _ in range(pick(1, 4))]
    blocks = [build_block(pick) for _ in range(pick(0, 3))]
    area = shapely.union_all([*triangles, *blocks])
    # Without vertices along straight edges, one part touches another within an edge.
    return area.simplify(0) if pick(0, 1) else area


def half_square(number: int) -> Polygon:
    """One of the triangles with three corners of a unit square of the lattice."""
    square, missing = divmod(number, 4)
    x, y = divmod(square, SIZE)
    corners = [(x, y), (x + 1, y), (x + 1, y + 1), (x, y + 1)]
    del corners[missing]
    return Polygon(corners)


def build_block(pick: Pick) -> Polygon:
    """A rectangle on the lattice."""
    x, y = pick(0, SIZE - 1), pick(0, SIZE - 1)
    return shapely.box(x, y, pick(x + 1, SIZE), pick(y + 1, SIZE))


def join_areas(parts: Sequence[Polygon]) -> BaseGeometry:
    """The parts that can stand together in a valid multi-polygon, taken in turn."""
    joined = MultiPolygon(parts[:1])
    for part in parts[1:]:
        wider = MultiPolygon([*joined.geoms, part])
        joined = wider if wider.is_valid else joined
    return joined


def build_sliver(pick: Pick, positions: Sequence[Position]) -> Polygon:
    """A triangle whose apex is some units in the last place off its base."""
    (ax, ay), (bx, by) = corners_of(build_line(pick, positions))[:2]
    share, offset = pick(1, 9) / 10, pick(1, 4) * 2.0**-50
    x, y = ax + share * (bx - ax), ay + share * (by - ay)
    apex = (x + offset, y) if ax == bx else (x, y + offset)
    sliver = Polygon([(ax, ay), (bx, by), apex])
    return sliver if sliver.is_valid else build_fan(pick, positions)


# Strategies


@st.composite
def geometries(draw: st.DrawFn, kind: Kind | None = None) -> BaseGeometry:
    """A geometry of a kind, or of any kind on the lattice."""
    pick = picking(draw)
    return build(pick, kind or choose_kind(pick))


@st.composite
def geometry_pairs(
    draw: st.DrawFn,
    kind_a: Kind | None = None,
    kind_b: Kind | None = None,
    *,
    far: bool = False,
) -> Pair:
    """Two geometries that often share vertices and borders; far away and scaled on request.

    A far pair is moved by up to 2**40 lattice units and scaled by a power of two from 2**-40 to
    2**40, without rounding. Slivers have too many digits to go far.
    """
    assert not (far and "sliver" in (kind_a, kind_b)), "a sliver cannot be moved without rounding"
    pick = picking(draw)
    a, b = build_pair(pick, (kind_a or choose_kind(pick), kind_b or choose_kind(pick)))
    if not far:
        return a, b
    shift = pick(-(2**40), 2**40), pick(-(2**40), 2**40)
    factor = 2.0 ** pick(-40, 40)
    return place(a, shift, factor), place(b, shift, factor)


def picking(draw: st.DrawFn) -> Pick:
    """Choices made, recorded and shrunk by hypothesis."""
    return lambda low, high: draw(st.integers(low, high))
