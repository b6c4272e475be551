"""How often the AHS model is wrong, by level, operator and kinds of geometry.

The universe is the unit square. Geometries are 1/4096 to 1/128 of it wide, sizes spread evenly on a
logarithmic scale: in degrees of longitude from 0.09 to 2.8, a town to a small country, and 4 to 128
cells at level 14. Pairs of two kinds come in equal numbers in four ways, since geometries at random
are rarely more than disjoint or overlapping:

- *free*: apart by up to the sum of their sizes
- *joined*: with a vertex in common
- *inner*: the event, a quarter as large, around a point of the subscription's geometry
- *same*: equal if they are of one kind, else free
"""

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import shapely
from numpy.random import Generator
from numpy.typing import NDArray
from shapely import LineString, MultiLineString, MultiPoint, MultiPolygon, Point, Polygon
from shapely.geometry.base import BaseGeometry

from contrada.arrays import Geometries
from contrada.kernels.area_matrices import relate_lists
from contrada.language.spatial import are_known, related
from contrada.matching.ahs.area_matrix import MatrixPairs, determine
from contrada.matching.grid import Grid
from contrada.model.geometry import as_array
from contrada.model.relation import RELATIONS

GEOMETRY_KINDS = ("point", "multipoint", "line", "multiline", "polygon", "multipolygon")
WAYS = ("free", "joined", "inner", "same")
WIDTH_MIN, WIDTH_MAX = 2.0**-12, 2.0**-7
_UNIVERSE = (0.0, 0.0, 1.0, 1.0)


@dataclass(frozen=True, slots=True)
class ErrorRow:
    """One operator on pairs of two kinds at one level: where the grid is right, and where not."""

    level: int
    relation: str
    event: str
    subscription: str
    pairs: int
    holds: int  # exactly
    missed: int  # of these
    invented: int  # hold on the grid only

    @property
    def wrong(self) -> float:
        """The share of pairs on which the grid is wrong."""
        return (self.missed + self.invented) / self.pairs


def measure_errors(seed: int, levels: Sequence[int], count: int) -> list[ErrorRow]:
    """Compare the grid with the exact relation, on `count` pairs for each two kinds."""
    rng = np.random.default_rng(seed)
    rows: list[ErrorRow] = []
    for event, subscription in product(GEOMETRY_KINDS, GEOMETRY_KINDS):
        events, shapes = make_pairs(rng, event, subscription, count)
        exact = dict(_exact_answers(events, shapes))
        for level in levels:
            pairs = _match_pairs(Grid(level, _UNIVERSE), events, shapes)
            for name, holds in exact.items():
                found = determine(RELATIONS[name], pairs)
                missed, invented = int((holds & ~found).sum()), int((found & ~holds).sum())
                counts = (len(events), int(holds.sum()), missed, invented)
                rows.append(ErrorRow(level, name, event, subscription, *counts))
    return rows


def sum_errors(
    rows: Sequence[ErrorRow], key: Callable[[ErrorRow], str]
) -> Mapping[str, tuple[list[float], list[float]]]:
    """Return for each key the levels, and the wrong answers at each in % of the pairs."""
    totals: dict[str, dict[int, list[int]]] = {}
    for row in rows:
        total = totals.setdefault(key(row), {}).setdefault(row.level, [0, 0])
        total[0] += row.missed + row.invented
        total[1] += row.pairs
    return {
        name: (
            [float(level) for level in sorted(by_level)],
            [100 * by_level[level][0] / by_level[level][1] for level in sorted(by_level)],
        )
        for name, by_level in totals.items()
    }


def print_table(rows: Sequence[ErrorRow], say: Callable[[str], object]) -> None:
    """Print the wrong answers in % by level: of each operator, then of each pair of kinds."""
    levels = sorted({row.level for row in rows})
    say(f"{'wrong answers in % at level':<30}" + "".join(f"{level:>7}" for level in levels))
    keys: tuple[Callable[[ErrorRow], str], ...] = (
        lambda _: "all",
        lambda row: row.relation,
        lambda row: f"{row.event} / {row.subscription}",
    )
    for key in keys:
        for name, (_, shares) in sum_errors(rows, key).items():
            say(f"{name:<30}" + "".join(f"{share:>7.2f}" for share in shares))


def _exact_answers(
    events: Geometries, shapes: Geometries
) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Yield the answers of all relations that can be asked of such pairs."""
    for name, relation in RELATIONS.items():
        if are_known(relation, events).all() and are_known(relation, shapes).all():
            yield name, related(relation, events, shapes)[0]


def _match_pairs(grid: Grid, events: Geometries, shapes: Geometries) -> MatrixPairs:
    """Index and match each pair on its own."""
    left, right = grid.decompose(events), grid.decompose(shapes)
    matrices = [relate_lists(left.of(i), right.of(i), grid.level) for i in range(len(events))]
    return MatrixPairs(
        shapely.get_dimensions(events).astype(np.int64),
        left.areas(),
        shapely.get_dimensions(shapes).astype(np.int64),
        right.areas(),
        np.array(matrices),
    )


def make_pairs(
    rng: Generator, event: str, subscription: str, count: int
) -> tuple[Geometries, Geometries]:
    """Make pairs of two kinds, as many in each way."""
    pairs = [_make_pair(rng, event, subscription, WAYS[i % len(WAYS)]) for i in range(count)]
    return as_array([a for a, _ in pairs]), as_array([b for _, b in pairs])


def _make_pair(
    rng: Generator, event: str, subscription: str, way: str
) -> tuple[BaseGeometry, BaseGeometry]:
    widths = np.exp(rng.uniform(np.log(WIDTH_MIN), np.log(WIDTH_MAX), 2))
    middle = rng.uniform(0.1, 0.9, 2)
    shape = _make(rng, subscription, middle, widths[1])
    if way == "same" and event == subscription:
        return shape, shape
    if way == "inner":
        inside = shapely.get_coordinates(shapely.point_on_surface(shape))[0]
        return _make(rng, event, inside, min(widths) / 4), shape
    away = rng.uniform(-0.5, 0.5, 2) * widths.sum()
    other = _make(rng, event, middle + away, widths[0])
    if way == "joined":
        here, there = (_pick_vertex(rng, geometry) for geometry in (other, shape))
        other = _move(other, here, there)
    return other, shape


def _pick_vertex(rng: Generator, geometry: BaseGeometry) -> NDArray[np.float64]:
    vertices = shapely.get_coordinates(geometry)
    return np.asarray(vertices[rng.integers(0, len(vertices))])


def _move(
    geometry: BaseGeometry, here: NDArray[np.float64], there: NDArray[np.float64]
) -> BaseGeometry:
    """Bring one vertex to a place, exactly, and the others by as much."""
    moved: BaseGeometry = shapely.transform(
        geometry, lambda xy: np.where((xy == here).all(axis=1)[:, None], there, xy + (there - here))
    )
    return moved


def _make(rng: Generator, kind: str, middle: NDArray[np.float64], width: float) -> BaseGeometry:
    """Make a geometry of a kind around a place; one of several parts has three, side by side."""
    if not kind.startswith("multi"):
        return _make_part(rng, kind, middle, width / 2)
    offsets = (np.arange(3) - 1)[:, None] * np.array([width / 3, width / 5])
    parts = [
        _make_part(rng, kind.removeprefix("multi"), middle + offset, width / 7)
        for offset in offsets
    ]
    makers: dict[str, Callable[..., BaseGeometry]] = {
        "multipoint": MultiPoint,
        "multiline": MultiLineString,
        "multipolygon": MultiPolygon,
    }
    return makers[kind](parts)


def _make_part(
    rng: Generator, kind: str, middle: NDArray[np.float64], radius: float
) -> BaseGeometry:
    """Make a point, a line of seven vertices through a place, or a star of twelve around it."""
    if kind == "point":
        return Point(middle)
    if kind == "line":
        along, across = np.linspace(-1, 1, 7), rng.uniform(-0.3, 0.3, 7)
        across[3] = 0
        turn = rng.uniform(0, 2 * np.pi)
        axes = np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])
        return LineString(middle + radius * np.column_stack([along, across]) @ axes)
    angles = 2 * np.pi * (np.arange(12) + rng.uniform(0, 0.8, 12)) / 12
    radii = radius * rng.uniform(0.5, 1, 12)
    return Polygon(middle + radii[:, None] * np.column_stack([np.cos(angles), np.sin(angles)]))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        prog="python -m contrada.reproduce.ahs_error",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    levels = [10, 12, 14, 16]
    parser.add_argument("--levels", type=int, nargs="+", default=levels, help=f"default: {levels}")
    parser.add_argument("--count", type=int, default=400, help="pairs of two kinds (default: 400)")
    parser.add_argument("--seed", type=int, default=1, help="of the pairs (default: 1)")
    options = parser.parse_args()
    print_table(measure_errors(options.seed, options.levels, options.count), print)


if __name__ == "__main__":
    main()
