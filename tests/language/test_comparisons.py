"""Comparison, BETWEEN, IN and IS NULL: values that fit, and all those that do not."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
import shapely

from contrada.errors import InvalidInput
from contrada.language import read, to_text, truth
from contrada.model.event import Event

NAN = float("nan")
ABSENT = object()
EMPTY = shapely.Point()
COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
NEVER_COMPARED = (ABSENT, None, NAN, EMPTY, shapely.Point(1, 1), b"1", [1], {"a": 1}, object())


def truth_of(text: str, value: Any = ABSENT, **attributes: Any) -> bool | None:
    present = attributes if value is ABSENT else {"a": value, **attributes}
    return truth(read(text), Event(present))


def opposite(value: bool | None) -> bool | None:
    return None if value is None else not value


# Comparison


@pytest.mark.parametrize(
    ("literal", "less", "equal", "greater"),
    [
        ("5", 4, 5, 6),
        ("5", 4.9, 5.0, 5.1),
        ("5", Decimal("4.99"), Decimal(5), Decimal("5.01")),
        ("5", np.int8(4), np.float32(5), np.uint64(6)),
        ("2.5", 2, 2.5, 3),
        ("-0.0", -1, 0, 5e-324),
        ("1e300", -np.inf, 10.0**300, np.inf),
        ("'m'", "M", "m", "n"),
        ("'m'", "", "m", "ma"),
        ("'é'", "z", "é", "\U0001f600"),
        ("'10'", "1", "10", "9"),
        ("DATE('2021-03-04')", date(2021, 3, 3), date(2021, 3, 4), date(2021, 3, 5)),
        ("DATE('2021-03-04')", "2021-03-03T23:59:59Z", "2021-03-04", "2021-03-04T00:00:00.1"),
        (
            "TIMESTAMP('2021-03-04T05:06:07Z')",
            datetime(2021, 3, 4, 5, 6, 6, 999999, UTC),
            datetime(2021, 3, 4, 5, 6, 7, tzinfo=UTC),
            np.datetime64("2021-03-04T05:06:07.000000001"),
        ),
    ],
)
@pytest.mark.parametrize(
    ("operator", "expected"),
    [
        ("=", (False, True, False)),
        ("<>", (True, False, True)),
        ("<", (True, False, False)),
        ("<=", (True, True, False)),
        (">", (False, False, True)),
        (">=", (False, True, True)),
    ],
)
def test_values_of_one_type_are_ordered(
    operator: str, expected: tuple[bool, ...], literal: str, less: Any, equal: Any, greater: Any
) -> None:
    text = f"a {operator} {literal}"
    assert tuple(truth_of(text, value) for value in (less, equal, greater)) == expected
    negated = tuple(truth_of(f"NOT ({text})", value) for value in (less, equal, greater))
    assert negated == tuple(not value for value in expected)


@pytest.mark.parametrize("operator", COMPARISONS)
@pytest.mark.parametrize(
    ("literal", "values"),
    [
        ("1", ("1", True, False, date(2021, 1, 1), *NEVER_COMPARED)),
        ("'1'", (1, 1.0, True, *NEVER_COMPARED)),
        ("TRUE", (1, 1.0, "true", *NEVER_COMPARED)),
        ("DATE('2021-01-01')", (2021, 1609459200, "yesterday", "2021", True, *NEVER_COMPARED)),
        ("NULL", (1, "1", True, date(2021, 1, 1), *NEVER_COMPARED)),
    ],
)
def test_values_of_another_type_are_unknown(
    operator: str, literal: str, values: tuple[Any, ...]
) -> None:
    for value in values:
        assert truth_of(f"a {operator} {literal}", value) is None, value
        assert truth_of(f"NOT a {operator} {literal}", value) is None, value


@pytest.mark.parametrize("operator", ["<", "<=", ">", ">="])
def test_truth_values_have_no_order(operator: str) -> None:
    assert truth_of(f"a {operator} TRUE", False) is None
    assert truth_of(f"a {operator} b", True, b=False) is None


def test_truth_values_are_equal_or_not() -> None:
    assert truth_of("a = TRUE", True) is True
    assert truth_of("a = TRUE", np.False_) is False
    assert truth_of("a <> b", True, b=False) is True


@pytest.mark.parametrize(
    ("operator", "mirrored"),
    [("=", "="), ("<>", "<>"), ("<", ">"), ("<=", ">="), (">", "<"), (">=", "<=")],
)
@pytest.mark.parametrize("value", [1, 2, 3, None, "2"])
def test_a_literal_may_come_first(operator: str, mirrored: str, value: Any) -> None:
    assert truth_of(f"2 {operator} a", value) is truth_of(f"a {mirrored} 2", value)


def test_two_attributes_may_be_compared() -> None:
    assert truth_of("a < b", 1, b=2) is True
    assert truth_of("a < b", 2, b=2) is False
    assert truth_of("a < b", 2) is None
    assert truth_of("a < b", 2, b="3") is None
    assert truth_of("a = b", "x", b="x") is True
    assert truth_of("a = b", date(2021, 1, 1), b=datetime(2021, 1, 1, tzinfo=UTC)) is True


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 < 2", True),
        ("'a' = 'b'", False),
        ("1 = '1'", None),
        ("NULL = NULL", None),
        ("DATE('2021-01-01') < TIMESTAMP('2021-01-01T00:00:01Z')", True),
        ("DATE('2021-01-01') = '2021-01-01'", True),
    ],
)
def test_two_literals_may_be_compared(text: str, expected: bool | None) -> None:
    assert truth_of(text) is expected


def test_a_wrong_comparison_operator_is_written_two_ways() -> None:
    assert read("a != 1") == read("a <> 1")


# BETWEEN


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, False),
        (1, True),
        (1.5, True),
        (2, True),
        (2.5, False),
        (np.inf, False),
        *((value, None) for value in ("1", True, *NEVER_COMPARED)),
    ],
)
def test_between_has_both_ends(value: Any, expected: bool | None) -> None:
    assert truth_of("a BETWEEN 1 AND 2", value) is expected
    assert truth_of("a NOT BETWEEN 1 AND 2", value) is opposite(expected)


@pytest.mark.parametrize(
    ("value", "low", "high", "expected"),
    [
        (1, 0, 2, True),
        (1, 2, 0, False),
        (1, 0, None, None),
        (1, 2, None, False),  # it is below the low end, wherever the high end is
        (1, None, 0, False),
        (1, None, 2, None),
        (1, "0", 2, None),
        (NAN, 0, 2, None),
        ("b", "a", "c", True),
        ("b", "a", 2, None),
        ("0", "a", 2, False),
        (date(2021, 1, 2), date(2021, 1, 1), "2021-01-03", True),
    ],
)
def test_between_is_the_and_of_two_comparisons(
    value: Any, low: Any, high: Any, expected: bool | None
) -> None:
    attributes = {"low": low, "high": high}
    assert truth_of("a BETWEEN low AND high", value, **attributes) is expected
    assert truth_of("a >= low AND a <= high", value, **attributes) is expected


# IN


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("a IN (1, 2)", 2, True),
        ("a IN (1, 2)", 2.0, True),
        ("a IN (1, 2)", 3, False),
        ("a IN (1, 2)", "1", None),
        ("a IN (1, 2)", True, None),
        ("a IN (1, 2)", NAN, None),
        ("a IN (1, 2)", None, None),
        ("a IN (1, 2)", ABSENT, None),
        ("a IN (1, 2)", EMPTY, None),
        ("a IN (1, 'x')", 1, True),
        ("a IN (1, 'x')", "x", True),
        ("a IN (1, 'x')", 2, None),  # it is not 1, and to compare it with 'x' is unknown
        ("a IN (1, NULL)", 1, True),
        ("a IN (1, NULL)", 2, None),
        ("a IN ()", 1, False),
        ("a IN ( )", ABSENT, False),
        ("a IN (())", 1, False),
        ("a IN (1, ())", 1, True),
        ("a IN ('x')", "x", True),
        ("a IN ('x')", "y", False),
        ("a IN (TRUE, FALSE)", False, True),
        ("a IN (TRUE, FALSE)", 0, None),
        ("a IN (DATE('2021-01-01'))", date(2021, 1, 1), True),
        ("a IN (DATE('2021-01-01'))", "2021-01-02", False),
        ("1 IN (2, a)", 1, True),
        ("1 IN (2, a)", 3, False),
        ("1 IN (2, a)", ABSENT, None),
        ("(a + 1) IN (2, 3)", 1, True),
        ("2 IN (1, 2)", ABSENT, True),
    ],
)
def test_in_is_the_or_of_equalities(text: str, value: Any, expected: bool | None) -> None:
    assert truth_of(text, value) is expected
    assert truth_of(f"NOT ({text})", value) is opposite(expected)
    assert truth_of(text.replace(" IN ", " NOT IN "), value) is opposite(expected)


@pytest.mark.parametrize("value", [1, None, "x"])
def test_nothing_is_in_an_empty_list(value: Any) -> None:
    nothing = read({"op": "in", "args": [{"property": "a"}, []]})
    assert truth(nothing, Event({"a": value})) is False


# IS NULL


@pytest.mark.parametrize("value", [ABSENT, None])
def test_absent_and_null_are_null(value: Any) -> None:
    assert truth_of("a IS NULL", value) is True
    assert truth_of("a IS NOT NULL", value) is False


@pytest.mark.parametrize("value", [0, "", False, NAN, EMPTY, [], {}, np.float64("nan"), "POINT("])
def test_everything_else_is_not_null(value: Any) -> None:
    assert truth_of("a IS NULL", value) is False
    assert truth_of("a IS NOT NULL", value) is True


@pytest.mark.parametrize(
    ("text", "with_a", "without_a"),
    [
        ("(a + 1) IS NULL", False, True),
        ("CASEI(a) IS NULL", False, True),
        ("INTERVAL(a, '..') IS NULL", False, True),
        ("(a = 1) IS NULL", False, True),
        ("(a IS NULL) IS NULL", False, False),
        ("(b AND a = 1) IS NULL", True, True),
        ("(b OR a = 1) IS NULL", False, True),
        ("NULL IS NULL", True, True),
        ("1 IS NULL", False, False),
        ("POINT(1 2) IS NULL", False, False),
        ("S_INTERSECTS(a, POINT(1 2)) IS NULL", True, True),
    ],
)
def test_a_computed_value_is_null_where_something_in_it_is(
    text: str, with_a: bool, without_a: bool
) -> None:
    assert truth_of(text, 1) is with_a
    assert truth_of(text) is without_a


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("3 < x < 5", 6),
        ("a = b = c", 6),
        ("(a + 1 <= b) AND 3 <= x + (2 * y) <> 5", 34),
        ("A_CONTAINS(a, (1, 2 = 2 = 3))", 24),
        ("NOT a >= b >= c", 11),
        ("n = 1 IN (2)", 6),
        ("n < 1 IS NULL", 6),
        ("n IN (1) IN (2)", 9),
        ("n IS NULL = TRUE", 10),
        ("n BETWEEN 1 AND 2 = TRUE", 18),
        ("n LIKE 'a' LIKE 'b'", 11),
    ],
)
def test_a_test_of_a_test_is_refused_with_its_place(text: str, position: int) -> None:
    with pytest.raises(InvalidInput) as caught:
        read(text)
    assert str(caught.value) == (
        f'a comparison cannot be chained at character {position}, near "{text[position:][:24]}"; '
        "for a < b < c write a < b AND b < c, or put the inner comparison in parentheses"
    )


@pytest.mark.parametrize(
    "text",
    ["a <= b AND b <= c", "(a = b) = c", "a BETWEEN 1 AND 2 OR b <> 3", "a = '<' AND b = '='"],
)
def test_comparisons_side_by_side_are_no_chain(text: str) -> None:
    assert read(to_text(read(text))) == read(text)
