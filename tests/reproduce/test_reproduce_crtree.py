"""The experiments of the CR-tree paper run, and their workloads are what they say."""

from pathlib import Path

import numpy as np
import pytest
import shapely

from contrada.cli import main
from contrada.reproduce.crtree import Plan, reproduce
from contrada.reproduce.workloads import (
    KINDS,
    event_region,
    into_unit_square,
    scattered_regions,
    synthetic_regions,
)

TINY = Plan((40, 80), 1, 100, (0, 2_000), 0.002)


def test_all_tables_are_printed_and_all_figures_drawn(tmp_path: Path) -> None:
    lines: list[str] = []
    reproduce(tmp_path, TINY, None, lines.append)
    text = "\n".join(lines)
    for title in ("Figure 4a", "Figure 4b", "error of Algorithm 1", "Figure 5", "Table 3"):
        assert title in text
    drawn = {path.name for path in tmp_path.iterdir()}
    assert drawn == {"figure-4a.png", "figure-4b.png", "error.png", "figure-5.png"}


def test_regions_of_section_5_are_large_and_lie_in_the_universe() -> None:
    regions = synthetic_regions(np.random.default_rng(1), 30)
    assert shapely.is_valid(regions).all()
    assert (shapely.area(regions) >= 0.1).all()
    assert (shapely.get_num_points(shapely.get_exterior_ring(regions)) == 21).all()
    assert shapely.box(0, 0, 1, 1).covers(shapely.union_all(regions))


@pytest.mark.parametrize("kind", KINDS)
def test_events_have_the_shape_of_their_type(kind: str) -> None:
    rng = np.random.default_rng(2)
    for _ in range(50):
        west, south, east, north = event_region(rng, kind).bounds
        width, height = east - west, north - south
        assert 0.01 - 1e-9 <= width * height <= 0.25 + 1e-9
        ratio = max(width / height, height / width)
        least, most = {"A": (1, 1.12), "B": (1, 2.01), "C": (9.9, 20.1)}[kind]
        assert least <= ratio <= most


def test_a_layer_is_brought_into_the_unit_square_as_simple_polygons() -> None:
    pierced = shapely.box(10, 10, 20, 20) - shapely.box(12, 12, 14, 14)
    pair = shapely.MultiPolygon([shapely.box(0, 0, 5, 5), shapely.box(30, 30, 40, 50)])
    moved = into_unit_square(np.array([pierced, pair], object))
    assert len(moved) == 3
    assert shapely.total_bounds(moved).tolist() == [0, 0, 1, 1]
    assert (shapely.get_num_interior_rings(moved) == 0).all()


def test_scattered_regions_are_valid_and_nearly_as_many_as_asked_for() -> None:
    regions = scattered_regions(np.random.default_rng(3), 400)
    assert shapely.is_valid(regions).all()
    assert 380 <= len(regions) <= 400


def test_a_folder_of_layers_that_is_not_there_is_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["reproduce", "crtree", "--quick", "--data", "nowhere"]) == 2
    assert "--data nowhere: no such folder" in capsys.readouterr().err
