"""The page: its data read back, shape by shape, and nothing in it that a label could set off."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely
from numpy.typing import NDArray

from contrada.model.geometry import as_array
from contrada.pictures import Layer, draw_map, maps, page, partners
from contrada.pictures.outlines import GRID_UNITS
from contrada.pictures.picture import Detail
from map_data import read_paths

HOSTILE = [
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "\"'`&amp;<!--",
    "]]>{{data}}{{title}}",
    "a\u2028b\u0000c\ud800d",
]


class Markup(HTMLParser):
    """The elements of a page and what its scripts hold."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, str] = {}
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        tag, attributes = self.elements[-1] if self.elements else ("", {})
        name = attributes.get("id") or tag
        self.texts[name] = self.texts.get(name, "") + data


def draw_page(folder: Path, layers: list[Layer], title: str = "a map", **options: Any) -> Markup:
    draw_map(folder / "map.html", layers, title=title, **options)
    return Markup((folder / "map.html").read_text(encoding="utf-8"))


def draw_data(folder: Path, layers: list[Layer], **options: Any) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(draw_page(folder, layers, **options).texts["data"])
    return data


def make_layer(geometries: Any, matched: Any = None, **changes: Any) -> Layer:
    count = len(geometries)
    columns: dict[str, Any] = {
        "name": "shapes",
        "geometries": np.array(geometries, dtype=object),
        "labels": [f"shape {row}" for row in range(count)],
        "matched": np.zeros(count, dtype=bool) if matched is None else matched,
        "role": "subscription",
    }
    return Layer(**(columns | changes))


def make_points(count: int, **changes: Any) -> Layer:
    return make_layer(shapely.points(np.arange(count), np.arange(count) % 7), **changes)


def test_points_come_back_within_half_a_grid_unit(tmp_path: Path) -> None:
    places = np.random.default_rng(3).uniform([-700, 4_000], [900, 5_000], (500, 2))
    data = draw_data(tmp_path, [make_layer(shapely.points(places))])
    drawn = np.array([path[0][1][0] for path in read_paths(data)])
    assert data["frame"]["unit"] == pytest.approx(np.ptp(places[:, 0]) / GRID_UNITS)
    assert np.abs(drawn - places).max() <= 0.5001 * data["frame"]["unit"]


def test_every_kind_of_geometry_is_taken_apart_into_points_lines_and_rings(tmp_path: Path) -> None:
    texts = [
        "POINT (1 1)",
        "MULTIPOINT ((0 0), (100 100))",
        "LINESTRING (0 0, 50 10, 100 0)",
        "LINEARRING (0 0, 50 10, 100 0, 0 0)",
        "POLYGON ((0 0, 0 90, 90 90, 90 0, 0 0), (20 20, 40 20, 40 40, 20 20))",
        "MULTIPOLYGON (((0 0, 9 0, 9 9, 0 0)), ((20 0, 29 0, 29 9, 20 0)))",
        "GEOMETRYCOLLECTION (POINT EMPTY, GEOMETRYCOLLECTION (POINT (5 5), LINESTRING (0 0, 9 9)))",
    ]
    shapes = read_paths(draw_data(tmp_path, [make_layer(shapely.from_wkt(texts))]))
    kinds = ["".join(kind for kind, _ in shape) for shape in shapes]
    assert kinds == ["p", "pp", "l", "l", "aa", "aa", "pl"]
    assert [len(places) for _, places in shapes[4]] == [4, 3]


def test_exterior_rings_run_counterclockwise_and_holes_clockwise(tmp_path: Path) -> None:
    text = "POLYGON ((0 0, 0 90, 90 90, 90 0, 0 0), (20 20, 40 20, 40 40, 20 20))"
    [[(_, exterior), (_, hole)]] = read_paths(
        draw_data(tmp_path, [make_layer([shapely.from_wkt(text)])])
    )
    assert shapely.is_ccw(shapely.linearrings(exterior))
    assert not shapely.is_ccw(shapely.linearrings(hole))


def test_a_detailed_outline_keeps_what_one_can_zoom_to(tmp_path: Path) -> None:
    circle = shapely.Point(0, 0).buffer(1_000, quad_segs=50_000)
    data = draw_data(tmp_path, [make_layer([circle])])
    [[(_, ring)]] = read_paths(data)
    assert 2_000 < len(ring) < 20_000
    assert np.abs(np.hypot(*ring.T) - 1_000).max() < data["frame"]["unit"]
    assert data["tolerances"] == {"matched": 0, "unmatched": 0}


def make_coasts(count: int, vertices: int) -> NDArray[np.object_]:
    """Rings that go in and out at every vertex, by a ten-thousandth."""
    angles = np.linspace(0, 2 * np.pi, vertices, endpoint=False)
    radii = np.where(np.arange(vertices) % 2, 1.0, 0.9999)
    ring = np.column_stack([radii * np.cos(angles), radii * np.sin(angles)])
    return as_array([shapely.Polygon(ring + np.array([3 * k, 0])) for k in range(count)])


def test_outlines_are_simplified_only_as_far_as_the_page_needs_and_matches_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layers = [make_layer(make_coasts(4, 1_000), matched=[True, False, False, False])]

    def ring_lengths(vertices_max: int) -> tuple[list[int], dict[str, int]]:
        monkeypatch.setattr(maps, "_PAGE_DETAIL", Detail(0.5, vertices_max))
        data = draw_data(tmp_path, layers)
        return [len(ring) for [(_, ring)] in read_paths(data)], data["tolerances"]

    whole, tolerances = ring_lengths(5_000)
    assert whole == [1_000] * 4
    assert tolerances == {"matched": 0, "unmatched": 0}
    far_out = make_layer(shapely.points([(0, 0), (3_000, 0)]), role="event")
    layers.append(far_out)
    fewer, tolerances = ring_lengths(2_000)
    assert fewer[0] == 1_000
    assert max(fewer[1:]) < 400
    assert tolerances["matched"] == 0
    assert tolerances["unmatched"] > 0
    fewest, tolerances = ring_lengths(100)
    assert fewest[0] < 1_000
    assert 0 < tolerances["matched"] <= tolerances["unmatched"]


def test_an_area_smaller_than_the_grid_is_still_there(tmp_path: Path) -> None:
    areas = [shapely.box(0, 0, 0.01, 0.01), shapely.box(5e5, 5e5, 1e6, 1e6)]
    shapes = read_paths(draw_data(tmp_path, [make_layer(areas)]))
    assert [len(places) for _, places in shapes[0]] == [1]


def test_tens_of_thousands_of_islands_stay_small(tmp_path: Path) -> None:
    centres = np.random.default_rng(5).uniform([-180, -80], [0, 80], (30_000, 2))
    islands = shapely.buffer(shapely.points(centres), 0.2, quad_segs=8)
    draw_map(tmp_path / "map.html", [make_layer(islands)], title="islands", unmatched_max=30_000)
    assert (tmp_path / "map.html").stat().st_size < 7_000_000


def test_nothing_is_loaded_from_outside_the_file(tmp_path: Path) -> None:
    page = draw_page(tmp_path, [make_points(3)])
    assert not [attributes for _, attributes in page.elements if {"src", "href"} & set(attributes)]
    text = (tmp_path / "map.html").read_text(encoding="utf-8")
    assert not re.search(r"https?:|url\(|@import|import\(|fetch\(|XMLHttpRequest", text)
    assert "default-src 'none'" in text


def test_hostile_text_is_inert_and_comes_back_as_written(tmp_path: Path) -> None:
    layer = make_points(len(HOSTILE), labels=HOSTILE, name=HOSTILE[0])
    plain = draw_page(tmp_path, [make_points(len(HOSTILE))])
    page = draw_page(
        tmp_path, [layer], title="".join(HOSTILE[:4]), summary={HOSTILE[1]: HOSTILE[0]}
    )
    data = json.loads(page.texts["data"])
    assert page.elements == plain.elements
    assert "<" not in page.texts["data"]
    assert page.texts["title"].strip() == "".join(HOSTILE[:4])
    assert data["layers"][0]["labels"] == HOSTILE
    assert data["layers"][0]["name"] == HOSTILE[0]
    assert data["summary"] == [[HOSTILE[1], HOSTILE[0]]]


def test_attributes_are_written_once_for_each_value_and_only_of_what_is_drawn(
    tmp_path: Path,
) -> None:
    kinds = ["storm", "vehicle", "storm", "<b>"]
    layer = make_points(
        4, matched=[True, False, True, True], attributes={"kind": kinds, "wind": list("1234")}
    )
    [drawn] = draw_data(tmp_path, [layer], unmatched_max=0)["layers"]
    assert drawn["attributes"] == [
        {"name": "kind", "values": ["storm", "<b>"], "codes": [0, 0, 1]},
        {"name": "wind", "values": ["1", "3", "4"], "codes": [0, 1, 2]},
    ]


def test_attributes_that_would_swell_the_page_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "ATTRIBUTES_BYTES_MAX", 1_000)
    texts = {"long": [f"{k:050}" for k in range(50)], "short": ["a"] * 50}
    [drawn] = draw_data(tmp_path, [make_points(50, attributes=texts)])["layers"]
    assert [column["name"] for column in drawn["attributes"]] == ["short"]


def test_the_script_never_reads_text_as_markup(tmp_path: Path) -> None:
    draw_page(tmp_path, [])
    text = (tmp_path / "map.html").read_text(encoding="utf-8")
    for danger in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert danger not in text


def test_the_box_to_find_shapes_says_what_it_finds(tmp_path: Path) -> None:
    by_id = {attributes.get("id"): attributes for _, attributes in draw_page(tmp_path, []).elements}
    assert by_id["find"]["placeholder"] == "an id or a value"
    spoken = " ".join(str(by_id["marks"]["aria-label"]).split())
    assert spoken.endswith("Find, in the panel, lists shapes by id or by a value that they show.")


def test_an_endless_label_is_cut(tmp_path: Path) -> None:
    data = draw_data(tmp_path, [make_points(1, labels=["x" * 100_000])])
    assert data["layers"][0]["labels"] == ["x" * 299 + "…"]


def test_the_summary_keeps_its_order_and_groups_digits(tmp_path: Path) -> None:
    data = draw_data(tmp_path, [], summary={"pairs": 1234567, "engine": "cells", "crs": "2154"})
    assert data["summary"] == [["pairs", "1,234,567"], ["engine", "cells"], ["crs", "2154"]]


def test_longitude_and_latitude_are_stretched_and_metres_are_not(tmp_path: Path) -> None:
    degrees = draw_data(tmp_path, [make_layer(shapely.points([(2, 59), (3, 61)]))])
    metres = draw_data(tmp_path, [make_layer(shapely.points([(2, 5_900), (3, 6_100)]))])
    assert degrees["frame"]["stretch"] == pytest.approx(2)
    assert degrees["frame"]["isLonlat"]
    assert metres["frame"]["stretch"] == 1
    assert not metres["frame"]["isLonlat"]


def test_all_shapes_are_drawn_where_there_is_room(tmp_path: Path) -> None:
    [layer] = draw_data(tmp_path, [make_points(50)], unmatched_max=50)["layers"]
    assert len(layer["labels"]) == layer["total"] == 50
    assert layer["matchedSample"] == layer["unmatchedSample"] == ""


def test_a_crowded_layer_keeps_its_matches_and_samples_the_rest_evenly(tmp_path: Path) -> None:
    matched = np.zeros(1_000, dtype=bool)
    matched[[3, 500, 501, 999]] = True
    [layer] = draw_data(tmp_path, [make_points(1_000, matched=matched)], unmatched_max=100)[
        "layers"
    ]
    rows = [int(label.split()[1]) for label in layer["labels"]]
    others = [row for row in rows if not matched[row]]
    assert rows == sorted(set(rows))
    assert {3, 500, 501, 999} < set(rows)
    assert len(others) == 100
    assert set(np.diff(others)) <= {9, 10, 11, 12}
    assert layer["matched"] == "".join(str(int(matched[row])) for row in rows)
    assert (layer["matchedSample"], layer["unmatchedSample"]) == ("", "100 drawn")
    assert layer["total"] == 1_000
    assert layer["matchedTotal"] == 4


def test_all_that_matched_is_drawn_however_much(tmp_path: Path) -> None:
    matched = np.arange(1_000) % 2 == 0
    [layer] = draw_data(tmp_path, [make_points(1_000, matched=matched)], unmatched_max=0)["layers"]
    assert layer["labels"] == [f"shape {row}" for row in range(0, 1_000, 2)]
    assert layer["matchedTotal"] == 500
    assert (layer["matchedSample"], layer["unmatchedSample"]) == ("", "0 drawn")


def test_what_was_not_handed_over_is_counted_all_the_same(tmp_path: Path) -> None:
    events = make_points(
        4,
        role="event",
        matched=[True, True, False, False],
        total=1_000,
        matched_total=3,
        partner_counts=[7, 1, 0, 0],
    )
    sites = make_points(2, matched=[True, True], partner_counts=[6, 5])
    data = draw_data(tmp_path, [sites, events], pairs=np.array([[0, 0], [1, 1]]))
    assert [layer["partnerCounts"] for layer in data["layers"]] == [[6, 5], [7, 1, 0, 0]]
    drawn = data["layers"][1]
    assert (drawn["total"], drawn["matchedTotal"]) == (1_000, 3)
    assert (drawn["matchedSample"], drawn["unmatchedSample"]) == ("2 drawn", "2 drawn")


def test_what_cannot_be_drawn_is_counted_but_left_out(tmp_path: Path) -> None:
    with np.errstate(invalid="ignore"):
        endless = shapely.LineString([(0, 0), (np.inf, 1)])
        torn = shapely.LineString([(0, 0), (np.nan, 1), (2, 2)])
    geometries = [None, shapely.Point(1, 1), shapely.Polygon(), endless, torn, shapely.Point(5, 5)]
    [layer] = draw_data(tmp_path, [make_layer(geometries, labels=list("abcdef"))])["layers"]
    assert layer["labels"] == ["b", "f"]
    assert layer["unmatchedSample"] == "2 drawn"


def test_pairs_count_over_the_layers_of_a_role_one_after_the_other(tmp_path: Path) -> None:
    layers = [
        make_points(2, role="event"),
        make_points(3, role="subscription"),
        make_points(2, role="event"),
        make_points(1, role="subscription"),
    ]
    pairs = np.array([[3, 3], [0, 1], [2, 1], [0, 1]])
    data = draw_data(tmp_path, layers, pairs=pairs)
    assert data["pairs"] == {"events": [0, 2, 3], "subscriptions": [1, 1, 3]}
    counts = [layer["partnerCounts"] for layer in data["layers"]]
    assert counts == [[1, 0], [0, 2, 0], [1, 1], [1]]
    assert [layer["position"] for layer in data["layers"]] == [0, 0, 1, 1]


def test_a_partner_that_is_not_drawn_still_counts(tmp_path: Path) -> None:
    events = make_points(100, role="event")
    pairs = np.column_stack([np.arange(100), np.zeros(100, dtype=np.int64)])
    data = draw_data(tmp_path, [make_points(1), events], pairs=pairs, unmatched_max=10)
    assert data["layers"][0]["partnerCounts"] == [100]
    assert data["pairs"] == {"events": list(range(10)), "subscriptions": [0] * 10}


def test_without_pairs_nothing_is_said_about_partners(tmp_path: Path) -> None:
    data = draw_data(tmp_path, [make_points(2)])
    assert data["pairs"] is None
    assert data["layers"][0]["partnerCounts"] is None


def test_too_many_pairs_leave_every_shape_its_first_partners(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partners, "PAIRS_MAX", 60)
    crowd = np.column_stack([np.arange(50), np.zeros(50, dtype=np.int64)])
    couples = np.column_stack([np.arange(50), np.arange(1, 51)])
    layers = [make_points(51), make_points(50, role="event")]
    data = draw_data(tmp_path, layers, pairs=np.concatenate([crowd, couples]))
    assert len(data["pairs"]["events"]) == 60
    assert set(data["pairs"]["events"]) == set(range(50))
    assert data["layers"][0]["partnerCounts"] == [50] + [1] * 50
