"""The page: its data read back, shape by shape, and nothing in it that a label could set off."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely

from contrada.pictures import Layer, draw_map, partners
from contrada.pictures.outlines import GRID_UNITS

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


def read_shapes(data: dict[str, Any], number: int = 0) -> list[list[tuple[str, Any]]]:
    """Give each shape of a layer as (kind, coordinates) per path, back in the map's coordinates."""
    layer, frame = data["layers"][number], data["frame"]
    steps = iter(np.array(layer["steps"]).reshape(-1, 2))
    paths = []
    for kind, length in zip(layer["pathKinds"], layer["pathLengths"], strict=True):
        places = np.cumsum([next(steps) for _ in range(length)], axis=0)
        paths.append((kind, places * frame["unit"] + [frame["west"], frame["south"]]))
    assert next(steps, None) is None
    remaining = iter(paths)
    return [[next(remaining) for _ in range(length)] for length in layer["shapeLengths"]]


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


def test_points_come_back_within_half_a_fifty_thousandth_of_the_extent(tmp_path: Path) -> None:
    places = np.random.default_rng(3).uniform([-700, 4_000], [900, 5_000], (500, 2))
    data = draw_data(tmp_path, [make_layer(shapely.points(places))])
    drawn = np.array([path[0][1][0] for path in read_shapes(data)])
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
    shapes = read_shapes(draw_data(tmp_path, [make_layer(shapely.from_wkt(texts))]))
    kinds = ["".join(kind for kind, _ in shape) for shape in shapes]
    assert kinds == ["p", "pp", "l", "l", "aa", "aa", "pl"]
    assert [len(places) for _, places in shapes[4]] == [4, 3]


def test_exterior_rings_run_counterclockwise_and_holes_clockwise(tmp_path: Path) -> None:
    text = "POLYGON ((0 0, 0 90, 90 90, 90 0, 0 0), (20 20, 40 20, 40 40, 20 20))"
    [[(_, exterior), (_, hole)]] = read_shapes(
        draw_data(tmp_path, [make_layer([shapely.from_wkt(text)])])
    )
    assert shapely.is_ccw(shapely.linearrings(exterior))
    assert not shapely.is_ccw(shapely.linearrings(hole))


def test_a_detailed_outline_is_simplified_to_the_resolution_of_the_map(tmp_path: Path) -> None:
    circle = shapely.Point(0, 0).buffer(1_000, quad_segs=50_000)
    data = draw_data(tmp_path, [make_layer([circle])])
    [[(_, ring)]] = read_shapes(data)
    assert 100 < len(ring) < 2_000
    assert np.abs(np.hypot(*ring.T) - 1_000).max() < 2 * data["frame"]["unit"]


def test_an_area_smaller_than_the_grid_is_still_there(tmp_path: Path) -> None:
    areas = [shapely.box(0, 0, 1, 1), shapely.box(5e5, 5e5, 1e6, 1e6)]
    shapes = read_shapes(draw_data(tmp_path, [make_layer(areas)]))
    assert [len(places) for _, places in shapes[0]] == [1]


def test_tens_of_thousands_of_islands_stay_small(tmp_path: Path) -> None:
    centres = np.random.default_rng(5).uniform([-180, -80], [0, 80], (30_000, 2))
    islands = shapely.buffer(shapely.points(centres), 0.2, quad_segs=8)
    draw_map(tmp_path / "map.html", [make_layer(islands)], title="islands", shapes_max=30_000)
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


def test_the_script_never_reads_text_as_markup(tmp_path: Path) -> None:
    draw_page(tmp_path, [])
    text = (tmp_path / "map.html").read_text(encoding="utf-8")
    for danger in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert danger not in text


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
    [layer] = draw_data(tmp_path, [make_points(50)], shapes_max=50)["layers"]
    assert len(layer["labels"]) == layer["total"] == 50
    assert layer["sample"] == ""


def test_a_crowded_layer_keeps_its_matches_and_samples_the_rest_evenly(tmp_path: Path) -> None:
    matched = np.zeros(1_000, dtype=bool)
    matched[[3, 500, 501, 999]] = True
    [layer] = draw_data(tmp_path, [make_points(1_000, matched=matched)], shapes_max=104)["layers"]
    rows = [int(label.split()[1]) for label in layer["labels"]]
    others = [row for row in rows if not matched[row]]
    assert rows == sorted(set(rows))
    assert {3, 500, 501, 999} < set(rows)
    assert len(others) == 100
    assert set(np.diff(others)) <= {9, 10, 11, 12}
    assert layer["matched"] == "".join(str(int(matched[row])) for row in rows)
    assert layer["sample"] == "showing 104 of 1,000"
    assert layer["total"] == 1_000
    assert layer["matchedTotal"] == 4


def test_more_matches_than_room_are_sampled_themselves(tmp_path: Path) -> None:
    matched = np.arange(1_000) % 2 == 0
    [layer] = draw_data(tmp_path, [make_points(1_000, matched=matched)], shapes_max=10)["layers"]
    assert layer["labels"] == [f"shape {row}" for row in range(0, 1_000, 100)]
    assert layer["matchedTotal"] == 500


def test_what_cannot_be_drawn_is_counted_but_left_out(tmp_path: Path) -> None:
    with np.errstate(invalid="ignore"):
        endless = shapely.LineString([(0, 0), (np.inf, 1)])
        torn = shapely.LineString([(0, 0), (np.nan, 1), (2, 2)])
    geometries = [None, shapely.Point(1, 1), shapely.Polygon(), endless, torn, shapely.Point(5, 5)]
    [layer] = draw_data(tmp_path, [make_layer(geometries, labels=list("abcdef"))])["layers"]
    assert layer["labels"] == ["b", "f"]
    assert layer["sample"] == "showing 2 of 6"


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
    events = make_points(100, role="event", matched=np.ones(100, dtype=bool))
    pairs = np.column_stack([np.arange(100), np.zeros(100, dtype=np.int64)])
    data = draw_data(tmp_path, [make_points(1), events], pairs=pairs, shapes_max=10)
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
