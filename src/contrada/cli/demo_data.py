"""A day over an invented country: towns, sites around them, vehicles between them, storms across.

Sites are subscriptions of three kinds: insured buildings want storms that touch them with wind
above 90, depots want every vehicle within, speed zones want vehicles faster than 110.
"""

from typing import Any

import numpy as np
import pyarrow as pa
import shapely
from numpy.random import Generator
from numpy.typing import NDArray

from contrada.model.geometry import as_array

_WEST, _SOUTH, _EAST, _NORTH = 7.0, 42.0, 15.0, 46.0
_SITES = 2_400
_STORMS, _STORM_FIXES = 4, 12
_VEHICLES, _VEHICLE_FIXES = 500, 120

Points = NDArray[np.float64]


def generate(rng: Generator) -> tuple[pa.Table, pa.Table]:
    """Make the table of sites and the table of events."""
    columns, rows = np.meshgrid(np.linspace(0.1, 0.9, 6), np.linspace(0.15, 0.85, 3))
    share = np.column_stack([columns.ravel(), rows.ravel()])
    share += rng.uniform(-0.06, 0.06, share.shape)
    towns = np.array([_WEST, _SOUTH]) + share * np.array([_EAST - _WEST, _NORTH - _SOUTH])
    return _sites(rng, towns), _events(rng, towns)


def _sites(rng: Generator, towns: Points) -> pa.Table:
    kinds = rng.choice(3, _SITES, p=[0.65, 0.2, 0.15])
    names = np.array(["building", "depot", "zone"])
    subscribers = np.array(["insurer", "carrier", "police"])
    relations = np.array(["intersects", "within", "within"])
    conditions = np.array(
        ["kind = 'storm' AND wind > 90", "kind = 'vehicle'", "kind = 'vehicle' AND speed > 110"]
    )
    radius = np.array([0.02, 0.03, 0.045])[kinds] * rng.uniform(0.6, 1.2, _SITES)
    middles = towns[rng.integers(0, len(towns), _SITES)] + rng.normal(0, 0.2, (_SITES, 2))
    shapes = [_star(rng, xy, r, 8, 0.75) for xy, r in zip(middles, radius, strict=True)]
    return pa.table(
        {
            "id": [f"{names[kind]}-{i}" for i, kind in enumerate(kinds)],
            "subscriber": subscribers[kinds],
            "relation": relations[kinds],
            "where": conditions[kinds],
            "geometry": pa.array(shapely.to_wkb(as_array(shapes)), pa.binary()),
        }
    )


def _events(rng: Generator, towns: Points) -> pa.Table:
    storms, vehicles = _storms(rng), _vehicles(rng, towns)
    hours = np.concatenate(
        [
            np.tile(np.linspace(2, 22, _STORM_FIXES), _STORMS),
            np.tile(np.linspace(6, 20, _VEHICLE_FIXES), _VEHICLES),
        ]
    )
    names = [f"storm-{i // _STORM_FIXES}-{i % _STORM_FIXES}" for i in range(len(storms))]
    names += [f"vehicle-{i // _VEHICLE_FIXES}-{i % _VEHICLE_FIXES}" for i in range(len(vehicles))]
    count = len(names)
    is_storm = np.arange(count) < len(storms)
    wind = np.concatenate([_wind(), np.zeros(len(vehicles))])
    midnight = np.datetime64("2026-06-01T00:00:00", "us")
    events = pa.table(
        {
            "id": names,
            "object_id": [name.rpartition("-")[0] for name in names],
            "time": pa.array(
                midnight + (hours * 3.6e9).astype("timedelta64[us]"), pa.timestamp("us", "UTC")
            ),
            "kind": np.where(is_storm, "storm", "vehicle"),
            "wind": pa.array(wind, mask=~is_storm),
            "speed": pa.array(rng.gamma(9, 9, count), mask=is_storm),
            "geometry": pa.array(
                shapely.to_wkb(np.concatenate([storms, shapely.points(vehicles)])), pa.binary()
            ),
        }
    )
    return events.sort_by("time")


def _storms(rng: Generator) -> NDArray[np.object_]:
    """Make storms that cross the country, each as a polygon at several times of the day."""
    shapes = []
    ends = np.linspace(_SOUTH + 0.4, _NORTH - 0.4, _STORMS)
    for start_y, end_y in zip(ends, rng.permutation(ends), strict=True):
        start, end = np.array([_WEST - 0.1, start_y]), np.array([_EAST + 0.1, end_y])
        bend = np.array([0, rng.uniform(-0.5, 0.5)])
        for step in (np.arange(_STORM_FIXES) + rng.uniform(0, 1)) / _STORM_FIXES:
            middle = start + (end - start) * step + bend * np.sin(np.pi * step)
            shapes.append(_star(rng, middle, 0.14 + 0.3 * np.sin(np.pi * step), 22, 0.8))
    return as_array(shapes)


def _wind() -> Points:
    """Let every storm grow until noon and fade after it."""
    steps = np.linspace(0, 1, _STORM_FIXES)
    peak = np.linspace(80, 150, _STORMS)[:, None]
    return (45 + (peak - 45) * np.sin(np.pi * steps)).ravel()


def _vehicles(rng: Generator, towns: Points) -> Points:
    """Drive each vehicle from one town to another, with a little drift."""
    start, end = towns[rng.integers(0, len(towns), (2, _VEHICLES))]
    start, end = (t + rng.normal(0, 0.15, (_VEHICLES, 2)) for t in (start, end))
    steps = np.linspace(0, 1, _VEHICLE_FIXES)[None, :, None]
    path = start[:, None] + (end - start)[:, None] * steps
    drift = rng.normal(0, 0.004, path.shape).cumsum(axis=1)
    return np.asarray((path + drift).reshape(-1, 2))


def _star(rng: Generator, middle: Points, radius: float, vertices: int, least: float) -> Any:
    """Make a star-shaped polygon around a point, one vertex in each of equal sectors."""
    angles = (np.arange(vertices) + rng.uniform(0.1, 0.9, vertices)) * (2 * np.pi / vertices)
    radii = radius * rng.uniform(least, 1, vertices)
    return shapely.Polygon(
        middle + radii[:, None] * np.column_stack([np.cos(angles), np.sin(angles)])
    )
