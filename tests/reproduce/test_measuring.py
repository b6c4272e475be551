"""What is measured of an index is what it does."""

import numpy as np
import pytest
import shapely

from contrada.matching.indexes.by_tree import ExactEvaluator
from contrada.model.geometry import as_array
from contrada.reproduce.crtree.measuring import CountingEvaluator, index_alone, index_pair, mean_ms
from contrada.reproduce.scenarios import event_region, scattered_regions


def test_an_event_far_from_all_regions_costs_no_relation() -> None:
    rng = np.random.default_rng(1)
    regions = as_array([shapely.box(x, 0, x + 0.01, 0.01) for x in (0.1, 0.2, 0.3)])
    cost = index_alone(rng, regions, CountingEvaluator(2_000)).cost([shapely.box(0.8, 0.8, 1, 1)])
    assert cost.relations == 0
    assert cost.ms > 0


def test_relations_are_counted_for_an_event_on_average() -> None:
    rng = np.random.default_rng(1)
    regions = as_array([shapely.box(0.1, 0.1, 0.3, 0.3)])
    index = index_alone(rng, regions, CountingEvaluator(2_000))
    across, away = shapely.box(0.2, 0.2, 0.6, 0.6), shapely.box(0.8, 0.8, 1, 1)
    assert index.cost([across]).relations == pytest.approx(2 * index.cost([across, away]).relations)


def test_the_exact_evaluator_is_timed_and_not_counted() -> None:
    rng = np.random.default_rng(1)
    index = index_alone(rng, scattered_regions(rng, 50), ExactEvaluator())
    cost = index.cost([event_region(rng, "A")])
    assert cost.relations == 0
    assert cost.ms > 0


def test_a_pair_simplifies_every_predicate_and_says_how_much_it_keeps() -> None:
    rng = np.random.default_rng(1)
    steps: list[int] = []
    pair = index_pair(rng, scattered_regions(rng, 90), 5, 2_000, lambda: steps.append(1))
    assert len(steps) == 5
    assert 0 < pair.kept < 1


def test_there_are_no_more_predicates_than_filters() -> None:
    rng = np.random.default_rng(1)
    steps: list[int] = []
    index_pair(rng, scattered_regions(rng, 8), 25, 2_000, lambda: steps.append(1))
    assert len(steps) <= 4


def test_a_time_is_never_zero_so_that_ratios_can_be_made() -> None:
    assert mean_ms(lambda _: None, [None]) > 0
