"""The space index finds what `language` says is satisfied: relations, patterns and distances."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from shapely import LineString, MultiPoint, Point, box

from contrada.language import is_satisfied
from contrada.matching.indexes.by_tree import ExactEvaluator, SpaceIndex
from contrada.matching.indexes.cr_tree import SPLIT_WEIGHTS
from contrada.model.event import Event
from contrada.model.expression import Attribute, DistanceWithin, Literal, Spatial
from contrada.model.relation import RELATIONS, find_relation
from contrada.model.subscription import Constraint
from strategies import build, choose_kind, place, seeded_pick

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shapely.geometry.base import BaseGeometry

G = Attribute("g")
NAMES = (*RELATIONS, "T********", "FF*FF****", "F********", "*********", "T*F**F***", "0FFFFF212")


def satisfied(index: SpaceIndex, event: Event) -> list[int]:
    """What the index finds in all its steps; a constraint that is found twice is there twice."""
    sure, near = index.survey(event)
    placed, open_ = index.place(event, near)
    decided = index.decide(event, open_)
    return sorted(np.concatenate([*sure, placed, decided]).tolist())


def fill(constraints: Sequence[Constraint], split: str = "quadratic") -> SpaceIndex:
    index = SpaceIndex(ExactEvaluator(), split)
    for number, constraint in enumerate(constraints):
        assert index.take(number, constraint)
    index.freeze()
    return index


def expected(constraints: Sequence[Constraint], event: Event) -> list[int]:
    return [n for n, constraint in enumerate(constraints) if is_satisfied(constraint, event)]


def within(geometry: BaseGeometry, radius_m: float) -> Constraint:
    return Constraint(DistanceWithin(G, Literal(geometry), Literal(radius_m)))


# Distances

PLACES: tuple[BaseGeometry, ...] = (
    Point(0, 0),
    Point(179.9, 0),
    Point(-180, 10),
    Point(20, 89.9),
    LineString([(179.5, -1), (179.9, 1)]),
    LineString([(-10, 60), (10, 60)]),
    box(-179.9, 50, -179, 51),
    MultiPoint([(-179.9, -40), (179.9, -40)]),
)
RADII_M = (0, 1_000, 25_000, 120_000, 3_000_000, 15_000_000, 30_000_000)
EVENTS: tuple[BaseGeometry, ...] = (
    Point(0, 0),
    Point(1, 0),
    Point(-179.9, 0),
    Point(180, 10),
    Point(-160, 89.95),
    Point(0, 60.3),  # north of the line on the 60th parallel
    Point(179.99, 50.5),
    LineString([(-179.95, -1), (-179.95, 1)]),
    LineString([(-170, -41), (-170, -39)]),
    box(179, 50, 179.9, 51),
    box(-1, -1, 1, 1),
    Point(181, 0),  # not on the globe: unknown
)


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.wkt[:40])
def test_distances_are_found_near_and_far_and_across_180_degrees(event: BaseGeometry) -> None:
    constraints = [within(*pair) for pair in product(PLACES, RADII_M)]
    found = satisfied(fill(constraints), Event({"g": event}))
    assert found == expected(constraints, Event({"g": event}))


def test_the_cases_of_distances_are_of_both_answers_across_180_degrees() -> None:
    east, west = Event({"g": Point(179.9, 0)}), Event({"g": Point(-179.9, 0)})
    near, far = within(Point(-179.9, 0), 25_000), within(Point(-179.9, 0), 1_000)
    assert [is_satisfied(c, e) for c in (near, far) for e in (east, west)] == [True] * 2 + [
        False,
        True,
    ]
    assert satisfied(fill([near, far]), east) == [0]
    assert satisfied(fill([near, far]), west) == [0, 1]


@pytest.mark.parametrize("value", [None, "POINT EMPTY", 3, "soon"])
def test_what_is_no_geometry_is_near_nothing(value: object) -> None:
    index = fill([within(Point(0, 0), 30_000_000)])
    assert satisfied(index, Event({"g": value})) == []
    assert satisfied(index, Event({})) == []


def test_distances_that_are_negated_or_not_known_beforehand_are_left_to_evaluation() -> None:
    index = SpaceIndex(ExactEvaluator())
    near = within(Point(0, 0), 1)
    assert not index.take(0, Constraint(near.test, is_negated=True))
    assert not index.take(0, Constraint(DistanceWithin(G, Literal(Point(0, 0)), Attribute("n"))))
    assert not index.take(0, Constraint(DistanceWithin(G, Attribute("h"), Literal(1))))


# Relations


def scattered(seed: int, count: int) -> list[Constraint]:
    """Relations and distances of all names to lattice shapes, negated at random."""
    rng = np.random.default_rng(seed)
    constraints = []
    for number in range(count):
        name = NAMES[int(rng.integers(len(NAMES)))]
        pick = seeded_pick(int(rng.integers(10**9)))
        kind = "area" if name.startswith("eh") or rng.random() < 0.6 else choose_kind(pick)
        shift = tuple(rng.integers(-20, 20, 2).astype(float).tolist())
        shape = place(build(pick, kind), shift, 1.0)
        if number % 8 == 7:
            constraints.append(within(shape, float(rng.choice([0, 111_000, 300_000]))))
        else:
            test = Spatial(find_relation(name), G, Literal(shape))
            constraints.append(Constraint(test, is_negated=bool(rng.random() < 0.4)))
    return constraints


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.sampled_from(sorted(SPLIT_WEIGHTS)), st.integers(0, 60))
def test_relations_are_found_through_removals_and_with_both_splits(
    seed: int, split: str, count: int
) -> None:
    constraints = scattered(seed, count)
    index = fill(constraints, split)
    removed = set(range(seed % 3, count, 3))
    fewer = index.without(removed)
    rng, pick = np.random.default_rng(seed), seeded_pick(seed)
    shapes = [place(build(pick, choose_kind(pick)), (0.0, 0.0), 2.0**k) for k in range(4)]
    turned = shapely.affinity.rotate(build(pick, "area"), float(rng.uniform(0, 360)))
    for shape in [*shapes, turned]:
        event = Event({"g": shape})
        answer = expected(constraints, event)
        assert satisfied(index, event) == answer
        assert satisfied(fewer, event) == [number for number in answer if number not in removed]
