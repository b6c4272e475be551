"""Figures join only points of one curve, and say from how many seeds their values come."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contrada.pictures.plots import Panel, Series
from contrada.reproduce import running
from contrada.reproduce.crtree.paper import DATA_SETS
from contrada.reproduce.crtree.plan import QUICK
from contrada.reproduce.crtree.table_3 import table_3
from contrada.reproduce.running import Run
from contrada.reproduce.scenarios import scattered_regions
from notes import Notes

Drawn = dict[str, Any]


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Drawn]:
    """The figures that are drawn meanwhile, as they are asked for."""
    figures: list[Drawn] = []

    def draw_panels(path: Path, panels: list[Panel], **words: Any) -> None:
        figures.append({"name": path.name, "panels": panels, **words})

    monkeypatch.setattr(running, "draw_panels", draw_panels)
    return figures


@pytest.mark.parametrize(
    ("seeds", "said"), [(1, "A note. One seed: 7."), (5, "A note. 5 seeds, from 7 on.")]
)
def test_a_figure_says_how_many_seeds_it_is_of(
    tmp_path: Path, drawn: list[Drawn], seeds: int, said: str
) -> None:
    run = Run(QUICK, tmp_path, Notes(), seed=7)
    panel = Panel([Series("one", [1], [2.0])])
    run.draw("x.png", [panel], title="a title", note="A note.", seeds=seeds, y_label="ms")
    assert [figure["note"] for figure in drawn] == [said]


def test_table_3_joins_no_number_of_the_papers_to_one_of_ours(
    tmp_path: Path, drawn: list[Drawn]
) -> None:
    layers = {
        data_set.label: scattered_regions(np.random.default_rng(number), 60)
        for number, data_set in enumerate(DATA_SETS)
    }
    table_3(Run(QUICK, tmp_path, Notes(), seed=1), layers)
    (figure,) = drawn
    assert figure["name"] == "table-3.png"
    assert len(figure["panels"]) == len(DATA_SETS)
    for panel in figure["panels"]:
        assert panel.links == ()
        assert {series.line for series in panel.series} == {"none"}
        assert any(series.is_quoted for series in panel.series)
    assert "different N" in figure["note"]
