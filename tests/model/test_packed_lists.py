"""Lists in arrays, against lists of lists."""

from unittest.mock import patch

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from contrada.model import packed_lists
from contrada.model.packed_lists import (
    are_equal_lists,
    find_first_equals,
    join_lists,
    list_steps,
    reduce_lists,
    repeat,
    split_bytes,
    starts_of,
    take_lists,
)

LISTS = st.lists(st.lists(st.integers(0, 2), max_size=3), max_size=8)


def starts_of_lists(lists: list[list[int]]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return starts_of(np.array([len(each) for each in lists], np.int64))


def members_of(lists: list[list[int]]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array([member for each in lists for member in each], np.int64)


@given(LISTS, st.data(), st.integers(1, 9))
def test_lists_are_taken_with_their_members(
    lists: list[list[int]], data: st.DataObject, at_once: int
) -> None:
    numbers = data.draw(st.lists(st.integers(0, len(lists) - 1))) if lists else []
    with patch.object(packed_lists, "_AT_ONCE", at_once):
        taken, at = take_lists(starts_of_lists(lists), np.array(numbers, np.int64))
    wanted = [lists[number] for number in numbers]
    assert taken.tolist() == starts_of_lists(wanted).tolist()
    assert members_of(lists)[at].tolist() == members_of(wanted).tolist()


@given(LISTS, st.data())
def test_lists_are_equal_if_all_their_members_are(
    lists: list[list[int]], data: st.DataObject
) -> None:
    numbers = st.integers(0, len(lists) - 1)
    pairs = data.draw(st.lists(st.tuples(numbers, numbers))) if lists else []
    a, b = np.array(pairs, np.int64).reshape(-1, 2).T
    equal = are_equal_lists(starts_of_lists(lists), members_of(lists), a, b)
    assert equal.tolist() == [lists[i] == lists[j] for i, j in pairs]


@given(LISTS, LISTS)
def test_pieces_of_lists_are_joined(first: list[list[int]], second: list[list[int]]) -> None:
    joined = join_lists([starts_of_lists(first), starts_of_lists(second)])
    assert joined.tolist() == starts_of_lists(first + second).tolist()


@given(st.lists(st.binary(max_size=3)))
def test_bytes_are_split_where_they_were_joined(values: list[bytes]) -> None:
    joined = np.frombuffer(b"".join(values), np.uint8)
    starts = starts_of(np.array([len(value) for value in values], np.int64))
    assert split_bytes(joined, starts).tolist() == values


@given(st.lists(st.integers(0, 5)))
def test_the_first_of_equal_keys_is_found(keys: list[int]) -> None:
    firsts = find_first_equals(np.array(keys, np.uint64))
    assert firsts.tolist() == [keys.index(key) for key in keys]


@given(st.lists(st.integers(0, 5)), st.integers(1, 12))
def test_repeating_in_steps_is_repeating(counts: list[int], at_once: int) -> None:
    values = np.arange(len(counts)) * 7
    with patch.object(packed_lists, "_AT_ONCE", at_once):
        repeated = repeat(values, np.array(counts, np.int64))
    assert repeated.tolist() == np.repeat(values, counts).tolist()


@given(st.lists(st.integers(0, 9)), st.integers(1, 12))
def test_steps_weigh_no_more_than_they_may_or_are_one_member(
    weights: list[int], weight_max: int
) -> None:
    steps = list(list_steps(np.array(weights, np.int64), weight_max))
    assert [at for first, last in steps for at in range(first, last)] == list(range(len(weights)))
    for first, last in steps:
        assert sum(weights[first:last]) <= weight_max or last - first == 1


@given(st.lists(st.integers(1, 5)), st.integers(1, 12))
def test_reducing_in_steps_is_reducing(counts: list[int], at_once: int) -> None:
    members = np.arange(sum(counts)) * 7 % 11
    begins = starts_of(np.array(counts, np.int64))[:-1]
    with patch.object(packed_lists, "_AT_ONCE", at_once):
        reduced = reduce_lists(np.minimum, members, begins)
    wanted = np.minimum.reduceat(members, begins) if counts else members
    assert reduced.tolist() == wanted.tolist()
