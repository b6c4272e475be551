"""The diagram of the overlay's messages; `python tests/overlay_diagram.py` draws it anew.

An arrow leads from what happens to a peer, a call or a message that it receives, to a message
that it may then send. Where the boxes stand is decided here, what arrows there are in the code.
"""

from __future__ import annotations

import argparse
from math import hypot
from pathlib import Path

from overlay_code import CALLS, find_arrows

IMAGE = Path(__file__).parents[1] / "docs" / "images" / "overlay-messages.svg"
# Column and row of each box.
PLACES = {
    "publish": (0, 0),
    "Event": (1, 0),
    "Copy": (1, 1),
    "Dissolve": (1, 2),
    "Give": (1, 2.9),
    "Handed": (2, 2),
    "Adopt": (3, 1),
    "tick": (0, 3),
    "Lead": (3, 2.5),
    "Took": (4, 2.5),
    "Grown": (4, 1.5),
    "Replaced": (4, 3.6),
    "Moved": (2, 3.8),
    "Join": (1, 4.2),
    "Report": (3, 4.6),
    "Refuse": (4, 4.6),
    "Seek": (1, 5.1),
    "Offer": (2, 6.2),
    "Accept": (3, 5.9),
    "Leave": (4, 6.5),
    "leave": (0, 7),
}
COLUMN, ROW, WIDTH, HEIGHT, MARGIN = 190, 74, 96, 34, 24
CLEARANCE = 5  # pixels between an arrow and the boxes that it passes
BENDS = (0.12, -0.12, 0.2, -0.2, 0.3, -0.3, 0.4, -0.4)  # how far an arrow swerves, of its length

Point = tuple[float, float]


def draw() -> str:
    """The diagram as SVG."""
    arrows = find_arrows()
    width = 2 * MARGIN + WIDTH + max(x for x, _ in PLACES.values()) * COLUMN
    height = 2 * MARGIN + HEIGHT + max(y for _, y in PLACES.values()) * ROW
    style = 'font-family="system-ui, sans-serif" font-size="15" text-anchor="middle"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" {style}>',
        "<title>Which message makes a peer of the overlay send which others</title>",
        '<rect width="100%" height="100%" fill="#ffffff"/>',
    ]
    for cause, kinds in arrows.items():
        lines += [_arrow(cause, kind) for kind in sorted(kinds) if kind != cause]
    lines += [_box(name, name in arrows[name]) for name in PLACES]
    return "\n".join([*lines, "</svg>\n"])


def _middle(name: str) -> Point:
    x, y = PLACES[name]
    return MARGIN + WIDTH / 2 + x * COLUMN, MARGIN + HEIGHT / 2 + y * ROW


def _box(name: str, is_passed_on: bool) -> str:
    x, y = _middle(name)
    fill, ink = ("#1b74b8", "#ffffff") if name in CALLS else ("#eef2f5", "#1d2a36")
    label = f"{name} ↻" if is_passed_on else name
    return (
        f'<rect x="{x - WIDTH / 2:g}" y="{y - HEIGHT / 2:g}" width="{WIDTH}" height="{HEIGHT}" '
        f'rx="8" fill="{fill}" stroke="#5c6b79"/>'
        f'<text x="{x:g}" y="{y + 5:g}" fill="{ink}">{label}</text>'
    )


def _arrow(cause: str, kind: str) -> str:
    """A curve from the edge of one box to that of another, with a head."""
    colour = "#1b74b8" if cause in CALLS else "#7a8894"
    (x0, y0), (mx, my), (x1, y1) = _curve(cause, kind)
    length = hypot(x1 - mx, y1 - my)
    u, v = (x1 - mx) / length, (y1 - my) / length
    tip = [(x1 + 8 * u, y1 + 8 * v), (x1 - 4 * v, y1 + 4 * u), (x1 + 4 * v, y1 - 4 * u)]
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in tip)
    return (
        f'<path d="M{x0:.1f} {y0:.1f}Q{mx:.1f} {my:.1f} {x1:.1f} {y1:.1f}" '
        f'fill="none" stroke="{colour}" stroke-width="1.4"/>'
        f'<polygon points="{points}" fill="{colour}"/>'
    )


def _curve(cause: str, kind: str) -> tuple[Point, Point, Point]:
    """Both ends of an arrow and what bends it, so that it passes behind no box."""
    others = [_middle(name) for name in PLACES if name not in (cause, kind)]
    (x0, y0), (x1, y1) = _middle(cause), _middle(kind)
    for bend in BENDS:
        pull = (x0 + x1) / 2 - abs(y1 - y0) * bend, (y0 + y1) / 2 + (x1 - x0) * bend
        curve = _edge((x0, y0), pull, 0), pull, _edge((x1, y1), pull, 8)
        if not any(_passes(curve, box) for box in others):
            return curve
    raise AssertionError(f"{cause} to {kind} passes behind a box: move one in PLACES")


def _passes(curve: tuple[Point, Point, Point], box: Point) -> bool:
    """Whether a curve comes too near to the box with this middle."""
    for step in range(61):
        t = step / 60
        x, y = (
            (1 - t) ** 2 * a + 2 * t * (1 - t) * b + t**2 * c
            for a, b, c in zip(*curve, strict=True)
        )
        if abs(x - box[0]) < WIDTH / 2 + CLEARANCE and abs(y - box[1]) < HEIGHT / 2 + CLEARANCE:
            return True
    return False


def _edge(middle: Point, to: Point, gap: float) -> Point:
    """Where a line from the middle of a box leaves it, and a little farther."""
    dx, dy = to[0] - middle[0], to[1] - middle[1]
    share = min(
        (WIDTH / 2 + gap) / abs(dx) if dx else 9.0, (HEIGHT / 2 + gap) / abs(dy) if dy else 9.0
    )
    return middle[0] + dx * share, middle[1] + dy * share


def main() -> None:
    """Draw it to where the documents show it."""
    argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0]).parse_args()
    IMAGE.write_text(draw(), encoding="utf-8")


if __name__ == "__main__":
    main()
