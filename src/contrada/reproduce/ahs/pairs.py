"""Events (the paper: publications) and subscriptions the size of a city, in pairs, one for each
possible relation.

As section 5.4 describes them: a landmark, a highway across the city, the city's coverage, and for
each what is related to them in each way that is possible for the two kinds. Of each pair holds the
relation that it is made for, exactly and on the grid.
"""

from collections.abc import Mapping

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from shapely import LineString, Point, Polygon, box
from shapely.affinity import translate
from shapely.geometry.base import BaseGeometry

from contrada.reproduce.ahs.shapes import CENTRE, make_city

ByRelation = Mapping[str, BaseGeometry]

_HIGHWAY = ((-0.5, -0.05), (-0.3, -0.05), (-0.1, 0), (0.1, 0), (0.3, 0.06), (0.5, 0.06))
_AWAY = (0.9, 0.5)


def make_subscriptions(rng: Generator) -> dict[str, BaseGeometry]:
    """Make a landmark, a highway and a city, by kind."""
    return {"point": Point(CENTRE), "line": _line(_HIGHWAY), "polygon": make_city(rng)}


def make_events(subscription: BaseGeometry) -> dict[str, ByRelation]:
    """Make what is related to a subscription of `make_subscriptions`: by kind, then relation."""
    if isinstance(subscription, Point):
        return _of_landmark(subscription)
    if isinstance(subscription, LineString):
        return _of_highway(subscription)
    assert isinstance(subscription, Polygon)
    return _of_city(subscription)


def _of_landmark(landmark: Point) -> dict[str, ByRelation]:
    street, district = _line(((-0.1, 0), (0, 0), (0, 0.08))), _box(-0.08, -0.05, 0.08, 0.05)
    return {
        "point": {
            "equals": landmark,
            "disjoint": _away(landmark),
            "intersects": landmark,
            "within": landmark,
            "contains": landmark,
        },
        "line": {
            "disjoint": _away(street),
            "intersects": street,
            "touches": _line(((0, 0), (0, 0.08))),
            "contains": street,
        },
        "polygon": {
            "disjoint": _away(district),
            "intersects": district,
            "touches": _box(0, 0, 0.1, 0.06),
            "contains": district,
        },
    }


def _of_highway(highway: LineString) -> dict[str, ByRelation]:
    crossing, district = _line(((0.013, -0.1), (0.013, 0.1))), _box(-0.08, -0.05, 0.08, 0.05)
    end, junction = Point(highway.coords[0]), Point(CENTRE)
    return {
        "point": {
            "disjoint": _away(junction),
            "intersects": junction,
            "touches": end,
            "within": junction,
        },
        "line": {
            "equals": highway,
            "disjoint": _away(highway),
            "intersects": crossing,
            "touches": _line(((0.013, 0), (0.013, 0.1))),
            "overlaps": _line(((-0.1, 0), (0.1, 0), (0.1, -0.2))),
            "crosses": crossing,
            "within": LineString(highway.coords[1:4]),
            "contains": _line(((-0.7, -0.05), *_HIGHWAY, (0.7, 0.06))),
        },
        "polygon": {
            "disjoint": _away(district),
            "intersects": district,
            "touches": _box(-0.6, -0.08, -0.5, -0.02),
            "crosses": district,
            "contains": _box(-0.8, -0.3, 0.8, 0.3),
        },
    }


def _of_city(city: Polygon) -> dict[str, ByRelation]:
    rim = np.array(city.exterior.coords)
    street, highway = _line(((-0.1, 0), (0, 0), (0, 0.05))), _line(_HIGHWAY)
    return {
        "point": {
            "disjoint": _away(Point(CENTRE)),
            "intersects": Point(CENTRE),
            "touches": Point(rim[0]),
            "within": Point(CENTRE),
        },
        "line": {
            "disjoint": _away(highway),
            "intersects": highway,
            "touches": LineString([rim[0], _outwards(rim[0])]),
            "crosses": highway,
            "within": street,
        },
        "polygon": {
            "equals": city,
            "disjoint": _away(city),
            "intersects": translate(city, 0.2, 0.1),
            "touches": Polygon([*rim[:40], *_outwards(rim[:40])[::-1]]),
            "overlaps": translate(city, 0.2, 0.1),
            "within": _box(-0.08, -0.05, 0.08, 0.05),
            "contains": _box(-0.8, -0.3, 0.8, 0.3),
        },
    }


def _line(steps: tuple[tuple[float, float], ...]) -> LineString:
    return LineString(CENTRE + np.array(steps))


def _box(west: float, south: float, east: float, north: float) -> Polygon:
    x, y = CENTRE
    made: Polygon = box(x + west, y + south, x + east, y + north)
    return made


def _away(geometry: BaseGeometry) -> BaseGeometry:
    moved: BaseGeometry = translate(geometry, *_AWAY)
    return moved


def _outwards(xy: NDArray[np.float64]) -> NDArray[np.float64]:
    """Go on from the centre beyond the city, which is a star around it."""
    return np.asarray(CENTRE + 1.8 * (xy - CENTRE))
