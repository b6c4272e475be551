"""A matcher through pickle, copies and other processes."""

import copy
import os
import pickle
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

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


def match_elsewhere(matcher: Matcher) -> tuple[int, list[object]]:
    return os.getpid(), list(matcher.match(EVENT))


def test_another_process_matches_what_it_is_sent() -> None:
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        number, found = pool.submit(match_elsewhere, make_matcher()).result()
    assert number != os.getpid()
    assert found == ["area", "fast"]
