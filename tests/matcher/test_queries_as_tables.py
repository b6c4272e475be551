"""Queries, and other sources that make their rows as they are read, wherever a table can be."""

from collections.abc import Callable
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from contrada import Matcher, Tracker
from contrada.errors import InvalidInput
from contrada.files import read_rows

QUERY = """select i as id, i as n, 'POINT(1 1)' as geometry,
    'car' as object, timestamp '2026-01-01' + interval (i) minute as time from range(10) t(i)"""
NEAR = "POLYGON((0 0, 2 0, 2 2, 0 2, 0 0))"


@pytest.fixture
def query() -> Any:
    return duckdb.connect().sql(QUERY)


@pytest.fixture
def matcher() -> Matcher:
    matcher = Matcher()
    matcher.add("late", geometry=NEAR, where="n > 7")
    return matcher


ANSWERS: dict[str, Callable[[Matcher, Any], Any]] = {
    "a table": lambda m, query: m.match_many(query, id="id")["event"].to_pylist(),
    "batches": lambda m, query: [
        event
        for batch in m.match_many(query, id="id", batches=True)
        for event in batch["event"].to_pylist()
    ],
    "a frame": lambda m, query: m.match_frame(query)["n"].to_list(),
}


@pytest.mark.parametrize("ask", ANSWERS.values(), ids=ANSWERS)
def test_a_query_is_matched_as_often_as_one_likes(
    ask: Callable[[Matcher, Any], Any], matcher: Matcher, query: Any
) -> None:
    assert ask(matcher, query) == [8, 9]
    assert ask(matcher, query) == [8, 9]


def test_a_query_gives_subscriptions(query: Any) -> None:
    matcher = Matcher()
    matcher.add_many(query)
    assert sorted(matcher) == list(range(10))


def test_a_query_is_followed(query: Any) -> None:
    matcher = Matcher()
    matcher.add("fence", geometry=NEAR)
    transitions = Tracker(matcher, object="object", time="time", kinds=["enter"]).follow(query)
    assert transitions["transition"].to_pylist() == ["enter"]


def test_the_rows_of_a_query_are_read_anew_after_the_first_time(query: Any) -> None:
    rows = read_rows(query, batch_rows=4)
    for _ in range(2):
        assert [batch.num_rows for batch in rows.batches()] == [4, 4, 2]


def test_a_query_that_is_still_being_read_is_refused_with_the_reason(query: Any) -> None:
    rows = read_rows(query)
    first = rows.batches()
    with pytest.raises(InvalidInput, match=r"cannot read DuckDBPyRelation as .* open result"):
        list(rows.batches())
    assert next(first).num_rows == 10


@pytest.mark.parametrize("length", [0, 10**9, RuntimeError("the length is not known")])
def test_no_source_is_asked_how_long_it_is(length: Any, matcher: Matcher) -> None:
    table = pa.table({"n": [7, 8, 9], "geometry": ["POINT(1 1)"] * 3})

    class Source:
        def __arrow_c_stream__(self, schema: object = None) -> object:
            return table.__arrow_c_stream__(schema)

        def __len__(self) -> int:
            if isinstance(length, Exception):
                raise length
            return int(length)

    assert matcher.match_many(Source())["event"].to_pylist() == [1, 2]
