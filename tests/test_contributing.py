"""CONTRIBUTING.md says truly which files a new relation, format, engine and so on touches."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
KINDS = [
    "relation",
    "file format",
    "file format of GDAL's",
    "engine",
    "attribute operator",
    "Spark plan",
    "overlay rule",
    "picture",
    "option of transitions",
    "route of the broker",
    "table of the log",
    "experiment",
]
# Files that take names from elsewhere, or name only what is special.
UNNAMED = {"tests/exact_engines.py"}


def rows() -> dict[str, list[str]]:
    """The table: for each kind what to follow, the sources, the tests and the docs."""
    text = (ROOT / "CONTRIBUTING.md").read_text().split("## Where a new thing goes")[1]
    lines = [line for line in text.split("\n## ")[0].splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]
    return {kind: rest for kind, *rest in cells}


def test_the_table_has_a_row_for_each_kind_of_thing() -> None:
    assert list(rows()) == KINDS


@pytest.mark.parametrize("kind", KINDS)
def test_each_file_of_a_row_is_there_and_names_what_is_to_be_followed(kind: str) -> None:
    example, *cells = rows()[kind]
    words = re.compile("|".join(re.findall(r"`([^`]+)`", example)), re.IGNORECASE)
    for folder, cell in zip(("src/", "tests/", "docs/"), cells, strict=True):
        paths = re.findall(r"`([^`]+)`", cell)
        assert paths
        for path in paths:
            assert path.startswith(folder)
            assert (ROOT / path).exists(), path
            if (ROOT / path).is_file() and path not in UNNAMED:
                assert words.search((ROOT / path).read_text()), f"{path} does not name {example}"
