"""Plots begin at zero, name each series once, and show zero where the axis is logarithmic."""

from pathlib import Path

import pytest
from matplotlib.figure import Figure

from contrada.pictures.plots import Panel, Scale, Series, draw_panels, make_figure

ONE = Series("one", [10, 20], [5.0, 6.0])
TWO = Series("two", [10, 20], [7.0, 0.0], colour=1, line="dashed")


def figure_of(*panels: Panel, scale: Scale = "linear") -> Figure:
    return make_figure(
        panels, title="a title", note="a note", x_label="N", y_label="ms", scale=scale
    )


def legend_of(figure: Figure) -> list[str]:
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def test_linear_axes_begin_at_zero() -> None:
    axes = figure_of(Panel([ONE])).axes[0]
    assert axes.get_xlim()[0] == 0
    assert axes.get_ylim()[0] == 0


def test_a_series_of_several_panels_is_named_once() -> None:
    assert legend_of(figure_of(Panel([ONE, TWO]), Panel([ONE, TWO]))) == ["one", "two"]


def test_a_single_series_needs_no_legend() -> None:
    assert legend_of(figure_of(Panel([ONE]))) == []


def test_panels_share_the_axis_of_y() -> None:
    figure = figure_of(Panel([ONE]), Panel([Series("high", [1], [900.0])]))
    left, right = figure.axes
    assert left.get_ylim() == right.get_ylim()
    assert left.get_ylabel() == "ms"
    assert right.get_ylabel() == ""


def test_a_logarithmic_axis_can_show_zero() -> None:
    axes = figure_of(Panel([ONE, TWO]), scale="log with zero").axes[0]
    assert axes.get_yscale() == "symlog"
    assert axes.get_ylim() == (0, 10)


def test_an_axis_of_zeros_alone_can_be_drawn() -> None:
    axes = figure_of(Panel([Series("none", [0, 1], [0.0, 0.0])]), scale="log with zero").axes[0]
    assert axes.get_ylim()[0] == 0


def test_what_is_quoted_is_hollow_and_what_is_measured_filled() -> None:
    quoted = Series("paper", [10], [5.0], line="none", is_quoted=True)
    ours, paper = figure_of(Panel([ONE, quoted])).axes[0].lines
    assert paper.get_markerfacecolor() == "white"
    assert ours.get_markerfacecolor() == ours.get_color()


def test_names_stand_at_their_places() -> None:
    axes = figure_of(Panel([ONE], names={10.0: "scan", 20.0: "tree"}, links=[(10, 1, 5)])).axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["scan", "tree"]


@pytest.mark.parametrize("count", [1, 3])
def test_a_figure_is_saved_as_png(tmp_path: Path, count: int) -> None:
    draw_panels(tmp_path / "a.png", [Panel([ONE, TWO])] * count, title="t", y_label="ms")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
