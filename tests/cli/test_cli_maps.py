"""Maps of `contrada match` tell the truth: page and pairs agree, whatever the ids are."""

from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import pytest

from contrada.cli import drawing, drawn_events, main
from contrada.cli.pair_counts import PairCounts
from map_data import check_page, read_page, read_paths, read_shapes

Pairs = list[tuple[int, str]]


def draw(city: Path, page: Path, *options: str, events: Path | None = None) -> dict[str, Any]:
    args = ["match", str(city / "zones.parquet"), str(events or city / "positions.parquet")]
    assert main([*args, "--map", str(page), *options]) == 0
    return read_page(page)


def test_the_page_has_the_pairs_and_no_others(
    city: Path, city_pairs: Pairs, tmp_path: Path
) -> None:
    data = draw(city, tmp_path / "map.html")
    check_page(data, {(str(event), zone) for event, zone in city_pairs})


def test_events_whose_ids_repeat_are_told_apart_by_their_rows(
    city: Path, city_pairs: Pairs, tmp_path: Path
) -> None:
    data = draw(city, tmp_path / "map.html", "--event-id", "kind")
    first = min(geopandas.read_parquet(city / "positions.parquet").id)
    check_page(data, {(str(event - first), zone) for event, zone in city_pairs})
    assert {shape.label for shape in read_shapes(data, "event")} == {"bus", "tram"}


def test_all_matches_are_drawn_and_the_rest_is_an_even_sample_of_which_the_legend_speaks(
    city: Path, city_pairs: Pairs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drawn_events, "UNMATCHED_MAX", 10)
    data = draw(city, tmp_path / "map.html")
    check_page(data, {(str(event), zone) for event, zone in city_pairs})
    [events] = [layer for layer in data["layers"] if layer["role"] == "event"]
    assert events["matched"].count("0") == 10
    assert events["unmatchedSample"] == "10 drawn"
    assert events["total"] == 200


def test_of_too_many_matched_events_the_counts_stay_whole_and_the_legend_speaks(
    city: Path, city_pairs: Pairs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drawn_events, "MATCHED_MAX", 20)
    data = draw(city, tmp_path / "map.html")
    [zones, events] = data["layers"]
    assert events["matched"].count("1") == 20
    assert events["matchedSample"] == "20 drawn"
    assert events["matchedTotal"] == len({event for event, _ in city_pairs})
    assert sum(zones["partnerCounts"]) == len(city_pairs)


def test_of_too_many_pairs_some_are_kept_of_everyone_and_all_are_counted(
    city: Path, city_pairs: Pairs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = len({event for event, _ in city_pairs}) + 12
    monkeypatch.setattr(drawing, "PAIRS_MAX", kept // 2)
    sketch = drawing.MapSketch(PairCounts(12), {})
    for event, zone in city_pairs:
        sketch.add_pairs(np.array([event]), np.array([int(zone[-2:])]))
    assert len(sketch._pairs) <= kept
    assert set(sketch._pairs[:, 1]) == {int(zone[-2:]) for _, zone in city_pairs}
    data = draw(city, tmp_path / "map.html")
    assert sum(data["layers"][0]["partnerCounts"]) == len(city_pairs)


def test_the_pointer_shows_attributes_of_events_and_what_a_subscription_wants(
    city: Path, tmp_path: Path
) -> None:
    data = draw(city, tmp_path / "map.html")
    positions = geopandas.read_parquet(city / "positions.parquet").set_index("id")
    for shape in read_shapes(data, "event"):
        row = positions.loc[int(shape.label)]
        assert shape.attributes == {"kind": row.kind, "speed": f"{row.speed:.7g}"}
    zones = {shape.label: shape.attributes["wants"] for shape in read_shapes(data, "subscription")}
    assert zones["zone-00"] == "S_INTERSECTS(geometry, POLYGON(…)) AND (speed > 50)"
    assert zones["zone-01"] == "S_INTERSECTS(geometry, POLYGON(…))"


@pytest.mark.parametrize("out", [["-o", "pairs.csv"], []])
def test_the_pointer_shows_what_is_kept_of_a_subscription(
    out: list[str], city: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    zones = geopandas.read_parquet(city / "zones.parquet")
    zones["name"] = [f"the {id_}" for id_ in zones.id]
    zones.sample(frac=1, random_state=1).to_parquet(tmp_path / "named.parquet")
    args = ["match", str(tmp_path / "named.parquet"), str(city / "positions.parquet")]
    assert (
        main([*args, *out, "--keep", "subscription.name", "--map", str(tmp_path / "map.html")]) == 0
    )
    shapes = read_shapes(read_page(tmp_path / "map.html"), "subscription")
    assert {s.label: s.attributes["name"] for s in shapes} == {z: f"the {z}" for z in zones.id}
    assert all("subscriber" not in shape.attributes for shape in shapes)


def test_of_many_columns_those_that_are_kept_or_that_constraints_read_are_shown_first(
    city: Path, tmp_path: Path
) -> None:
    positions = geopandas.read_parquet(city / "positions.parquet")
    for n in range(20):
        positions.insert(1 + n, f"column {n}", positions.speed)
    events = tmp_path / "wide.parquet"
    positions.to_parquet(events)
    data = draw(city, tmp_path / "map.html", events=events)
    shown = [column["name"] for column in data["layers"][1]["attributes"]]
    assert shown == ["speed", "kind", *(f"column {n}" for n in range(10))]
    data = draw(city, tmp_path / "map.html", "--keep", "column 19", events=events)
    shown = [column["name"] for column in data["layers"][1]["attributes"]]
    assert shown == ["column 19", "speed", "kind", *(f"column {n}" for n in range(9))]


def test_a_mended_event_is_drawn_mended_and_a_bad_one_not_at_all(tmp_path: Path) -> None:
    (tmp_path / "zones.csv").write_text('id,wkt\nall,"POLYGON((0 0,4 0,4 4,0 4,0 0))"\n')
    bow_tie, curve = "POLYGON((0 0,4 4,4 0,0 4,0 0))", "CIRCULARSTRING(0 0,1 1,2 0)"
    rows = ["id,wkt", f'tie,"{bow_tie}"', f'curve,"{curve}"', "point,POINT(1 1)", ""]
    (tmp_path / "events.csv").write_text("\n".join(rows))
    args = ["match", str(tmp_path / "zones.csv"), str(tmp_path / "events.csv"), "--repair"]
    assert main([*args, "--map", str(tmp_path / "map.html")]) == 0
    data = read_page(tmp_path / "map.html")
    check_page(data, {("tie", "all"), ("point", "all")})
    [_, events] = data["layers"]
    assert events["labels"] == ["tie", "point"]
    assert events["shapeLengths"] == [2, 1], "two triangles"
    assert events["unmatchedSample"] == "0 drawn"


def test_a_distance_and_all_geometries_of_a_predicate_are_drawn(tmp_path: Path) -> None:
    square = "POLYGON((10 0,11 0,11 1,10 1,10 0))"
    filters = {
        "near": "dwithin(geometry, POINT(0 0), 111000)",
        "both": f"S_INTERSECTS(geometry, {square}) OR S_CONTAINS(BBOX(20,0,21,1), geometry)",
        "any": "speed > 3",
    }
    lines = [f'{id_},me,"{text}"' for id_, text in filters.items()]
    (tmp_path / "zones.csv").write_text("\n".join(["id,subscriber,filter", *lines, ""]))
    (tmp_path / "events.csv").write_text("id,speed,wkt\na,4,POINT(0.5 0.5)\n")
    page = tmp_path / "map.html"
    args = ["match", str(tmp_path / "zones.csv"), str(tmp_path / "events.csv")]
    assert main([*args, "--map", str(page)]) == 0
    data = read_page(page)
    both, near = read_paths(data)
    assert data["layers"][0]["labels"] == ["both", "near"], "any has nothing to draw"
    assert data["layers"][0]["matchedSample"] == "1 drawn"
    assert [round(places[:, 0].min()) for _, places in both] == [10, 20]
    [(_, circle)] = near
    assert np.hypot(*circle.T) == pytest.approx(1, abs=0.02)
    [event] = read_shapes(data, "event")
    assert event.partner_count == 2
    wanted, _ = (shape.attributes for shape in read_shapes(data, "subscription"))
    assert wanted == {
        "wants": "S_INTERSECTS(geometry, POLYGON(…)) OR S_WITHIN(geometry, POLYGON(…))",
        "subscriber": "me",
    }


def test_an_even_sampler_takes_as_many_as_it_may_from_batches_of_any_size() -> None:
    for count, count_max in ((7, 10), (1_000, 10), (11, 10), (20_001, 20_000), (5, 1)):
        sampler = drawn_events.Sampler(count, count_max)
        places = np.array_split(np.arange(count), [1, count // 3])
        taken = np.concatenate([sampler.take(items) for items in places])
        assert len(taken) == min(count, count_max)
        assert len(set(np.diff(taken))) <= 2


@pytest.mark.parametrize("suffix", ["html", "png"])
def test_a_file_without_a_row_is_drawn(city: Path, tmp_path: Path, suffix: str) -> None:
    (tmp_path / "events.csv").write_text("id,speed,kind,wkt\n")
    args = ["match", str(city / "zones.csv"), str(tmp_path / "events.csv")]
    assert main([*args, "--map", str(tmp_path / f"map.{suffix}")]) == 0
