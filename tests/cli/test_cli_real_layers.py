"""Real layers give the match counts, and need the repairs, that were published with them."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from contrada.cli import main

DATA = Path(__file__).parents[3] / "shared" / "data"
FAST_BOX_PAIRS_MAX = 1_000_000  # with more a run takes over ten seconds


def read_table(heading: str) -> list[dict[str, str]]:
    """The table under a heading of the README beside the layers; no rows where it is not here."""
    readme = DATA / "README.md"
    if not readme.is_file():
        return []
    text = readme.read_text(encoding="utf-8").split(f"\n## {heading}", 1)[1].split("\n## ")[0]
    lines = [line for line in text.splitlines() if line.startswith("|")]
    names, _, *rows = [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in lines]
    return [dict(zip(names, row, strict=True)) for row in rows]


def as_number(cell: str) -> int:
    """The number that a cell begins with."""
    found = re.match(r"[\d,]+", cell)
    assert found is not None, cell
    return int(found[0].replace(",", ""))


def published() -> list[Any]:
    """Each pair of layers that the README counts, the slow ones for the soak."""
    cases = []
    for row in read_table("Pairs that overlap"):
        is_slow = as_number(row["Box pairs"]) > FAST_BOX_PAIRS_MAX
        name = f"{row['Events']} over {row['Subscriptions']}"
        cases.append(pytest.param(row, id=name, marks=[pytest.mark.soak] if is_slow else []))
    return cases


@pytest.mark.skipif(not DATA.is_dir(), reason="the real layers are not here")
def test_the_readme_counts_twelve_pairs_of_layers() -> None:
    assert len(published()) == 12


@pytest.mark.parametrize("row", published())
def test_a_real_layer_gives_the_published_counts(
    row: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    layers = [str(DATA / f"{row[role]}.parquet") for role in ("Subscriptions", "Events")]
    assert main(["match", *layers, "--repair", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["matches"] == as_number(row["Matching pairs"])
    assert figures["events_matched"] == as_number(row["Events with a match"])
    for role in ("Subscriptions", "Events"):
        check_repairs(role.lower(), row[role], figures)


def check_repairs(role: str, layer: str, figures: dict[str, int]) -> None:
    """All features that are invalid were mended, and the empty subscriptions left out."""
    (described,) = (d for d in read_table("Layers") if d["File (`.parquet`)"] == layer)
    empty = re.search(r"\((\d+) empty\)", described["Invalid"])
    left_out = int(empty[1]) if empty and role == "subscriptions" else 0
    assert figures[role] == as_number(described["Features"]) - left_out
    assert figures[f"{role}_mended"] == as_number(described["Invalid"])
    assert figures[f"{role}_left_out"] == left_out
