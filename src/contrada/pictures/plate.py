"""A map as an image: the sheet with its title, legend and footer.

Every font, colour and width is given here and nothing is set globally, so that the image and a
caller's matplotlib style leave each other alone.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from contrada.errors import MissingPackage
from contrada.pictures.graticule import choose_step, line_places, write_place
from contrada.pictures.outlines import AREA_PATH, LINE_PATH, POINT_PATH
from contrada.pictures.palette import LIGHT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from contrada.pictures.outlines import Frame
    from contrada.pictures.picture import DrawnLayer, Picture

WIDTH_PX, HEIGHT_PX, DPI = 1600, 1000, 200

# The sheet, in pixels from its lower left corner.
MARGIN_PX = 40
TITLE_BASE_PX = HEIGHT_PX - 66
MAP_TOP_PX = HEIGHT_PX - 96
LEGEND_LEFT_PX = 1336
LEGEND_ENTRY_PX = 130
MAP_WIDTH_PX = LEGEND_LEFT_PX - 2 * MARGIN_PX
FACT_ROW_PX = 70
FACTS_PER_ROW = 7
FACTS_MAX = 4 * FACTS_PER_ROW
LABEL_ZORDER = 1_000_000


@dataclass(frozen=True, slots=True)
class Window:
    """What the map's rectangle shows: grid units of x, and of y times stretch, and its scale."""

    west: float
    south: float
    width: float
    height: float
    units_per_px: float


def require_matplotlib() -> None:
    """Raise MissingPackage, with the remedy, where matplotlib is not installed."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise MissingPackage(
            "drawing a .png needs matplotlib, which is not installed: pip install matplotlib"
        ) from error


def render_plate(picture: Picture) -> bytes:
    """Draw the picture as a PNG of 1600 x 1000 pixels."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from contrada.pictures.strokes import stroke_layers

    inches = (WIDTH_PX / DPI, HEIGHT_PX / DPI)
    figure = Figure(figsize=inches, dpi=DPI, facecolor="white")
    figure.set_layout_engine("none")
    canvas = FigureCanvasAgg(figure)
    facts = _facts_of(picture)
    map_bottom_px = MARGIN_PX + -(-len(facts) // FACTS_PER_ROW) * FACT_ROW_PX
    window = _fit_window(picture.frame, MAP_WIDTH_PX, MAP_TOP_PX - map_bottom_px)
    axes = _add_map(figure, window, map_bottom_px)
    _add_graticule(axes, picture.frame, window)
    stroke_layers(axes, picture, window.units_per_px)
    _write(figure, MARGIN_PX, TITLE_BASE_PX, _fit(picture.title, 74), 13, weight="bold")
    _add_legend(figure, picture, map_bottom_px)
    _add_facts(figure, facts, map_bottom_px)
    file = io.BytesIO()
    # Not savefig, whose settings could crop the image.
    canvas.print_png(file)  # type: ignore[no-untyped-call]
    return file.getvalue()


def _fit_window(frame: Frame, width_px: float, height_px: float) -> Window:
    """Centre the opening view in the map's rectangle, with a little air around it."""
    west, south, east, north = frame.opening
    south, north = south * frame.stretch, north * frame.stretch
    scale = 1.06 * max((east - west) / width_px, (north - south) / height_px)
    return Window(
        west=(west + east) / 2 - scale * width_px / 2,
        south=(south + north) / 2 - scale * height_px / 2,
        width=scale * width_px,
        height=scale * height_px,
        units_per_px=scale,
    )


def _add_map(figure: Figure, window: Window, bottom_px: float) -> Axes:
    axes = figure.add_axes(
        (
            MARGIN_PX / WIDTH_PX,
            bottom_px / HEIGHT_PX,
            MAP_WIDTH_PX / WIDTH_PX,
            (MAP_TOP_PX - bottom_px) / HEIGHT_PX,
        ),
        facecolor=LIGHT.ground,
    )
    axes.set_xlim(window.west, window.west + window.width)
    axes.set_ylim(window.south, window.south + window.height)
    axes.set_autoscale_on(False)
    axes.grid(visible=False)
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set(visible=True, color=LIGHT.graticule, linewidth=0.6)
    return axes


def _add_graticule(axes: Axes, frame: Frame, window: Window) -> None:
    from matplotlib.collections import LineCollection

    rise = frame.unit / frame.stretch
    west, south = frame.west + window.west * frame.unit, frame.south + window.south * rise
    east, north = west + window.width * frame.unit, south + window.height * rise
    step = choose_step(max(east - west, north - south), is_lonlat=frame.is_lonlat)
    if frame.is_lonlat:
        west, south, east, north = max(west, -180), max(south, -90), min(east, 180), min(north, 90)
    right, top = window.west + window.width, window.south + window.height
    pixel = window.units_per_px
    lines = []
    for x in line_places(west, east, step):
        at = (x - frame.west) / frame.unit
        lines.append([(at, window.south), (at, top)])
        if window.west + 90 * pixel < at < right - 30 * pixel:
            text = write_place(x, step, is_lonlat=frame.is_lonlat)
            _label(axes, at, window.south + 7 * pixel, text, horizontalalignment="center")
    for y in line_places(south, north, step):
        at = (y - frame.south) / rise
        lines.append([(window.west, at), (right, at)])
        if window.south + 36 * pixel < at < top - 12 * pixel:
            text = write_place(y, step, is_lonlat=frame.is_lonlat)
            _label(axes, window.west + 7 * pixel, at, text, verticalalignment="center")
    graticule = LineCollection(lines, colors=LIGHT.graticule, linewidths=0.4, zorder=0)
    axes.add_collection(graticule, autolim=False)


def _label(axes: Axes, x: float, y: float, text: str, **alignment: Any) -> None:
    from matplotlib.patheffects import withStroke

    halo = [withStroke(linewidth=1.6, foreground=LIGHT.ground)]
    style = _text_style(5.2, LIGHT.quiet)
    axes.text(x, y, text, zorder=LABEL_ZORDER, path_effects=halo, **style, **alignment)


def _add_legend(figure: Figure, picture: Picture, bottom_px: float) -> None:
    """List the layers beside the map, as many as fit: name, swatches with counts, sampling."""
    y = MAP_TOP_PX - 18.0
    for number, drawn in enumerate(picture.layers):
        if y - LEGEND_ENTRY_PX < bottom_px:
            left = f"and {len(picture.layers) - number} more layers"
            _write(figure, LEGEND_LEFT_PX - 16, y, left, 6, color=LIGHT.quiet)
            break
        total, matched = drawn.total, drawn.matched_total
        _write(figure, LEGEND_LEFT_PX - 16, y, _fit(drawn.layer.name, 22), 8, weight="bold")
        accent = LIGHT.accent(drawn.layer.role, drawn.position)
        y = _legend_line(figure, y - 34, drawn, accent, f"{matched:,} {drawn.layer.words[0]}")
        y = _legend_note(figure, y, drawn.matched_sample)
        if matched < total:
            y = _legend_line(
                figure, y, drawn, LIGHT.muted, f"{total - matched:,} {drawn.layer.words[1]}"
            )
            y = _legend_note(figure, y, drawn.unmatched_sample)
        y -= 22
    else:
        if picture.matched_outside:
            _legend_note(figure, y, f"{picture.matched_outside:,} matched lie outside")


def _legend_note(figure: Figure, y: float, text: str) -> float:
    """Write a quiet line, if there is one; return where the next one goes."""
    if not text:
        return y
    _write(figure, LEGEND_LEFT_PX + 22, y + 4, text, 5.8, color=LIGHT.quiet)
    return y - 28


def _legend_line(figure: Figure, y: float, drawn: DrawnLayer, color: str, text: str) -> float:
    from matplotlib.lines import Line2D

    marker = {AREA_PATH: "s", LINE_PATH: "_", POINT_PATH: "o"}[drawn.outlines.chief_kind()]
    swatch = Line2D(
        [(LEGEND_LEFT_PX - 4) / WIDTH_PX],
        [(y + 8) / HEIGHT_PX],
        marker=marker,
        markersize=7 if marker != "o" else 4.5,
        markerfacecolor=(color, 0.4 if marker == "s" else 1.0),
        markeredgecolor=color,
        markeredgewidth=1.8 if marker == "_" else 0.8,
        linestyle="none",
        transform=figure.transFigure,
    )
    figure.add_artist(swatch)
    _write(figure, LEGEND_LEFT_PX + 22, y, text, 7, color=LIGHT.ink)
    return y - 32


def _facts_of(picture: Picture) -> list[tuple[str, str]]:
    """List the summary; where it is longer than the footer, add how much is left out."""
    facts = list(picture.summary.items())
    if len(facts) <= FACTS_MAX:
        return facts
    return [*facts[: FACTS_MAX - 1], ("not shown here", f"{len(facts) - FACTS_MAX + 1} more")]


def _add_facts(figure: Figure, facts: list[tuple[str, str]], map_bottom_px: float) -> None:
    """Write the summary under the map, each value over its name."""
    step_px = (WIDTH_PX - 2 * MARGIN_PX) / FACTS_PER_ROW
    for number, (name, value) in enumerate(facts):
        row, column = divmod(number, FACTS_PER_ROW)
        x = MARGIN_PX + column * step_px
        y = map_bottom_px - 40 - row * FACT_ROW_PX
        _write(figure, x, y, _fit(value, 15), 8, weight="bold")
        _write(figure, x, y - 24, _fit(name, 23), 5.8, color=LIGHT.quiet)


def _write(
    figure: Figure,
    x_px: float,
    y_px: float,
    text: str,
    size: float,
    *,
    color: str = LIGHT.ink,
    weight: str = "normal",
) -> None:
    style = _text_style(size, color)
    figure.text(x_px / WIDTH_PX, y_px / HEIGHT_PX, text, fontweight=weight, **style)


def _text_style(size: float, color: str) -> dict[str, Any]:
    # Text from data is no formula, whatever dollars and backslashes it has.
    plain = {"parse_math": False, "usetex": False}
    return {"fontfamily": "DejaVu Sans", "fontsize": size, "color": color, **plain}


def _fit(text: str, length_max: int) -> str:
    """Bring text into one line of at most so many characters that the font has."""
    line = " ".join(text.split())
    if len(line) > length_max:
        line = line[: length_max - 1].rstrip() + "…"
    known = _font_characters()
    return "".join(character if ord(character) in known else "\ufffd" for character in line)


def _font_characters() -> frozenset[int]:
    """Return the code points of the bundled font; drawing any other would warn."""
    from matplotlib.font_manager import FontProperties, findfont, get_font

    return frozenset(get_font(findfont(FontProperties(family="DejaVu Sans"))).get_charmap())
