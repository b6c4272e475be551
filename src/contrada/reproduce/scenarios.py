"""Workloads as the CR-tree paper builds them, from a seeded generator, in the unit square."""

import numpy as np
import shapely
from numpy.random import Generator
from numpy.typing import NDArray
from shapely import Polygon

from contrada.model.geometry import as_array

Regions = NDArray[np.object_]
EVENT_KINDS = ("A", "B", "C")
KINDS_NOTE = "Events of type A: nearly square, 6 to 10 vertices; B: 30 to 50; C: long, 4 or 5."
_VERTICES = {"A": (6, 11), "B": (30, 51), "C": (4, 6)}


def synthetic_regions(rng: Generator, count: int) -> Regions:
    """Make regions after section 5: in a random box, 20 points, at least 10 % of the universe."""
    regions: list[Polygon] = []
    while len(regions) < count:
        corners = np.sort(rng.random((2, 2)), axis=0)
        region = _region_in_box(rng, corners[0], corners[1] - corners[0])
        if region.is_valid and region.area >= 0.1:
            regions.append(region)
    return as_array(regions)


def _region_in_box(
    rng: Generator, corner: NDArray[np.float64], size: NDArray[np.float64]
) -> Polygon:
    """Touch each side of the box once, add random points, and go round by angle."""
    along = rng.random(4)
    sides = np.array([[along[0], 0], [1, along[1]], [along[2], 1], [0, along[3]]])
    xy = np.vstack([sides, rng.random((16, 2))])
    middle = xy.mean(axis=0)
    order = np.argsort(np.arctan2(xy[:, 1] - middle[1], xy[:, 0] - middle[0]))
    return Polygon(corner + xy[order] * size)


def scattered_regions(rng: Generator, count: int) -> Regions:
    """Scatter star polygons of 12–59 vertices over a jittered grid: a stand-in for GIS data."""
    side = int(np.ceil(np.sqrt(count)))
    regions = []
    for number in range(count):
        middle = (np.array(divmod(number, side)) + 0.5 + rng.uniform(-0.3, 0.3, 2)) / side
        vertices = int(rng.integers(12, 60))
        angles = np.sort(rng.uniform(0, 2 * np.pi, vertices))
        radii = rng.uniform(0.25, 0.6, vertices) * rng.uniform(0.4, 1) / side
        regions.append(
            Polygon(middle + radii[:, None] * np.column_stack([np.cos(angles), np.sin(angles)]))
        )
    found = as_array(regions)
    return found[shapely.is_valid(found)]


def event_region(rng: Generator, kind: str) -> Polygon:
    """Make an event of type A, B or C (section 5.2), with a box of 1–25 % of the universe."""
    while True:
        ratio = {"A": rng.uniform(0.9, 1.1), "B": rng.uniform(0.5, 2), "C": rng.uniform(10, 20)}[
            kind
        ]
        ratio = 1 / ratio if kind == "C" and rng.random() < 0.5 else ratio
        area = rng.uniform(0.01, 0.25)
        size = np.sqrt([area * ratio, area / ratio])
        vertices = int(rng.integers(*_VERTICES[kind]))
        angles = np.sort(rng.uniform(0, 2 * np.pi, vertices))
        xy = rng.uniform(0.6, 1, vertices)[:, None] * np.column_stack(
            [np.cos(angles), np.sin(angles)]
        )
        if (size >= 1).any():
            continue
        xy = (xy - xy.min(axis=0)) / np.ptp(xy, axis=0) * size + rng.random(2) * (1 - size)
        region = Polygon(xy)
        if region.is_valid:
            return region


def into_unit_square(regions: Regions) -> Regions:
    """Bring the simple polygons of a layer into the unit square: parts apart, holes filled.

    What is not a polygon, or is not finite, is left out.
    """
    finite = regions[_are_finite(regions)]
    parts = shapely.get_parts(shapely.make_valid(shapely.force_2d(finite)))
    rings = shapely.get_exterior_ring(parts[shapely.get_type_id(parts) == 3])
    simple: Regions = shapely.polygons(rings)
    simple = simple[shapely.is_valid(simple) & (shapely.area(simple) > 0)]
    if not len(simple):
        return simple
    west, south, east, north = shapely.total_bounds(simple)
    moved: Regions = shapely.transform(
        simple, lambda xy: (xy - [west, south]) / [east - west, north - south]
    )
    return moved[shapely.is_valid(moved)]


def _are_finite(geometries: Regions) -> NDArray[np.bool_]:
    xy, owners = shapely.get_coordinates(geometries, return_index=True)
    found = np.ones(len(geometries), bool)
    found[owners[~np.isfinite(xy).all(axis=1)]] = False
    return found
