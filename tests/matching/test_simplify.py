"""The simplifier: what it takes out, and that no answer changes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shapely.geometry.base import BaseGeometry

from contrada.language import constraint_text, is_satisfied, make_predicate, read
from contrada.matching.implying import do_conflict, does_cover
from contrada.matching.simplify import simplify
from contrada.model.calculus import compose
from contrada.model.event import Event
from contrada.model.relation import RELATIONS, Relation
from contrada.model.subscription import Constraint, Predicate
from strategies import geometries

CONVERSE = {
    Relation.INSIDE: Relation.CONTAINS,
    Relation.CONTAINS: Relation.INSIDE,
    Relation.COVERS: Relation.COVERED_BY,
    Relation.COVERED_BY: Relation.COVERS,
}
NAMES = {
    name: name if name.startswith(("eh", "cover")) else f"S_{name.upper()}" for name in RELATIONS
}
SMALL, LARGE, APART = "BBOX(1, 1, 2, 2)", "BBOX(0, 0, 5, 5)", "BBOX(8, 8, 9, 9)"
SIDE = "BBOX(4, 0, 8, 5)"  # overlaps LARGE


def simplified(text: str) -> list[list[str]]:
    predicate, _ = simplify(make_predicate(read(text)))
    return [[constraint_text(c) for c in f.constraints] for f in predicate.filters]


def converse(relation: Relation) -> Relation:
    return CONVERSE.get(relation, relation)


@pytest.mark.parametrize("first", Relation)
@pytest.mark.parametrize("second", Relation)
def test_the_composition_table_obeys_the_laws_of_converses(
    first: Relation, second: Relation
) -> None:
    composed = compose([first], second)
    assert {converse(r) for r in composed} == compose([converse(second)], converse(first))
    for third in Relation:
        assert (third in composed) == (second in compose([converse(first)], third))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x <> 0 AND x > 10", [["x > 10"]]),
        ("x > 10 AND x >= 10", [["x > 10"]]),
        ("x > 10 AND x < 5", []),
        ("x = 3 AND x IN (1, 2)", []),
        ("x = 3 AND x = 'a'", []),
        ("x = 3 OR x > 1", [["x > 1"]]),
        ("x IN (1, 2) AND x IS NOT NULL", [["x IN (1, 2)"]]),
        ("x IS NULL AND x > 1", []),
        ("x < 'b' AND x < 'c'", [["x < 'b'"]]),
        ("x > 1 AND y > 1", [["x > 1", "y > 1"]]),
        ("x > 1 AND x < 5", [["x > 1", "x < 5"]]),
        (
            "x < DATE('2020-01-01') AND x < 'b'",
            [["x < TIMESTAMP('2020-01-01T00:00:00Z')", "x < 'b'"]],
        ),
    ],
)
def test_attribute_constraints_are_simplified(text: str, expected: list[list[str]]) -> None:
    assert simplified(text) == expected


@pytest.mark.parametrize(
    ("text", "count_of_filters", "count_of_constraints"),
    [
        (f"S_WITHIN(g, {SMALL}) AND S_INTERSECTS(g, {LARGE})", 1, 1),
        (f"S_WITHIN(g, {SMALL}) AND S_DISJOINT(g, {LARGE})", 0, 0),
        (f"S_WITHIN(g, {SMALL}) AND S_INTERSECTS(g, {APART})", 0, 0),
        (f"S_WITHIN(g, {SMALL}) OR S_INTERSECTS(g, {LARGE})", 1, 1),
        (f"ehInside(g, {SMALL}) AND S_INTERSECTS(g, {LARGE})", 1, 1),
        (f"S_WITHIN(g, {SMALL}) AND ehInside(g, {LARGE})", 1, 2),  # the event may be a point
        (f"NOT S_INTERSECTS(g, {LARGE}) AND NOT S_WITHIN(g, {SMALL})", 1, 1),
        (f"coveredBy(g, {LARGE}) AND S_DISJOINT(g, {SIDE})", 1, 2),
        (f"S_WITHIN(g, {SMALL}) AND S_INTERSECTS(h, {LARGE})", 1, 2),
    ],
)
def test_spatial_constraints_are_simplified(
    text: str, count_of_filters: int, count_of_constraints: int
) -> None:
    filters = simplified(text)
    assert (len(filters), sum(map(len, filters))) == (count_of_filters, count_of_constraints)


def test_the_printed_conflict_example_of_the_paper_is_no_conflict() -> None:
    covered, disjoint = (RELATIONS["ehCoveredBy"], False), (RELATIONS["ehDisjoint"], False)
    assert not do_conflict(covered, disjoint, Relation.OVERLAPS)
    for base in (Relation.CONTAINS, Relation.COVERS, Relation.EQUALS):
        assert do_conflict(covered, disjoint, base)  # of B to A, so that A lies in B
    assert does_cover(
        (RELATIONS["disjoint"], False), (RELATIONS["ehInside"], False), Relation.DISJOINT
    )


def regions() -> st.SearchStrategy[BaseGeometry]:
    return geometries("area")


def constraints_on(attribute: str) -> st.SearchStrategy[str]:
    spatial = st.builds(
        lambda name, region: f"{NAMES[name]}({attribute}, {region.wkt})",
        st.sampled_from(sorted(RELATIONS)),
        regions(),
    )
    values = st.builds(
        lambda operator, bound: f"x {operator} {bound}",
        st.sampled_from(["=", "<>", "<", "<=", ">", ">="]),
        st.integers(0, 3),
    )
    others = st.sampled_from(["x IN (0, 2)", "x IS NULL", "x IN (1, 2, 3)"])
    test = st.one_of(spatial, spatial, values, others)
    return st.builds(lambda t, negated: f"NOT ({t})" if negated else t, test, st.booleans())


def predicates() -> st.SearchStrategy[str]:
    filters = st.lists(constraints_on("g"), min_size=1, max_size=4).map(
        lambda tests: "(" + " AND ".join(f"({t})" for t in tests) + ")"
    )
    return st.lists(filters, min_size=1, max_size=4).map(" OR ".join)


def holds(predicate: Predicate, event: Event) -> bool:
    def is_true(constraint: Constraint) -> bool:
        return is_satisfied(constraint, event)

    return any(all(map(is_true, f.constraints)) for f in predicate.filters)


def check_unchanged(text: str, shape: BaseGeometry | None, x: int | None) -> None:
    predicate = make_predicate(read(text))
    fewer, _ = simplify(predicate)
    event = Event({"g": shape, "x": x})
    assert holds(predicate, event) == holds(fewer, event), text


shapes = st.one_of(
    st.none(), *(geometries(kind) for kind in ("point", "line", "area", "collection"))
)


@settings(max_examples=300)
@given(predicates(), shapes, st.none() | st.integers(0, 3))
def test_no_answer_changes_for_points_lines_areas_collections_and_nulls(
    text: str, shape: BaseGeometry | None, x: int | None
) -> None:
    check_unchanged(text, shape, x)


@pytest.mark.soak
@given(predicates(), shapes, st.none() | st.integers(0, 3))
def test_no_answer_changes_for_very_many(
    text: str, shape: BaseGeometry | None, x: int | None
) -> None:
    check_unchanged(text, shape, x)
