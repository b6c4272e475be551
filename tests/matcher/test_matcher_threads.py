"""Many threads at once: readers see whole versions, and writers lose nothing."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import geopandas
import numpy as np
import pyarrow as pa
import pytest
import shapely
from shapely.geometry import Point

from contrada import InvalidInput, Matcher
from contrada.matching.strtree import anchor_trees, index
from exact_engines import every_engine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

READERS = 3
ROUNDS = 40
PATIENCE_S = 60  # for what must happen at once


@pytest.fixture(autouse=True)
def switch_threads_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def run_together(*tasks: Callable[[], Any]) -> list[Any]:
    """Run all tasks at once, each in a thread of its own; all begin together."""
    start = threading.Barrier(len(tasks))

    def run(task: Callable[[], Any]) -> Any:
        start.wait()
        return task()

    with ThreadPoolExecutor(len(tasks)) as pool:
        return [future.result() for future in [pool.submit(run, task) for task in tasks]]


def squares(ids: list[int], place: int) -> pa.Table:
    """Subscriptions to one square, far from that of any other place."""
    shape = shapely.box(10 * place, 0, 10 * place + 5, 5).wkb
    return pa.table({"id": ids, "geometry": [shape] * len(ids)})


def event_at(place: int) -> dict[str, Any]:
    return {"geometry": Point(10 * place + 1, 1)}


@every_engine
@pytest.mark.parametrize("by_table", [False, True], ids=["match", "match_many"])
def test_a_reader_sees_each_table_of_subscriptions_whole_or_not_at_all(
    engine: str, by_table: bool
) -> None:
    matcher = Matcher(engine)
    matcher.add_many(squares([0, 1, 2], 0))
    versions: set[tuple[int, ...]] = {(0, 1, 2)}
    is_done = threading.Event()

    def write() -> None:
        try:
            for round_ in range(1, ROUNDS):
                pair = [2 * round_ + 100, 2 * round_ + 101]
                at_home = round_ % 2 == 0
                versions.add((0, 1, 2) if at_home else ())
                versions.add((0, 1, 2, *pair) if at_home else tuple(pair))
                matcher.add_many(squares([0, 1, 2], 0 if at_home else 1), replace=True)
                matcher.add_many(squares(pair, 0))
                matcher.add_many(squares(pair, 2), replace=True)
        finally:
            is_done.set()

    def read() -> list[tuple[Any, ...]]:
        answers = []
        events = pa.table({"geometry": [event_at(0)["geometry"].wkb]})
        while not is_done.is_set():
            if by_table:
                found = matcher.match_many(events, threads=1)["subscription"].to_pylist()
            else:
                found = matcher.match(event_at(0))
            answers.append(tuple(found))
        return answers

    _, *answers = run_together(write, *[read] * READERS)
    assert all(answers)
    for seen in answers:
        assert set(seen) <= versions
    assert len(matcher) == 3 + 2 * (ROUNDS - 1)


@every_engine
def test_every_answer_is_that_of_a_version_that_existed_in_order(engine: str) -> None:
    matcher = Matcher(engine)
    is_done = threading.Event()

    def write() -> None:
        try:
            for id_ in range(3 * ROUNDS):
                matcher.add(id_, "n > 0", subscriber=f"s{id_}")
            for id_ in range(3 * ROUNDS):
                matcher.remove(id_)
        finally:
            is_done.set()

    def read() -> None:
        first = last = 0
        while not is_done.is_set():
            found = [int(id_) for id_ in matcher.match({"n": 1})]
            assert found == list(range(found[0], found[-1] + 1)) if found else True
            assert not found or (found[0] >= first and found[-1] >= last)
            first, last = (found[0], found[-1]) if found else (first, last)
            numbers = sorted(int(str(who)[1:]) for who in matcher.subscribers({"n": 1}))
            assert numbers == list(range(numbers[0], numbers[-1] + 1)) if numbers else True

    run_together(write, *[read] * READERS)
    assert len(matcher) == 0


@every_engine
def test_an_index_that_many_threads_ask_first_at_once_answers_all_of_them(engine: str) -> None:
    generator = np.random.default_rng(3)
    centres = shapely.points(generator.uniform(0, 20, (200, 2)))
    table = pa.table(
        {
            "geometry": shapely.to_wkb(shapely.buffer(centres, 1.5, quad_segs=4)),
            "relation": ["intersects", "disjoint", "contains", "within"] * 50,
            "where": [None, "n > 4", "NOT S_TOUCHES(geometry, POINT(1 1))", "n < 3"] * 50,
        }
    )
    shapes: Any = shapely.points(generator.uniform(0, 20, (60, 2)))
    shapes[::3] = shapely.buffer(shapes[::3], 1)
    events = pa.table({"geometry": shapely.to_wkb(shapes), "n": [i % 7 for i in range(60)]})
    expected = Matcher(engine)
    expected.add_many(table)
    answer = expected.match_many(events, threads=1)
    for _ in range(3):
        matcher = Matcher(engine)
        matcher.add_many(table)
        found = run_together(*[lambda m=matcher: m.match_many(events, threads=1)] * 4)
        assert all(each.equals(answer) for each in found)


def test_writers_of_different_ids_lose_nothing() -> None:
    matcher = Matcher()

    def write(first: int) -> None:
        for id_ in range(first, first + 50):
            matcher.add(id_, "n > 0")
            if id_ % 3 == 0:
                matcher.remove(id_)

    run_together(*(lambda f=first: write(f) for first in (0, 100, 200)))
    expected = [id_ for f in (0, 100, 200) for id_ in range(f, f + 50) if id_ % 3]
    assert list(matcher) == matcher.match({"n": 1}) == expected


def test_of_several_writers_of_one_id_one_wins() -> None:
    matcher = Matcher()

    def write(who: str) -> bool:
        try:
            matcher.add_many(
                pa.table({"id": [1, 2], "filter": ["n > 0"] * 2, "subscriber": [who] * 2})
            )
        except InvalidInput:
            return False
        return True

    for _ in range(20):
        won = run_together(*(lambda w=who: write(w) for who in "uvw"))
        assert sum(won) == 1
        assert matcher.subscribers({"n": 1}) == ["uvw"[won.index(True)]]
        matcher.remove(1)
        matcher.remove(2)


def test_counts_add_up_whoever_adds_to_them() -> None:
    matcher = Matcher()
    matcher.add("a", "n > 0 OR S_INTERSECTS(geometry, POINT(1 1))")
    events = pa.table({"n": [1] * 10, "geometry": [b"?"] + [None] * 9})
    task = lambda: [matcher.match_many(events, quarantine=True) for _ in range(20)]  # noqa: E731
    run_together(*[task] * 3)
    stats = matcher.stats()
    assert (stats["events"], stats["events_left_out"]) == (600, 60)


def test_matchers_do_not_wait_for_each_other_while_one_builds_its_index(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    is_building, may_finish = threading.Event(), threading.Event()
    make_trees = anchor_trees.make_trees

    def make_slowly(constraints: Any, numbers: Any) -> Any:
        if len(numbers) > 1:
            is_building.set()
            assert may_finish.wait(PATIENCE_S)
        return make_trees(constraints, numbers)

    monkeypatch.setattr(index, "make_trees", make_slowly)
    slow, quick = Matcher(), Matcher()
    for place in range(2):
        slow.add_many(squares([place], place))

    def use_the_other() -> list[Any]:
        quick.add_many(squares([7], 0))
        quick.add(8, "n > 0")
        quick.remove(8)
        return quick.match(event_at(0))

    def change_the_same() -> int:
        slow.add_many(squares([2], 2))
        slow.remove(2)
        return len(slow)

    with ThreadPoolExecutor(2) as pool:
        waiting = pool.submit(slow.match, event_at(0))
        assert is_building.wait(PATIENCE_S)
        try:
            assert pool.submit(use_the_other).result(PATIENCE_S) == [7]
            assert pool.submit(change_the_same).result(PATIENCE_S) == 2
        finally:
            may_finish.set()
        assert waiting.result(PATIENCE_S) == [0]


def test_a_reader_does_not_wait_for_a_writer(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    matcher = Matcher(crs="EPSG:4326")
    matcher.add_many(squares([0], 0))
    is_writing, may_finish = threading.Event(), threading.Event()

    def check(_: Any) -> None:
        is_writing.set()
        assert may_finish.wait(PATIENCE_S)

    object.__setattr__(matcher._engine, "check", check)
    events = geopandas.GeoDataFrame(geometry=[event_at(0)["geometry"]], crs="EPSG:4326")

    def read() -> list[Any]:
        matcher.save(tmp_path / "set.contrada")
        assert Matcher.open(tmp_path / "set.contrada").match(event_at(0)) == [0]
        assert matcher.match(event_at(0)) == list(matcher) == [0]
        return list(matcher.match_many(events)["subscription"].to_pylist())

    with ThreadPoolExecutor(2) as pool:
        writing = pool.submit(matcher.add, 1, "n > 0")
        assert is_writing.wait(PATIENCE_S)
        try:
            assert pool.submit(read).result(PATIENCE_S) == [0]
        finally:
            may_finish.set()
        writing.result(PATIENCE_S)
    assert list(matcher) == [0, 1]
