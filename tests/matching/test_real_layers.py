"""The engines find the same pairs on real layers, to the id: every pair that their README lists.

`crtree` is compared with `strtree` on all events of each pair of layers, nothing is sampled; `scan`
tries every subscription, so it judges a seeded sample of twenty events, half of them without a
match where there are such. `ahs`, which is approximate, misses no pair, and what it finds besides
is near. Large layers and long streams are for `make soak`.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import shapely

from contrada import Matcher
from real_layers import LayerPair, listed_pairs, needs_layers, path_of

if TYPE_CHECKING:
    from collections.abc import Callable

SEED = 20261115
SAMPLE = 20
LARGE = {"us_block_groups_2000", "gshhg_shorelines_west"}  # a scan takes half a second per event
LARGE_AREAS = {"fire_perimeters_2013"}  # of so many cells that ahs takes seconds
LONG = {"adsb_paris_2021", "ibtracs_storm_fixes"}  # crtree takes them one at a time
LEVEL = 12  # of the cells of ahs, over the two layers of a pair
NEAR_SAMPLE = 500

pytestmark = needs_layers


def pairs_of_layers(is_slow: Callable[[LayerPair], bool]) -> list[Any]:
    """All listed pairs, the slow ones for the soak."""
    return [
        pytest.param(
            pair,
            id=str(pair),
            marks=[pytest.mark.soak] if is_slow(pair) else [],
        )
        for pair in listed_pairs()
    ]


@cache
def matcher_of(engine: str, layer: str) -> Matcher:
    matcher = Matcher(engine)
    matcher.add_many(path_of(layer), repair=True)
    return matcher


@cache
def events_of(layer: str) -> pa.Table:
    """The geometries of a layer, mended once for all engines; an event's id is its row."""
    table = pq.read_table(path_of(layer), columns=["geometry"])
    shapes = shapely.from_wkb(table["geometry"].to_numpy())
    is_invalid = ~shapely.is_valid(shapes)
    shapes[is_invalid] = shapely.make_valid(shapes[is_invalid])
    return pa.table({"geometry": shapely.to_wkb(shapes)})


@cache
def find_pairs(engine: str, pair: LayerPair) -> pa.Table:
    return matcher_of(engine, pair.subscriptions).match_many(events_of(pair.events), threads=1)


def as_set(table: pa.Table) -> set[tuple[int, int]]:
    return set(zip(*(table[name].to_pylist() for name in ("event", "subscription")), strict=True))


def sample_events(pair: LayerPair, matched: list[int]) -> list[int]:
    """Rows of events, the same in every run: half without a match, or as many as there are."""
    rng = np.random.default_rng(SEED)
    others = np.setdiff1d(np.arange(events_of(pair.events).num_rows), matched)
    without = rng.permutation(others)[: SAMPLE // 2]
    return [*without.tolist(), *rng.permutation(matched)[: SAMPLE - len(without)].tolist()]


@pytest.mark.parametrize(
    "pair", pairs_of_layers(lambda pair: pair.subscriptions in LARGE or pair.events in LONG)
)
def test_crtree_finds_the_pairs_of_strtree_and_as_many_as_were_published(pair: LayerPair) -> None:
    expected, found = (find_pairs(engine, pair) for engine in ("strtree", "crtree"))
    assert found.equals(expected), sorted(as_set(found) ^ as_set(expected))[:10]
    assert found.num_rows == pair.matches
    assert pc.count_distinct(found["event"]).as_py() == pair.events_matched


@pytest.mark.parametrize("pair", pairs_of_layers(lambda pair: pair.subscriptions in LARGE))
def test_scan_and_crtree_find_the_same_one_event_at_a_time(pair: LayerPair) -> None:
    pairs = find_pairs("strtree", pair)
    rows = sample_events(pair, pairs["event"].unique().to_pylist())
    assert len(rows) == SAMPLE
    for row in rows:
        expected = pairs.filter(pc.equal(pairs["event"], row))["subscription"].to_pylist()
        event = {"geometry": events_of(pair.events)["geometry"][row].as_py()}
        for engine in ("strtree", "crtree", "scan"):
            found = matcher_of(engine, pair.subscriptions).match(event)
            assert found == expected, (engine, row)


@cache
def shapes_of(layer: str) -> Any:
    """The geometries of a layer of subscriptions by row, which is the id, each mended."""
    shapes = shapely.from_wkb(pq.read_table(path_of(layer))["geometry"].to_numpy())
    is_invalid = ~shapely.is_valid(shapes)
    shapes[is_invalid] = shapely.make_valid(shapes[is_invalid])
    return shapes


@pytest.mark.parametrize(
    "pair",
    pairs_of_layers(lambda pair: pair.subscriptions in LARGE or pair.events in LONG | LARGE_AREAS),
)
def test_ahs_misses_no_pair_and_finds_none_further_apart_than_a_cell_is_wide(
    pair: LayerPair,
) -> None:
    events = shapely.from_wkb(events_of(pair.events)["geometry"].to_numpy())
    subscriptions = shapes_of(pair.subscriptions)
    bounds = np.array([shapely.total_bounds(shapes) for shapes in (events, subscriptions)])
    universe = (*bounds[:, :2].min(0).tolist(), *bounds[:, 2:].max(0).tolist())
    matcher = Matcher("ahs", level=LEVEL, universe=universe)
    matcher.add_many(path_of(pair.subscriptions), repair=True)
    found = as_set(matcher.match_many(events_of(pair.events), threads=1))
    expected = as_set(find_pairs("strtree", pair))
    assert expected <= found
    others = np.array(sorted(found - expected))
    chosen = others[np.random.default_rng(SEED).permutation(len(others))[:NEAR_SAMPLE]]
    width, height = universe[2] - universe[0], universe[3] - universe[1]
    pairs = subscriptions[chosen[:, 1]], events[chosen[:, 0]]
    shapely.prepare(pairs[0])
    assert shapely.dwithin(*pairs, np.hypot(width, height) / 2**LEVEL).all()
