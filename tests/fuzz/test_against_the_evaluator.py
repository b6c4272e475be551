"""The matcher against an evaluator of CQL2 that was written from the standard and the docs alone.

Every exact engine, with and without the simplifier, by event and by table, from text and from JSON.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fuzz import runs
from fuzz.comparing import Tally, compare_singles, compare_tables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Compare = Callable[[int, Tally], None]

pytestmark = pytest.mark.filterwarnings("ignore:.*which is never true")  # of other types

GEOS_SHARE_MAX = 0.01  # of pairs that GEOS itself misjudges: some lattice shapes in a thousand


def run(compare: Compare, seeds: Iterable[int], request: pytest.FixtureRequest) -> None:
    """Compare seed by seed until one differs, which is then shown with how to replay it."""
    tally = Tally()
    for seed in seeds:
        compare(seed, tally)
        shown = "\n".join(tally.differences)
        assert not shown, f"{shown}\nReplay it: {runs.command(seed, request)}"
    print(
        f"{tally.pairs:,} pairs, {tally.undecided} undecided, {tally.geos} wrong in GEOS alone, "
        f"{tally.refused} events refused"
    )
    assert tally.pairs > 0
    assert tally.undecided < 0.1 * tally.pairs
    assert tally.geos < GEOS_SHARE_MAX * tally.pairs


def test_single_events_get_the_answers_of_the_evaluator(request: pytest.FixtureRequest) -> None:
    run(compare_singles, runs.few(24), request)


def test_tables_of_events_get_the_answers_of_the_evaluator(request: pytest.FixtureRequest) -> None:
    run(compare_tables, runs.few(18), request)


@pytest.mark.soak
def test_many_single_events_get_the_answers_of_the_evaluator(
    request: pytest.FixtureRequest,
) -> None:
    run(compare_singles, runs.many(request), request)


@pytest.mark.soak
def test_many_tables_of_events_get_the_answers_of_the_evaluator(
    request: pytest.FixtureRequest,
) -> None:
    run(compare_tables, runs.many(request), request)
