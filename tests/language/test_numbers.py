"""Numbers: exact 64-bit integers, decimals, NumPy's scalars, arithmetic and what has no result."""

import json
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada import Matcher
from contrada.language import evaluate, read, to_json, to_text, truth
from contrada.model.event import Event
from contrada.model.expression import Comparison, Literal

NAN, INF = float("nan"), float("inf")
ABSENT = object()
BIG = 2**53 + 1  # the first integer that no double can hold
INT64 = st.integers(-(2**63), 2**63 - 1)


def truth_of(text: str, **attributes: Any) -> bool | None:
    return truth(read(text), Event(attributes))


def value_of(text: str, **attributes: Any) -> Any:
    """What the left side of a comparison gives, and that it is the same from JSON."""
    test = read(f"{text} = 0")
    assert isinstance(test, Comparison)
    from_json = read(json.dumps(to_json(test)))
    assert isinstance(from_json, Comparison)
    event = Event(attributes)
    result = evaluate(test.left, event)
    again = evaluate(from_json.left, event)
    assert (type(again), again) == (type(result), result)
    return result


# Exact integers


@pytest.mark.parametrize("number", [BIG, 2**63 - 1, -(2**63), 2**64 - 1, 2**80 + 1])
def test_a_large_integer_equals_itself_and_not_its_neighbours(number: int) -> None:
    for predicate in (
        f"n = {number}",
        json.dumps({"op": "=", "args": [{"property": "n"}, number]}),
        {"op": "=", "args": [{"property": "n"}, number]},
    ):
        test = read(predicate)
        assert truth(test, Event({"n": number})) is True
        assert truth(test, Event({"n": number - 1})) is False
        assert truth(test, Event({"n": number + 1})) is False


def test_an_integer_is_compared_with_a_double_exactly() -> None:
    assert truth_of(f"n = {BIG}", n=float(BIG)) is False
    assert truth_of(f"n < {BIG}", n=float(BIG)) is True
    assert truth_of("n = 9007199254740992.0", n=BIG) is False
    assert truth_of("n > 9007199254740992.0", n=BIG) is True
    assert truth_of("n = 9007199254740993.0", n=2**53) is True  # a double cannot say it
    assert truth_of("n < 0.1", n=Decimal("0.1")) is True  # the double 0.1 is a little more
    assert truth_of("n = 0.1", n=0.1) is True


@given(INT64, st.one_of(INT64, st.floats(allow_nan=False), st.decimals(allow_nan=False)))
def test_comparison_is_that_of_the_exact_numbers(a: int, b: float | Decimal) -> None:
    exact = b if b in (INF, -INF) else Fraction(b)
    assert truth_of("a < b", a=a, b=b) is (a < exact)
    assert truth_of("a = b", a=a, b=b) is (a == exact)
    assert truth_of("a >= b", a=np.int64(a), b=b) is (a >= exact)
    assert truth_of(f"{a} <= b", b=b) is (a <= exact)


@given(st.one_of(INT64, st.floats(allow_nan=False, allow_infinity=False)))
def test_a_literal_keeps_its_value_and_its_type(number: float) -> None:
    for test in (read(f"n = {number!r}"), read({"op": "=", "args": [{"property": "n"}, number]})):
        for again in (test, read(to_text(test)), read(json.dumps(to_json(test)))):
            assert isinstance(again, Comparison)
            assert again.right == Literal(number)


def test_an_integer_is_no_double_and_no_truth_value_as_a_literal() -> None:
    literals = {Literal(1), Literal(1.0), Literal(True), Literal((1,)), Literal((True,))}
    assert len(literals) == 5
    assert Literal((1, (2.0,))) != Literal((1, (2,)))
    assert Literal((1, (2.0,))) == Literal((1, (2.0,)))


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("007", 7),
        ("-3", -3),
        ("- 3", -3),
        ("--3", 3),
        ("1.", 1.0),
        (".5", 0.5),
        ("-.5e-3", -0.0005),
        ("1E3", 1000.0),
        ("1e+3", 1000.0),
        ("1.7976931348623157e308", 1.7976931348623157e308),
        ("5e-324", 5e-324),
        ("1e-400", 0.0),
        ("1000", 1000),
        ("-1000", -1000),
        ("1001.5", 1001.5),
    ],
)
def test_ways_to_write_a_number(text: str, number: float) -> None:
    test = read(f"n = {text}")
    assert isinstance(test, Comparison)
    assert test.right == Literal(number)


# Arithmetic


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("a + 1", BIG + 1),
        ("a - 1", BIG - 1),
        ("a * 3", BIG * 3),
        ("a * a", BIG * BIG),
        ("a / 1", BIG),
        ("(a * 7) / 7", BIG),
        ("a DIV 2", 2**52),
        ("a % 2", 1),
        ("a ^ 2", BIG**2),
        ("0 - a", -BIG),
        ("-a", -BIG),
    ],
)
def test_integers_stay_exact(text: str, result: int) -> None:
    value = value_of(text, a=BIG)
    assert type(value) is int
    assert value == result


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("7 / 2", 3.5),
        ("6 / 2", 3),
        ("7 DIV 2", 3),
        ("-7 DIV 2", -3),
        ("7 DIV -2", -3),
        ("-7 % 2", -1),
        ("7 % -2", 1),
        ("7.5 DIV 2", 3),
        ("-7.5 DIV 2", -3),
        ("-7.5 % 2", -1.5),
        ("1 DIV 0.1", 9),
        ("-1 DIV 0.1", -9),
        ("1 % 0.1", math.fmod(1, 0.1)),
        ("1e300 DIV 0.1", math.trunc(Fraction(1e300) / Fraction(0.1))),
        (f"{BIG} DIV 2.0", BIG // 2),
        (f"{BIG} % 2.0", 1.0),
        ("2 ^ 10", 1024),
        ("2 ^ -1", 0.5),
        ("2.5 ^ 2", 6.25),
        ("4 ^ 0.5", 2.0),
        ("-2 ^ 2", 4),
        ("2 ^ 3 ^ 2", 64),
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("10 - 3 - 2", 5),
        ("10 - (3 - 2)", 9),
        ("100 / 10 / 5", 2),
        ("2 * 3 % 4", 2),
        ("1 - -1", 2),
        ("0.1 + 0.2", 0.1 + 0.2),
    ],
)
def test_arithmetic_of_literals(text: str, result: float) -> None:
    value = value_of(text)
    assert type(value) is type(result)
    assert value == result


@pytest.mark.parametrize(
    "text",
    [
        "a / 0",
        "a DIV 0",
        "a % 0",
        "a / 0.0",
        "a % 0.0",
        "0 ^ (0 - a)",
        "(0 - a) ^ 0.5",  # no real number
        "1e308 * 10 * a",  # beyond all doubles
        "10 ^ 400 * 1.5 * a",
        "a - 1e308 - 1e308 - 1e308",
        "2.0 ^ 5000 * a",
        "a + NULL",
    ],
)
def test_what_has_no_result_is_unknown(text: str) -> None:
    assert value_of(text, a=1) is None
    assert truth_of(f"{text} = 1", a=1) is None
    assert truth_of(f"NOT ({text} = 1)", a=1) is None


@pytest.mark.parametrize("operator", ["+", "-", "*", "/", "%", "DIV", "^"])
@pytest.mark.parametrize(
    "value", [None, NAN, "1", True, [1], {}, 1j, np.datetime64(1, "s"), object()]
)
def test_arithmetic_with_what_is_no_number_is_unknown(operator: str, value: Any) -> None:
    assert value_of(f"a {operator} 2", a=value) is None
    assert value_of(f"2 {operator} a", a=value) is None
    assert value_of(f"a {operator} a", a=value) is None
    assert value_of(f"a {operator} 2") is None


@pytest.mark.parametrize("infinity", [INF, -INF, np.float32(INF), Decimal("Infinity")])
def test_an_infinite_value_can_be_reckoned_with(infinity: Any) -> None:
    assert value_of("a + 1", a=infinity) == infinity
    assert value_of("a - a", a=infinity) is None
    assert value_of("a * 0", a=infinity) is None
    assert value_of("a DIV 2", a=infinity) is None
    assert value_of("2 DIV a", a=infinity) == 0
    assert value_of("2 % a", a=infinity) == 2


@pytest.mark.parametrize(
    ("value", "result"),
    [
        (Decimal(BIG), BIG + 1),
        (Decimal("1e3"), 1001),
        (Decimal("0.5"), 1.5),
        (Decimal("-2.25"), -1.25),
        (Decimal("NaN"), None),
        (Decimal("sNaN"), None),
        (Decimal("1e300"), 10**300 + 1),
        (Decimal("1e400"), None),
        (Decimal("1e999999"), None),
        (Decimal("-1e600"), None),
        (Decimal("Infinity"), INF),
        (np.uint8(255), 256),
        (np.int64(2**63 - 1), 2**63),
        (np.float32(0.5), 1.5),
        (np.float64("nan"), None),
    ],
)
def test_decimals_and_numpy_scalars_are_numbers(value: Any, result: float | None) -> None:
    assert value_of("a + 1", a=value) == result


@pytest.mark.parametrize("value", [True, False, np.True_, np.False_])
def test_truth_values_are_no_numbers(value: Any) -> None:
    for text in ("a = 1", "a < 2", "a BETWEEN 0 AND 1", "a IN (0, 1)", "a + 1 = 2", "-a = -1"):
        assert truth_of(text, a=value) is None


@pytest.mark.parametrize(
    "value", [np.timedelta64(1, "ns"), np.timedelta64(1, "s"), np.complex64(1)]
)
def test_other_numpy_scalars_are_no_numbers(value: Any) -> None:
    assert truth_of("a = 1", a=value) is None


def test_integers_are_exact_as_far_as_doubles_go_and_unknown_beyond() -> None:
    for text, exact in (("10 ^ 300", 10**300), ("3 ^ 600", 3**600), ("2 ^ 1023", 2**1023)):
        assert value_of(text) == exact
    assert value_of("a * a", a=10**150) == 10**300
    assert value_of("a + 1", a=2**1023) == 2**1023 + 1
    for text in ("2 ^ 1024", "a * a", "a + a", "2 ^ a", "-7 ^ a"):
        assert value_of(text, a=2**1023) is None
    for operator in ("+", "-", "*", "/", "DIV", "%", "^"):
        assert value_of(f"a {operator} 1", a=2**1024) is None
    assert truth_of("a = a AND a > 1", a=2**2000) is True


def test_products_of_long_integers_cost_little_and_can_be_shown() -> None:
    nines = "999999999999999999"
    for _ in range(8):
        nines = f"({nines})*({nines})"
    matcher = Matcher()
    matcher.add("s", f"x < {nines}")
    assert matcher.match({"x": 1}) == []
    assert str(matcher.get("s"))
    assert str(matcher.why("s", {"x": 1}))
    assert truth_of("*".join("a" * 90) + " > 1", a=10**4_299) is None


HUGE = 1 << 10_000_000  # of three million digits, which Python would take minutes to write


@pytest.mark.parametrize(
    ("decimal", "is_less"),
    [
        ("0.5", True),
        ("0", True),
        ("-1e5000000", True),
        ("-Infinity", True),
        ("1e3010200", True),
        ("1e3010400", False),
        ("Infinity", False),
        ("1e999999999", False),
        ("1e3010299", None),
        ("1e3010300", None),
    ],
)
def test_a_huge_integer_and_a_decimal_number_are_told_apart_by_their_sizes(
    decimal: str, is_less: bool | None
) -> None:
    for n, m, less, more in (
        (HUGE, Decimal(decimal), "<", ">"),
        (-HUGE, Decimal(decimal).copy_negate(), ">", "<"),
    ):
        event = {"n": n, "m": m}
        assert truth_of(f"m {less} n", **event) is is_less
        assert truth_of(f"n {more} m", **event) is is_less
        assert truth_of(f"n {less} m", **event) is (None if is_less is None else not is_less)
        assert truth_of("n = m", **event) is (None if is_less is None else False)
        assert truth_of("m <> n", **event) is (None if is_less is None else True)


@given(
    st.integers(-2, 2), st.sampled_from([16_383, 16_384]), st.sampled_from("< <= > >= = <>".split())
)
def test_integers_up_to_the_limit_are_compared_with_decimal_numbers_exactly(
    more: int, bits: int, operator: str
) -> None:
    number = (1 << bits) - 1
    expected = truth_of(f"n {operator} m", n=number, m=number + more)
    assert truth_of(f"n {operator} m", n=number, m=Decimal(number + more)) is expected


def test_huge_decimal_numbers_are_compared_with_each_other_and_with_doubles() -> None:
    a, b = Decimal("1e999999999"), Decimal("1e999999998")
    assert truth_of("a > b AND a = a AND a <> b AND NOT (a < b)", a=a, b=b) is True
    assert truth_of("a > b AND b < a AND a > 5 AND 5.5 < a", a=a, b=1e308) is True
    assert truth_of("a < b", a=a, b=INF) is True


def test_arrays_of_huge_numbers_are_compared_as_far_as_their_kinds_allow() -> None:
    long = Decimal("0." + "1" * 1_000_000)
    for a, b, expected in (
        ([HUGE, 1], [1, HUGE], True),
        ([HUGE], [Decimal("0.5")], False),
        ([long, 1], [1, long], True),
        ([HUGE], [Decimal("1e3010299")], None),
    ):
        assert truth_of("A_EQUALS(a, b)", a=a, b=b) is expected


@given(INT64, INT64, st.sampled_from(["+", "-", "*", "DIV", "%"]))
def test_arithmetic_of_integers_is_exact(a: int, b: int, operator: str) -> None:
    if operator in {"DIV", "%"} and b == 0:
        assert value_of(f"a {operator} b", a=a, b=b) is None
        return
    quotient = abs(a) // abs(b or 1) * (1 if (a < 0) == (b < 0) else -1)
    exact = {"+": a + b, "-": a - b, "*": a * b, "DIV": quotient, "%": a - b * quotient}
    assert value_of(f"a {operator} b", a=np.int64(a), b=b) == exact[operator]
    assert value_of(f"({a}) {operator} ({b})") == exact[operator]


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(0.01, 1e9), INT64)
def test_div_and_the_remainder_make_the_dividend_again(a: float, b: float, n: int) -> None:
    for dividend in (a, n):
        quotient = value_of("a DIV b", a=dividend, b=b)
        if quotient is not None:  # beyond all doubles
            rest = value_of("a % b", a=dividend, b=b)
            assert quotient * Fraction(b) + Fraction(rest) == Fraction(dividend)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("NOT -x > 1", "NOT (-x > 1)"),
        ("NOT - 5 > x", "NOT (-5 > x)"),
        ("a = 1 AND not\t-x > 1", "a = 1 AND NOT (-x > 1)"),
        ("NOT NOT --x > 1", "NOT (NOT (--x > 1))"),
        ("NOT -(x + 1) * 2 - y > 1", "NOT (-(x + 1) * 2 - y > 1)"),
        ("NOT -x ^ 2 > 1", "NOT (-x ^ 2 > 1)"),
        ("NOT -x BETWEEN -1 AND -y", "NOT (-x BETWEEN -1 AND -y)"),
        ("NOT 0 + x > 1", "NOT (0 + x > 1)"),
    ],
)
def test_a_sign_may_follow_not(text: str, written: str) -> None:
    assert read(text) == read(written)
    assert read(to_text(read(text))) == read(text)


@pytest.mark.parametrize("sign", ["", "-"])
def test_zeros_before_an_integer_are_nothing_however_many(sign: str) -> None:
    text = f"{sign}{'0' * 5_000}"
    assert read(f"n = {text}7") == read(f"n = {sign}7")
    assert read(f"n = {text}") == read(f"n = {sign}0")


@pytest.mark.parametrize("operator", ["+", "-", "*", "/", "%", "DIV", "^"])
@pytest.mark.parametrize("value", [Decimal("1e600"), Decimal("-1e5000"), Decimal("1.5e309")])
def test_a_decimal_too_large_for_a_double_has_no_result(operator: str, value: Decimal) -> None:
    assert value_of(f"a {operator} 2", a=value) is None
    assert value_of(f"2 {operator} a", a=value) is None
    assert truth_of(f"a {operator} 2 > b", a=value, b=Decimal("1e9000")) is None


@pytest.mark.parametrize("zero", [0, 0.0, -0.0, Decimal(0)])
@pytest.mark.parametrize("power", [-1, -0.5, -INF, Decimal("-Infinity")])
def test_zero_to_a_negative_power_is_unknown(zero: Any, power: Any) -> None:
    assert value_of("zero ^ power", zero=zero, power=power) is None
