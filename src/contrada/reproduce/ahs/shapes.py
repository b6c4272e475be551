"""Geometries as the AHS paper generates them, in degrees: a city, and lines and polygons at random.

Coordinates are planar, as everywhere; "of the Earth" is a share of the longitude/latitude square.
"""

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from shapely import LineString, Point, Polygon

SHAPE_KINDS = ("point", "line", "polygon")
CENTRE = np.array([-114.07, 51.05])  # the authors' city
CITY_SIZE = np.array([0.30, 0.16])  # half of it: some 40 km across, 27 by 29 cells of level 14
CITY_VERTICES = 200

KM_PER_DEGREE = 111.2
_SQUARE = np.array([360.0, 180.0])
_CORNER = np.array([-180.0, -90.0])
_LINE_STEPS = 24
_STAR_VERTICES, _STAR_RADIUS_MIN = 36, 0.6


def make_city(rng: Generator, middle: NDArray[np.float64] = CENTRE, scale: float = 1.0) -> Polygon:
    """Make the coverage of a city: a star of 200 vertices."""
    return Polygon(middle + scale * CITY_SIZE * _star(rng, CITY_VERTICES))


def random_point(rng: Generator) -> Point:
    """Make a point anywhere."""
    return Point(_CORNER + rng.random(2) * _SQUARE)


def random_line(rng: Generator, length_km: float) -> LineString:
    """Make a line of 24 steps of such a length along a great or small way, anywhere it fits.

    Kilometres are those of the equator.
    """
    turn = rng.uniform(0, 2 * np.pi) + np.cumsum(rng.uniform(-0.3, 0.3, _LINE_STEPS))
    steps = np.column_stack([np.cos(turn), np.sin(turn)]) * length_km / KM_PER_DEGREE / _LINE_STEPS
    return LineString(_place(rng, np.vstack([[0, 0], np.cumsum(steps, axis=0)])))


def random_polygon(rng: Generator, share: float) -> Polygon:
    """Make a star of such a share of the Earth, anywhere it fits, twice as wide as high."""
    star = _star(rng, _STAR_VERTICES)
    return Polygon(_place(rng, star * np.sqrt(share / Polygon(star).area) * _SQUARE))


def _place(rng: Generator, xy: NDArray[np.float64]) -> NDArray[np.float64]:
    low, size = xy.min(axis=0), np.ptp(xy, axis=0)
    assert (size <= _SQUARE).all()
    placed: NDArray[np.float64] = xy - low + _CORNER + rng.random(2) * (_SQUARE - size)
    return placed


def _star(rng: Generator, vertices: int) -> NDArray[np.float64]:
    """Make the vertices of a star within the unit circle."""
    angles = 2 * np.pi * (np.arange(vertices) + rng.uniform(0, 0.8, vertices)) / vertices
    radii = rng.uniform(_STAR_RADIUS_MIN, 1, vertices)
    star: NDArray[np.float64] = radii[:, None] * np.column_stack([np.cos(angles), np.sin(angles)])
    return star
