"""Real layers: every pair that the catalogue of the data lists, counted through the library.

The catalogue's counts were made with Shapely alone. Two pairs take long and are for `make soak`.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from contrada import Matcher
from real_layers import LayerPair, listed_pairs, needs_layers, path_of

SLOW = {
    ("us_block_groups_2000", "ibtracs_storm_tracks"),
    ("gshhg_shorelines_west", "ibtracs_storm_tracks"),
}
INVALID = {
    "gshhg_shorelines_west": (1, 0),
    "nws_counties": (0, 3),
    "osm_natural_andorra_malta": (28, 0),
}

pytestmark = needs_layers


def marked_pairs() -> list[Any]:
    """All listed pairs, the slow ones for the soak."""
    return [
        pytest.param(
            pair,
            id=str(pair),
            marks=[pytest.mark.soak] * ((pair.subscriptions, pair.events) in SLOW),
        )
        for pair in listed_pairs()
    ]


@cache
def matcher_of(layer: str) -> Matcher:
    matcher = Matcher()
    matcher.add_many(path_of(layer), repair=True)
    return matcher


def test_the_catalogue_lists_twelve_pairs() -> None:
    assert len(listed_pairs()) == 12


@pytest.mark.parametrize("pair", marked_pairs())
def test_a_listed_pair_has_the_listed_counts(pair: LayerPair) -> None:
    matcher = matcher_of(pair.subscriptions)
    before = matcher.stats()["events"]
    found = matcher.match_many(path_of(pair.events), repair=True, threads=1)
    assert found.num_rows == pair.matches
    assert pc.count_distinct(found["event"]).as_py() == pair.events_matched
    rows = pq.read_metadata(path_of(pair.events)).num_rows
    assert matcher.stats()["events"] - before == rows
    assert matcher.stats()["events_left_out"] == 0


@pytest.mark.parametrize("layer", sorted(INVALID))
def test_invalid_features_are_mended_and_empty_ones_left_out(layer: str) -> None:
    stats = matcher_of(layer).stats()
    assert (stats["subscriptions_mended"], stats["subscriptions_left_out"]) == INVALID[layer]
    rows = pq.read_metadata(path_of(layer)).num_rows
    assert stats["subscriptions"] == rows - INVALID[layer][1]
