"""The first cell common to a row and an item, against plain sets."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from contrada.kernels.owners import first_common

sets = st.lists(st.sets(st.integers(0, 9), max_size=5), min_size=1, max_size=6)


@given(sets, sets)
def test_the_first_common_number_is_that_of_the_sets(
    rows: list[set[int]], items: list[set[int]]
) -> None:
    pairs = [(r, i) for r in range(len(rows)) for i in range(len(items))]
    found = first_common(
        np.array([r for r, _ in pairs]),
        np.array([i for _, i in pairs]),
        *(np.array(part, np.int64) for part in flatten(rows)),
        *(np.array(part, np.int64) for part in flatten(items)),
    )
    assert found.tolist() == [min(rows[r] & items[i], default=-1) for r, i in pairs]


def flatten(lists: list[set[int]]) -> tuple[list[int], list[int]]:
    starts = [0]
    numbers: list[int] = []
    for members in lists:
        numbers += sorted(members)
        starts.append(len(numbers))
    return starts, numbers
