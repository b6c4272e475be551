"""Real layers give the match counts, and need the repairs, that were published with them."""

import json
import re
from typing import Any

import pytest

from contrada.cli import main
from real_layers import LayerPair, as_number, listed_pairs, needs_layers, path_of, read_table

SLOW_LAYERS = {  # they take the command several seconds, and the library is tried with them, too
    "us_block_groups_2000",
    "fire_perimeters_2013",
    "ibtracs_storm_tracks",
}

pytestmark = needs_layers


def published() -> list[Any]:
    """Each pair of layers that the README counts, the slow ones for the soak."""
    return [
        pytest.param(
            pair,
            id=str(pair),
            marks=[pytest.mark.soak] if {pair.subscriptions, pair.events} & SLOW_LAYERS else [],
        )
        for pair in listed_pairs()
    ]


def test_the_readme_counts_twelve_pairs_of_layers() -> None:
    assert len(published()) == 12


@pytest.mark.parametrize("pair", published())
def test_a_real_layer_gives_the_published_counts(
    pair: LayerPair, capsys: pytest.CaptureFixture[str]
) -> None:
    layers = {"subscriptions": pair.subscriptions, "events": pair.events}
    files = [str(path_of(layer)) for layer in layers.values()]
    assert main(["match", *files, "--repair", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["matches"] == pair.matches
    assert figures["events_matched"] == pair.events_matched
    for role, layer in layers.items():
        check_repairs(role, layer, figures)


def check_repairs(role: str, layer: str, figures: dict[str, int]) -> None:
    """All features that are invalid were mended, and the empty subscriptions left out."""
    (described,) = (d for d in read_table("Layers") if d["File (`.parquet`)"] == layer)
    empty = re.search(r"\((\d+) empty\)", described["Invalid"])
    left_out = int(empty[1]) if empty and role == "subscriptions" else 0
    assert figures[role] == as_number(described["Features"])
    assert figures[f"{role}_mended"] == as_number(described["Invalid"])
    assert figures[f"{role}_left_out"] == left_out
