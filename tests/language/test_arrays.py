"""The four A_ operators: arrays compared as sets."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from contrada.language import array_tests, read, to_json, to_text, truth
from contrada.language.array_tests import compare_arrays
from contrada.model.event import Event
from contrada.model.expression import ArrayTest, Literal

ABSENT = object()
NO_ARRAYS = (ABSENT, None, 5, "ab", True, {1, 2}, {"a": 1}, shapely.Point(), np.array(5), object())
OPERATORS = ("A_EQUALS", "A_CONTAINS", "A_CONTAINEDBY", "A_OVERLAPS")


def truth_of(text: str, value: Any = ABSENT, **attributes: Any) -> bool | None:
    present = attributes if value is ABSENT else {"a": value, **attributes}
    return truth(read(text), Event(present))


@pytest.mark.parametrize(
    ("value", "literal", "equals", "contains", "contained", "overlaps"),
    [
        ([1, 2], "(1, 2)", True, True, True, True),
        ([2, 1, 1], "(1, 2)", True, True, True, True),
        ((1, 2), "(1, 2)", True, True, True, True),
        (np.array([2, 1]), "(1, 2)", True, True, True, True),
        ([1.0, 2], "(1, 2.0)", True, True, True, True),
        ([1, 2, 3], "(1, 2)", False, True, False, True),
        ([1], "(1, 2)", False, False, True, True),
        ([2, 3], "(1, 2)", False, False, False, True),
        ([3, 4], "(1, 2)", False, False, False, False),
        ([], "(1, 2)", False, False, True, False),
        (["x", "y"], "('x', 'y')", True, True, True, True),
        (["x", 1], "(1, 'x')", True, True, True, True),
        (["1", "2"], "(1, 2)", False, False, False, False),
        ([True, False], "(1, 0)", False, False, False, False),
        ([True], "(TRUE, FALSE)", False, False, True, True),
        ([[1, 2], [3]], "((2, 1), (3, 3))", True, True, True, True),
        ([[1, 2]], "((1, 2), (3, 4))", False, False, True, True),
        (["2021-01-01"], "(DATE('2021-01-01'), DATE('2022-01-01'))", False, False, True, True),
        (
            np.array(["2021-01-01"], "datetime64[ns]"),
            "(DATE('2021-01-01'), DATE('2022-01-01'))",
            *(False, False, True, True),
        ),
        # Null and NaN are unknown elements: they may be what is missing, or not.
        ([1, None], "(1, 2)", None, None, None, True),
        ([1, 2, None], "(1, 2)", None, True, None, True),
        ([None], "(1, 2)", None, None, None, None),
        ([3, None], "(1, 2)", False, None, False, None),
        ([1, float("nan")], "(1, 2)", None, None, None, True),
        ([1], "(1, NULL)", None, None, True, True),
        ([2], "(1, NULL)", False, False, None, None),
    ],
)
def test_arrays_are_compared_as_sets(
    value: Any,
    literal: str,
    equals: bool | None,
    contains: bool | None,
    contained: bool | None,
    overlaps: bool | None,
) -> None:
    for operator, expected in zip(OPERATORS, (equals, contains, contained, overlaps), strict=True):
        assert truth_of(f"{operator}(a, {literal})", value) is expected, operator
        negated = None if expected is None else not expected
        assert truth_of(f"NOT {operator}(a, {literal})", value) is negated, operator
        assert truth_of(f"{operator}(a, b)", value, b=truth_literal(literal)) is expected, operator
    assert truth_of(f"A_CONTAINS({literal}, a)", value) is contained
    assert truth_of(f"A_CONTAINEDBY({literal}, a)", value) is contains
    assert truth_of(f"A_OVERLAPS({literal}, a)", value) is overlaps
    assert truth_of(f"A_EQUALS({literal}, a)", value) is equals


def truth_literal(text: str) -> Any:
    """The array that a literal stands for, as an event would bring it."""
    test = read(f"A_EQUALS(a, {text})")
    assert isinstance(test, ArrayTest)
    assert isinstance(test.right, Literal)
    return test.right.value


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("value", NO_ARRAYS)
def test_what_is_no_array_is_unknown(operator: str, value: Any) -> None:
    assert truth_of(f"{operator}(a, (1, 2))", value) is None
    assert truth_of(f"NOT {operator}(a, (1, 2))", value) is None
    assert truth_of(f"{operator}((1, 2), a)", value) is None
    assert truth_of(f"{operator}(a, b)", value, b=[1]) is None


def test_an_array_of_one_element_is_an_array() -> None:
    assert truth_of("A_CONTAINS(tags, ('urgent'))", tags=["urgent", "new"]) is True
    assert truth_of("A_CONTAINS(tags, ('urgent'))", tags=["new"]) is False
    assert truth_of("A_EQUALS((5), a)", [5]) is True
    assert truth_of("A_CONTAINS(a, (CASEI('X')))", ["x"]) is True
    assert truth_of("A_CONTAINS(a, ((1, 2)))", [1, 2, 3]) is True
    assert truth_of("A_CONTAINS(a, (b))", ["x", "y"], b="x") is True
    assert truth_of("A_OVERLAPS( ( b ) ,a)", ["y"], b="x") is False
    assert truth_of("A_CONTAINS(a, b)", ["x", "y"], b=["x"]) is True
    assert truth_of("A_CONTAINS(tags, 'urgent')", tags=["urgent", "new"]) is True
    assert truth_of("A_CONTAINEDBY(a, 5)", [5]) is True
    assert truth_of("A_CONTAINEDBY(a, (NULL))", []) is True
    assert truth_of("A_EQUALS(a, (null)) AND (p)", [1], p=True) is None


@pytest.mark.parametrize("empty", ["()", "( )", "(())", "((((((\n))))))"])
def test_an_array_may_be_empty(empty: str) -> None:
    assert truth_of(f"A_CONTAINS(a, {empty})", [1]) is True
    assert truth_of(f"A_EQUALS({empty}, a)", [1]) is False
    assert truth_of(f"NOT A_CONTAINEDBY(a,{empty}) AND (((x > 1)))", [1], x=2) is True
    assert truth_of(f"A_EQUALS(a, ({empty}, 1))", [1, []]) is True
    assert to_text(read(f"A_OVERLAPS(a, {empty})")) == "A_OVERLAPS(a, ())"


def test_a_null_is_judged_for_each_element_by_itself() -> None:
    assert truth_of("A_CONTAINS(a, (3, 4))", [1, None]) is None
    assert truth_of("NOT A_CONTAINS(a, (1, 3, 2.5))", [True, None, 1.0]) is None


def test_an_array_may_hold_attributes_and_computed_values() -> None:
    assert truth_of("A_CONTAINS(a, (b, 2 * c))", [1, 6], b=1, c=3) is True
    assert truth_of("A_CONTAINS(a, (b, 2 * c))", [1, 7], b=1, c=3) is False
    assert truth_of("A_CONTAINS(a, (b, 2 * c))", [1, 6], b=1) is None
    assert truth_of("A_CONTAINS((b, c), a)", [1], b=1, c=2) is True


@pytest.mark.parametrize(
    ("operator", "value", "expected"),
    [
        ("a_equals", [], True),
        ("a_equals", [1], False),
        ("a_contains", [1], True),
        ("a_containedBy", [1], False),
        ("a_containedBy", [], True),
        ("a_overlaps", [1], False),
        ("a_overlaps", None, None),
    ],
)
def test_an_array_may_be_empty_in_json(operator: str, value: Any, expected: bool | None) -> None:
    test = read({"op": operator, "args": [{"property": "a"}, []]})
    assert truth(test, Event({"a": value})) is expected


@pytest.mark.parametrize("elements", [[{"property": "x"}], [None], [1], ["x"], [[1]], [[1], [[2]]]])
def test_an_array_of_one_element_survives_the_text(elements: list[Any]) -> None:
    test = read({"op": "a_equals", "args": [{"property": "a"}, elements]})
    assert read(to_text(test)) == test
    assert to_json(test)["args"][1] == elements


@given(st.lists(st.integers(0, 4), max_size=4), st.lists(st.integers(0, 4), max_size=4))
def test_arrays_of_integers_are_sets(a: list[int], b: list[int]) -> None:
    left, right = set(a), set(b)
    assert truth_of("A_EQUALS(a, b)", a, b=b) is (left == right)
    assert truth_of("A_CONTAINS(a, b)", a, b=b) is (left >= right)
    assert truth_of("A_CONTAINEDBY(a, b)", np.array(a, int), b=tuple(b)) is (left <= right)
    assert truth_of("A_OVERLAPS(a, b)", a, b=b) is bool(left & right)


NANS = (None, float("nan"), Decimal("NaN"), Decimal("sNaN"), np.datetime64("NaT"))


@pytest.mark.parametrize("missing", [*NANS, np.timedelta64("NaT")])
def test_what_is_missing_in_an_array_is_unknown_of_whatever_type(missing: Any) -> None:
    assert truth_of("A_CONTAINS(a, (3))", [1, missing]) is None
    assert truth_of("A_EQUALS(a, (1, 3))", [1, missing]) is None
    assert truth_of("A_OVERLAPS(a, (3))", [[missing], missing]) is None
    assert truth_of("A_EQUALS(a, ())", [missing]) is False


@pytest.mark.parametrize("name", ["a_equals", "a_contains", "a_containedBy", "a_overlaps"])
def test_long_arrays_in_arrays_are_compared_up_to_a_number_of_elements(name: str) -> None:
    """Arrays are few, but each with each would be ninety million elements."""
    one = [[None, *(1_000 * i + j for j in range(1_000))] for i in range(300)]
    other = [[None, *(1_000 * i + j + 0.5 for j in range(1_000))] for i in range(300)]
    assert compare_arrays(name, one, other) is None


def test_texts_that_may_be_moments_count_for_more(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [[f"2026-01-01T00:00:{i:02}Z"] for i in range(20)]
    moments = [[datetime(2026, 1, 1, 0, 0, i, tzinfo=UTC)] for i in range(20)]
    assert compare_arrays("a_equals", texts, moments) is True
    monkeypatch.setattr(array_tests, "ARRAY_ELEMENTS_MAX", 400)
    assert compare_arrays("a_equals", texts, moments) is None
