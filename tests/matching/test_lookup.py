"""The lookup table: it tiles the universe, balances the load, and selects as Algorithm 1 does."""

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import Generator
from shapely.geometry.base import BaseGeometry

from contrada.matching.grid import Grid
from contrada.matching.lookup import (
    LookupTable,
    Weights,
    loads,
    make_lookup_table,
    pack,
    split,
    weigh,
)
from contrada.model.geometry import as_array
from strategies import build, choose_kind, seeded_pick

UNIVERSE = (0.0, 0.0, 8.0, 8.0)
LEVEL = 5


def random_weights(rng: Generator, level: int = LEVEL) -> Weights:
    """Weights with a hot corner."""
    codes = np.unique(
        np.concatenate([rng.integers(0, 4**level, 200), rng.integers(0, 4 ** (level - 2), 200)])
    )
    return Weights(level, codes, rng.exponential(1.0, len(codes)))


def random_table(seed: int, partitions: int = 7) -> LookupTable:
    return make_lookup_table(UNIVERSE, random_weights(np.random.default_rng(seed)), partitions)


def select_workers(table: LookupTable, geometry: BaseGeometry) -> set[int]:
    """Algorithm 1 of the AHS paper, word for word, with quadkeys as texts."""

    def quadkey(start: int, level: int) -> str:
        code = start >> 2 * (table.level - level)
        return "".join(str((code >> 2 * digit) & 3) for digit in reversed(range(level)))

    lowest = int(table.levels.max())
    grid = Grid(max(lowest, 1), table.universe)
    shift = 2 * (table.level - max(lowest, 1))
    cells = grid.decompose(as_array([geometry]))
    qs = [
        quadkey(start << shift, level)
        for start, level in zip(cells.starts.tolist(), cells.levels.tolist(), strict=True)
    ]
    workers = set()
    for number, (start, level) in enumerate(
        zip(table.starts.tolist(), table.levels.tolist(), strict=True)
    ):
        worker_q = quadkey(start, level)
        for q in qs:
            if q.startswith(worker_q) or worker_q.startswith(q):
                workers.add(number)
                break
    return workers


@given(st.integers(0, 10**6), st.floats(0.1, 100))
def test_prefixes_tile_the_universe_and_none_above_the_finest_level_is_too_heavy(
    seed: int, theta: float
) -> None:
    weights = random_weights(np.random.default_rng(seed))
    prefixes = split(weights, theta)
    end = 0
    for start, level, weight in prefixes:
        assert start == end
        end = start + 4 ** (LEVEL - level)
        inside = (weights.codes >= start) & (weights.codes < end)
        assert weight == pytest.approx(weights.weights[inside].sum())
        assert weight <= theta or level == LEVEL
    assert end == 4**LEVEL
    assert sum(weight for _, _, weight in prefixes) == pytest.approx(weights.total())


@given(st.integers(0, 10**6))
def test_selection_is_that_of_algorithm_1(seed: int) -> None:
    table = random_table(seed)
    pick = seeded_pick(seed)
    geometry = shapely.transform(build(pick, choose_kind(pick)), lambda xy: xy * 0.7 + 0.3)
    lists = table.select(table.grid().decompose(as_array([geometry])))
    assert set(lists.prefixes.tolist()) == select_workers(table, geometry)


@given(st.integers(0, 10**6), st.integers(1, 16))
def test_every_prefix_has_as_many_partitions_as_shares(seed: int, count: int) -> None:
    weights = np.random.default_rng(seed).exponential(1.0, 30)
    weights[0] = weights.sum()
    fair = weights.sum() / count
    replicas = pack(weights.tolist(), count, fair)
    assert len(replicas) == len(weights)
    for weight, chosen in zip(weights, replicas, strict=True):
        assert len(set(chosen)) == len(chosen) == min(count, max(1, int(np.ceil(weight / fair))))
        assert set(chosen) <= set(range(count))


@pytest.mark.parametrize("count", [2, 4, 16, 64])
def test_the_heaviest_partition_is_hardly_heavier_than_the_mean(count: int) -> None:
    weights = random_weights(np.random.default_rng(count), level=8)
    table = make_lookup_table(UNIVERSE, weights, count)
    found = loads(table, weights)
    assert len(found) == table.partition_count == count + 1
    assert found.sum() == pytest.approx(weights.total())
    assert found[:-1].max() <= 1.3 * found[:-1].mean()
    assert found[table.outside] == 0


def test_cells_and_events_weigh_half_each() -> None:
    found = weigh(3, {5: 30, 9: 10}, {9: 1, 12: 3})
    assert dict(zip(found.codes.tolist(), found.weights.tolist(), strict=True)) == {
        5: 15.0,
        9: 10.0,
        12: 15.0,
    }
    assert weigh(3, {5: 30}, {}).weights.tolist() == [30.0]


def test_a_table_of_nothing_is_one_prefix() -> None:
    table = make_lookup_table(UNIVERSE, weigh(LEVEL, {}, {}), 3)
    assert (table.starts.tolist(), table.levels.tolist()) == ([0], [0])
    assert len(table.replicas[0]) == 1
