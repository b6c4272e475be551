"""Filters without a place are found through values, whatever the column holds."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from contrada import Matcher

pytestmark = pytest.mark.filterwarnings("ignore:.*which is never true")  # of other types

COLUMNS: dict[str, Any] = {
    "whole": pa.array([1, 2, None, -3, 2**62, 5, 5, 0]),
    "small": pa.array([1, 2, None, -3, 9, 5, 5, 0], pa.int8()),
    "large": pa.array([1, 2, None, 3, 2**64 - 1, 5, 5, 0], pa.uint64()),
    "real": pa.array([1.5, float("nan"), None, -0.0, float("inf"), 5.0, 5.0, -1e300]),
    "text": pa.array(["ship-1", "ship-2", None, "", "5", "a%", "Ship-1", "xship-1"]),
    "wide": pa.array(["ship-1", "é", None, "", "5", "é", "x", "1"], pa.large_string()),
    "coded": pa.array(["ship-1", "x", None, "", "5", "x", "x", "1"]).dictionary_encode(),
    "truth": pa.array([True, False, None, True, False, True, False, None]),
    "day": pa.array([dt.date(2020, 1, d) for d in range(1, 9)]),
    "nothing": pa.nulls(8),
    "deep": pa.array([{"n": 5, "t": "ship-1"}, {"n": None, "t": "x"}, None, *[{"n": 7}] * 5]),
}
TESTS = [
    *(f"{{}} {operator} {number}" for operator in ("=", "<", "<=", ">", ">=", "<>")
      for number in (5, 2.5, 2**62, 9007199254740993, -1)),
    *(f"{{}} = '{text}'" for text in ("ship-1", "", "5", "a%", "é", "2020-01-03")),
    *(f"{{}} LIKE '{p}'" for p in ("ship-%", "%1", "%hip%", "%", "ship-1", "", "a\\%", "s_ip%")),
    "{} LIKE 'ship-%' AND {} <> 'ship-2'",
    "{} > 1 AND {} < 6",
    "NOT {} > 1",
    "NOT {} LIKE 'ship%'",
    "{} = 5 OR {} = 'ship-1'",
]  # fmt: skip
NAMES = [*COLUMNS, "deep.n", "deep.t", "absent", "deep.absent"]


@pytest.mark.parametrize("name", NAMES)
def test_what_is_found_is_what_evaluation_finds(name: str) -> None:
    matchers = [Matcher(engine, simplify=False) for engine in ("strtree", "scan")]
    for number, test in enumerate(TESTS):
        for matcher in matchers:
            matcher.add(number, test.replace("{}", f'"{name}"'))
    table = pa.table(COLUMNS)
    ours, theirs = (matcher.match_many(table).to_pylist() for matcher in matchers)
    assert ours == theirs
    for row in table.to_pylist():
        ours, theirs = (matcher.match(row) for matcher in matchers)
        assert ours == theirs, row


def test_many_filters_of_one_attribute_are_found_where_most_rows_have_none() -> None:
    random = np.random.default_rng(3)
    speeds = random.uniform(0, 100, 3_000)
    bounds = random.uniform(99, 100, 200)
    matcher = Matcher()
    for number, bound in enumerate(bounds.tolist()):
        matcher.add(number, f"speed > {bound!r}")
    found = matcher.match_many(pa.table({"speed": speeds}))
    rows, numbers = np.nonzero(speeds[:, None] > bounds)
    assert found["event"].to_pylist() == rows.tolist()
    assert found["subscription"].to_pylist() == numbers.tolist()
