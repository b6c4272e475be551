"""The simplifier: what it takes out, and that no answer changes."""

from collections.abc import Iterable
from datetime import UTC, date, datetime
from itertools import combinations, islice, product
from typing import Any

import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from shapely.geometry.base import BaseGeometry

from contrada import Matcher
from contrada.language import constraint_text, is_satisfied, make_predicate, read
from contrada.limits import SIMPLIFIER_PAIRS_MAX
from contrada.matching import implying
from contrada.matching.engine import Effort
from contrada.matching.engines import make_engine
from contrada.matching.forwarding import effort_of
from contrada.matching.implying import Group, Implications, do_conflict, does_cover
from contrada.matching.simplify import Removal, Rule
from contrada.matching.simplify import simplify as simplify_by_effort
from contrada.model.calculus import base_relations, compose, matrices_of
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
COMPARED = ("=", "<>", "<", ">=", "<=", ">")
NEW_YEAR, EVENING = "TIMESTAMP('2020-01-01T00:00:00Z')", "TIMESTAMP('2019-12-31T19:00:00Z')"


BY_TREES = make_engine("strtree", {}).effort


def simplify(
    predicate: Predicate, effort: Effort | None = BY_TREES
) -> tuple[Predicate, tuple[Removal, ...]]:
    assert effort is not None
    return simplify_by_effort(predicate, effort)


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


def unchanged(text: str) -> list[tuple[str, list[list[str]]]]:
    """A case of a filter from which nothing is taken out."""
    return [(text, [text.split(" AND ")])]


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
        ("x < DATE('2020-01-01') AND x < DATE('2021-01-01')", [[f"x < {NEW_YEAR}"]]),
        # A text that reads as a moment is compared as one with a moment, else as a text.
        *unchanged("x = '2020-01-01' AND x = '2020-01-01T00:00:00Z'"),
        *unchanged("x < '2020-01-01T00:00:00+05:00' AND x < '2020-01-01'"),
        *unchanged("x = '2020-01-01' AND x <> 'soon'"),  # the latter is unknown for a moment
        *unchanged("x IN ('2020-01-01', 'soon') AND NOT (x IN ('2020-01-02'))"),
        ("x > '2020-01-01' AND x IS NOT NULL", [["x > '2020-01-01'"]]),
        ("x NOT IN ('2020-01-01') AND x IS NULL", []),
        (" AND ".join(f"x > {i}" for i in range(20)), [["x > 19"]]),
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


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("S_INTERSECTS(g, {0}) AND NOT S_DISJOINT(g, {0})", ["S_INTERSECTS"]),
        ("NOT S_DISJOINT(g, {0}) AND S_INTERSECTS(g, {0})", ["S_INTERSECTS"]),
        ("relate(g, {0}, 'FF*FF****') AND NOT S_INTERSECTS(g, {0})", ["S_DISJOINT"]),
        ("NOT relate(g, {0}, 'FF*FF****') AND S_INTERSECTS(g, {0})", ["S_INTERSECTS"]),
        ("S_INTERSECTS(g, {0}) AND NOT relate(g, {0}, 'FF*FF****')", ["S_INTERSECTS"]),
        # The second implies the first, but no tree of boxes finds it.
        ("S_INTERSECTS(g, {0}) AND NOT ehDisjoint(g, {0})", ["S_INTERSECTS", "NOT ehDisjoint"]),
        ("NOT ehDisjoint(g, {0}) AND S_INTERSECTS(g, {0})", ["NOT ehDisjoint", "S_INTERSECTS"]),
        ("NOT ehDisjoint(g, {1}) AND S_INTERSECTS(g, {0})", ["NOT ehDisjoint", "S_INTERSECTS"]),
        ("ehInside(g, {1}) AND S_INTERSECTS(g, {0})", ["ehInside"]),
    ],
)
def test_what_an_index_finds_is_not_dropped_in_favour_of_what_none_finds(
    text: str, kept: list[str]
) -> None:
    ((*constraints,),) = simplified(text.format(LARGE, SMALL))
    assert [constraint.partition("(")[0] for constraint in constraints] == kept
    matcher = Matcher()
    matcher.add("it", text.format(LARGE, SMALL))
    assert matcher.stats()["unanchored"] == (kept == ["S_DISJOINT"])


def test_an_engine_keeps_what_its_own_index_finds() -> None:
    """The CR-tree finds a negated constraint that boxes allow, trees of anchors do not."""
    predicate = make_predicate(read(f"NOT ehDisjoint(g, {LARGE}) AND S_INTERSECTS(g, {LARGE})"))
    assert len(simplify(predicate)[0].filters[0].constraints) == 2
    assert len(simplify(predicate, effort_of)[0].filters[0].constraints) == 1


@pytest.mark.parametrize("order", ["{0} OR {1}", "{1} OR {0}"])
def test_of_filters_that_say_the_same_the_one_that_an_index_finds_is_kept(order: str) -> None:
    found = f"S_INTERSECTS(g, {LARGE}) AND NOT ehDisjoint(g, {LARGE})"
    hidden = f"NOT ehDisjoint(g, {LARGE})"
    (filter_,) = simplified(order.format(f"({found})", hidden))
    assert len(filter_) == 2


def test_the_printed_conflict_example_of_the_paper_is_no_conflict() -> None:
    covered, disjoint = (RELATIONS["ehCoveredBy"], False), (RELATIONS["ehDisjoint"], False)
    assert not do_conflict(covered, disjoint, Relation.OVERLAPS)
    for base in (Relation.CONTAINS, Relation.COVERS, Relation.EQUALS):
        assert do_conflict(covered, disjoint, base)  # of B to A, so that A lies in B
    assert does_cover(
        (RELATIONS["disjoint"], False), (RELATIONS["ehInside"], False), Relation.DISJOINT
    )


LITERALS = (
    *("0", "1", "2.5", "TRUE", "FALSE", "'a'", "'soon'", "''", "DATE('2020-01-01')"),
    *("'2020-01-01'", "'2020-01-01T00:00:00Z'", "'2020-01-01T00:00:00+05:00'", EVENING),
)
VALUES = (
    *(None, 0, 1, 2, 2.5, float("nan"), True, False, "", "a", "b", "soon", [1]),
    *("2020-01-01", "2020-01-01T00:00:00Z", "2020-01-01T00:00:00+05:00", "2019-12-31T19:00:00Z"),
    *(date(2020, 1, 1), date(2019, 12, 31), datetime(2020, 1, 1, tzinfo=UTC)),
    *(datetime(2019, 12, 31, hour, tzinfo=UTC) for hour in (18, 19, 20)),
)


def test_no_answer_changes_for_any_two_comparisons_and_any_kind_of_value() -> None:
    texts = [f"x {name} {literal}" for name in COMPARED[:4] for literal in LITERALS]
    texts += [f"x IN ({a}, {b})" for a, b in combinations(LITERALS, 2)]
    texts += ["NOT " + text for text in texts[-len(LITERALS) :]] + ["x IS NULL", "x IS NOT NULL"]
    constraints = [f.constraints[0] for t in texts for f in make_predicate(read(t)).filters]
    holds_of = [
        {n for n, value in enumerate(VALUES) if is_satisfied(c, Event({"x": value}))}
        for c in constraints
    ]
    ((group, places),) = Implications(constraints).divide(range(len(constraints)))
    assert places == list(range(len(constraints)))
    for i, first in enumerate(constraints):
        for j, second in enumerate(constraints):
            pair = f"{constraint_text(first)}, {constraint_text(second)}"
            assert not group.covers[i, j] or holds_of[j] <= holds_of[i], pair
            assert not group.conflicts[i, j] or not holds_of[i] & holds_of[j], pair


def test_what_is_remembered_of_patterns_that_users_write_is_bounded() -> None:
    for remembered in (does_cover, do_conflict, matrices_of, base_relations):
        assert remembered.cache_info().maxsize is not None


def test_a_predicate_of_very_many_patterns_is_simplified_as_far_as_is_cheap() -> None:
    patterns = ["".join(letters) for letters in islice(product("TF*", repeat=9), 9_000, 9_100)]
    tests = [f"relate(g, {SMALL}, '{pattern}')" for pattern in patterns]
    predicate, removals = simplify(make_predicate(read(" OR ".join(tests))))
    assert removals
    assert len(predicate.filters) == len(patterns) - len(removals)


def test_what_follows_for_regions_need_not_follow_for_a_collection_with_a_region() -> None:
    contains, overlaps = (
        make_predicate(read(text))
        for text in (
            f"S_CONTAINS(g, {LARGE}) AND ehContains(g, {SMALL})",
            f"S_OVERLAPS(g, {SMALL}) AND NOT ehDisjoint(g, {LARGE})",
        )
    )
    assert simplify(contains) == (contains, ())
    assert simplify(overlaps) == (overlaps, ())
    region = shapely.box(0, 0, 1.5, 9)
    collection = shapely.GeometryCollection([region, shapely.Point(50, 50)])
    assert holds(overlaps, Event({"g": region}))
    assert not holds(overlaps, Event({"g": collection}))
    assert is_satisfied(overlaps.filters[0].constraints[0], Event({"g": collection}))


# Predicates of very many constraints. Each of these took the square of their number.


def conjunction(tests: Iterable[Any]) -> Predicate:
    return make_predicate(read({"op": "and", "args": list(tests)}))


def said(operator: str, name: str, value: Any) -> dict[str, Any]:
    return {"op": operator, "args": [{"property": name}, value]}


def small_box(i: int) -> dict[str, Any]:
    return shapely.geometry.mapping(shapely.box(3 * i, 0, 3 * i + 1, 1))


class CountedGroups:
    """How many pairs of constraints are looked at."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.pairs = 0

        class Counted(Group):
            def __init__(group, numbers: Any, *rest: Any) -> None:  # noqa: N805
                self.pairs += len(numbers) ** 2
                super().__init__(numbers, *rest)

        monkeypatch.setattr(implying, "Group", Counted)


MANY = 5_000


@pytest.mark.parametrize(
    "tests",
    [
        [said("<>", "x", i) for i in range(MANY)],
        [said("<>", f"x{i % 100}", i) for i in range(MANY)],
        [said("like", "x", f"a{i}%") for i in range(MANY)],
        [said("in", "x", [0, i + 1]) for i in range(MANY)],
        [{"op": "not", "args": [said("in", "x", [i, -i])]} for i in range(MANY)],
        [said("s_disjoint", "g", small_box(i)) for i in range(2_000)],
    ],
    ids=["differences", "attributes", "patterns", "lists", "negated lists", "regions"],
)
def test_only_so_many_pairs_of_constraints_are_looked_at(
    tests: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = CountedGroups(monkeypatch)
    simplify(conjunction(tests))
    assert counted.pairs <= SIMPLIFIER_PAIRS_MAX


@pytest.mark.parametrize("order", [1, -1])
def test_of_very_many_bounds_the_strictest_stays_without_a_look_at_pairs(
    order: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = CountedGroups(monkeypatch)
    tests = [said(">", "x", i) for i in range(MANY)] + [said("<=", "x", MANY + i) for i in (2, 1)]
    predicate, removals = simplify(conjunction(tests[::order]))
    (filter_,) = predicate.filters
    kept = {constraint_text(constraint) for constraint in filter_.constraints}
    assert kept == {f"x > {MANY - 1}", f"x <= {MANY + 1}"}
    assert len(removals) == MANY
    assert counted.pairs == 4


def test_bounds_of_each_kind_and_side_are_compared_among_themselves() -> None:
    text = "x > 1 AND x > 'a' AND x >= 3 AND x > 3 AND x > 3.0 AND x > 'b'"
    predicate, removals = simplify(make_predicate(read(text)))
    assert predicate.filters == ()
    said = {(removal.removed, removal.because) for removal in removals}
    assert {("x > 1", "x >= 3"), ("x >= 3", "x > 3"), ("x > 'a'", "x > 'b'")} < said
    assert ("x > 3.0", "x > 3") in said
    conflict = next(removal for removal in removals if removal.rule is Rule.CONFLICT)
    assert conflict.removed == text


def test_what_is_beyond_the_pairs_stays_and_small_groups_come_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(implying, "SIMPLIFIER_PAIRS_MAX", 104)
    text = " AND ".join([*(f"x <> {i}" for i in range(40)), "x > 100", "y = 1", "y > 0"])
    assert simplified(text) == [[*(f"x <> {i}" for i in range(40)), "x > 100", "y = 1"]]
    monkeypatch.undo()
    assert simplified(text) == [["x > 100", "y = 1"]]


def test_regions_of_very_many_vertices_are_left_as_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    disks = [shapely.Point(0, 0).buffer(radius, quad_segs=64) for radius in range(1, 21)]
    text = " AND ".join(f"S_DISJOINT(g, {disk.wkt})" for disk in disks)
    assert list(map(len, simplified(text))) == [1]
    monkeypatch.setattr(implying, "SIMPLIFIER_VERTICES_MAX", 5_000)
    assert 10 < len(simplified(text)[0]) < 20


def test_many_filters_of_many_constraints_are_simplified() -> None:
    filters = [
        {"op": "and", "args": [said(">", f"x{j}", i * j) for j in range(40)]} for i in range(50)
    ]
    predicate, removals = simplify(make_predicate(read({"op": "or", "args": filters})))
    assert len(predicate.filters) == 1
    assert len(removals) == 49


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
        st.sampled_from(COMPARED),
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
