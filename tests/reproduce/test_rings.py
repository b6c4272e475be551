"""Figure 5's shortcuts change no relation that Algorithm 1 finds."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import shapely
from shapely import Polygon

from contrada.model.geometry import as_array
from contrada.reproduce.crtree.rings import RingSet
from contrada.reproduce.scenarios import (
    EVENT_KINDS,
    Regions,
    event_region,
    scattered_regions,
    synthetic_regions,
)

DENSITIES = (0, 50, 500, 3_000)


def check(regions: Regions, events: Sequence[Any] | Regions) -> set[int]:
    """See that short cuts and long walks agree; give the relations that occurred."""
    rings = RingSet(regions)
    seen: set[int] = set()
    for event in events:
        for density, found in zip(DENSITIES, rings.find_by_density(event, DENSITIES), strict=True):
            assert found.tolist() == rings.find(event, density).tolist()
            seen |= set(found.tolist())
    return seen


def star(middle: float, radius: float, vertices: int) -> Polygon:
    """A ragged region with a long boundary."""
    angles = np.linspace(0, 2 * np.pi, vertices, endpoint=False)
    radii = radius * np.where(np.arange(vertices) % 2, 1, 0.9)
    ring = np.column_stack([np.cos(angles), np.sin(angles)]) * radii[:, None]
    return Polygon(np.add(ring, [middle, 0.5]))


@pytest.mark.parametrize("seed", range(4))
def test_short_cuts_agree_with_walks_over_scattered_regions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    events = [event_region(rng, kind) for kind in EVENT_KINDS]
    assert len(check(scattered_regions(rng, 150), events)) >= 3


@pytest.mark.parametrize("seed", range(4))
def test_short_cuts_agree_with_walks_over_large_regions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    check(synthetic_regions(rng, 20), [*synthetic_regions(rng, 2), event_region(rng, "C")])


@pytest.mark.parametrize("seed", range(4))
def test_short_cuts_agree_with_walks_along_boundaries_of_many_vertices(seed: int) -> None:
    rng = np.random.default_rng(seed)
    regions = as_array([star(0.5, 0.3, 2_001), star(0.4, 0.05, 1_200), star(0.6, 0.45, 3_000)])
    check(regions, [event_region(rng, kind) for kind in EVENT_KINDS])


def test_short_cuts_agree_with_walks_where_boundaries_are_as_far_apart_as_a_halo() -> None:
    """The halo is 1 / D wide: gaps below, at and above it, outside and inside."""
    regions = as_array(
        [
            shapely.box(0.4 + gap, 0.4, 0.5, 0.5)
            for density in DENSITIES[1:]
            for gap in np.array([-1.1, -1, -0.9, -0.5, 0, 0.5, 0.9, 1, 1.1]) / density
        ]
    )
    check(regions, [shapely.box(0.3, 0.3, 0.4, 0.6), shapely.box(0.4, 0.2, 0.9, 0.8)])


def test_regions_whose_boxes_meet_the_event_are_counted() -> None:
    regions = as_array([shapely.box(x, 0, x + 0.1, 0.1) for x in (0, 0.2, 0.4)])
    rings = RingSet(regions)
    assert rings.count_meeting(shapely.box(0.1, 0.1, 0.3, 0.3)) == 2
    assert rings.count_meeting(shapely.box(0.6, 0.6, 0.7, 0.7)) == 0
