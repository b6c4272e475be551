"""The oracle against pencil and paper, against itself, and against Shapely."""

from __future__ import annotations

import doctest
import subprocess
import sys
from itertools import product
from typing import TYPE_CHECKING, TypeAlias

import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from shapely.geometry import LineString, Polygon
from shapely.geometry.base import BaseMultipartGeometry

import oracle
from known_differences import CRASH, DIFFERENCES_BY_CAUSE, Difference
from oracle import egenhofer, matches, relate
from search_differences import known_symptoms, search, symptom, symptom_of, wrong_answers
from strategies import KINDS, Kind, Pair, geometries, geometry_pairs, place
from zoo import BASE_RELATIONS, GEOMETRIES, PAIRS

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from shapely.geometry.base import BaseGeometry

CONVERSE = {
    "inside": "contains",
    "contains": "inside",
    "coveredBy": "covers",
    "covers": "coveredBy",
}
KNOWN = [(cause, known) for cause, cases in DIFFERENCES_BY_CAUSE.items() for known in cases]
TellPath: TypeAlias = "Callable[[list[tuple[float, ...]]], list[tuple[float, ...]]]"
WHOLE_NUMBERS = st.integers(-(2**40), 2**40)


def transpose(matrix: str) -> str:
    """The matrix with the geometries exchanged."""
    return "".join(matrix[row::3] for row in range(3))


def from_zoo(name: str) -> Pair:
    """Both geometries of a pair in the zoo."""
    return shapely.from_wkt(GEOMETRIES[PAIRS[name].a]), shapely.from_wkt(GEOMETRIES[PAIRS[name].b])


# Against pencil and paper


@pytest.mark.parametrize("name", PAIRS)
def test_a_pair_of_the_zoo_has_the_matrix_derived_by_hand(name: str) -> None:
    a, b = from_zoo(name)
    assert relate(a, b) == PAIRS[name].matrix
    assert relate(b, a) == transpose(PAIRS[name].matrix)


@pytest.mark.parametrize("name", BASE_RELATIONS)
def test_a_pair_of_regions_has_the_base_relation_derived_by_hand(name: str) -> None:
    a, b = from_zoo(name)
    relation = BASE_RELATIONS[name]
    assert egenhofer(a, b) == relation
    assert egenhofer(b, a) == CONVERSE.get(relation, relation)


def test_every_base_relation_occurs_in_the_zoo() -> None:
    named = set(BASE_RELATIONS.values())
    converse = {CONVERSE.get(relation, relation) for relation in named}
    assert named | converse == {"disjoint", "meets", "overlaps", "equals", *CONVERSE}


@pytest.mark.parametrize("name", GEOMETRIES)
def test_every_geometry_equals_itself(name: str) -> None:
    geometry = shapely.from_wkt(GEOMETRIES[name])
    matrix = relate(geometry, geometry)
    assert matches(matrix, "*FFF*FFF2")
    assert (matrix[0] == "F") == geometry.is_empty


def test_a_pattern_asks_for_dimensions_or_whether_there_are_any() -> None:
    assert matches("212101212", "T*T***T**")
    assert matches("212101212", "2*2*0*212")
    assert not matches("FF2FF1212", "T********")
    assert not matches("212101212", "F********")
    assert not matches("1F1FF0102", "0********")


def test_the_examples_in_the_oracle_hold() -> None:
    assert doctest.testmod(oracle).failed == 0


# Against itself


@given(geometry_pairs())
@settings(deadline=None)
def test_exchanged_arguments_transpose_the_matrix(pair: Pair) -> None:
    a, b = pair
    assert relate(b, a) == transpose(relate(a, b))


@given(geometry_pairs(), WHOLE_NUMBERS, WHOLE_NUMBERS, st.integers(-60, 60))
@settings(deadline=None)
def test_moving_and_scaling_change_nothing(pair: Pair, dx: int, dy: int, power: int) -> None:
    a, b = pair
    moved = [place(geometry, (dx, dy), 2.0**power) for geometry in pair]
    assert relate(*moved) == relate(a, b)


@given(geometry_pairs())
@settings(deadline=None)
def test_exchanged_axes_change_nothing(pair: Pair) -> None:
    a, b = pair
    mirrored = [shapely.transform(geometry, lambda xy: xy[:, ::-1]) for geometry in pair]
    assert relate(*mirrored) == relate(a, b)


@given(geometry_pairs(), st.integers(0, 9))
@settings(deadline=None)
def test_the_start_of_a_ring_changes_nothing(pair: Pair, start: int) -> None:
    a, b = pair
    turned = retell(a, lambda ring: ring[start % len(ring) :] + ring[: start % len(ring)], list)
    assert relate(turned, b) == relate(a, b)


@given(geometry_pairs())
@settings(deadline=None)
def test_the_direction_of_rings_and_lines_changes_nothing(pair: Pair) -> None:
    a, b = pair
    assert relate(shapely.reverse(a), b) == relate(a, b)


@given(geometry_pairs(), st.integers(0, 9))
@settings(deadline=None)
def test_a_repeated_vertex_changes_nothing(pair: Pair, number: int) -> None:
    a, b = pair

    def stutter(path: list[tuple[float, ...]]) -> list[tuple[float, ...]]:
        i = number % len(path)
        return [*path[:i], path[i], *path[i:]]

    assert relate(retell(a, stutter, stutter), b) == relate(a, b)


@given(geometry_pairs("collection"), st.randoms(use_true_random=False))
@settings(deadline=None)
def test_the_order_of_members_changes_nothing(pair: Pair, random: Random) -> None:
    a, b = pair
    members = list(shapely.get_parts(a))
    random.shuffle(members)
    assert relate(shapely.GeometryCollection(members), b) == relate(a, b)


@given(geometry_pairs("area", "area"))
@settings(deadline=None)
def test_a_collection_of_two_areas_is_their_union(pair: Pair) -> None:
    a, b = pair
    together = shapely.GeometryCollection([a, b])
    for part in pair:
        assert matches(relate(part, together), "T*F**F***")
    assert matches(relate(together, shapely.GeometryCollection([b, a, b])), "T*F**FFF*")


def retell(geometry: BaseGeometry, tell_ring: TellPath, tell_line: TellPath) -> BaseGeometry:
    """The same geometry with its rings (without their closing vertex) and lines told otherwise."""
    if isinstance(geometry, BaseMultipartGeometry):
        join: Callable[[list[BaseGeometry]], BaseGeometry] = type(geometry)
        return join([retell(member, tell_ring, tell_line) for member in geometry.geoms])
    if isinstance(geometry, Polygon):
        rings = [tell_ring(list(r.coords)[:-1]) for r in (geometry.exterior, *geometry.interiors)]
        return Polygon(rings[0], rings[1:])
    if isinstance(geometry, LineString):
        return LineString(tell_line(list(geometry.coords)))
    return geometry


# The strategies


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@settings(deadline=None)
def test_a_strategy_gives_valid_geometries_of_its_kind(kind: Kind, data: st.DataObject) -> None:
    geometry = data.draw(geometries(kind))
    dimensions = {"point": {0}, "line": {1}, "area": {2}, "sliver": {2}, "collection": {0, 1, 2}}
    assert geometry.is_valid
    assert not geometry.is_empty
    assert shapely.get_dimensions(geometry) in dimensions[kind]


@given(geometry_pairs(far=True))
@settings(deadline=None)
def test_a_far_pair_is_valid_and_whole(pair: Pair) -> None:
    for geometry in pair:
        assert geometry.is_valid
        assert not geometry.is_empty


# Against Shapely


@pytest.mark.parametrize(("cause", "known"), KNOWN)
def test_a_known_difference_is_still_there(cause: str, known: Difference) -> None:
    a, b = shapely.from_wkt(known.a), shapely.from_wkt(known.b)
    assert a.is_valid
    assert b.is_valid
    assert relate(a, b) == known.truth
    assert relate(b, a) == transpose(known.truth)
    assert symptom(a, b) == symptom_of(known), f"Shapely has changed where {cause}"


def test_shapely_still_crashes_on_polygons_beside_an_empty_one() -> None:
    a, b, truth = CRASH
    assert relate(shapely.from_wkt(a), shapely.from_wkt(b)) == truth
    program = f"import shapely as s; s.relate(s.from_wkt({a!r}), s.from_wkt({b!r}))"
    ended = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True)
    assert ended.returncode < 0, "Shapely has changed"


@pytest.mark.parametrize("kinds", list(product(KINDS, repeat=2)), ids="/".join)
def test_shapely_differs_on_random_pairs_only_in_known_ways(kinds: tuple[Kind, Kind]) -> None:
    pair_count = 80 if "collection" in kinds else 400
    tally = search(kinds, pair_count, seed=1)
    for found in set(tally.pairs_by_symptom) - known_symptoms():
        a, b = tally.pairs_by_symptom[found][0]
        pytest.fail(
            f"a new difference:\n{a}\n{b}\nis {relate(a, b)}, but Shapely says "
            f"{wrong_answers(a, b)}\nReplay: python tests/search_differences.py --cases"
            f" --pairs {pair_count} --seed 1 --kinds {' '.join(kinds)}"
        )
