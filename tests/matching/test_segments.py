"""Versions of a set of subscriptions: what they hold, what they share, and what they cost."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import log2
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from contrada.arrays import Positions
from contrada.matching import merges, segment_rows
from contrada.matching.columns import EventBatch
from contrada.matching.engine import Index
from contrada.matching.id_columns import make_id_array
from contrada.matching.merges import Merge
from contrada.matching.segment_rows import SegmentRows
from contrada.matching.segments import SubscriptionSet
from contrada.matching.subscription_columns import pack_subscriptions
from contrada.model.event import Event
from contrada.model.expression import Literal
from contrada.model.subscription import Filter, Id, Predicate, Subscription

ALWAYS = Predicate(Literal(True), (Filter(()),))
EVENT = Event({})
BATCH = EventBatch({}, 2, {})


class EverythingIndex:
    """An index for which every event satisfies every subscription; it counts what is asked."""

    built: list[int]
    prepared_like: list[list[Index]]
    tried: list[int]

    def __init__(self, subscriptions: Sequence[Subscription]) -> None:
        self._length = len(subscriptions)
        self.built.append(self._length)

    def find(self, event: Event, groups: Positions) -> Positions:
        found: dict[int, int] = {}
        for position, group in enumerate(groups.tolist()):
            if group >= 0 and group not in found:
                self.tried.append(position)
                found[group] = position
        return np.array(list(found.values()), np.int64)

    def match_batch(self, batch: EventBatch) -> tuple[Positions, Positions]:
        rows, positions = np.divmod(np.arange(batch.length * self._length), max(self._length, 1))
        return rows, positions

    def prepare(self, like: Sequence[Index]) -> None:
        self.prepared_like.append(list(like))

    def without(self, positions: Collection[int]) -> EverythingIndex:
        return self

    def breadth(self) -> int:
        return self._length

    def stats(self) -> dict[str, int]:
        return {"held": self._length}


@pytest.fixture(autouse=True)
def _start_counting() -> None:
    EverythingIndex.built, EverythingIndex.tried = [], []
    EverythingIndex.prepared_like = []


def empty_set() -> SubscriptionSet:
    return SubscriptionSet(EverythingIndex)


def subscription(id_: Id, subscriber: Id | None = None) -> Subscription:
    return Subscription(id_, ALWAYS, subscriber)


def changed(
    subscriptions: SubscriptionSet, removed: Sequence[Id], found: Sequence[Subscription] = ()
) -> SubscriptionSet:
    return subscriptions.changed(make_id_array(removed), pack_subscriptions(found))


def added(subscriptions: SubscriptionSet, ids: Sequence[Id]) -> SubscriptionSet:
    return changed(subscriptions, (), [subscription(id_) for id_ in ids])


def pairs(subscriptions: SubscriptionSet) -> list[tuple[int, Id]]:
    rows, ranks = subscriptions.match_batch(BATCH)
    ids = subscriptions.ids.to_pylist()
    return [(row, ids[rank]) for row, rank in zip(rows.tolist(), ranks.tolist(), strict=True)]


# Whatever happens


class Versions(RuleBasedStateMachine):
    """A set of subscriptions beside a dictionary of id and subscriber."""

    def __init__(self) -> None:
        super().__init__()
        EverythingIndex.built, EverythingIndex.tried = [], []
        self.current = empty_set()
        self.model: dict[Id, Id | None] = {}
        self.held: list[tuple[SubscriptionSet, dict[Id, Id | None]]] = []

    def change(self, removed: Sequence[Id], found: Sequence[Subscription]) -> None:
        self.held.append((self.current, dict(self.model)))
        self.current = changed(self.current, removed, found)
        for id_ in removed:
            self.model.pop(id_, None)
        self.model.update({s.id: s.subscriber for s in found})

    @rule(first=st.integers(0, 30), count=st.integers(0, 12), who=st.sampled_from([None, "u", 1]))
    def add(self, first: int, count: int, who: Id | None) -> None:
        ids = [id_ for id_ in range(first, first + count) if id_ not in self.model]
        self.change((), [subscription(id_, who) for id_ in ids])

    @rule(ids=st.sets(st.integers(0, 40), min_size=1, max_size=6), who=st.sampled_from(["v", "w"]))
    def replace(self, ids: set[int], who: str) -> None:
        self.change(sorted(ids), [subscription(id_, who) for id_ in sorted(ids)])

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        self.change([data.draw(st.sampled_from(sorted(self.model, key=str)))], [])

    @rule(ids=st.sets(st.integers(0, 40), max_size=30))
    def remove_several_of_which_some_are_unknown(self, ids: set[int]) -> None:
        self.change(sorted(ids), [])

    @invariant()
    def the_current_version_is_the_model(self) -> None:
        check_version(self.current, self.model)

    def teardown(self) -> None:
        for version, model in self.held:
            check_version(version, model)


def check_version(version: SubscriptionSet, model: dict[Id, Id | None]) -> None:
    ids = sorted(model)
    assert len(version) == len(model)
    assert {s.id: s.subscriber for s in version} == model
    assert version.match(EVENT) == ids
    whom = {who for who in model.values() if who is not None}
    assert version.subscribers(EVENT) == sorted(whom, key=lambda who: (isinstance(who, str), who))
    assert pairs(version) == [(row, id_) for row in (0, 1) for id_ in ids]
    listed = version.ids.to_pylist()
    assert listed == sorted(set(listed))
    for kind, type_ in ((str, pa.string()), (int, pa.int64())):
        told = {id_: who for id_, who in model.items() if who is None or isinstance(who, kind)}
        if len(told) == len(model):
            column = version.subscriber_column(type_).to_pylist()
            by_rank = dict(zip(listed, column, strict=True))
            assert {id_: by_rank[id_] for id_ in ids} == model
    for id_ in range(-1, 43):
        found = version.get(id_)
        assert (None if found is None else found.id) == (id_ if id_ in model else None)
    assert version.stats()["subscriptions"] == len(model)


TestVersions = Versions.TestCase


class MergedVersions(Versions):
    """Merges that are carried out at any later time; few rows are large, fewer wait for columns."""

    def __init__(self) -> None:
        super().__init__()
        self.current = SubscriptionSet(EverythingIndex, is_exact=True)
        self.merges: list[tuple[Merge, SegmentRows]] = []

    @rule()
    def begin_a_merge(self) -> None:
        beside = [merge for merge, _ in self.merges]
        merge = self.current.due(beside) or self.current.overdue(beside)
        if merge is not None:
            assert not any(overlap(merge, other) for other in beside)
            self.merges.append((merge, merge.run()))

    @precondition(lambda self: self.merges)
    @rule(data=st.data())
    def finish_a_merge(self, data: st.DataObject) -> None:
        number = data.draw(st.integers(0, len(self.merges) - 1))
        self.held.append((self.current, dict(self.model)))
        self.current = self.current.merged(*self.merges.pop(number))

    @rule()
    def merge_all_that_is_due(self) -> None:
        while (merge := self.current.due()) is not None:
            self.current = self.current.merged(merge, merge.run())
        assert self.current.stats()["segments"] <= 2 + log2(len(self.current) + 1)


def overlap(merge: Merge, other: Merge) -> bool:
    taken = {id(segment.rows.columns) for segment in other.segments} | set(map(id, other.recent))
    own = {id(segment.rows.columns) for segment in merge.segments} | set(map(id, merge.recent))
    return not taken.isdisjoint(own)


def test_versions_are_right_whenever_a_merge_is_carried_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(segment_rows, "LARGE_MIN", 8)
    monkeypatch.setattr(merges, "RECENT_MAX", 64)  # four of those without a box
    run_state_machine_as_test(MergedVersions, settings=settings(max_examples=60))


def test_what_a_merge_takes_is_left_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment_rows, "LARGE_MIN", 8)
    subscriptions = changed(added(empty_set(), range(20)), range(12))
    large = subscriptions.due()
    assert large is not None and len(large.segments[0].is_alive) == 20
    for id_ in range(20, 24):
        subscriptions = subscriptions.changed((), [subscription(id_)], [large])
    assert subscriptions.due([large]) is None
    assert subscriptions.stats()["segments"] == 2, "the small ones have been merged meanwhile"
    merged = subscriptions.merged(large, large.run())
    assert merged.match(EVENT) == subscriptions.match(EVENT) == list(range(12, 24))


def test_what_is_overdue_are_the_youngest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment_rows, "LARGE_MIN", 2)
    monkeypatch.setattr(merges, "_SEGMENTS_MAX", 4)
    subscriptions = changed(added(empty_set(), range(20)), range(12))
    for id_ in range(20, 28, 2):
        subscriptions = added(subscriptions, [id_, id_ + 1])
    merge = subscriptions.overdue()
    assert merge is not None and [len(s.is_alive) for s in merge.segments] == [2, 2]
    assert subscriptions.overdue([merge]) is None


# What it costs


def test_n_single_additions_index_n_log_n_rows_in_all() -> None:
    count = 600
    subscriptions = empty_set()
    for id_ in range(count):
        subscriptions = added(subscriptions, [id_])
        assert len(subscriptions.match(EVENT)) == id_ + 1
        assert subscriptions.stats()["segments"] <= 2 + log2(id_ + 1)
    assert len(EverythingIndex.built) <= count
    assert sum(EverythingIndex.built) <= 4 * count * log2(count)


def test_nothing_is_indexed_before_it_is_asked() -> None:
    subscriptions = empty_set()
    for id_ in range(100):
        subscriptions = changed(added(subscriptions, [id_]), [id_ - 3])
    assert subscriptions.get(99) is not None
    assert len(subscriptions) == 3
    assert EverythingIndex.built == []
    subscriptions.match(EVENT)
    assert sum(EverythingIndex.built) <= 2 * 3


def test_a_removal_indexes_nothing_until_most_rows_are_gone() -> None:
    subscriptions = added(empty_set(), range(100))
    subscriptions.match(EVENT)
    for id_ in range(50):
        subscriptions = changed(subscriptions, [id_])
        assert subscriptions.match(EVENT) == list(range(id_ + 1, 100))
    assert EverythingIndex.built == [100]
    subscriptions = changed(subscriptions, [50])
    assert subscriptions.match(EVENT) == list(range(51, 100))
    assert EverythingIndex.built == [100, 49]


def test_replacing_over_and_over_neither_grows_nor_costs_more_than_adding() -> None:
    subscriptions = added(empty_set(), range(64))
    for round_ in range(300):
        id_ = round_ * 7 % 64
        subscriptions = changed(subscriptions, [id_], [subscription(id_, round_)])
        assert len(subscriptions.match(EVENT)) == 64
        assert len(subscriptions.ids) == 64
        assert subscriptions.stats()["held"] <= 2 * 64 + 1
    assert sum(EverythingIndex.built) <= 4 * 364 * log2(364)


def test_a_batch_of_additions_leaves_a_much_larger_segment_alone() -> None:
    subscriptions = added(empty_set(), range(1_000))
    subscriptions.match(EVENT)
    subscriptions = added(subscriptions, range(1_000, 1_100))
    subscriptions.match(EVENT)
    assert EverythingIndex.built == [1_000, 100]


def test_versions_share_the_indexes_of_what_did_not_change() -> None:
    before = added(empty_set(), range(1_000))
    after = added(before, [1_000])
    after.match(EVENT)
    before.match(EVENT)
    assert EverythingIndex.built == [1_000, 1]


# Whom to forward to


def test_a_subscriber_is_tried_once_even_across_segments() -> None:
    subscriptions = empty_set()
    for first in (0, 1_000, 1_100):
        batch: list[Any] = [subscription(id_, "uv"[id_ % 2]) for id_ in range(first, first + 10)]
        batch += [subscription(first + 10 + i) for i in range(1_000 if first == 0 else 10)]
        subscriptions = changed(subscriptions, (), batch)
    assert subscriptions.subscribers(EVENT) == ["u", "v"]
    assert EverythingIndex.tried == [0, 1]


def test_what_was_removed_is_not_tried() -> None:
    subscriptions = changed(added(empty_set(), range(10)), [3, 4])
    assert subscriptions.match(EVENT) == [0, 1, 2, 5, 6, 7, 8, 9]
    assert EverythingIndex.tried == [0, 1, 2, 5, 6, 7, 8, 9]


def test_one_whole_segment_is_not_copied() -> None:
    version = added(empty_set(), range(50))
    columns = version.living()
    assert columns is version._segments[0].rows.columns
    assert [s.id for s in version.changed(make_id_array([7])).living()] == [
        id_ for id_ in range(50) if id_ != 7
    ]
    assert len(empty_set().living()) == 0


def test_subscribers_of_both_kinds_are_texts_in_one_column() -> None:
    both = [subscription(1, "a"), subscription(2, 7), subscription(3)]
    version = empty_set().changed((), both)
    assert version.subscriber_column(pa.string()).to_pylist() == ["a", "7", None]
    whole = version.changed(make_id_array([1]))
    assert whole.subscriber_column(pa.int64()).drop_null().to_pylist() == [7]
