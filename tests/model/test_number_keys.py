"""Keys of numbers: equal where numbers are, and not to be flooded."""

from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada import Matcher
from contrada.language import make_predicate, read
from contrada.language.array_tests import _key, compare_arrays
from contrada.language.normal_form import _NormalForm
from contrada.model.expression import Literal
from contrada.model.number_keys import number_key

PRIME = 2**61 - 1  # Python's hashes of numbers are remainders modulo this
FEW = 10  # multiples of it have 64 bits
FLOOD = [PRIME * i for i in range(1, 3_001)]
SOME = (
    *(
        0,
        -0.0,
        1,
        1.0,
        0.1,
        2**53 + 1,
        2**63,
        -(2**63) - 1,
        2**64 + 1,
        2.0**70,
        2**70,
        1e30,
        10**30,
    ),
    *(10**400, 10**5_000, float("inf"), float("-inf"), PRIME, -PRIME, 5e-324, 2**1023, 2**1024),
    *map(Decimal, ("0.1", "1", "1.0", "-0", "1e30", "10e29", "1e400", "1e5000", "Infinity", "0.5")),
    *map(Decimal, (2**53 + 1, 2**63, 2**64 + 1, 2**70, PRIME, 10**30, 0.1, 5e-324)),
    *map(Decimal, ("12.34", "12.340", "-1e-5000", "1e999999", "10e999998", "-1e-999999")),
)


def numbers() -> st.SearchStrategy[Any]:
    whole = st.integers() | st.integers(-4, 4).map(lambda i: 2**63 + i) | st.sampled_from(FLOOD)
    real = st.floats(allow_nan=False)
    decimals = st.decimals(allow_nan=False, places=3) | st.decimals(allow_nan=False)
    return st.one_of(whole, real, decimals, whole.map(Decimal), real.map(Decimal))


def count_hashes(values: Iterable[Any]) -> int:
    return len(set(map(hash, values)))


def check(a: Any, b: Any) -> None:
    first, second = number_key(a), number_key(b)
    assert (first == second) is (a == b)
    assert a != b or hash(first) == hash(second)


def test_keys_of_some_numbers_are_equal_just_where_the_numbers_are() -> None:
    for a, b in product(SOME, repeat=2):
        check(a, b)


@given(numbers(), numbers())
def test_keys_are_equal_just_where_numbers_are(a: Any, b: Any) -> None:
    check(a, b)


@given(numbers().filter(lambda a: abs(a) < 10**400))
def test_a_number_has_one_key_whatever_its_type(a: Any) -> None:
    check(a, Decimal(a))
    if Fraction(a).denominator == 1:
        check(a, int(a))


def test_integers_of_64_bits_and_doubles_are_their_own_keys() -> None:
    for number in (0, -(2**63), 2**63 - 1, 0.1, 1e300, float("inf")):
        assert number_key(number) is number


@pytest.mark.parametrize(
    "flood",
    [
        FLOOD,
        [-number for number in FLOOD],
        [number + 7 for number in FLOOD],
        [Decimal(number) for number in FLOOD],
        [Decimal(number).scaleb(-61) for number in FLOOD],
        [2 ** (61 * i) + 1 for i in range(2, 1_000)],
    ],
)
def test_numbers_that_collide_in_python_have_keys_that_do_not(flood: list[Any]) -> None:
    assert count_hashes(flood) < FEW
    assert count_hashes(map(number_key, flood)) > len(flood) - FEW


def test_literals_elements_of_arrays_and_predicates_with_such_numbers_do_not_collide() -> None:
    assert count_hashes(map(Literal, FLOOD)) > len(FLOOD) - FEW
    assert count_hashes(Literal((number, 1)) for number in FLOOD) > len(FLOOD) - FEW
    assert count_hashes(map(_key, FLOOD)) > len(FLOOD) - FEW
    constraints = make_predicate(read("x IN (" + ",".join(map(str, FLOOD)) + ")")).filters
    assert len(constraints[0].constraints[0].test.choices) == len(FLOOD)  # type: ignore[union-attr]


def test_filters_of_a_predicate_do_not_collide_either() -> None:
    """Filters are bits of numbers of constraints, and 2**n and 2**(n + 61) have the same hash."""
    first = " OR ".join(f"x{i}" for i in range(80))
    text = f"({first}) OR " + " AND ".join(f"(x{i} OR x{i + 61})" for i in range(8))
    found = _NormalForm(100_000).filters(read(text), is_negated=False)
    assert count_hashes(found.values()) < len(found) / 5
    assert count_hashes(found) > len(found) * 0.9


def test_arrays_of_such_numbers_are_compared() -> None:
    assert compare_arrays("a_equals", FLOOD, [Decimal(n) for n in FLOOD[::-1]]) is True
    assert compare_arrays("a_contains", FLOOD, [FLOOD[5], 1]) is False
    assert compare_arrays("a_equals", [2**70, 10**30], [2.0**70, Decimal("1e30")]) is True
    assert compare_arrays("a_overlaps", [1, 10**30], [True, 1e30]) is False


@pytest.mark.parametrize("engine", ["scan", "strtree", "crtree"])
def test_engines_compare_such_numbers_for_equality(engine: str) -> None:
    matcher = Matcher(engine)
    for number in FLOOD[:50]:
        matcher.add(f"={number}", f"x = {number}")
    matcher.add("<>", f"x <> {FLOOD[0]}")
    matcher.add("in", f"x IN ({FLOOD[0]}, {FLOOD[1]})")
    matcher.add("not in", f"NOT (x IN ({FLOOD[0]}, {2**70}))")
    for first in (FLOOD[0], Decimal(FLOOD[0])):
        assert sorted(matcher.match({"x": first})) == [f"={PRIME}", "in"]
    assert sorted(matcher.match({"x": 2.0**70})) == ["<>"]
    assert sorted(matcher.match({"x": Decimal("0.1")})) == ["<>", "not in"]
