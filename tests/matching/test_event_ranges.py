"""One event against many comparisons at once: what `strtree` answers is what `scan` does."""

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada import Matcher
from contrada.arrays import Positions
from contrada.matching.strtree import event_ranges
from contrada.matching.strtree.event_ranges import EventRanges
from contrada.matching.table import FilterTable
from contrada.model.event import Event

NAMES = ("a", "b", "c.d")
BOUNDS = (-1, 0, 0.5, 1, 2**53, 2**53 + 1, 2**63, -(2**64), 1e300)
OPERATORS = ("<", "<=", ">", ">=", "=", "<>")
VALUES = (
    *BOUNDS,
    None,
    True,
    "1",
    "x",
    float("nan"),
    float("inf"),
    Decimal("0.5"),
    np.float32(0.5),
    np.int8(1),
    [1],
)

comparisons = st.builds(
    lambda name, operator, bound: f'"{name}" {operator} {bound!r}',
    st.sampled_from(NAMES),
    st.sampled_from(OPERATORS),
    st.sampled_from(BOUNDS),
)
filters = st.builds(
    lambda parts, last: " AND ".join([*parts, last]),
    st.lists(comparisons, max_size=3),
    st.one_of(
        comparisons, st.sampled_from(["a IS NULL", "b LIKE '%x'", "NOT c.d = 1", "a + b > 0"])
    ),
)
events = st.dictionaries(st.sampled_from([*NAMES, "c"]), st.sampled_from([*VALUES, {"d": 1}]))


@pytest.mark.parametrize("by_kernel", [False, True])
@given(st.lists(filters, min_size=20, max_size=40), st.lists(events, min_size=1, max_size=5))
def test_many_comparisons_of_one_event_answer_as_one_by_one(
    by_kernel: bool, texts: list[str], asked: list[dict[str, Any]]
) -> None:
    strtree, scan = Matcher("strtree"), Matcher("scan")
    for matcher in (strtree, scan):
        matcher.add_many(pa.table({"filter": texts}))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(event_ranges, "is_numba_loaded", lambda: by_kernel)
        for event in asked:
            assert strtree.match(event) == scan.match(event)


def test_attributes_that_an_event_lacks_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    matcher = Matcher()
    for number in range(1_000):
        matcher.add(number, f"x{number} > 0 AND y{number} < 5")
    asked: list[int] = []
    keep = EventRanges.keep

    def note(self: EventRanges, event: Event, filters: Positions, table: FilterTable) -> Positions:
        asked.append(len(filters))
        return keep(self, event, filters, table)

    monkeypatch.setattr(EventRanges, "keep", note)
    event = {f"x{number}": 1 for number in range(20)} | {f"y{number}": 1 for number in range(10)}
    assert matcher.match(event) == list(range(10))
    assert asked == [20], "the filters whose anchor holds"
