"""Real layers: every pair that the catalogue of the data lists, counted through the library.

The catalogue's counts were made with Shapely alone. Two pairs take long and are for `make soak`.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from contrada import Matcher

LAYERS = Path(__file__).parents[3] / "shared" / "data"
CATALOGUE = LAYERS / "README.md"
ROW = re.compile(r"\| `(\w+)` \| `(\w+)` \| [\d,]+ \| ([\d,]+) \| ([\d,]+) \|")
SLOW = {
    ("us_block_groups_2000", "ibtracs_storm_tracks"),
    ("gshhg_shorelines_west", "ibtracs_storm_tracks"),
}
INVALID = {
    "gshhg_shorelines_west": (1, 0),
    "nws_counties": (0, 3),
    "osm_natural_andorra_malta": (28, 0),
}

pytestmark = pytest.mark.skipif(not CATALOGUE.exists(), reason="the real layers are not here")


def listed_pairs() -> list[Any]:
    """Subscriptions, events, matching pairs and events with a match, a row of the table each."""
    text = CATALOGUE.read_text(encoding="utf-8") if CATALOGUE.exists() else ""
    return [
        pytest.param(
            *pair[:2],
            *(int(count.replace(",", "")) for count in pair[2:]),
            id=f"{pair[0]}-{pair[1]}",
            marks=[pytest.mark.xdist_group(pair[0]), *[pytest.mark.soak] * (pair[:2] in SLOW)],
        )
        for pair in ROW.findall(text)
    ]


@cache
def matcher_of(layer: str) -> Matcher:
    matcher = Matcher()
    matcher.add_many(LAYERS / f"{layer}.parquet", repair=True)
    return matcher


def test_the_catalogue_lists_twelve_pairs() -> None:
    assert len(listed_pairs()) == 12


@pytest.mark.parametrize(("subscriptions", "events", "pairs", "matched"), listed_pairs())
def test_a_listed_pair_has_the_listed_counts(
    subscriptions: str, events: str, pairs: int, matched: int
) -> None:
    matcher = matcher_of(subscriptions)
    before = matcher.stats()["events"]
    found = matcher.match_many(LAYERS / f"{events}.parquet", repair=True, threads=1)
    assert found.num_rows == pairs
    assert pc.count_distinct(found["event"]).as_py() == matched
    rows = pq.read_metadata(LAYERS / f"{events}.parquet").num_rows
    assert matcher.stats()["events"] - before == rows
    assert matcher.stats()["events_left_out"] == 0


@pytest.mark.parametrize("layer", sorted(INVALID))
def test_invalid_features_are_mended_and_empty_ones_left_out(layer: str) -> None:
    stats = matcher_of(layer).stats()
    assert (stats["subscriptions_mended"], stats["subscriptions_left_out"]) == INVALID[layer]
    rows = pq.read_metadata(LAYERS / f"{layer}.parquet").num_rows
    assert stats["subscriptions"] == rows - INVALID[layer][1]
