"""Options that are True or False: what only looks like one is refused, by name."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from contrada import Matcher, Tracker
from contrada.errors import InvalidInput

EVENT = {"wind": 20}
ROWS = pa.table({"id": ["gale"], "filter": ["wind > 17"]})
CALLS: dict[str, Callable[[Matcher, Any], Any]] = {
    "add, replace": lambda matcher, flag: matcher.add("gale", "wind > 1", replace=flag),
    "add, repair": lambda matcher, flag: matcher.add("b", geometry="POINT(0 0)", repair=flag),
    "add_many, replace": lambda matcher, flag: matcher.add_many(ROWS, replace=flag),
    "add_many, repair": lambda matcher, flag: matcher.add_many(ROWS, repair=flag),
    "add_many, quarantine": lambda matcher, flag: matcher.add_many(ROWS, quarantine=flag),
    "match, repair": lambda matcher, flag: matcher.match(EVENT, repair=flag),
    "subscribers, repair": lambda matcher, flag: matcher.subscribers(EVENT, repair=flag),
    "why, repair": lambda matcher, flag: matcher.why("gale", EVENT, repair=flag),
    "match_many, repair": lambda matcher, flag: matcher.match_many([EVENT], repair=flag),
    "match_many, quarantine": lambda matcher, flag: matcher.match_many(ROWS, quarantine=flag),
    "match_many, batches": lambda matcher, flag: matcher.match_many([EVENT], batches=flag),
    "match_frame, repair": lambda matcher, flag: matcher.match_frame([EVENT], repair=flag),
    "Tracker, quarantine": lambda matcher, flag: Tracker(matcher, quarantine=flag),
    "follow, repair": lambda matcher, flag: Tracker(Matcher()).follow([], repair=flag),
}


@pytest.fixture
def matcher() -> Matcher:
    found = Matcher()
    found.add("gale", "wind > 17")
    return found


@pytest.mark.parametrize("call", CALLS)
def test_a_flag_that_is_neither_true_nor_false_is_refused_and_changes_nothing(
    matcher: Matcher, call: str
) -> None:
    name = call.split(", ")[1]
    for flag in ("no", None, 1, 0.0, np.array([1, 0])):
        with pytest.raises(InvalidInput, match=f"{name} must be True or False, not "):
            CALLS[call](matcher, flag)
    assert list(matcher) == ["gale"]
    assert matcher.match({"wind": 18}) == ["gale"]
    assert matcher.match({"wind": 2}) == []


def test_the_booleans_of_numpy_are_flags(matcher: Matcher) -> None:
    yes: Any = np.True_
    matcher.add("gale", "wind > 30", replace=yes)
    assert matcher.match(EVENT, repair=yes) == []
