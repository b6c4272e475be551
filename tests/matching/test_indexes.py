"""Each constraint index finds what `language` says is satisfied, each constraint once."""

from __future__ import annotations

from collections import ChainMap
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from itertools import product
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada.language import constraint_text, is_satisfied, make_predicate, read
from contrada.matching.forwarding import is_selective
from contrada.matching.indexes import INDEXES
from contrada.matching.indexes.automaton import Automaton
from contrada.matching.indexes.difference import DifferenceIndex
from contrada.matching.indexes.equality import EqualityIndex
from contrada.matching.indexes.patterns import PatternIndex, read_shape
from contrada.matching.indexes.presence import PresenceIndex
from contrada.matching.indexes.ranges import RangeIndex
from contrada.model.event import Event
from contrada.model.expression import Attribute, Comparison, IsNull, Literal
from contrada.model.instant import Instant, parse_instant
from contrada.model.subscription import Constraint

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from contrada.matching.indexes import ConstraintIndex
    from contrada.model.expression import Expression

TIMES = (
    "'2020-01-01'",
    "'2020-01-01T00:00:00Z'",
    "'2020-01-01T00:00:00+05:00'",
    "DATE('2020-01-01')",
    "TIMESTAMP('2019-12-31T19:00:00Z')",
)
TEXTS = ("''", "'a'", "'É'", "'e'", "'2'", "'soon'", "'2020-13-01'")
NUMBERS = ("0", "2", "2.5", "-1", "9007199254740993", "1e300")
TRUTHS = ("TRUE", "FALSE")
EAST = timezone(timedelta(hours=5))
VALUES = (
    None,
    *(True, False, np.True_),
    *(0, 2, 2.5, -1, 2**53 + 1, float(2**53), Decimal("2.5"), Decimal("NaN"), np.int64(2)),
    *(np.float32(2.5), float("nan"), float("inf"), -float("inf"), 10**400),
    *("", "a", "A", "É", "é", "e", "2", "soon", "SOON", "2020-01-01", " 2020-01-01T00:00:00Z"),
    *("2019-12-31T19:00:00Z", "2020-01-01t00:00:00z", "2020-13-01"),
    *(date(2020, 1, 1), date(2019, 12, 31), datetime(2020, 1, 1, tzinfo=UTC)),
    datetime(2020, 1, 1),  # noqa: DTZ001  (without a zone on purpose)
    *(datetime(2020, 1, 1, tzinfo=EAST), datetime(2020, 1, 1, 0, 0, 1, tzinfo=UTC)),
    *(np.datetime64("2020-01-01"), np.datetime64("2020-01-01T00", "h"), np.datetime64("NaT")),
    *(pandas.Timestamp("2020-01-01T00:00:00.000000001Z"), pandas.NaT, pandas.NA),
    *(Instant(0), parse_instant("2020-01-01"), parse_instant("2019-12-31T19:00:00Z")),
    *([1], ["a"], {"inner": 1}, b"a", "POINT(1 1)"),
)
OPERANDS = ("x", "CASEI(x)", "ACCENTI(x)", "CASEI(ACCENTI(x))", "a.b")


def constraint_of(text: str) -> Constraint:
    """The only constraint of a predicate."""
    (filter_,) = make_predicate(read(text)).filters
    (constraint,) = filter_.constraints
    return constraint


def fill(make: Callable[[], ConstraintIndex], constraints: Sequence[Constraint]) -> ConstraintIndex:
    index = make()
    for number, constraint in enumerate(constraints):
        assert index.take(number, constraint), constraint
    index.freeze()
    return index


def found_in(index: ConstraintIndex, event: Event) -> list[int]:
    return sorted(number for ids in index.satisfied(event) for number in ids.tolist())


def check_event(index: ConstraintIndex, constraints: Sequence[Constraint], event: Event) -> None:
    found = found_in(index, event)
    expected = [n for n, constraint in enumerate(constraints) if is_satisfied(constraint, event)]
    different = [constraint_text(constraints[n]) for n in set(expected) ^ set(found)]
    assert found == expected, different


def check(make: Callable[[], ConstraintIndex], texts: Sequence[str]) -> None:
    """Compare with `language`, for each value under a plain name and on two kinds of path."""
    constraints = [constraint_of(text) for text in texts]
    index = fill(make, constraints)
    for value in VALUES:
        for attributes in ({"x": value}, {"a.b": value}, {"a": {"b": value}}):
            check_event(index, constraints, Event(attributes))


# Kinds of literal and kinds of value


def test_equality_compares_every_kind_of_literal_with_every_kind_of_value() -> None:
    literals = (*TIMES, *TEXTS, *NUMBERS, *TRUTHS)
    texts = [f"{operand} = {literal}" for operand, literal in product(OPERANDS[:1], literals)]
    texts += [f"{o} = {literal}" for o, literal in product(OPERANDS[1:], (*TIMES, *TEXTS))]
    texts += [f"a.b = {literal}" for literal in (*NUMBERS, *TRUTHS)]
    check(EqualityIndex, [*texts, "x", "NOT x", "a.b"])


def test_in_finds_a_value_among_several_that_may_be_the_same_moment() -> None:
    check(
        EqualityIndex,
        [
            "x IN ('2020-01-01', '2020-01-01T00:00:00Z', 'soon')",
            "x IN ('a', '2020-01-01T00:00:00+05:00')",
            "x IN (DATE('2020-01-01'), TIMESTAMP('2020-01-01T00:00:00Z'))",
            "x IN (2, 2.0, 2.5)",
            "CASEI(x) IN ('soon', 'a')",
            "a.b IN (TRUE, FALSE)",
        ],
    )


def test_difference_compares_every_kind_of_literal_with_every_kind_of_value() -> None:
    texts = [f"x <> {literal}" for literal in (*TIMES, *TEXTS, *NUMBERS, *TRUTHS)]
    texts += [f"{o} <> {literal}" for o, literal in product(OPERANDS[1:], (*TIMES, *TEXTS))]
    texts += [
        "x NOT IN ('2020-01-01', '2020-01-01T00:00:00Z')",
        "x NOT IN ('2020-01-02', 'soon')",  # unknown of a moment, whichever it is
        "x NOT IN (DATE('2020-01-01'), TIMESTAMP('2019-12-31T19:00:00Z'))",
        "x NOT IN (2, 2.0, 2.5)",
        "NOT CASEI(x) IN ('soon', 'a')",
        "a.b NOT IN (TRUE)",
    ]
    check(DifferenceIndex, texts)


@pytest.mark.parametrize("operator", ["<", "<=", ">", ">="])
def test_ranges_compare_every_kind_of_literal_with_every_kind_of_value(operator: str) -> None:
    texts = [f"x {operator} {literal}" for literal in (*TIMES, *TEXTS, *NUMBERS)]
    texts += [f"{o} {operator} {bound}" for o, bound in product(OPERANDS[1:], (*TIMES, *TEXTS))]
    check(RangeIndex, texts)


def test_patterns_find_texts_and_nothing_else() -> None:
    patterns = ("a", "", "%", "a%", "%n", "%oo%", "2020%", r"\%", "%%", "2020-01-01", "so%")
    texts = [f"{o} LIKE '{p}'" for o, p in product(("x", "CASEI(x)", "a.b"), patterns)]
    check(PatternIndex, [*texts, *(f"NOT {text}" for text in texts)])


def test_presence_finds_what_is_absent_as_well_as_what_is_there() -> None:
    names = ("x", "a.b", "a", "y", "a.c")
    check(PresenceIndex, [f"{name} IS {n}NULL" for name in names for n in ("", "NOT ")])


def test_a_constraint_is_taken_by_one_index_at_most() -> None:
    texts = ["x = 'a'", "x <> 'a'", "x < 'a'", "x IN ('a', 'b')", "x NOT IN (1)", "x", "NOT x"]
    for text in [*texts, "x LIKE 'a%'", "NOT x LIKE 'a'", "x IS NULL", "x IS NOT NULL"]:
        assert sum(make().take(0, constraint_of(text)) for make in INDEXES) == 1, text


@pytest.mark.parametrize("text", ["x + 1 = 2", "x = y", "x IN (1, 'a')", "x LIKE 'a%b'", "x < y"])
def test_what_no_index_serves_is_taken_by_none(text: str) -> None:
    assert not any(make().take(0, constraint_of(text)) for make in INDEXES)


# Names and paths


PATHS: tuple[dict[Any, Any], ...] = (
    {"a.b": None, "a": {"b": 1}},  # the name as it stands goes first, even if it is null
    {"a": {"b": None}, "a.b": 1},
    {"a.b": {"c": 1}},
    {"a": {"b.c": 1}},
    {"a": {"b": {"c": 1}}},
    {"a": {"b": {"c": None}}, "a.b": {"c": 1}},
    {"a": MappingProxyType({"b": ChainMap({"c": 1})})},
    {"a": {"b": {"c": {"d": 1}}}},
    {"a": 1, 1: 1, None: {"b": 1}},
    {"": 1, "a": {"": 1}},
    {"a": {"": {"": {"b": 1}}}},
    {},
)


@pytest.mark.parametrize("attributes", PATHS, ids=str)
def test_a_path_is_found_however_the_event_spells_it(attributes: dict[str, Any]) -> None:
    names = ("a", "a.b", "a.b.c", "b", "b.c", "c", "", "a.", "a...b", "a.b.c.d", "d", "1", "None.b")
    tests: dict[Callable[[], ConstraintIndex], Callable[[Attribute], Expression]] = {
        EqualityIndex: lambda name: Comparison("=", name, Literal(1)),
        DifferenceIndex: lambda name: Comparison("<>", name, Literal(2)),
        RangeIndex: lambda name: Comparison(">", name, Literal(0)),
        PresenceIndex: IsNull,
    }
    for make, test in tests.items():
        constraints = [Constraint(test(Attribute(name))) for name in names]
        if make is PresenceIndex:
            constraints += [Constraint(c.test, is_negated=True) for c in constraints]
        check_event(fill(make, constraints), constraints, Event(attributes))


class CountingEvent(Event):
    """Counts how often a value is asked for."""

    __slots__ = ("asked",)

    def __init__(self, attributes: dict[str, Any]) -> None:
        super().__init__(attributes)
        self.asked = 0

    def value(self, name: str) -> Any:
        self.asked += 1
        return super().value(name)


@pytest.mark.parametrize(
    ("make", "test"),
    [
        (EqualityIndex, "{} = 1"),
        (EqualityIndex, "CASEI({}) = 'a'"),
        (DifferenceIndex, "{} <> 'b'"),
        (RangeIndex, "{} < 'b'"),
        (PatternIndex, "{} LIKE 'a%'"),
        (PresenceIndex, "{} IS NOT NULL"),
        (PresenceIndex, "{} IS NULL"),
    ],
)
def test_only_what_the_event_has_is_looked_at(
    make: Callable[[], ConstraintIndex], test: str
) -> None:
    names = [f"{where}n{i}" for i in range(100) for where in ("", "in.")]
    index = fill(make, [constraint_of(test.format(name)) for name in names])
    event = CountingEvent({"n7": "a", "other": 1, "in": {"n8": "a", "other": {"n9": 1}}})
    found_in(index, event)
    assert event.asked == 2


# Patterns


@st.composite
def words_and_text(draw: st.DrawFn) -> tuple[list[str], str]:
    words = st.text("ab", max_size=4)
    return draw(st.lists(words, max_size=12)), draw(st.text("ab", max_size=12))


@given(words_and_text())
def test_all_words_in_a_text_are_found(case: tuple[list[str], str]) -> None:
    words, text = case
    automaton = Automaton({word: [n, -n] for n, word in enumerate(words)})
    last = {word: n for n, word in enumerate(words)}
    expected = {n for word, n in last.items() if word in text}
    assert automaton.find(text) == expected | {-n for n in expected}


def test_words_that_end_in_one_another_are_stored_once_each() -> None:
    automaton = Automaton({"a" * (n + 1): [n] for n in range(300)})
    assert sum(map(len, automaton.outputs)) == 300
    assert automaton.find("a" * 200) == set(range(200))
    assert automaton.find("b" + "a" * 400) == set(range(300))


@pytest.mark.parametrize(
    ("pattern", "shape"),
    [
        ("", ("exact", "")),
        ("a", ("exact", "a")),
        ("%", ("inside", "")),
        ("%%", ("inside", "")),
        ("a%", ("prefix", "a")),
        ("%a", ("suffix", "a")),
        ("%a%", ("inside", "a")),
        (r"\%a\_%", ("prefix", "%a_")),
        (r"a\%", ("exact", "a%")),
        ("a%b", None),
        ("_", None),
        ("%%%", None),
    ],
)
def test_a_pattern_has_a_shape_or_is_left_to_evaluation(
    pattern: str, shape: tuple[str, str] | None
) -> None:
    assert read_shape(pattern) == shape


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = 1", True),
        ("x <> 1", False),
        ("x IN (1, 2)", True),
        ("x NOT IN (1, 2)", False),
        ("x LIKE 'a%'", True),
        ("x LIKE '%'", False),
        ("x LIKE '%%'", False),
        ("NOT x LIKE 'a%'", False),
        ("x > 1", False),
        ("x IS NULL", False),
    ],
)
def test_a_constraint_is_selective_where_few_events_can_be_expected_to_satisfy_it(
    text: str, expected: bool
) -> None:
    assert is_selective(constraint_of(text)) is expected
