"""A machine without enough memory: an error of ours, whichever library says so."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from contrada import Matcher, Unavailable

EVENTS = pa.table({"x": [1, 2], "geometry": ["POINT(1 1)", "POINT(2 2)"]})


@pytest.fixture(params=[MemoryError, pa.ArrowMemoryError])
def lack(request: pytest.FixtureRequest) -> Callable[..., Any]:
    def lack(*_: Any, **__: Any) -> Any:
        raise request.param("no room")

    return lack


@pytest.fixture
def matcher() -> Matcher:
    matcher = Matcher()
    matcher.add("s", "x > 0")
    return matcher


@pytest.mark.parametrize(
    "match",
    [
        lambda matcher: matcher.match_many(EVENTS),
        lambda matcher: list(matcher.match_many(EVENTS, batches=True, threads=1)),
        lambda matcher: matcher.match_many(EVENTS, keep=["x"], threads=2),
        lambda matcher: matcher.match_frame(EVENTS),
    ],
)
def test_matching_a_table_without_enough_memory_says_that_the_machine_lacks_it(
    match: Callable[[Matcher], Any],
    matcher: Matcher,
    lack: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("contrada.matcher.match_run.match_received", lack)
    with pytest.raises(Unavailable, match=r"^there is not enough memory: no room$"):
        match(matcher)


def test_keeping_columns_without_enough_memory_says_so(
    matcher: Matcher, lack: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("contrada.matcher.keeping.put_beside", lack)
    with pytest.raises(Unavailable, match="not enough memory"):
        matcher.match_many(EVENTS, keep=["x"])


def test_matching_a_list_without_enough_memory_says_so(
    matcher: Matcher, lack: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("contrada.matcher.event_lists.judged", lack)
    with pytest.raises(Unavailable, match="not enough memory"):
        matcher.match_many([{"x": 1}])


def test_adding_without_enough_memory_says_so_and_adds_nothing(
    matcher: Matcher, lack: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("contrada.matcher.inside.IncomingRows.read", lack)
    with pytest.raises(Unavailable, match="not enough memory"):
        matcher.add_many(pa.table({"id": ["t"], "filter": ["x = 1"]}))
    assert list(matcher) == ["s"]


def test_a_table_that_cannot_be_opened_for_lack_of_memory_is_not_blamed(
    matcher: Matcher, lack: Callable[..., Any]
) -> None:
    class Source:
        def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
            return lack()

    with pytest.raises(Unavailable, match="no room"):
        matcher.match_many(Source())
