"""What is remembered of cells and boxes stays small, whatever neighbours send."""

import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from contrada.overlay.boxes import DIMENSIONS_MAX, Box, Space, _measure
from contrada.overlay.cell_windows import _KEPT_MAX, SIDE, Cells, _unite_few, cover, unite

SPACE = Space((0.0,) * DIMENSIONS_MAX + (1.0,) * DIMENSIONS_MAX)
SAMPLE = 200
MEGABYTE = 10**6


def make_box(number: int) -> Box:
    """Make a box that covers many cells."""
    lows = tuple((number + axis) / 1e6 for axis in range(DIMENSIONS_MAX))
    return (*lows, *(low + 0.9 for low in lows))


def make_cells(number: int) -> Cells:
    """Make a full window of cells, each row another."""
    return Cells(10, number % 900, number // 900, tuple(2**31 + number + j for j in range(SIDE)))


def unite_new(number: int) -> None:
    """Unite the cells of as many neighbours as are kept, who all have sent others."""
    unite(make_cells(_KEPT_MAX * number + n) for n in range(_KEPT_MAX))


@pytest.mark.parametrize(
    ("kept", "ask"),
    [
        (_unite_few, unite_new),
        (cover, lambda number: cover(make_box(number), SPACE)),
        (_measure, lambda number: SPACE.size(make_box(number))),
    ],
    ids=["unite", "cover", "measure"],
)
def test_no_neighbour_can_fill_the_memory_with_what_is_new(
    kept: Any, ask: Callable[[int], object]
) -> None:
    kept.cache_clear()
    tracemalloc.start()
    try:
        for number in range(SAMPLE):
            ask(number)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept.cache_info().currsize == SAMPLE
    assert held / SAMPLE * kept.cache_info().maxsize < 64 * MEGABYTE


def test_the_union_of_many_is_not_kept() -> None:
    _unite_few.cache_clear()
    summaries = [make_cells(number) for number in range(_KEPT_MAX + 1)]
    many = unite(summaries)
    assert _unite_few.cache_info().currsize == 0
    assert many == unite([unite(summaries[:9]), *summaries[9:]])
