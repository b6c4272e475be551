"""The disjunctive normal form: NOT pushed down, constants evaluated, and an end to growth."""

import pytest

from contrada.errors import InvalidInput
from contrada.language import constraint_text, make_predicate, read, to_text
from contrada.limits import FILTERS_MAX
from contrada.model.expression import Literal

SQUARE = "POLYGON((0 0, 4 0, 4 4, 0 4, 0 0))"


def normal_form(text: str) -> list[list[str]]:
    predicate = make_predicate(read(text))
    return [list(map(constraint_text, each.constraints)) for each in predicate.filters]


def choices(count: int, width: int = 2, inner: str = " OR ", outer: str = " AND ") -> str:
    """The AND of so many ORs, which has width to the power of count filters; or the converse."""
    return outer.join(
        "(" + inner.join(f"a{i} = {j}" for j in range(width)) + ")" for i in range(count)
    )


@pytest.mark.parametrize(
    ("text", "filters"),
    [
        ("a = 1", [["a = 1"]]),
        ("a = 1 AND b = 2", [["a = 1", "b = 2"]]),
        ("a = 1 OR b = 2", [["a = 1"], ["b = 2"]]),
        ("(p OR q) AND r", [["p", "r"], ["q", "r"]]),
        ("(p OR q) AND (r OR s)", [["p", "r"], ["p", "s"], ["q", "r"], ["q", "s"]]),
        ("p AND (q OR r AND (s OR t))", [["p", "q"], ["p", "r", "s"], ["p", "r", "t"]]),
        ("NOT (p AND q)", [["NOT p"], ["NOT q"]]),
        ("NOT (p OR q)", [["NOT p", "NOT q"]]),
        ("NOT (p AND NOT (q OR r))", [["NOT p"], ["q"], ["r"]]),
        ("NOT NOT p", [["p"]]),
        ("NOT NOT NOT p", [["NOT p"]]),
        ("NOT a = 1", [["a <> 1"]]),
        ("NOT a <> 1", [["a = 1"]]),
        ("NOT a < 1", [["a >= 1"]]),
        ("NOT a <= 1", [["a > 1"]]),
        ("NOT a > 1", [["a <= 1"]]),
        ("NOT a >= 1", [["a < 1"]]),
        ("a BETWEEN 1 AND 2", [["a >= 1", "a <= 2"]]),
        ("a NOT BETWEEN 1 AND 2", [["a < 1"], ["a > 2"]]),
        ("1 BETWEEN a AND 2", [["a <= 1"]]),
        ("3 BETWEEN a AND 2", []),
        ("a IN (1, 2)", [["a IN (1, 2)"]]),
        ("a NOT IN (1, 2)", [["NOT (a IN (1, 2))"]]),
        ("NOT a LIKE 'x%'", [["NOT (a LIKE 'x%')"]]),
        ("a IS NOT NULL", [["NOT (a IS NULL)"]]),
        (f"NOT S_WITHIN(g, {SQUARE})", [[f"NOT S_WITHIN(g, {SQUARE})"]]),
        (f"NOT S_DISJOINT(g, {SQUARE})", [[f"S_INTERSECTS(g, {SQUARE})"]]),
        (f"NOT S_INTERSECTS(g, {SQUARE})", [[f"S_DISJOINT(g, {SQUARE})"]]),
        ("NOT S_DISJOINT(g, h)", [["S_INTERSECTS(g, h)"]]),
        (f"NOT ehDisjoint(g, {SQUARE})", [[f"NOT ehDisjoint(g, {SQUARE})"]]),
        (f"S_WITHIN(g, {SQUARE}) = FALSE", [[f"NOT S_WITHIN(g, {SQUARE})"]]),
        (f"TRUE <> ehInside(g, {SQUARE})", [[f"NOT ehInside(g, {SQUARE})"]]),
        ("1 < a", [["a > 1"]]),
        ("p AND p", [["p"]]),
        ("p OR p", [["p"]]),
        ("(p OR q) AND (p OR q)", [["p"], ["p", "q"], ["q"]]),
    ],
)
def test_filters_of_a_predicate(text: str, filters: list[list[str]]) -> None:
    assert normal_form(text) == filters


@pytest.mark.parametrize(
    ("text", "filters"),
    [
        ("TRUE", [[]]),
        ("FALSE", []),
        ("NULL", []),
        ("NOT NULL", []),
        ("NOT FALSE", [[]]),
        ("1 < 2", [[]]),
        ("1 = 'x'", []),
        ("NOT 1 = 'x'", []),
        ("p AND 1 < 2", [["p"]]),
        ("p AND 1 > 2", []),
        ("p OR 1 < 2", [["p"], []]),
        ("p OR 1 > 2", [["p"]]),
        ("a > 1 + 2 * 3", [["a > 7"]]),
        ("1 + 2 < a", [["a > 3"]]),
        ("a = CASEI('ÄX')", [["a = 'äx'"]]),
        ("a IN (1 + 1, 2, 4)", [["a IN (2, 4)"]]),
        ("a LIKE ACCENTI('é%')", [["a LIKE 'e%'"]]),
        ("a > 1 / 0", [["a > NULL"]]),
        ("a > 1e308 * 10", [["a > NULL"]]),
        (f"S_INTERSECTS(POINT(1 1), {SQUARE})", [[]]),
        (f"S_DISJOINT(POINT(1 1), {SQUARE})", []),
        (f"NOT ehDisjoint({SQUARE}, {SQUARE})", [[]]),
        (f"relate(POINT(1 1), {SQUARE}, 'T********') = FALSE", []),
        ("dwithin(POINT(0 0), POINT(0 1), 111000)", [[]]),
        ("dwithin(POINT(0 0), POINT(0 1), 110000)", []),
        ("dwithin(g, POINT(0 0), 2 * 50)", [["dwithin(g, POINT(0 0), 100)"]]),
        ("T_BEFORE(DATE('2021-01-01'), DATE('2021-01-02'))", [[]]),
        ("A_CONTAINS((1, 2), (CASEI('x'), 1))", []),
        ("A_CONTAINS((1, 'x'), (CASEI('X'), 1))", [[]]),
        ("NULL IS NULL", [[]]),
        ("POINT(1 1) IS NULL", []),
    ],
)
def test_what_reads_no_attribute_is_evaluated_at_once(text: str, filters: list[list[str]]) -> None:
    assert normal_form(text) == filters


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(a > 1) = (2 > 1)", "a > 1"),
        ("(a > 1) <> (2 > 1)", "NOT (a > 1)"),
        ("(a > 1) = (2 + 3)", "NULL"),
        ("NOT ((a > 1) = (2 + 3))", "NULL"),
        ("p AND ((q AND r) = (2 > 1)) AND s", "p AND q AND r AND s"),
        ("p OR ((q OR r) <> (2 < 1)) OR s", "p OR q OR r OR s"),
    ],
)
def test_a_test_compared_with_a_constant_is_read_as_if_that_were_written(
    text: str, expected: str
) -> None:
    folded = make_predicate(read(text)).expression
    assert folded == make_predicate(read(expected)).expression
    assert make_predicate(read(to_text(folded))).expression == folded


def test_a_constant_predicate_is_its_truth() -> None:
    assert make_predicate(read("1 < 2 AND NOT 'a' = 'b'")).expression == Literal(True)
    assert make_predicate(read("1 = NULL")).expression == Literal(None)


# The end to growth


def test_a_predicate_may_have_as_many_filters_as_allowed() -> None:
    assert FILTERS_MAX == 1024
    assert len(make_predicate(read(choices(10))).filters) == 1024
    many = " OR ".join(f"a = {i}" for i in range(1024))
    assert len(make_predicate(read(many)).filters) == 1024


@pytest.mark.parametrize(
    "text", [f"({choices(10)}) OR b = 1", " OR ".join(f"a = {i}" for i in range(1025))]
)
def test_one_more_is_refused_with_the_number(text: str) -> None:
    with pytest.raises(InvalidInput, match="more than 1024 filters in disjunctive normal form"):
        make_predicate(read(text))


def test_the_number_can_be_chosen() -> None:
    assert len(make_predicate(read(choices(3)), filters_max=8).filters) == 8
    with pytest.raises(InvalidInput, match="more than 7 filters"):
        make_predicate(read(choices(3)), filters_max=7)
    assert len(make_predicate(read(choices(11)), filters_max=2048).filters) == 2048


def test_repeats_do_not_count() -> None:
    same = " AND ".join(["(p OR q)"] * 40)
    assert len(make_predicate(read(same)).filters) == 3


@pytest.mark.parametrize(
    "text",
    [
        choices(80),
        choices(2, width=1000),
        f"NOT ({choices(80, inner=' AND ', outer=' OR ')})",
        " AND ".join(f"a{i} NOT BETWEEN 1 AND 2" for i in range(200)),
    ],
)
def test_growth_ends_as_soon_as_it_is_too_much(text: str) -> None:
    """A product of all filters would take longer than the test suite may."""
    with pytest.raises(InvalidInput, match="more than 1024 filters"):
        make_predicate(read(text))
