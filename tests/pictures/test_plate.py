"""The image: its size, that it shows what it should, and that it depends on nothing around it."""

import io
import struct
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
import shapely
from matplotlib.image import imread
from numpy.typing import NDArray

from contrada.pictures import Layer, draw_map
from contrada.pictures.palette import LIGHT


def draw_plate(folder: Path, layers: list[Layer], title: str = "a map", **options: Any) -> bytes:
    draw_map(folder / "map.png", layers, title=title, **options)
    return (folder / "map.png").read_bytes()


def pixels_of(content: bytes) -> NDArray[np.float64]:
    """Give red, green and blue from 0 to 255, rows from the top."""
    return np.asarray(imread(io.BytesIO(content))[:, :, :3] * 255.0, dtype=np.float64)


def has_color(pixels: NDArray[np.float64], color: str) -> NDArray[np.bool_]:
    red, green, blue = (int(color[at : at + 2], 16) for at in (1, 3, 5))
    is_near: NDArray[np.bool_] = np.abs(pixels - np.array([red, green, blue])).max(axis=2) < 12
    return is_near


def one_layer(*geometries: shapely.Geometry, **changes: Any) -> Layer:
    columns: dict[str, Any] = {
        "name": "shapes",
        "geometries": np.array(geometries, dtype=object),
        "labels": [""] * len(geometries),
        "matched": np.ones(len(geometries), dtype=bool),
        "role": "subscription",
    }
    return Layer(**(columns | changes))


MAP = np.s_[110:940, 50:1290]


def test_an_image_is_1600_by_1000_pixels_and_not_blank(tmp_path: Path) -> None:
    content = draw_plate(tmp_path, [one_layer(shapely.box(0, 0, 4, 3))], summary={"pairs": 7})
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", content[16:24]) == (1600, 1000)
    assert pixels_of(content).std() > 10


def test_matched_subscriptions_are_warm_events_cool_and_the_rest_muted(tmp_path: Path) -> None:
    sites = one_layer(
        shapely.LineString([(0, 0), (400, 0)]),
        shapely.LineString([(0, 10), (400, 10)]),
        matched=[True, False],
    )
    events = one_layer(shapely.LineString([(0, 20), (400, 20)]), role="event")
    pixels = pixels_of(draw_plate(tmp_path, [sites, events]))[MAP]
    for color in (LIGHT.subscriptions[0], LIGHT.events[0], LIGHT.muted):
        assert has_color(pixels, color).any()


def test_a_hole_stays_open(tmp_path: Path) -> None:
    ring = shapely.box(0, 0, 300, 200).difference(shapely.box(60, 40, 240, 160))
    pixels = pixels_of(draw_plate(tmp_path, [one_layer(ring)]))[MAP]
    rows, columns = (length // 2 for length in pixels.shape[:2])
    middle = pixels[rows - 20 : rows + 20, columns - 20 : columns + 20]
    assert (has_color(middle, LIGHT.ground) | has_color(middle, LIGHT.graticule)).all()


def test_degrees_far_north_are_as_wide_as_they_are_on_the_ground(tmp_path: Path) -> None:
    square = one_layer(shapely.box(9, 59.75, 10, 60.25))
    is_edge = has_color(pixels_of(draw_plate(tmp_path, [square]))[MAP], LIGHT.subscriptions[0])
    rows, columns = np.nonzero(is_edge)
    assert np.ptp(columns) == pytest.approx(np.ptp(rows), rel=0.02)


def test_a_match_too_small_to_see_is_drawn_as_a_dot(tmp_path: Path) -> None:
    world = one_layer(shapely.box(0, 0, 9_000, 9_000), matched=[False])
    speck = one_layer(shapely.box(4_000, 4_000, 4_000.1, 4_000.1))
    pixels = pixels_of(draw_plate(tmp_path, [world, speck]))[MAP]
    red_excess = pixels[:, :, 0] - pixels[:, :, 2]
    assert (red_excess > 100).sum() >= 8


def test_text_from_data_is_no_formula_and_no_missing_letter_warns(tmp_path: Path) -> None:
    hostile = "$\\frac{1}{$ 日本 \ud800\n{}%s \\LaTeX " * 9
    layer = one_layer(shapely.Point(1, 1), name=hostile)
    content = draw_plate(tmp_path, [layer], title=hostile, summary={hostile: hostile})
    assert pixels_of(content).std() > 5


def test_a_long_summary_and_many_layers_leave_room_for_the_map(tmp_path: Path) -> None:
    layers = [one_layer(shapely.Point(k, k), name=f"layer {k}") for k in range(40)]
    summary = {f"fact {k}": k for k in range(40)}
    content = draw_plate(tmp_path, layers, summary=summary)
    assert struct.unpack(">II", content[16:24]) == (1600, 1000)


def test_the_callers_matplotlib_style_neither_shows_nor_changes(tmp_path: Path) -> None:
    layer = one_layer(shapely.box(0, 0, 4, 3), shapely.Point(1, 1))
    plain = draw_plate(tmp_path, [layer])
    style: Any = {
        "savefig.bbox": "tight",
        "figure.dpi": 30,
        "figure.facecolor": "black",
        "axes.facecolor": "black",
        "axes.grid": True,
        "font.size": 40,
        "font.family": "monospace",
        "text.usetex": True,
        "lines.linewidth": 9,
    }
    with mpl.rc_context(style):
        before = dict(mpl.rcParams)
        styled = draw_plate(tmp_path, [layer])
        assert dict(mpl.rcParams) == before
    assert styled == plain
