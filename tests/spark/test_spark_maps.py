"""Maps and figures of `contrada match --spark` are those of `contrada match`, by row, not by id."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import geopandas
import numpy as np
import pytest
import shapely

from contrada.cli import main
from map_data import check_page, read_page, read_shapes

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.spark,
    pytest.mark.usefixtures("spark"),
]

BROADCAST = ["--spark", "local[2]", "--plan", "broadcast"]
PARTITIONED = ["--spark", "local[2]", "--plan", "partitioned"]
ZONES = {
    "a": shapely.box(0, 0, 5, 5),
    "b": shapely.box(3, 3, 8, 8),
    "c": shapely.box(20, 20, 21, 21),
}


def make_events() -> geopandas.GeoDataFrame:
    """Points and bow ties of four objects."""
    rng = np.random.default_rng(4)
    points: Any = shapely.points(rng.uniform(0, 10, (60, 2)))
    tie = np.array([(0, 0), (1, 1), (1, 0), (0, 1)])
    ties = [shapely.Polygon(tie + at) for at in (1.5, 6.5, 8.5)]
    objects = rng.choice(["kea", "tui", "moa", "weka"], 63)
    return geopandas.GeoDataFrame(
        {"object": objects},
        geometry=[*points[:30], *ties, *points[30:]],
    )


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    zones = geopandas.GeoDataFrame({"id": list(ZONES)}, geometry=list(ZONES.values()))
    zones.to_parquet(tmp_path / "zones.parquet")
    make_events().to_parquet(tmp_path / "events.parquet")
    return [str(tmp_path / "zones.parquet"), str(tmp_path / "events.parquet")]


def expected_pairs() -> set[tuple[str, str]]:
    shapes = shapely.make_valid(make_events().geometry.to_numpy())
    return {
        (str(row), id_)
        for id_, zone in ZONES.items()
        for row in np.flatnonzero(shapely.intersects(zone, shapes)).tolist()
    }


@pytest.mark.parametrize("event_id", ["object", None])
def test_the_page_and_the_figures_are_those_of_the_rows(
    event_id: str | None, files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pages, figures = [], []
    page = tmp_path / "map.html"
    args = ["match", *files, "--repair", "--map", str(page), "--json"]
    for options in ([], BROADCAST, PARTITIONED):
        named = [] if event_id is None else ["--event-id", event_id]
        assert main([*args, *named, *options]) == 0
        figures.append(json.loads(capsys.readouterr().out) | {"seconds": 0})
        pages.append(read_page(page))
    pairs = expected_pairs()
    for data in pages:
        check_page(data, pairs)
        assert len(read_shapes(data, "event")) == 63
    assert figures[1] == figures[2] == figures[0]
    assert figures[0]["matches"] == len(pairs)
    assert figures[0]["events_matched"] == len({event for event, _ in pairs})
    assert figures[0]["events_mended"] == 3


@pytest.mark.parametrize("plan", [BROADCAST, PARTITIONED])
def test_events_matched_are_rows_where_only_counts_are_wanted_too(
    plan: list[str], files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    args = ["match", *files, "--repair", "--event-id", "object", "--json", *plan, "--counts"]
    assert main(args) == 0
    figures = json.loads(capsys.readouterr().out)
    pairs = expected_pairs()
    assert figures["matches"] == len(pairs)
    assert figures["events_matched"] == len({event for event, _ in pairs})
    assert figures["events_mended"] == 3
