"""Ids that lie in several columns have one order, however few or many of them are new."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from contrada import Matcher
from contrada.deferred import compute as pc
from contrada.matching import id_columns, ranked_ids, segment_rows
from contrada.matching.id_columns import IdColumn, make_id_array
from contrada.matching.ranked_ids import RankedIds, VersionIds

PARTS = st.lists(st.lists(st.integers(0, 99), unique=True, max_size=8), max_size=4)


def write_text(number: int) -> str:
    """Write ids whose bytes, characters and lengths have different orders."""
    return "aé\U0001f600z"[number % 4] * (number % 3) + str(number)


@pytest.mark.parametrize("few_max", [0, 2, 10_000])
def test_ranks_are_places_among_all_ids(few_max: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(id_columns, "_FEW_MAX", few_max)
    monkeypatch.setattr(ranked_ids, "_SLICES_MAX", few_max)

    @given(PARTS)
    def check(parts: list[list[int]]) -> None:
        for kind in (int, write_text):
            lists = [[kind(number) for number in part] for part in parts]
            type_ = make_id_array([kind(0)]).type
            ranked = RankedIds([IdColumn(pa.array(ids, type_)) for ids in lists])
            in_order = sorted({id_ for ids in lists for id_ in ids})
            assert ranked.ids.to_pylist() == in_order
            for number, ids in enumerate(lists):
                positions = np.arange(len(ids))[::-1]
                ranks = ranked.ranks(number, positions).tolist()
                assert [in_order[rank] for rank in ranks] == ids[::-1]
            if lists:
                check_version(lists, type_)

    check()


def check_version(lists: list[list[Any]], type_: pa.DataType) -> None:
    *segments, recent = [IdColumn(pa.array(ids, type_)) for ids in [*lists, []]]
    for column in [recent, *segments[-1:]]:
        ranked = VersionIds(RankedIds(segments), column)
        in_order = sorted({id_ for ids in lists for id_ in ids})
        assert ranked.ids.to_pylist() == in_order
        for number, own in enumerate([*segments, column]):
            ranks = ranked.ranks(number, np.arange(len(own))).tolist()
            assert [in_order[rank] for rank in ranks] == own.array.to_pylist()


@given(st.lists(st.integers(0, 99), unique=True), st.lists(st.integers(0, 99), unique=True))
def test_many_texts_are_found_as_one_is(known: list[int], asked: list[int]) -> None:
    column = IdColumn(pa.array(map(write_text, known), pa.large_string()))
    texts = pa.array(map(write_text, asked), pa.large_string())
    one_by_one = [column.find(text) for text in texts.to_pylist()]
    assert column.find_many(texts).tolist() == one_by_one
    few = column.count_before(texts[:3]).tolist()
    assert column.count_before(texts).tolist()[:3] == few


def test_match_many_after_one_add_sorts_only_what_was_added_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(segment_rows, "LARGE_MIN", 30)
    matcher = Matcher()
    for letter, count in (("b", 400), ("a", 60)):
        ids = [f"{letter}{number * 7 % count}" for number in range(count)]
        shapes = shapely.to_wkb([shapely.box(0, 0, 1, 1)] * count)
        matcher.add_many(pa.table({"id": ids, "geometry": shapes}))
    for number in range(8):
        matcher.add(f"c{number}", geometry="POINT(5 5)")
    events = pa.table({"geometry": shapely.to_wkb([shapely.Point(0.5, 0.5)])})
    assert matcher.match_many(events).num_rows == 460
    sorted_lengths: list[int] = []
    sort = pc.array_sort_indices

    def count_sorted(ids: pa.Array, *args: Any) -> pa.Array:
        sorted_lengths.append(len(ids))
        return sort(ids, *args)

    monkeypatch.setattr(pc, "array_sort_indices", count_sorted)
    matcher.add("a0x", geometry="POINT(5 5)")
    found = matcher.match_many(events)["subscription"].to_pylist()
    assert found == sorted(found)
    assert len(found) == 460
    assert matcher.stats()["segments"] == 2
    assert sum(sorted_lengths) <= 9
