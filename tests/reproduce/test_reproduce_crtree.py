"""The experiments of the CR-tree paper run, and what they print is true."""

import re
from dataclasses import replace
from pathlib import Path

import geopandas
import numpy as np
import pytest

from contrada.reproduce.crtree.experiments import introduce_layers, make_layers, reproduce
from contrada.reproduce.crtree.figure_5 import figure_5
from contrada.reproduce.crtree.paper import DATA_SETS
from contrada.reproduce.crtree.plan import CrtreePlan, CrtreeRun
from contrada.reproduce.scenarios import scattered_regions
from notes import Notes

TINY = CrtreePlan(
    sizes=(40, 80),
    event_count=1,
    pair_count=100,
    densities=(0, 2_000, 12_000),
    gain_event_count=1,
    layer_share=0.002,
)
FIGURES = {"figure-4a.png", "figure-4b.png", "error.png", "figure-5.png", "table-3.png"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("figures")


@pytest.fixture(scope="module")
def notes(folder: Path) -> Notes:
    """What a tiny run says."""
    found = Notes()
    reproduce(folder, TINY, None, found)
    return found


def test_all_tables_are_printed_and_all_figures_drawn(notes: Notes, folder: Path) -> None:
    for title in ("Figure 4a", "Figure 4b", "The error", "Layers", "Figure 5", "Table 3"):
        assert any(line.startswith(title) for line in notes.lines), title
    assert {path.name for path in folder.iterdir()} == FIGURES


def test_the_numbers_of_the_paper_stand_beside_ours(notes: Notes) -> None:
    row = next(line for line in notes.lines if re.match(r"vegetation +\S+ +B +4,000", line))
    assert re.fullmatch(r"vegetation +171 +B +4,000 +\S+ +89 +\S+ +\S+ +78 +\S+ +0\.54 +\S+", row)
    assert re.search(r"^ *2,000 +\d+ +0\.089 +\d", notes.text, re.MULTILINE)
    assert re.search(r"^ *12,000 +\d+ +0\.015 +\d", notes.text, re.MULTILINE)
    for stated in ("about 6×", "0.02 %", "1.3× to 372×"):
        assert stated in notes.text


def test_cells_of_the_paper_that_are_doubtful_are_marked(notes: Notes) -> None:
    marked = re.findall(r"\b(\S+)\?", notes.text)
    assert marked == ["59", "1.4", "169", "6.4", "72", "0.53"]


def test_every_word_of_the_tables_is_explained(notes: Notes) -> None:
    explained = {re.split(r"  +", line)[0] for line in notes.lines}
    words = "Algorithm 1|exact|wrong %|scan|CR-tree|scenario 1|scenario 2|types|ms per event|paper"
    assert explained >= set(words.split("|"))


def test_all_that_is_watched_makes_the_steps_that_it_announces(notes: Notes) -> None:
    assert notes.made == notes.announced
    assert set(notes.announced) == {
        "layers", "Figure 4a", "Figure 4b", "error", "Figure 5", "Table 3"
    }  # fmt: skip


def test_a_part_of_the_layers_is_called_a_part(notes: Notes) -> None:
    assert "--quick takes 1/500 of each layer" in notes.text
    assert re.search(r"^vegetation +85,550 +171 ", notes.text, re.MULTILINE)


def test_real_layers_are_named_and_only_the_rows_asked_for_are_taken(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    for data_set in DATA_SETS:
        country = ["Andorra"] * 40 + ["Malta"] * 20
        frame = geopandas.GeoDataFrame(
            {"country": country}, geometry=scattered_regions(rng, 70)[:60], crs="EPSG:4326"
        )
        frame.to_parquet(tmp_path / f"{data_set.stand_in}.parquet")
    notes = Notes()
    run = CrtreeRun(replace(TINY, layer_share=1.0), tmp_path, notes, 1)
    introduce_layers(run, tmp_path, make_layers(run, tmp_path))
    assert "osm_natural_andorra_malta, Andorra only" in notes.text
    assert re.search(r"^natural +17,048 +40 ", notes.text, re.MULTILINE)
    assert re.search(r"^buildings +4,170 +60 ", notes.text, re.MULTILINE)
    assert "--quick" not in notes.text


def test_the_same_seed_gives_the_same_workloads_whatever_ran_before(tmp_path: Path) -> None:
    layers = {"one": scattered_regions(np.random.default_rng(2), 300)}
    said = []
    for seed in (1, 1, 2):
        notes = Notes()
        figure_5(CrtreeRun(replace(TINY, gain_event_count=3), tmp_path, notes, seed), layers)
        said.append(notes.lines)
    assert said[0] == said[1]
    assert said[0] != said[2]
