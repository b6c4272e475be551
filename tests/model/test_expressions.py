"""The tree of a predicate: which attributes it reads, and when two of its nodes are equal."""

import shapely

from contrada.language import make_predicate, read
from contrada.model.expression import Literal, attributes, children, geometry_attributes
from contrada.model.subscription import Constraint, Filter, Predicate

EVERYTHING = """
    (a = b OR NOT c BETWEEN d AND e) AND f IN (g, 1) AND h LIKE i AND j IS NULL
    AND S_WITHIN(k, l) AND dwithin(m, POINT(0 0), n) AND T_AFTER(INTERVAL(o, p), q)
    AND A_OVERLAPS(r, (s, 1)) AND CASEI(t) = 'x' AND u + v > 1 AND w
"""


def test_all_attributes_are_found() -> None:
    expression = read(EVERYTHING)
    assert "".join(attributes(expression)) == "abcdefghijklmnopqrstuvw"
    assert list(geometry_attributes(expression)) == ["k", "l", "m"]


def test_a_predicate_names_its_attributes_once() -> None:
    predicate = make_predicate(read("b = 1 AND (a = 2 OR b = 3) AND S_WITHIN(g, g)"))
    assert predicate.attributes() == ("b", "a", "g")
    assert predicate.geometry_attributes() == ("g",)
    assert predicate.filters[0].constraints[1].attributes() == ("a",)


def test_a_leaf_has_no_children() -> None:
    assert children(Literal(1)) == ()
    assert [children(child) for child in children(read("a = 1"))] == [(), ()]


def test_equal_trees_are_equal_and_have_one_hash() -> None:
    first, second = read(EVERYTHING), read(" ".join(EVERYTHING.split()))
    assert first == second
    assert hash(first) == hash(second)
    assert first != read("NOT w")


def test_geometries_are_equal_by_their_coordinates() -> None:
    ring = "POLYGON((0 0,1 0,1 1,0 0))"
    assert read(f"S_WITHIN(g, {ring})") == read(f"S_WITHIN(g, {ring.lower()})")
    assert Literal(shapely.box(0, 0, 1, 1)) != Literal(
        shapely.box(0, 0, 1, 1).normalize().reverse()
    )
    assert len({Literal(shapely.Point(1, 2)), Literal(shapely.Point(1, 2))}) == 1


def test_literals_of_different_types_are_never_equal() -> None:
    values = (1, 1.0, True, "1", None, (1,), (1.0,), (True,), ((1,),), ())
    assert len({Literal(value) for value in values}) == len(values)


def test_a_constraint_of_another_type_is_another_constraint() -> None:
    predicate = make_predicate(read("A_EQUALS(a, (1, 2)) OR A_EQUALS(a, (TRUE, 2))"))
    assert len(predicate.filters) == 2


def test_a_filter_without_constraints_is_not_a_predicate_without_filters() -> None:
    always, never = make_predicate(read("TRUE")), make_predicate(read("FALSE"))
    assert always == Predicate(Literal(True), (Filter(()),))
    assert never == Predicate(Literal(False), ())
    assert make_predicate(read("a")).filters[0].constraints[0] == Constraint(read("a"))
