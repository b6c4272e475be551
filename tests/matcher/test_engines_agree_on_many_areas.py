"""Many areas under a large event: most are decided by a grid, few by asking, all as `scan` does."""

import itertools

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import Generator
from shapely.geometry.base import BaseGeometry

from contrada import Matcher
from contrada.model.relation import RELATIONS
from strategies import build, choose_kind, place, seeded_pick

AREAS = 120
FIELD = 48  # the areas lie scattered over a square of this side
NAMES = [name if name.startswith(("eh", "cov")) else f"s_{name}" for name in RELATIONS]


def scatter(rng: Generator, count: int) -> list[BaseGeometry]:
    """Lattice shapes at whole places, mostly areas, so that boundaries often touch."""
    found = []
    for _ in range(count):
        pick = seeded_pick(int(rng.integers(0, 10**9)))
        kind = "area" if rng.random() < 0.8 else choose_kind(pick)
        shift = (float(rng.integers(0, FIELD)), float(rng.integers(0, FIELD)))
        found.append(place(build(pick, kind), shift, 1.0))
    return found


def large_event(rng: Generator) -> BaseGeometry:
    """An area over much of the field, of whole numbers, with a second part and maybe a hole."""
    west, south = rng.integers(0, 20, 2).tolist()
    event: BaseGeometry = shapely.box(west, south, west + 24, south + 24)
    if rng.random() < 0.5:
        event = event.difference(shapely.box(west + 4, south + 4, west + 12, south + 16))
    return event.union(shapely.box(44, 44, 50, 50))


def texts(rng: Generator, shapes: list[BaseGeometry]) -> list[str]:
    """One constraint a shape, negated and turned round at random."""
    found = []
    for shape, name in zip(shapes, itertools.cycle(rng.permutation(NAMES).tolist()), strict=False):
        is_region = shape.geom_type in ("Polygon", "MultiPolygon")
        relation = name if is_region or not name.startswith("eh") else "s_intersects"
        sides = ["geometry", shape.wkt]
        if rng.random() < 0.3:
            sides.reverse()
        text = f"{relation}({sides[0]}, {sides[1]})"
        found.append(f"NOT {text}" if rng.random() < 0.3 else text)
    return found


def compare(seed: int, filter_size: int, predicate_count: int) -> None:
    rng = np.random.default_rng(seed)
    constraints = texts(rng, scatter(rng, AREAS))
    filters = [" AND ".join(constraints[i : i + filter_size]) for i in range(0, AREAS, filter_size)]
    matchers = [Matcher("scan"), Matcher("crtree")]
    for matcher in matchers:
        for part in range(predicate_count):
            matcher.add(part, " OR ".join(filters[part::predicate_count]), subscriber=part % 3)
    for event in [large_event(rng) for _ in range(4)]:
        scan, crtree = matchers
        assert crtree.match({"geometry": event}) == scan.match({"geometry": event})
        assert crtree.subscribers({"geometry": event}) == scan.subscribers({"geometry": event})


@settings(max_examples=20)
@given(st.integers(0, 10**6), st.sampled_from([(1, AREAS), (2, AREAS // 2), (2, 5), (3, 4)]))
def test_engines_agree_on_many_areas(seed: int, shape: tuple[int, int]) -> None:
    compare(seed, *shape)


@pytest.mark.soak
@given(st.integers(0, 10**9), st.sampled_from([(1, AREAS), (2, AREAS // 2), (2, 5), (3, 4)]))
def test_engines_agree_on_very_many_areas(seed: int, shape: tuple[int, int]) -> None:
    compare(seed, *shape)
