"""Merges in the background: nobody waits for them, and nothing is done twice."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
import shapely

from contrada import Matcher
from contrada.matcher import background
from contrada.matcher.background import BackgroundMerges, MergeClaim
from contrada.matching import merges, segment_rows
from contrada.matching.merges import Merge
from contrada.matching.segment_rows import SegmentRows

PATIENCE_S = 60
RESIDENT = 40
SQUARE = shapely.box(0, 0, 1, 1)
EVENT = {"geometry": "POINT(0.5 0.5)"}


@pytest.fixture(autouse=True)
def _few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment_rows, "LARGE_MIN", 10)
    monkeypatch.setattr(merges, "RECENT_MAX", 8)


def make_matcher(engine: str = "strtree") -> Matcher:
    matcher = Matcher(engine)
    matcher.add_many(pa.table({"geometry": [SQUARE.wkb] * RESIDENT}))
    return matcher


def wait_for_merges() -> None:
    for thread in threading.enumerate():
        if thread.name == "contrada-merge":
            thread.join(PATIENCE_S)


class SlowMerges:
    """Merges in the background wait until they may go on; all are counted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.may_finish = threading.Event()
        self.is_under_way = threading.Event()
        self.in_background: list[Merge] = []
        self.by_writers: list[Merge] = []
        run = Merge.run

        def run_slowly(merge: Merge) -> SegmentRows:
            if threading.current_thread().name == "contrada-merge":
                self.in_background.append(merge)
                self.is_under_way.set()
                assert self.may_finish.wait(PATIENCE_S)
            else:
                self.by_writers.append(merge)
            return run(merge)

        monkeypatch.setattr(Merge, "run", run_slowly)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[SlowMerges]:
    merges = SlowMerges(monkeypatch)
    yield merges
    merges.may_finish.set()
    wait_for_merges()


@pytest.mark.parametrize("engine", ["strtree", "ahs"])
def test_a_writer_does_not_repeat_the_large_merge_that_is_under_way(
    engine: str, slow: SlowMerges
) -> None:
    matcher = make_matcher(engine)
    for id_ in range(RESIDENT // 2 + 1):
        matcher.remove(id_)
    assert slow.is_under_way.wait(PATIENCE_S)
    for id_ in range(100, 300):
        matcher.add(id_, geometry=SQUARE)
    assert slow.by_writers, "so many cannot all wait"
    assert {id(segment) for merge in slow.by_writers for segment in merge.segments}.isdisjoint(
        id(segment) for merge in slow.in_background for segment in merge.segments
    )
    slow.may_finish.set()
    wait_for_merges()
    assert matcher.match(EVENT) == [*range(RESIDENT // 2 + 1, RESIDENT), *range(100, 300)]


def test_what_is_discarded_while_a_merge_is_under_way_stays_gone(slow: SlowMerges) -> None:
    matcher = make_matcher()
    for id_ in range(RESIDENT // 2 + 1):
        matcher.remove(id_)
    assert slow.is_under_way.wait(PATIENCE_S)
    ids = range(100, 100 + RESIDENT)
    others = pa.table({"id": ids, "geometry": [SQUARE.wkb] * RESIDENT})
    matcher.add_many(others, discard=range(RESIDENT - 5))
    left = [*range(RESIDENT - 5, RESIDENT), *ids]
    assert matcher.match(EVENT) == left
    slow.may_finish.set()
    wait_for_merges()
    assert matcher.match(EVENT) == list(matcher) == left


def test_a_merge_that_fails_is_told_once_and_tried_again_later(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    now_s = [0.0]
    monkeypatch.setattr(background, "monotonic", lambda: now_s[0])
    tried: list[Merge] = []

    def fail(merge: Merge) -> SegmentRows:
        tried.append(merge)
        raise MemoryError("no room")

    matcher = make_matcher()
    ids = list(range(RESIDENT))
    with monkeypatch.context() as patch:
        patch.setattr(Merge, "run", fail)
        for id_ in range(100, 400):
            matcher.add(id_, geometry=SQUARE)
            ids.append(id_)
            wait_for_merges()
        assert len(tried) < 300 / merges.RECENT_MAX, "each takes what no other has taken"
        now_s[0] += 1e9
        matcher.remove(0)
        wait_for_merges()
    assert str(matcher._held._merges.failed.error) == "no room"
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "no room" in caplog.text
    assert matcher.match(EVENT) == list(matcher) == ids[1:]
    now_s[0] += 1e9
    matcher.remove(1)
    wait_for_merges()
    assert matcher._held._merges.failed.error is None
    assert matcher._subscriptions.due() is None
    assert matcher.match(EVENT) == list(matcher) == ids[2:]


class _Owner:
    """Somebody who says which merges are due."""

    def __init__(self) -> None:
        self.due: list[Merge] = []

    def find_due(self, _: object) -> Merge | None:
        return self.due.pop() if self.due else None

    def put(self, *_: object) -> None:
        pass


class _Merges(BackgroundMerges):
    """Merges whose first thread is held up after it has found that nothing is due."""

    def __init__(self) -> None:
        self.owner = _Owner()
        self.is_held_up, self.may_go_on = threading.Event(), threading.Event()
        super().__init__(self.owner)

    def _decide(self, turn: Any) -> MergeClaim | None:
        claim = super()._decide(turn)
        if claim is None and not self.is_held_up.is_set():
            self.is_held_up.set()
            assert self.may_go_on.wait(PATIENCE_S)
        return claim


def test_a_thread_that_is_late_to_end_does_not_end_the_turn_of_another(slow: SlowMerges) -> None:
    merges = _Merges()
    merges.wake()
    (late,) = (t for t in threading.enumerate() if t.name == "contrada-merge")
    assert merges.is_held_up.wait(PATIENCE_S)
    columns = make_matcher()._subscriptions
    merges.owner.due.append(Merge(columns._segments, (), columns._make_index))
    merges.wake()
    assert slow.is_under_way.wait(PATIENCE_S)
    merges.may_go_on.set()
    late.join(PATIENCE_S)
    merges.wake()
    assert sum(thread.name == "contrada-merge" for thread in threading.enumerate()) == 1


def test_an_interrupt_while_a_thread_starts_does_not_keep_others_from_starting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def is_interrupted(_: threading.Thread) -> None:
        raise KeyboardInterrupt

    matcher = make_matcher()
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", is_interrupted)
        for id_ in range(100, 100 + merges.RECENT_MAX):
            matcher.add(id_, geometry=SQUARE)
        with pytest.raises(KeyboardInterrupt):
            matcher.add(200, geometry=SQUARE)
    matcher.add(201, geometry=SQUARE)
    wait_for_merges()
    assert matcher._subscriptions.due() is None
    assert len(matcher) == RESIDENT + merges.RECENT_MAX + 2


def test_a_matcher_that_nobody_has_goes_at_once_though_a_merge_is_under_way(
    slow: SlowMerges,
) -> None:
    gc.disable()
    try:
        matcher = make_matcher()
        assert matcher.match(EVENT) == list(range(RESIDENT))
        for id_ in range(100, 101 + merges.RECENT_MAX):
            matcher.add(id_, geometry=SQUARE)
        assert slow.is_under_way.wait(PATIENCE_S)
        held, version = weakref.ref(matcher._held), weakref.ref(matcher._subscriptions)
        del matcher
        assert held() is None and version() is None
    finally:
        gc.enable()
    slow.may_finish.set()
    wait_for_merges()
