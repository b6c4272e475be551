"""Relations by their DE-9IM patterns: against definitions in words, the oracle and the zoo."""

from collections.abc import Callable
from itertools import product

import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st
from shapely.geometry.base import BaseGeometry

import oracle
from contrada.errors import InvalidInput
from contrada.model.geometry import is_area, read_geometry
from contrada.model.relation import (
    EGENHOFER_NAMES,
    RELATIONS,
    Family,
    Relation,
    egenhofer,
    find_relation,
    fits,
    pattern_relation,
    transpose,
)
from strategies import geometry_pairs
from zoo import BASE_RELATIONS, GEOMETRIES, PAIRS

II, IB, IE, BI, BB, BE, EI, EB = range(8)
OGC = "intersects disjoint touches crosses within contains overlaps equals covers coveredBy".split()
EGENHOFER = "ehDisjoint ehMeet ehOverlap ehEquals ehInside ehCoveredBy ehContains ehCovers".split()
MATRICES = st.text("F012", min_size=8, max_size=8).map(lambda entries: f"{entries}2")
PATTERNS = st.text("TF*012", min_size=9, max_size=9)


def meaning(matrix: str, dimensions: tuple[int, int]) -> dict[str, bool]:
    """What the OGC relations say, in the words of their definitions."""
    meet = any(matrix[i] != "F" for i in (II, IB, BI, BB))
    interiors_meet = matrix[II] != "F"
    a_leaves = matrix[IE] != "F"
    b_leaves = matrix[EI] != "F"
    a_stays = matrix[IE] == matrix[BE] == "F"
    b_stays = matrix[EI] == matrix[EB] == "F"
    a_dimension, b_dimension = dimensions
    if a_dimension != b_dimension:
        crosses = interiors_meet and (a_leaves if a_dimension < b_dimension else b_leaves)
    else:
        crosses = a_dimension == 1 and matrix[II] == "0"
    shares_enough = matrix[II] == "1" if a_dimension == 1 else interiors_meet
    return {
        "intersects": meet,
        "disjoint": not meet,
        "touches": meet and not interiors_meet,
        "crosses": crosses,
        "within": interiors_meet and a_stays,
        "contains": interiors_meet and b_stays,
        "overlaps": a_dimension == b_dimension and shares_enough and a_leaves and b_leaves,
        "equals": interiors_meet and a_stays and b_stays,
        "covers": meet and b_stays,
        "coveredBy": meet and a_stays,
    }


def from_zoo(name: str) -> tuple[BaseGeometry, BaseGeometry]:
    a, b = (read_geometry(GEOMETRIES[side]) for side in (PAIRS[name].a, PAIRS[name].b))
    assert isinstance(a, BaseGeometry)
    assert isinstance(b, BaseGeometry)
    return a, b


FULL_PAIRS = [name for name in PAIRS if not any(g.is_empty for g in from_zoo(name))]


def dimensions_of(a: BaseGeometry, b: BaseGeometry) -> tuple[int, int]:
    return int(shapely.get_dimensions(a)), int(shapely.get_dimensions(b))


def check_all(a: BaseGeometry, b: BaseGeometry, matrix: str) -> None:
    dimensions = dimensions_of(a, b)
    for name, expected in meaning(matrix, dimensions).items():
        assert RELATIONS[name].admits(matrix, dimensions) is expected, name
    if is_area(a) and is_area(b):
        base = find_relation(Relation(oracle.egenhofer(a, b)))
        admitted = [name for name in EGENHOFER if RELATIONS[name].admits(matrix, (2, 2))]
        assert admitted == [base.name]


# The eighteen named relations


def test_there_are_eighteen_named_relations() -> None:
    assert list(RELATIONS) == [*OGC, *EGENHOFER]
    assert {RELATIONS[name].family for name in OGC} == {Family.OGC}
    assert {RELATIONS[name].family for name in EGENHOFER} == {Family.EGENHOFER}


@pytest.mark.parametrize("name", FULL_PAIRS)
def test_a_pair_of_the_zoo_has_the_relations_of_its_matrix(name: str) -> None:
    a, b = from_zoo(name)
    check_all(a, b, PAIRS[name].matrix)
    check_all(b, a, transpose(PAIRS[name].matrix))


@given(geometry_pairs())
def test_random_pairs_have_the_relations_of_the_oracle(
    pair: tuple[BaseGeometry, BaseGeometry],
) -> None:
    a, b = pair
    check_all(a, b, oracle.relate(a, b))


@pytest.mark.parametrize("name", EGENHOFER)
@pytest.mark.parametrize(
    "dimensions", [pair for pair in product(range(3), repeat=2) if pair != (2, 2)]
)
def test_an_egenhofer_relation_never_holds_of_what_is_no_area(
    name: str, dimensions: tuple[int, int]
) -> None:
    assert RELATIONS[name].patterns[dimensions] == ()
    assert not RELATIONS[name].admits("212101212", dimensions)


# Egenhofer


@pytest.mark.parametrize(
    ("matrix", "relation"),
    [
        ("FF2FF1212", "disjoint"),
        ("FF2F11212", "meets"),
        ("FF2F01212", "meets"),
        ("212101212", "overlaps"),
        ("212111212", "overlaps"),
        ("2121FF212", "overlaps"),  # a lid on the hole of an annulus
        ("2FFF1FFF2", "equals"),
        ("2FF1FF212", "inside"),
        ("2FF11F212", "coveredBy"),
        ("2FF10F212", "coveredBy"),
        ("212FF1FF2", "contains"),
        ("212F11FF2", "covers"),
        ("212F01FF2", "covers"),
        ("FF2F112F2", "meets"),  # an annulus and its plug
        ("212F1FFF2", "covers"),  # a disk and an annulus of the same rim
        ("2FF11F2F2", "coveredBy"),  # an annulus and its disk
    ],
)
def test_four_facts_decide_the_egenhofer_relation(matrix: str, relation: str) -> None:
    assert str(egenhofer(matrix)) == relation
    assert find_relation(egenhofer(matrix)).admits(matrix, (2, 2))


@pytest.mark.parametrize("name", BASE_RELATIONS)
def test_the_egenhofer_relations_of_the_zoo(name: str) -> None:
    assert str(egenhofer(PAIRS[name].matrix)) == BASE_RELATIONS[name]


@given(MATRICES)
def test_exactly_one_egenhofer_relation_holds(matrix: str) -> None:
    held = [relation for relation in Relation if find_relation(relation).admits(matrix, (2, 2))]
    assert held == [egenhofer(matrix)]


# Names


def test_a_relation_is_its_name() -> None:
    names = "disjoint meets overlaps equals inside coveredBy contains covers".split()
    assert [str(relation) for relation in Relation] == names
    assert f"{Relation.COVERED_BY}" == "coveredBy"
    assert Relation("inside") is Relation.INSIDE


@pytest.mark.parametrize("relation", Relation)
def test_a_member_means_the_egenhofer_relation(relation: Relation) -> None:
    assert find_relation(relation) is RELATIONS[EGENHOFER_NAMES[relation]]
    assert find_relation(relation).family is Family.EGENHOFER


@pytest.mark.parametrize("name", [*OGC, *EGENHOFER])
@pytest.mark.parametrize("spell", [str, str.lower, str.upper])
def test_a_text_means_the_ogc_or_eh_relation(name: str, spell: Callable[[str], str]) -> None:
    assert find_relation(spell(name)) is RELATIONS[name]


@pytest.mark.parametrize(
    "name", ["disjoint", "overlaps", "equals", "contains", "covers", "coveredBy"]
)
def test_a_text_and_a_member_of_one_name_are_two_relations(name: str) -> None:
    assert find_relation(name).family is Family.OGC
    assert find_relation(Relation(name)).family is Family.EGENHOFER
    assert find_relation(name) != find_relation(Relation(name))


@pytest.mark.parametrize("pattern", ["T*F**F***", "t*f**f***", "012TF*012"])
def test_a_text_may_be_a_pattern(pattern: str) -> None:
    relation = find_relation(pattern)
    assert relation.family is Family.PATTERN
    assert relation.name == pattern.upper()
    assert relation == pattern_relation(pattern)
    assert hash(relation) == hash(pattern_relation(pattern))


@pytest.mark.parametrize(
    "name",
    ["", "near", "meets", "s_within", "T*F**F**", "T*F**F****", "T*F**F**X", 5, None, b"within"],
)
def test_an_unknown_relation_is_refused_with_what_is_known(name: str) -> None:
    with pytest.raises(InvalidInput, match=r"unknown relation .*; known: intersects, .*ehCovers"):
        find_relation(name)


@pytest.mark.parametrize("pattern", ["", "T", "T*F**F**X", "T*F**F****", "３********"])
def test_a_bad_pattern_is_refused_with_what_it_takes(pattern: str) -> None:
    with pytest.raises(InvalidInput, match="is not a DE-9IM pattern: write nine characters of T"):
        pattern_relation(pattern)


# Patterns


@given(MATRICES, PATTERNS)
def test_a_matrix_fits_a_pattern_as_the_oracle_says(matrix: str, pattern: str) -> None:
    assert fits(matrix, pattern) is oracle.matches(matrix, pattern)
    for a, b in product(range(3), repeat=2):
        assert pattern_relation(pattern).admits(matrix, (a, b)) is fits(matrix, pattern)


@given(MATRICES, PATTERNS)
def test_transposition_swaps_the_arguments(matrix: str, pattern: str) -> None:
    assert transpose(transpose(matrix)) == matrix
    assert fits(transpose(matrix), transpose(pattern)) is fits(matrix, pattern)
    transposed = pattern_relation(pattern).transposed()
    assert transposed.admits(transpose(matrix), (1, 2)) is fits(matrix, pattern)
    assert transposed.transposed() == pattern_relation(pattern)


@given(geometry_pairs())
def test_a_transposed_matrix_is_that_of_the_swapped_pair(
    pair: tuple[BaseGeometry, BaseGeometry],
) -> None:
    a, b = pair
    assert transpose(oracle.relate(a, b)) == oracle.relate(b, a)


@pytest.mark.parametrize("name", RELATIONS)
def test_a_relation_holds_where_its_transposed_holds_of_the_swapped_pair(name: str) -> None:
    relation, swapped = RELATIONS[name], RELATIONS[name].transposed()
    assert swapped.transposed() is relation
    for pair in FULL_PAIRS:
        a, b = dimensions_of(*from_zoo(pair))
        matrix = PAIRS[pair].matrix
        assert relation.admits(matrix, (a, b)) is swapped.admits(transpose(matrix), (b, a)), pair


@pytest.mark.parametrize(
    ("name", "converse"),
    [
        ("within", "contains"),
        ("covers", "coveredBy"),
        ("ehInside", "ehContains"),
        ("ehCovers", "ehCoveredBy"),
        ("overlaps", "overlaps"),
        ("ehMeet", "ehMeet"),
    ],
)
def test_relations_come_in_converse_pairs(name: str, converse: str) -> None:
    assert RELATIONS[name].transposed() is RELATIONS[converse]
    assert RELATIONS[converse].transposed() is RELATIONS[name]


# What holds of geometries that are apart


def apart() -> list[tuple[str, tuple[int, int]]]:
    """The matrices of two geometries of each kind without a common point, and their dimensions."""
    kinds = [("0", "F"), ("1", "0"), ("1", "F"), ("2", "1")]
    return [
        (f"FF{a}FF{a_boundary}{b}{b_boundary}2", (int(a), int(b)))
        for (a, a_boundary), (b, b_boundary) in product(kinds, repeat=2)
    ]


def test_the_matrices_of_geometries_apart_are_those_of_the_oracle() -> None:
    west = [
        "POINT(0 0)",
        "LINESTRING(0 0,1 0)",
        "LINESTRING(0 0,1 0,0 1,0 0)",
        "POLYGON((0 0,1 0,0 1,0 0))",
    ]
    pairs = product(map(shapely.from_wkt, west), repeat=2)
    moved = [(a, shapely.transform(b, lambda xy: xy + 10)) for a, b in pairs]
    assert [(oracle.relate(a, b), dimensions_of(a, b)) for a, b in moved] == apart()


@pytest.mark.parametrize("name", RELATIONS)
def test_only_the_disjoint_relations_hold_when_apart(name: str) -> None:
    holds = [RELATIONS[name].admits(matrix, dimensions) for matrix, dimensions in apart()]
    assert RELATIONS[name].holds_when_apart() is any(holds)
    assert RELATIONS[name].holds_when_apart() is (name in {"disjoint", "ehDisjoint"})


@given(PATTERNS)
def test_a_pattern_that_can_hold_when_apart_says_so(pattern: str) -> None:
    can_hold = any(fits(matrix, pattern) for matrix, _ in apart())
    assert pattern_relation(pattern).holds_when_apart() or not can_hold


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("FF*FF****", True),
        ("*********", True),
        ("F********", True),
        ("***FF*2**", True),
        ("T********", False),
        ("*0*******", False),
        ("****1****", False),
        ("***2*****", False),
    ],
)
def test_a_pattern_holds_when_apart_unless_it_wants_contact(pattern: str, expected: bool) -> None:
    assert pattern_relation(pattern).holds_when_apart() is expected
