"""AND, OR and NOT of three values, and where a value stands for a test."""

from typing import Any

import pytest

from contrada.language import read, truth
from contrada.model.event import Event

ABSENT = object()
UNKNOWN = (ABSENT, None, 1, 0, "true", float("nan"), [True])  # no truth values, so unknown


def truth_of(text: str, **attributes: Any) -> bool | None:
    present = {name: value for name, value in attributes.items() if value is not ABSENT}
    return truth(read(text), Event(present))


@pytest.mark.parametrize(
    ("a", "b", "both", "either"),
    [
        (True, True, True, True),
        (True, False, False, True),
        (True, None, None, True),
        (False, True, False, True),
        (False, False, False, False),
        (False, None, False, None),
        (None, True, None, True),
        (None, False, False, None),
        (None, None, None, None),
    ],
)
def test_and_and_or_of_three_values(
    a: bool | None, b: bool | None, both: bool | None, either: bool | None
) -> None:
    assert truth_of("a AND b", a=a, b=b) is both
    assert truth_of("a OR b", a=a, b=b) is either


@pytest.mark.parametrize(("a", "opposite"), [(True, False), (False, True), (None, None)])
def test_not_of_three_values(a: bool | None, opposite: bool | None) -> None:
    assert truth_of("NOT a", a=a) is opposite
    assert truth_of("NOT NOT a", a=a) is a


@pytest.mark.parametrize("value", UNKNOWN)
def test_an_attribute_that_is_no_truth_value_is_unknown(value: Any) -> None:
    assert truth_of("a", a=value) is None
    assert truth_of("NOT a", a=value) is None
    assert truth_of("a AND TRUE", a=value) is None
    assert truth_of("a AND FALSE", a=value) is False
    assert truth_of("a OR TRUE", a=value) is True


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("TRUE", True),
        ("FALSE", False),
        ("NULL", None),
        ("NOT NULL", None),
        ("TRUE AND FALSE OR TRUE", True),
        ("TRUE OR TRUE AND FALSE", True),
        ("(TRUE OR TRUE) AND FALSE", False),
        ("NOT FALSE AND FALSE", False),
        ("NOT (FALSE AND FALSE)", True),
        ("NOT TRUE OR TRUE", True),
    ],
)
def test_and_binds_before_or_and_not_before_both(text: str, expected: bool | None) -> None:
    assert truth_of(text) is expected


def test_more_than_two_are_joined_at_once() -> None:
    text = "a AND b AND c AND d"
    assert truth_of(text, a=True, b=True, c=True, d=True) is True
    assert truth_of(text, a=True, b=None, c=True, d=True) is None
    assert truth_of(text, a=True, b=None, c=True, d=False) is False


@pytest.mark.parametrize("truth_value", [True, False, None])
@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("a = TRUE", "a"),
        ("a = FALSE", "NOT a"),
        ("a <> TRUE", "NOT a"),
        ("a <> FALSE", "a"),
        ("TRUE = a", "a"),
        ("FALSE <> a", "a"),
        ("(a AND TRUE) = TRUE", "a"),
        ("(a AND TRUE) = FALSE", "NOT a"),
        ("TRUE = (NOT a)", "NOT a"),
        ("(NOT a) <> TRUE", "a"),
        ("(a OR FALSE) <> FALSE", "a"),
    ],
)
def test_a_test_compared_with_a_truth_value_is_itself_or_its_negation(
    text: str, meaning: str, truth_value: bool | None
) -> None:
    assert truth_of(text, a=truth_value) is truth_of(meaning, a=truth_value)


@pytest.mark.parametrize(
    "text", ["(a = 1) = NULL", "(a = 1) = 1", "(a = 1) <> 'x'", "(a = 1) < TRUE", "NULL = (a = 1)"]
)
def test_a_test_compared_with_anything_else_is_unknown(text: str) -> None:
    assert truth_of(text, a=1) is None
    assert truth_of(text, a=2) is None


def test_two_tests_may_be_compared() -> None:
    assert truth_of("(a > 1) = (b > 1)", a=2, b=2) is True
    assert truth_of("(a > 1) = (b > 1)", a=2, b=0) is False
    assert truth_of("(a > 1) = (b > 1)", a=2) is None
