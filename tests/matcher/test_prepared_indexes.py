"""What readers need of a large set is made before they see it."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import shapely

from contrada import Matcher
from contrada.matcher.background import BackgroundMerges
from contrada.matching import checks, merges, ranked_ids, segment_rows
from contrada.threads import once

SQUARE = "POLYGON((0 0, 4 0, 4 4, 0 4, 0 0))"
FILTERS = [
    "speed > 3",
    "speed < 7.5 AND name <> 'b'",
    "speed = 5",
    "name = 'a'",
    "name LIKE 'a%'",
    f"S_INTERSECTS(geometry, {SQUARE}) AND speed >= 2 AND NOT S_TOUCHES(geometry, {SQUARE})",
    f"S_WITHIN(geometry, {SQUARE})",
    f"S_TOUCHES(geometry, {SQUARE})",
    f"ehInside(geometry, {SQUARE})",
    "dwithin(geometry, POINT(1 1), 50)",
]
EVENT = {"speed": 5, "name": "a", "geometry": "POINT(1 1)"}
POINTS = pa.table(
    {"speed": [5, 6], "name": ["a", "b"], "geometry": shapely.to_wkb(shapely.points([1, 9], 1))}
)
LINES = [shapely.LineString([(1, 1), (i, 2)]) for i in range(2, 22)]
SHAPES = pa.table({"speed": [5] * 20, "name": ["a"] * 20, "geometry": shapely.to_wkb(LINES)})
ELSEWHERE = {
    "EventBatch",
    "GeometryColumn",
    "Codes",
    "MatchRun",
    "RankedIds",
    "Segment",
    "SubscriptionSet",
    "SubscriptionRows",
}


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count what is made when it is first asked for, and is not an event's or a version's own."""
    monkeypatch.setattr(segment_rows, "LARGE_MIN", 4)
    monkeypatch.setattr(merges, "RECENT_MAX", 4)
    counts: Counter[str] = Counter()
    make_alone, make_check = once._make_alone, checks._make_check

    def count(self: once[Any], instance: object, key: Any) -> None:
        kind = type(instance).__name__
        if kind not in ELSEWHERE:
            counts[f"{kind}.{self._name}"] += 1
        make_alone(self, instance, key)

    def count_check(kind: Any, *others: Any) -> checks.Check:
        if kind[0] in {"range", "spatial"}:
            counts[f"check {kind}"] += 1
        return make_check(kind, *others)

    monkeypatch.setattr(once, "_make_alone", count)
    monkeypatch.setattr(checks, "_make_check", count_check)
    return counts


def wait_for_merges() -> None:
    for thread in threading.enumerate():
        if thread.name == "contrada-merge":
            thread.join()


@pytest.mark.parametrize("are_texts", [False, True])
def test_the_first_who_asks_makes_nothing_that_the_next_need_not_make(
    are_texts: bool, made: Counter[str]
) -> None:
    ids = [f"i{-i}" if are_texts else -i for i in range(len(FILTERS))]
    matcher = Matcher()
    matcher.add_many(pa.table({"id": ids, "filter": FILTERS}))
    assert made
    made.clear()
    found = matcher.match(EVENT)
    assert sorted(found) == found == matcher.match_many(POINTS[:1])["subscription"].to_pylist()
    assert ids[0] in matcher
    assert not made


def test_what_was_asked_before_a_merge_is_made_by_it(made: Counter[str]) -> None:
    matcher = Matcher()
    matcher.add_many(pa.table({"filter": FILTERS}))
    before = matcher.match_many(SHAPES, threads=1)
    assert made["_RelationTree._meeting_trees"], "lines ask for them, points do not"
    for id_ in range(100, 110):
        matcher.add(id_, f"S_TOUCHES(geometry, {SQUARE})")
    wait_for_merges()
    assert matcher.stats()["segments"] == 1
    made.clear()
    assert matcher.match_many(SHAPES, threads=1).num_rows == before.num_rows
    assert not made


def test_polygons_alone_pay_for_nothing_else(made: Counter[str]) -> None:
    matcher = Matcher()
    matcher.add_many(pa.table({"geometry": [shapely.box(i, 0, i + 1, 1).wkb for i in range(9)]}))
    assert matcher.match(EVENT) == [0, 1]
    of_ids = {"IdColumn.order", "IdColumn.ranks", "IdColumn.in_order", "IdColumn._sorted"}
    assert {name for name in made if not name.startswith("SegmentRows.")} <= of_ids


def test_a_change_of_what_was_opened_leaves_its_index_to_the_first_reader(
    made: Counter[str], tmp_path: Path
) -> None:
    saved = Matcher()
    saved.add_many(pa.table({"filter": FILTERS}))
    saved.save(tmp_path / "set.contrada")
    opened = Matcher.open(tmp_path / "set.contrada")
    made.clear()
    opened.add(100, "speed = 5")
    opened.remove(3)
    assert not made["SegmentRows.index"]
    opened.add_many(pa.table({"id": range(200, 300), "filter": ["speed = 5"] * 100}))
    assert made["SegmentRows.index"] >= 1, "of what is new and large"
    saved.add_many(pa.table({"id": range(200, 300), "filter": ["speed = 5"] * 100}))
    assert opened.match(EVENT) == sorted({*saved.match(EVENT), 100} - {3})


def test_the_ids_of_several_large_segments_are_ranked_before_readers_see_them(
    monkeypatch: pytest.MonkeyPatch, made: Counter[str]
) -> None:
    monkeypatch.setattr(ranked_ids, "_MANY_MIN", 4)
    monkeypatch.setattr(BackgroundMerges, "wake", lambda _: None)  # two segments stay two
    matcher = Matcher()
    for first, count in ((0, 100), (1_000, 8)):
        ids = [f"i{-i}" for i in range(first, first + count)]
        matcher.add_many(pa.table({"id": ids, "filter": ["speed = 5"] * count}))
    assert matcher.stats()["segments"] == 2
    ranked = matcher._subscriptions._segment_ids
    assert {"ids", "_ranks_of_others"} <= ranked.__dict__.keys()
    matcher.add("j", "speed = 5")
    assert matcher._subscriptions._segment_ids is ranked
