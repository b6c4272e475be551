"""Plots of measurements: one line for each series, drawn to a PNG."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from contrada.pictures.plate import require_matplotlib

_COLOURS = ("#1f6fb4", "#d9622b", "#4a5a68", "#7a9a3a", "#8a5aa8", "#b0892f")
_STYLES = ("-", "--", ":", "-.")


def draw_lines(
    path: str | Path,
    series: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    *,
    title: str,
    x_label: str,
    y_label: str,
    logarithmic: bool = False,
) -> None:
    """Draw series of x and y values, named in a legend; `logarithmic` is for the y axis."""
    require_matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 5.5), dpi=130, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for number, (name, (x, y)) in enumerate(series.items()):
        colour, style = _COLOURS[number % len(_COLOURS)], _STYLES[number % len(_STYLES)]
        axes.plot(x, y, style, color=colour, marker="o", markersize=4, label=name)
    axes.set(title=title, xlabel=x_label, ylabel=y_label)
    if logarithmic:
        axes.set_yscale("log")
    axes.grid(color="#d8dee4", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    figure.savefig(Path(path))
