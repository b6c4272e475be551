"""What we quote is what the paper prints, as far as its text is beside the project."""

import re
from pathlib import Path

import pytest

from contrada.reproduce.crtree.paper import (
    DATA_SETS,
    GAIN_EXAMPLE_DENSITY,
    GAIN_EXAMPLE_PERCENT,
    WRONG_PERCENT,
)

PAPER = Path(__file__).parents[3] / "shared" / "papers" / "crtree-2011.txt"
pytestmark = pytest.mark.skipif(not PAPER.is_file(), reason="the text of the paper is not here")
_ROW = re.compile(r"^(.*)\t(\d*)\t([ABC])\t(.*ms.*)$", re.MULTILINE)


def test_table_3_is_the_papers() -> None:
    printed: dict[str, dict[str, tuple[float, ...]]] = {}
    sizes: dict[str, int] = {}
    title = ""
    for name, size, kind, cells in _ROW.findall(PAPER.read_text()):
        title = name.strip() or title
        sizes.setdefault(title, int(size or 0))
        times = tuple(float(number) for number in re.findall(r"([\d.]+) ms", cells))
        printed.setdefault(title, {})[kind] = times
    assert printed == {data_set.title: data_set.times for data_set in DATA_SETS}
    assert sizes == {data_set.title: data_set.size for data_set in DATA_SETS}


def test_the_doubtful_cells_are_those_of_another_data_set() -> None:
    _, natural, buildings = DATA_SETS
    for kind, times in natural.times.items():
        assert times[2:] == buildings.times[kind][:2]


def test_the_values_of_the_text_are_the_papers() -> None:
    text = " ".join(PAPER.read_text().split())
    assert f"an error rate of only {WRONG_PERCENT[2_000]}%" in text
    assert f"error rate of only about {WRONG_PERCENT[12_000]}%" in text
    assert "runs about six times faster" in text
    assert f"gain of {GAIN_EXAMPLE_PERCENT}% at density $D = {GAIN_EXAMPLE_DENSITY}$" in text
