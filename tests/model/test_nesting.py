"""Nested values: their depth, and how many they would be."""

from typing import Any

import numpy as np
import pytest

from contrada.limits import SHARED_VALUES_MAX
from contrada.model.nesting import NestedTooDeep, check_nesting, is_container


@pytest.mark.parametrize(
    ("value", "depth"),
    [
        (5, 0),
        ("a text", 0),
        (b"bytes", 0),
        (np.float64(1), 0),
        (None, 0),
        ([], 1),
        ((1, 2), 1),
        ({1, 2}, 1),
        ({"a": 1}, 1),
        (np.zeros((2, 2)), 1),
        ([1, [2, {"a": (3,)}], {}], 4),
        (np.array([[1], [2, [3]]], object), 3),
        ({"a": 1}.values(), 1),
    ],
)
def test_the_depth_is_that_of_the_innermost_container(value: Any, depth: int) -> None:
    assert is_container(value) == (depth > 0)
    check_nesting(value, depth)
    if depth:
        with pytest.raises(NestedTooDeep, match=f"deeper than {depth - 1} levels"):
            check_nesting(value, depth - 1)


def test_many_values_are_no_fault_as_long_as_they_are_there() -> None:
    check_nesting([[1, 2] for _ in range(SHARED_VALUES_MAX)], 2)


def test_a_value_may_stand_in_many_places_if_these_are_many_themselves() -> None:
    check_nesting([[1, 2, 3]] * SHARED_VALUES_MAX, 2)
    row = list(range(100))
    check_nesting([row] * (SHARED_VALUES_MAX // 100), 2)


def test_few_values_in_very_many_places_are_refused() -> None:
    row = list(range(100))
    with pytest.raises(ValueError, match="SHARED_VALUES_MAX"):
        check_nesting([row] * (SHARED_VALUES_MAX // 100 + 1), 2)
