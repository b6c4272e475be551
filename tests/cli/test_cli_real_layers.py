"""Real layers give the match counts that were published with them."""

import json
from pathlib import Path

import pytest

from contrada.cli import main

DATA = Path(__file__).parents[3] / "shared" / "data"

# Subscriptions, events, matching pairs, events with a match; then what has to be mended.
PUBLISHED = [
    ("nws_counties", "nws_alerts_colorado_2026", 2_067, 720, {"events_mended": 33}),
    ("london_buildings", "london_streets", 1_243, 881, {}),
    ("nws_counties", "ibtracs_storm_fixes", 1_370, 1_297, {"subscriptions_left_out": 3}),
    (
        "osm_natural_andorra_malta",
        "osm_lines_andorra",
        10_604,
        6_602,
        {"subscriptions_mended": 28},
    ),
]


@pytest.mark.skipif(not DATA.is_dir(), reason="the real layers are not here")
@pytest.mark.parametrize(("subscriptions", "events", "pairs", "matched", "others"), PUBLISHED)
def test_a_real_layer_gives_the_published_counts(
    subscriptions: str,
    events: str,
    pairs: int,
    matched: int,
    others: dict[str, int],
    capsys: pytest.CaptureFixture[str],
) -> None:
    layers = [str(DATA / f"{name}.parquet") for name in (subscriptions, events)]
    assert main(["match", *layers, "--repair", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert (figures["matches"], figures["events_matched"]) == (pairs, matched)
    for name, count in others.items():
        assert figures[name] == count
