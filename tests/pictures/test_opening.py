"""Where a map opens, and what it says of what lies elsewhere."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely
from matplotlib.image import imread

from contrada.arrays import Box
from contrada.pictures import Layer, draw_map
from contrada.pictures.opening import choose_opening
from contrada.pictures.outlines import GRID_UNITS, Frame, frame_around
from contrada.pictures.palette import LIGHT


def layer_of(geometries: Any, matched: Any, role: Any = "event") -> Layer:
    shapes = np.array(geometries, dtype=object)
    return Layer("shapes", shapes, [""] * len(shapes), matched, role)


def open_on(*layers: Layer) -> tuple[Box, int, Frame]:
    """The opening view in the map's coordinates, what lies outside it, and the frame."""
    columns = [layer.geometries for layer in layers]
    opening = choose_opening(
        [layer.role for layer in layers], columns, [layer.matched for layer in layers]
    )
    frame = frame_around(columns, opening.boxes)
    west, south, east, north = (place * frame.unit for place in frame.opening)
    box = (west + frame.west, south + frame.south, east + frame.west, north + frame.south)
    return box, opening.matched_outside, frame


WORLD = shapely.points([(-170, -80), (170, 80), (3, 48), (4, 47)])
ZONES = [shapely.box(2, 46, 5, 49), shapely.box(20, 40, 22, 41)]


def test_a_map_opens_on_what_matched_of_either_kind() -> None:
    box, outside, frame = open_on(
        layer_of(ZONES, [True, False], "subscription"), layer_of(WORLD, [False, False, True, True])
    )
    assert box == pytest.approx((2, 46, 5, 49))
    assert outside == 0
    assert frame.unit == pytest.approx(3 / GRID_UNITS)
    assert frame.width * frame.unit == pytest.approx(340)


def test_where_nothing_matched_a_map_opens_on_the_subscriptions() -> None:
    box, _, _ = open_on(layer_of(ZONES, [False] * 2, "subscription"), layer_of(WORLD, [False] * 4))
    assert box == pytest.approx((2, 40, 22, 49))


def test_without_subscriptions_to_draw_a_map_opens_on_everything() -> None:
    box, _, _ = open_on(layer_of([], [], "subscription"), layer_of(WORLD, [False] * 4))
    assert box == pytest.approx((-170, -80, 170, 80))


def test_a_drawing_without_events_opens_on_everything() -> None:
    box, _, _ = open_on(layer_of(ZONES, [True, False], "subscription"))
    assert box == pytest.approx((2, 40, 22, 49))


def test_a_single_point_is_opened_on_with_its_surroundings() -> None:
    box, _, _ = open_on(layer_of(WORLD, [False, False, True, False]))
    assert box[2] - box[0] == pytest.approx(340 / 200)
    assert (box[0] + box[2]) / 2 == pytest.approx(3)


def test_few_matches_far_from_all_others_are_counted_and_not_opened_on() -> None:
    many: Any = shapely.points(np.random.default_rng(1).uniform([-120, 30], [-80, 45], (99, 2)))
    box, outside, _ = open_on(layer_of([*many, shapely.Point(179, 51)], np.ones(100, bool)))
    assert box[2] < -79
    assert outside == 1


def test_a_part_beyond_the_date_line_does_not_make_a_map_of_the_world() -> None:
    many: Any = shapely.points(np.random.default_rng(1).uniform([-179, 50], [-140, 65], (30, 2)))
    islands = shapely.MultiPolygon([shapely.box(-180, 51, -178, 52), shapely.box(178, 51, 180, 52)])
    box, outside, _ = open_on(layer_of([*many, islands], np.ones(31, bool)))
    assert box[2] < -139
    assert outside == 1, "one shape has a part there"


def test_two_halves_far_apart_are_both_opened_on() -> None:
    places = [(x + dx, 40) for x in (-100, 100) for dx in range(10)]
    box, outside, _ = open_on(layer_of(shapely.points(places), np.ones(20, bool)))
    assert (box[0], box[2]) == pytest.approx((-100, 109))
    assert outside == 0


def test_an_image_opens_on_what_matched_too(tmp_path: Path) -> None:
    zones = layer_of(ZONES, [True, False], "subscription")
    draw_map(tmp_path / "map.png", [zones, layer_of(WORLD, [False] * 4)], title="a zone")
    pixels = imread(io.BytesIO((tmp_path / "map.png").read_bytes()))[110:800, 50:1290, :3]
    edge = [int(LIGHT.subscriptions[0][at : at + 2], 16) / 255 for at in (1, 3, 5)]
    rows, _ = np.nonzero(np.abs(pixels - edge).max(axis=2) < 0.06)
    assert np.ptp(rows) > 500
