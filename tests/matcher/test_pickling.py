"""A matcher through pickle, copies and other processes."""

import copy
import os
import pickle
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, ClassVar

import geopandas
import pyarrow as pa
import pytest
import shapely

from contrada import Matcher

EVENT = {"x": 5, "geometry": "POINT(1 1)"}


def through_pickle(matcher: Matcher) -> Matcher:
    again = pickle.loads(pickle.dumps(matcher))
    assert isinstance(again, Matcher)
    return again


def make_matcher(engine: str = "strtree", **options: Any) -> Matcher:
    matcher = Matcher(engine, crs="EPSG:4326", **options)
    matcher.add("area", geometry=shapely.box(0, 0, 2, 2), subscriber="ops")
    matcher.add("gone", "TRUE")
    matcher.add("fast", "x > 3", subscriber=7)
    matcher.remove("gone")
    return matcher


@pytest.mark.parametrize("duplicate", [through_pickle, copy.copy, copy.deepcopy])
def test_a_copy_answers_alike_and_changes_alone(duplicate: Callable[[Matcher], Matcher]) -> None:
    matcher = make_matcher("crtree", split="constraint")
    again = duplicate(matcher)
    assert again.match(EVENT) == matcher.match(EVENT) == ["area", "fast"]
    assert again.subscribers(EVENT) == matcher.subscribers(EVENT) == [7, "ops"]
    assert (repr(again), again.crs) == (repr(matcher), matcher.crs)
    again.add("more", "TRUE")
    matcher.remove("fast")
    assert again.match(EVENT) == ["area", "fast", "more"]
    assert matcher.match(EVENT) == ["area"]


def test_a_class_of_ones_own_stays_so() -> None:
    assert type(through_pickle(OwnMatcher())) is OwnMatcher


class OwnMatcher(Matcher):
    pass


def test_a_matcher_with_an_index_does_not_carry_it_along() -> None:
    matcher = make_matcher()
    before = len(pickle.dumps(matcher))
    matcher.match(EVENT)
    matcher.match_many([EVENT])
    assert len(pickle.dumps(matcher)) == before


def test_ids_that_were_put_in_order_do_not_carry_their_order_along() -> None:
    matcher = Matcher()
    matcher.add_many(pa.table({"id": range(99, -1, -1), "filter": ["x > 3"] * 100}))
    before = len(pickle.dumps(matcher))
    matcher.match_many(pa.table({"x": [5]}))
    assert 50 in matcher
    assert len(pickle.dumps(matcher)) == before


def match_elsewhere(matcher: Matcher) -> tuple[int, list[object]]:
    return os.getpid(), list(matcher.match(EVENT))


def test_another_process_matches_what_it_is_sent() -> None:
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        number, found = pool.submit(match_elsewhere, make_matcher()).result()
    assert number != os.getpid()
    assert found == ["area", "fast"]


class ChangingMatcher(Matcher):
    """Changes once, while its settings are read."""

    changes: ClassVar[list[Callable[[], object]]] = []

    @property
    def engine(self) -> str:
        while self.changes:
            self.changes.pop()()
        return super().engine


@pytest.mark.parametrize("write", ["save", "pickle"])
def test_what_is_written_is_of_one_moment(write: str, tmp_path: Path) -> None:
    matcher = ChangingMatcher()
    matcher.add(1, "x > 3")
    frame = geopandas.GeoDataFrame({"id": [2]}, geometry=[shapely.Point(1, 1)], crs="EPSG:2154")
    ChangingMatcher.changes.append(lambda: matcher.add_many(frame))
    if write == "save":
        matcher.save(tmp_path / "set.contrada")
        again: Matcher = Matcher.open(tmp_path / "set.contrada")
    else:
        again = through_pickle(matcher)
    assert (list(matcher), matcher.crs) == ([1, 2], "EPSG:2154")
    assert (list(again), again.crs) == ([1], None)
