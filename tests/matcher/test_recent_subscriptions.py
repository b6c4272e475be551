"""What was added last beside many others is found without an index, as everything else is."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import assume, given, settings

from contrada import Matcher
from contrada.language import read, truth
from contrada.matching import merges, recent, segment_rows
from contrada.model.event import read_event
from matcher.test_engines_agree import (
    event_tables,
    ids_by_row,
    shapely_agrees_with_itself,
    some_changes,
    some_filters,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

pytestmark = pytest.mark.filterwarnings("ignore:.*which is never true")  # of other types


@pytest.fixture(params=[0, 5, 10_000])
def _pairs_max(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Take a single subscription for many, and more or fewer pairs of a batch one by one."""
    monkeypatch.setattr(segment_rows, "LARGE_MIN", 1)
    monkeypatch.setattr(recent, "_PAIRS_MAX", request.param)
    monkeypatch.setattr(recent, "_PAIRS_EACH", 0)


@pytest.mark.usefixtures("_pairs_max")
@pytest.mark.parametrize("engine", ["strtree", "crtree"])
def test_what_was_just_added_is_found_as_it_evaluates(engine: str) -> None:
    @settings(max_examples=25)
    @given(event_tables(), some_filters, some_changes)
    def check(events: pa.Table, filters: list[Any], changes: list[tuple[int, Any]]) -> None:
        assume(shapely_agrees_with_itself(events, [filters, changes]))
        matcher = Matcher(engine)
        matcher.add(-1, "FALSE")
        wanted = dict(enumerate(filters))
        for id_, filter_ in wanted.items():
            matcher.add(id_, filter_, subscriber="uv"[id_ % 2])
        compare(matcher, wanted, events)
        for id_, filter_ in changes:
            if filter_ is not None:
                matcher.add(id_, filter_, replace=True, subscriber="uv"[id_ % 2])
                wanted[id_] = filter_
            elif id_ in wanted:
                matcher.remove(id_)
                del wanted[id_]
        assert matcher.stats()["segments"] == 1
        compare(matcher, wanted, events)

    check()


def compare(matcher: Matcher, wanted: Mapping[int, Any], events: pa.Table) -> None:
    rows = events.to_pylist()
    tests = {id_: read(json.dumps(filter_)) for id_, filter_ in sorted(wanted.items())}
    asked = [read_event(row) for row in rows]
    found = [[id_ for id_ in tests if truth(tests[id_], event) is True] for event in asked]
    assert [matcher.match(row) for row in rows] == found
    assert ids_by_row(matcher.match_many(events, threads=1), len(rows)) == found
    assert [matcher.subscribers(row) for row in rows] == [
        sorted({"uv"[id_ % 2] for id_ in ids}) for ids in found
    ]
    assert list(matcher) == [-1, *tests]


def test_few_that_were_added_to_many_are_merged_once_they_are_many() -> None:
    squares = [shapely.box(i % 100, i // 100, i % 100 + 1, i // 100 + 1) for i in range(3_000)]
    matcher = Matcher()
    matcher.add_many(pa.table({"geometry": shapely.to_wkb(squares[:1_000])}))
    for id_, square in enumerate(squares[1_000:], 1_000):
        matcher.add(id_, geometry=square)
        if id_ % 300 == 0:
            assert matcher.match({"geometry": square.centroid}) == [id_]
    for id_ in range(0, 3_000, 2):
        matcher.remove(id_)
    points = pa.table({"geometry": shapely.to_wkb(shapely.centroid(squares))})
    pairs = matcher.match_many(points)
    assert pairs["event"].to_pylist() == list(range(1, 3_000, 2))
    assert pairs["subscription"].to_pylist() == list(range(1, 3_000, 2))
    for thread in threading.enumerate():
        if thread.name == "contrada-merge":
            thread.join()
    assert matcher._subscriptions.due() is None
    assert len(matcher._subscriptions._recent) <= merges.RECENT_MAX
    assert matcher.match_many(points).equals(pairs)


def test_few_that_have_very_many_vertices_are_merged_like_many() -> None:
    corners = np.linspace(0, 2 * np.pi, 20_000, endpoint=False)
    circle = np.stack([np.cos(corners), np.sin(corners)], axis=1)
    squares = shapely.to_wkb([shapely.box(i, 5, i + 1, 6) for i in range(1_000)])
    matcher = Matcher()
    matcher.add_many(pa.table({"geometry": squares}))
    for number in range(20):
        matcher.add(2_000 + number, geometry=shapely.Polygon(circle + number))
    for thread in threading.enumerate():
        if thread.name == "contrada-merge":
            thread.join()
    assert len(matcher._subscriptions._recent) <= 13
    assert matcher.match({"geometry": shapely.Point(1, 1)}) == [2_001]


def test_what_waits_weighs_as_much_as_its_members() -> None:
    matcher = Matcher()
    squares = shapely.to_wkb([shapely.box(i, 5, i + 1, 6) for i in range(1_000)])
    matcher.add_many(pa.table({"geometry": squares}))
    for number in range(40):
        matcher.add(2_000 + number, geometry=shapely.Point(number, 0).buffer(1, 10 * number + 1))
        matcher.add(3_000 + number, f"n > {number}")
        if number % 3 == 0:
            matcher.remove(2_000 + number // 2)
    waiting = matcher._subscriptions._recent
    assert waiting.weight == sum(member.weight for member in waiting.members.values())
    assert waiting.weight > 40 * 16 + 26
    assert waiting.geometry_attributes == {"geometry"}
