"""Ids that lie in several columns have one order, however few or many of them are new."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada.matching import id_columns, ranked_ids
from contrada.matching.id_columns import IdColumn, make_id_array
from contrada.matching.ranked_ids import RankedIds

PARTS = st.lists(st.lists(st.integers(0, 99), unique=True, max_size=8), max_size=4)


def write_text(number: int) -> str:
    """Write ids whose bytes, characters and lengths have different orders."""
    return "aé\U0001f600z"[number % 4] * (number % 3) + str(number)


@pytest.mark.parametrize("few_max", [0, 2, 10_000])
def test_ranks_are_places_among_all_ids(few_max: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(id_columns, "_BISECTED_MAX", few_max)
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

    check()
