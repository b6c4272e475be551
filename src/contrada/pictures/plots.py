"""Plots of measurements: panels of lines and points, side by side, drawn to a PNG.

What was measured is filled and what is quoted is hollow, so that a paper's word and ours can stand
at one place. Every colour and width is given here and nothing is set globally.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from contrada.pictures.palette import LIGHT
from contrada.pictures.plate import require_matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#1b74b8", "#d9541e", "#5b8c2a", "#8a5aa8", "#b0892f", "#4a5a68")
_GRID = "#dfe5ea"
_LINES = {"solid": "-", "dashed": "--", "dotted": ":", "none": ""}
_PANEL_WIDTH_IN, _LEGEND_WIDTH_IN, _HEIGHT_IN, _DPI = 3.8, 2.2, 5.5, 130

Scale = Literal["linear", "log", "log with zero"]


@dataclass(frozen=True, slots=True)
class Series:
    """Points of one name, joined by a line or not. A series without a name has no legend."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    colour: int = 0
    line: Literal["solid", "dashed", "dotted", "none"] = "solid"
    marker: str = "o"
    is_quoted: bool = False


@dataclass(frozen=True, slots=True)
class Panel:
    """One plot. `links` join two values at one x; `names` stand at places of x for its numbers."""

    series: Sequence[Series]
    title: str = ""
    links: Sequence[tuple[float, float, float]] = ()
    names: Mapping[float, str] | None = None


def draw_panels(
    path: str | Path,
    panels: Sequence[Panel],
    *,
    title: str,
    note: str = "",
    x_label: str = "",
    y_label: str,
    scale: Scale = "linear",
) -> None:
    """Draw panels that share the y axis and one legend. A linear axis begins at zero."""
    require_matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    width = max(2, len(panels)) * _PANEL_WIDTH_IN + _LEGEND_WIDTH_IN
    figure = Figure(figsize=(width, _HEIGHT_IN), dpi=_DPI, layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    row = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for axes, panel in zip(row, panels, strict=True):
        _draw(axes, panel)
        axes.set_xlabel(x_label)
    row[0].set_ylabel(y_label)
    _scale(row[0], [y for panel in panels for series in panel.series for y in series.y], scale)
    _write_title(figure, title, note)
    _add_legend(figure, row)
    figure.savefig(Path(path))


def _draw(axes: Axes, panel: Panel) -> None:
    from matplotlib.ticker import FuncFormatter

    for x, low, high in panel.links:
        axes.plot([x, x], [low, high], color=LIGHT.muted, linewidth=1, zorder=1)
    for series in panel.series:
        colour = COLOURS[series.colour % len(COLOURS)]
        axes.plot(
            series.x,
            series.y,
            linestyle=_LINES[series.line],
            linewidth=1.6,
            color=colour,
            marker=series.marker,
            markersize=7 if series.is_quoted else 5,
            markerfacecolor="white" if series.is_quoted else colour,
            markeredgewidth=1.5 if series.is_quoted else 0,
            label=series.name or "_unnamed",
            clip_on=False,
            zorder=3,
        )
    axes.set_title(panel.title, fontsize=10, color=LIGHT.ink)
    axes.grid(color=_GRID, linewidth=0.6, axis="both" if panel.names is None else "y")
    axes.spines[["top", "right"]].set_visible(False)
    if panel.names is None:
        axes.set_xlim(left=0)
        axes.xaxis.set_major_formatter(FuncFormatter(_write_number))
    else:
        axes.set_xticks(list(panel.names), list(panel.names.values()))


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


def _write_title(figure: Figure, title: str, note: str) -> None:
    """Write the title, and below it the note in the line that the title keeps free for it."""
    head = figure.suptitle(
        f"{title}\n" if note else title, x=0.01, ha="left", fontsize=12, color=LIGHT.ink
    )
    head.set_fontweight("bold")
    figure.text(
        0.01, 0.99, f"\n{note}", ha="left", va="top", fontsize=10, color=LIGHT.quiet, linespacing=1.5
    )


def _add_legend(figure: Figure, row: Sequence[Axes]) -> None:
    """Name each series once, in the order of their first appearance."""
    named = {}
    for axes in row:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            named.setdefault(label, handle)
    if len(named) > 1:
        figure.legend(
            list(named.values()), list(named), loc="outside right upper", frameon=False, fontsize=9
        )
