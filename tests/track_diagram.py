"""The picture in docs/transitions.md; `python tests/track_diagram.py` draws it anew.

The fences, the track and the rows are those that the first code of that page makes.
"""

from __future__ import annotations

import argparse
import contextlib
import io
from pathlib import Path
from typing import Any

import shapely

from documents import blocks

IMAGE = Path(__file__).parents[1] / "docs" / "images" / "transitions.svg"
SCALE, MARGIN = 96, 30
WIDTH, HEIGHT = 8.4, 4.1  # of the map, in its own units
SOUTH = 0.3
ROW_HEIGHT = 26
COLOURS = {
    "enter": "#1b7a3d",
    "inside": "#5c6b79",
    "exit": "#b3261e",
    "cross": "#8a1f63",
    "dwell": "#8a5a00",
}
COLUMNS = (("time", 0), ("transition", 80), ("subscription", 200), ("event", 340), ("cause", 420))
ABOVE = {1, 4, 6}  # positions whose label stands above them, clear of the track


def run_page() -> dict[str, Any]:
    """Run the first code of the page, and return what it has made."""
    names: dict[str, Any] = {}
    code = blocks("docs/transitions.md", "python")[0].code
    with contextlib.redirect_stdout(io.StringIO()):
        exec(code, names)
    return names


def draw() -> str:
    """The picture as SVG."""
    page = run_page()
    places = [shapely.from_wkt(place) for _, place in page["track"]]
    times = [time for time, _ in page["track"]]
    rows = type(page["tracker"])(page["fences"], dwell="30 min").follow(page["positions"])
    height = 2 * MARGIN + (HEIGHT - SOUTH) * SCALE + (rows.num_rows + 1) * ROW_HEIGHT + 10
    width = 2 * MARGIN + WIDTH * SCALE
    style = 'font-family="system-ui, sans-serif" font-size="15"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" {style}>',
        "<title>A van's track through three fences, and the rows that it gives</title>",
        '<rect width="100%" height="100%" fill="#ffffff"/>',
    ]
    for name in page["fences"]:
        lines += _fence(name, page["fences"].get(name).predicate.expression.right.value)
    lines.append(_path(places))
    by_event = {
        row["event"]: row["transition"] for row in rows.to_pylist() if row["cause"] == "position"
    }
    for number, (place, time) in enumerate(zip(places, times, strict=True)):
        lines += _position(number, place, time, by_event.get(number))
    top = 2 * MARGIN + (HEIGHT - SOUTH) * SCALE
    lines += _table(rows.to_pylist(), top)
    return "\n".join([*lines, "</svg>", ""])


def _at(x: float, y: float) -> tuple[float, float]:
    return MARGIN + x * SCALE, MARGIN + (HEIGHT - y) * SCALE


def _fence(name: str, shape: Any) -> list[str]:
    west, south, east, north = shape.bounds
    x, y = _at(west, north)
    size = f'width="{(east - west) * SCALE:g}" height="{(north - south) * SCALE:g}"'
    middle, above = _at((west + east) / 2, north)
    return [
        f'<rect x="{x:g}" y="{y:g}" {size} rx="4" fill="#fbe3d6" stroke="#d9541e"/>',
        f'<text x="{middle:g}" y="{above - 8:g}" text-anchor="middle" fill="#8f2f12">{name}</text>',
    ]


def _path(places: list[Any]) -> str:
    points = " ".join("{:g},{:g}".format(*_at(place.x, place.y)) for place in places)
    return f'<polyline points="{points}" fill="none" stroke="#1b74b8" stroke-width="2.5"/>'


def _position(number: int, place: Any, time: str, transition: str | None) -> list[str]:
    x, y = _at(place.x, place.y)
    colour = COLOURS.get(transition or "", "#1d2a36")
    label = f"{time} {transition}" if transition else time
    halo = 'stroke="#ffffff" stroke-width="4" stroke-linejoin="round" paint-order="stroke"'
    label_y = y - 18 if number in ABOVE else y + 28
    return [
        f'<circle cx="{x:g}" cy="{y:g}" r="11" fill="{colour}" stroke="#ffffff" stroke-width="2"/>',
        (
            f'<text x="{x:g}" y="{y + 5:g}" text-anchor="middle" font-size="13" fill="#ffffff">'
            f"{number}</text>"
        ),
        (
            f'<text x="{x:g}" y="{label_y:g}" text-anchor="middle" font-size="13" fill="{colour}" '
            f"{halo}>{label}</text>"
        ),
    ]


def _table(rows: list[dict[str, Any]], top: float) -> list[str]:
    cells = [{name: name for name, _ in COLUMNS}]
    cells += [{**row, "time": f"{row['time']:%H:%M}"} for row in rows]
    lines = []
    for number, cell in enumerate(cells):
        y = top + number * ROW_HEIGHT + 18
        colour = COLOURS[cell["transition"]] if number else "#1d2a36"
        weight = "normal" if number else "bold"
        for name, left in COLUMNS:
            lines.append(
                f'<text x="{MARGIN + left:g}" y="{y:g}" fill="{colour}" font-weight="{weight}">'
                f"{cell[name]}</text>"
            )
    return lines


def main() -> None:
    """Draw it anew."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    IMAGE.write_text(draw())
    print(f"written: {IMAGE}")


if __name__ == "__main__":
    main()
