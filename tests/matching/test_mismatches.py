"""Comparisons of columns with values of another type: told where they are always unknown."""

from __future__ import annotations

import datetime as dt
import warnings
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import contrada
from contrada import Matcher
from contrada.language import read_text, truth
from contrada.matcher.inside import freeze
from contrada.matching.arrow_values import as_values
from contrada.matching.mismatches import find_unmet, list_expectations
from contrada.model.event import Event

COLUMNS: dict[str, Any] = {
    "whole": pa.array([5, -1]),
    "real": pa.array([5.0, 0.5], pa.float32()),
    "decimal": pa.array([Decimal("5.0"), Decimal("0.5")]),
    "text": pa.array(["5", "x", "2020-01-01", "zz"]),
    "wide": pa.array(["x", "2020-01-01", "zz"], pa.large_string()),
    "coded": pa.array(["x", "2020-01-01", "zz"]).dictionary_encode(),
    "truth": pa.array([True, False]),
    "day": pa.array([dt.date(2020, 1, 1)]),
    "moment": pa.array([dt.datetime(2020, 1, 1, tzinfo=dt.UTC)], pa.timestamp("ns", "UTC")),
}
TESTS = [
    *("{} = 5", "5.5 < {}", "{} = 'x'", "{} <> '2020-01-01'", "{} = TRUE"),
    *("{} > DATE('2019-01-01')", "{} < TIMESTAMP('2020-01-01T00:00:00Z')"),
    *("{} IN (5, 2)", "{} IN (5, 'x')", "{} IN ('2020-01-01', TRUE)"),
    *("{} BETWEEN 1 AND 9", "{} BETWEEN 'a' AND 'z'", "{} BETWEEN 1 AND 'z'"),
    *("{} LIKE '%'", "CASEI({}) = 'x'", "ACCENTI({}) = 'x'", "{} * 2 > 1", "3 - {} > 1"),
    *("T_AFTER({}, DATE('2019-01-01'))", "T_DURING({}, INTERVAL('2019-01-01', '..'))"),
    *("{} IS NULL", "{} = other", "{} = {}", "A_CONTAINS({}, 'x')"),
]


def is_always_unknown(predicate: str, name: str, column: pa.Array) -> bool:
    events = [Event({name: value, "other": value}) for value in as_values(column)]
    return all(truth(read_text(predicate), event) is None for event in events)


@pytest.mark.parametrize("name", COLUMNS)
def test_what_is_told_is_what_evaluation_never_decides(name: str) -> None:
    schema = pa.schema([(name, COLUMNS[name].type)])
    for test in TESTS:
        for wrapped in (test, f"NOT ({test})", f"a = 1 OR b = 2 AND {test}"):
            predicate = wrapped.format(name, name)
            matcher = Matcher()
            matcher.add("one", predicate)
            told = freeze(matcher).find_mismatches(schema)
            is_silent = "A_" in test or "= {}" in test  # of which nothing is said
            expected = is_always_unknown(test.format(name, name), name, COLUMNS[name])
            assert [m.column for m in told] == [name] * (expected and not is_silent), predicate


def test_a_mismatch_counts_the_subscriptions_that_are_still_there() -> None:
    matcher = Matcher()
    for number in range(5):
        matcher.add(number, f"speed > {number} AND speed < 99")
    matcher.remove(0)
    (told,) = freeze(matcher).find_mismatches(pa.schema([("speed", pa.string())]))
    assert str(told) == (
        "column 'speed' holds text, and 4 subscriptions compare it with numbers, "
        "which is never true: speed > 1"
    )
    for number in range(1, 5):
        matcher.remove(number)
    assert freeze(matcher).find_mismatches(pa.schema([("speed", pa.string())])) == []


def test_names_that_a_path_may_lead_to_are_not_judged() -> None:
    matcher = Matcher()
    matcher.add(1, "a.b > 1 AND c > 1")
    find = freeze(matcher).find_mismatches
    inner = pa.struct([("b", pa.int64())])
    assert find(pa.schema([("a.b", pa.string()), ("a", inner)])) == []
    assert [m.column for m in find(pa.schema([("a.b", pa.string())]))] == ["a.b"]
    assert find(pa.schema([("c", pa.null())])) == find(pa.schema([("c", pa.binary())])) == []


def test_match_many_warns_of_a_column_of_another_type() -> None:
    matcher = Matcher()
    matcher.add("fast", "speed > 30")
    events = pa.table({"speed": ["31", "29"]})
    with pytest.warns(UserWarning, match="column 'speed' holds text, and 1 subscription") as told:
        assert matcher.match_many(events).num_rows == 0
    assert told[0].filename == __file__
    assert matcher.match_many(pa.table({"speed": [31, 29]})).num_rows == 1


@pytest.mark.parametrize("crs", [None, "EPSG:4326", "EPSG:2154"])
def test_distances_in_a_system_of_lengths_are_warned_of(crs: str | None) -> None:
    matcher = contrada.Matcher(crs=crs)
    matcher.add("near", "dwithin(geometry, POINT(2 48), 100)")
    events = pa.table({"geometry": ["POINT(2 48)"]})
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert matcher.match_many(events).num_rows == 1
    warning = (
        "table: dwithin reads coordinates as longitude and latitude, but they are in EPSG:2154; "
        "reproject them, for instance to EPSG:4326"
    )
    assert [str(each.message) for each in said] == ([warning] if crs == "EPSG:2154" else [])


def test_nothing_is_told_of_what_only_removed_subscriptions_read() -> None:
    matcher = Matcher()
    matcher.add("near", "dwithin(geometry, POINT(1 1), 500)")
    matcher.add("text", "n = 'x'")
    for number in range(5):
        matcher.add(f"n{number}", f"n > {number}")
    matcher.match({"n": 1})
    before = freeze(matcher)
    matcher.remove("near")
    matcher.remove("text")
    subscriptions = freeze(matcher)
    assert subscriptions.stats()["filters"] == 7, "they are not merged away"
    assert before.has_distances
    assert not subscriptions.has_distances
    assert subscriptions.attributes == {"n"}
    assert subscriptions.geometry_attributes == ()
    assert not subscriptions.find_mismatches(pa.schema({"n": pa.int64()}))
    assert before.find_mismatches(pa.schema({"n": pa.int64()}))


class SchemaThatCounts:
    """A schema of Arrow's that counts how often its names are listed."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema, self.lists = schema, 0

    def __getattr__(self, name: str) -> Any:
        self.lists += name == "names"
        return getattr(self._schema, name)


def test_the_names_of_columns_are_listed_once_for_all_subscriptions() -> None:
    schema = SchemaThatCounts(pa.schema([(f"c{i}", pa.string()) for i in range(50)]))
    expectations = list_expectations(read_text(f"c{i} = 1") for i in range(50))
    assert len(find_unmet(expectations, schema)) == 50
    assert schema.lists == 1
