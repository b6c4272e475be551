"""Numbers, keys and terms of what objects may visit, and ids as texts in their order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada.broker.fence_book import Fence, FenceBook, RowFences, key_of, subscription_of
from contrada.broker.spelt_ids import (
    is_given,
    read_spelt,
    spell_event_id,
    spell_given,
    spell_id,
)
from contrada.broker.transition_bodies import FenceTerms

ids = st.integers(-(2**63), 2**63 - 1) | st.text(max_size=3)


def order(value: Any) -> Any:
    return (1, 0, value) if isinstance(value, str) else (0, value, "")


@given(ids, ids)
def test_spelt_ids_have_the_order_of_ids_and_read_the_same(one: Any, other: Any) -> None:
    spelt = [spell_id(one), spell_id(other)]
    assert [read_spelt(text) for text in spelt if text is not None] == [one, other]
    first, second = (text.encode() for text in spelt if text is not None)
    assert (first < second) == (order(one) < order(other))


@pytest.mark.parametrize("value", [None, True, 2.5, 2**63, float("nan"), [1], "\ud800"])
def test_what_cannot_be_an_object_is_not_spelt(value: Any) -> None:
    assert spell_id(value) is None


def test_any_id_of_an_event_is_spelt_and_given_numbers_come_last() -> None:
    assert spell_event_id(2.5) == spell_event_id("2.5")
    assert max(spell_event_id("\U0010ffff"), spell_event_id(2**63 - 1)) < spell_given(0)
    assert [is_given(text) for text in (spell_given(3), spell_event_id("2"))] == [True, False]
    assert spell_given(9) < spell_given(10)


@pytest.mark.parametrize("rows", [[30, -7, 4], ["b", "", "aé"]])
def test_rows_are_found_by_number_and_by_key(rows: list[Any]) -> None:
    own = RowFences("zones", 100, pa.array(rows), FenceTerms())
    own.prepare()
    for number, row in enumerate(rows, 100):
        fence = Fence(number, key_of("zones", row), FenceTerms())
        assert own.by_number(number) == own.by_key(fence.key) == fence
        assert subscription_of(fence.key) == "zones"
    assert own.by_number(103) is own.by_number(99) is None
    for other in (key_of("zones", 5), key_of("zones", "x"), key_of("zone", rows[0]), "zones"):
        assert own.by_key(other) is None


def test_a_book_has_what_holds_and_nothing_else() -> None:
    book = FenceBook()
    near = FenceTerms(hysteresis_m=5)
    first, second = Fence(1, "depot", FenceTerms()), Fence(7, "depot", near)
    book.put(first)
    book.put_rows(RowFences("zones", 3, pa.array([10, 11]), near))
    book.put_rows(RowFences("areas", 5, pa.array([10]), FenceTerms(kinds=1)))
    book.put(second)
    assert len(book) == 4
    assert book.by_number(1) is None
    assert book.by_number(7) == book.by_key("depot") == second
    assert book.by_number(4) == book.by_key(key_of("zones", 11))
    kinds, hysteresis_m = book.find_terms(np.array([1, 3, 4, 5, 7]))
    assert kinds.tolist() == [0, 31, 31, 1, 31]
    assert hysteresis_m.tolist() == [0, 5, 5, 0, 5]
    book.remove("depot")
    book.remove_all(["zones"])
    book.remove_all(["none"])
    assert book.by_key("depot") is book.by_number(7) is book.by_number(4) is None
    assert book.by_number(2) is None
    assert list(book.rows) == ["areas"]
