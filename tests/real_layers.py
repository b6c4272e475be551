"""The real layers beside the project: where they are, and what the README beside them says.

Where they are absent every table is empty, and `needs_layers` skips what would read them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

DATA = Path(__file__).parents[2] / "shared" / "data"
README = DATA / "README.md"

needs_layers = pytest.mark.skipif(not README.is_file(), reason="the real layers are not here")


@dataclass(frozen=True, slots=True)
class LayerPair:
    """Two layers that overlap, by name, and the counts that were published with them."""

    subscriptions: str
    events: str
    box_pairs: int
    matches: int
    events_matched: int

    def __str__(self) -> str:
        return f"{self.events} over {self.subscriptions}"


def path_of(layer: str) -> Path:
    """The file of a layer."""
    return DATA / f"{layer}.parquet"


def listed_pairs() -> list[LayerPair]:
    """Each pair of layers that the README counts; there are twelve."""
    names = ("Box pairs", "Matching pairs", "Events with a match")
    return [
        LayerPair(row["Subscriptions"], row["Events"], *(as_number(row[name]) for name in names))
        for row in read_table("Pairs that overlap")
    ]


def read_table(heading: str) -> list[dict[str, str]]:
    """The table under a heading of the README; no rows where it is not here."""
    if not README.is_file():
        return []
    text = README.read_text(encoding="utf-8").split(f"\n## {heading}", 1)[1].split("\n## ")[0]
    lines = [line for line in text.splitlines() if line.startswith("|")]
    names, _, *rows = [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in lines]
    return [dict(zip(names, row, strict=True)) for row in rows]


def as_number(cell: str) -> int:
    """The number that a cell begins with."""
    found = re.match(r"[\d,]+", cell)
    assert found is not None, cell
    return int(found[0].replace(",", ""))
