"""`contrada demo` as a whole: files, pictures and figures."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import geopandas
import numpy as np
import pyarrow.parquet as pq
import pytest
import shapely

import contrada
from contrada.cli import demo, main
from contrada.cli.demo_data import generate
from map_data import check_page, read_page, read_shapes

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.mark.spark
def test_the_demo_ends_stdout_with_one_json_object_and_leaves_the_session_running(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "a" / "demo"
    assert main(["demo", "--folder", str(folder), "--master", "local[2]", "--json"]) == 0
    said = capsys.readouterr()
    (line,) = said.out.splitlines()
    figures = json.loads(line)
    assert figures["subscriptions"] == pq.read_metadata(folder / "sites.geoparquet").num_rows
    events = pq.read_metadata(folder / "events.geoparquet").num_rows
    assert figures["events"] == events
    assert f"{events:,} came in, {events:,} were evaluated, 0 set aside" in said.err
    assert figures["matches"] > figures["events_matched"] > figures["subscriptions_matched"] > 0
    assert figures["output"] == str(folder / "matches.geoparquet")
    assert "plan: broadcast (the subscriptions are " in said.err
    assert figures["map"] == str(folder / "map.html")
    assert figures["image"] == str(folder / "map.png")
    assert (folder / "map.html").stat().st_size > (folder / "map.png").stat().st_size > 10_000
    assert f"{figures['matches']:,}" in said.err
    assert spark.range(3).count() == 3
    check_matches(folder, figures["matches"])
    check_map(folder, figures)


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_the_demo_goes_by_row_where_events_share_an_id(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sites, events = generate(np.random.default_rng(1))
    is_storm = np.array(events["kind"].to_pylist()) == "storm"
    sites = sites.slice(0, 300)
    events = events.filter(is_storm | (np.arange(len(is_storm)) % 20 == 0))
    alike = events.set_column(0, "id", events["kind"])
    monkeypatch.setattr(demo, "generate", lambda _: (sites, alike))
    assert main(["demo", "--folder", str(tmp_path), "--master", "local[2]", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    matcher = contrada.Matcher()
    matcher.add_many(sites)
    found = matcher.match_many(events.drop_columns("id"))
    pairs = {(str(row), site) for row, site in zip(*found.to_pydict().values(), strict=True)}
    assert len({row for row, _ in pairs}) == figures["events_matched"]
    assert len({site for _, site in pairs}) == figures["subscriptions_matched"]
    assert figures["events_matched"] > len(set(pq.read_table(figures["output"])["event"]))
    check_page(read_page(tmp_path / "map.html"), pairs)


def check_map(folder: Path, figures: dict[str, int]) -> None:
    """The page says of everything what the matches say, and attributes are those of the events."""
    data = read_page(folder / "map.html")
    matches = pq.read_table(folder / "matches.geoparquet").to_pandas()
    pairs = set(zip(matches.event, matches.subscription, strict=True))
    assert len(pairs) == figures["matches"]
    check_page(data, pairs)
    assert len({event for event, _ in pairs}) == figures["events_matched"]
    names = [layer["name"] for layer in data["layers"]]
    assert names == ["sites", "storms", "vehicles"]
    events = geopandas.read_parquet(folder / "events.geoparquet").set_index("id")
    for shape in read_shapes(data, "event")[::97]:
        assert shape.layer == f"{events.kind[shape.label]}s"
        assert shape.attributes["time"][:19] == str(events.time[shape.label])[:19]
    assert (folder / "map.html").stat().st_size < 3_000_000


def check_matches(folder: Path, count: int) -> None:
    """The three files are GeoParquet for others too, and a match is true by Shapely."""
    sites, events, matches = (
        geopandas.read_parquet(folder / f"{name}.geoparquet")
        for name in ("sites", "events", "matches")
    )
    assert sites.crs == events.crs == matches.crs == "OGC:CRS84"
    assert len(matches) == count
    assert set(matches.kind) == {"storm", "vehicle"}
    where = sites.set_index("id").geometry.loc[matches.subscription].to_numpy()
    assert shapely.intersects(where, matches.geometry.to_numpy()).all()
    carried = events.set_index("id").geometry.loc[matches.event].to_numpy()
    assert shapely.equals(carried, matches.geometry.to_numpy()).all()
