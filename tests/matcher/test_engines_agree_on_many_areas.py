"""Many areas under a large event: most are decided by a grid, few by asking, all as `scan` does.

Relations of all names and patterns, distances and tests of attributes, joined into filters of
several sizes; with both splits of the CR-tree, and after subscriptions have been removed.
"""

from typing import Any

import numpy as np
import pytest
import shapely
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.random import Generator
from shapely import LineString, Point
from shapely.affinity import rotate
from shapely.geometry.base import BaseGeometry

from contrada import Matcher
from contrada.matching.indexes.cr_tree import SPLIT_WEIGHTS
from contrada.model.relation import RELATIONS
from strategies import build, choose_kind, place, seeded_pick

Event = dict[str, Any]

CONSTRAINTS = 120
FIELD = 48  # the areas lie scattered over a square of this side
NAMES = [name if name.startswith(("eh", "cov")) else f"s_{name}" for name in RELATIONS]
PATTERNS = (
    "T********",
    "FF*FF****",
    "T*F**F***",
    "F***1****",
    "212101212",
    "T*T***T**",
    "FF2FF1212",
)
RADII_M = (0, 111_000, 400_000)
ATTRIBUTE_TESTS = (
    *("n > 2", "n <= 4", "n <> 3", "n IN (1, 5)", "n IS NULL", "n + 1 = 4"),
    *("t >= '2020-01-01'", "t < DATE('2020-02-01')", "s LIKE 'a%'", "CASEI(s) = 'ab'"),
)
OTHERS: tuple[Event, ...] = (
    {"n": 3, "s": "AB", "t": "2020-01-01"},
    {"n": 5.0, "s": "abc", "t": np.datetime64("2020-03-01")},
    {"n": None, "s": ""},
    {},
)
SHAPES = ((1, CONSTRAINTS), (2, CONSTRAINTS // 2), (2, 5), (3, 4))  # of a filter; predicates


def scatter(rng: Generator) -> BaseGeometry:
    """A lattice shape at a whole place, mostly an area, so that boundaries often touch."""
    pick = seeded_pick(int(rng.integers(0, 10**9)))
    kind = "area" if rng.random() < 0.8 else choose_kind(pick)
    shift = (float(rng.integers(0, FIELD)), float(rng.integers(0, FIELD)))
    return place(build(pick, kind), shift, 1.0)


def write_test(rng: Generator, shape: BaseGeometry) -> str:
    """A relation, pattern or distance to a shape, or a test of an attribute."""
    sides = [shape.wkt, "geometry"] if rng.random() < 0.3 else ["geometry", shape.wkt]
    both = ", ".join(sides)
    match int(rng.integers(0, 8)):
        case 0:
            return str(rng.choice(ATTRIBUTE_TESTS))
        case 1:
            return f"relate({both}, '{rng.choice(PATTERNS)}')"
        case 2:
            return f"dwithin({both}, {rng.choice(RADII_M)})"
    name = str(rng.choice(NAMES))
    is_region = shape.geom_type in ("Polygon", "MultiPolygon")
    return f"{name if is_region or not name.startswith('eh') else 's_intersects'}({both})"


def write_filters(rng: Generator, shapes: list[BaseGeometry], size: int) -> list[str]:
    tests = [write_test(rng, shape) for shape in shapes]
    tests = [f"NOT {test}" if rng.random() < 0.3 else test for test in tests]
    return [" AND ".join(tests[i : i + size]) for i in range(0, len(tests), size)]


def large_area(rng: Generator) -> BaseGeometry:
    """An area over much of the field, of whole numbers, with a second part and maybe a hole."""
    west, south = rng.integers(0, 20, 2).tolist()
    area: BaseGeometry = shapely.box(west, south, west + 24, south + 24)
    if rng.random() < 0.5:
        area = area.difference(shapely.box(west + 4, south + 4, west + 12, south + 16))
    return area.union(shapely.box(44, 44, 50, 50))


def make_events(rng: Generator) -> list[Event]:
    """A large area on the lattice, one that is turned, and a diagonal line or a point."""
    turned = rotate(large_area(rng), float(rng.uniform(1, 89)))
    across = LineString([(0, 0), (FIELD, FIELD), (FIELD, 3)])
    small = across if rng.random() < 0.5 else Point(rng.integers(0, FIELD, 2))
    shapes = [large_area(rng), turned, small]
    return [{"geometry": shape, **OTHERS[int(rng.integers(0, 4))]} for shape in shapes]


def shapely_agrees_with_itself(events: list[Event], shapes: list[BaseGeometry]) -> bool:
    """Whether prepared geometries answer like plain ones, which engines use as they see fit."""
    for event in events:
        plain, prepared = (shapely.force_2d(event["geometry"]) for _ in range(2))
        shapely.prepare(prepared)
        for predicate in (shapely.contains, shapely.covers):
            if (predicate(plain, shapes) != predicate(prepared, shapes)).any():
                return False
    return True


def compare(seed: int, filter_size: int, predicate_count: int) -> None:
    rng = np.random.default_rng(seed)
    shapes, events = [scatter(rng) for _ in range(CONSTRAINTS)], make_events(rng)
    assume(shapely_agrees_with_itself(events, shapes))
    filters = write_filters(rng, shapes, filter_size)
    scan = Matcher("scan")
    others = [Matcher("strtree"), *(Matcher("crtree", split=split) for split in SPLIT_WEIGHTS)]
    for matcher in (scan, *others):
        for part in range(predicate_count):
            matcher.add(part, " OR ".join(filters[part::predicate_count]), subscriber=part % 3)
    check(scan, others, events)
    for removed in rng.permutation(predicate_count)[: predicate_count // 3].tolist():
        for matcher in (scan, *others):
            matcher.remove(removed)
    check(scan, others, events)


def check(scan: Matcher, others: list[Matcher], events: list[Event]) -> None:
    for event in events:
        ids, subscribers = scan.match(event), scan.subscribers(event)
        for matcher in others:
            assert matcher.match(event) == ids, matcher.engine
            assert matcher.subscribers(event) == subscribers, matcher.engine


@settings(max_examples=12)
@given(st.integers(0, 10**6), st.sampled_from(SHAPES))
def test_engines_agree_on_many_areas(seed: int, shape: tuple[int, int]) -> None:
    compare(seed, *shape)


@pytest.mark.soak
@settings(max_examples=300)  # each compares three engines on hundreds of relations
@given(st.integers(0, 10**9), st.sampled_from(SHAPES))
def test_engines_agree_on_very_many_areas(seed: int, shape: tuple[int, int]) -> None:
    compare(seed, *shape)
