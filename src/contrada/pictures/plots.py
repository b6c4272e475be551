"""Plots of measurements: panels of lines and points or of bars, side by side, drawn to a PNG.

What was measured is filled and what is quoted is hollow, so that a paper's word and ours can stand
at one place; a figure that has both says so. Where curves coincide the earlier ones are drawn
wider, and show around the later ones. Every colour and width is given here and nothing is set
globally.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from contrada.machine import write_whole
from contrada.pictures.palette import LIGHT
from contrada.pictures.plate import require_matplotlib

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#1b74b8", "#d9541e", "#5b8c2a", "#8a5aa8", "#b0892f", "#4a5a68")
_GRID = "#dfe5ea"
_HOLLOW = "Filled: ours; hollow: the paper's."
_SAME = 0.015  # of the axis: points that are nearer to each other cannot be told apart
_COVERS_MAX = 3  # a curve under more is drawn no wider
_CHARACTERS_PER_IN = 12.5  # of a note
_LINES = {"solid": "-", "dashed": "--", "dotted": ":", "none": ""}
_PANEL_WIDTH_IN, _LEGEND_WIDTH_IN, _HEIGHT_IN, _DPI = 3.8, 2.2, 5.5, 130

Line = Literal["solid", "dashed", "dotted", "none"]
Scale = Literal["linear", "log", "log with zero"]


@dataclass(frozen=True, slots=True)
class Series:
    """Points of one name, joined by a line or not. A series without a name has no legend."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    colour: int = 0
    line: Line = "solid"
    marker: str = "o"
    is_quoted: bool = False


@dataclass(frozen=True, slots=True)
class Panel:
    """One plot. `links` join two values at one x; `names` stand at places of x for its numbers.

    `x_label` is for a panel whose x is not that of the others; `is_x_log` for sizes over decades.
    """

    series: Sequence[Series]
    title: str = ""
    links: Sequence[tuple[float, float, float]] = ()
    names: Mapping[float, str] | None = None
    x_label: str | None = None
    is_x_log: bool = False


@dataclass(frozen=True, slots=True)
class Bars:
    """One plot of stacked bars: what each is named, and the values of each of their parts."""

    names: Sequence[str]
    parts: Mapping[str, Sequence[float]]
    title: str = ""
    x_label: str | None = None


def draw_panels(
    path: str | Path,
    panels: Sequence[Panel | Bars],
    *,
    title: str,
    note: str = "",
    x_label: str = "",
    y_label: str,
    scale: Scale = "linear",
) -> None:
    """Draw panels that share the y axis and one legend. A linear axis begins at zero."""
    figure = make_figure(
        panels, title=title, note=note, x_label=x_label, y_label=y_label, scale=scale
    )
    content = BytesIO()
    figure.savefig(content, format=Path(path).suffix[1:])
    write_whole(Path(path), content.getvalue())


def make_figure(
    panels: Sequence[Panel | Bars],
    *,
    title: str,
    note: str = "",
    x_label: str = "",
    y_label: str,
    scale: Scale = "linear",
) -> Figure:
    """Make the figure that `draw_panels` saves."""
    require_matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    width = max(2, len(panels)) * _PANEL_WIDTH_IN + _LEGEND_WIDTH_IN
    figure = Figure(figsize=(width, _HEIGHT_IN), dpi=_DPI, layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    row = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    values = [y for panel in panels for y in _values(panel)]
    for axes, panel in zip(row, panels, strict=True):
        if isinstance(panel, Bars):
            _draw_bars(axes, panel)
        else:
            _draw(axes, panel, _count_covers(panel.series, values, scale))
        axes.set_title(panel.title, fontsize=10, color=LIGHT.ink)
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_xlabel(x_label if panel.x_label is None else panel.x_label)
    row[0].set_ylabel(y_label)
    _scale(row[0], values, scale)
    if _has_both(panels):
        note = f"{note} {_HOLLOW}".strip()
    _write_title(figure, title, textwrap.wrap(note, int(width * _CHARACTERS_PER_IN)))
    _add_legend(figure, row)
    return figure


def _has_both(panels: Sequence[Panel | Bars]) -> bool:
    """Whether a figure has both measured and quoted points."""
    series = [one for panel in panels if isinstance(panel, Panel) for one in panel.series]
    with_marker = [one.is_quoted for one in series if one.marker]
    return any(with_marker) and not all(with_marker)


def _values(panel: Panel | Bars) -> list[float]:
    if isinstance(panel, Bars):
        return [sum(parts) for parts in zip(*panel.parts.values(), strict=True)]
    return [y for series in panel.series for y in series.y]


def _draw_bars(axes: Axes, panel: Bars) -> None:
    places = list(range(len(panel.names)))
    bottom = [0.0] * len(places)
    for colour, (name, values) in enumerate(panel.parts.items()):
        axes.bar(places, values, 0.7, bottom, label=name, color=COLOURS[colour], zorder=3)
        bottom = [low + value for low, value in zip(bottom, values, strict=True)]
    axes.set_xticks(places, panel.names, rotation=45, ha="right", rotation_mode="anchor")
    axes.grid(color=_GRID, linewidth=0.6, axis="y", zorder=0)


def _count_covers(series: Sequence[Series], values: Sequence[float], scale: Scale) -> list[int]:
    """Count for each series the later ones that cover it, at half of its points or more."""
    positive = [value for value in values if value > 0] or [1.0]
    lowest = min(positive) / 10

    def height(value: float) -> float:
        return value if scale == "linear" else math.log10(max(value, lowest))

    extent = max(map(height, values), default=1) - min(map(height, [*values, 0.0]), default=0)
    places = [{x: height(y) for x, y in zip(one.x, one.y, strict=True)} for one in series]
    covers = []
    for number, own in enumerate(places):
        shared = [
            sum(abs(own[x] - later[x]) <= _SAME * extent for x in own.keys() & later.keys())
            for later in places[number + 1 :]
        ]
        covers.append(sum(2 * count >= max(len(own), 3) for count in shared))
    return covers


def _draw(axes: Axes, panel: Panel, covers: Sequence[int]) -> None:
    from matplotlib.ticker import FuncFormatter, NullFormatter, NullLocator

    for x, low, high in panel.links:
        axes.plot([x, x], [low, high], color=LIGHT.muted, linewidth=1, zorder=1)
    for series, covered in zip(panel.series, covers, strict=True):
        size = 7.0 if series.is_quoted else 5.0 + 3 * min(covered, _COVERS_MAX)
        colour = COLOURS[series.colour % len(COLOURS)]
        axes.plot(
            series.x,
            series.y,
            linestyle=_LINES[series.line],
            linewidth=1.6 + 1.8 * min(covered, _COVERS_MAX),
            color=colour,
            marker=series.marker,
            markersize=size,
            markerfacecolor="white" if series.is_quoted else colour,
            markeredgewidth=1.5 if series.is_quoted else 0,
            label=series.name or "_unnamed",
            clip_on=False,
            zorder=3,
        )
    axes.grid(color=_GRID, linewidth=0.6, axis="both" if panel.names is None else "y")
    if panel.is_x_log:
        axes.set_xscale("log")
        axes.xaxis.set_minor_formatter(NullFormatter())
    if panel.names is not None:
        axes.set_xticks(list(panel.names), list(panel.names.values()))
        axes.xaxis.set_minor_locator(NullLocator())
    elif not panel.is_x_log:
        axes.set_xlim(left=0)
        axes.locator_params(axis="x", nbins=6)
        axes.xaxis.set_major_formatter(FuncFormatter(_write_number))


def _scale(axes: Axes, values: Sequence[float], scale: Scale) -> None:
    """Scale the axis of y; where a logarithm must show zero, its last decade is linear."""
    from matplotlib.ticker import FuncFormatter

    if scale == "linear":
        axes.set_ylim(bottom=0)
        return
    positive = [value for value in values if value > 0] or [1.0]
    if scale == "log":
        axes.set_yscale("log")
    else:
        lowest = 10.0 ** math.floor(math.log10(min(positive)))
        axes.set_yscale("symlog", linthresh=lowest)
        axes.set_ylim(0, 10.0 ** math.ceil(math.log10(max(positive) * 1.01)))
    axes.yaxis.set_major_formatter(FuncFormatter(_write_number))


def _write_number(value: float, _: int) -> str:
    return f"{value:,.10g}"


def _write_title(figure: Figure, title: str, note: Sequence[str]) -> None:
    """Write the title, and below it the note in the lines that the title keeps free for it."""
    room = "\n" * len(note)
    head = figure.suptitle(f"{title}{room}", x=0.01, ha="left", fontsize=12, color=LIGHT.ink)
    head.set_fontweight("bold")
    figure.text(
        0.01,
        0.99,
        "\n".join(["", *note]),
        ha="left",
        va="top",
        fontsize=10,
        color=LIGHT.quiet,
        linespacing=1.5,
    )


def _add_legend(figure: Figure, row: Sequence[Axes]) -> None:
    """Name each series once, in the order of their first appearance.

    Where the panels have no name in common, the title of each stands above its own.
    """
    from matplotlib.lines import Line2D

    legends = [axes.get_legend_handles_labels() for axes in row]
    labels = [label for _, panel_labels in legends for label in panel_labels]
    are_apart = len(set(labels)) == len(labels) and sum(bool(own) for _, own in legends) > 1
    named: dict[str, Artist] = {}
    for axes, (handles, panel_labels) in zip(row, legends, strict=True):
        if are_apart:
            named[f"{axes.get_title()}:"] = Line2D([], [], linestyle="")
        for handle, label in zip(handles, panel_labels, strict=True):
            named.setdefault(str(label), handle)
    if len(named) > 1:
        figure.legend(
            list(named.values()), list(named), loc="outside right upper", frameon=False, fontsize=9
        )
